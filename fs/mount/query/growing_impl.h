/* SPDX-License-Identifier: MIT */
/* fs/mount/query/growing_impl.h - inside of growing.h: growing.c (statements that are made, wait
 * for a turn or rest) and growing_read.c (who reads their answers).
 *
 * One lock for all of a mount's: it is held for moments.  Whoever runs an answer's statement alone
 * has `making`. */
#ifndef PFS_FS_MOUNT_QUERY_GROWING_IMPL_H
#define PFS_FS_MOUNT_QUERY_GROWING_IMPL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "fs/mount/query/growing.h"
#include "fs/mount/query/pending.h"
#include "fs/mount/query/shares.h"
#include "fs/mount/query/turns.h"

#define PFS_ANSWER_END ((uint64_t)INT64_MAX)

enum pfs_growing_state {
	PFS_GROWING_RUNS,  /* somebody makes more */
	PFS_GROWING_WAITS, /* for its turn */
	PFS_GROWING_RESTS, /* until somebody reads on */
	PFS_GROWING_ENDED, /* complete, or failed */
};

/* A read that waits. */
struct pfs_growing_reader {
	struct pfs_pending pending;
	struct pfs_growing *growing;
	size_t size;
	uint64_t offset;  /* PFS_ANSWER_END: he asks where that is, */
	struct stat attr; /* which becomes the size of this, behind that */
};

struct pfs_growing {
	struct pfs_growings *all;
	struct pfs_answer *answer; /* held */
	struct pfs_making *making; /* NULL: it ended; set with the lock */
	const struct pfs_query_scope
		*scope; /* that it began in; NULL: that has ended.  Of who runs it */
	uid_t uid;
	bool sees_all;
	uint64_t about; /* as pfs_growing_asker's */
	uint64_t ahead; /* bytes that are made before they are asked for */
	unsigned refs;	/* protected by all->lock, as the rest is */
	enum pfs_growing_state state;
	uint64_t turn;	   /* that it waits for */
	bool left;	   /* nobody reads it any more */
	bool hurries;	   /* it does not rest any more */
	uint64_t read_to;  /* the farthest that somebody has asked for */
	uint64_t rests_ns; /* since when it rests; 0: it did not */
	struct pfs_pendings readers;
	struct pfs_growing *next, **link; /* of those that rest, the longest first */
};

struct pfs_growings {
	struct pfs_growing_host host;
	struct pfs_shares shares;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* there are some that rest, or none is to any more */
	/* protected by lock */
	struct pfs_growing *first, **last; /* of those that rest */
	struct pfs_growing_counts counts;
	uint64_t n_turns;  /* asked for so far */
	unsigned hurrying; /* threads that run one to its end */
	bool has_thread, stops;
	pthread_t thread;
};

/* ---- growing.c ---- */

/* Takes one that rests out of those that do, for who is to run it, who has a reference from now on.
 * With the lock. */
void pfs_growing_wake(struct pfs_growing *growing, enum pfs_growing_state state);

/* Has the statement wait for its turn, which has that number; whoever gets the turn runs it. */
void pfs_growing_take_turn(struct pfs_growing *growing, uint64_t number);

/* ---- growing_read.c ---- */

/* Answers the reads that wait for bytes which are there now, or all of them; error: 0, or what they
 * are told. */
void pfs_growing_answer_readers(struct pfs_growing *growing, bool all, int error);

#endif
