/* SPDX-License-Identifier: MIT */
/* fs/journal/journal_impl.h - inside of the journal: journal.c (what operations call), committer.c
 * (the thread), cut.c (takes over what one commit holds), group.c (writes it), part.c (what other
 * modules add to it), space.c (will it fit?). */
#ifndef PFS_FS_JOURNAL_JOURNAL_IMPL_H
#define PFS_FS_JOURNAL_JOURNAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/journal/journal.h"
#include "fs/image/watch.h"
#include "fs/journal/part.h"
#include "meta/store.h"

#define PFS_DIRTY_COMMIT 16384u /* dirty rows from which on a commit begins at once */
#define PFS_DIRTY_WAIT   65536u /* dirty rows from which on changes wait for a commit */
#define PFS_DIRTY_LIST   (2 * PFS_DIRTY_WAIT) /* listed rows; with more the cut scans all slots */

/* ---- group.c: the rows of one commit ---- */

#define PFS_SMALL_CONTENT (INT64_C(4) << 20) /* bytes that are removed together with the record */

enum pfs_row_action {
	PFS_ROW_PUT = 1,
	PFS_ROW_REMOVE = 2,	 /* remove the record */
	PFS_ROW_REMOVE_CHUNKS = 4, /* remove the content, of which there is little */
	PFS_ROW_ORPHAN = 8,	 /* note that there may be content without a node */
};

struct pfs_group_row {
	struct pfs_node_record record; /* prime alone unless PUT; points into the group's bytes */
	unsigned action;
};

/* The nodes whose content is still to be removed, some of it in each group. */
struct pfs_reap {
	uint64_t *primes;
	size_t count, capacity;
};

struct pfs_group {
	struct pfs_group_row *rows;
	size_t n_rows, row_capacity;
	char *bytes; /* names and targets */
	size_t n_bytes, byte_capacity;
	size_t n_reaped; /* orphans at the end of the reap list that this group finished */
	int64_t content; /* journal->content when the group was cut */
	uint64_t former; /* journal->former when the group was cut */
	uint64_t forget_from_ms; /* forgetting history failed, and is not tried before this time */
	struct pfs_reap reap;
};

/* Writes the group in one transaction of the store, which is durable on return; may be repeated
 * after a failure. fetch: the transaction takes new primes, too. */
PFS_MUST_CHECK int pfs_group_write(struct pfs_tree *tree, struct pfs_group *group, bool fetch);

/* pfs_group_forget removes some of the history that is too old, in a transaction of its own between
 * two groups; after a failure it does nothing for a minute. pfs_group_forgets returns true if it
 * has something to do. */
void pfs_group_forget(struct pfs_tree *tree, struct pfs_group *group);
bool pfs_group_forgets(const struct pfs_tree *tree, const struct pfs_group *group);

/* Empties the group, which is committed. */
void pfs_group_done(struct pfs_tree *tree, struct pfs_group *group);

/* Puts the orphans that a crash left into the group's list. */
PFS_MUST_CHECK int pfs_group_find_orphans(struct pfs_tree *tree, struct pfs_group *group);
void pfs_group_release(struct pfs_group *group);

/* ---- cut.c: the rows of one commit, as they are at one moment, the cut ---- */

/* The rows that the group being cut still lacks; protected by tree->lock. */
struct pfs_cut {
	bool goes_on;	 /* some rows are still to be copied */
	uint8_t mark;	 /* PFS_SLOT_DIRTY_1 or _2: slots with it are still to be copied */
	uint32_t *dirty; /* PFS_DIRTY_LIST slots that had the mark; not the list journal->dirty */
	bool is_listed;	 /* `dirty` has all slots with the mark; else all slots are looked at */
	uint32_t position, end; /* of the list or the slots: where copying stands, and ends */
	uint64_t *unlinked; /* a bit a slot: its node lost its name after the cut */
	uint32_t slots;	    /* how many bits `unlinked` has */
};

/* Copies the dirty rows into the group as they are at one moment, and frees the slots of nodes that
 * are gone. No lock is held. tree->lock is taken for short times only, however many rows there are.
 * -ENOMEM leaves everything as it was. */
PFS_MUST_CHECK int pfs_group_cut(struct pfs_tree *tree, struct pfs_group *group);
/* The steps of pfs_group_cut, also for tests. pfs_cut_begin fixes the moment; pfs_cut_some copies
 * some rows, and is called again as long as it returns true. */
PFS_MUST_CHECK int pfs_cut_begin(struct pfs_tree *tree, struct pfs_group *group);
bool pfs_cut_some(struct pfs_tree *tree, struct pfs_group *group);

/* To be called before a slot changes, and before its node is marked as unlinked: copies its row, if
 * the group being cut lacks it. pfs_cut_watcher calls pfs_cut_before for changes by setters.
 * tree->lock is held for writing. */
void pfs_cut_before(struct pfs_tree *tree, uint32_t slot);
void pfs_cut_unlinking(struct pfs_tree *tree, uint32_t slot);
extern const struct pfs_watcher pfs_cut_watcher;

/* Returns true if the node with that number had a name at the moment of the cut. tree->lock is
 * held. */
bool pfs_cut_has_name(const struct pfs_tree *tree, uint64_t prime);

/* ---- space.c: room on the store's filesystem ---- */

struct pfs_space {
	/* Bytes, as they were at seen_ms. free: the free bytes of the filesystem, counted as if
	 * SQLite's log had been played back into the store's file. */
	_Atomic uint64_t free, total, size, reusable, log;
	_Atomic bool keeps_history; /* each row that changes leaves a former row in the store */
	_Atomic int64_t seen_ms;
};

/* Reads the figures anew if they are older than 100 ms, or if always is set. */
void pfs_space_refresh(struct pfs_tree *tree, bool always);

/* Returns true if room is scarce and the store's log takes some of it, so that the log should be
 * emptied. */
bool pfs_space_is_held_by_log(const struct pfs_tree *tree);

/* Returns how many bytes of content count for rows of a table that are written in their order,
 * which have `bytes` bytes. Of *rows only as many are left as may need a page each besides. */
uint64_t pfs_space_of_rows(const struct pfs_tree *tree, uint64_t *rows, uint64_t bytes);

/* Returns how many bytes have to be free for a commit of these changes. removal: it may use the
 * last reserve, without which nothing could be deleted on a full disk. */
uint64_t pfs_space_needed(const struct pfs_tree *tree, const struct pfs_journal_need *need);
bool pfs_space_fits(const struct pfs_tree *tree, const struct pfs_journal_need *need);

/* ---- part.c ---- */

#define PFS_PARTS_MAX 8

struct pfs_journal_parts {
	const struct pfs_part *list[PFS_PARTS_MAX]; /* in the order in which they were registered */
	unsigned n;
	unsigned flags; /* of all parts: nodes that one has to keep something of */
	pthread_mutex_t lock; /* the content lock */
	/* Bytes that became pending and that the journal is told of when the content lock is given
	 * back; protected by that lock. */
	int64_t unreported;
};

/* ---- journal.c and committer.c ---- */

struct pfs_journal {
	/* The next group's rows; protected by tree->lock. */
	uint32_t *dirty; /* PFS_DIRTY_LIST slots; a listed slot need not be dirty any more */
	uint8_t mark;	 /* PFS_SLOT_DIRTY_1 or _2: the mark of dirty slots */
	struct pfs_cut cut_off;
	_Atomic uint32_t n_dirty; /* dirty slots; if more than PFS_DIRTY_LIST, not all are listed */
	_Atomic uint32_t n_writing; /* rows of the group being written */
	_Atomic int64_t content;    /* bytes of content pending, also in the group being written */
	/* Bytes that the store's history will keep of pending changes, apart from rows of nodes. */
	_Atomic uint64_t former;
	/* Bytes that may become pending while somebody holds for them (pfs_journal_hold_for). */
	_Atomic uint64_t promised;
	_Atomic int failure;	    /* the error of the last commit, or 0 */
	_Atomic bool running;
	_Atomic bool reaping; /* content without a node is still to be removed */
	struct pfs_space space;

	pthread_mutex_t lock; /* protects all that follows */
	pthread_cond_t wake;  /* the committer has something to do */
	pthread_cond_t ended; /* a commit ended, well or not, or begins */
	pthread_t thread;
	bool stop;
	bool primes_wanted; /* an operation waits for primes */
	uint64_t cut;	    /* number of the last group cut */
	uint64_t committed; /* number of the last group committed: `cut` or one less */
	uint64_t wanted;    /* groups up to this number are to be committed without delay */
	uint64_t attempts;  /* commits tried */
	uint64_t unsaved;   /* committed rows that the image file lacks; for the committer alone */
	uint64_t image_made_ns; /* when the last image file was begun; for the committer alone */
	struct pfs_errand *errand; /* the errand to be written next, or NULL */

	/* Held by pfs_journal_hold, so that no group is cut. It is taken before all other locks. */
	pthread_mutex_t whole;

	struct pfs_journal_parts parts;
	struct pfs_group group; /* for the committer alone */
};

/* Returns true if so much is pending that a commit should begin at once. */
bool pfs_journal_is_pressed(const struct pfs_tree *tree);

/* Marks the errand as done, written or not, and wakes its sender. journal->lock is held. */
void pfs_errand_end(struct pfs_journal *journal, struct pfs_errand *errand);

/* The function of the committer's thread; arg is the tree. */
void *pfs_committer(void *arg);

#endif
