/* SPDX-License-Identifier: MIT */
/* fs/image/watch.h - how a module that derives something from the image hears of a change at once.
 * (One that may hear of it later follows the feed: feed.h.)
 *
 * A watcher is registered once, when its module is created. The image's setters (image.h) are the
 * only way to change a column, and tell the watchers; so a new operation cannot forget one. Changes
 * of a slot without a place are not told. Attaching it tells PFS_COLUMNS_PLACE: read all of it
 * anew. Freeing it is told afterwards, as PFS_COLUMN_PRIME alone.
 *
 * Not told are references, which change under the read lock; depths, which are found as they are
 * asked for; the journal's marks in the state; and loading, which ends before anybody watches.
 *
 * Locks: tree->lock for writing, but for pfs_watch, which is called before the tree is shared. */
#ifndef PFS_FS_IMAGE_WATCH_H
#define PFS_FS_IMAGE_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "fs/tree/tree.h"
#include "meta/format.h"

/* COLUMN(ID, name in struct pfs_image, type, ...): first the columns that an image file has, too,
 * then those that the image finds out. */
#define PFS_STORED_COLUMNS(COLUMN)                                                                 \
	COLUMN(PRIME, prime, uint64_t) /* as a bit, alone: the slot has become free, all is 0 */   \
	COLUMN(PARENT, parent, uint32_t)                                                           \
	COLUMN(NAME, name, uint32_t)                                                               \
	COLUMN(MODE, mode, uint16_t)                                                               \
	COLUMN(FLAGS, flags, uint8_t) /* and the extended attributes */                            \
	PFS_NODE_NUMBERS(COLUMN)                                                                   \
	COLUMN(ATIME, atime, int64_t)                                                              \
	COLUMN(MTIME, mtime, int64_t)                                                              \
	COLUMN(CTIME, ctime, int64_t)
#define PFS_WATCHED_COLUMNS(COLUMN)                                                                \
	PFS_STORED_COLUMNS(COLUMN)                                                                 \
	COLUMN(LINKS, links, uint32_t)

enum pfs_column_number {
#define PFS_COLUMN(id, ...) PFS_COLUMN_NUMBER_##id,
	PFS_WATCHED_COLUMNS(PFS_COLUMN)
	PFS_COLUMN(LIVE)
#undef PFS_COLUMN
	PFS_COLUMN_COUNT
};

/* The columns, and what else there is to be told, as bits. */
enum pfs_columns_bits {
#define PFS_COLUMN(id, ...) PFS_COLUMN_##id = 1 << PFS_COLUMN_NUMBER_##id,
	PFS_WATCHED_COLUMNS(PFS_COLUMN)
	PFS_COLUMN(LIVE) /* whether it has a name: all else is new, or of no meaning */
#undef PFS_COLUMN
};
#define PFS_COLUMNS_PLACE (PFS_COLUMN_PARENT | PFS_COLUMN_NAME | PFS_COLUMN_LIVE)
#define PFS_COLUMNS_ALL	  ((1u << PFS_COLUMN_COUNT) - 1)

/* The functions that the setters call about a change. None of them can fail; a watcher that lacks
 * memory forgets what it knows. */
struct pfs_watcher {
	const char *name;
	unsigned columns; /* the columns that it wants to hear of */
	/* Called before the first byte changes, and after the last; NULL: not wanted. While a
	 * directory gets or loses its place, the links of the directory above change; no other
	 * changes lie within each other. */
	void (*changing)(struct pfs_tree *tree, uint32_t slot, unsigned columns);
	void (*changed)(struct pfs_tree *tree, uint32_t slot, unsigned columns);
	/* Returns false if what is derived differs from what a pass over the image gives; NULL:
	 * there is nothing to compare. For tests and VERIFY builds; any lock. */
	bool (*check)(struct pfs_tree *tree);
};

/* The watchers of an image, and, side by side because each change goes through them, the functions
 * to call with the columns that each wants to hear of. Most changes are of other columns than
 * places; so watchers of nothing but places come last, and such changes end before them. */
#define PFS_WATCHERS_MAX 16
struct pfs_watchers {
	const struct pfs_watcher *all[PFS_WATCHERS_MAX];
	unsigned n;
	struct pfs_watcher_calls {
		struct pfs_watcher_call {
			void (*call)(struct pfs_tree *tree, uint32_t slot, unsigned columns);
			unsigned columns;
		} list[PFS_WATCHERS_MAX];
		unsigned n, n_others; /* all; those before the watchers of places alone */
	} changing, changed;
};

/* Registers a watcher, whose struct stays as it is until the tree is closed. */
void pfs_watch(struct pfs_tree *tree, const struct pfs_watcher *watcher);

/* ---- for the image's setters alone ---- */

void pfs_watch_changing(struct pfs_tree *tree, uint32_t slot, unsigned columns);
/* Also raises the epoch, and puts the change into the feed (feed.h), unless the slot became free.
 */
void pfs_watch_changed(struct pfs_tree *tree, uint32_t slot, unsigned columns);

/* ---- for tests and VERIFY builds ---- */

/* Returns the name of the first watcher that is wrong; NULL: none is. tree->lock is held. */
const char *pfs_watch_check(struct pfs_tree *tree);
/* As pfs_watch_check, after a group was cut: each time in a small image, in others after each
 * hundredth. */
bool pfs_watch_check_group(struct pfs_tree *tree);

#endif
