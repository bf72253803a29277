/* SPDX-License-Identifier: MIT */
/* The tree as a statement sees it: when it is held, let go, and found to have changed. */
#include "base/clock.h"
#include "fs/query/internal.h"

#include "fs/image/hold.h"
#include "fs/nodes/codes.h"

/* Scans let others have the tree after that, and operators if somebody waits; what they do between
 * two looks, a run of two milliseconds and a piece of each thread at the most, takes less than the
 * four that are left up to five.  By a clock without ticks, which have up to ten milliseconds. */
#define HELD_NS UINT64_C(1000000)
/* Operators, whose threads have to stop for it, do so if nobody waits. */
#define RUN_NS UINT64_C(2000000)
/* Who waits is let in now, also where an operator cannot pause: it begins again, over a frozen
 * tree. */
#define MOST_NS UINT64_C(4000000)

int pfs_query_tick(void *user)
{
	struct pfs_query *query = user;
	int64_t now;

	if (query->stop)
		return 1;
	/* it goes on every few milliseconds; who asks is looked after no more often */
	now = pfs_clock_ns(CLOCK_MONOTONIC_COARSE);
	if (now == query->ticked_ns)
		return query->late;
	query->ticked_ns = now;
	if (query->gone && query->gone(query->gone_arg))
		query->stop = true;
	if (pfs_query_is_lost(query))
		return 1;
	if (query->stop)
		return 1;
	if (!query->deadline_ns)
		return 0;
	query->late = now >= query->deadline_ns;
	return query->late;
}

/* ---- the tree as a statement sees it ---- */

static uint64_t lock_tree(const struct pfs_query *query)
{
	return pfs_scan_lock(query->tree, "a statement");
}

static uint64_t held_ns(const struct pfs_query *query)
{
	return query->holds == 1 ? pfs_now_ns() - query->held_ns : 0;
}

int pfs_query_look(void *arg)
{
	struct pfs_query *query = arg;

	if (pfs_query_tick(query))
		return -EINTR;
	if (held_ns(query) < HELD_NS)
		return 0;
	pfs_scan_unlock(query->tree); /* a writer who waits comes now */
	if (lock_tree(query) != query->epoch)
		return -EAGAIN;
	query->held_ns = pfs_now_ns();
	return 0;
}

int pfs_query_poll(struct pfs_query *query)
{
	uint64_t ns;

	if (pfs_query_tick(query))
		return -EINTR;
	ns = query->frozen ? 0 : held_ns(query);
	if (ns < HELD_NS)
		return 0;
	if (!pfs_hold_is_wanted(query->tree))
		return ns < RUN_NS ? 0 : PFS_RUN_PAUSE;
	return ns < MOST_NS ? PFS_RUN_PAUSE : -EAGAIN;
}

int pfs_query_look_around(struct pfs_query *query)
{
	pfs_visible_unref(query->visible);
	query->visible = NULL;
	return query->is_limited ? pfs_visible_get(&query->visible, query->tree, &query->viewer)
				 : 0;
}

int pfs_query_hold(struct pfs_query *query)
{
	uint64_t epoch;
	int error;

	if (!query->holds) {
		if (query->is_limited && !query->bound)
			PFS_TRY(pfs_visible_make(query->tree, &query->viewer));
		if (!query->bound)
			pfs_codes_prepare_wanted(query->tree);
		epoch = lock_tree(query);
		if (query->bound && epoch != query->epoch) {
			pfs_scan_unlock(query->tree);
			return -EAGAIN;
		}
		error = query->bound ? 0 : pfs_query_look_around(query);
		if (error) {
			pfs_scan_unlock(query->tree);
			return error;
		}
		query->epoch = epoch;
		query->bound = true;
		query->held_ns = pfs_now_ns();
	}
	query->holds++;
	return 0;
}

void pfs_query_release(struct pfs_query *query)
{
	if (--query->holds == 0)
		pfs_scan_unlock(query->tree);
}

void pfs_query_let_go(struct pfs_query *query)
{
	if (query->holds)
		pfs_query_release(query);
}

void pfs_query_interrupt(struct pfs_query *query)
{
	query->stop = true;
	pfs_sql_interrupt(query->connection->sql);
}
