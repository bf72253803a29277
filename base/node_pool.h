/* SPDX-License-Identifier: MIT */
/* base/node_pool.h - memory for the nodes of an index, all of one size.
 *
 * Nodes that are given back are used again. Their memory is freed only with the pool, since an
 * index that has shrunk mostly grows again. Threads: the caller locks. */
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

/* An empty pool is all zero but for node_size, which is a multiple of 8 bytes. */
struct pfs_node_pool {
	size_t node_size;
	struct pfs_node_slab *slabs;
	char *fresh; /* the part of the newest slab that was never used */
	size_t n_fresh;
	struct pfs_free_node *free;
	size_t n_free; /* nodes in `free`, and fresh ones */
	size_t n_used;
	size_t bytes;
};

/* Takes memory for the next n calls of pfs_node_pool_take. -ENOMEM. */
PFS_MUST_CHECK int pfs_node_pool_reserve(struct pfs_node_pool *pool, size_t n);

/* Returns a node, for which pfs_node_pool_reserve has taken memory; its content is undefined. The
 * node is given back, or freed with the pool. */
void *pfs_node_pool_take(struct pfs_node_pool *pool);
void pfs_node_pool_give(struct pfs_node_pool *pool, void *node);

/* Frees all nodes, also those that were not given back. */
void pfs_node_pool_release(struct pfs_node_pool *pool);

#endif
