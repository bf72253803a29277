/* SPDX-License-Identifier: MIT */
/* A change that has no room in the store is refused before it is made; what waits for room gets it.
 */
#include "journal_util.h"

#include "fs/change/change.h"
#include "fs/content/follow.h"
#include "fs/tree/sides.h"

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

/* Who holds for changes that are known needs no page for each row of them, and what was promised is
 * enough for one group. */
static void test_a_hold_has_its_room(void **state)
{
	const struct pfs_journal_need making = {.rows = 4, .made = 2000},
				      going = {.rows = 4, .gone = 2000, .removal = true};
	uint64_t lacking = 0;
	unsigned before;

	(void)state;
	assert_int_equal(pfs_follow_fetch(tree, false, true), 0);
	sync_and_reset();
	atomic_store(&fake_size, 4 << 20);
	set_free(1 << 20, false);
	assert_int_equal(pfs_journal_hold_for(tree, &lacking, &making), -ENOSPC);
	assert_in_range(lacking, (64 << 20) + (2 << 20), (64 << 20) + (4 << 20));
	set_free(4 << 20, false);
	assert_int_equal(pfs_journal_reserve(tree, 2000, 0, false), -ENOSPC);
	assert_int_equal(pfs_journal_hold_for(tree, &lacking, &making), 0);
	before = n_commits;
	for (int i = 0; i < 2000; i++) {
		char name[8];

		(void)snprintf(name, sizeof(name), "n%d", i);
		(void)make(name);
	}
	pfs_journal_let_go(tree);
	assert_int_equal(n_commits, before);
	assert_int_equal(atomic_load(&tree->journal->n_dirty), 2001);
	assert_int_equal(atomic_load(&tree->journal->promised), 0);
	sync_and_reset();
	atomic_store(&fake_space, 4 << 20);
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_journal_hold_for(tree, &lacking, &going), -ENOSPC);
	assert_in_range(lacking, 4 << 20, 5 << 20); /* all pages once, none more than once */
	atomic_store(&fake_space, 5 << 20);
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_journal_hold_for(tree, &lacking, &going), 0);
	pfs_journal_let_go(tree);
	atomic_store(&fake_history, true); /* has each of them */
	pfs_space_refresh(tree, true);
	assert_int_equal(pfs_journal_hold_for(tree, &lacking, &going), -ENOSPC);
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
				   many = {.n = 10000, .size = 100000},
				   most = {.n = 10000000, .size = 300000000};

	(void)state;
	set_free(1 << 20, false);
	assert_true(pfs_sides_fit(tree, &few));
	assert_false(pfs_sides_fit(tree, &many));
	set_free(UINT64_C(1) << 30, false);
	assert_true(pfs_sides_fit(tree, &many));
	assert_false(pfs_sides_fit(tree, &most));
	atomic_store(&fake_size, 100 << 20);
	set_free(UINT64_C(4) << 30, false); /* not a page each: they are written in their order */
	assert_true(pfs_sides_fit(tree, &most));
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, stop_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_space),
		TEST(test_no_space_for_history),
		TEST(test_many_rows_need_no_page_each),
		TEST(test_a_hold_has_its_room),
		TEST(test_no_space_for_what_goes),
		TEST(test_no_space_for_side_rows),
		TEST(test_history_cannot_be_forgotten),
		TEST(test_waiting_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
