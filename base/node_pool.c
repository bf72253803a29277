/* SPDX-License-Identifier: MIT */
#include "base/node_pool.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/reserve.h"

int pfs_node_pool_reserve(struct pfs_node_pool *pool, size_t n)
{
	struct pfs_node_slab *slab;
	size_t grow, bytes;

	if (pool->n_free >= n)
		return 0;
	grow = PFS_MAX(n - pool->n_free, PFS_MIN(pool->n_used / 16 + 2, 256));
	if (__builtin_mul_overflow(grow, pool->node_size, &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*slab), &bytes))
		return -ENOMEM;
	slab = malloc(bytes);
	if (!slab)
		return -ENOMEM;
	while (pool->n_fresh) { /* what is left of the old slab */
		struct pfs_free_node *node = (struct pfs_free_node *)pool->fresh;

		node->next = pool->free;
		pool->free = node;
		pool->fresh += pool->node_size;
		pool->n_fresh--;
	}
	pfs_expect_filled(slab, bytes);
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->fresh = (char *)(slab + 1);
	pool->n_fresh = grow;
	pool->n_free += grow;
	pool->bytes += bytes;
	return 0;
}

/* Called after pfs_node_pool_reserve has succeeded. */
void *pfs_node_pool_take(struct pfs_node_pool *pool)
{
	void *node;

	if (pool->free) {
		node = pool->free;
		pool->free = pool->free->next;
	} else {
		node = pool->fresh;
		pool->fresh += pool->node_size;
		pool->n_fresh--;
	}
	pool->n_free--;
	pool->n_used++;
	return node;
}

void pfs_node_pool_give(struct pfs_node_pool *pool, void *node)
{
	struct pfs_free_node *freed = node;

	freed->next = pool->free;
	pool->free = freed;
	pool->n_free++;
	pool->n_used--;
}

void pfs_node_pool_release(struct pfs_node_pool *pool)
{
	while (pool->slabs) {
		struct pfs_node_slab *next = pool->slabs->next;

		free(pool->slabs);
		pool->slabs = next;
	}
}
