/* SPDX-License-Identifier: MIT */
/* fs/query/parse/arena.h - small pieces of memory that are freed together. Threads: one at a
 * time. */
#ifndef PFS_FS_QUERY_PARSE_ARENA_H
#define PFS_FS_QUERY_PARSE_ARENA_H

#include <stddef.h>

struct pfs_arena_block;

struct pfs_arena {
	struct pfs_arena_block *blocks;
	size_t used, capacity; /* bytes, of the first block */
	size_t total, limit;   /* bytes, of all; limit: the caller's */
};

/* Returns `size` zeroed bytes, aligned for anything; NULL: there is no memory, or it would be more
 * than the limit. */
void *pfs_arena_get(struct pfs_arena *arena, size_t size);
/* Returns a copy of len bytes, with a 0 behind them; NULL as pfs_arena_get. */
char *pfs_arena_text(struct pfs_arena *arena, const char *text, size_t len);
void pfs_arena_finish(struct pfs_arena *arena);

#endif
