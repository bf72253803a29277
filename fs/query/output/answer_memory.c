/* SPDX-License-Identifier: MIT */
#include "fs/query/output/answer_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "fs/query/output/answer.h"

#define CHUNK	    PFS_ANSWER_CHUNK /* a huge page: one fault in place of 512 */
#define BUDGET_PART 32 /* that much of the machine's memory, for all answers together, */
#define BUDGET_MAX  ((uint64_t)512 << 20) /* at most */

/* ---- the budget ---- */

static _Atomic uint64_t budget_taken;
static _Atomic uint64_t budget; /* 0: not known yet */

static uint64_t budget_of_machine(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

	if (pages <= 0 || size <= 0)
		return 1;
	return PFS_MIN((uint64_t)pages * (uint64_t)size / BUDGET_PART, BUDGET_MAX);
}

void pfs_answers_set_budget(uint64_t bytes)
{
	atomic_store(&budget, bytes);
}

uint64_t pfs_answers_taken(void)
{
	return atomic_load(&budget_taken);
}

static bool take(uint64_t bytes)
{
	uint64_t all = atomic_load_explicit(&budget, memory_order_relaxed);

	if (!all) {
		all = budget_of_machine();
		atomic_store(&budget, all);
	}
	if (atomic_fetch_add(&budget_taken, bytes) + bytes <= all)
		return true;
	(void)atomic_fetch_sub(&budget_taken, bytes);
	return false;
}

/* ---- chunks ---- */

/* Aligned to its size.  NULL: no memory. */
static char *map_chunk(void)
{
	char *pages = mmap(NULL, 2 * CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	size_t before;

	if (pages == MAP_FAILED)
		return NULL;
	before = (CHUNK - (uintptr_t)pages % CHUNK) % CHUNK;
	if (before)
		(void)munmap(pages, before);
	(void)munmap(pages + before + CHUNK, CHUNK - before);
	(void)madvise(pages + before, CHUNK, MADV_HUGEPAGE); /* a kernel without them has none */
	return pages + before;
}

/* What is left of the memory for itself is whole chunks. */
static size_t head_max(const struct pfs_answer_memory *memory)
{
	return memory->own < 2 * CHUNK ? memory->own : CHUNK + memory->own % CHUNK;
}

char *pfs_answer_memory_lend(struct pfs_answer_memory *memory)
{
	bool is_its_own;
	char *chunk;

	PFS_LOCKED(&memory->lock);
	is_its_own = head_max(memory) + (memory->n_chunks + 1) * CHUNK <= memory->own;
	if (pfs_grow(&memory->chunks, &memory->chunks_capacity, memory->n_chunks + 1,
		     sizeof(*memory->chunks)) ||
	    (!is_its_own && (!memory->may_grow || !take(CHUNK))))
		return NULL;
	chunk = map_chunk();
	if (chunk)
		memory->chunks[memory->n_chunks++] = chunk;
	if (!chunk && !is_its_own)
		(void)atomic_fetch_sub(&budget_taken, CHUNK);
	else if (!is_its_own)
		memory->taken += CHUNK;
	return chunk;
}

/* ---- bytes ---- */

void pfs_answer_memory_init(struct pfs_answer_memory *memory, size_t own)
{
	*memory = (struct pfs_answer_memory){.own = own};
	(void)pthread_mutex_init(&memory->lock, NULL);
}

void pfs_answer_memory_clear(struct pfs_answer_memory *memory)
{
	for (size_t i = 0; i < memory->n_chunks; i++)
		(void)munmap(memory->chunks[i], CHUNK);
	(void)atomic_fetch_sub(&budget_taken, memory->taken);
	memory->taken = 0;
	memory->n_chunks = memory->n_extents = memory->in_head = 0;
	memory->size = 0;
	memory->at = memory->end = NULL;
}

void pfs_answer_memory_finish(struct pfs_answer_memory *memory)
{
	pfs_answer_memory_clear(memory);
	free(memory->head);
	free(memory->extents);
	free(memory->chunks);
	(void)pthread_mutex_destroy(&memory->lock);
}

/* Returns true if the bytes follow the last extent. */
static bool is_next(const struct pfs_answer_memory *memory, const char *bytes)
{
	size_t n = memory->n_extents;

	return n && memory->extents[n - 1].bytes + memory->extents[n - 1].size == bytes;
}

int pfs_answer_memory_add(struct pfs_answer_memory *memory, const char *bytes, size_t size)
{
	if (is_next(memory, bytes)) {
		memory->extents[memory->n_extents - 1].size += size;
	} else {
		PFS_TRY(pfs_grow(&memory->extents, &memory->extents_capacity, memory->n_extents + 1,
				 sizeof(*memory->extents)));
		memory->extents[memory->n_extents++] =
			(struct pfs_extent){bytes, size, memory->size};
	}
	memory->size += size;
	return 0;
}

size_t pfs_answer_memory_copy(struct pfs_answer_memory *memory, const char *bytes, size_t size)
{
	size_t n = PFS_MIN(size, head_max(memory) - memory->in_head);

	if (n && !memory->n_extents &&
	    !pfs_grow(&memory->head, &memory->head_capacity, memory->in_head + n, 1)) {
		memcpy(memory->head + memory->in_head, bytes, n);
		memory->in_head += n;
		memory->size += n;
		return n;
	}
	if (memory->at == memory->end) {
		memory->at = pfs_answer_memory_lend(memory);
		memory->end = memory->at ? memory->at + CHUNK : NULL;
	}
	n = PFS_MIN(size, (size_t)(memory->end - memory->at));
	if (!n || pfs_answer_memory_add(memory, memory->at, n))
		return 0;
	memcpy(memory->at, bytes, n);
	memory->at += n;
	return n;
}

/* The extent with that offset, which is behind the head. */
static const struct pfs_extent *find(const struct pfs_answer_memory *memory, uint64_t offset)
{
	return &memory->extents[PFS_SEARCH(i, 1, memory->n_extents,
					   memory->extents[i].from <= offset) -
				1];
}

const char *pfs_answer_memory_view(const struct pfs_answer_memory *memory, size_t *size,
				   uint64_t offset)
{
	const struct pfs_extent *extent;

	if (offset < memory->in_head) {
		*size = PFS_MIN(*size, memory->in_head - (size_t)offset);
		return memory->head + offset;
	}
	if (offset >= memory->size)
		return NULL;
	extent = find(memory, offset);
	offset -= extent->from;
	*size = PFS_MIN(*size, extent->size - (size_t)offset);
	return extent->bytes + offset;
}
