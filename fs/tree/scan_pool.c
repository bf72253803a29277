/* SPDX-License-Identifier: MIT */
/* The threads of scans: one scan has them at a time, the others go on alone. */
#include "fs/tree/scan_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/pool.h"

struct pfs_scan {
	pthread_mutex_t lock;  /* of who has the threads */
	struct pfs_pool *pool; /* NULL until first wanted */
	bool no_pool;	       /* it could not be had */
};

int pfs_scan_create(struct pfs_tree *tree)
{
	tree->scan = calloc(1, sizeof(*tree->scan));
	if (!tree->scan)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->scan->lock, NULL);
	return 0;
}

void pfs_scan_destroy(struct pfs_tree *tree)
{
	struct pfs_scan *scan = tree->scan;

	if (!scan)
		return;
	pfs_pool_close(scan->pool);
	(void)pthread_mutex_destroy(&scan->lock);
	free(scan);
	tree->scan = NULL;
}

static void run_alone(size_t n, size_t grain, void (*work)(void *context, size_t from, size_t to),
		      void *context)
{
	for (size_t from = 0; from < n; from += grain)
		work(context, from, PFS_MIN(from + grain, n));
}

void pfs_scan_run(struct pfs_tree *tree, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	struct pfs_scan *scan = tree->scan;

	if (n <= grain || pthread_mutex_trylock(&scan->lock)) {
		run_alone(n, grain, work, context);
		return;
	}
	if (!scan->pool && !scan->no_pool)
		scan->no_pool = pfs_pool_open(&scan->pool, 0) != 0;
	if (scan->pool)
		pfs_pool_run(scan->pool, n, grain, work, context);
	else
		run_alone(n, grain, work, context);
	(void)pthread_mutex_unlock(&scan->lock);
}
