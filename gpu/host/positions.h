/* SPDX-License-Identifier: MIT */
/* gpu/host/positions.h - the positions of a source, written down where they do not simply follow
 * each other, and batches that are made of positions. */
#ifndef PFS_GPU_HOST_POSITIONS_H
#define PFS_GPU_HOST_POSITIONS_H

#include "gpu/host/operators.h"
#include "gpu/host/span.h"

struct pfs_positions {
	uint32_t *at; /* n of them; NULL: first, first + 1, ... */
	uint32_t first;
	uint64_t n;
	size_t allocated; /* elements of at */
};

/* Gets all positions of the source, ascending. *out is {0} on failure. */
PFS_MUST_CHECK int pfs_positions_open(struct pfs_positions *out, struct pfs_host_operators *host,
				      const struct pfs_run *run, const struct pfs_source *source);
void pfs_positions_close(const struct pfs_run *run, struct pfs_positions *positions);

static inline uint32_t pfs_position_at(const struct pfs_positions *positions, uint32_t i)
{
	return positions->at ? positions->at[i] : positions->first + i;
}

/* Makes the span of positions from number `at` on, before `end`. */
static inline void pfs_positions_span(const struct pfs_positions *positions, struct pfs_span *span,
				      uint64_t at, uint64_t end)
{
	span->n = (uint32_t)(end - at < PFS_SPAN ? end - at : PFS_SPAN);
	span->first = positions->first + (uint32_t)at;
	span->at = positions->at ? positions->at + at : NULL;
}

/* Return how many tables and computed vectors a batch of the source has. */
size_t pfs_source_tables(const struct pfs_source *source);
size_t pfs_source_computed(const struct pfs_source *source);

/* Makes the batch's tables and vectors, from first_table and first_computed on, the source's at the
 * positions, which are as many as the batch has tuples; PFS_NO_ROW makes no row and NULL. */
PFS_MUST_CHECK int pfs_host_take(struct pfs_host_operators *host, const struct pfs_run *run,
				 struct pfs_tuples *out, size_t first_table, size_t first_computed,
				 const struct pfs_source *source,
				 const struct pfs_positions *positions);

/* Makes a batch of the source at the positions, with room for `more` vectors after the source's. */
PFS_MUST_CHECK int pfs_host_batch(struct pfs_host_operators *host, const struct pfs_run *run,
				  struct pfs_tuples **out, const struct pfs_source *source,
				  const struct pfs_positions *positions, size_t more);

/* Frees nulls where no bit is set; numbers none or all of which are real become integers or
 * reals. */
void pfs_vector_trim(const struct pfs_run *run, struct pfs_vector *vector);

#endif
