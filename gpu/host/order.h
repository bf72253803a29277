/* SPDX-License-Identifier: MIT */
/* gpu/host/order.h - the keys of an order, as numbers that sort like them, and compared one by
 * one. */
#ifndef PFS_GPU_HOST_ORDER_H
#define PFS_GPU_HOST_ORDER_H

#include "gpu/host/operators.h"
#include "gpu/host/span.h"

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

/* Set *order, which pfs_run_free frees, to all n positions, sorted; or, with at least one key, to
 * the first `most` of that order, of which there are so many. */
PFS_MUST_CHECK int pfs_sort_all(const struct pfs_sorting *sorting, uint32_t **order);
#define PFS_FIRST_BYTES 64u /* that each thread takes then for each of those */
PFS_MUST_CHECK int pfs_sort_first(const struct pfs_sorting *sorting, uint32_t **order,
				  uint64_t most);

#endif
