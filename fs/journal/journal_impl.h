/* SPDX-License-Identifier: MIT */
/* fs/journal/journal_impl.h - inside of the journal: journal.c (what operations call), committer.c
 * (the thread), cut.c (takes what one commit holds), group.c (writes it), part.c (what others add
 * to it), space.c (will it fit?). */
#ifndef PFS_FS_JOURNAL_JOURNAL_IMPL_H
#define PFS_FS_JOURNAL_JOURNAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/journal/journal.h"
#include "fs/image/watch.h"
#include "fs/journal/part.h"
#include "meta/store.h"

#define PFS_DIRTY_COMMIT 16384u /* rows: commit now */
#define PFS_DIRTY_WAIT   65536u /* rows: changes wait for a commit */
#define PFS_DIRTY_LIST   (2 * PFS_DIRTY_WAIT) /* listed; beyond it the cut looks at all slots */

/* ---- group.c: the rows of one commit ---- */

#define PFS_SMALL_CONTENT (INT64_C(4) << 20) /* bytes that are removed together with the record */

enum pfs_row_action {
	PFS_ROW_PUT = 1,
	PFS_ROW_REMOVE = 2,	 /* the record */
	PFS_ROW_REMOVE_CHUNKS = 4, /* content, when there is little of it */
	PFS_ROW_ORPHAN = 8,	 /* note that there may be content */
};

struct pfs_group_row {
	struct pfs_node_record record; /* prime alone unless PUT; points into the group's bytes */
	unsigned action;
};

/* Content without a node, to be removed bit by bit. */
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
	int64_t content; /* bytes pending when it was cut */
	uint64_t former; /* and those of journal->former */
	uint64_t forget_from_ms; /* history is not forgotten before, for it failed */
	struct pfs_reap reap;
};

/* Writes the group in one transaction of the store, which is durable on return; may be repeated
 * after a failure.  fetch: primes too. */
PFS_MUST_CHECK int pfs_group_write(struct pfs_tree *tree, struct pfs_group *group, bool fetch);

/* Forgets some of the history that is too old, if there is such, in a group of its own; after a failure not before a minute
 * has passed.  Between two groups. */
void pfs_group_forget(struct pfs_tree *tree, struct pfs_group *group);
bool pfs_group_forgets(const struct pfs_tree *tree, const struct pfs_group *group);

/* Forgets the group, which is committed. */
void pfs_group_done(struct pfs_tree *tree, struct pfs_group *group);

/* Puts the orphans that a crash left into the group's list. */
PFS_MUST_CHECK int pfs_group_find_orphans(struct pfs_tree *tree, struct pfs_group *group);
void pfs_group_release(struct pfs_group *group);

/* ---- cut.c: what a commit has, of one moment ---- */

/* Holds what the group of that moment still lacks; protected by tree->lock. */
struct pfs_cut {
	bool goes_on;
	uint8_t mark;	 /* PFS_SLOT_DIRTY_1 or _2: of slots whose rows are still to be copied */
	uint32_t *dirty; /* PFS_DIRTY_LIST slots that had the mark; the journal's list is the other
			    one */
	bool is_listed;	 /* else all slots are looked at */
	uint32_t position, end;
	uint64_t *unlinked; /* a bit a slot: it lost its name since that moment */
	uint32_t slots;	    /* bits there are */
};

/* Copies what is dirty as it is at one moment, and frees the slots of nodes that are gone.  No lock
 * is held; holds of tree->lock are short, however much it is. -ENOMEM leaves everything as it was.
 */
PFS_MUST_CHECK int pfs_group_cut(struct pfs_tree *tree, struct pfs_group *group);
/* Do the same in steps, for it and for tests: `begin` is the moment; `some` is called then as long
 * as it returns true. */
PFS_MUST_CHECK int pfs_cut_begin(struct pfs_tree *tree, struct pfs_group *group);
bool pfs_cut_some(struct pfs_tree *tree, struct pfs_group *group);

/* The slot is about to change: if the group that is being cut lacks its row, that is copied first.
 * The setters' changes are heard of through `pfs_cut_watcher`. tree->lock is held for writing. */
void pfs_cut_before(struct pfs_tree *tree, uint32_t slot);
void pfs_cut_unlinking(struct pfs_tree *tree, uint32_t slot); /* before it is marked as unlinked */
extern const struct pfs_watcher pfs_cut_watcher;

/* Returns true if the node with that number had a name at the moment of the cut. tree->lock is
 * held. */
bool pfs_cut_has_name(const struct pfs_tree *tree, uint64_t prime);

/* ---- space.c: room on the store's filesystem ---- */

struct pfs_space {
	/* bytes, as last seen; free: when the log is in the file */
	_Atomic uint64_t free, total, size, reusable, log;
	_Atomic bool keeps_history; /* each row that changes leaves another */
	_Atomic int64_t seen_ms;
};

/* Looks again if what is known is older than 100 ms, or always. */
void pfs_space_refresh(struct pfs_tree *tree, bool always);

/* Returns true if the store's log takes room that is scarce, so that it is to be freed. */
bool pfs_space_is_held_by_log(const struct pfs_tree *tree);

/* Returns true if a commit of so many rows and bytes of content would fit.  removal: it may use the last reserve, without which
 * nothing could be deleted on a full disk. */
bool pfs_space_fits(const struct pfs_tree *tree, uint64_t rows, uint64_t bytes, bool removal);

/* ---- part.c ---- */

#define PFS_PARTS_MAX 8

struct pfs_journal_parts {
	const struct pfs_part *list[PFS_PARTS_MAX]; /* in the order in which they were registered */
	unsigned n;
	pthread_mutex_t lock; /* the content lock */
	int64_t unreported;   /* bytes to tell the journal of as the lock is given back; protected by it */
};

/* ---- journal.c and committer.c ---- */

struct pfs_journal {
	/* The next group's rows; protected by tree->lock. */
	uint32_t *dirty; /* PFS_DIRTY_LIST slots; one may be listed and no longer dirty */
	uint8_t mark;	 /* PFS_SLOT_DIRTY_1 or _2: what they have */
	struct pfs_cut cut_off;
	_Atomic uint32_t n_dirty; /* more than PFS_DIRTY_LIST: not all are listed */
	_Atomic uint32_t n_writing; /* rows of the group being written */
	_Atomic int64_t content;    /* bytes pending, those of the group included */
	_Atomic uint64_t former;    /* bytes that history will have of what is pending, rows of nodes apart */
	_Atomic int failure;	    /* of the last commit, 0 when it went well */
	_Atomic bool running;
	_Atomic bool reaping; /* content that nobody uses is still to be removed */
	struct pfs_space space;

	pthread_mutex_t lock; /* of all that follows */
	pthread_cond_t wake;  /* the committer has something to do */
	pthread_cond_t ended; /* a commit ended, well or not, or begins */
	pthread_t thread;
	bool stop;
	bool primes_wanted; /* somebody waits for primes */
	uint64_t cut;	    /* number of the last group cut */
	uint64_t committed; /* number of the last group committed: cut or one less */
	uint64_t wanted;    /* commit up to this number without delay */
	uint64_t attempts;  /* commits tried */
	uint64_t unsaved;   /* rows of groups that the image file has not; the committer's own, as is */
	uint64_t image_made_ns; /* when it last had one made, or began */
	struct pfs_errand *errand; /* to be written next, or NULL */

	pthread_mutex_t whole; /* before all others: held while groups may not be cut */

	struct pfs_journal_parts parts;
	struct pfs_group group; /* the committer's own */
};

/* Returns true if so much is pending that a commit should not wait. */
bool pfs_journal_is_pressed(const struct pfs_tree *tree);

/* Takes the errand off the journal, done or not, and wakes who waits for it.  journal->lock is held. */
void pfs_errand_end(struct pfs_journal *journal, struct pfs_errand *errand);

/* Is the committer's thread; arg is the tree. */
void *pfs_committer(void *arg);

#endif
