/* SPDX-License-Identifier: MIT */
/* Several threads in the same chunks of the same files, under commits: each sees what it wrote. */
#include "content_util.h"

#include <linux/falloc.h>

#define THREADS 4
#define STRIPE	10000 /* bytes that belong to one thread: chunks are shared */
#define STRIPES 40
#define SIZE	((int64_t)STRIPE * STRIPES)
#define STEPS	1500

static uint64_t files[2];
static _Atomic bool stop;

struct worker {
	int number;
	uint64_t seed;
	const char *fault;
	uint8_t bytes[PFS_COUNT(files)][SIZE]; /* of its stripes */
};

static struct worker workers[THREADS];

/* One change of, or look at, a part of a stripe of the worker's own. */
static const char *work(struct worker *worker)
{
	size_t file = below(&worker->seed, PFS_COUNT(files));
	int64_t stripe =
		(int64_t)below(&worker->seed, STRIPES / THREADS) * THREADS + worker->number;
	int64_t start = (int64_t)below(&worker->seed, STRIPE);
	int64_t length = 1 + (int64_t)below(&worker->seed, (uint64_t)(STRIPE - start));
	uint8_t *bytes, back[STRIPE];

	start += stripe * STRIPE;
	bytes = worker->bytes[file] + start;
	switch (below(&worker->seed, 4)) {
	case 0:
		for (int64_t i = 0; i < length; i++)
			bytes[i] = (uint8_t)random_number(&worker->seed);
		if (pfs_tree_write(tree, files[file], bytes, (size_t)length, start, true, false) !=
		    length)
			return "write";
		break;
	case 1:
		memset(bytes, 0, (size_t)length);
		if (pfs_tree_fallocate(tree, files[file],
				       FALLOC_FL_KEEP_SIZE |
					       (below(&worker->seed, 2) ? FALLOC_FL_PUNCH_HOLE
									: FALLOC_FL_ZERO_RANGE),
				       start, length, true))
			return "fallocate";
		break;
	default:
		if (read_at(files[file], back, (size_t)length, start) != length ||
		    memcmp(back, bytes, (size_t)length) != 0)
			return "read";
	}
	return NULL;
}

static void *work_thread(void *arg)
{
	struct worker *worker = arg;

	for (int i = 0; i < STEPS && !worker->fault; i++)
		worker->fault = work(worker);
	return NULL;
}

static void *sync_thread(void *arg)
{
	while (!atomic_load(&stop))
		if (pfs_tree_sync(tree))
			*(const char **)arg = "sync";
	return NULL;
}

/* Makes files, fills them, cuts them and removes them. */
static void *churn_thread(void *arg)
{
	static uint8_t bytes[3 * PFS_CHUNK_SIZE];
	uint64_t seed = 17;
	char name[16];

	for (int i = 0; !atomic_load(&stop); i++) {
		struct pfs_entry entry;
		struct stat attr = {0};

		(void)snprintf(name, sizeof(name), "churn%d", i % 7);
		if (pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0600, 0,
				  &root_caller)) {
			if (pfs_tree_unlink(tree, PFS_ROOT_PRIME, name))
				*(const char **)arg = "unlink";
			continue;
		}
		attr.st_size = (int64_t)below(&seed, sizeof(bytes));
		if (pfs_tree_write(tree, entry.attr.st_ino, bytes, 1 + below(&seed, sizeof(bytes)),
				   0, true, false) < 0 ||
		    pfs_tree_setxattr(tree, entry.attr.st_ino, "user.x", "1", 1, 0) ||
		    pfs_tree_setattr(tree, &entry, entry.attr.st_ino, &attr, PFS_SET_SIZE,
				     &root_caller))
			*(const char **)arg = "churn";
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
	return NULL;
}

static void check_stripes(void)
{
	static uint8_t back[SIZE];

	for (size_t file = 0; file < PFS_COUNT(files); file++) {
		assert_int_equal(read_at(files[file], back, SIZE, 0), SIZE);
		for (int64_t stripe = 0; stripe < STRIPES; stripe++)
			assert_memory_equal(back + stripe * STRIPE,
					    workers[stripe % THREADS].bytes[file] + stripe * STRIPE,
					    STRIPE);
		assert_int_equal(stat_of(files[file]).st_blocks, stored_blocks(files[file]));
	}
}

static void test_threads(void **state)
{
	const struct pfs_tree_options options = {.pending_limit = 1 << 20, .commit_ms = 5};
	const char *background[2] = {NULL, NULL};
	pthread_t threads[THREADS], syncer, churner;
	uint64_t seed = first_seed();

	(void)state;
	assert_int_equal(pfs_store_close(new_store(0)), 0);
	open_tree_as(&options);
	files[0] = make_file("a");
	files[1] = make_file("b");
	for (size_t i = 0; i < PFS_COUNT(files); i++)
		assert_int_equal(try_truncate(files[i], SIZE), 0);
	assert_int_equal(pthread_create(&syncer, NULL, sync_thread, &background[0]), 0);
	assert_int_equal(pthread_create(&churner, NULL, churn_thread, &background[1]), 0);
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		workers[i].seed = seed + (uint64_t)i;
		assert_int_equal(pthread_create(&threads[i], NULL, work_thread, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(syncer, NULL), 0);
	assert_int_equal(pthread_join(churner, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		assert_null(workers[i].fault);
	assert_null(background[0]);
	assert_null(background[1]);
	assert_int_equal(pfs_tree_sync(tree), 0);
	check_stripes();
	reopen_tree();
	check_stripes();
	assert_int_equal(count_findings(tree->store), 0);
	close_tree();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads, make_folder, remove_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
