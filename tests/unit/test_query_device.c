/* SPDX-License-Identifier: MIT */
/* Statements on a device, which the host's operators stand in for: they give way to who waits for
 * the tree, also after the device has failed, and what the device lacks is copied before they hold
 * the tree. */
#include "fs/query/internal.h"
#include "tests/ref/stand_in_operators.h"
#include "tests/unit/query_util.h"

#include <pthread.h>

#define BYTES_HELD ((size_t)16 << 20) /* that one hold may copy, at most */

static bool waits; /* the next to select works until it is told to give way */
static unsigned told, n_made;
static pthread_t maker;

static void *make_one(void *arg PFS_UNUSED)
{
	struct pfs_entry entry;
	char name[16];

	(void)snprintf(name, sizeof(name), "new%u", n_made);
	if (!pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0, &temp_root))
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	return NULL;
}

/* Works on while somebody waits for the tree, until the statement says that it is to give way, or
 * for ten seconds. */
static int work_until_told(const struct pfs_run *run)
{
	int polled = 0;

	n_made++;
	assert_int_equal(pthread_create(&maker, NULL, make_one, NULL), 0);
	for (unsigned ms = 0; ms < 10000 && !polled; ms++) {
		(void)usleep(1000);
		polled = pfs_run_check(run);
	}
	told += polled == -EAGAIN;
	return polled;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what it wraps */
int __real_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program);
int __wrap_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program);
int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out);

int __wrap_pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_rows **out, const struct pfs_source *source,
				const struct pfs_program *program)
{
	if (waits) {
		waits = false;
		PFS_TRY(work_until_told(run));
	}
	return __real_pfs_host_select_rows(b, run, out, source, program);
}

int __wrap_pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	return stand_in_operators_open(out);
}
/* NOLINTEND(bugprone-reserved-identifier) */

static const char folders[] = "SELECT mode, count(*) FROM nodes WHERE type = 'd' GROUP BY mode";

static int begin_test(void **state)
{
	const struct pfs_tree_options options = {.engine = PFS_ENGINE_CUDA};

	(void)set_up(state);
	close_queries();
	tree = temp_tree_open_with(&store, &options);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	stand_in_operators = (struct stand_in_operators){.more = 0};
	told = 0;
	return 0;
}

/* The device ran so many of its operators to the end. */
static void assert_answered_by(uint64_t device)
{
	uint64_t host, before, now;
	char rows[100];

	(void)pfs_queries_count(queries, &host, &before);
	query_text(rows, sizeof(rows), folders);
	assert_string_equal(rows, "16877 3");
	assert_true(pfs_queries_count(queries, &host, &now));
	assert_int_equal(now - before, device);
}

static void test_gives_way(void **state PFS_UNUSED)
{
	assert_answered_by(1);
	waits = true;
	assert_answered_by(0);
	(void)pthread_join(maker, NULL);
	assert_int_equal(told, 1);
}

/* What runs on the host instead gives way, too. */
static void test_fails(void **state PFS_UNUSED)
{
	stand_in_operators.loses_rows = true;
	waits = true;
	assert_answered_by(1); /* it had selected */
	(void)pthread_join(maker, NULL);
	assert_int_equal(told, 1);
}

static void test_mirrors(void **state PFS_UNUSED)
{
	assert_answered_by(1);
	assert_int_equal(stand_in_operators.mirrored, 1);
	assert_int_equal(stand_in_operators.columns, 2);
	assert_in_range(stand_in_operators.most, 1, BYTES_HELD);
	stand_in_operators.more = 1; /* others change it all the time */
	assert_answered_by(1);
	assert_in_range(stand_in_operators.mirrored, 2, 100);
	stand_in_operators.more = -EIO;
	assert_answered_by(1);
}

/* The answer, where few rows are as many. */
static void answer(char *rows, size_t size, const char *statement, bool keeps)
{
	struct pfs_query *query = begin(statement);

	stand_in_operators.keeps = keeps;
	query->piece = 100;
	rest_text(rows, size, query);
	pfs_query_finish(query);
}

/* Rows of a sub-select stay on the device until an operator of the host reads them; so they answer
 * as before. */
static void test_keeps(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT count(*), sum(n), max(n) FROM (SELECT mode + 1 AS n FROM nodes)",
		"SELECT count(*) FROM nodes WHERE mode IN (SELECT mode + 0 FROM nodes WHERE type = 'd')",
		"SELECT count(*) FROM nodes n JOIN (SELECT ino + 0 AS i, mode AS m FROM nodes) ON i = ino AND m = mode",
		"SELECT name FROM nodes WHERE ino IN (SELECT ino + 0 FROM nodes WHERE type = 'd') ORDER BY 1",
		"SELECT n FROM (SELECT mode + 1 AS n FROM nodes ORDER BY ino LIMIT 2) ORDER BY n",
	};
	char expected[1000], rows[1000];

	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		answer(expected, sizeof(expected), statements[i], false);
		answer(rows, sizeof(rows), statements[i], true);
		assert_string_equal(rows, expected);
	}
	assert_true(stand_in_operators.fetched >= PFS_COUNT(statements) - 2);
}

/* What the device has left of such rows the host sorts, by columns that are not there yet. */
static void test_narrows(void **state PFS_UNUSED)
{
	static const char by_two[] =
		"SELECT n, m FROM (SELECT mode + 1 AS n, ino + 0 AS m FROM nodes) ORDER BY n, m + 1 DESC LIMIT 4";
	char expected[200], rows[200];

	answer(expected, sizeof(expected), by_two, false);
	stand_in_operators.narrows = true;
	answer(rows, sizeof(rows), by_two, true);
	assert_string_equal(rows, expected);
}

/* Of a sub-select what is read stays, and its rows do not. */
static void test_keeps_little(void **state PFS_UNUSED)
{
	char rows[100];

	answer(rows, sizeof(rows),
	       "SELECT sum(n) FROM (SELECT mode + 1 AS n, uid + 2 AS m FROM nodes)", true);
	assert_int_equal(stand_in_operators.vectors, 1);
	assert_int_equal(stand_in_operators.tables, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gives_way, begin_test, tear_down),
		cmocka_unit_test_setup_teardown(test_fails, begin_test, tear_down),
		cmocka_unit_test_setup_teardown(test_mirrors, begin_test, tear_down),
		cmocka_unit_test_setup_teardown(test_keeps, begin_test, tear_down),
		cmocka_unit_test_setup_teardown(test_narrows, begin_test, tear_down),
		cmocka_unit_test_setup_teardown(test_keeps_little, begin_test, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
