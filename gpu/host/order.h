/* SPDX-License-Identifier: MIT */
/* gpu/host/order.h - the keys of an order, as numbers that sort like them, and compared one by
 * one. */
#ifndef PFS_GPU_HOST_ORDER_H
#define PFS_GPU_HOST_ORDER_H

#include "gpu/host/operators.h"
#include "gpu/host/span.h"

struct pfs_keyed;
struct pfs_positions;

struct pfs_order_key {
	struct pfs_cell_reader reader;
	struct pfs_codes_map rank; /* CODE */
	enum pfs_collation collation;
	bool descending, nulls_last;
};

struct pfs_sorting {
	struct pfs_host_operators *host;
	const struct pfs_run *run;
	const struct pfs_positions *positions;
	struct pfs_order_key *keys;
	size_t n_keys;
};

PFS_MUST_CHECK int pfs_sorting_open(struct pfs_sorting *sorting, struct pfs_host_operators *host,
				    const struct pfs_run *run, const struct pfs_source *source,
				    const struct pfs_positions *positions,
				    const struct pfs_sort_key *keys, size_t n_keys);
void pfs_sorting_close(struct pfs_sorting *sorting);

/* Gets numbers of a span that never fall where the key's values rise (or, descending, fall), NULLs
 * included, and the values. Returns true if equal numbers mean equal values. */
bool pfs_order_numbers(const struct pfs_order_key *key, const struct pfs_span *span, uint64_t *out,
		       struct pfs_cells *cells);

/* Compare two positions, by one key or by all: below 0, 0 or above 0. */
int pfs_order_compare_by(const struct pfs_order_key *key, uint32_t a, uint32_t b);
int pfs_order_compare(const struct pfs_sorting *sorting, uint32_t a, uint32_t b);

#define PFS_SORT_SHARED 65536u /* from so many items on threads help */
/* items that are sorted at a time: they fit the cache, and take a millisecond */
#define PFS_SORTED_AT_ONCE (UINT64_C(1) << 16)
/* Sorts n items by their keys, with as much more memory, about `most` at a time; items with equal
 * keys keep their order. All threads help; without sorting->host the caller works alone. */
PFS_MUST_CHECK int pfs_sort_keys(const struct pfs_sorting *sorting, struct pfs_keyed *items,
				 struct pfs_keyed *more, uint64_t n, uint64_t most);

/* Writes the indexes of those items that can be among the first `most`, ascending, and *n, how many
 * these are; `word`, by index, sorts as what comes first in the order, and is below `domain`, where
 * 0 stands for 2^64. */
PFS_MUST_CHECK int pfs_sort_bound(const struct pfs_sorting *sorting, struct pfs_keyed *items,
				  uint64_t *n, const uint64_t *word, uint64_t domain,
				  uint64_t most);

struct pfs_comparing {
	const struct pfs_run *run;
	int (*compare)(const void *by, uint32_t a, uint32_t b); /* values of two items */
	const void *by;
	unsigned *compared; /* items, since the last poll */
};
/* Sorts n items by comparing them, with as much more memory; those that nothing tells apart by
 * their values. It polls the run, and needs no other thread. */
PFS_MUST_CHECK int pfs_sort_values(const struct pfs_comparing *c, struct pfs_keyed *items,
				   struct pfs_keyed *more, uint64_t n);

/* Sorts, of items that are sorted by the numbers of the first key, those with the same number by
 * all keys. All threads help where there are many. */
PFS_MUST_CHECK int pfs_sort_ties(const struct pfs_sorting *sorting, struct pfs_keyed *items,
				 struct pfs_keyed *more, uint64_t n);

/* Sets *order, which pfs_run_free frees, to the positions of n items; NULL on failure. */
PFS_MUST_CHECK int pfs_sorted_positions(const struct pfs_sorting *sorting, uint32_t **order,
					const struct pfs_keyed *items, uint64_t n);

/* Set *order, which pfs_run_free frees, to the first `most` positions in order, of which there are
 * so many. pfs_sort_first, which is for few of many, wants at least one key. */
PFS_MUST_CHECK int pfs_sort_all(const struct pfs_sorting *sorting, uint32_t **order, uint64_t most);
#define PFS_FIRST_BYTES 64u /* that each thread takes then for each of those */
PFS_MUST_CHECK int pfs_sort_first(const struct pfs_sorting *sorting, uint32_t **order,
				  uint64_t most);

#endif
