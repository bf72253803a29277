/* SPDX-License-Identifier: MIT */
/* The codes' engine is filled by the first question, beside others who change directories and
 * hardly wait for it. */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "fs/image/hold.h"
#include "fs/image/snapshot.h"
#include "fs/tree/tree_impl.h"
#include "gpu/engine.h"
#include "tests/ref/temp_store.h"

#define MANY	70000 /* more than are filled while somebody holds the tree */
#define FOLDERS 8

static struct temp_store temp;
static struct pfs_tree *tree;
static uint64_t folders[FOLDERS];
static atomic_bool stopping;
static _Atomic unsigned n_moves;

/* ---- snapshots that are given up ---- */

static unsigned n_given_up; /* of the next snapshots */
static unsigned n_loads,
	n_held; /* how often the engine was filled, and how often while the tree was held */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_snapshot_fetch(struct pfs_snapshot *snapshot, void *out, unsigned column,
			      uint32_t block);
int __wrap_pfs_snapshot_fetch(struct pfs_snapshot *snapshot, void *out, unsigned column,
			      uint32_t block);
bool __real_pfs_snapshot_is_given_up(const struct pfs_snapshot *snapshot);
bool __wrap_pfs_snapshot_is_given_up(const struct pfs_snapshot *snapshot);
int __real_pfs_engine_load(struct pfs_engine *engine, const uint32_t *parent, const uint64_t *prime,
			   size_t n);
int __wrap_pfs_engine_load(struct pfs_engine *engine, const uint32_t *parent, const uint64_t *prime,
			   size_t n);

int __wrap_pfs_snapshot_fetch(struct pfs_snapshot *snapshot, void *out, unsigned column,
			      uint32_t block)
{
	return n_given_up ? -ENOMEM : __real_pfs_snapshot_fetch(snapshot, out, column, block);
}

bool __wrap_pfs_snapshot_is_given_up(const struct pfs_snapshot *snapshot)
{
	if (!n_given_up)
		return __real_pfs_snapshot_is_given_up(snapshot);
	n_given_up--;
	return true;
}

/* Others let go of the tree within a second. */
int __wrap_pfs_engine_load(struct pfs_engine *engine, const uint32_t *parent, const uint64_t *prime,
			   size_t n)
{
	unsigned ms = 0;

	n_loads++;
	while (ms < 1000 && !pfs_fair_try_write(&tree->lock.fair)) {
		(void)usleep(1000);
		ms++;
	}
	if (ms < 1000)
		pfs_fair_end(&tree->lock.fair);
	else
		n_held++;
	return __real_pfs_engine_load(engine, parent, prime, n);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static uint64_t make_directory(uint64_t parent, unsigned number)
{
	struct pfs_entry entry;
	char name[16];

	(void)snprintf(name, sizeof(name), "m%u", number);
	assert_int_equal(pfs_tree_make(tree, &entry, parent, name, S_IFDIR | 0755, 0, &temp_root),
			 0);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

/* Directories come, go and move under those that are there. */
static void *change_directories(void *arg)
{
	const uint64_t *parents = arg;
	unsigned n = 0;
	char name[16];

	for (; !atomic_load(&stopping); n++) {
		(void)make_directory(parents[n % FOLDERS], MANY + n);
		(void)snprintf(name, sizeof(name), "m%u", MANY + n);
		if (n % 3 == 0)
			assert_int_equal(pfs_tree_rmdir(tree, parents[n % FOLDERS], name), 0);
		else if (n % 3 == 1)
			assert_int_equal(pfs_tree_rename(tree, parents[n % FOLDERS], name,
							 parents[(n + 1) % FOLDERS], name, 0),
					 0);
	}
	atomic_store(&n_moves, n);
	return NULL;
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The first question fills it, which takes most of its time and none of the others'. */
static void test_first_fill(void **state PFS_UNUSED)
{
	const struct pfs_tree_options options = {.engine = PFS_ENGINE_HOST, .commit_ms = 20};
	uint64_t last = PFS_ROOT_PRIME, began, took, held, wrong = 1, ino;
	char code[200];
	pthread_t changing;

	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
	for (unsigned i = 0; i < MANY; i++) {
		uint64_t made = make_directory(i % 20 ? last : PFS_ROOT_PRIME, i);

		if (i < FOLDERS)
			folders[i] = made;
		last = made;
	}
	pfs_hold_count_cpu();
	atomic_store(&stopping, false);
	(void)pfs_hold_longest(tree, false, true);
	assert_int_equal(pthread_create(&changing, NULL, change_directories, folders), 0);
	(void)snprintf(code, sizeof(code), "%" PRIu64, 2 * folders[0]);
	began = cpu_ns();
	assert_int_equal(pfs_tree_node_of_code(tree, &ino, code), 0);
	took = cpu_ns() - began;
	held = pfs_hold_longest(tree, false, false).cpu_ns;
	assert_int_equal(ino, folders[0]);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(pfs_tree_node_of_code(tree, &ino, code), 0);
	atomic_store(&stopping, true);
	(void)pthread_join(changing, NULL);
	print_message("filled in %.1f ms, held %.1f ms, beside %u changes\n", (double)took / 1e6,
		      (double)held / 1e6, n_moves);
	assert_true(held < took / 2);
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	assert_int_equal(wrong, 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* It is filled from another one, and not while the tree is held; there are not always more to
 * come. */
static void test_given_up(void **state PFS_UNUSED)
{
	const struct pfs_tree_options options = {.engine = PFS_ENGINE_HOST};
	uint64_t root = PFS_ROOT_PRIME, count;
	const struct pfs_question question = {
		.relation = PFS_DEEPEST_COMMON, .inos = &root, .n = 1};

	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
	for (unsigned i = 0; i < MANY; i++)
		(void)make_directory(PFS_ROOT_PRIME, i);
	n_loads = n_held = 0;
	n_given_up = 1000;
	assert_int_equal(pfs_tree_count(tree, &count, &question), -EAGAIN);
	assert_int_equal(n_loads, 0);
	n_given_up = 7;
	assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
	assert_int_equal(count, 1);
	assert_int_equal(n_loads, 1);
	assert_int_equal(n_held, 0);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_fill),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
