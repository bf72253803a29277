/* SPDX-License-Identifier: MIT */
/* Many threads on one tree: in directories of their own and in a common one, with commits all the
 * time.  Made for the thread sanitizer; what can be said in the end is that nothing was lost. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/ref/temp_store.h"

#define ROOT	PFS_ROOT_PRIME
#define THREADS 6
#define STEPS	6000
#define NAMES	20

static struct temp_store temp;
static struct pfs_tree *tree;
static uint64_t common; /* directory */

struct worker {
	pthread_t thread;
	uint64_t state, own; /* directory */
	const char *failed;
	unsigned made, removed; /* in the common directory */
};

static uint32_t random_below(struct worker *worker, uint32_t n)
{
	worker->state = worker->state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(worker->state >> 33) % n;
}

static void expect(struct worker *worker, bool condition, const char *what)
{
	if (!condition && !worker->failed)
		worker->failed = what;
}

/* ---- in a directory of its own everything must go as it would alone ---- */

static void work_alone(struct worker *worker)
{
	struct pfs_entry entry, found;
	char name[16], other[16];

	(void)snprintf(name, sizeof(name), "a%u", random_below(worker, 1000));
	(void)snprintf(other, sizeof(other), "b%u", random_below(worker, 1000));
	expect(worker,
	       !pfs_tree_make(tree, &entry, worker->own, name, S_IFREG | 0600, 0, &temp_user),
	       "make");
	expect(worker, !pfs_tree_lookup(tree, &found, worker->own, name), "lookup");
	expect(worker, found.attr.st_ino == entry.attr.st_ino, "the same");
	expect(worker, !pfs_tree_rename(tree, worker->own, name, worker->own, other, 0), "rename");
	expect(worker, pfs_tree_lookup(tree, &found, worker->own, name) == -ENOENT, "renamed");
	expect(worker, !pfs_tree_unlink(tree, worker->own, other), "unlink");
	expect(worker, !pfs_tree_getattr(tree, &found, entry.attr.st_ino), "still referenced");
	expect(worker, found.attr.st_nlink == 0, "no links");
	pfs_tree_forget(tree, entry.attr.st_ino, 2);
	expect(worker, pfs_tree_getattr(tree, &found, entry.attr.st_ino) == -ESTALE, "gone");
}

/* ---- in the common directory anything may happen, but not everything ---- */

static int count(void *arg, const struct pfs_dirent *entry)
{
	(void)entry;
	++*(unsigned *)arg;
	return 0;
}

static void work_in_common(struct worker *worker)
{
	char name[16], other[16];
	struct pfs_entry entry;
	struct stat attr = {.st_mode = 0640};
	unsigned entries = 0;
	int error;

	(void)snprintf(name, sizeof(name), "c%u", random_below(worker, NAMES));
	(void)snprintf(other, sizeof(other), "c%u", random_below(worker, NAMES));
	switch (random_below(worker, 6)) {
	case 0:
	case 1:
		error = pfs_tree_make(tree, &entry, common, name,
				      random_below(worker, 2) ? S_IFREG | 0600 : S_IFDIR | 0700, 0,
				      &temp_user);
		expect(worker, !error || error == -EEXIST, "make in common");
		worker->made += !error;
		if (!error)
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
		break;
	case 2:
		error = pfs_tree_unlink(tree, common, name);
		if (error == -EISDIR)
			error = pfs_tree_rmdir(tree, common, name);
		expect(worker, !error || error == -ENOENT || error == -ENOTDIR, "remove in common");
		worker->removed += !error;
		break;
	case 3:
		error = pfs_tree_rename(tree, common, name, common, other, RENAME_EXCHANGE);
		expect(worker, !error || error == -ENOENT, "exchange in common");
		break;
	case 4:
		error = pfs_tree_lookup(tree, &entry, common, name);
		expect(worker, !error || error == -ENOENT, "lookup in common");
		if (error)
			break;
		error = pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &attr, PFS_SET_MODE,
					 &temp_user);
		expect(worker, !error, "setattr in common");
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
		break;
	default:
		error = pfs_tree_readdir(tree, common, 0, false, count, &entries);
		expect(worker, !error && entries >= 2 && entries <= NAMES + 2, "readdir of common");
	}
}

static void *work(void *arg)
{
	struct worker *worker = arg;

	for (int i = 0; i < STEPS && !worker->failed; i++) {
		if (i % 2)
			work_alone(worker);
		else
			work_in_common(worker);
		if (i % 200 == 199)
			expect(worker, !pfs_tree_sync(tree), "sync");
	}
	return NULL;
}

static uint64_t make_dir(const char *name)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(tree, &entry, ROOT, name, S_IFDIR | 0755, 0, &temp_root), 0);
	return entry.attr.st_ino;
}

static void test_threads(void **state)
{
	struct worker workers[THREADS] = {{0}};
	unsigned expected = 2, entries = 0;
	char name[16];

	(void)state;
	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &(struct pfs_tree_options){.commit_ms = 2});
	common = make_dir("common");
	for (unsigned i = 0; i < THREADS; i++) {
		(void)snprintf(name, sizeof(name), "own%u", i);
		workers[i].state = i;
		workers[i].own = make_dir(name);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
		if (workers[i].failed)
			fail_msg("thread %u: %s", i, workers[i].failed);
		expected += workers[i].made - workers[i].removed;
	}
	assert_int_equal(pfs_tree_readdir(tree, common, 0, false, count, &entries), 0);
	assert_int_equal(entries, expected);
	temp_tree_close(tree);
	assert_int_equal(temp_store_findings(&temp), 0);
	tree = temp_tree_open(&temp);
	entries = 0;
	assert_int_equal(pfs_tree_readdir(tree, common, 0, false, count, &entries), 0);
	assert_int_equal(entries, expected);
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
