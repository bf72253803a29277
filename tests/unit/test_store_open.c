/* SPDX-License-Identifier: MIT */
/* Opening, locking, groups and numbers of a store. */
#include "tests/unit/store_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

static char side_path[300];

static bool exists(const char *suffix)
{
	(void)snprintf(side_path, sizeof(side_path), "%s%s", test_path, suffix);
	return access(side_path, F_OK) == 0;
}

static int count_node(void *arg, const struct pfs_node_record *node PFS_UNUSED)
{
	(*(int *)arg)++;
	return 0;
}

static int count_nodes(struct pfs_store *store)
{
	int count = 0;

	assert_int_equal(pfs_store_scan_nodes(store, 0, UINT64_MAX, count_node, &count), 0);
	return count;
}

static void put_file(struct pfs_store *store, uint64_t prime)
{
	struct pfs_node_record node = file_record(prime, (uint32_t)(prime & 0xffffff), "file");

	assert_int_equal(pfs_store_put_node(store, &node), 0);
}

static void a_closed_store_is_one_file(void **state PFS_UNUSED)
{
	const unsigned flags[] = {0, PFS_STORE_BULK};
	struct pfs_store *store, *second;
	uint64_t seed;
	size_t i;

	for (i = 0; i < PFS_COUNT(flags); i++) {
		store = new_store(flags[i]);
		seed = pfs_store_seed(store);
		assert_false(pfs_store_is_read_only(store));
		assert_string_equal(pfs_store_path(store), test_path);
		assert_int_equal(try_open_as(&second, PFS_STORE_CREATE), -EEXIST);
		assert_null(second);
		assert_int_equal(pfs_store_close(store), 0);
		assert_false(exists("-wal") || exists("-shm") || exists("-journal"));
		store = open_as(0);
		assert_true(pfs_store_seed(store) == seed);
		assert_int_equal(count_nodes(store), 1);
		assert_int_equal(count_findings(store), 0);
		assert_int_equal(pfs_store_close(store), 0);
		assert_false(exists("-wal") || exists("-shm") || exists("-journal"));
	}
	assert_int_equal(pfs_store_close(NULL), 0);
}

static void groups_are_whole(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	uint64_t seq = 0, next = 0;

	assert_int_equal(pfs_store_commit(store, &seq), -EINVAL);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_begin(store), -EINVAL);
	assert_int_equal(pfs_store_checkpoint(store, false), -EINVAL);
	put_file(store, 5000000029);
	assert_int_equal(count_nodes(store), 1);
	assert_int_equal(pfs_store_commit(store, &seq), 0);
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 5000000039);
	pfs_store_rollback(store);
	pfs_store_rollback(store);
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_commit(store, &next), 0);
	assert_int_equal(next, seq + 1);
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 5000000059);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_commit(store, &seq), 0);
	assert_int_equal(seq, next + 1);
	assert_int_equal(pfs_store_close(store), 0);
}

static void primes_are_handed_out_once(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	uint64_t first, end, mark;

	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_DIRECTORY, 1), -EINVAL);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_DIRECTORY, 100), 0);
	assert_int_equal(first, 3);
	assert_int_equal(end, 103);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 7), 0);
	assert_true(first == (UINT64_C(1) << 32) + 1 && end == first + 7);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 0), -EINVAL);
	pfs_store_rollback(store);
	/* the lost group's numbers are not handed out again, and the next group records that */
	assert_int_equal(pfs_store_reserved(store, &mark, PFS_PRIME_DIRECTORY), 0);
	assert_int_equal(mark, 103);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_DIRECTORY, UINT64_MAX),
			 0);
	assert_int_equal(first, 103);
	assert_true(end == UINT64_C(1) << 32);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_DIRECTORY, 1), -ENOSPC);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, UINT64_MAX), 0);
	assert_true(end < UINT64_C(1) << 63);
	assert_int_equal(pfs_store_reserve(store, &first, &end, PFS_PRIME_OTHER, 1), -ENOSPC);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
}

/* ---- locks ---- */

/* Runs fn in a child and returns its exit status. */
static int in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static int child_opens_writing(void)
{
	struct pfs_store *store;

	return -try_open_as(&store, 0);
}

static int child_opens_reading(void)
{
	struct pfs_store *store;

	return -try_open_as(&store, PFS_STORE_READ_ONLY);
}

static int child_explains(void)
{
	char line[900], pid[40];

	(void)snprintf(pid, sizeof(pid), "process %d (", (int)getppid());
	pfs_store_explain(line, sizeof(line), test_path, -EBUSY);
	return pfs_store_holder(test_path) == getppid() && strstr(line, pid) ? 0 : 1;
}

static void one_writer_or_many_readers(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0), *second;

	assert_int_equal(in_child(child_opens_writing), EBUSY);
	assert_int_equal(in_child(child_opens_reading), EBUSY);
	assert_int_equal(in_child(child_explains), 0);
	assert_int_equal(try_open_as(&second, 0), -EBUSY); /* the same process, too */
	assert_int_equal(try_open_as(&second, PFS_STORE_READ_ONLY), -EBUSY);
	assert_int_equal(pfs_store_holder(test_path), getpid());
	assert_int_equal(pfs_store_begin(store), 0); /* and that did it no harm */
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_store_holder(test_path), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	second = open_as(PFS_STORE_READ_ONLY);
	assert_true(pfs_store_is_read_only(store));
	assert_int_equal(in_child(child_opens_reading), 0);
	assert_int_equal(in_child(child_opens_writing), EBUSY);
	assert_int_equal(pfs_store_close(second), 0);
	assert_int_equal(in_child(child_opens_writing), EBUSY);
	assert_int_equal(pfs_store_begin(store), -EROFS);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(in_child(child_opens_writing), 0);
}

static void waits_for_the_lock(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		store = open_as(0);
		(void)!write(ready[1], "x", 1);
		(void)usleep(200000);
		_exit(pfs_store_close(store));
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(
		pfs_store_open(&store, test_path, &(struct pfs_store_options){.wait_ms = 20000}),
		0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

/* ---- readers beside a writer ---- */

struct race {
	struct pfs_store *store;
	bool stop;
	int scans;
};

static int see_pair(void *arg, const struct pfs_node_record *node)
{
	int64_t *size = arg;

	if (node->prime < 5000000000)
		return 0;
	if (*size < 0)
		*size = node->size;
	return *size == node->size ? 0 : 1; /* every group writes all files with one size */
}

static void *read_along(void *arg)
{
	struct race *race = arg;
	int *bad = calloc(1, sizeof(*bad));

	while (!__atomic_load_n(&race->stop, __ATOMIC_ACQUIRE)) {
		uint8_t data[PFS_CHUNK_SIZE];
		int64_t size = -1;
		size_t len = 0;

		*bad |= pfs_store_scan_nodes(race->store, 0, UINT64_MAX, see_pair, &size) != 0;
		*bad |= pfs_store_get_chunk(race->store, data, &len, 5000000000, 0) != 0;
		__atomic_fetch_add(&race->scans, 1, __ATOMIC_RELAXED);
	}
	return bad;
}

static void readers_see_whole_groups(void **state PFS_UNUSED)
{
	struct race race = {.store = new_store(0)};
	pthread_t threads[4];
	uint64_t group, i;
	void *bad;

	for (group = 0; group < 60 || __atomic_load_n(&race.scans, __ATOMIC_RELAXED) < 100;
	     group++) {
		assert_int_equal(pfs_store_begin(race.store), 0);
		for (i = 0; i < 50; i++) {
			struct pfs_node_record node =
				file_record(5000000000 + i, (uint32_t)i + 1, "f");

			node.size = (int64_t)group;
			assert_int_equal(pfs_store_put_node(race.store, &node), 0);
		}
		assert_int_equal(
			pfs_store_put_chunk(race.store, 5000000000, 0, &group, sizeof(group)), 0);
		assert_int_equal(pfs_store_commit(race.store, NULL), 0);
		for (i = 0; group == 0 && i < PFS_COUNT(threads); i++)
			assert_int_equal(pthread_create(&threads[i], NULL, read_along, &race), 0);
		if (group % 10 == 9)
			assert_int_equal(pfs_store_checkpoint(race.store, false), 0);
	}
	__atomic_store_n(&race.stop, true, __ATOMIC_RELEASE);
	for (i = 0; i < PFS_COUNT(threads); i++) {
		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_int_equal(*(int *)bad, 0);
		free(bad);
	}
	assert_int_equal(pfs_store_close(race.store), 0);
	assert_false(exists("-wal"));
}

/* ---- bulk and publish ---- */

static void bulk_reads_its_own_group(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);
	struct pfs_store_totals totals;

	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 5000000029);
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_totals(store, &totals), 0);
	assert_int_equal(totals.nodes, 2);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(PFS_STORE_READ_ONLY);
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_close(store), 0);
}

#define ROWS (3 * PFS_STORE_NODES)

struct rows {
	struct pfs_node_record node[ROWS];
	char name[ROWS][16];
	size_t n; /* found again */
};

/* Runs of rows that are alike, and rows that are not. */
static struct pfs_node_record any_row(struct rows *rows, unsigned i)
{
	struct pfs_node_record node = file_record(5000000029 + i, i + 1, rows->name[i]);

	(void)snprintf(rows->name[i], sizeof(rows->name[i]), "row %u", i);
	node.name_len = strlen(rows->name[i]);
	node.mtime.sec = i / 40;
	node.uid = i % 7 == 3 ? i : 5;
	if (i % 11 == 4)
		node.ctime = (struct pfs_time){INT64_C(1) << 40, i}; /* no number of nanoseconds */
	if (i % 13 == 5) {
		node.mode = S_IFLNK | 0777;
		node.target = "elsewhere";
		node.target_len = 4 + i % 5;
		node.size = (int64_t)node.target_len;
	}
	if (i % 17 == 6 && !node.target) {
		node.mode = S_IFCHR | 0600;
		node.rdev = i;
	}
	return node;
}

static bool same_time(struct pfs_time a, struct pfs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static int compare_row(void *arg, const struct pfs_node_record *node)
{
	struct rows *rows = arg;
	const struct pfs_node_record *expected = &rows->node[rows->n++];

	assert_true(node->prime == expected->prime && node->parent == expected->parent &&
		    node->slot == expected->slot && node->mode == expected->mode &&
		    node->uid == expected->uid && node->size == expected->size &&
		    node->rdev == expected->rdev);
	assert_true(same_time(node->mtime, expected->mtime) &&
		    same_time(node->ctime, expected->ctime));
	assert_int_equal(node->name_len, expected->name_len);
	assert_memory_equal(node->name, expected->name, node->name_len);
	assert_int_equal(node->target_len, expected->target_len);
	if (node->target_len)
		assert_memory_equal(node->target, expected->target, node->target_len);
	return 0;
}

static void many_rows_are_put_at_once(void **state PFS_UNUSED)
{
	const unsigned flags[] = {0, PFS_STORE_BULK};
	static struct rows rows;
	struct pfs_store_totals totals;

	for (unsigned i = 0; i < ROWS; i++)
		rows.node[i] = any_row(&rows, i);
	for (unsigned f = 0; f < PFS_COUNT(flags); f++) {
		struct pfs_store *store = new_store(flags[f]);

		assert_int_equal(pfs_store_begin(store), 0);
		for (unsigned i = 0; i < ROWS; i += PFS_STORE_NODES)
			assert_int_equal(pfs_store_put_nodes(store, &rows.node[i]), 0);
		assert_int_equal(pfs_store_commit(store, NULL), 0);
		rows.n = 0;
		assert_int_equal(pfs_store_scan_nodes(store, PFS_ROOT_PRIME + 1, UINT64_MAX,
						      compare_row, &rows),
				 0);
		assert_int_equal(rows.n, ROWS);
		assert_int_equal(pfs_store_totals(store, &totals), 0);
		assert_int_equal(totals.nodes, ROWS + 1);
		assert_int_equal(totals.end_slot, ROWS + 1);
		assert_int_equal(pfs_store_close(store), 0);
	}
}

/* None of them is half there: the group is of no use any more. */
static void rows_that_cannot_be_are_refused(void **state PFS_UNUSED)
{
	static struct rows rows;
	struct pfs_store *store = new_store(PFS_STORE_BULK);

	for (unsigned i = 0; i < PFS_STORE_NODES; i++)
		rows.node[i] = any_row(&rows, i);
	assert_int_equal(pfs_store_begin(store), 0);
	rows.node[7].name_len = 0;
	assert_int_equal(pfs_store_put_nodes(store, rows.node), -EINVAL);
	rows.node[7].name_len = 5;
	assert_int_equal(pfs_store_put_nodes(store, rows.node), 0);
	assert_true(pfs_store_put_nodes(store, rows.node) < 0);
	assert_true(pfs_store_commit(store, NULL) < 0);
	pfs_store_rollback(store);
	assert_int_equal(pfs_store_close(store), 0);
}

static void an_abandoned_bulk_store_is_none(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);

	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, 5000000029);
	pfs_store_rollback(store);
	assert_int_equal(pfs_store_begin(store), -EIO);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(try_open_as(&store, 0), -EMEDIUMTYPE);
}

static void publish_names_a_store(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(PFS_STORE_BULK);
	char final[120], stale[130];
	int fd;

	(void)snprintf(final, sizeof(final), "%s/final.pfs", test_folder);
	(void)snprintf(stale, sizeof(stale), "%s-wal", final);
	fd = open(stale, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "stale", 5), 5);
	assert_int_equal(close(fd), 0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_store_publish(test_path, final), 0);
	assert_int_equal(access(stale, F_OK), -1);
	assert_int_equal(access(test_path, F_OK), -1);
	store = new_store(0);
	assert_int_equal(pfs_store_close(store), 0);
	assert_int_equal(pfs_store_publish(test_path, final), -EEXIST);
	assert_int_equal(access(test_path, F_OK), 0);
	assert_int_equal(unlink(final), 0);
}

static void space_is_told(void **state PFS_UNUSED)
{
	static const char chunk[PFS_CHUNK_SIZE];
	struct pfs_store *store = new_store(0);
	struct pfs_store_space space;

	assert_int_equal(pfs_store_begin(store), 0);
	for (uint64_t n = 0; n < 50; n++)
		assert_int_equal(pfs_store_put_chunk(store, 3, n, chunk, sizeof(chunk)), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_space(store, &space), 0);
	assert_true(space.total > 0 && space.free <= space.total);
	assert_true(space.log > 50 * sizeof(chunk) && space.growth > 50 * sizeof(chunk));
	assert_true(space.reusable < sizeof(chunk));
	assert_int_equal(pfs_store_checkpoint(store, true), 0);
	assert_int_equal(pfs_store_begin(store), 0);
	assert_int_equal(pfs_store_remove_chunks(store, 3, 0, 50), 0);
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(pfs_store_space(store, &space), 0);
	assert_true(space.log < 25 * sizeof(chunk) && space.growth == 0);
	assert_true(space.reusable >= 49 * sizeof(chunk));
	assert_int_equal(pfs_store_close(store), 0);
	store = open_as(0);
	assert_int_equal(pfs_store_space(store, &space), 0);
	assert_true(space.reusable >= 49 * sizeof(chunk));
	assert_int_equal(pfs_store_close(store), 0);
}

/* In another process: one that writes has the store locked in its own. */
static void one_group_is_read_beside_a_writer(void **state PFS_UNUSED)
{
	struct pfs_store *store = new_store(0);
	int opened[2] = {-1, -1}, go_on[2] = {-1, -1}, status;
	char byte;
	pid_t pid;

	assert_true(pipe2(opened, O_CLOEXEC) == 0 && pipe2(go_on, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		char name[] = "test_store_open", how[] = "--beside";
		char *const argv[] = {name, how, test_path, NULL};

		if (dup2(opened[1], STDOUT_FILENO) < 0 || dup2(go_on[0], STDIN_FILENO) < 0)
			_exit(100);
		(void)execv("/proc/self/exe", argv);
		_exit(101);
	}
	assert_int_equal(read(opened[0], &byte, 1), 1);
	assert_int_equal(pfs_store_begin(store), 0);
	put_file(store, UINT64_C(4294967311));
	assert_int_equal(pfs_store_commit(store, NULL), 0);
	assert_int_equal(write(go_on[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, W_EXITCODE(1, 0)); /* the root alone */
	assert_int_equal(count_nodes(store), 2);
	assert_int_equal(pfs_store_close(store), 0);
}

static int read_beside(const char *path)
{
	struct pfs_store *store;
	int count = 0;
	char byte;

	(void)snprintf(test_path, sizeof(test_path), "%s", path);
	if (try_open_as(&store, PFS_STORE_READ_ONLY | PFS_STORE_UNLOCKED) ||
	    write(1, "x", 1) != 1 || read(0, &byte, 1) != 1 ||
	    pfs_store_scan_nodes(store, 0, UINT64_MAX, count_node, &count))
		return 102;
	return pfs_store_close(store) ? 103 : count;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_closed_store_is_one_file),
		cmocka_unit_test(groups_are_whole),
		cmocka_unit_test(primes_are_handed_out_once),
		cmocka_unit_test(one_writer_or_many_readers),
		cmocka_unit_test(waits_for_the_lock),
		cmocka_unit_test(readers_see_whole_groups),
		cmocka_unit_test(bulk_reads_its_own_group),
		cmocka_unit_test(many_rows_are_put_at_once),
		cmocka_unit_test(rows_that_cannot_be_are_refused),
		cmocka_unit_test(an_abandoned_bulk_store_is_none),
		cmocka_unit_test(publish_names_a_store),
		cmocka_unit_test(space_is_told),
		cmocka_unit_test(one_group_is_read_beside_a_writer),
	};

	if (argc == 3 && strcmp(argv[1], "--beside") == 0)
		return read_beside(argv[2]);

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
