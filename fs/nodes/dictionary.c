/* SPDX-License-Identifier: MIT */
#include "fs/nodes/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

#define TABLE_MIN 64u

static uint32_t hash_of(const char *text, size_t len)
{
	uint64_t hash = UINT64_C(0x9e3779b97f4a7c15) ^ len;

	for (; len >= sizeof(uint64_t); text += sizeof(uint64_t), len -= sizeof(uint64_t)) {
		uint64_t word;

		memcpy(&word, text, sizeof(word));
		hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
		hash ^= hash >> 29;
	}
	if (len) {
		uint64_t word = 0;

		memcpy(&word, text, len);
		hash = (hash ^ word) * UINT64_C(0xbf58476d1ce4e5b9);
	}
	hash ^= hash >> 32;
	return (uint32_t)(hash * UINT64_C(0x94d049bb133111eb) >> 32);
}

/* Returns where the text is in the table, or is to be. */
static uint32_t home_of(const struct pfs_dictionary_builder *builder, const char *text, size_t len)
{
	uint32_t at = hash_of(text, len) & builder->table_mask;

	for (; builder->table[at]; at = (at + 1) & builder->table_mask) {
		size_t other_len;
		const uint8_t *other =
			pfs_dictionary_text(&builder->shown, builder->table[at] - 1, &other_len);

		if (other_len == len && memcmp(other, text, len) == 0)
			break;
	}
	return at;
}

static int grow_table(struct pfs_dictionary_builder *builder)
{
	uint32_t size = builder->table ? 2 * (builder->table_mask + 1) : TABLE_MIN;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return -ENOMEM;
	free(builder->table);
	builder->table = table;
	builder->table_mask = size - 1;
	for (uint32_t code = 0; code < builder->shown.n; code++) {
		size_t len;
		const uint8_t *text = pfs_dictionary_text(&builder->shown, code, &len);

		table[home_of(builder, (const char *)text, len)] = code + 1;
	}
	return 0;
}

int pfs_dictionary_begin(struct pfs_dictionary_builder *builder)
{
	if (builder->offset)
		return 0;
	builder->bytes = malloc(1);
	builder->offset = builder->bytes ? calloc(1, sizeof(*builder->offset)) : NULL;
	if (!builder->offset) {
		free(builder->bytes);
		builder->bytes = NULL;
		return -ENOMEM;
	}
	builder->bytes_capacity = builder->offset_capacity = 1;
	builder->shown = (struct pfs_dictionary){
		.id = pfs_table_new_id(), .bytes = builder->bytes, .offset = builder->offset};
	return 0;
}

bool pfs_dictionary_find(const struct pfs_dictionary_builder *builder, uint32_t *code,
			 const char *text, size_t len)
{
	uint32_t at = builder->table ? home_of(builder, text, len) : 0;

	if (!builder->table || !builder->table[at])
		return false;
	*code = builder->table[at] - 1;
	return true;
}

int pfs_dictionary_append(struct pfs_dictionary_builder *builder, uint32_t *code, const char *text,
			  size_t len)
{
	uint32_t n = builder->shown.n;
	uint64_t end;

	PFS_TRY(pfs_dictionary_begin(builder));
	if (n == UINT32_MAX / 4)
		return -ENOMEM;
	end = builder->offset[n] + len;
	PFS_TRY(pfs_grow(&builder->offset, &builder->offset_capacity, n + (size_t)2,
			 sizeof(uint64_t)));
	PFS_TRY(pfs_grow(&builder->bytes, &builder->bytes_capacity, end + 1, 1));
	if (len)
		memcpy(builder->bytes + builder->offset[n], text, len);
	builder->offset[n + 1] = end;
	builder->shown.bytes = builder->bytes;
	builder->shown.offset = builder->offset;
	builder->shown.n = n + 1;
	*code = n;
	return 0;
}

int pfs_dictionary_add(struct pfs_dictionary_builder *builder, uint32_t *code, const char *text,
		       size_t len)
{
	uint32_t at;

	if (!builder->table || builder->shown.n >= builder->table_mask / 4 * 3)
		PFS_TRY(grow_table(builder));
	at = home_of(builder, text, len);
	if (builder->table[at]) {
		*code = builder->table[at] - 1;
		return 0;
	}
	PFS_TRY(pfs_dictionary_append(builder, code, text, len));
	builder->table[at] = *code + 1;
	return 0;
}

void pfs_dictionary_finish(struct pfs_dictionary_builder *builder)
{
	free(builder->bytes);
	free(builder->offset);
	free(builder->table);
	*builder = (struct pfs_dictionary_builder){.bytes = NULL};
}

uint64_t pfs_dictionary_memory(const struct pfs_dictionary_builder *builder)
{
	return builder->bytes_capacity + builder->offset_capacity * sizeof(uint64_t) +
	       (builder->table ? ((uint64_t)builder->table_mask + 1) * sizeof(uint32_t) : 0);
}
