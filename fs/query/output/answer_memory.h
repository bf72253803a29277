/* SPDX-License-Identifier: MIT */
/* fs/query/output/answer_memory.h - the bytes of an answer that are in memory, in chunks that never
 * move; inside of fs/query.
 *
 * Each answer may have some memory of its own; what all answers have beyond that is below one budget.  A
 * chunk may be lent, so that its bytes are written where they stay.
 *
 * Threads: one at a time changes it, but any number may ask for chunks; any number may read. */
#ifndef PFS_FS_QUERY_OUTPUT_ANSWER_MEMORY_H
#define PFS_FS_QUERY_OUTPUT_ANSWER_MEMORY_H

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
struct pfs_answer_memory {
	uint64_t size; /* of all */
	size_t own; /* bytes that it may have whatever others have */
	bool may_grow; /* beyond that, by what all have together */
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

void pfs_answer_memory_init(struct pfs_answer_memory *memory, size_t own);
void pfs_answer_memory_finish(struct pfs_answer_memory *memory);
void pfs_answer_memory_clear(struct pfs_answer_memory *memory);

/* Copies some of the bytes behind the others; returns how many; 0: there is no room. */
size_t pfs_answer_memory_copy(struct pfs_answer_memory *memory, const char *bytes, size_t size);

/* Returns a chunk to be written to; NULL: there is none to be had. */
char *pfs_answer_memory_lend(struct pfs_answer_memory *memory);
/* Says that bytes of a chunk that was lent come next, where they are. -ENOMEM. */
PFS_MUST_CHECK int pfs_answer_memory_add(struct pfs_answer_memory *memory, const char *bytes, size_t size);

/* As pfs_answer_view. */
const char *pfs_answer_memory_view(const struct pfs_answer_memory *memory, size_t *size, uint64_t offset);

#endif
