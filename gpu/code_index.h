/* SPDX-License-Identifier: MIT */
/* gpu/code_index.h - nodes by their codes, for those who ask for many between two changes: a hash
 * table over the codes' low 64 bits.  Whoever asks compares the whole code. */
#ifndef PFS_GPU_CODE_INDEX_H
#define PFS_GPU_CODE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pfs_columns;

struct pfs_code_index {
	struct pfs_code_entry *entries; /* NULL: there is none */
	unsigned bits;			/* of a place */
	uint64_t epoch;			/* of the tree that it belongs to */
	unsigned asked;			/* in that epoch, without it */
};

/* Returns true if there is a table for this tree. It is made when it has been asked for often
 * enough, if there is memory and the tree is not very large; false: the caller has to search. */
bool pfs_code_index_ready(struct pfs_code_index *index, const struct pfs_columns *c,
			  uint64_t epoch);
void pfs_code_index_drop(struct pfs_code_index *index);

/* Returns the next slot that may have a code with these low bits, the root's 2 left out;
 * PFS_NO_SLOT: there is no further one. *at is 0 at first. */
uint32_t pfs_code_index_next(const struct pfs_code_index *index, uint64_t low, size_t *at);

#endif
