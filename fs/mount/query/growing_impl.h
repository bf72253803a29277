/* SPDX-License-Identifier: MIT */
/* fs/mount/query/growing_impl.h - inside of growing.h: growing.c (statements that run, wait for a
 * turn or rest) and growing_read.c (reads of their answers).
 *
 * One lock guards all answers of a mount, and is held for moments. `making` is used only by the
 * thread that runs the answer's statement. */
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
	PFS_GROWING_RUNS,  /* a thread makes more of the answer */
	PFS_GROWING_WAITS, /* the statement waits for its turn */
	PFS_GROWING_RESTS, /* the statement rests until a reader reads on */
	PFS_GROWING_ENDED, /* the answer is complete, or failed */
};

/* A read that waits. */
struct pfs_growing_reader {
	struct pfs_pending pending;
	struct pfs_growing *growing;
	size_t size;
	uint64_t offset;  /* PFS_ANSWER_END: the request asks for the answer's size */
	struct stat attr; /* the reply to that; the size is added to its st_size */
};

struct pfs_growing {
	struct pfs_growings *all;
	struct pfs_answer *answer; /* held */
	struct pfs_making *making; /* NULL: it ended; set with the lock */
	/* The scope of the request that the statement began in; NULL: that request has ended. Only
	 * for the thread that runs the statement. */
	const struct pfs_query_scope *scope;
	uid_t uid;
	bool sees_all;
	uint64_t about; /* that of struct pfs_growing_asker */
	uint64_t ahead; /* bytes that are made before they are asked for */
	unsigned refs;	/* protected by all->lock, as the rest is */
	enum pfs_growing_state state;
	uint64_t turn;	   /* number of the turn that it waits for */
	bool left;	   /* no reader is left */
	bool hurries;	   /* it is run to its end without resting again */
	uint64_t read_to;  /* the farthest offset that a reader has asked for */
	uint64_t rests_ns; /* when it began to rest; 0: it has not rested */
	struct pfs_pendings readers;
	struct pfs_growing *next, **link; /* in the list of resting answers, the longest first */
};

struct pfs_growings {
	struct pfs_growing_host host;
	struct pfs_shares shares;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* an answer rests, a hurrying thread ended, or `stops` is set */
	/* protected by lock */
	struct pfs_growing *first, **last; /* the list of resting answers */
	struct pfs_growing_counts counts;
	uint64_t n_turns;  /* turns that were asked for so far */
	unsigned hurrying; /* threads that run a statement to its end */
	bool has_thread, stops;
	pthread_t thread;
};

/* ---- growing.c ---- */

/* Takes a resting answer out of the list, for a thread that is going to run it; the answer gets a
 * reference for that thread. The lock is held. */
void pfs_growing_wake(struct pfs_growing *growing, enum pfs_growing_state state);

/* Has the statement wait for the turn of that number; the thread that gets the turn runs it. */
void pfs_growing_take_turn(struct pfs_growing *growing, uint64_t number);

/* ---- growing_read.c ---- */

/* Answers the waiting reads whose bytes are there now; all: answers all waiting reads. error: 0, or
 * the error that they get. */
void pfs_growing_answer_readers(struct pfs_growing *growing, bool all, int error);

#endif
