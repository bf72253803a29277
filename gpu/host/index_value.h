/* SPDX-License-Identifier: MIT */
/* gpu/host/index_value.h - the values in whose order a column index is. */
#ifndef PFS_GPU_HOST_INDEX_VALUE_H
#define PFS_GPU_HOST_INDEX_VALUE_H

#include "gpu/host/number.h"
#include "gpu/host/text.h"
#include "gpu/relation.h"

struct pfs_index_value {
	struct pfs_number number;
	const uint8_t *text; /* NULL: a number */
	size_t len;
};

/* Gets the value of place i. */
void pfs_index_value(struct pfs_index_value *out, const struct pfs_column_index *index, uint64_t i);
/* Compares two values; numbers come before texts. */
int pfs_index_compare(enum pfs_collation collation, const struct pfs_index_value *a,
		      const struct pfs_index_value *b);
/* As pfs_column_index_cut, of fragments in the host's memory. */
void pfs_index_cut(uint64_t *left_at, uint64_t *right_at, size_t k,
		   const struct pfs_index_fragment *left, const struct pfs_index_fragment *right);

#endif
