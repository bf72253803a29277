/* SPDX-License-Identifier: MIT */
/* Decides whether a change fits onto the disk. What is pending goes through the log into the file,
 * so there must be room for both: in the log in any case, in the file as far as it has no empty
 * pages. The file never gets the log's last room, since without a log nothing could be removed from
 * a full store. */
#include "base/clock.h"
#include "fs/journal/journal_impl.h"

#include "base/checked.h"
#include "fs/content/content.h"
#include "fs/tree/tree_impl.h"

#define FRESH_MS 100

/* A changed row can take a page of its own, and more than its columns: a target, attributes. Single
 * operations leave at most ROWS_APART rows pending. More rows come from statements, whose texts are
 * counted when they are admitted; these rows are written in the order of their pages, and each of
 * them makes the file at most ROW_GROWTH longer. */
#define ROW_BYTES  4096u
#define ROWS_APART	    (2 * PFS_DIRTY_WAIT) /* half of them being written */
#define ROW_GROWTH 512u
/* A row that goes may be the only one that goes of a page of nodes and of one of sources, and
 * leaves its number with what is told of the group and with the content that is to be removed. */
#define GONE_BYTES  (2 * ROW_BYTES)
#define GONE_GROWTH 32u
/* with the heads of pages, indexes and frames */
#define CONTENT_BYTES(n) ((n) + (n) / 8)
#define LAST_RESERVE(total) PFS_MIN(UINT64_C(4) << 20, (total) / 64) /* left for removals */
/* not for growth of the file */
#define LOG_ROOM(total)	    PFS_MIN(UINT64_C(64) << 20, (total) / 16)

#define LOG_SMALL (UINT64_C(1) << 16)

void pfs_space_refresh(struct pfs_tree *tree, bool always)
{
	struct pfs_space *space = &tree->journal->space;
	int64_t now = pfs_clock_ns(CLOCK_MONOTONIC_COARSE) / PFS_NS_PER_MS +
		      1; /* 0: it was not looked at */
	int64_t seen = atomic_load(&space->seen_ms);
	struct pfs_store_space store;

	if (!always && seen && now - seen < FRESH_MS)
		return;
	/* Of the threads that notice, one looks; the others go on with what is known, if anything
	 * is. */
	if (!atomic_compare_exchange_strong(&space->seen_ms, &seen, now) && !always && seen)
		return;
	if (pfs_store_space(tree->store, &store))
		return;
	atomic_store(&space->total, store.total);
	atomic_store(&space->size, store.size);
	atomic_store(&space->free, store.free - PFS_MIN(store.growth, store.free));
	atomic_store(&space->reusable, store.reusable);
	atomic_store(&space->log, store.log);
	atomic_store(&space->keeps_history, store.keeps_history);
}

/* Room for rows is counted twice for the file, since parts of the journal write in another order.
 */
static uint64_t bytes_of_rows(const struct pfs_space *space, uint64_t rows)
{
	uint64_t apart, together;

	rows *= atomic_load(&space->keeps_history) ? 2 : 1;
	apart = PFS_MIN(rows, ROWS_APART);
	together = rows - apart;
	return apart * ROW_BYTES +
	       PFS_MIN(together * ROW_BYTES, 2 * atomic_load(&space->size) + together * ROW_GROWTH);
}

/* Beyond what may need a page each, rows change each page that is there once at most, and pages
 * that are split are half full. */
uint64_t pfs_space_of_rows(const struct pfs_tree *tree, uint64_t *rows, uint64_t bytes)
{
	uint64_t together = *rows - PFS_MIN(*rows, ROWS_APART);

	*rows -= together;
	return bytes +
	       PFS_MIN(together * ROW_BYTES, 2 * atomic_load(&tree->journal->space.size) + bytes);
}

/* Returns how many bytes the rows that are made or go add to the tables. What history has of them
 * is put at the end of its tables. */
static uint64_t bytes_at_ends(const struct pfs_space *space, const struct pfs_journal_need *need)
{
	const bool history = atomic_load(&space->keeps_history);

	return (need->made + (history ? need->made + need->gone : 0)) * ROW_GROWTH +
	       need->gone * GONE_GROWTH;
}

uint64_t pfs_space_needed(const struct pfs_tree *tree, const struct pfs_journal_need *need)
{
	const struct pfs_space *space = &tree->journal->space;
	uint64_t reusable = atomic_load(&space->reusable), total = atomic_load(&space->total);
	uint64_t needed, growth;

	if (need->bytes > (uint64_t)PFS_FILE_SIZE_MAX / 4)
		return UINT64_MAX;
	needed = bytes_of_rows(space, need->rows) +
		 CONTENT_BYTES(need->bytes + bytes_at_ends(space, need));
	growth = needed > reusable ? needed - reusable : 0;
	needed += PFS_MIN(need->gone * GONE_BYTES, CONTENT_BYTES(atomic_load(&space->size)));
	if (need->removal)
		return needed + growth;
	return needed + (growth ? growth + LOG_ROOM(total) : LAST_RESERVE(total));
}

bool pfs_space_fits(const struct pfs_tree *tree, const struct pfs_journal_need *need)
{
	return pfs_space_needed(tree, need) <= atomic_load(&tree->journal->space.free);
}

bool pfs_space_is_held_by_log(const struct pfs_tree *tree)
{
	const struct pfs_space *space = &tree->journal->space;
	uint64_t log = atomic_load(&space->log);

	return log > LOG_SMALL && log > atomic_load(&space->free) / 4;
}

int pfs_journal_space(struct pfs_tree *tree, uint64_t *free_bytes, uint64_t *total_bytes)
{
	int64_t content = atomic_load(&tree->journal->content);
	struct pfs_store_space space;
	uint64_t used;

	PFS_TRY(pfs_store_space(tree->store, &space));
	used = space.growth + LOG_ROOM(space.total) + (content > 0 ? (uint64_t)content : 0);
	space.free += space.log;
	space.free -= PFS_MIN(used, space.free);
	*free_bytes = PFS_MIN(space.free + space.reusable, space.total);
	*total_bytes = space.total;
	return 0;
}
