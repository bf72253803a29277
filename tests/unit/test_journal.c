/* SPDX-License-Identifier: MIT */
/* What reaches the store, when, and what happens when it cannot. */
#include "tree_util.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fs/change/change.h"
#include "fs/journal/journal.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/sides.h"
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
	return atomic_load(&prune_error) ? atomic_load(&prune_error) : __real_pfs_history_prune(store);
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

static int setup(void **state)
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

static int try_make(const char *name, uint64_t *ino)
{
	struct pfs_entry entry;
	int rc = pfs_tree_make(tree, &entry, ROOT, name, S_IFREG | 0644, 0, &temp_root);

	if (!rc && ino)
		*ino = entry.attr.st_ino;
	return rc;
}

static uint64_t make(const char *name)
{
	uint64_t ino = 0;

	assert_int_equal(try_make(name, &ino), 0);
	return ino;
}

static void set_mode(uint64_t ino, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &(struct stat){.st_mode = mode},
					  PFS_SET_MODE, &temp_root),
			 0);
}

static bool exists(const char *name)
{
	struct pfs_entry entry;
	int rc = pfs_tree_lookup(tree, &entry, ROOT, name);

	if (!rc)
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return !rc;
}

static void sync_and_reset(void)
{
	assert_int_equal(pfs_tree_sync(tree), 0);
	n_commits = n_puts = n_removals = 0;
}

static struct pfs_store_totals totals(void)
{
	struct pfs_store_totals out;

	assert_int_equal(pfs_store_totals(tree->store, &out), 0);
	return out;
}

/* Waits for something that the committer does in its own time. */
static void wait_until(bool (*done)(void))
{
	for (int i = 0; i < 3000 && !done(); i++)
		(void)usleep(10000);
	assert_true(done());
}

/* ---- what is written ---- */

static void test_nothing_without_change(void **state)
{
	(void)state;
	n_commits = 0;
	assert_int_equal(pfs_tree_sync(tree), 0);
	(void)exists("x");
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(n_commits, 0);
}

static void test_coalescing(void **state)
{
	uint64_t ino = make("file");

	(void)state;
	sync_and_reset();
	for (mode_t mode = 0; mode < 0700; mode++)
		set_mode(ino, mode);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(n_puts, 1);
	assert_int_equal(n_commits, 1);
}

static void test_short_lives_leave_no_trace(void **state)
{
	uint32_t end;

	(void)state;
	(void)make("first"); /* fetches primes */
	sync_and_reset();
	end = tree->image.end;
	for (int i = 0; i < 1000; i++) {
		uint64_t ino = make("short");

		set_mode(ino, 0600);
		assert_int_equal(pfs_tree_unlink(tree, ROOT, "short"), 0);
		pfs_tree_forget(tree, ino, 1);
	}
	assert_true(tree->image.end <= end + 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(n_puts, 1); /* the root's times */
	assert_int_equal(n_removals, 0);
}

static void test_slots_are_used_again(void **state)
{
	char name[16];

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 100; i++) {
			(void)snprintf(name, sizeof(name), "f%d", i);
			pfs_tree_forget(tree, make(name), 1);
		}
		assert_int_equal(pfs_tree_sync(tree), 0);
		for (int i = 0; i < 100; i++) {
			(void)snprintf(name, sizeof(name), "f%d", i);
			assert_int_equal(pfs_tree_unlink(tree, ROOT, name), 0);
		}
		assert_int_equal(pfs_tree_sync(tree), 0);
	}
	assert_true(tree->image.end < 250);
	assert_int_equal(totals().nodes, 1);
}

static void test_more_than_the_list_holds(void **state)
{
	static uint64_t inos[PFS_DIRTY_LIST + 100];
	char name[16];

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		(void)snprintf(name, sizeof(name), "f%zu", i);
		inos[i] = make(name);
	}
	sync_and_reset();
	assert_int_equal(totals().nodes, PFS_COUNT(inos) + 1);
	/* no operation changes so much, but references may go in any number without asking for room */
	pfs_hold_write(tree, __func__);
	for (uint32_t slot = 0; slot < tree->image.end; slot++)
		if (tree->image.prime[slot])
			pfs_journal_touch(tree, slot);
	pfs_hold_end(tree);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(n_puts, PFS_COUNT(inos) + 1);
	for (size_t i = 0; i < PFS_COUNT(inos); i++) {
		(void)snprintf(name, sizeof(name), "f%zu", i);
		assert_int_equal(pfs_tree_unlink(tree, ROOT, name), 0);
	}
	for (size_t i = 0; i < PFS_COUNT(inos); i++)
		pfs_tree_forget(tree, inos[i], 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(totals().nodes, 1);
	assert_int_equal(tree->image.nodes, 1);
	assert_int_equal(tree->image.free_count, tree->image.end - 1);
}

/* ---- failure ---- */

static bool recovered(void)
{
	return pfs_tree_failure(tree) == 0;
}

static void test_failure_and_recovery(void **state)
{
	uint64_t before = make("before");

	(void)state;
	sync_and_reset();
	atomic_store(&commit_error, -EIO);
	(void)make("during");
	assert_int_equal(pfs_tree_sync(tree), -EIO);
	assert_int_equal(pfs_tree_sync(tree), -EIO);
	assert_int_equal(pfs_tree_failure(tree), -EIO);
	assert_int_equal(try_make("refused", NULL), -EROFS);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "before"), -EROFS);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "before", ROOT, "x", 0), -EROFS);
	assert_true(exists("during"));
	assert_true(exists("before"));
	pfs_tree_forget(tree, before, 1);
	atomic_store(&commit_error, 0);
	wait_until(recovered);
	(void)make("after");
	assert_int_equal(pfs_tree_sync(tree), 0);
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &quiet);
	assert_true(exists("before") && exists("during") && exists("after"));
	assert_false(exists("refused"));
}

static void test_failure_until_the_end(void **state)
{
	(void)state;
	(void)make("kept");
	assert_int_equal(pfs_tree_sync(tree), 0);
	atomic_store(&commit_error, -ENOSPC);
	(void)make("lost");
	assert_int_equal(pfs_tree_sync(tree), -ENOSPC);
	assert_int_equal(pfs_tree_close(tree), -ENOSPC);
	atomic_store(&commit_error, 0);
	tree = temp_tree_open_with(&temp, &quiet);
	assert_true(exists("kept"));
	assert_false(exists("lost"));
}

static void test_primes_after_failure(void **state)
{
	uint64_t first, second;

	(void)state;
	atomic_store(&commit_error, -EIO);
	assert_int_equal(try_make("x", NULL), -EROFS);
	atomic_store(&commit_error, 0);
	wait_until(recovered);
	first = make("x");
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &quiet);
	second = make("y");
	assert_true(second > first);
}

static bool is_forgotten(void)
{
	struct pfs_history history;

	assert_int_equal(pfs_tree_history(tree, &history), 0);
	return history.rows == 0;
}

static void test_no_space(void **state)
{
	(void)state;
	(void)make("old");
	sync_and_reset();
	atomic_store(&fake_space, 2 << 20); /* the last reserve */
	pfs_space_refresh(tree, true);
	assert_int_equal(try_make("new", NULL), -ENOSPC);
	assert_int_equal(pfs_journal_reserve(tree, 0, 100 << 20, false), -ENOSPC);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "old", ROOT, "older", 0), 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "older"), 0);
	atomic_store(&fake_space, 100);
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_tree_rmdir(tree, ROOT, "x"), -ENOSPC);
	atomic_store(&fake_space, 0);
	pfs_space_refresh(tree, true);
	(void)make("new");
}

static void set_free(uint64_t bytes, bool history)
{
	atomic_store(&fake_space, (64 << 20) + bytes); /* beyond what the log needs */
	atomic_store(&fake_history, history);
	pfs_space_refresh(tree, true);
}

/* What history will have of a change needs room, too, before the change is made. */
static void test_no_space_for_history(void **state)
{
	static const char value[PFS_ATTR_VALUE_MAX];
	uint64_t ino;

	(void)state;
	ino = make("old");
	sync_and_reset();
	set_free(6 * 4096, true);
	assert_int_equal(try_make("new", NULL), -ENOSPC);
	set_free(6 * 4096, false);
	assert_int_equal(try_make("new", NULL), 0);
	set_free(UINT64_C(1) << 30, true);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.large", value, sizeof(value), 0), 0);
	sync_and_reset();
	set_free(2 * sizeof(value), true); /* enough for nothing in its place */
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.large", "", 0, 0), -ENOSPC);
	set_free(4 * sizeof(value), true);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.large", "", 0, 0), 0);
	assert_true(atomic_load(&tree->journal->former) >= sizeof(value)); /* until it is written */
	set_free(UINT64_C(1) << 30, true);
	sync_and_reset();
	assert_int_equal(atomic_load(&tree->journal->former), 0);
	set_free(4 * sizeof(value), true);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.small", "", 0, 0), 0);
	atomic_store(&fake_space, 0);
}

/* Rows of a small store share its pages, however many they are. */
static void test_many_rows_need_no_page_each(void **state)
{
	(void)state;
	set_free(UINT64_C(3) << 30, false);
	assert_int_equal(pfs_journal_reserve(tree, 1000000, 0, true), -ENOSPC);
	atomic_store(&fake_size, 100 << 20);
	set_free(UINT64_C(3) << 30, false);
	assert_int_equal(pfs_journal_reserve(tree, 1000000, 0, true), 0);
	set_free(UINT64_C(1) << 30, false);
	assert_int_equal(pfs_journal_reserve(tree, 1000000, 0, true), -ENOSPC);
	set_free(UINT64_C(3) << 30, true);
	assert_int_equal(pfs_journal_reserve(tree, 2000000, 0, true), -ENOSPC);
	atomic_store(&fake_space, 0);
}

static int delete (uint64_t ino)
{
	const struct pfs_change_basis basis = {.epoch = tree->image.epoch};
	struct pfs_change change = {.ino = ino};
	struct pfs_change_set set = {.kind = PFS_CHANGE_REMOVE, .list = &change, .n = 1};
	char why[256];

	return pfs_tree_change(tree, &set, &basis, &temp_root, why, sizeof(why));
}

/* So does what it will have of what goes: a store is never so full that what was removed cannot be
 * committed. */
static void test_no_space_for_what_goes(void **state)
{
	static const char value[PFS_ATTR_VALUE_MAX];
	uint64_t ino[3];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		ino[i] = make((const char *[]){"a", "b", "c"}[i]);
		assert_int_equal(
			pfs_tree_setxattr(tree, ino[i], "user.large", value, sizeof(value), 0), 0);
	}
	sync_and_reset();
	atomic_store(&fake_history, true);
	atomic_store(&fake_space, sizeof(value));
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "a"), -ENOSPC);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "b", ROOT, "a", 0), -ENOSPC);
	assert_int_equal(delete (ino[0]), -ENOSPC);
	atomic_store(&fake_space, 8 * sizeof(value));
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "b", ROOT, "a", 0), 0);
	assert_true(atomic_load(&tree->journal->former) >= sizeof(value));
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "a"), 0);
	assert_true(atomic_load(&tree->journal->former) >= 2 * sizeof(value));
	assert_int_equal(delete (ino[2]), 0);
	assert_true(atomic_load(&tree->journal->former) >= sizeof(value));
	sync_and_reset();
	assert_int_equal(atomic_load(&tree->journal->former), 0);
	atomic_store(&fake_history, false);
	atomic_store(&fake_space, 0);
}

/* Each row of a side table that changes may have a page of its own, whose size is not that of the
 * row. */
static void test_no_space_for_side_rows(void **state)
{
	const struct pfs_side_rows few = {.n = 10, .size = 1000},
				   many = {.n = 10000, .size = 100000};

	(void)state;
	set_free(1 << 20, false);
	assert_true(pfs_sides_fit(tree, &few));
	assert_false(pfs_sides_fit(tree, &many));
	set_free(UINT64_C(1) << 30, false);
	assert_true(pfs_sides_fit(tree, &many));
	atomic_store(&fake_space, 0);
}

/* History that cannot be forgotten holds up nobody's rows, and is not tried for ever. */
static void test_history_cannot_be_forgotten(void **state)
{
	const struct pfs_history_rule small = {.size = 1};
	const struct pfs_tree_options options = {.commit_ms = 1000000, .history = &small};

	(void)state;
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &options);
	atomic_store(&prune_error, -ENOSPC);
	n_prunes = 0;
	for (int i = 0; i < 5; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "n%d", i);
		(void)make(name);
		assert_int_equal(pfs_tree_sync(tree), 0);
		assert_int_equal(atomic_load(&tree->journal->failure), 0);
	}
	(void)usleep(20000);
	assert_int_equal(n_prunes, 1);
	atomic_store(&prune_error, 0);
	temp_tree_close(tree);
	tree = temp_tree_open_with(&temp, &options);
	assert_true(exists("n4"));
	(void)make("more");
	assert_int_equal(pfs_tree_sync(tree), 0);
	wait_until(is_forgotten);
}

static void test_waiting_for_room(void **state)
{
	char name[16];

	(void)state;
	/* room for some rows only: committing makes room for more, so that nothing fails */
	atomic_store(&fake_space, (64 << 20) + 200 * 8192);
	pfs_space_refresh(tree, true);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)make(name);
	}
	assert_true(n_commits > 5);
}

/* ---- waiting together ---- */

static void *make_and_sync(void *arg)
{
	char name[32];

	for (int i = 0; i < 20; i++) {
		(void)snprintf(name, sizeof(name), "t%d-%d", *(int *)arg, i);
		if (try_make(name, NULL) || pfs_tree_sync(tree))
			return arg;
	}
	return NULL;
}

/* Many rows that are being written keep nobody but who changes many, too; many that are to be
 * written, nobody for longer than until the next group begins with them. */
static void test_changes_beside_a_large_group(void **state)
{
	_Atomic uint32_t *dirty = &tree->journal->n_dirty, *writing = &tree->journal->n_writing;

	(void)state;
	(void)make("whose prime is fetched");
	sync_and_reset();
	atomic_store(writing, PFS_DIRTY_WAIT);
	(void)make("beside it");
	assert_int_equal(n_commits, 0);
	assert_int_equal(pfs_journal_reserve(tree, PFS_DIRTY_COMMIT + 1, 0, true), -EAGAIN);
	atomic_store(&commit_waits, true);
	pfs_hold_write(tree, __func__);
	atomic_store(dirty, PFS_DIRTY_WAIT);
	pfs_hold_end(tree);
	assert_int_equal(pfs_journal_reserve(tree, 1, 0, true), -EAGAIN);
	(void)make("after it has begun");
	assert_int_equal(n_commits, 0);
	atomic_store(&commit_waits, false);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_journal_reserve(tree, PFS_DIRTY_COMMIT + 1, 0, true), 0);
	assert_int_equal(totals().nodes, 4);
}

static void test_syncs_share_commits(void **state)
{
	pthread_t threads[8];
	int numbers[8];

	(void)state;
	(void)make("first");
	sync_and_reset();
	atomic_store(&commit_delay_ms, 5);
	for (int i = 0; i < 8; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, make_and_sync, &numbers[i]), 0);
	}
	for (int i = 0; i < 8; i++) {
		void *failed;

		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_true(n_commits < 120); /* of 160 syncs; about 40 as a rule */
}

/* ---- content without a name ---- */

static uint64_t make_with_content(const char *name, size_t size)
{
	static char block[65536];
	uint64_t ino = make(name);

	memset(block, 'x', sizeof(block));
	for (size_t at = 0; at < size; at += sizeof(block))
		assert_int_equal(pfs_tree_write(tree, ino, block, sizeof(block), (int64_t)at, true,
						false),
				 sizeof(block));
	return ino;
}

static bool reaped(void)
{
	return totals().orphans == 0;
}

static void test_unlinked_while_in_use(void **state)
{
	uint64_t ino = make_with_content("file", 1 << 20);
	char bytes[4096];
	struct temp_store copy;

	(void)state;
	sync_and_reset();
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(totals().orphans, 1);
	assert_int_equal(pfs_tree_read(tree, bytes, sizeof(bytes), ino, 500000, 0),
			 sizeof(bytes));
	assert_int_equal(bytes[100], 'x');
	assert_int_equal(pfs_tree_write(tree, ino, "new", 3, 0, true, false), 3);
	assert_int_equal(pfs_tree_sync(tree), 0);
	temp_store_copy(&temp, &copy);
	pfs_tree_forget(tree, ino, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	wait_until(reaped);
	/* the same after a crash: the next daemon reaps */
	temp_tree_close(tree);
	tree = temp_tree_open_with(&copy, &quiet);
	wait_until(reaped);
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&copy), 0);
	temp_store_remove(&copy);
	tree = temp_tree_open_with(&temp, &quiet);
}

static void test_never_stored_but_written(void **state)
{
	uint64_t ino;

	(void)state;
	ino = make_with_content("file", 65536);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(totals().orphans, 1);
	pfs_tree_forget(tree, ino, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	wait_until(reaped);
}

static bool came_in_steps(void)
{
	return n_commits >= 3;
}

static void test_much_content(void **state)
{
	uint64_t ino = make_with_content("file", 40 << 20);

	(void)state;
	sync_and_reset();
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	pfs_tree_forget(tree, ino, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	wait_until(reaped);
	wait_until(came_in_steps); /* the last is counted when it returns, after others see it */
}

static void test_truncated_then_unlinked(void **state)
{
	uint64_t ino = make_with_content("file", 1 << 20);
	struct pfs_entry entry;

	(void)state;
	sync_and_reset();
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &(struct stat){0}, PFS_SET_SIZE,
					  &temp_root),
			 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	pfs_tree_forget(tree, ino, 1);
	/* teardown's check finds chunks without a node, if any are left */
}

/* ---- kill ---- */

/* Makes files and writes the number of each to fd once it is synced. */
static void work_until_killed(int fd)
{
	char name[16];

	for (int i = 0;; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		if (try_make(name, NULL))
			_exit(1);
		if (i % 3 == 2 && pfs_tree_unlink(tree, ROOT, name))
			_exit(1);
		if (i % 5 == 4 && pfs_tree_sync(tree))
			_exit(1);
		if (i % 5 == 4 && write(fd, &i, sizeof(i)) != sizeof(i))
			_exit(1);
	}
}

static void kill_once(unsigned acknowledgements)
{
	int fds[2], last = -1, status;
	char name[16];
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		(void)close(fds[0]);
		if (pfs_tree_open(&tree, temp.path, &(struct pfs_tree_options){.commit_ms = 1}) ||
		    pfs_tree_start(tree))
			_exit(1);
		work_until_killed(fds[1]);
	}
	(void)close(fds[1]);
	for (unsigned i = 0; i < acknowledgements; i++)
		assert_int_equal(read(fds[0], &last, sizeof(last)), sizeof(last));
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	while (read(fds[0], &last, sizeof(last)) == sizeof(last))
		;
	(void)close(fds[0]);
	assert_int_equal(temp_store_findings(&temp), 0);
	tree = temp_tree_open_with(&temp, &quiet);
	for (int i = 0; i <= last; i++) {
		(void)snprintf(name, sizeof(name), "f%d", i);
		assert_int_equal(exists(name), i % 3 != 2);
	}
	for (int i = 0; i < 100000; i++) { /* for the next round */
		(void)snprintf(name, sizeof(name), "f%d", i);
		if (pfs_tree_unlink(tree, ROOT, name) && i > last + 100)
			break;
	}
	temp_tree_close(tree);
}

static void test_kill(void **state)
{
	(void)state;
	temp_tree_close(tree); /* its threads must not be forked */
	for (unsigned i = 1; i < 12; i++)
		kill_once(i * 2);
	tree = temp_tree_open_with(&temp, &quiet);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stop_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_nothing_without_change),
		TEST(test_coalescing),
		TEST(test_short_lives_leave_no_trace),
		TEST(test_slots_are_used_again),
		TEST(test_more_than_the_list_holds),
		TEST(test_failure_and_recovery),
		TEST(test_failure_until_the_end),
		TEST(test_primes_after_failure),
		TEST(test_no_space),
		TEST(test_no_space_for_history),
		TEST(test_many_rows_need_no_page_each),
		TEST(test_no_space_for_what_goes),
		TEST(test_no_space_for_side_rows),
		TEST(test_history_cannot_be_forgotten),
		TEST(test_waiting_for_room),
		TEST(test_changes_beside_a_large_group),
		TEST(test_syncs_share_commits),
		TEST(test_unlinked_while_in_use),
		TEST(test_never_stored_but_written),
		TEST(test_much_content),
		TEST(test_truncated_then_unlinked),
		TEST(test_kill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
