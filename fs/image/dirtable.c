/* SPDX-License-Identifier: MIT */
#include "fs/image/dirtable.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/image.h"

#define STEP 4u /* entries of a block are allocated in multiples of it */

static unsigned count_entries(const struct pfs_dirtable_block *block)
{
	return (unsigned)__builtin_popcountll(block->has);
}

int pfs_dirtable_open(struct pfs_dirtable *table)
{
	*table = (struct pfs_dirtable){.n_blocks = 0};
	PFS_TRY(pfs_reserve_open(&table->memory,
				 PFS_SLOT_MAX / PFS_DIRTABLE_BLOCK * sizeof(struct pfs_dirtable_block)));
	table->blocks = table->memory.base;
	return 0;
}

void pfs_dirtable_close(struct pfs_dirtable *table)
{
	for (uint32_t i = 0; i < table->n_blocks; i++)
		free(table->blocks[i].entries);
	pfs_reserve_close(&table->memory);
	*table = (struct pfs_dirtable){.n_blocks = 0};
}

/* Makes the blocks reach to slots below `end`. */
static int grow(struct pfs_dirtable *table, uint32_t end)
{
	uint32_t n_blocks = (uint32_t)pfs_div_round_up(end, PFS_DIRTABLE_BLOCK);

	if (n_blocks <= table->n_blocks)
		return 0;
	PFS_TRY(pfs_reserve_grow(&table->memory, n_blocks * sizeof(struct pfs_dirtable_block)));
	table->n_blocks = n_blocks;
	return 0;
}

/* From n entries to n + 1, if that crosses a step. */
static int make_room(struct pfs_dirtable_block *block, unsigned n)
{
	struct pfs_dirtable_entry *entries;

	if (n % STEP)
		return 0;
	entries = realloc(block->entries, (n + STEP) * sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	block->entries = entries;
	return 0;
}

int pfs_dirtable_insert(struct pfs_dirtable *table, uint32_t slot)
{
	struct pfs_dirtable_block *block;
	struct pfs_dirtable_entry *entry;
	unsigned n, place;

	PFS_TRY(grow(table, slot + 1));
	block = &table->blocks[slot / PFS_DIRTABLE_BLOCK];
	n = count_entries(block);
	PFS_TRY(make_room(block, n));
	entry = pfs_dirtable_at(table, slot);
	place = (unsigned)(entry - block->entries);
	memmove(entry + 1, entry, (n - place) * sizeof(*entry));
	block->has |= pfs_dirtable_bit(slot);
	return 0;
}

void pfs_dirtable_remove(struct pfs_dirtable *table, uint32_t slot)
{
	struct pfs_dirtable_block *block = &table->blocks[slot / PFS_DIRTABLE_BLOCK];
	struct pfs_dirtable_entry *entry = pfs_dirtable_at(table, slot);
	unsigned place = (unsigned)(entry - block->entries), n;

	block->has &= ~pfs_dirtable_bit(slot);
	n = count_entries(block);
	memmove(entry, entry + 1, (n - place) * sizeof(*entry));
	if (n)
		return;
	free(block->entries);
	block->entries = NULL;
}

static bool same_blocks(const struct pfs_dirtable_block *a, const struct pfs_dirtable_block *b)
{
	size_t n = count_entries(a);

	return a->has == b->has && (!n || !memcmp(a->entries, b->entries, n * sizeof(*a->entries)));
}

bool pfs_dirtable_is_same(const struct pfs_dirtable *a, const struct pfs_dirtable *b)
{
	const struct pfs_dirtable *longer = a->n_blocks > b->n_blocks ? a : b;
	uint32_t both = PFS_MIN(a->n_blocks, b->n_blocks);

	for (uint32_t i = 0; i < both; i++) {
		if (!same_blocks(&a->blocks[i], &b->blocks[i]))
			return false;
	}
	for (uint32_t i = both; i < longer->n_blocks; i++) {
		if (longer->blocks[i].has)
			return false;
	}
	return true;
}

uint64_t pfs_dirtable_size(const struct pfs_dirtable *table)
{
	uint64_t bytes = table->memory.committed;

	for (uint32_t i = 0; i < table->n_blocks; i++)
		bytes += pfs_div_round_up(count_entries(&table->blocks[i]), STEP) * STEP *
			 sizeof(struct pfs_dirtable_entry);
	return bytes;
}
