/* SPDX-License-Identifier: MIT */
/* When a part of a commit is called, in which order, and with which locks. */
#include "tree_util.h"

#include <sched.h>
#include <stdatomic.h>

#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/journal/journal_impl.h"
#include "fs/journal/part.h"
#include "fs/tree/sides.h"
#include "fs/tree/tree_impl.h"

#define ROOT PFS_ROOT_PRIME


/* ---- the store, made to fail; the names are the linker's ----
 * NOLINTBEGIN(bugprone-reserved-identifier) */

static _Atomic int commits_to_fail;

int __real_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq);
int __wrap_pfs_store_commit(struct pfs_store *store, uint64_t *seq)
{
	if (atomic_load(&commits_to_fail) > 0) {
		(void)atomic_fetch_sub(&commits_to_fail, 1);
		pfs_store_rollback(store);
		return -EIO;
	}
	return __real_pfs_store_commit(store, seq);
}

/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- two parts that note what they are asked ---- */

static pthread_mutex_t notes_lock = PTHREAD_MUTEX_INITIALIZER;
static char notes[4096]; /* what was asked and of which part, protected by notes_lock */
static _Atomic unsigned wrong_locks;
static _Atomic int write_error;

static void note(char what, int part)
{
	size_t len;

	(void)pthread_mutex_lock(&notes_lock);
	len = strlen(notes);
	assert_true(len + 3 < sizeof(notes));
	notes[len] = what;
	notes[len + 1] = (char)('0' + part);
	notes[len + 2] = '\0';
	(void)pthread_mutex_unlock(&notes_lock);
}

static void take_notes(char *out)
{
	(void)pthread_mutex_lock(&notes_lock);
	memcpy(out, notes, sizeof(notes));
	notes[0] = '\0';
	(void)pthread_mutex_unlock(&notes_lock);
}

/* Both locks, or neither, are held: nobody else runs while this is asked. */
static void expect_locks(bool held)
{
	bool content = pthread_mutex_trylock(&tree->journal->parts.lock) == 0;
	bool image = pfs_fair_try_write(&tree->lock.fair);

	if (content)
		(void)pthread_mutex_unlock(&tree->journal->parts.lock);
	if (image)
		pfs_fair_end(&tree->lock.fair);
	wrong_locks += content == held || image == held;
}

/* The content lock alone. */
static void cut(int part)
{
	bool image = pfs_fair_try_write(&tree->lock.fair);

	if (image)
		pfs_fair_end(&tree->lock.fair);
	wrong_locks += !image;
	if (pthread_mutex_trylock(&tree->journal->parts.lock) == 0) {
		(void)pthread_mutex_unlock(&tree->journal->parts.lock);
		wrong_locks++;
	}
	note('c', part);
}

static int write_part(int part)
{
	expect_locks(false);
	note('w', part);
	return part == 1 ? atomic_exchange(&write_error, 0) : 0;
}

static void done(int part)
{
	expect_locks(false);
	note('d', part);
}

static int keep(int part)
{
	expect_locks(false);
	note('k', part);
	return 0;
}

static void drop(int part)
{
	expect_locks(true);
	note('x', part);
}

#define PART(n)                                                                                    \
	static void cut_##n(struct pfs_tree *of)                                                   \
	{                                                                                          \
		(void)of;                                                                          \
		cut(n);                                                                            \
	}                                                                                          \
	static int write_##n(struct pfs_tree *of)                                                  \
	{                                                                                          \
		(void)of;                                                                          \
		return write_part(n);                                                              \
	}                                                                                          \
	static void done_##n(struct pfs_tree *of)                                                  \
	{                                                                                          \
		(void)of;                                                                          \
		done(n);                                                                           \
	}                                                                                          \
	static int keep_##n(struct pfs_tree *of, uint64_t ino, uint64_t *former)                   \
	{                                                                                          \
		(void)of;                                                                          \
		(void)ino;                                                                         \
		*former += 0; /* nothing */                                                        \
		return keep(n);                                                                    \
	}                                                                                          \
	static void drop_##n(struct pfs_tree *of, uint64_t ino)                                    \
	{                                                                                          \
		(void)of;                                                                          \
		(void)ino;                                                                         \
		drop(n);                                                                           \
	}

PART(1)
PART(2)

static const struct pfs_part first = {
	.name = "first",
	.cut = cut_1,
	.write = write_1,
	.done = done_1,
	.keep = keep_1,
	.flags = PFS_NODE_ATTRS,
	.drop = drop_1,
};

static const struct pfs_part second = {
	.name = "second",
	.cut = cut_2,
	.write = write_2,
	.done = done_2,
	.keep = keep_2,
	.flags = PFS_NODE_SETTLED,
	.drop = drop_2,
};

static int commit_apart(struct pfs_tree *of)
{
	note('o', 3);
	return pfs_store_commit(of->store, NULL);
}

static const struct pfs_part apart = {.name = "apart", .commit = commit_apart};

static uint64_t make(const char *name)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name, S_IFREG | 0644, 0, &temp_root), 0);
	return entry.attr.st_ino;
}

static int setup(void **state)
{
	/* commits happen when they are asked for */
	const struct pfs_tree_options quiet = {.commit_ms = 1000000, .retry_ms = 5};
	char begun[sizeof(notes)];

	(void)state;
	notes[0] = '\0';
	atomic_store(&wrong_locks, 0);
	atomic_store(&write_error, 0);
	atomic_store(&commits_to_fail, 0);
	temp_store_create(&temp);
	assert_int_equal(pfs_tree_open(&tree, temp.path, &quiet), 0);
	pfs_take_part(tree, &first);
	pfs_take_part(tree, &second);
	pfs_take_part(tree, &apart);
	assert_int_equal(pfs_tree_start(tree), 0);
	(void)make("the first"); /* which has a group committed for its prime */
	assert_int_equal(pfs_tree_sync(tree), 0);
	take_notes(begun);
	return 0;
}

static int teardown(void **state)
{
	(void)stop_tree(state);
	assert_int_equal(atomic_load(&wrong_locks), 0);
	return 0;
}

static void flag(uint64_t ino, uint8_t set)
{
	pfs_hold_write(tree, __func__);
	pfs_image_set_flags(tree, pfs_image_slot(tree, ino), 0, set);
	pfs_hold_end(tree);
}

/* ---- tests ---- */

static void test_a_group_is_cut_written_and_done_in_order(void **state)
{
	char seen[sizeof(notes)];

	(void)state;
	(void)make("a");
	take_notes(seen);
	assert_string_equal(seen, "");
	assert_int_equal(pfs_tree_sync(tree), 0);
	take_notes(seen);
	assert_string_equal(seen, "c1c2w1w2d1d2");
}

/* The committer tries again by itself. */
static void await_recovery(void)
{
	while (pfs_tree_failure(tree))
		(void)sched_yield();
}

static void test_a_group_that_fails_is_written_again_and_not_cut_again(void **state)
{
	char seen[sizeof(notes)];

	(void)state;
	(void)make("a");
	atomic_store(&commits_to_fail, 1);
	assert_int_equal(pfs_tree_sync(tree), -EIO);
	await_recovery();
	take_notes(seen);
	assert_string_equal(seen, "c1c2w1w2w1w2d1d2");
}

static void test_a_part_that_fails_undoes_the_group(void **state)
{
	char seen[sizeof(notes)];

	(void)state;
	(void)make("a");
	atomic_store(&write_error, -ENOSPC);
	assert_int_equal(pfs_tree_sync(tree), -ENOSPC);
	await_recovery();
	assert_int_equal(pfs_tree_sync(tree), 0);
	take_notes(seen);
	assert_string_equal(seen, "c1c2w1w1w2d1d2");
}

static void test_what_is_removed_is_dropped(void **state)
{
	char seen[sizeof(notes)];
	uint64_t ino = make("a");

	(void)state;
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "a"), 0);
	take_notes(seen);
	assert_string_equal(seen, ""); /* it is referenced */
	pfs_tree_forget(tree, ino, 1);
	take_notes(seen);
	assert_string_equal(seen, "x1x2");
}

static void test_parts_keep_what_they_have_something_of(void **state)
{
	char seen[sizeof(notes)];
	uint64_t ino = make("a");

	(void)state;
	flag(ino, PFS_NODE_SETTLED);
	assert_int_equal(pfs_tree_unlink(tree, ROOT, "a"), 0);
	take_notes(seen);
	assert_string_equal(seen, "k2");
	pfs_tree_forget(tree, ino, 1);
	take_notes(seen);
	assert_string_equal(seen, "x1x2");
}

static int write_nothing(void *arg, struct pfs_store *store)
{
	(void)store;
	note('e', 3);
	return *(int *)arg;
}

static void test_a_group_of_its_own_is_committed_by_its_part(void **state)
{
	char seen[sizeof(notes)];
	int error = 0;
	struct pfs_errand errand = {.part = &apart, .write = write_nothing, .arg = &error};

	(void)state;
	assert_int_equal(pfs_journal_send(tree, &errand), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
	take_notes(seen);
	assert_ptr_equal(strstr(seen, "e3o3"), seen);
	/* what write refuses is not committed */
	error = -EDOM;
	errand = (struct pfs_errand){.part = &apart, .write = write_nothing, .arg = &error};
	assert_int_equal(pfs_journal_send(tree, &errand), -EDOM);
	take_notes(seen);
	assert_null(strstr(seen, "o3"));
	/* a part without a commit of its own has the store commit */
	error = 0;
	errand = (struct pfs_errand){.part = &first, .write = write_nothing, .arg = &error};
	assert_int_equal(pfs_journal_send(tree, &errand), 0);
}

static void test_side_tables_are_another_version_once_committed(void **state)
{
	uint64_t before = pfs_sides_version(tree);
	int error = 0;

	(void)state;
	pfs_sides_hold(tree);
	assert_int_equal(pfs_sides_commit(tree, 0, write_nothing, &error), 0);
	assert_int_equal(pfs_sides_version(tree), before + 1);
	error = -EDOM;
	assert_int_equal(pfs_sides_commit(tree, 0, write_nothing, &error), -EDOM);
	pfs_sides_release(tree);
	assert_int_equal(pfs_sides_version(tree), before + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(test_a_group_is_cut_written_and_done_in_order),
		TEST(test_a_group_that_fails_is_written_again_and_not_cut_again),
		TEST(test_a_part_that_fails_undoes_the_group),
		TEST(test_what_is_removed_is_dropped),
		TEST(test_parts_keep_what_they_have_something_of),
		TEST(test_a_group_of_its_own_is_committed_by_its_part),
		TEST(test_side_tables_are_another_version_once_committed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
