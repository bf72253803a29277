/* SPDX-License-Identifier: MIT */
/* base/lazy_impl.h - for lazy*.c: what is kept of lazy memory and of its blocks. */
#ifndef PFS_BASE_LAZY_IMPL_H
#define PFS_BASE_LAZY_IMPL_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/lazy.h"

#define PFS_LAZY_PARTS	 32u
#define PFS_LAZY_THREADS 4u /* the most threads that wait for blocks to fill */

/* SEEN: absent, but somebody got bytes of it (pfs_lazy_get). ZEROS: filled, with the kernel's page
 * of zeros; somebody may have written there since. */
enum block { ABSENT, SEEN, FILLING, FILLED, ZEROS };

struct pfs_lazy_part {
	struct pfs_lazy *lazy;
	char *memory;
	size_t size, block_size;
	uint64_t n_blocks;
	pfs_lazy_fill *fill;
	void *context;
	_Atomic uint8_t *blocks; /* enum block; changed under the lock */
	uint8_t *joined; /* a byte a stretch: it is not tried again; protected by lazy->joining */
};

struct pfs_lazy {
	struct pfs_lazy *next; /* of all that have been started */
	int faults;  /* userfaultfd; -1: the thread that fills a block puts it in place */
	int ending;  /* eventfd */
	bool is_child;
	/* one a processor, since threads that scan would wait for each other otherwise */
	unsigned n_threads;
	pthread_t threads[PFS_LAZY_THREADS];
	pthread_mutex_t lock;
	pthread_cond_t filled; /* a block has been filled */
	/* held for reading from the first page of a block until it is FILLED */
	pthread_rwlock_t putting;
	_Atomic uint64_t n_filled;
	pthread_mutex_t joining;
	/* the value of n_filled when stretches were last looked at to the end */
	_Atomic uint64_t n_looked_at;
	unsigned n_parts;
	struct pfs_lazy_part parts[PFS_LAZY_PARTS];
};

static inline uint8_t pfs_lazy_state(const struct pfs_lazy_part *part, uint64_t number)
{
	return atomic_load_explicit(&part->blocks[number], memory_order_acquire);
}

static inline bool pfs_lazy_is_there(const struct pfs_lazy_part *part, uint64_t number)
{
	return pfs_lazy_state(part, number) >= FILLED;
}

/* ---- lazy_large.c: stretches, each of which is a place in a part for one large page ---- */

/* Returns how many there may be in the part. */
size_t pfs_lazy_stretches(const struct pfs_lazy_part *part);
/* Makes large pages of the stretches that are filled, until all have been looked at, or one of the
 * descriptors has something to read. The caller holds lazy->joining. */
void pfs_lazy_join(struct pfs_lazy *lazy, struct pollfd *fds, nfds_t n_fds);

#endif
