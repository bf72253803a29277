/* SPDX-License-Identifier: MIT */
#include "fs/query/parse/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 8192u

struct pfs_arena_block {
	struct pfs_arena_block *next;
	alignas(max_align_t) char bytes[];
};

static int add_block(struct pfs_arena *arena, size_t size)
{
	size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
	struct pfs_arena_block *block;

	if (capacity > arena->limit - arena->total)
		return -1;
	block = calloc(1, sizeof(*block) + capacity);
	if (!block)
		return -1;
	block->next = arena->blocks;
	arena->blocks = block;
	arena->used = 0;
	arena->capacity = capacity;
	arena->total += capacity;
	return 0;
}

void *pfs_arena_get(struct pfs_arena *arena, size_t size)
{
	void *piece;

	if (size > arena->limit)
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size > arena->capacity - arena->used && add_block(arena, size) != 0)
		return NULL;
	piece = arena->blocks->bytes + arena->used;
	arena->used += size;
	return piece;
}

char *pfs_arena_text(struct pfs_arena *arena, const char *text, size_t len)
{
	char *copy = pfs_arena_get(arena, len + 1);

	if (copy && len)
		memcpy(copy, text, len);
	return copy;
}

void pfs_arena_finish(struct pfs_arena *arena)
{
	while (arena->blocks) {
		struct pfs_arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
	*arena = (struct pfs_arena){.limit = arena->limit};
}
