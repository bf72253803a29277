/* SPDX-License-Identifier: MIT */
/* The engine beside an image that changes: after random operations every kind of question is
 * answered as a walk finds it.  On the host, on a device that is none and fails at a chosen call,
 * and on a real one if there is one. */
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/log.h"
#include "fs/nodes/codes.h"
#include "fs/nodes/scan.h"
#include "tests/ref/stand_in.h"
#include "tests/ref/temp_store.h"
#include "tests/ref/tree_model.h"

static uint64_t seed = 20261121;
static struct temp_store temp;
static struct pfs_tree *tree;
static bool real_device;

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_cuda_open(struct pfs_backend **out);
int __wrap_pfs_cuda_open(struct pfs_backend **out);
int __wrap_pfs_cuda_open(struct pfs_backend **out)
{
	return real_device ? __real_pfs_cuda_open(out) : stand_in_open(out);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- what a walk finds ---- */

struct node {
	uint64_t ino;
	char *path;
	size_t up; /* index of the parent; the root's is its own */
	uint32_t depth;
};

static struct {
	struct node *nodes; /* in pre-order */
	size_t n, capacity;
} found;

static int add(void *arg, const struct pfs_walk_node *node)
{
	struct node *next;
	size_t up = found.n ? found.n - 1 : 0;

	(void)arg;
	assert_int_equal(pfs_grow(&found.nodes, &found.capacity, found.n + 1, sizeof(*next)), 0);
	while (found.n && found.nodes[up].depth >= node->depth)
		up = found.nodes[up].up;
	next = &found.nodes[found.n++];
	*next = (struct node){.ino = node->entry.attr.st_ino, .up = up, .depth = node->depth};
	assert_true(asprintf(&next->path, "/%s", node->path) > 0);
	return 0;
}

static void walk(void)
{
	for (size_t i = 0; i < found.n; i++)
		free(found.nodes[i].path);
	found.n = 0;
	assert_int_equal(pfs_tree_walk(tree, PFS_ROOT_PRIME, add, NULL), 0);
}

static bool is_above(size_t above, size_t i, bool properly)
{
	if (i == above)
		return !properly;
	while (i != above && i != 0)
		i = found.nodes[i].up;
	return i == above;
}

/* All of them are or lie under it. */
static bool is_above_all(size_t i, const size_t *asked, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		if (!is_above(i, asked[k], false))
			return false;
	}
	return true;
}

static bool is_deepest_above_all(size_t i, const size_t *asked, size_t n)
{
	if (!is_above_all(i, asked, n))
		return false;
	for (size_t j = 1; j < found.n; j++) {
		if (found.nodes[j].up == i && is_above_all(j, asked, n))
			return false;
	}
	return true;
}

static bool is_wanted(enum pfs_relation relation, const size_t *asked, size_t n, size_t i)
{
	size_t hits = 0;

	for (size_t k = 0; k < n; k++) {
		switch (relation) {
		case PFS_SUBTREE:
			hits += is_above(asked[k], i, false);
			break;
		case PFS_ANCESTORS:
		case PFS_COMMON_ANCESTORS:
			hits += is_above(i, asked[k], true);
			break;
		case PFS_CHILDREN:
			hits += i != 0 && found.nodes[i].up == asked[k];
			break;
		case PFS_PARENTS:
			hits += asked[k] != 0 && found.nodes[asked[k]].up == i;
			break;
		case PFS_DEEPEST_COMMON:
			return is_deepest_above_all(i, asked, n);
		}
	}
	return relation == PFS_COMMON_ANCESTORS ? hits == n : hits > 0;
}

/* ---- what the engine answers ---- */

#define ASKED_MAX 150 /* nodes in a question: more than go into one pass over the codes */

struct text {
	char *bytes;
	size_t size, capacity;
};

static int append(void *arg, const char *bytes, size_t size)
{
	struct text *text = arg;

	assert_int_equal(pfs_grow(&text->bytes, &text->capacity, text->size + size + 1, 1), 0);
	if (text->bytes)
		memcpy(text->bytes + text->size, bytes, size);
	text->size += size;
	return 0;
}

static void check(enum pfs_relation relation, const size_t *asked, size_t n)
{
	struct text wanted = {0}, answer = {0};
	uint64_t inos[ASKED_MAX], count, n_wanted = 0;
	const struct pfs_question question = {.relation = relation, .inos = inos, .n = n};
	char line[64];

	for (size_t k = 0; k < n; k++)
		inos[k] = found.nodes[asked[k]].ino;
	for (size_t i = 0; i < found.n; i++) {
		if (!is_wanted(relation, asked, n, i))
			continue;
		n_wanted++;
		(void)snprintf(line, sizeof(line), "%llu\t",
			       (unsigned long long)found.nodes[i].ino);
		(void)append(&wanted, line, strlen(line));
		(void)append(&wanted, found.nodes[i].path, strlen(found.nodes[i].path));
		(void)append(&wanted, "\n", 1);
	}
	assert_int_equal(pfs_tree_list(tree, &question, PFS_LIST_INO, append, &answer), 0);
	assert_int_equal(pfs_tree_count(tree, &count, &question), 0);
	assert_int_equal(count, n_wanted);
	assert_int_equal(answer.size, wanted.size);
	if (wanted.size)
		assert_memory_equal(answer.bytes, wanted.bytes, wanted.size);
	free(answer.bytes);
	free(wanted.bytes);
}

static void check_all(void)
{
	uint64_t wrong = 1;
	size_t asked[ASKED_MAX] = {0}, n;

	walk();
	check(PFS_SUBTREE, asked, 1); /* the root's: every node and its path */
	for (int relation = PFS_SUBTREE; relation <= PFS_DEEPEST_COMMON; relation++) {
		for (size_t k = 0; k < PFS_COUNT(asked); k++)
			asked[k] = tree_model_random((uint32_t)found.n);
		n = 1 + tree_model_random(tree_model_random(8) ? 4 : ASKED_MAX);
		check((enum pfs_relation)relation, asked, n);
	}
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	assert_int_equal(wrong, 0);
}

/* ---- random operations, questions in between ---- */

static void open_tree(enum pfs_engine_kind kind)
{
	const struct pfs_tree_options options = {.engine = kind, .commit_ms = 20};

	temp_store_create(&temp);
	tree = temp_tree_open_with(&temp, &options);
}

static void close_tree(void)
{
	temp_tree_close(tree);
	temp_store_remove(&temp);
}

/* Returns whether a device was left. */
static bool run(enum pfs_engine_kind kind, unsigned steps, long fail_at)
{
	struct pfs_engine_info info;

	open_tree(kind);
	tree_model_start(tree, seed++);
	for (unsigned i = 0; i < steps; i++) {
		tree_model_step();
		if (i == 30)
			stand_in.calls_left = fail_at; /* with nodes and an engine there */
		if (i % 40 == 25)
			check_all();
	}
	check_all();
	assert_int_equal(pfs_tree_engine(tree, &info), 0);
	assert_int_equal(tree_model_state_of(tree), tree_model_state());
	stand_in.calls_left = LONG_MAX;
	close_tree();
	return info.degraded;
}

static void test_host(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	assert_false(run(PFS_ENGINE_HOST, 8000, LONG_MAX));
}

static int count_lines(void *arg, const char *bytes, size_t size)
{
	uint64_t *lines = arg;

	for (size_t i = 0; i < size; i++)
		*lines += bytes[i] == '\n';
	return 0;
}

/* Who only wants to know which engine there is does not have it filled. */
static void test_described(void **state)
{
	static const uint64_t root = PFS_ROOT_PRIME;
	static const struct pfs_question children = {PFS_CHILDREN, &root, 1};
	struct pfs_engine_info info;
	uint64_t wrong;

	(void)state;
	open_tree(PFS_ENGINE_HOST);
	assert_int_equal(pfs_tree_engine(tree, &info), 0);
	assert_string_equal(info.engine, "host");
	assert_int_equal(info.directories, 0);
	assert_int_equal(pfs_tree_count(tree, &wrong, &children),
			 0); /* the index of names has them */
	assert_int_equal(pfs_tree_list(tree, &children, 0, count_lines, &wrong), 0);
	assert_int_equal(pfs_tree_engine(tree, &info), 0);
	assert_int_equal(info.directories, 0);
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	assert_int_equal(pfs_tree_engine(tree, &info), 0);
	assert_int_equal(info.directories, 1);
	close_tree();
}

/* Nor does he wait for who has it. */
static void test_described_now(void **state)
{
	struct pfs_engine_info info;
	uint64_t wrong;

	(void)state;
	open_tree(PFS_ENGINE_HOST);
	pfs_codes_lock(tree);
	assert_int_equal(pfs_tree_engine_now(tree, &info), 1);
	assert_string_equal(info.engine, "host");
	pfs_codes_unlock(tree);
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	assert_int_equal(pfs_tree_engine_now(tree, &info), 0);
	assert_int_equal(info.directories, 1);
	(void)temp_tree_make(tree, PFS_ROOT_PRIME, "d", S_IFDIR | 0755);
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	pfs_codes_lock(tree);
	assert_int_equal(pfs_tree_engine_now(tree, &info), 1);
	assert_int_equal(info.directories, 1); /* as it was last told */
	pfs_codes_unlock(tree);
	assert_int_equal(pfs_tree_engine_now(tree, &info), 0);
	assert_int_equal(info.directories, 2);
	close_tree();
}

static void test_device(void **state)
{
	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	assert_false(run(PFS_ENGINE_CUDA, 8000, LONG_MAX));
}

static void test_failing_device(void **state)
{
	static const int failures[] = {-EIO, -ENOMEM};

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	pfs_log_open(PFS_LOG_NOTHING, false);
	for (size_t f = 0; f < PFS_COUNT(failures); f++) {
		stand_in.failure = failures[f];
		for (long n = 1; n < 400; n += 1 + n / 4) {
			stand_in.reads_fail = n % 2;
			assert_true(run(PFS_ENGINE_CUDA, 400, n));
		}
	}
	stand_in.reads_fail = false;
	pfs_log_open(PFS_LOG_INFO, false);
}

static void test_real_device(void **state)
{
	struct pfs_engine *engine;

	(void)state;
	real_device = true;
	if (pfs_engine_open(&engine, PFS_ENGINE_CUDA) == -ENODEV) {
		real_device = false;
		print_message("no CUDA device: skipped\n");
		skip();
	}
	pfs_engine_close(engine);
	print_message("seed %llu\n", (unsigned long long)seed);
	assert_false(run(PFS_ENGINE_CUDA, 3000, LONG_MAX));
	for (long n = 10; n < 1000; n *= 3) {
		pfs_cuda_fail_at(n);
		(void)run(PFS_ENGINE_CUDA, 400, LONG_MAX);
		pfs_cuda_fail_at(0);
	}
	real_device = false;
}

/* So many changes between two questions that the engine is filled anew. */
static void test_many_changes(void **state)
{
	struct pfs_entry entry;
	uint64_t a, b;

	(void)state;
	open_tree(PFS_ENGINE_HOST);
	tree_model_start(tree, seed);
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "a", S_IFDIR | 0755, 0, &temp_root), 0);
	a = entry.attr.st_ino;
	assert_int_equal(
		pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, "b", S_IFDIR | 0755, 0, &temp_root), 0);
	b = entry.attr.st_ino;
	assert_int_equal(pfs_tree_make(tree, &entry, a, "x", S_IFDIR | 0755, 0, &temp_root), 0);
	check_all();
	for (unsigned i = 0; i < 300001; i++) {
		assert_int_equal(pfs_tree_rename(tree, a, "x", b, "x", 0), 0);
		assert_int_equal(pfs_tree_rename(tree, b, "x", a, "x", 0), 0);
	}
	assert_int_equal(pfs_tree_rename(tree, a, "x", b, "y", 0), 0);
	check_all();
	assert_int_equal(pfs_tree_make(tree, &entry, b, "z", S_IFREG | 0644, 0, &temp_root), 0);
	check_all();
	close_tree();
}

/* A code that memory got wrong is found, and not only by chance. */
static void test_spoiled_code(void **state)
{
	struct pfs_entry entry;
	uint64_t wrong = 0;
	char name[16];

	(void)state;
	stand_in.spoiled = 17;
	open_tree(PFS_ENGINE_CUDA);
	for (unsigned i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFDIR | 0755,
					       0, &temp_root),
				 0);
	}
	assert_int_equal(pfs_tree_check_codes(tree, &wrong), 0);
	assert_int_equal(wrong, 1);
	close_tree();
	stand_in.spoiled = 0;
}

/* ---- records: what the nodes that an answer names hold ---- */

enum { RECORDS = 300, RECORD_SIZE = 10000 };

static void fill_record(char *record, uint64_t ino)
{
	for (size_t i = 0; i < RECORD_SIZE; i++)
		record[i] = (char)(ino * 31 + i * (ino % 7 + 1));
}

/* From each line of an answer to the node's properties, by the number alone.  How many lines. */
static unsigned check_records(const char *answer)
{
	static char record[RECORD_SIZE], read[RECORD_SIZE + 1];
	unsigned n = 0;

	for (; *answer; answer = strchr(answer, '\n') + 1, n++) {
		uint64_t ino = strtoull(answer, NULL, 10);

		fill_record(record, ino);
		if (ino == PFS_ROOT_PRIME)
			continue;
		assert_int_equal(pfs_tree_getxattr(tree, read, sizeof(read), ino, "user.data"),
				 RECORD_SIZE);
		assert_memory_equal(read, record, RECORD_SIZE);
	}
	return n;
}

static void test_records(void **state)
{
	static char record[RECORD_SIZE];
	const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question all = {PFS_SUBTREE, &root, 1};
	uint64_t folder = PFS_ROOT_PRIME;
	struct text answer = {0};
	struct pfs_entry entry;
	char name[16];

	(void)state;
	open_tree(PFS_ENGINE_AUTO);
	for (unsigned i = 0; i < RECORDS; i++) {
		mode_t mode = i % 3 ? S_IFREG | 0644 : S_IFDIR | 0755;

		(void)snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(pfs_tree_make(tree, &entry, i % 10 ? folder : PFS_ROOT_PRIME, name,
					       mode, 0, &temp_root),
				 0);
		fill_record(record, entry.attr.st_ino);
		assert_int_equal(pfs_tree_setxattr(tree, entry.attr.st_ino, "user.data", record,
						   RECORD_SIZE, 0),
				 0);
		folder = S_ISDIR(mode) ? entry.attr.st_ino : folder;
	}
	for (unsigned pass = 0; pass < 2; pass++) { /* from memory, and from the disk */
		assert_int_equal(pfs_tree_list(tree, &all, PFS_LIST_INO, append, &answer), 0);
		(void)append(&answer, "", 1);
		assert_int_equal(check_records(answer.bytes), RECORDS + 1);
		answer.size = 0;
		temp_tree_close(tree);
		tree = temp_tree_open(&temp);
	}
	free(answer.bytes);
	close_tree();
}

/* ---- questions and changes at the same time ---- */

enum { FILES = 200, FOLDERS = 8, MOVES = 100 };

static uint64_t folders[FOLDERS];
static _Atomic bool stopping;
static _Atomic unsigned n_answers, n_moves;

static void *move_files(void *arg)
{
	uint64_t random = *(const uint64_t *)arg;
	char name[16];

	while (!atomic_load(&stopping)) {
		random = random * UINT64_C(6364136223846793005) + 1;
		(void)snprintf(name, sizeof(name), "%u", (unsigned)(random >> 40) % FILES);
		if (pfs_tree_rename(tree, folders[random >> 33 & 7], name,
				    folders[random >> 36 & 7], name, 0) == 0)
			atomic_fetch_add(&n_moves, 1);
	}
	return NULL;
}

/* Each file is in exactly one folder, whenever one looks, and in one subtree. */
static void *ask(void *arg)
{
	const struct pfs_question all = {PFS_CHILDREN, folders, FOLDERS};
	const struct pfs_question below = {PFS_SUBTREE, folders, FOLDERS};
	const struct pfs_question above = {PFS_ANCESTORS, folders, FOLDERS}; /* the root */

	for (unsigned i = 0; i < 150 || (atomic_load(&n_moves) <= MOVES && i < 150000); i++) {
		uint64_t lines = 0, count = 0;
		int error = pfs_tree_list(tree, &all, 0, count_lines, &lines);

		error = error ? error : pfs_tree_count(tree, &count, &all);
		if (error || lines != FILES || count != FILES)
			*(int *)arg = error ? error : -1;
		error = pfs_tree_count(tree, &count, &below);
		if (error || count != FOLDERS + FILES)
			*(int *)arg = error ? error : -2;
		error = pfs_tree_count(tree, &count, &above);
		if (error || count != 1)
			*(int *)arg = error ? error : -3;
		atomic_fetch_add(&n_answers, 1);
	}
	return NULL;
}

static void ask_together(enum pfs_engine_kind kind)
{
	uint64_t seeds[2] = {seed, seed + 1};
	pthread_t movers[2], askers[2];
	int errors[2] = {0};
	struct pfs_entry entry;
	char name[16];

	open_tree(kind);
	atomic_store(&stopping, false);
	for (unsigned i = 0; i < FOLDERS + FILES; i++) {
		bool folder = i < FOLDERS;

		(void)snprintf(name, sizeof(name), "%u", folder ? i : i - FOLDERS);
		assert_int_equal(pfs_tree_make(tree, &entry,
					       folder ? PFS_ROOT_PRIME : folders[i % FOLDERS], name,
					       folder ? S_IFDIR | 0755 : S_IFREG | 0644, 0,
					       &temp_root),
				 0);
		if (folder)
			folders[i] = entry.attr.st_ino;
	}
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(pthread_create(&movers[i], NULL, move_files, &seeds[i]), 0);
		assert_int_equal(pthread_create(&askers[i], NULL, ask, &errors[i]), 0);
	}
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(askers[i], NULL);
	atomic_store(&stopping, true);
	for (unsigned i = 0; i < 2; i++)
		(void)pthread_join(movers[i], NULL);
	assert_true(!errors[0] && !errors[1]);
	assert_true(n_moves > MOVES);
	tree_model_start(tree, seed);
	check_all();
	close_tree();
}

static void test_together(void **state)
{
	(void)state;
	ask_together(PFS_ENGINE_AUTO);
	ask_together(PFS_ENGINE_CUDA);
}

static void *ask_beside(void *arg)
{
	struct pfs_engine *engine;
	struct pfs_bitmap *set;

	if (pfs_codes_begin(tree, &engine))
		return NULL;
	if (pfs_engine_subtree(engine, &set, 0) == 0) {
		(void)!pfs_bitmap_count(set, arg);
		pfs_bitmap_free(set);
	}
	pfs_codes_let_go(tree);
	pfs_codes_end(tree);
	return NULL;
}

/* A question is answered while another thread is in the middle of its own. */
static void test_side_by_side(void **state)
{
	struct pfs_engine *engine, *same;
	uint64_t count = 0;
	pthread_t other;

	(void)state;
	open_tree(PFS_ENGINE_HOST);
	(void)temp_tree_make(tree, PFS_ROOT_PRIME, "d", S_IFDIR | 0755);
	assert_int_equal(pfs_codes_begin(tree, &engine), 0);
	assert_int_equal(pthread_create(&other, NULL, ask_beside, &count), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	assert_int_equal(count, 2);
	assert_int_equal(pfs_codes_try(tree, &same), 0);
	assert_ptr_equal(same, engine);
	pfs_codes_let_go(tree);
	pfs_codes_end(tree);
	close_tree();
}

static uint64_t count_all(struct pfs_engine *engine)
{
	struct pfs_bitmap *set;
	uint64_t count;

	assert_int_equal(pfs_engine_subtree(engine, &set, 0), 0);
	assert_int_equal(pfs_bitmap_count(set, &count), 0);
	pfs_bitmap_free(set);
	return count;
}

/* Who has begun a question lets the tree go, and the engine stays as it is: nobody brings it up to
 * date. */
static void test_let_go(void **state)
{
	struct pfs_engine *engine, *same;

	(void)state;
	open_tree(PFS_ENGINE_HOST);
	assert_int_equal(pfs_codes_begin(tree, &engine), 0);
	pfs_codes_let_go(tree);
	(void)temp_tree_make(tree, PFS_ROOT_PRIME, "d", S_IFDIR | 0755);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_codes_try(tree, &same), -EBUSY);
	pfs_scan_unlock(tree);
	assert_int_equal(count_all(engine), 1);
	pfs_codes_end(tree);
	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_codes_try(tree, &same), 0);
	assert_int_equal(count_all(same), 2);
	pfs_scan_unlock(tree);
	close_tree();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_host),	       cmocka_unit_test(test_device),
		cmocka_unit_test(test_failing_device), cmocka_unit_test(test_real_device),
		cmocka_unit_test(test_many_changes),   cmocka_unit_test(test_spoiled_code),
		cmocka_unit_test(test_records),	       cmocka_unit_test(test_together),
		cmocka_unit_test(test_described),      cmocka_unit_test(test_described_now),
		cmocka_unit_test(test_side_by_side),   cmocka_unit_test(test_let_go),
	};
	int failed;

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < found.n; i++)
		free(found.nodes[i].path);
	free(found.nodes);
	return failed;
}
