/* SPDX-License-Identifier: MIT */
/* When a frozen tree does without the live tree's path index: after too many changes, or if memory
 * is short. PFS_SEED: another seed. */
#include "paths_frozen_util.h"

#include "fs/image/feed.h"
#include "fs/image/hold.h"
#include "meta/account.h"

#define TOO_MANY 3000u /* files: when all have moved, a frozen tree has no index */

static void make_files(uint32_t n)
{
	uint64_t directory = make(2, "d", S_IFDIR | 0755);
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)make(directory, name, S_IFREG | 0644);
	}
}

/* Moves the files that have not moved yet. */
static void move_files(void)
{
	uint64_t directory = make(2, "e", S_IFDIR | 0755);

	for (size_t i = 0; i < now.n; i++)
		if (S_ISREG(now.seen[i].attr.st_mode))
			assert_int_equal(
				pfs_tree_rename(model.tree, now.seen[now.seen[i].parent].ino,
						now.seen[i].name, directory, now.seen[i].name, 0),
				0);
}

static unsigned pieces; /* of a walk that end before the files move */

static void move_files_once(void)
{
	if (pieces-- == 0)
		move_files();
}

/* A walk that has begun goes on; none begins. */
static void test_too_many(void **state)
{
	(void)state;
	open_tree();
	make_files(TOO_MANY);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	freeze();
	assert_int_equal(open_walk(), 0);
	pieces = rnd(20);
	check_walk(frozen, &all, rnd(2), move_files_once);
	assert_int_equal(open_walk(), -ENOENT);
	thaw();
	freeze();
	assert_int_equal(open_walk(), 0);
	thaw();
	close_tree();
}

/* What it takes counts for all statements together; if they have not so much, it is lost. */
static void test_memory_counts(void **state)
{
	const uint32_t n = TOO_MANY / 4;
	uint64_t before, at_first;

	(void)state;
	open_tree();
	make_files(n);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	before = pfs_accounts_used();
	freeze();
	assert_int_equal(open_walk(), 0);
	at_first = pfs_accounts_used();
	assert_in_range(at_first, before + n / 8, SIZE_MAX); /* a bit a slot */
	assert_false(pfs_frozen_is_lost(frozen));
	move_files();
	pfs_accounts_limit(at_first + n);
	assert_int_equal(open_walk(), -ENOMEM);
	assert_true(pfs_frozen_is_lost(frozen));
	assert_in_range(pfs_accounts_used(), at_first + n * sizeof(uint64_t), SIZE_MAX); /* a key takes more */
	thaw();
	assert_int_equal(pfs_accounts_used(), before);
	pfs_accounts_limit(0);
	close_tree();
}

/* More changes than the feed remembers. */
static void overrun_feed(void)
{
	pfs_hold_write(model.tree, __func__);
	for (uint64_t n = 0; n <= PFS_FEED_CHANGES; n++)
		pfs_feed_note(&model.tree->image, model.tree->image.root, PFS_COLUMN_MODE);
	pfs_hold_end(model.tree);
}

static void overrun_feed_once(void)
{
	if (pieces-- != 0)
		return;
	move_files();
	pfs_path_index_follow(model.tree);
	overrun_feed();
}

static void test_behind_the_feed(void **state)
{
	(void)state;
	open_tree();
	make_files(9000); /* of three blocks */
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	freeze();
	pieces = rnd(20);
	check_walk(frozen, &all, rnd(2), overrun_feed_once);
	thaw();
	freeze();
	overrun_feed();
	assert_int_equal(open_walk(), -ENOENT);
	thaw();
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_memory_counts),
		cmocka_unit_test(test_behind_the_feed),
	};
	int failed;

	begin_tests();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_tests();
	return failed;
}
