/* SPDX-License-Identifier: MIT */
/* gpu/rows.h - a set of rows of one table: what selections pass on. It is a range, bits or an
 * ascending list, whichever is smaller, and stays where it was computed until its rows are asked
 * for.
 *
 * Threads: a set is one caller's.
 * Errors of all: -ENOMEM; what run's functions return; -EIO: a device was lost with the set on it,
 * and the statement is repeated on the host. */
#ifndef PFS_GPU_ROWS_H
#define PFS_GPU_ROWS_H

#include "gpu/run.h"
#include "gpu/table.h"

enum pfs_rows_form { PFS_ROWS_RANGE, PFS_ROWS_BITS, PFS_ROWS_LIST, PFS_ROWS_ON_DEVICE };

struct pfs_operator_backend;

struct pfs_rows {
	enum pfs_rows_form form;
	uint32_t n_rows;   /* of the table: all rows are below it */
	/* RANGE: from <= row < to.  BITS: no bit is set outside of these; from is a multiple of
	 * 64. */
	uint32_t from, to;
	uint64_t *bits;	   /* BITS: n_rows / 64 words, rounded up; bits past n_rows are 0 */
	uint32_t *list;	   /* LIST: ascending, none twice */
	uint32_t n_list;
	size_t allocated; /* bytes of bits or list, charged */
	/* ON_DEVICE: the back end that has the set, and the back end's own data. */
	struct pfs_operator_backend *backend;
	void *device;
};

/* Make a set, which the caller frees; *out is NULL on failure. Bits and list are copied. The bits
 * are those of the rows from..to; `from` is a multiple of 64. The list ascends, has no row twice,
 * and only rows below n_rows. */
PFS_MUST_CHECK int pfs_rows_of_range(const struct pfs_run *run, struct pfs_rows **out,
				     uint32_t n_rows, uint32_t from, uint32_t to);
PFS_MUST_CHECK int pfs_rows_of_bits(const struct pfs_run *run, struct pfs_rows **out,
				    uint32_t n_rows, const uint64_t *bits, uint32_t from,
				    uint32_t to);
PFS_MUST_CHECK int pfs_rows_of_list(const struct pfs_run *run, struct pfs_rows **out,
				    uint32_t n_rows, const uint32_t *list, uint32_t n);
void pfs_rows_free(const struct pfs_run *run, struct pfs_rows *rows); /* NULL is allowed */

PFS_MUST_CHECK int pfs_rows_count(const struct pfs_run *run, uint64_t *count,
				  const struct pfs_rows *rows);

/* If the set is on a device, makes it a range, bits or a list in the host's memory. */
PFS_MUST_CHECK int pfs_rows_here(const struct pfs_run *run, struct pfs_rows *rows);

/* All functions from here on need the set in the host's memory. */

bool pfs_rows_has(const struct pfs_rows *rows, uint32_t row);

/* Gets words first.. of the set's bits; words past n_rows are 0. */
void pfs_rows_words(const struct pfs_rows *rows, uint64_t *words, size_t first, size_t n);

/* Gets the rows from *next on, ascending, at most `capacity` of them. Returns how many; 0 at the
 * end. *next is 0 at first, and afterwards where to go on. */
size_t pfs_rows_next(const struct pfs_rows *rows, uint64_t *next, uint32_t *out, size_t capacity);

#endif
