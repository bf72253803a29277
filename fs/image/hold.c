/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "fs/image/hold.h"

#include "base/cleanup.h"
#include "base/later.h"
#include "fs/tree/tree_impl.h"

#define TICKS CLOCK_MONOTONIC_COARSE /* since the others take longer than many a hold */

#ifdef PFS_VERIFY
static _Atomic bool counts_cpu = true;
#else
static _Atomic bool counts_cpu;
#endif

/* What this thread holds. */
static _Thread_local struct {
	const struct pfs_tree *tree; /* NULL: none */
	const char *by;
	uint64_t ns, cpu_ns; /* when it began; 0: that is not counted */
	bool is_write;
} held;

void pfs_hold_create(struct pfs_tree *tree)
{
	(void)pthread_mutex_init(&tree->lock.mutex, NULL);
}

void pfs_hold_destroy(struct pfs_tree *tree)
{
	(void)pthread_mutex_destroy(&tree->lock.mutex);
}

static void begin(const struct pfs_tree *tree, const char *by, bool is_write)
{
	if (tree->image.copy)
		return;
	held.tree = tree;
	held.by = by;
	held.is_write = is_write;
	held.cpu_ns = atomic_load_explicit(&counts_cpu, memory_order_relaxed)
			      ? (uint64_t)pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID)
			      : 0;
	held.ns = (uint64_t)pfs_clock_ns(TICKS);
	pfs_later_begin();
}

static void keep_longest(struct pfs_tree_lock *lock, uint64_t ns, uint64_t cpu)
{
	struct pfs_hold *longest = &lock->longest[held.is_write];
	PFS_LOCKED(&lock->mutex);

	if (ns > longest->ns) {
		longest->ns = ns;
		longest->by = held.by;
		atomic_store_explicit(&lock->ns[held.is_write], ns, memory_order_relaxed);
	}
	if (cpu > longest->cpu_ns) {
		longest->cpu_ns = cpu;
		longest->cpu_by = held.by;
		atomic_store_explicit(&lock->cpu_ns[held.is_write], cpu, memory_order_relaxed);
	}
}

void pfs_hold_read(struct pfs_tree *tree, const char *by)
{
	pfs_fair_read(&tree->lock.fair);
	begin(tree, by, false);
}

static void wait_to_write(struct pfs_tree_lock *lock)
{
	uint64_t began = pfs_now_ns(), ns;

	pfs_fair_write(&lock->fair);
	ns = pfs_now_ns() - began;
	if (ns > atomic_load_explicit(
			 &lock->waited_ns,
			 memory_order_relaxed)) /* the lock is held: nobody else does this */
		atomic_store_explicit(&lock->waited_ns, ns, memory_order_relaxed);
}

void pfs_hold_write(struct pfs_tree *tree, const char *by)
{
	if (!pfs_fair_try_write(&tree->lock.fair))
		wait_to_write(&tree->lock);
	begin(tree, by, true);
}

void pfs_hold_end(struct pfs_tree *tree)
{
	struct pfs_tree_lock *lock = &tree->lock;
	uint64_t ns, cpu;

	if (held.tree != tree) {
		pfs_fair_end(&lock->fair);
		return;
	}
	ns = (uint64_t)pfs_clock_ns(TICKS) - held.ns;
	cpu = held.cpu_ns ? (uint64_t)pfs_clock_ns(CLOCK_THREAD_CPUTIME_ID) - held.cpu_ns : 0;
	held.tree = NULL;
	pfs_fair_end(&lock->fair);
	pfs_later_end();
	if (ns > atomic_load_explicit(&lock->ns[held.is_write], memory_order_relaxed) ||
	    cpu > atomic_load_explicit(&lock->cpu_ns[held.is_write], memory_order_relaxed))
		keep_longest(lock, ns, cpu);
}

int pfs_hold_pause(void *tree)
{
	const char *by = held.tree == tree ? held.by : "a pause";

	pfs_hold_end(tree);
	pfs_hold_read(tree, by);
	return 0;
}

bool pfs_hold_is_wanted(const struct pfs_tree *tree)
{
	return pfs_fair_is_wanted(&tree->lock.fair);
}

void pfs_hold_count_cpu(void)
{
	atomic_store(&counts_cpu, true);
}

struct pfs_hold pfs_hold_longest(struct pfs_tree *tree, bool is_write, bool reset)
{
	struct pfs_tree_lock *lock = &tree->lock;
	struct pfs_hold longest;
	PFS_LOCKED(&lock->mutex);

	longest = lock->longest[is_write];
	longest.waited_ns = is_write ? atomic_load(&lock->waited_ns) : 0;
	if (reset) {
		lock->longest[is_write] = (struct pfs_hold){0};
		if (is_write)
			atomic_store(&lock->waited_ns, 0);
		atomic_store(&lock->ns[is_write], 0);
		atomic_store(&lock->cpu_ns[is_write], 0);
	}
	return longest;
}
