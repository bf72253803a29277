/* SPDX-License-Identifier: MIT */
/* What reaches the store, when, and what happens when it cannot. */
#include "journal_util.h"

#include <signal.h>
#include <sys/wait.h>

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
	/* no operation changes so much, but references may go in any number without asking for
	 * room */
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
