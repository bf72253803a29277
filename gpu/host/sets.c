/* SPDX-License-Identifier: MIT */
/* gpu/host/sets.c - bitmaps in host memory. */
#include "gpu/host/sets.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"

#define GRAIN 65536u /* words that a thread takes at a time */

int pfs_host_fill(struct pfs_codes_job *job, uint32_t *bits, size_t words, uint64_t from,
		  uint64_t to)
{
	(void)job;
	memset(bits, 0, words * sizeof(*bits));
	for (; from < to && from % 32; from++)
		bits[from / 32] |= 1u << from % 32;
	if (from < to)
		memset(bits + from / 32, 0xff, (to / 32 - from / 32) * sizeof(*bits));
	for (from = PFS_MAX(from, to & ~UINT64_C(31)); from < to; from++)
		bits[from / 32] |= 1u << from % 32;
	return 0;
}

int pfs_host_set(struct pfs_codes_job *job, uint32_t *bits, size_t words, const uint32_t *slots,
		 size_t n)
{
	(void)job;
	memset(bits, 0, words * sizeof(*bits));
	for (size_t i = 0; i < n; i++)
		bits[slots[i] / 32] |= 1u << slots[i] % 32;
	return 0;
}

struct combine {
	uint32_t *bits;
	const uint32_t *other;
	enum pfs_bitmap_op op;
};

static void combine_piece(void *context, size_t from, size_t to)
{
	const struct combine *c = context;

	switch (c->op) {
	case PFS_BITMAP_AND:
		for (size_t i = from; i < to; i++)
			c->bits[i] &= c->other[i];
		return;
	case PFS_BITMAP_OR:
		for (size_t i = from; i < to; i++)
			c->bits[i] |= c->other[i];
		return;
	case PFS_BITMAP_AND_NOT:
		for (size_t i = from; i < to; i++)
			c->bits[i] &= ~c->other[i];
		return;
	}
}

int pfs_host_combine(struct pfs_codes_job *job, uint32_t *bits, size_t words, const uint32_t *other,
		     size_t other_words, enum pfs_bitmap_op op)
{
	struct combine c = {.bits = bits, .other = other, .op = op};
	size_t both = PFS_MIN(words, other_words);

	pfs_pool_run(pfs_host_of_job(job)->codes.pool, both, GRAIN, combine_piece, &c);
	if (op == PFS_BITMAP_AND)
		memset(bits + both, 0, (words - both) * sizeof(*bits));
	return 0;
}

struct count {
	const uint32_t *bits;
	atomic_ullong count;
};

static void count_piece(void *context, size_t from, size_t to)
{
	struct count *c = context;
	unsigned long long sum = 0;

	for (size_t i = from; i < to; i++)
		sum += (unsigned)__builtin_popcount(c->bits[i]);
	atomic_fetch_add(&c->count, sum);
}

int pfs_host_count(struct pfs_codes_job *job, uint64_t *count, const uint32_t *bits, size_t words)
{
	struct count c = {.bits = bits};

	pfs_pool_run(pfs_host_of_job(job)->codes.pool, words, GRAIN, count_piece, &c);
	*count = atomic_load(&c.count);
	return 0;
}
