/* SPDX-License-Identifier: MIT */
/* Linked originals: the copy before the first change, whole or not at all. */
#include "link_util.h"

#include <linux/falloc.h>

static void test_first_write(void **state)
{
	struct pfs_tree_options small = {.pending_limit = 1 << 20, .commit_ms = 100000};
	static uint8_t expected[LARGE + 10];
	uint64_t ino, nothing;

	begin_store(state);
	put_file("f", data, LARGE);
	put_file("nothing", "", 0);
	ino = link_to("f");
	nothing = link_to("nothing");
	end_store();
	close_tree();
	open_tree_as(&small);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, true), -EAGAIN);
	assert_true(is_linked(ino));
	write_at(ino, "changed", 7, C - 3);
	write_at(ino, "end", 3, PFS_AT_END);
	write_at(nothing, "some", 4, 0);
	memcpy(expected, data, LARGE);
	put_text(expected + C - 3, "changed");
	put_text(expected + LARGE, "end");
	for (int pass = 0; pass < 3; pass++) {
		assert_false(is_linked(ino));
		check_bytes(ino, expected, LARGE + 3);
		check_bytes(nothing, "some", 4);
		sync_tree();
		assert_false(has_source(ino));
		assert_int_equal(stored_blocks(ino), stat_of(ino).st_blocks);
		if (pass)
			reopen_tree();
	}
	assert_true(original_is("f", data, LARGE));
	assert_true(original_is("nothing", "", 0));
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

static void test_truncate(void **state)
{
	static const int64_t sizes[] = {0, 1, C, C + 1, LARGE - 1, LARGE, LARGE + 5};
	static uint8_t expected[LARGE + 100];
	uint64_t inos[PFS_COUNT(sizes)], opened, punched;

	begin_store(state);
	put_file("f", data, LARGE);
	for (size_t i = 0; i < PFS_COUNT(sizes); i++)
		inos[i] = link_to("f");
	opened = link_to("f");
	punched = link_to("f");
	end_store();
	for (size_t i = 0; i < PFS_COUNT(sizes); i++)
		assert_int_equal(try_truncate(inos[i], sizes[i]), 0);
	assert_int_equal(try_open(opened, O_WRONLY | O_TRUNC), 0);
	assert_int_equal(pfs_tree_fallocate(tree, punched,
					    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5, C, true),
			 0);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
			memset(expected, 0, sizeof(expected));
			memcpy(expected, data, (size_t)PFS_MIN(sizes[i], LARGE));
			check_bytes(inos[i], expected, sizes[i]);
			assert_false(is_linked(inos[i]));
		}
		check_bytes(opened, "", 0);
		memcpy(expected, data, LARGE);
		memset(expected + 5, 0, C);
		check_bytes(punched, expected, LARGE);
		sync_tree();
		for (size_t i = 0; i < PFS_COUNT(sizes); i++)
			assert_int_equal(stored_blocks(inos[i]), stat_of(inos[i]).st_blocks);
		reopen_tree();
	}
	assert_true(original_is("f", data, LARGE));
	close_tree();
}

static _Atomic int commits_left;

static void fail_after_some(void)
{
	if (atomic_fetch_sub(&commits_left, 1) <= 0)
		atomic_store(&commit_error, -EIO);
}

/* Broken off in the middle, with some groups committed: the original counts as before, and the next
 * copy is whole, also when the original is shorter by then. */
static void test_interrupted(void **state)
{
	struct pfs_tree_options small = {.pending_limit = 512 << 10, .commit_ms = 100000};
	uint64_t ino;

	begin_store(state);
	put_file("f", data, LARGE);
	ino = link_to("f");
	end_store();
	close_tree();
	atomic_store(&commits_left, 2);
	before_commit = fail_after_some;
	open_tree_as(&small);
	assert_int_equal(pfs_tree_write(tree, ino, "x", 1, 0, true, false), -EROFS);
	assert_true(is_linked(ino));
	check_bytes(ino, data, LARGE);
	assert_int_equal(pfs_tree_close(tree), -EIO);
	before_commit = NULL;
	atomic_store(&commit_error, 0);

	open_tree();
	assert_in_range(stored_blocks(ino), 128,
			LARGE_CHUNKS * 128); /* of the copy: they mean nothing */
	check_bytes(ino, data, LARGE);
	put_file("f", data + 9, C + 5);
	check_bytes(ino, data + 9, C + 5);
	assert_int_equal(try_truncate(ino, C + 10), 0);
	write_at(ino, data + C + 14, 5, C + 5);
	check_bytes(ino, data + 9, C + 10);
	sync_tree();
	assert_int_equal(stored_blocks(ino), 128 + 8);
	reopen_tree();
	check_bytes(ino, data + 9, C + 10);
	close_tree();
}

/* A linked file without a name is still linked, and can still be changed. */
static void test_unlinked(void **state)
{
	uint64_t read_only, changed;
	char name[32];

	begin_store(state);
	put_file("f", data, 2 * C);
	read_only = link_to("f");
	changed = link_to("f");
	end_store();
	for (uint64_t ino = read_only; ino <= changed; ino++) {
		(void)snprintf(name, sizeof(name), "n%" PRIu64, ino);
		assert_int_equal(
			pfs_tree_lookup(tree, &(struct pfs_entry){0}, PFS_ROOT_PRIME, name), 0);
		assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, name), 0);
	}
	sync_tree();
	assert_false(has_source(read_only));
	check_bytes(read_only, data, 2 * C);
	write_at(changed, data + 2 * C, 10, 2 * C);
	sync_tree();
	check_bytes(changed, data, 2 * C + 10);
	assert_false(has_source(changed));
	pfs_tree_forget(tree, read_only, 1);
	pfs_tree_forget(tree, changed, 1);
	sync_tree();
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

/* Two that want to change the same file at once: one copy, both changes. */
struct writer {
	uint64_t ino;
	int64_t offset;
};

static void *write_thread(void *arg)
{
	const struct writer *writer = arg;

	for (int i = 0; i < 50; i++)
		if (pfs_tree_write(tree, writer->ino, "12345678", 8, writer->offset + 8 * i, true,
				   false) != 8)
			return arg;
	return NULL;
}

static void test_two_writers(void **state)
{
	static uint8_t expected[LARGE];
	struct writer writers[2] = {{0, 100}, {0, LARGE - 1000}};
	pthread_t threads[2];
	void *failed;
	uint64_t ino;

	begin_store(state);
	put_file("f", data, LARGE);
	ino = link_to("f");
	end_store();
	memcpy(expected, data, LARGE);
	for (int i = 0; i < 2; i++) {
		writers[i].ino = ino;
		for (int j = 0; j < 50; j++)
			put_text(expected + writers[i].offset + 8L * j, "12345678");
		assert_int_equal(pthread_create(&threads[i], NULL, write_thread, &writers[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	check_bytes(ino, expected, LARGE);
	reopen_tree();
	check_bytes(ino, expected, LARGE);
	close_tree();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_origin, remove_folder)
	const struct CMUnitTest tests[] = {
		TEST(test_first_write), TEST(test_truncate),	TEST(test_interrupted),
		TEST(test_unlinked),	TEST(test_two_writers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
