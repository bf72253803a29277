/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourcewatch_impl.h - inside of tools/refresh/sourcewatch.h: sourcewatch.c (means,
 * refreshes, threads), sourcewatch_note.c (which directories there are, and which may be stale) and
 * sourcewatch_unread.c (what cannot be read). */
#ifndef PFS_TOOLS_REFRESH_SOURCEWATCH_IMPL_H
#define PFS_TOOLS_REFRESH_SOURCEWATCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/byprime.h"
#include "tools/refresh/sourceevents.h"
#include "tools/refresh/sourcewatch.h"

#define PFS_UNREAD_MAX	   1024 /* of what cannot be read, so many are known by name */
#define PFS_LINKED_AT_ONCE 64 /* changed files with several names; with more, all is refreshed */

/* A directory of the source. */
struct pfs_source_directory {
	struct pfs_byprime by_number;
	struct pfs_byprime by_ino; /* if it has a node */
	struct pfs_source_directory *next_stale;
	uint64_t ino; /* its node; 0: none yet */
	bool stale;   /* it is in the list of stale directories: it may have changed */
	bool missed;  /* it was taken off that list when it had no node yet */
	bool asked;   /* it was taken off that list, and has not been read since */
	bool gone;    /* with stale: it is freed when it is taken off the list */
};

/* What a refresh could not read, and left as it was. */
struct pfs_unread {
	struct pfs_unread_node {
		uint64_t ino; /* 0: it has no node */
		char *path, *why; /* in the store, or of what has no node */
	} *list;
	size_t n, capacity;
	size_t n_more; /* that are not in the list */
};

struct pfs_sourcewatch {
	struct pfs_tree *tree;
	struct pfs_sourcewatch_options options;
	struct pfs_refresh_watcher watcher;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the thread that refreshes */
	_Atomic bool stop;

	/* protected by lock */
	struct pfs_sourceevents
		*events; /* NULL: none; changed by the thread that refreshes alone */
	struct pfs_byprime_table directories, by_ino;
	size_t live; /* directories that were left when gone ones were last dropped */
	struct pfs_source_directory *stale;
	size_t n_stale;
	uint64_t heard_ns; /* when the last event came */
	bool lost;	   /* everything may be stale */
	bool behind;	   /* a refresh has left something to the next one of everything */
	bool failed;	   /* the events have ended */
	bool look;	   /* it is to be looked at once whether the folders are there */
	bool limited;	   /* not all directories are watched */
	bool limit_said;   /* that not all are watched has been logged */
	enum pfs_sourcewatch_means means; /* changed by the thread that refreshes alone */
	bool held_back;	 /* the last refresh left nodes that look gone to this one */
	bool links_only; /* this refresh is only about other names of files in `linked` */
	struct stat linked[PFS_LINKED_AT_ONCE];
	size_t n_linked;

	/* for the thread that refreshes alone */
	bool compared_once; /* everything has been compared since the start */
	int last;	   /* the error that was logged last */
	struct pfs_unread unread; /* by the refreshes so far */
	struct pfs_unread found;  /* by this refresh */
	unsigned retry_ms; /* time to wait after the next error */
	uint64_t all_ms;   /* when the last refresh of everything ended */
	uint64_t rest_ms;  /* time from then on in which what is left to one waits */
	int ended;	   /* eventfd: the thread that hears is to end */
	pthread_t refresher, hearer;
	bool started, hearing;
};

extern const char *const pfs_sourcewatch_names[]; /* of the means */

/* ---- sourcewatch_unread.c; for the thread that refreshes alone ---- */

/* Notes in watch->found what a refresh could not read. -ENOMEM. */
PFS_MUST_CHECK int pfs_sourcewatch_note_unread(struct pfs_sourcewatch *watch, const char *path,
					       const char *why);

/* Called after a refresh, which has come to its end if !error: what it found takes the place of
 * what was known of the same nodes and, if it was one of everything, of all. What is new is
 * logged, and as_of gets all. */
void pfs_sourcewatch_take_unread(struct pfs_sourcewatch *watch, bool all, int error);
void pfs_sourcewatch_free_unread(struct pfs_unread *unread);

/* ---- sourcewatch_note.c ---- */

/* Returns the functions that refreshes call, for watch->watcher. */
struct pfs_refresh_watcher pfs_sourcewatch_tells(struct pfs_sourcewatch *watch);

/* The function of the thread that reads events; it ends when watch->ended is readable or no more
 * events will come. arg is the watch. */
void *pfs_sourcewatch_hear(void *arg);

/* Returns true if the thread that refreshes has something to do. The lock is held. */
bool pfs_sourcewatch_has_news(const struct pfs_sourcewatch *watch);

/* Called after a refresh. seen: it came to its end. If nothing has changed since, the watched part
 * of the store is known to be as its source (pfs_compared_set_live). */
void pfs_sourcewatch_set_seen(struct pfs_sourcewatch *watch, bool seen);

/* Takes stale directories off the list, and calls fn, if not NULL, with the node of each that has
 * one. A directory without a node is put on the list again when it gets its node. The lock is
 * held. */
void pfs_sourcewatch_take_stale(struct pfs_sourcewatch *watch, void (*fn)(void *arg, uint64_t ino),
				void *arg);

/* Called after a refresh of these nodes. If the directory of one that is still there was not read,
 * as it had just moved, what has changed in it is left to a refresh of everything. */
void pfs_sourcewatch_note_asked(struct pfs_sourcewatch *watch, const uint64_t *inos, size_t n);

/* pfs_sourcewatch_forget_all drops all directories; the lock is held. pfs_sourcewatch_forget_gone
 * drops those whose nodes are gone, if there may be many. */
void pfs_sourcewatch_forget_all(struct pfs_sourcewatch *watch);
void pfs_sourcewatch_forget_gone(struct pfs_sourcewatch *watch);

#endif
