/* SPDX-License-Identifier: MIT */
/* When a frozen tree does without the live tree's path index: after too many changes, or if memory
 * is short. PFS_SEED: another seed. */
#include "paths_frozen_util.h"

#include "fs/image/feed.h"
#include "fs/image/hold.h"
#include "fs/nodes/ordered.h"
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

/* ---- short memory ---- */

/* All nodes of the frozen tree in the order of their paths, without the index. */
static void check_without(void)
{
	const struct pfs_order order = {.field = PFS_FIELD_PATH};
	const struct pfs_ordered_question question = {.order = &order, .n_order = 1, .limit = 10};
	const struct pfs_predicate p = {.field = PFS_FIELD_PATH,
					.test = PFS_TEST_PREFIX,
					.text = "/d/f1",
					.text_len = 5};
	struct pfs_ordered *ordered;
	struct pfs_slots found;
	size_t begin_so = 0;

	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_ordered_open(&ordered, frozen, &question), 0);
	assert_string_not_equal(pfs_ordered_how(ordered), "path index");
	for (size_t i = 0; i < question.limit; i++) {
		uint32_t slot;
		size_t n = 1;

		assert_int_equal(pfs_ordered_next(ordered, &slot, &n), 0);
		assert_int_equal(n, 1);
		assert_int_equal(slot, model.seen[sorted[i]].slot);
	}
	pfs_ordered_close(ordered);
	assert_int_equal(pfs_scan_select(frozen, &found, &p, 1, NULL, NULL), 0);
	pfs_scan_unlock(frozen);
	for (size_t i = 0; i < model.n; i++)
		begin_so += strncmp(model.seen[i].path, "/d/f1", 5) == 0;
	assert_int_equal(found.n, begin_so);
	pfs_slots_finish(&found);
}

/* Has a frozen tree that has the index, and then too little memory for what changes. Returns what
 * was counted before the tree was frozen; *at_first: with the index. */
static uint64_t open_short(uint32_t n, uint64_t *at_first)
{
	uint64_t before;

	open_tree();
	make_files(n);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	before = pfs_accounts_used();
	freeze();
	assert_int_equal(open_walk(), 0);
	*at_first = pfs_accounts_used();
	pfs_accounts_limit(*at_first + n);
	return before;
}

static void close_short(uint64_t before)
{
	thaw();
	assert_int_equal(pfs_accounts_used(), before);
	pfs_accounts_limit(0);
	close_tree();
}

/* What it takes counts for all statements together; if they have not so much, questions are
 * answered without it, and what it had taken is given back. */
static void test_memory_counts(void **state)
{
	const uint32_t n = TOO_MANY / 4;
	uint64_t before, at_first;

	(void)state;
	before = open_short(n, &at_first);
	assert_in_range(at_first, before + n / 8, SIZE_MAX); /* a bit a slot */
	move_files();
	assert_int_equal(open_walk(), -ENOENT);
	assert_int_equal(pfs_accounts_used(), before);
	check_without();
	assert_false(pfs_frozen_is_lost(frozen));
	close_short(before);
}

/* A walk that has begun cannot go on without it. */
static void test_memory_is_lost(void **state)
{
	struct pfs_path_index_walk *walk;
	uint64_t before, at_first;
	uint32_t slots[8];
	size_t n = PFS_COUNT(slots);

	(void)state;
	before = open_short(TOO_MANY / 4, &at_first);
	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_path_index_walk_open(&walk, frozen, &all, false), 0);
	assert_int_equal(pfs_path_index_walk_next(walk, slots, &n), 0);
	assert_int_equal(n, PFS_COUNT(slots));
	move_files();
	assert_int_equal(pfs_path_index_walk_next(walk, slots, &n), -ENOMEM);
	assert_true(pfs_frozen_is_lost(frozen));
	pfs_path_index_walk_close(walk);
	pfs_scan_unlock(frozen);
	close_short(before);
}

/* ---- behind the feed ---- */

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

/* ---- a quarter of memory ---- */

static uint64_t quarter; /* of this machine's memory; 0: the real one */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
uint64_t __real_pfs_quarter_of_memory(void);
uint64_t __wrap_pfs_quarter_of_memory(void);
uint64_t __wrap_pfs_quarter_of_memory(void)
{
	return quarter ? quarter : __real_pfs_quarter_of_memory();
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Makes nodes in a directory of their own, whose names have so many bytes. */
static void make_named(uint32_t n, size_t len, mode_t mode)
{
	char name[PFS_NAME_MAX + 1], top[32];
	uint64_t directory;

	(void)snprintf(top, sizeof(top), "%zu %o", len, (unsigned)mode);
	directory = make(PFS_ROOT_PRIME, top, S_IFDIR | 0755);
	for (uint32_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "%08u%0*u", i, (int)len - 8, 0);
		(void)make(directory, name, mode);
	}
}

/* What an index takes of which nothing is known before. */
static uint64_t measure(void)
{
	struct pfs_path_index_info info;

	quarter = 0;
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	assert_true(pfs_path_index_describe(model.tree, &info));
	pfs_path_index_want(model.tree, false, false);
	pfs_path_index_want(model.tree, true, false);
	return info.bytes;
}

static void check_state(const char *state, uint64_t made)
{
	struct pfs_path_index_info info;

	assert_true(pfs_path_index_describe(model.tree, &info));
	assert_string_equal(info.state, state);
	assert_int_equal(info.made, made);
}

/* An index that would take more than a quarter is not made, however long names are, and one that
 * takes less by a fifth is. */
static void test_quarter(void **state)
{
	static const struct {
		size_t len;
		mode_t mode;
	} cases[] = {{12, S_IFREG | 0644},
		     {30, S_IFREG | 0644},
		     {200, S_IFREG | 0644},
		     {20, S_IFDIR | 0755},
		     {200, S_IFDIR | 0755}};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		uint64_t bytes;

		open_tree();
		make_named(2000, cases[i].len, cases[i].mode);
		bytes = measure();
		print_message("names of %zu bytes, %s: %.1f bytes a node\n", cases[i].len,
			      S_ISDIR(cases[i].mode) ? "directories" : "files",
			      (double)bytes / 2000);
		quarter = bytes;
		assert_int_equal(pfs_path_index_make(model.tree), -ENOMEM);
		check_state("wanted", 1);
		quarter = bytes / 5 * 6;
		assert_int_equal(pfs_path_index_make(model.tree), 0);
		check_state("ready", 2);
		/* it grows beyond, and goes */
		make_named(1000, cases[i].len + 1, cases[i].mode);
		pfs_path_index_follow(model.tree);
		check_state("wanted", 2);
		quarter = 0;
		close_tree();
	}
}

/* If directories alone have long names an index takes more than the average name says, which shows
 * when it is made. */
static void test_quarter_while_filling(void **state)
{
	uint64_t bytes;

	(void)state;
	open_tree();
	make_named(300, 250, S_IFDIR | 0755);
	make_named(3000, 9, S_IFREG | 0644);
	bytes = measure();
	quarter = bytes - 1;
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pfs_path_index_make(model.tree), -ENOMEM);
		check_state("wanted", 1);
	}
	quarter = bytes + 1;
	assert_int_equal(pfs_path_index_make(model.tree), -ENOMEM); /* known from before */
	quarter = 0;
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_memory_counts),
		cmocka_unit_test(test_memory_is_lost),
		cmocka_unit_test(test_behind_the_feed),
		cmocka_unit_test(test_quarter),
		cmocka_unit_test(test_quarter_while_filling),
	};
	int failed;

	begin_tests();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_tests();
	return failed;
}
