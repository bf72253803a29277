/* SPDX-License-Identifier: MIT */
/* base/node_pool.h - memory for an index's nodes, all of one size.
 *
 * Freed nodes are used again; memory goes back with the pool only, since an index that shrank grows
 * again.  Threads: the caller locks. */
#ifndef PFS_BASE_NODE_POOL_H
#define PFS_BASE_NODE_POOL_H

#include <stddef.h>

#include "base/err.h"

struct pfs_node_slab {
	struct pfs_node_slab *next;
};

struct pfs_free_node {
	struct pfs_free_node *next;
};

/* A pool that is all zero but for node_size (a multiple of 8 bytes) is empty. */
struct pfs_node_pool {
	size_t node_size;
	struct pfs_node_slab *slabs;
	char *fresh; /* the part of the newest slab that was never used */
	size_t n_fresh;
	struct pfs_free_node *free;
	size_t n_free; /* fresh ones included */
	size_t n_used;
	size_t bytes;
};

/* Takes memory so that the next n takes find a node. -ENOMEM. */
PFS_MUST_CHECK int pfs_node_pool_reserve(struct pfs_node_pool *pool, size_t n);

/* Returns a node that an earlier reserve made sure of; its content is undefined. It stays the
 * pool's, and is given back or freed with it. */
void *pfs_node_pool_take(struct pfs_node_pool *pool);
void pfs_node_pool_give(struct pfs_node_pool *pool, void *node);

/* Frees all nodes. */
void pfs_node_pool_release(struct pfs_node_pool *pool);

#endif
