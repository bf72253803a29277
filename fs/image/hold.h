/* SPDX-License-Identifier: MIT */
/* fs/image/hold.h - holding tree->lock, and how long somebody did.
 *
 * Nobody takes the lock in another way. Of the longest hold it is known who had it: a name that lasts, as
 * __func__ does. The lock of a frozen tree keeps nobody up, and is not counted. */
#ifndef PFS_FS_IMAGE_HOLD_H
#define PFS_FS_IMAGE_HOLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct pfs_tree;

/* The longest of one kind; "ns" is by the clock, in which a machine that has other work counts too, to a tick
 * of some milliseconds: shorter ones are 0, and nobody's. */
struct pfs_hold {
	uint64_t ns;
	uint64_t cpu_ns; /* of the thread's processor time, another one perhaps; 0: not counted */
	const char *by, *cpu_by; /* NULL: there was none */
};

struct pfs_lock {
	pthread_rwlock_t rw;
	atomic_uint waiting; /* writers, and with them whoever comes to read meanwhile */
	pthread_mutex_t mutex;
	_Atomic uint64_t ns[2], cpu_ns[2]; /* of `longest`, to look at without the mutex */
	struct pfs_hold longest[2]; /* for reading, for writing; protected by the mutex */
};

/* Writers go first: a cut must not wait for ever behind a stream of lookups. */
void pfs_hold_create(struct pfs_tree *tree);
void pfs_hold_destroy(struct pfs_tree *tree);

/* A thread holds one tree once; what it waits for before that is not counted. */
void pfs_hold_read(struct pfs_tree *tree, const char *by);
void pfs_hold_write(struct pfs_tree *tree, const char *by);
void pfs_hold_end(struct pfs_tree *tree);
/* Ends a hold for reading, so that who waits to write comes, and begins another under the same name. 0; `tree` is
 * no more than that, so that it is a look for who makes something in pieces. */
int pfs_hold_pause(void *tree);
/* Whether somebody waits for whoever reads to end. */
bool pfs_hold_is_wanted(const struct pfs_tree *tree);

/* Holds that begin from now on have their processor time counted, which costs two system calls each; it
 * is so from the beginning in VERIFY builds. */
void pfs_hold_count_cpu(void);
/* The longest since this was last asked, if `reset`, else since then or since the tree was opened. */
struct pfs_hold pfs_hold_longest(struct pfs_tree *tree, bool is_write, bool reset);

#endif
