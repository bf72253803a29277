/* SPDX-License-Identifier: MIT */
/* fs/query/output/answer_memory.h - the bytes of an answer that are in memory, in chunks that never
 * move; inside of fs/query.
 *
 * Each answer may have some memory of its own. What all answers together have beyond that is
 * limited by one budget. A chunk may be lent, so that its bytes are written where they stay.
 *
 * Threads: one at a time changes an answer's memory, but any number may ask for chunks or read. */
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
	uint64_t from; /* offset in the answer of the first byte */
};

/* The answer's bytes are those of `head` and then those of the extents. */
struct pfs_answer_memory {
	uint64_t size; /* bytes in all */
	size_t own; /* bytes that it may have, however much other answers have */
	bool may_grow; /* it may have more than `own`, within the budget of all answers */
	char *head; /* grows, and may move, as long as there are no extents */
	size_t in_head, head_capacity;
	struct pfs_extent *extents; /* in their order */
	size_t n_extents, extents_capacity;
	char *at, *end; /* the free rest of the chunk that bytes are copied to */
	pthread_mutex_t lock;
	/* protected by lock */
	char **chunks;
	size_t n_chunks, chunks_capacity;
	uint64_t taken; /* bytes that it has of the budget */
};

void pfs_answer_memory_init(struct pfs_answer_memory *memory, size_t own);
void pfs_answer_memory_finish(struct pfs_answer_memory *memory);
void pfs_answer_memory_clear(struct pfs_answer_memory *memory);

/* Appends some of the bytes; returns how many; 0: there is no room. */
size_t pfs_answer_memory_copy(struct pfs_answer_memory *memory, const char *bytes, size_t size);

/* Returns a chunk to be filled (pfs_answer_lend); NULL: there is no memory for one. */
char *pfs_answer_memory_lend(struct pfs_answer_memory *memory);
/* Appends bytes that are in a lent chunk, without moving them. -ENOMEM. */
PFS_MUST_CHECK int pfs_answer_memory_add(struct pfs_answer_memory *memory, const char *bytes,
					 size_t size);

/* As pfs_answer_view. */
const char *pfs_answer_memory_view(const struct pfs_answer_memory *memory, size_t *size,
				   uint64_t offset);

#endif
