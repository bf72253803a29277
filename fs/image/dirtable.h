/* SPDX-License-Identifier: MIT */
/* fs/image/dirtable.h - an entry for each of some slots, found by the slot: the sums of directories
 * (totals.h).
 *
 * 64 slots share a block, which has a bit for each slot with an entry, and the entries in their
 * order.  Memory: a quarter of a byte a slot, and 28 bytes an entry. Threads: as its owner has it;
 * nothing is locked here. */
#ifndef PFS_FS_IMAGE_DIRTABLE_H
#define PFS_FS_IMAGE_DIRTABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "base/reserve.h"

#define PFS_DIRTABLE_BLOCK 64u /* slots */

/* Packed, since there may be as many as there are nodes. */
struct pfs_dirtable_entry {
	uint64_t size, blocks; /* modulo 2^64 */
	int64_t newest;
	uint32_t count;
} __attribute__((packed, aligned(4)));

struct pfs_dirtable_block {
	uint64_t has; /* a bit a slot */
	struct pfs_dirtable_entry *entries;
};

struct pfs_dirtable {
	struct pfs_reserve memory;
	struct pfs_dirtable_block *blocks; /* memory.base */
	uint32_t n_blocks;
	/* Entries that were lent (pfs_dirtable_open_lent), which this table must not free: those of
	 * blocks below n_lent_blocks whose bit in `own` is clear. `had`: for each such block, which
	 * slots had entries when it was lent. */
	struct pfs_dirtable_entry *lent;
	uint64_t *own, *had;
	uint32_t n_lent, n_lent_blocks;
};

PFS_MUST_CHECK int pfs_dirtable_open(struct pfs_dirtable *table); /* empty; -ENOMEM */

/* Opens a table of slots below `end` whose blocks and entries the caller lends: it fills the memory
 * of blocks, and `entries`, with n entries in the order of slots, when they are first touched (the
 * table touches neither here). `entries` may be written to, and must stay until the table is
 * closed. -ENOMEM. */
PFS_MUST_CHECK int pfs_dirtable_open_lent(struct pfs_dirtable *table, uint32_t end,
					  struct pfs_dirtable_entry *entries, uint32_t n);

/* Returns which slots the block had entries for when it was lent; n_lent_blocks are. */
uint64_t pfs_dirtable_had(const struct pfs_dirtable *table, uint32_t block);

/* As pfs_dirtable_close, but the memory of blocks is not freed: it becomes the caller's. */
struct pfs_reserve pfs_dirtable_take(struct pfs_dirtable *table);
void pfs_dirtable_close(struct pfs_dirtable *table); /* a table that is all zero is allowed */

static inline uint64_t pfs_dirtable_bit(uint32_t slot)
{
	return UINT64_C(1) << slot % PFS_DIRTABLE_BLOCK;
}

/* Returns true if the slot has an entry. */
static inline bool pfs_dirtable_has(const struct pfs_dirtable *table, uint32_t slot)
{
	return slot / PFS_DIRTABLE_BLOCK < table->n_blocks &&
	       table->blocks[slot / PFS_DIRTABLE_BLOCK].has & pfs_dirtable_bit(slot);
}

/* Returns the slot's entry, which it has; valid until the next insert or remove. */
static inline struct pfs_dirtable_entry *pfs_dirtable_at(const struct pfs_dirtable *table,
							 uint32_t slot)
{
	const struct pfs_dirtable_block *block = &table->blocks[slot / PFS_DIRTABLE_BLOCK];

	return block->entries + pfs_count_ones(block->has & (pfs_dirtable_bit(slot) - 1));
}

/* Returns the slot's entry, as pfs_dirtable_at, or NULL if it has none. */
static inline struct pfs_dirtable_entry *pfs_dirtable_find(const struct pfs_dirtable *table,
							   uint32_t slot)
{
	const struct pfs_dirtable_block *block = &table->blocks[slot / PFS_DIRTABLE_BLOCK];
	uint64_t up_to; /* the bits of the slot, which is the highest, and of those before it */

	if (slot / PFS_DIRTABLE_BLOCK >= table->n_blocks)
		return NULL;
	up_to = block->has << (PFS_DIRTABLE_BLOCK - 1 - slot % PFS_DIRTABLE_BLOCK);
	return up_to >> (PFS_DIRTABLE_BLOCK - 1) ? block->entries + pfs_count_ones(up_to) - 1
						 : NULL;
}

/* Gives a slot that has none an entry, whose values are undefined. -ENOMEM. */
PFS_MUST_CHECK int pfs_dirtable_insert(struct pfs_dirtable *table, uint32_t slot);
/* Takes the slot's entry away, which it has. -ENOMEM, of a table that was lent. */
PFS_MUST_CHECK int pfs_dirtable_remove(struct pfs_dirtable *table, uint32_t slot);

/* Returns true if the same slots have entries in both, with the same values. */
bool pfs_dirtable_is_same(const struct pfs_dirtable *a, const struct pfs_dirtable *b);

/* Returns the bytes that it takes. */
uint64_t pfs_dirtable_size(const struct pfs_dirtable *table);

#endif
