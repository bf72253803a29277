/* SPDX-License-Identifier: MIT */
#include "fs/tree/journal.h"

#include "base/checked.h"

#define FRESH_MS 100

/* A changed row can mean a page of its own in the log and new pages in the file; content goes
 * through the log into the file, a little more each time than its bytes. */
#define ROW_COST	 8192u
#define CONTENT_COST(bytes) ((bytes) * 2 + (bytes) / 4)

/* What only removals may use. */
#define LAST_RESERVE(total) PFS_MIN(UINT64_C(4) << 20, (total) / 64)

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

void pfs_space_refresh(struct pfs_tree *tree, bool always)
{
	struct pfs_space *space = &tree->journal->space;
	int64_t now = now_ms(), seen = atomic_load(&space->seen_ms);
	uint64_t free_bytes, total_bytes;

	if (!always && seen && now - seen < FRESH_MS)
		return;
	/* one of those who notice looks, the others go on with what is known, if anything is */
	if (!atomic_compare_exchange_strong(&space->seen_ms, &seen, now) && !always && seen)
		return;
	if (pfs_store_space(tree->store, &free_bytes, &total_bytes))
		return;
	atomic_store(&space->total, total_bytes);
	atomic_store(&space->free, free_bytes);
}

static uint64_t cost(uint64_t rows, uint64_t bytes)
{
	return rows * ROW_COST + CONTENT_COST(bytes);
}

bool pfs_space_fits(const struct pfs_tree *tree, uint64_t rows, uint64_t bytes, bool removal)
{
	const struct pfs_space *space = &tree->journal->space;
	uint64_t needed;

	if (bytes > (uint64_t)PFS_FILE_SIZE_MAX / 4)
		return false;
	needed = cost(rows, bytes);
	if (!removal)
		needed += LAST_RESERVE(atomic_load(&space->total));
	return needed <= atomic_load(&space->free);
}

int pfs_journal_space(struct pfs_tree *tree, uint64_t *free_bytes, uint64_t *total_bytes)
{
	const struct pfs_journal *journal = tree->journal;
	int64_t content = atomic_load(&journal->content);
	uint64_t used = cost(0, content > 0 ? (uint64_t)content : 0);

	PFS_TRY(pfs_store_space(tree->store, free_bytes, total_bytes));
	*free_bytes -= PFS_MIN(used, *free_bytes);
	return 0;
}
