/* SPDX-License-Identifier: MIT */
/* tests/unit/journal_util.h - a tree over a store that is watched and fails when it is told to. Who
 * includes it has these symbols wrapped (tests/wrap.mk). */
#ifndef PFS_TESTS_JOURNAL_UTIL_H
#define PFS_TESTS_JOURNAL_UTIL_H

#include "tests/unit/tree_util.h"

#include <time.h>
#include <unistd.h>

#include "fs/journal/journal.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"
#include "meta/history.h"

#define ROOT PFS_ROOT_PRIME

/* ---- the store, watched and made to fail; the names are the linker's ----
 * NOLINTBEGIN(bugprone-reserved-identifier) */

static _Atomic int commit_error;
static _Atomic unsigned commit_delay_ms;
static _Atomic bool commit_waits;   /* until it is false */
static _Atomic uint64_t fake_space; /* 0: the truth */
static _Atomic uint64_t fake_size;
static _Atomic bool fake_history;
static _Atomic int prune_error;
static _Atomic unsigned n_prunes;
static _Atomic unsigned n_commits, n_puts, n_removals;

int __real_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq)
{
	struct timespec delay = {.tv_nsec = atomic_load(&commit_delay_ms) * 1000000L};
	int error = atomic_load(&commit_error);

	if (delay.tv_nsec)
		(void)nanosleep(&delay, NULL);
	while (atomic_load(&commit_waits))
		(void)usleep(1000);
	if (!error)
		error = __real_pfs_store_commit(store, seq);
	else
		pfs_store_rollback(store);
	n_commits += !error;
	return error;
}

int __real_pfs_store_space(struct pfs_store *store, struct pfs_store_space *out);
int __wrap_pfs_store_space(struct pfs_store *store, struct pfs_store_space *out);
int __wrap_pfs_store_space(struct pfs_store *store, struct pfs_store_space *out)
{
	uint64_t space = atomic_load(&fake_space);

	if (!space)
		return __real_pfs_store_space(store, out);
	*out = (struct pfs_store_space){.free = space,
					.total = UINT64_C(1) << 40,
					.size = atomic_load(&fake_size),
					.keeps_history = atomic_load(&fake_history)};
	return 0;
}

int __real_pfs_history_prune(struct pfs_store *store);
int __wrap_pfs_history_prune(struct pfs_store *store);
int __wrap_pfs_history_prune(struct pfs_store *store)
{
	n_prunes++;
	return atomic_load(&prune_error) ? atomic_load(&prune_error)
					 : __real_pfs_history_prune(store);
}

int __real_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node);
int __wrap_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node);
int __wrap_pfs_store_put_node(struct pfs_store *store, const struct pfs_node_record *node)
{
	n_puts++;
	return __real_pfs_store_put_node(store, node);
}

int __real_pfs_store_remove_node(struct pfs_store *store, uint64_t prime);
int __wrap_pfs_store_remove_node(struct pfs_store *store, uint64_t prime);
int __wrap_pfs_store_remove_node(struct pfs_store *store, uint64_t prime)
{
	n_removals++;
	return __real_pfs_store_remove_node(store, prime);
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- helpers ---- */

/* Commits happen when they are asked for. */
static const struct pfs_tree_options quiet = {.commit_ms = 1000000};

static inline int setup(void **state)
{
	(void)state;
	atomic_store(&commit_error, 0);
	atomic_store(&commit_delay_ms, 0);
	atomic_store(&commit_waits, false);
	atomic_store(&fake_space, 0);
	atomic_store(&fake_size, UINT64_C(1) << 40);
	atomic_store(&fake_history, false);
	atomic_store(&prune_error, 0);
	start_tree(&quiet);
	return 0;
}

static inline int try_make(const char *name, uint64_t *ino)
{
	struct pfs_entry entry;
	int error = pfs_tree_make(tree, &entry, ROOT, name, S_IFREG | 0644, 0, &temp_root);

	if (!error && ino)
		*ino = entry.attr.st_ino;
	return error;
}

static inline uint64_t make(const char *name)
{
	uint64_t ino = 0;

	assert_int_equal(try_make(name, &ino), 0);
	return ino;
}

static inline void set_mode(uint64_t ino, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &(struct stat){.st_mode = mode},
					  PFS_SET_MODE, &temp_root),
			 0);
}

static inline bool exists(const char *name)
{
	struct pfs_entry entry;
	int error = pfs_tree_lookup(tree, &entry, ROOT, name);

	if (!error)
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return !error;
}

static inline void sync_and_reset(void)
{
	assert_int_equal(pfs_tree_sync(tree), 0);
	n_commits = n_puts = n_removals = 0;
}

static inline struct pfs_store_totals totals(void)
{
	struct pfs_store_totals out;

	assert_int_equal(pfs_store_totals(tree->store, &out), 0);
	return out;
}

/* Waits for something that the committer does in its own time. */
static inline void wait_until(bool (*done)(void))
{
	for (int i = 0; i < 3000 && !done(); i++)
		(void)usleep(10000);
	assert_true(done());
}

#endif
