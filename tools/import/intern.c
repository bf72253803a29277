/* SPDX-License-Identifier: MIT */
#include "tools/import/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static size_t hash_bytes(const unsigned char *bytes, size_t len)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ len;

	while (len--)
		hash = (hash ^ *bytes++) * UINT64_C(0x100000001b3);
	return (size_t)(hash ^ hash >> 32);
}

const char *pfs_intern_get(const struct pfs_intern *intern, size_t *len, uint32_t number)
{
	size_t start = number ? intern->end[number - 1] : 0;

	*len = intern->end[number] - start;
	return intern->bytes + start;
}

static uint32_t *entry_of(uint32_t *table, size_t table_size, const struct pfs_intern *intern,
			  const void *bytes, size_t len)
{
	size_t at = hash_bytes(bytes, len) & (table_size - 1), other_len;

	for (; table[at]; at = (at + 1) & (table_size - 1)) {
		const char *other = pfs_intern_get(intern, &other_len, table[at] - 1);

		if (other_len == len && (len == 0 || memcmp(other, bytes, len) == 0))
			break;
	}
	return &table[at];
}

static int grow(struct pfs_intern *intern)
{
	size_t size = PFS_MAX(intern->table_size * 2, 256), i, len;
	uint32_t *table;

	if (intern->n + 1 <= intern->table_size / 4 * 3)
		return 0;
	table = calloc(size, sizeof(*table));
	if (!table)
		return -ENOMEM;
	for (i = 0; i < intern->n; i++) {
		const char *bytes = pfs_intern_get(intern, &len, (uint32_t)i);

		*entry_of(table, size, intern, bytes, len) = (uint32_t)i + 1;
	}
	free(intern->table);
	intern->table = table;
	intern->table_size = size;
	return 0;
}

int pfs_intern_add(struct pfs_intern *intern, uint32_t *number, const void *bytes, size_t len)
{
	uint32_t *entry;

	if (intern->n >= UINT32_MAX - 1)
		return -EOVERFLOW;
	PFS_TRY(grow(intern));
	entry = entry_of(intern->table, intern->table_size, intern, bytes, len);
	if (!*entry) {
		PFS_TRY(pfs_grow(&intern->bytes, &intern->capacity, intern->size + len, 1));
		PFS_TRY(pfs_grow(&intern->end, &intern->end_capacity, intern->n + 1,
				 sizeof(*intern->end)));
		if (len)
			(void)memcpy(intern->bytes + intern->size, bytes, len);
		intern->size += len;
		intern->end[intern->n++] = intern->size;
		*entry = (uint32_t)intern->n;
	}
	*number = *entry - 1;
	return 0;
}

void pfs_intern_free(struct pfs_intern *intern)
{
	free(intern->bytes);
	free(intern->end);
	free(intern->table);
	*intern = (struct pfs_intern){0};
}
