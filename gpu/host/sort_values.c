/* SPDX-License-Identifier: MIT */
/* Sorting by comparing: a few items, or those that no number tells apart. */
#include "gpu/host/order.h"

#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "gpu/run.h"

#define RUN	 16u /* items that are sorted by insertion, before such runs are merged */
#define COMPARED 64u /* comparisons between two polls */

/* Sets *order; polls now and then, as texts may be long. */
static int compare_values(const struct pfs_comparing *c, int *order, const struct pfs_keyed *a,
			  const struct pfs_keyed *b)
{
	*order = c->compare(c->by, a->value, b->value);
	if (*order == 0)
		*order = (a->value > b->value) - (a->value < b->value);
	if (++*c->compared < COMPARED)
		return 0;
	*c->compared = 0;
	return pfs_run_poll(c->run);
}

static int insert_all(const struct pfs_comparing *c, struct pfs_keyed *items, uint64_t n)
{
	for (uint64_t i = 1; i < n; i++) {
		struct pfs_keyed item = items[i];
		uint64_t k = i;
		int order;

		for (; k > 0; k--) {
			PFS_TRY(compare_values(c, &order, &items[k - 1], &item));
			if (order <= 0)
				break;
			items[k] = items[k - 1];
		}
		items[k] = item;
	}
	return 0;
}

static int merge_two(const struct pfs_comparing *c, struct pfs_keyed *to,
		     const struct pfs_keyed *from, uint64_t middle, uint64_t n)
{
	uint64_t a = 0, b = middle;

	for (uint64_t i = 0; i < n; i++) {
		int order = b == n ? 0 : 1;

		if (a < middle && b < n)
			PFS_TRY(compare_values(c, &order, &from[a], &from[b]));
		to[i] = order <= 0 ? from[a++] : from[b++];
	}
	return 0;
}

/* Merges two runs of `width` items each. */
static int merge_runs(const struct pfs_comparing *c, struct pfs_keyed *to,
		      const struct pfs_keyed *from, uint64_t n, uint64_t width)
{
	for (uint64_t at = 0; at < n; at += 2 * width) {
		uint64_t left = n - at;

		PFS_TRY(merge_two(c, to + at, from + at, PFS_MIN(width, left),
				  PFS_MIN(2 * width, left)));
	}
	return 0;
}

int pfs_sort_values(const struct pfs_comparing *c, struct pfs_keyed *items, struct pfs_keyed *more,
		    uint64_t n)
{
	struct pfs_keyed *from = items, *to = more;

	for (uint64_t width = RUN; width < n; width *= 2) { /* the last merge is to end in items */
		struct pfs_keyed *merged = to;

		to = from;
		from = merged;
	}
	for (uint64_t at = 0; at < n; at += RUN) {
		uint64_t here = PFS_MIN(RUN, n - at);

		PFS_TRY(insert_all(c, items + at, here));
		if (from == more)
			memcpy(more + at, items + at, here * sizeof(*more));
	}
	for (uint64_t width = RUN; width < n; width *= 2) {
		struct pfs_keyed *merged = to;

		PFS_TRY(merge_runs(c, to, from, n, width));
		to = from;
		from = merged;
	}
	return 0;
}
