/* SPDX-License-Identifier: MIT */
/* Leaves out, before anything is sorted, what the first word of an order says is not among its
 * first items. */
#include "gpu/host/order.h"

#include "base/checked.h"
#include "base/radix.h"
#include "gpu/host/positions.h"

#define DIGIT_BITS 12u /* the counts of all digits fit a thread's first cache */
#define DIGITS	   (1u << DIGIT_BITS)

struct bounding {
	const uint64_t *word; /* by index */
	unsigned shift;	      /* the digit is what is left of a word */
	uint32_t last;	      /* greater digits are left out */
	uint32_t *counts;     /* by worker and digit */
	uint32_t *kept;	      /* by piece: how many are kept, and then how many before it */
	struct pfs_keyed *items;
};

static int count_digits(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct bounding *b = context;
	uint32_t *counts = b->counts + (size_t)worker * DIGITS;

	for (uint64_t i = from; i < to; i++)
		counts[b->word[i] >> b->shift]++;
	return 0;
}

static int count_kept(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct bounding *b = context;
	uint32_t n = 0;

	for (uint64_t i = from; i < to; i++)
		n += b->word[i] >> b->shift <= b->last;
	b->kept[from / PFS_PIECE] = n;
	return 0;
}

static int write_kept(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct bounding *b = context;
	struct pfs_keyed *item = b->items + b->kept[from / PFS_PIECE];

	for (uint64_t i = from; i < to; i++) {
		if (b->word[i] >> b->shift <= b->last)
			(item++)->value = (uint32_t)i;
	}
	return 0;
}

/* Finds the digit up to which there are at least `most` items. */
static int find_last(const struct pfs_sorting *s, struct bounding *b, uint64_t most)
{
	size_t n = (size_t)pfs_host_workers(s->host) * DIGITS;
	uint64_t all = 0;
	int error;

	PFS_TRY(pfs_run_alloc(s->run, &b->counts, n, sizeof(*b->counts)));
	error = pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, count_digits, b);
	for (b->last = 0; !error && b->last < DIGITS; b->last++) {
		for (size_t i = b->last; i < n; i += DIGITS)
			all += b->counts[i];
		if (all >= most)
			break;
	}
	pfs_run_free(s->run, b->counts, n, sizeof(*b->counts));
	return error;
}

int pfs_sort_bound(const struct pfs_sorting *s, struct pfs_keyed *items, uint64_t *n,
		   const uint64_t *word, uint64_t domain, uint64_t most)
{
	unsigned bits = 64 - (unsigned)__builtin_clzll((domain - 1) | 1);
	struct bounding b = {
		.word = word,
		.shift = bits > DIGIT_BITS ? bits - DIGIT_BITS : 0,
		.items = items,
	};
	size_t pieces = (size_t)pfs_div_round_up(s->positions->n, PFS_PIECE);
	uint32_t all = 0;
	int error;

	PFS_TRY(find_last(s, &b, most));
	PFS_TRY(pfs_run_alloc_raw(s->run, &b.kept, pieces, sizeof(*b.kept)));
	error = pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, count_kept, &b);
	for (size_t i = 0; !error && i < pieces; i++) {
		uint32_t here = b.kept[i];

		b.kept[i] = all;
		all += here;
	}
	if (!error)
		error = pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, write_kept, &b);
	pfs_run_free(s->run, b.kept, pieces, sizeof(*b.kept));
	*n = all;
	return error;
}
