/* SPDX-License-Identifier: MIT */
/* gpu/crew.h - the threads that work on one operator, and stop together when its run pauses
 * (run.h).
 *
 * One thread leads: the one that called the operator. The others help. When a poll tells the leader
 * that a pause is due, each helper stops at its next pfs_run_poll; when all have, the leader calls
 * run->pause, and they go on, or all of them end with its error. So they do with the error of a
 * poll. */
#ifndef PFS_GPU_CREW_H
#define PFS_GPU_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/err.h"

struct pfs_run;

struct pfs_crew {
	atomic_int state; /* 0; a pause is wanted; below 0: the leader's error */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned helpers, stopped; /* protected by lock; who has stopped helps, too */
};

/* Makes the calling thread the leader, of one crew at a time, until the crew is closed. */
void pfs_crew_open(struct pfs_crew *crew);
/* All helpers have left. */
void pfs_crew_close(struct pfs_crew *crew);

/* Make the calling thread a helper for as long as it reads what the operator reads. A thread that
 * joins during a pause waits for its end. The leader's calls do nothing. */
void pfs_crew_join(struct pfs_crew *crew);
void pfs_crew_leave(struct pfs_crew *crew);

/* For the leader, when no work is left to begin: returns when all helpers have left, and polls the
 * run, and pauses, until then. Returns the error of a poll or of a pause. */
PFS_MUST_CHECK int pfs_crew_wait(struct pfs_crew *crew, const struct pfs_run *run);

#endif
