/* SPDX-License-Identifier: MIT */
/* Slot -> values that few nodes have: open addressing over pointers, linear probing. */
#include "fs/image/rare_values.h"

#include <stdlib.h>

#define MIN_CAPACITY 64u

struct pfs_rare {
	struct pfs_rare_values **table;
	uint64_t capacity; /* a power of two */
	uint64_t count;
	uint64_t target_bytes;
};

static uint64_t home(const struct pfs_rare *rare, uint32_t slot)
{
	return (slot * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (rare->capacity - 1);
}

static uint64_t locate(const struct pfs_rare *rare, uint32_t slot)
{
	uint64_t i = home(rare, slot);

	while (rare->table[i] && rare->table[i]->slot != slot)
		i = (i + 1) & (rare->capacity - 1);
	return i;
}

int pfs_rare_create(struct pfs_rare **out)
{
	struct pfs_rare *rare = calloc(1, sizeof(*rare));

	*out = NULL;
	if (!rare)
		return -ENOMEM;
	rare->capacity = MIN_CAPACITY;
	rare->table = calloc(rare->capacity, sizeof(struct pfs_rare_values *));
	if (!rare->table) {
		free(rare);
		return -ENOMEM;
	}
	*out = rare;
	return 0;
}

static void release(struct pfs_rare_values *values)
{
	if (values)
		free(values->target);
	free(values);
}

void pfs_rare_destroy(struct pfs_rare *rare)
{
	if (!rare)
		return;
	for (uint64_t i = 0; i < rare->capacity; i++)
		release(rare->table[i]);
	free(rare->table);
	free(rare);
}

static int grow(struct pfs_rare *rare)
{
	struct pfs_rare larger = *rare;

	larger.capacity *= 2;
	larger.table = calloc(larger.capacity, sizeof(struct pfs_rare_values *));
	if (!larger.table)
		return -ENOMEM;
	for (uint64_t i = 0; i < rare->capacity; i++)
		if (rare->table[i])
			larger.table[locate(&larger, rare->table[i]->slot)] = rare->table[i];
	free(rare->table);
	*rare = larger;
	return 0;
}

int pfs_rare_get(struct pfs_rare *rare, struct pfs_rare_values **out, uint32_t slot)
{
	uint64_t i = locate(rare, slot);

	if (!rare->table[i]) {
		struct pfs_rare_values *values;

		if (rare->count >= rare->capacity / 4 * 3) {
			PFS_TRY(grow(rare));
			i = locate(rare, slot);
		}
		values = calloc(1, sizeof(*values));
		if (!values)
			return -ENOMEM;
		values->slot = slot;
		rare->table[i] = values;
		rare->count++;
	}
	*out = rare->table[i];
	return 0;
}

const struct pfs_rare_values *pfs_rare_find(const struct pfs_rare *rare, uint32_t slot)
{
	return rare->table[locate(rare, slot)];
}

void pfs_rare_set_target(struct pfs_rare *rare, struct pfs_rare_values *values, char *target,
			 uint32_t len)
{
	values->target = target;
	values->target_len = len;
	rare->target_bytes += len;
}

uint64_t pfs_rare_target_bytes(const struct pfs_rare *rare)
{
	return rare->target_bytes;
}

void pfs_rare_drop(struct pfs_rare *rare, uint32_t slot)
{
	uint64_t mask = rare->capacity - 1;
	uint64_t hole = locate(rare, slot);

	if (!rare->table[hole])
		return;
	rare->target_bytes -= rare->table[hole]->target_len;
	release(rare->table[hole]);
	rare->count--;
	for (uint64_t i = (hole + 1) & mask; rare->table[i]; i = (i + 1) & mask) {
		if (((i - home(rare, rare->table[i]->slot)) & mask) >= ((i - hole) & mask)) {
			rare->table[hole] = rare->table[i];
			hole = i;
		}
	}
	rare->table[hole] = NULL;
}
