/* SPDX-License-Identifier: MIT */
/* fs/query/output/kept.h - bytes kept in memory for an answer, in chunks that never move; inside of fs/query.
 *
 * What all of them have beyond what each may have for itself is below a budget.  A chunk may be lent,
 * to be written to where it is.
 *
 * Threads: one at a time, but for lend; those that only look, any number. */
#ifndef PFS_FS_QUERY_OUTPUT_KEPT_H
#define PFS_FS_QUERY_OUTPUT_KEPT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_extent {
	const char *bytes;
	size_t size;
	uint64_t from; /* offset of the first */
};

/* First come the bytes of head, which grows while it is alone. */
struct pfs_kept {
	uint64_t size; /* of all */
	size_t memory; /* that it may have for itself */
	bool may_grow; /* beyond that, by the budget */
	char *head;
	size_t in_head, head_capacity;
	struct pfs_extent *extents; /* behind it, in their order */
	size_t n_extents, extents_capacity;
	char *at, *end; /* of the chunk that is copied to */
	pthread_mutex_t lock;
	/* protected by lock */
	char **chunks;
	size_t n_chunks, chunks_capacity;
	uint64_t taken; /* of the budget */
};

void pfs_kept_init(struct pfs_kept *kept, size_t memory);
void pfs_kept_finish(struct pfs_kept *kept);
void pfs_kept_clear(struct pfs_kept *kept);

/* Copies some of the bytes behind the others; returns how many, 0: there is no room. */
size_t pfs_kept_copy(struct pfs_kept *kept, const char *bytes, size_t size);

/* A chunk to be written to.  NULL: there is none to be had. */
char *pfs_kept_lend(struct pfs_kept *kept);
/* Bytes of one that was lent come next, as they are there.  -ENOMEM. */
PFS_MUST_CHECK int pfs_kept_add(struct pfs_kept *kept, const char *bytes, size_t size);

/* As pfs_answer_view. */
const char *pfs_kept_view(const struct pfs_kept *kept, size_t *size, uint64_t offset);

#endif
