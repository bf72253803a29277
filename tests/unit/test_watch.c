/* SPDX-License-Identifier: MIT */
/* Watchers of the image: told before and after, by every way of changing it, and found out when
 * they do not follow. */
#include "fs/image/feed.h"
#include "totals_util.h"
#include "watch_util.h"

static void begin(void)
{
	open_new();
	shadow_begin(tree);
}

/* ---- each way of changing something ---- */

static void set(uint64_t ino, unsigned what)
{
	struct stat attr = {.st_mode = S_ISUID | 0751, .st_uid = 7, .st_gid = 8, .st_size = 12345};
	struct pfs_entry entry;

	attr.st_mtim.tv_sec = 1000;
	attr.st_atim.tv_sec = INT64_MAX / SECOND + 7; /* beyond the columns */
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, what, &temp_root), 0);
	assert_true(totals_are_right(tree));
}

static void test_each_way(void **state)
{
	uint64_t a, b, file;
	struct pfs_entry entry;

	(void)state;
	begin();
	a = make_in(ROOT, "a", S_IFDIR | S_ISGID | 0755);
	b = make_in(a, "b", S_IFDIR | 0755);
	file = make_in(b, "file", S_IFREG | 0644);
	assert_true(totals_are_right(tree));
	assert_int_equal(pfs_tree_symlink(tree, &entry, a, "link", "target", &temp_root), 0);
	set(file, PFS_SET_MODE);
	set(file, PFS_SET_UID);
	set(a, PFS_SET_GID | PFS_SET_MTIME);
	set(file, PFS_SET_SIZE);
	set(file, PFS_SET_ATIME | PFS_SET_MTIME);
	assert_int_equal(pfs_tree_write(tree, file, "bytes", 5, 70000, false, false), 5);
	assert_true(totals_are_right(tree));
	assert_int_equal(pfs_tree_setxattr(tree, file, "user.x", "1", 1, 0), 0);
	assert_int_equal(pfs_tree_removexattr(tree, file, "user.x"), 0);
	assert_true(totals_are_right(tree));
	assert_int_equal(pfs_tree_rename(tree, a, "b", ROOT, "c", 0), 0);
	assert_true(totals_are_right(tree));
	assert_int_equal(pfs_tree_rename(tree, ROOT, "c", ROOT, "a", RENAME_EXCHANGE), 0);
	assert_true(totals_are_right(tree));
	assert_int_equal(pfs_tree_rename(tree, ROOT, "a", ROOT, "renamed", 0), 0);
	assert_int_equal(pfs_tree_unlink(tree, b, "file"), 0);
	assert_true(totals_are_right(tree));
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_true(totals_are_right(tree));
	(void)make_in(b, "another", S_IFREG | 0644); /* takes the slot that became free */
	assert_true(totals_are_right(tree));
	end();
}

/* ---- what is told ---- */

static struct {
	unsigned before, after, open, most_open;
	bool seen_old, seen_new;
} told;

static void count_before(struct pfs_tree *of, uint32_t slot, unsigned columns)
{
	told.before++;
	told.open++;
	told.most_open = PFS_MAX(told.most_open, told.open);
	if (columns & PFS_COLUMN_SIZE)
		told.seen_old = of->image.size[slot] == 0;
}

static void count_after(struct pfs_tree *of, uint32_t slot, unsigned columns)
{
	told.after++;
	told.open--;
	if (columns & PFS_COLUMN_SIZE)
		told.seen_new = of->image.size[slot] == 5;
}

static bool never_wrong(struct pfs_tree *of)
{
	(void)of;
	return true;
}

/* Old values before, new ones after, only links within a place, and no more than was asked for. */
static void test_before_and_after(void **state)
{
	static const struct pfs_watcher counter = {
		.name = "counter",
		.columns = PFS_COLUMN_SIZE | PFS_COLUMN_LINKS | PFS_COLUMN_PARENT,
		.changing = count_before,
		.changed = count_after,
		.check = never_wrong,
	};
	struct pfs_feed_follower follower = {.columns = PFS_COLUMN_SIZE};
	uint64_t file, epoch;
	uint32_t slots[4];
	size_t n = PFS_COUNT(slots);

	(void)state;
	begin();
	file = make_in(ROOT, "file", S_IFREG | 0644);
	memset(&told, 0, sizeof(told));
	pfs_hold_write(tree, __func__);
	pfs_watch(tree, &counter);
	epoch = tree->image.epoch;
	pfs_hold_end(tree);
	assert_int_equal(pfs_tree_write(tree, file, "bytes", 5, 0, false, false), 5);
	assert_true(told.seen_old && told.seen_new);
	assert_int_equal(told.before, 1);
	assert_true(tree->image.epoch > epoch);
	follower.cursor = epoch;
	assert_int_equal(pfs_feed_next(&tree->image, &follower, slots, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(slots[0], pfs_image_slot(tree, file));
	(void)make_in(ROOT, "directory", S_IFDIR | 0755);
	assert_int_equal(told.before, told.after);
	assert_int_equal(told.most_open, 2);
	end();
}

/* Watchers are told of all times that are set at once, once. */
static void test_times_are_one_change(void **state)
{
	const struct stat attr = {.st_atim.tv_sec = 1, .st_mtim.tv_sec = 2};
	struct pfs_entry entry;
	uint64_t file, epoch;

	(void)state;
	begin();
	file = make_in(ROOT, "file", S_IFREG | 0644);
	epoch = tree->image.epoch;
	assert_int_equal(pfs_tree_setattr(tree, &entry, file, &attr, PFS_SET_ATIME | PFS_SET_MTIME,
					  &temp_root),
			 0);
	assert_int_equal(entry.attr.st_atim.tv_sec, 1);
	assert_int_equal(entry.attr.st_mtim.tv_sec, 2);
	assert_int_equal(tree->image.epoch, epoch + 1);
	end();
}

/* ---- who is told ---- */

static unsigned calls[4];

static void call_0(struct pfs_tree *of PFS_UNUSED, uint32_t slot PFS_UNUSED,
		   unsigned columns PFS_UNUSED)
{
	calls[0]++;
}

static void call_1(struct pfs_tree *of PFS_UNUSED, uint32_t slot PFS_UNUSED,
		   unsigned columns PFS_UNUSED)
{
	calls[1]++;
}

static void call_2(struct pfs_tree *of PFS_UNUSED, uint32_t slot PFS_UNUSED,
		   unsigned columns PFS_UNUSED)
{
	calls[2]++;
}

static void call_3(struct pfs_tree *of PFS_UNUSED, uint32_t slot PFS_UNUSED, unsigned columns)
{
	calls[3]++;
	assert_int_equal(columns, PFS_COLUMN_PRIME);
}

static void expect_calls(unsigned a, unsigned b, unsigned c, unsigned d)
{
	const unsigned expected[] = {a, b, c, d};

	assert_memory_equal(calls, expected, sizeof(expected));
	memset(calls, 0, sizeof(calls));
}

/* Each watcher hears of the columns that it wants, in whichever order they were registered. */
static void test_each_hears_its_own(void **state)
{
	static const struct pfs_watcher watchers[] = {
		{.name = "places", .columns = PFS_COLUMN_PARENT, .changed = call_0},
		{.name = "sizes", .columns = PFS_COLUMN_SIZE, .changed = call_1},
		{.name = "both", .columns = PFS_COLUMN_NAME | PFS_COLUMN_SIZE, .changed = call_2},
		{.name = "free slots", .columns = PFS_COLUMN_PRIME, .changed = call_3},
	};
	uint64_t file;

	(void)state;
	begin();
	for (size_t i = 0; i < PFS_COUNT(watchers); i++)
		pfs_watch(tree, &watchers[i]);
	memset(calls, 0, sizeof(calls));
	file = make_in(ROOT, "file", S_IFREG | 0644);
	expect_calls(1, 0, 1, 0);
	assert_int_equal(pfs_tree_write(tree, file, "bytes", 5, 0, false, false), 5);
	expect_calls(0, 1, 1, 0);
	assert_int_equal(pfs_tree_rename(tree, ROOT, "file", ROOT, "other", 0), 0);
	expect_calls(1, 0, 1, 0);
	set(file, PFS_SET_MODE);
	expect_calls(0, 0, 0, 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "other"), 0);
	expect_calls(1, 0, 1, 0);
	pfs_tree_forget(tree, file, 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	expect_calls(0, 0, 0, 1);
	end();
}

/* A commit changes nothing that is to be seen, also where it frees slots: statements go on. */
static void test_commit_is_none(void **state)
{
	uint64_t epoch, file;
	uint32_t slot;

	(void)state;
	begin();
	file = make_in(ROOT, "file", S_IFREG | 0644);
	slot = pfs_image_slot(tree, file);
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "file"), 0);
	pfs_tree_forget(tree, file, 1);
	epoch = tree->image.epoch;
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(tree->image.prime[slot], 0);
	assert_int_equal(tree->image.epoch, epoch);
	end();
}

/* ---- a change behind their back ---- */

static void test_found_out(void **state)
{
	struct pfs_totals totals;
	uint64_t file;
	uint32_t slot;

	(void)state;
	begin();
	file = make_in(ROOT, "file", S_IFREG | 0644);
	assert_int_equal(pfs_tree_totals(tree, &totals, ROOT), 0); /* kept from here on */
	pfs_hold_write(tree, __func__);
	slot = pfs_image_slot(tree, file);
	assert_null(pfs_watch_check(tree));
	tree->image.size[slot] = 1;
	assert_string_equal(pfs_watch_check(tree), "totals");
	assert_false(pfs_watch_check_group(tree));
	tree->image.size[slot] = 0;
	assert_true(pfs_watch_check_group(tree));
	tree->image.uid[slot] = 1;
	assert_string_equal(pfs_watch_check(tree), "shadow");
	tree->image.uid[slot] = 0;
	pfs_hold_end(tree);
	end();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_way),
		cmocka_unit_test(test_before_and_after),
		cmocka_unit_test(test_times_are_one_change),
		cmocka_unit_test(test_each_hears_its_own),
		cmocka_unit_test(test_commit_is_none),
		cmocka_unit_test(test_found_out),
	};

	take_seed(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
