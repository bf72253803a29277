/* SPDX-License-Identifier: MIT */
/* tools/refresh/sourcewatch_impl.h - inside of tools/refresh/sourcewatch.h: sourcewatch.c (means, refreshes, threads) and
 * sourcewatch_note.c (which directories there are, and which may be stale). */
#ifndef PFS_TOOLS_REFRESH_SOURCEWATCH_IMPL_H
#define PFS_TOOLS_REFRESH_SOURCEWATCH_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/byprime.h"
#include "tools/refresh/sourceevents.h"
#include "tools/refresh/sourcewatch.h"

#define PFS_LINKED_AT_ONCE 64 /* files with several names; of more, everything is refreshed */

/* A directory of the source. */
struct pfs_source_directory {
	struct pfs_byprime by_number;
	struct pfs_byprime by_ino; /* if it has a node */
	struct pfs_source_directory *next_stale;
	uint64_t ino; /* its node; 0: none yet */
	bool stale;   /* it is in the list */
	bool missed;  /* it was stale before it had a node */
	bool gone;    /* with stale: to be dropped with the list */
};

struct pfs_sourcewatch {
	struct pfs_tree *tree;
	struct pfs_sourcewatch_options options;
	struct pfs_refresh_watcher watcher;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the thread that refreshes */
	_Atomic bool stop;

	/* protected by lock */
	struct pfs_sourceevents *events; /* NULL: none; changed by the thread that refreshes alone */
	struct pfs_byprime_table directories, by_ino;
	size_t live; /* of them, when they were last looked through */
	struct pfs_source_directory *stale;
	size_t n_stale;
	uint64_t heard_ns; /* when the last event came */
	bool lost;	   /* everything may be stale */
	bool failed;	   /* the events have ended */
	bool limited;	   /* not all directories are watched, */
	bool limit_said;   /* and that has been logged */
	enum pfs_sourcewatch_means means; /* changed by the thread that refreshes alone */
	bool held_back;	 /* the refresh before this one left what was gone to this one */
	bool links_only; /* what is refreshed now is so for its links alone: it has none to add */
	struct stat linked[PFS_LINKED_AT_ONCE];
	size_t n_linked;

	/* the thread's that refreshes */
	bool compared_once; /* everything, since it was started */
	int last;	   /* error that was logged */
	unsigned retry_ms; /* to wait after the next error */
	int ended;	   /* eventfd: the thread that hears is to end */
	pthread_t refresher, hearer;
	bool started, hearing;
};

extern const char *const pfs_sourcewatch_names[]; /* of the means */

/* ---- sourcewatch_note.c ---- */

/* Returns what refreshes tell of their progress, which becomes watch->watcher. */
struct pfs_refresh_watcher pfs_sourcewatch_tells(struct pfs_sourcewatch *watch);

/* The thread that hears events, until watch->ended is readable or there are no more. */
void *pfs_sourcewatch_hear(void *arg);

/* True if the thread that refreshes has something to do.  With the lock. */
bool pfs_sourcewatch_has_news(const struct pfs_sourcewatch *watch);

/* The last refresh came to its end, or not: if nothing has changed since, what is watched is known to be as it is
 * in the store (pfs_compared_set_live). */
void pfs_sourcewatch_set_seen(struct pfs_sourcewatch *watch, bool seen);

/* Takes stale directories off the list, and calls fn, if not NULL, with the node of each that has one; the others
 * are put on it again when they have.  With the lock. */
void pfs_sourcewatch_take_stale(struct pfs_sourcewatch *watch, void (*fn)(void *arg, uint64_t ino), void *arg);

/* Drops all directories; those whose nodes are gone, once there may be many of them.  The first with the lock. */
void pfs_sourcewatch_forget_all(struct pfs_sourcewatch *watch);
void pfs_sourcewatch_forget_gone(struct pfs_sourcewatch *watch);

#endif
