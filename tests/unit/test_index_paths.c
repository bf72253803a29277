/* SPDX-License-Identifier: MIT */
/* The path index, against the paths of all nodes in byte order, while the tree changes.  PFS_SEED:
 * another seed. */
#include "paths_util.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fs/image/hold.h"
#include "fs/image/watch.h"
#include "fs/nodes/ordered.h"
#include "fs/tree/tree_impl.h"

#define NODES	  1500
#define CHANGES	  400
#define QUESTIONS 150

static void check_range(const struct pfs_path_range *range, bool descending)
{
	check_walk(model.tree, range, descending, NULL);
}

static void check_some(unsigned questions)
{
	char low[RANGE_ROOM], high[RANGE_ROOM];

	check_range(&(struct pfs_path_range){.low = NULL}, false);
	check_range(&(struct pfs_path_range){.low = NULL}, true);
	while (questions-- > 0) {
		const struct pfs_path_range range = random_range(low, high);

		check_range(&range, rnd(2));
	}
}

static void change_some(size_t n)
{
	while (n-- > 0)
		change_one(&model);
	look();
}

/* Each question applies some changes.  Between them names have the nodes that have them now and
 * those that had. */
static void follow_by_questions(void)
{
	const struct pfs_path_range all = {.low = NULL};
	struct pfs_path_index_walk *walk = NULL;
	unsigned late = 0;
	int error;

	(void)pfs_scan_lock(model.tree, __func__);
	do {
		error = pfs_path_index_walk_open(&walk, model.tree, &all, false);
		assert_true(error == 0 || error == -ENOENT);
		late += error == -ENOENT;
		assert_null(pfs_watch_check(model.tree));
	} while (error);
	pfs_path_index_walk_close(walk);
	pfs_scan_unlock(model.tree);
	assert_true(late > 0);
}

static void test_follows(void **state)
{
	(void)state;
	open_tree();
	random_tree(model.tree, NODES);
	look();
	change_some(CHANGES);
	assert_int_equal(pfs_path_index_make(model.tree), -ENOENT);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	for (int round = 0; round < 6; round++) {
		check_some(QUESTIONS);
		change_some(1 + rnd(CHANGES));
		if (rnd(2))
			pfs_path_index_follow(model.tree);
		(void)pfs_scan_lock(model.tree, __func__);
		assert_null(pfs_watch_check(model.tree));
		pfs_scan_unlock(model.tree);
	}
	change_some(3000); /* more than one hold applies */
	follow_by_questions();
	check_some(QUESTIONS);
	pfs_path_index_want(model.tree, false, false);
	assert_int_equal(pfs_path_index_make(model.tree), -ENOENT);
	close_tree();
}

/* A directory's subtree comes as its name with a slash behind it: what begins with less comes
 * before it. */
static void test_below_a_slash(void **state)
{
	static const char *const expected[] = {"/",   "/a",  "/a\1", "/a!", "/a-b", "/a-b/c",
					       "/a.", "/a/", "/a/x", "/a0", "/ab",  NULL};
	uint64_t a;
	size_t n = 0;

	(void)state;
	open_tree();
	a = make(2, "a", S_IFDIR | 0755);
	(void)make(a, "x", S_IFREG | 0644);
	(void)make(make(2, "a-b", S_IFDIR | 0755), "c", S_IFREG | 0644);
	for (const char *const *name = (const char *const[]){"a\1", "a!", "a.", "a0", "ab", NULL};
	     *name; name++)
		(void)make(2, *name, S_IFREG | 0644);
	look();
	for (size_t i = 0; expected[i]; i++) {
		if (strcmp(expected[i], "/a/") != 0)
			assert_string_equal(path_of(n++), expected[i]);
	}
	assert_int_equal(n, model.n);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	for (size_t i = 0; expected[i]; i++)
		for (size_t k = 0; expected[k]; k++) {
			struct pfs_path_range range = {
				.low = expected[i],
				.low_len = strlen(expected[i]),
				.high = expected[k],
				.high_len = strlen(expected[k]),
			};

			check_range(&range, false);
			check_range(&range, true);
		}
	close_tree();
}

/* A directory that moves is two keys, whatever is in it. */
static void test_moved_directory(void **state)
{
	struct pfs_path_index_info before, after;
	uint64_t top;

	(void)state;
	open_tree();
	top = make(make(2, "a", S_IFDIR | 0755), "top", S_IFDIR | 0755);
	for (unsigned i = 0; i < 1000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)make(top, name, S_IFREG | 0644);
	}
	look();
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	assert_true(pfs_path_index_describe(model.tree, &before));
	assert_int_equal(before.keys, model.n - 1 + 2);
	assert_int_equal(pfs_tree_rename(model.tree, model.seen[1].ino, "top", 2, "0", 0), 0);
	look();
	check_range(
		&(struct pfs_path_range){
			.low = "/0/f5", .low_len = 5, .high = "/0/f7", .high_len = 5},
		false);
	assert_true(pfs_path_index_describe(model.tree, &after));
	assert_int_equal(after.keys, before.keys);
	assert_int_equal(after.made, 1);
	assert_string_equal(after.state, "ready");
	close_tree();
}

/* ---- questions ---- */

/* What is asked for, in the path index or not, is the same. */
static void check_predicate(const struct pfs_predicate *p, const char *expected_how)
{
	const struct pfs_order order = {.field = PFS_FIELD_PATH, .descending = rnd(2)};
	struct pfs_ordered_question question = {
		.order = &order, .n_order = 1, .predicates = p, .n = 1, .limit = UINT64_MAX};
	struct pfs_slots with, without;
	struct pfs_ordered *ordered;
	const char *how;
	uint32_t last = PFS_NO_SLOT, slots[16];
	size_t n, total = 0;

	(void)pfs_scan_lock(model.tree, __func__);
	assert_int_equal(pfs_scan_select(model.tree, &with, p, 1, NULL, NULL), 0);
	(void)pfs_scan_estimate(model.tree, &how, p, 1);
	if (expected_how)
		assert_string_equal(how, expected_how);
	assert_int_equal(pfs_ordered_open(&ordered, model.tree, &question), 0);
	if (expected_how)
		assert_string_equal(pfs_ordered_how(ordered), expected_how);
	do {
		n = PFS_COUNT(slots);
		assert_int_equal(pfs_ordered_next(ordered, slots, &n), 0);
		for (size_t i = 0; i < n; i++) {
			if (last != PFS_NO_SLOT)
				assert_true(pfs_scan_path_is_before(
					&model.tree->image, PFS_FIELD_PATH,
					order.descending ? slots[i] : last,
					order.descending ? last : slots[i]));
			last = slots[i];
		}
		total += n;
	} while (n);
	pfs_ordered_close(ordered);
	pfs_scan_unlock(model.tree);
	assert_int_equal(total, with.n);
	pfs_path_index_want(model.tree, false, false);
	(void)pfs_scan_lock(model.tree, __func__);
	assert_int_equal(pfs_scan_select(model.tree, &without, p, 1, NULL, NULL), 0);
	pfs_scan_unlock(model.tree);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(with.n, without.n);
	if (with.n)
		assert_memory_equal(with.slot, without.slot, with.n * sizeof(*with.slot));
	pfs_slots_finish(&with);
	pfs_slots_finish(&without);
}

static void test_questions(void **state)
{
	uint64_t d, e;

	(void)state;
	open_tree();
	d = make(2, "d", S_IFDIR | 0755);
	e = make(2, "e", S_IFDIR | 0755);
	for (unsigned i = 0; i < 6000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%c%u", i % 100 ? 'x' : '1', i);
		(void)make(d, name, S_IFREG | 0644);
		(void)make(e, name, S_IFREG | 0644);
	}
	(void)make(make(d, "1", S_IFDIR | 0755), "in", S_IFREG | 0644);
	(void)make(d, "1-", S_IFREG | 0644);
	look();
	pfs_path_index_want(model.tree, true, false);
	for (unsigned i = 0; i < 2; i++) {
		const struct pfs_predicate asked[] = {
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_PREFIX,
			 .text = "/d/1",
			 .text_len = 4},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_GLOB,
			 .text = "/d/1*5",
			 .text_len = 6},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_BETWEEN,
			 .text = "/d/1-",
			 .text_len = 5,
			 .high_text = "/d/10",
			 .high_len = 5},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_BETWEEN,
			 .text = "/e/x9",
			 .text_len = 5},
		};
		const struct pfs_predicate others[] = {
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_PREFIX,
			 .text = "/d/x",
			 .text_len = 4},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_LIKE,
			 .text = "/D/1%",
			 .text_len = 5},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_PREFIX,
			 .text = "/d/1",
			 .text_len = 4,
			 .negated = true},
			{.field = PFS_FIELD_PATH,
			 .test = PFS_TEST_BETWEEN,
			 .high_text = "/",
			 .high_len = 1},
		};

		for (size_t k = 0; k < PFS_COUNT(asked); k++) {
			assert_int_equal(pfs_path_index_make(model.tree), 0);
			check_predicate(&asked[k], "path index");
		}
		for (size_t k = 0; k < PFS_COUNT(others); k++) {
			assert_int_equal(pfs_path_index_make(model.tree), 0);
			check_predicate(&others[k], NULL);
		}
	}
	close_tree();
}

static void assert_way(bool descending, const char *expected_how)
{
	const struct pfs_order order = {.field = PFS_FIELD_PATH, .descending = descending};
	struct pfs_ordered_question question = {.order = &order, .n_order = 1, .limit = 3};
	struct pfs_ordered *ordered;

	assert_int_equal(pfs_path_index_make(model.tree), 0);
	(void)pfs_scan_lock(model.tree, __func__);
	assert_int_equal(pfs_ordered_open(&ordered, model.tree, &question), 0);
	assert_string_equal(pfs_ordered_how(ordered), expected_how);
	pfs_ordered_close(ordered);
	pfs_scan_unlock(model.tree);
}

/* A few paths of all are read where they cost least: slot by slot, or in the index where the slots
 * are in no order. */
static void test_cheapest_way(void **state)
{
	uint64_t d;

	(void)state;
	open_tree();
	d = make(2, "d", S_IFDIR | 0755);
	for (unsigned i = 0; i < 500; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%03u", i);
		(void)make(d, name, S_IFREG | 0644);
	}
	(void)make(2, "e", S_IFREG | 0644);
	assert_int_equal(pfs_tree_close(model.tree), 0);
	model.tree = temp_tree_open_with(&temp, &options); /* the slots are in pre-order now */
	pfs_path_index_want(model.tree, true, false);
	assert_way(false, "names from the top down");
	assert_way(true, "path index");
	(void)make(d, "a", S_IFREG | 0644);
	assert_way(false, "path index");
	close_tree();
}

/* ---- making one while the tree changes ---- */

struct making {
	struct pfs_tree *tree;
	atomic_bool stop;
};

static void *make_main(void *arg)
{
	struct making *making = arg;

	while (!atomic_load(&making->stop)) {
		pfs_path_index_want(making->tree, true, true);
		if (pfs_path_index_make(making->tree) == 0)
			pfs_path_index_follow(making->tree);
		pfs_path_index_want(making->tree, false, false);
	}
	return NULL;
}

static void test_made_meanwhile(void **state)
{
	struct making making = {.stop = false};
	pthread_t thread;

	(void)state;
	open_tree();
	random_tree(model.tree, NODES);
	look();
	making.tree = model.tree;
	assert_int_equal(pthread_create(&thread, NULL, make_main, &making), 0);
	for (int i = 0; i < 10; i++)
		change_some(CHANGES);
	atomic_store(&making.stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	check_some(20);
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_a_slash), cmocka_unit_test(test_moved_directory),
		cmocka_unit_test(test_follows),	      cmocka_unit_test(test_questions),
		cmocka_unit_test(test_cheapest_way),  cmocka_unit_test(test_made_meanwhile),
	};
	int failed;

	begin_tests();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_tests();
	return failed;
}
