/* SPDX-License-Identifier: MIT */
#include "fs/query/output/kept.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
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
static size_t head_max(const struct pfs_kept *kept)
{
	return kept->memory < 2 * CHUNK ? kept->memory : CHUNK + kept->memory % CHUNK;
}

char *pfs_kept_lend(struct pfs_kept *kept)
{
	bool is_its_own;
	char *chunk;

	PFS_LOCKED(&kept->lock);
	is_its_own = head_max(kept) + (kept->n_chunks + 1) * CHUNK <= kept->memory;
	if (pfs_grow(&kept->chunks, &kept->chunks_capacity, kept->n_chunks + 1,
		     sizeof(*kept->chunks)) ||
	    (!is_its_own && (!kept->may_grow || !take(CHUNK))))
		return NULL;
	chunk = map_chunk();
	if (chunk)
		kept->chunks[kept->n_chunks++] = chunk;
	if (!chunk && !is_its_own)
		(void)atomic_fetch_sub(&budget_taken, CHUNK);
	else if (!is_its_own)
		kept->taken += CHUNK;
	return chunk;
}

/* ---- bytes ---- */

void pfs_kept_init(struct pfs_kept *kept, size_t memory)
{
	*kept = (struct pfs_kept){.memory = memory};
	(void)pthread_mutex_init(&kept->lock, NULL);
}

void pfs_kept_clear(struct pfs_kept *kept)
{
	for (size_t i = 0; i < kept->n_chunks; i++)
		(void)munmap(kept->chunks[i], CHUNK);
	(void)atomic_fetch_sub(&budget_taken, kept->taken);
	kept->taken = 0;
	kept->n_chunks = kept->n_extents = kept->in_head = 0;
	kept->size = 0;
	kept->at = kept->end = NULL;
}

void pfs_kept_finish(struct pfs_kept *kept)
{
	pfs_kept_clear(kept);
	free(kept->head);
	free(kept->extents);
	free(kept->chunks);
	(void)pthread_mutex_destroy(&kept->lock);
}

/* Whether they stand behind the last extent. */
static bool is_next(const struct pfs_kept *kept, const char *bytes)
{
	size_t n = kept->n_extents;

	return n && kept->extents[n - 1].bytes + kept->extents[n - 1].size == bytes;
}

int pfs_kept_add(struct pfs_kept *kept, const char *bytes, size_t size)
{
	if (is_next(kept, bytes)) {
		kept->extents[kept->n_extents - 1].size += size;
	} else {
		PFS_TRY(pfs_grow(&kept->extents, &kept->extents_capacity, kept->n_extents + 1,
				 sizeof(*kept->extents)));
		kept->extents[kept->n_extents++] = (struct pfs_extent){bytes, size, kept->size};
	}
	kept->size += size;
	return 0;
}

size_t pfs_kept_copy(struct pfs_kept *kept, const char *bytes, size_t size)
{
	size_t n = PFS_MIN(size, head_max(kept) - kept->in_head);

	if (n && !kept->n_extents &&
	    !pfs_grow(&kept->head, &kept->head_capacity, kept->in_head + n, 1)) {
		memcpy(kept->head + kept->in_head, bytes, n);
		kept->in_head += n;
		kept->size += n;
		return n;
	}
	if (kept->at == kept->end) {
		kept->at = pfs_kept_lend(kept);
		kept->end = kept->at ? kept->at + CHUNK : NULL;
	}
	n = PFS_MIN(size, (size_t)(kept->end - kept->at));
	if (!n || pfs_kept_add(kept, kept->at, n))
		return 0;
	memcpy(kept->at, bytes, n);
	kept->at += n;
	return n;
}

/* The extent with that offset, which is behind the head. */
static const struct pfs_extent *find(const struct pfs_kept *kept, uint64_t offset)
{
	size_t low = 0, high = kept->n_extents;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (kept->extents[middle].from <= offset)
			low = middle;
		else
			high = middle;
	}
	return &kept->extents[low];
}

const char *pfs_kept_view(const struct pfs_kept *kept, size_t *size, uint64_t offset)
{
	const struct pfs_extent *extent;

	if (offset < kept->in_head) {
		*size = PFS_MIN(*size, kept->in_head - (size_t)offset);
		return kept->head + offset;
	}
	if (offset >= kept->size)
		return NULL;
	extent = find(kept, offset);
	offset -= extent->from;
	*size = PFS_MIN(*size, extent->size - (size_t)offset);
	return extent->bytes + offset;
}
