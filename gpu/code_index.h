/* SPDX-License-Identifier: MIT */
/* gpu/code_index.h - finds nodes by their codes, if many are looked up between two changes of the
 * tree: a hash table over the codes' low 64 bits. The caller compares the whole code. */
#ifndef PFS_GPU_CODE_INDEX_H
#define PFS_GPU_CODE_INDEX_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>


struct pfs_columns;

struct pfs_code_index {
	uint64_t ready; /* the epoch of which there is a table; atomic, set when that is made */
	pthread_mutex_t making; /* held where the rest changes */
	struct pfs_code_entry *entries; /* NULL: there is none */
	unsigned bits;			/* the table has 2^bits places */
	uint64_t epoch;			/* the tree's epoch that the rest belongs to */
	unsigned asked;			/* how often it was asked for in this epoch */
};

void pfs_code_index_init(struct pfs_code_index *index);
void pfs_code_index_finish(struct pfs_code_index *index);

/* Returns true if there is a table for this epoch (1 or more), which stays as long as the epoch
 * does. It is made when it has been asked for often enough, if there is memory and the tree is not
 * very large. false: the caller has to search without it. Any number of callers, as long as the
 * columns do not change; nobody waits until another has made the table. */
bool pfs_code_index_ready(struct pfs_code_index *index, const struct pfs_columns *c,
			  uint64_t epoch);

/* Returns the next slot whose code may have these low bits, the root's factor 2 left out;
 * PFS_NO_SLOT: there is no further one. *at is 0 before the first call. */
uint32_t pfs_code_index_next(const struct pfs_code_index *index, uint64_t low, size_t *at);

#endif
