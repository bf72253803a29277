/* SPDX-License-Identifier: MIT */
#include "fs/image/dirtable.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/image.h"

#define STEP 4u /* entries of a block are allocated in multiples of it */

static unsigned count_entries(const struct pfs_dirtable_block *block)
{
	return pfs_count_ones(block->has);
}

int pfs_dirtable_open(struct pfs_dirtable *table)
{
	*table = (struct pfs_dirtable){.n_blocks = 0};
	PFS_TRY(pfs_reserve_open(&table->memory, PFS_SLOT_MAX / PFS_DIRTABLE_BLOCK *
							 sizeof(struct pfs_dirtable_block)));
	table->blocks = table->memory.base;
	return 0;
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

int pfs_dirtable_open_lent(struct pfs_dirtable *table, uint32_t end,
			   struct pfs_dirtable_entry *entries, uint32_t n)
{
	const uint32_t n_blocks = (uint32_t)pfs_div_round_up(end, PFS_DIRTABLE_BLOCK);
	int error;

	PFS_TRY(pfs_dirtable_open(table));
	table->own = calloc(n_blocks / 64 + 1, sizeof(*table->own));
	table->had = calloc((size_t)n_blocks + 1, sizeof(*table->had));
	error = table->own && table->had ? grow(table, end) : -ENOMEM;
	if (error) {
		pfs_dirtable_close(table);
		return error;
	}
	table->lent = entries;
	table->n_lent = n;
	table->n_lent_blocks = n_blocks;
	return 0;
}

static bool is_lent(const struct pfs_dirtable *table, uint32_t block)
{
	return table->own && block < table->n_lent_blocks &&
	       !(table->own[block / 64] >> block % 64 & 1);
}

/* Others may be about to change these blocks, and the caller makes what they touch: ThreadSanitizer
 * does not know that. */
__attribute__((no_sanitize("thread"), noinline)) uint64_t
pfs_dirtable_had(const struct pfs_dirtable *table, uint32_t block)
{
	return table->own[block / 64] >> block % 64 & 1 ? table->had[block]
							: table->blocks[block].has;
}

struct pfs_reserve pfs_dirtable_take(struct pfs_dirtable *table)
{
	struct pfs_reserve memory = table->memory;

	for (uint32_t i = 0; i < table->n_blocks; i++)
		if (!is_lent(table, i))
			free(table->blocks[i].entries);
	free(table->own);
	free(table->had);
	*table = (struct pfs_dirtable){.n_blocks = 0};
	return memory;
}

void pfs_dirtable_close(struct pfs_dirtable *table)
{
	struct pfs_reserve memory = pfs_dirtable_take(table);

	pfs_reserve_close(&memory);
}

/* Entries of the table's own, with room for one more than n. */
static int make_own(struct pfs_dirtable *table, uint32_t number, unsigned n)
{
	struct pfs_dirtable_block *block = &table->blocks[number];
	struct pfs_dirtable_entry *entries = malloc((n / STEP + 1) * STEP * sizeof(*entries));

	if (!entries)
		return -ENOMEM;
	if (n)
		memcpy(entries, block->entries, n * sizeof(*entries));
	block->entries = entries;
	table->had[number] = block->has;
	table->own[number / 64] |= UINT64_C(1) << number % 64;
	return 0;
}

/* Makes room for n + 1 entries, if n fill theirs. */
static int make_room(struct pfs_dirtable *table, uint32_t number, unsigned n)
{
	struct pfs_dirtable_block *block = &table->blocks[number];
	struct pfs_dirtable_entry *entries;

	if (is_lent(table, number))
		return make_own(table, number, n);
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
	PFS_TRY(make_room(table, slot / PFS_DIRTABLE_BLOCK, n));
	entry = pfs_dirtable_at(table, slot);
	place = (unsigned)(entry - block->entries);
	memmove(entry + 1, entry, (n - place) * sizeof(*entry));
	block->has |= pfs_dirtable_bit(slot);
	return 0;
}

int pfs_dirtable_remove(struct pfs_dirtable *table, uint32_t slot)
{
	const uint32_t number = slot / PFS_DIRTABLE_BLOCK;
	struct pfs_dirtable_block *block = &table->blocks[number];
	struct pfs_dirtable_entry *entry;
	unsigned n = count_entries(block), place;

	if (is_lent(table, number))
		PFS_TRY(make_own(table, number, n));
	entry = pfs_dirtable_at(table, slot);
	place = (unsigned)(entry - block->entries);
	block->has &= ~pfs_dirtable_bit(slot);
	memmove(entry, entry + 1, (--n - place) * sizeof(*entry));
	if (n)
		return 0;
	free(block->entries);
	block->entries = NULL;
	return 0;
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
	uint64_t bytes = table->memory.committed + (uint64_t)table->n_lent * sizeof(*table->lent);

	for (uint32_t i = 0; i < table->n_blocks; i++)
		if (!is_lent(table, i))
			bytes += pfs_div_round_up(count_entries(&table->blocks[i]), STEP) * STEP *
				 sizeof(struct pfs_dirtable_entry);
	return bytes;
}
