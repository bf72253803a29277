/* SPDX-License-Identifier: MIT */
/* Scans on the tree's threads, and what they let others do meanwhile. */
#include "fs/nodes/scan_impl.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/pool.h"
#include "fs/image/span.h"
#include "fs/image/totals.h"
#include "fs/tree/tree_impl.h"

#define RUN_NS	   UINT64_C(2000000) /* between two looks, and one piece more */
#define SHARES_MAX 256u		     /* as many as there may be threads */

int pfs_scan_create(struct pfs_tree *tree)
{
	return pfs_operators_open_on(&tree->operators, PFS_ENGINE_HOST, tree->pool);
}

void pfs_scan_destroy(struct pfs_tree *tree)
{
	pfs_operators_close(tree->operators);
	tree->operators = NULL;
}

struct pfs_pool *pfs_scan_pool(const struct pfs_tree *tree)
{
	return tree->pool;
}

void pfs_scan_run(struct pfs_tree *tree, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	pfs_pool_run(tree->pool, n, grain, work, context);
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
	struct limited limited = {.work = work,
				  .context = context,
				  .n = n,
				  .grain = grain,
				  .most = most,
				  .caller = pthread_self()};

	if (n)
		pfs_scan_run(tree, PFS_MIN(pfs_div_round_up(n, grain), SHARES_MAX), 1, work_limited,
			     &limited);
	return PFS_MIN(atomic_load(&limited.next), n);
}

static int poll(void *context)
{
	const struct pfs_scan_pauses *pauses = context;

	if (*pauses->watch->stop)
		return -EINTR;
	return pthread_equal(pthread_self(), pauses->thread) && pfs_now_ns() >= pauses->until_ns
		       ? PFS_RUN_PAUSE
		       : 0;
}

static int pause_run(void *context)
{
	struct pfs_scan_pauses *pauses = context;
	int error = pfs_scan_look(pauses->watch);

	pauses->until_ns = pfs_now_ns() + RUN_NS;
	return error;
}

struct pfs_run pfs_scan_run_of(const struct pfs_tree *tree, struct pfs_scan_pauses *pauses,
			       const struct pfs_scan_watch *watch)
{
	*pauses = (struct pfs_scan_pauses){.watch = watch,
					   .thread = pthread_self(),
					   .until_ns = watch ? pfs_now_ns() + RUN_NS : 0};
	return (struct pfs_run){.operators = tree->operators,
				.on = PFS_ENGINE_HOST,
				.poll = watch ? poll : NULL,
				.pause = pause_run,
				.context = pauses};
}

int pfs_scan_run_watched(struct pfs_tree *tree, size_t n, size_t grain,
			 int (*work)(void *context, unsigned worker, uint64_t from, uint64_t to),
			 void *context, const struct pfs_scan_watch *watch)
{
	struct pfs_scan_pauses pauses;
	const struct pfs_run run = pfs_scan_run_of(tree, &pauses, watch);

	PFS_TRY(pfs_operators_for(&run, n, grain, work, context));
	return pfs_scan_look(watch);
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
