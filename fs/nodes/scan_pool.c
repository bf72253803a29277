/* SPDX-License-Identifier: MIT */
/* The threads of scans: one scan has them at a time, the others go on alone. */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/thread.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define RUN_FIRST 8u /* pieces for each of which there is no measure yet */
#define RUN_NS	  INT64_C(4000000) /* what a run may take, about */

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
		scan->no_pool = pfs_pool_open(&scan->pool, 0, PFS_THREAD_NICE) != 0;
	if (scan->pool)
		pfs_pool_run(scan->pool, n, grain, work, context);
	else
		run_alone(n, grain, work, context);
	(void)pthread_mutex_unlock(&scan->lock);
}

/* A part of what is to be done, as if that were all. */
struct shifted {
	void (*work)(void *context, size_t from, size_t to);
	void *context;
	size_t from;
};

static void work_shifted(void *context, size_t from, size_t to)
{
	const struct shifted *shifted = context;

	shifted->work(shifted->context, shifted->from + from, shifted->from + to);
}

static int look_of(void *watch)
{
	return pfs_scan_look(watch);
}

int pfs_scan_prepare_totals(struct pfs_tree *tree, const struct pfs_scan_watch *watch)
{
	return pfs_totals_prepare(tree, watch ? look_of : NULL, (void *)watch);
}

int pfs_scan_prepare_spans(struct pfs_tree *tree, const struct pfs_scan_watch *watch)
{
	return watch ? pfs_spans_prepare(tree, look_of, (void *)watch) : 0;
}

int pfs_scan_run_watched(struct pfs_tree *tree, size_t n, size_t grain,
			 void (*work)(void *context, size_t from, size_t to), void *context,
			 const struct pfs_scan_watch *watch)
{
	size_t pieces = watch ? RUN_FIRST : n, run;

	for (size_t from = 0; from < n; from += run) {
		struct shifted shifted = {.work = work, .context = context, .from = from};
		uint64_t began = pfs_now_ns(), took;

		run = PFS_MIN(n - from, pieces * grain);
		pfs_scan_run(tree, run, grain, work_shifted, &shifted);
		took = pfs_now_ns() - began;
		PFS_TRY(pfs_scan_look(watch));
		if (took > RUN_NS)
			pieces = PFS_MAX(pieces / 2, 1);
		else if (took < RUN_NS / 4 && pieces < n)
			pieces *= 2;
	}
	return 0;
}
