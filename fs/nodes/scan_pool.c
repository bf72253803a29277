/* SPDX-License-Identifier: MIT */
/* The threads of scans: one scan has them at a time, the others go on alone. */
#include "fs/nodes/scan_impl.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/thread.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define RUN_NS	   UINT64_C(2000000) /* what a run may take, and one piece more */
#define ALONE_NS   UINT64_C(100000)  /* many a scan is over before others have woken, or have been let run */
#define SHARES_MAX 256u		     /* as many as there may be threads */

struct pfs_scan {
	pthread_mutex_t lock;  /* of who has the threads */
	struct pfs_pool *pool; /* NULL until first wanted */
	bool no_pool;	       /* it could not be had */
	struct pfs_operators *operators;
};

int pfs_scan_create(struct pfs_tree *tree)
{
	tree->scan = calloc(1, sizeof(*tree->scan));
	if (!tree->scan)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->scan->lock, NULL);
	return pfs_operators_open(&tree->scan->operators, PFS_ENGINE_HOST, 0);
}

struct pfs_operators *pfs_scan_operators(const struct pfs_tree *tree)
{
	return tree->scan->operators;
}

void pfs_scan_destroy(struct pfs_tree *tree)
{
	struct pfs_scan *scan = tree->scan;

	if (!scan)
		return;
	pfs_pool_close(scan->pool);
	pfs_operators_close(scan->operators);
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

/* Pieces that threads take one by one until the caller has done enough of them. */
struct limited {
	void (*work)(void *context, size_t from, size_t to);
	void *context;
	size_t n, grain, most;
	atomic_size_t next; /* the first that nobody has taken */
	atomic_bool is_enough;
	pthread_t caller;
	size_t own; /* pieces that the caller has done */
};

static void work_limited(void *context, size_t share PFS_UNUSED, size_t end PFS_UNUSED)
{
	struct limited *limited = context;
	bool is_own = pthread_equal(pthread_self(), limited->caller);

	while (!atomic_load(&limited->is_enough)) {
		size_t from = atomic_fetch_add(&limited->next, limited->grain);

		if (from >= limited->n)
			return;
		limited->work(limited->context, from, PFS_MIN(from + limited->grain, limited->n));
		if (is_own && ++limited->own == limited->most)
			atomic_store(&limited->is_enough, true);
	}
}

size_t pfs_scan_run_some(struct pfs_tree *tree, size_t n, size_t grain, size_t most,
			 void (*work)(void *context, size_t from, size_t to), void *context)
{
	struct limited limited = {
		.work = work, .context = context, .n = n, .grain = grain, .most = most, .caller = pthread_self()};

	if (n)
		pfs_scan_run(tree, PFS_MIN(pfs_div_round_up(n, grain), SHARES_MAX), 1, work_limited, &limited);
	return PFS_MIN(atomic_load(&limited.next), n);
}

/* Pieces that threads take one by one until the run has lasted long enough. */
struct watched {
	void (*work)(void *context, size_t from, size_t to);
	void *context;
	size_t n, grain;
	atomic_size_t next; /* the first that nobody has taken */
	uint64_t until_ns;
};

/* One thread's share.  Of the first one a piece is taken in any case, so that each run gets on. */
static void work_watched(void *context, size_t share, size_t end PFS_UNUSED)
{
	struct watched *watched = context;

	for (bool first = share == 0; first || pfs_now_ns() < watched->until_ns; first = false) {
		size_t from = atomic_fetch_add(&watched->next, watched->grain);

		if (from >= watched->n)
			return;
		watched->work(watched->context, from, PFS_MIN(from + watched->grain, watched->n));
	}
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
	struct watched watched = {.work = work, .context = context, .n = n, .grain = grain};

	watched.until_ns = pfs_now_ns() + ALONE_NS;
	if (n)
		work_watched(&watched, 0, 1);
	while (atomic_load(&watched.next) < n) {
		size_t pieces = pfs_div_round_up(n - atomic_load(&watched.next), grain);

		PFS_TRY(pfs_scan_look(watch));
		watched.until_ns = watch ? pfs_now_ns() + RUN_NS : UINT64_MAX;
		pfs_scan_run(tree, PFS_MIN(pieces, SHARES_MAX), 1, work_watched, &watched);
	}
	return pfs_scan_look(watch);
}
