/* SPDX-License-Identifier: MIT */
/* The path index as a frozen tree has it, against the paths of all nodes when it was frozen, while
 * the tree goes on changing. PFS_SEED: another seed. */
#include "paths_frozen_util.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/order.h"
#include "fs/image/image_copy.h"
#include "fs/image/span_layout.h"
#include "fs/nodes/ordered.h"

#define NODES	  1500
#define QUESTIONS 12

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what it wraps */
struct pfs_btree *__real_pfs_image_copy_index(const struct pfs_tree *tree);
struct pfs_btree *__wrap_pfs_image_copy_index(const struct pfs_tree *tree);
int __real_pfs_span_layout_begin(const struct pfs_image *image, struct pfs_span_layout **out);
int __wrap_pfs_span_layout_begin(const struct pfs_image *image, struct pfs_span_layout **out);

static unsigned derived; /* how often a frozen tree's names, or any tree's ranges of slots, were
			    asked for */

struct pfs_btree *__wrap_pfs_image_copy_index(const struct pfs_tree *tree)
{
	derived++;
	return __real_pfs_image_copy_index(tree);
}

int __wrap_pfs_span_layout_begin(const struct pfs_image *image, struct pfs_span_layout **out)
{
	derived++;
	return __real_pfs_span_layout_begin(image, out);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* The index loses what it knows, and is made again. */
static void make_anew(void)
{
	pfs_path_index_want(model.tree, false, false);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
}

/* A question to the live tree, which applies some changes. */
static void ask_live(void)
{
	struct pfs_path_index_walk *walk = NULL;

	(void)pfs_scan_lock(model.tree, __func__);
	(void)!pfs_path_index_walk_open(&walk, model.tree, &all, false);
	pfs_path_index_walk_close(walk);
	pfs_scan_unlock(model.tree);
}

static void change_live(void)
{
	for (uint32_t n = rnd(5); n > 0; n--)
		change_one(&now);
	if (rnd(8) == 0)
		model_look(&now, model.tree);
	if (rnd(3) == 0)
		ask_live();
	if (rnd(10) == 0)
		pfs_path_index_follow(model.tree);
	if (rnd(100) == 0)
		make_anew();
}

static void open_indexed(uint32_t nodes)
{
	open_tree();
	random_tree(model.tree, nodes);
	look();
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
}

/* ---- walks ---- */

static void check_frozen(void)
{
	char low[RANGE_ROOM], high[RANGE_ROOM];

	check_walk(frozen, &(struct pfs_path_range){.low = NULL}, false, change_live);
	check_walk(frozen, &(struct pfs_path_range){.low = NULL}, true, change_live);
	for (unsigned i = 0; i < QUESTIONS; i++) {
		const struct pfs_path_range range = random_range(low, high);

		check_walk(frozen, &range, rnd(2), change_live);
	}
}

static void test_walks(void **state)
{
	(void)state;
	open_indexed(NODES);
	for (unsigned round = 0; round < 8; round++) {
		/* Some that the index has not followed, and some that the frozen tree knows nothing
		 * of. */
		for (uint32_t n = rnd(100); n > 0; n--)
			change_one(&model);
		freeze();
		for (uint32_t n = rnd(200); n > 0; n--)
			change_one(&now);
		check_frozen();
		thaw();
	}
	close_tree();
}

/* A directory moves while its files are listed, and others take its name and that of the one
 * above. */
static void test_moved_directory(void **state)
{
	const struct pfs_path_range range = {
		.low = "/a/top/f5", .low_len = 9, .high = "/a/top/f7", .high_len = 9};
	uint64_t a, top;

	(void)state;
	open_tree();
	a = make(2, "a", S_IFDIR | 0755);
	top = make(a, "top", S_IFDIR | 0755);
	for (unsigned i = 0; i < 1000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)make(top, name, S_IFREG | 0644);
	}
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	freeze();
	assert_int_equal(pfs_tree_rename(model.tree, a, "top", 2, "0", 0), 0);
	assert_int_equal(pfs_tree_rmdir(model.tree, 2, "a"), 0);
	(void)make(make(make(2, "a", S_IFDIR | 0755), "top", S_IFDIR | 0755), "f55",
		   S_IFREG | 0644);
	ask_live();
	check_walk(frozen, &range, false, change_live);
	check_walk(frozen, &range, true, change_live);
	thaw();
	close_tree();
}

/* ---- questions ---- */

/* The first `limit` nodes of a range in their order, and all of them as a selection; returns how
 * often the index was used. */
static unsigned check_questions(const struct pfs_path_range *range, uint64_t limit)
{
	const struct pfs_predicate p = {.field = PFS_FIELD_PATH,
					.test = PFS_TEST_BETWEEN,
					.text = range->low,
					.text_len = range->low_len,
					.high_text = range->high,
					.high_len = range->high_len};
	const struct pfs_order order = {.field = PFS_FIELD_PATH, .descending = rnd(2)};
	const struct pfs_ordered_question question = {
		.order = &order, .n_order = 1, .predicates = &p, .n = 1, .limit = limit};
	struct pfs_ordered *ordered;
	struct pfs_slots found;
	unsigned used;
	const char *how;
	uint32_t slot;
	size_t n = 1, total = 0, at;

	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_ordered_open(&ordered, frozen, &question), 0);
	used = strcmp(pfs_ordered_how(ordered), "path index") == 0;
	for (at = 0; at < model.n && limit > 0; at++) {
		const struct seen *seen =
			&model.seen[sorted[order.descending ? model.n - 1 - at : at]];

		if (!is_within(range, seen->path))
			continue;
		n = 1;
		assert_int_equal(pfs_ordered_next(ordered, &slot, &n), 0);
		assert_int_equal(n, 1);
		assert_int_equal(slot, seen->slot);
		if (--limit % 16 == 0)
			change_live();
	}
	pfs_ordered_close(ordered);
	assert_int_equal(pfs_scan_select(frozen, &found, &p, 1, NULL, NULL), 0);
	(void)pfs_scan_estimate(frozen, &how, &p, 1);
	used += strcmp(how, "path index") == 0;
	pfs_scan_unlock(frozen);
	for (size_t i = 0; i < model.n; i++)
		total += is_within(range, model.seen[i].path);
	assert_int_equal(found.n, total);
	pfs_slots_finish(&found);
	return used;
}

static void test_questions(void **state)
{
	char low[RANGE_ROOM], high[RANGE_ROOM];
	unsigned used = 0;

	(void)state;
	open_indexed(NODES);
	for (unsigned round = 0; round < 4; round++) {
		freeze();
		for (unsigned i = 0; i < 30; i++) {
			struct pfs_path_range range = random_range(low, high);

			if (!range.low)
				range.low_len = 0;
			if (!range.high)
				range.high_len = 0;
			used += check_questions(&range, rnd(2) ? 1 + rnd(40) : UINT64_MAX);
			change_live();
		}
		thaw();
	}
	assert_true(used > 40);
	close_tree();
}

/* What a predicate of paths selects, against the model's paths that begin or end so. */
static void check_select(const struct pfs_predicate *p, const char *begins, const char *ends)
{
	struct pfs_slots found;
	size_t n = 0;

	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_scan_select(frozen, &found, p, 1, NULL, NULL), 0);
	pfs_scan_unlock(frozen);
	for (size_t i = 0; i < model.n; i++) {
		const char *path = model.seen[i].path;
		size_t len = strlen(path), end = strlen(ends);

		if (strncmp(path, begins, strlen(begins)) != 0 || len < end ||
		    strcmp(path + len - end, ends) != 0)
			continue;
		assert_true(n < found.n && bsearch(&model.seen[i].slot, found.slot, found.n,
						   sizeof(*found.slot), pfs_compare_u32));
		n++;
	}
	assert_int_equal(n, found.n);
	pfs_slots_finish(&found);
}

/* Whole paths and beginnings of some, and the first ones of all: neither names nor ranges of slots
 * are derived for them. */
static void test_nothing_is_derived(void **state)
{
	static const char *const whole[] = {"/",     "/d",	"/d/x17", "/d/x17/", "//d",
					    "/none", "/d/none", "d",	  ""};
	static const char *const begins[] = {"/d/x1", "/d/1",  "/d/",	 "/d",
					     "/e/",   "/e/f/", "/none/", "/d/x17/"};
	const struct pfs_order order = {.field = PFS_FIELD_PATH};
	const struct pfs_ordered_question first = {.order = &order, .n_order = 1, .limit = 1};
	struct pfs_ordered *ordered;
	uint64_t d;

	(void)state;
	open_tree();
	d = make(2, "d", S_IFDIR | 0755);
	for (unsigned i = 0; i < 3000; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%c%u", i % 100 ? 'x' : '1', i);
		(void)make(d, name, S_IFREG | 0644);
	}
	(void)make(make(make(2, "e", S_IFDIR | 0755), "f", S_IFDIR | 0755), "g", S_IFREG | 0644);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	freeze();
	assert_int_equal(pfs_tree_rename(model.tree, 2, "e", d, "e", 0), 0);
	assert_int_equal(pfs_tree_rename(model.tree, d, "x17", 2, "none", 0), 0);
	derived = 0;
	for (size_t i = 0; i < PFS_COUNT(whole); i++) {
		const struct pfs_predicate p = {.field = PFS_FIELD_PATH,
						.test = PFS_TEST_EQUAL,
						.text = whole[i],
						.text_len = strlen(whole[i])};
		struct pfs_slots found;

		(void)pfs_scan_lock(frozen, __func__);
		assert_int_equal(pfs_scan_select(frozen, &found, &p, 1, NULL, NULL), 0);
		pfs_scan_unlock(frozen);
		assert_int_equal(found.n, i < 3);
		for (size_t k = 0; k < model.n && found.n; k++)
			assert_int_equal(strcmp(model.seen[k].path, whole[i]) == 0,
					 model.seen[k].slot == found.slot[0]);
		pfs_slots_finish(&found);
	}
	for (size_t i = 0; i < PFS_COUNT(begins); i++) {
		char glob[32];
		size_t len = (size_t)snprintf(glob, sizeof(glob), "%s*5", begins[i]);

		check_select(&(struct pfs_predicate){.field = PFS_FIELD_PATH,
						     .test = PFS_TEST_PREFIX,
						     .text = begins[i],
						     .text_len = strlen(begins[i])},
			     begins[i], "");
		check_select(&(struct pfs_predicate){.field = PFS_FIELD_PATH,
						     .test = PFS_TEST_GLOB,
						     .text = glob,
						     .text_len = len},
			     begins[i], "5");
	}
	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_ordered_open(&ordered, frozen, &first), 0);
	assert_string_equal(pfs_ordered_how(ordered), "path index");
	pfs_ordered_close(ordered);
	pfs_scan_unlock(frozen);
	assert_int_equal(derived, 0);
	thaw();
	close_tree();
}

/* For paths that do not look so, which are most, a frozen tree does not take the live one's index;
 * and finds them by ranges of slots, where there is a directory. */
static void check_others(const char *glob, unsigned n, unsigned n_derived, unsigned n_asked)
{
	const struct pfs_predicate p = {.field = PFS_FIELD_PATH,
					.test = PFS_TEST_GLOB,
					.text = glob,
					.text_len = strlen(glob),
					.negated = true};
	struct pfs_path_index_info info;
	struct pfs_slots found;

	derived = 0;
	(void)pfs_scan_lock(frozen, __func__);
	assert_int_equal(pfs_scan_select(frozen, &found, &p, 1, NULL, NULL), 0);
	pfs_scan_unlock(frozen);
	(void)pfs_path_index_describe(model.tree, &info);
	assert_int_equal(found.n, n);
	assert_int_equal(derived, n_derived);
	assert_int_equal(info.asked, n_asked);
	pfs_slots_finish(&found);
}

static void test_others_are_in_ranges(void **state)
{
	(void)state;
	open_tree();
	(void)make(make(2, "d", S_IFDIR | 0755), "f", S_IFREG | 0644);
	(void)make(2, "e", S_IFREG | 0644);
	pfs_path_index_want(model.tree, true, false);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	freeze();
	check_others("/*", 0, 0, 0);
	check_others("/*f", 3, 0, 0);
	check_others("/d/*", 3, 1, 1); /* where /d is, the index says */
	thaw();
	close_tree();
}

/* ---- an index that is made later ---- */

/* There is an index, but it is made only after the tree was frozen; or it is not wanted. */
static void test_made_later(void **state)
{
	(void)state;
	open_tree();
	random_tree(model.tree, NODES);
	freeze();
	assert_int_equal(open_walk(), -ENOENT);
	thaw();
	pfs_path_index_want(model.tree, true, false);
	freeze();
	assert_int_equal(open_walk(), -ENOENT);
	for (unsigned i = 0; i < 50; i++)
		change_one(&now);
	assert_int_equal(pfs_path_index_make(model.tree), 0);
	check_frozen();
	thaw();
	close_tree();
}

/* ---- beside a writer ---- */

static atomic_bool stop;

static void *change_main(void *arg PFS_UNUSED)
{
	while (!atomic_load(&stop)) {
		change_live();
		model_look(&now, model.tree);
	}
	return NULL;
}

/* All nodes of the frozen tree, each behind the one before. */
static void check_all(struct pfs_tree *of, bool descending)
{
	struct pfs_path_index_walk *walk;
	uint32_t slots[64], last = PFS_NO_SLOT;
	size_t n, total = 0;

	(void)pfs_scan_lock(of, __func__);
	if (pfs_path_index_walk_open(&walk, of, &all, descending)) {
		pfs_scan_unlock(of);
		return; /* more has changed since than it had followed */
	}
	do {
		n = PFS_COUNT(slots);
		assert_int_equal(pfs_path_index_walk_next(walk, slots, &n), 0);
		for (size_t i = 0; i < n; i++) {
			if (last != PFS_NO_SLOT)
				assert_true(pfs_scan_path_is_before(&of->image, PFS_FIELD_PATH,
								    descending ? slots[i] : last,
								    descending ? last : slots[i]));
			last = slots[i];
		}
		total += n;
	} while (n);
	assert_int_equal(total, of->image.nodes);
	pfs_path_index_walk_close(walk);
	pfs_scan_unlock(of);
}

static void test_beside_a_writer(void **state)
{
	const struct pfs_frozen_wish wish = {.most = UINT64_MAX};
	pthread_t thread;

	(void)state;
	open_indexed(NODES);
	model_look(&now, model.tree);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, change_main, NULL), 0);
	for (unsigned i = 0; i < 60; i++) {
		struct pfs_tree *of;

		assert_int_equal(pfs_frozen_open(&of, model.tree, &wish), 0);
		check_all(of, i % 2);
		check_all(of, i % 3 == 0);
		pfs_frozen_close(of);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	model_forget(&now);
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks),	   cmocka_unit_test(test_moved_directory),
		cmocka_unit_test(test_questions),  cmocka_unit_test(test_nothing_is_derived),
		cmocka_unit_test(test_others_are_in_ranges),
		cmocka_unit_test(test_made_later), cmocka_unit_test(test_beside_a_writer),
	};
	int failed;

	begin_tests();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	end_tests();
	return failed;
}
