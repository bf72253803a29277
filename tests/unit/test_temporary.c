/* SPDX-License-Identifier: MIT */
/* Temporary files, SQLite's and those of answers, share what may be taken of their filesystem. */
#include <sys/statvfs.h>

#include "base/temporary.h"
#include "fs/query/output/answer.h"
#include "tests/unit/query_util.h"

#define MIB ((uint64_t)1 << 20)

/* A filesystem of 64 MiB, of which 2 MiB are to be left. */
static _Atomic uint64_t bytes_left = 64 * MIB;
static _Atomic unsigned n_looks;

/* NOLINTNEXTLINE(bugprone-reserved-identifier): the name that the linker's --wrap gives */
int __wrap_fstatvfs64(int fd, struct statvfs *out);

/* NOLINTNEXTLINE(bugprone-reserved-identifier) */
int __wrap_fstatvfs64(int fd PFS_UNUSED, struct statvfs *out)
{
	n_looks++;
	*out = (struct statvfs){
		.f_frsize = 4096, .f_blocks = 64 * MIB / 4096, .f_bavail = bytes_left / 4096};
	return 0;
}

static void test_grow(void **state PFS_UNUSED)
{
	struct pfs_temporary file, other;

	assert_int_equal(pfs_temporary_open(&file), 0);
	assert_int_equal(pfs_temporary_open(&other), 0);
	bytes_left = 10 * MIB;
	assert_int_equal(pfs_temporary_grow(&file, 8 * MIB), 0);
	/* nothing is written yet, but it is the first file's */
	assert_int_equal(pfs_temporary_grow(&other, 1), -ENOSPC);
	bytes_left = 11 * MIB;
	assert_int_equal(pfs_temporary_grow(&other, MIB), 0);
	assert_int_equal(pfs_temporary_grow(&other, MIB + 1), -ENOSPC);
	assert_int_equal(pfs_temporary_grow(&file, 8 * MIB), 0); /* as granted */
	assert_int_equal(pfs_temporary_owed(), 9 * MIB);
	assert_int_equal(pfs_temporary_truncate(&file, 7 * MIB), 0);
	assert_int_equal(pfs_temporary_grow(&other, 2 * MIB), 0);
	pfs_temporary_close(&file);
	pfs_temporary_close(&file);
	assert_int_equal(pfs_temporary_grow(&other, 9 * MIB), 0);
	assert_int_equal(pfs_temporary_grow(&other, 9 * MIB + 1), -ENOSPC);
	pfs_temporary_close(&other);
	assert_int_equal(pfs_temporary_owed(), 0);
	bytes_left = 64 * MIB;
}

/* A large file is not looked at the filesystem for with every write. */
static void test_looks(void **state PFS_UNUSED)
{
	struct pfs_temporary file;

	n_looks = 0;
	assert_int_equal(pfs_temporary_open(&file), 0);
	for (uint64_t size = 4096; size <= 48 * MIB; size += 4096)
		assert_int_equal(pfs_temporary_grow(&file, size), 0);
	assert_in_range(n_looks, 1, 20);
	pfs_temporary_close(&file);
}

static int run(struct pfs_answer **answer, const char *sql)
{
	assert_int_equal(pfs_answer_create(answer, 0, 0), 0);
	return pfs_answer_run(*answer, queries, &scope, sql, strlen(sql), PFS_FORMAT_TSV,
			      &error);
}

#define ROWS                                                                                       \
	"WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 40000) "         \
	"SELECT hex(zeroblob(50)) || v AS t FROM i "

/* What SQLite sorts, makes unique or materializes is refused where an answer would be. */
static void test_statements(void **state PFS_UNUSED)
{
	static const char *const large[] = {
		ROWS "ORDER BY random()",
		"SELECT t FROM (" ROWS ") UNION SELECT t FROM (" ROWS ")",
		"WITH m AS MATERIALIZED (" ROWS
		") SELECT count(*) FROM m a, m b WHERE a.t = b.t || 1",
		"SELECT t, count(*) FROM (" ROWS ") GROUP BY t",
	};
	struct pfs_answer *answer;

	scope.memory_limit = 8 * MIB; /* SQLite has 2 for each table of its own */
	for (size_t i = 0; i < PFS_COUNT(large); i++) {
		bytes_left = 2 * MIB;
		if (run(&answer, large[i]) != -ENOSPC)
			fail_msg("%s: %s", large[i], error.text);
		assert_string_equal(error.text,
				    "no space for temporary files; make room in $TMPDIR "
				    "or sort fewer rows");
		pfs_answer_close(answer);
		assert_int_equal(pfs_temporary_owed(), 0);
		bytes_left = 64 * MIB;
		if (run(&answer, large[i]))
			fail_msg("%s: %s", large[i], error.text);
		pfs_answer_close(answer);
		assert_int_equal(pfs_temporary_owed(), 0);
	}
}

/* What one statement has sorted is missing for another's answer. */
static void test_together(void **state PFS_UNUSED)
{
	struct pfs_answer *answer;
	struct pfs_query *query;

	scope.memory_limit = 8 * MIB; /* SQLite has 2 for each table of its own */
	bytes_left = 10 * MIB;
	query = begin(ROWS "ORDER BY random()");
	assert_int_equal(pfs_query_next(query, &error), 1);
	assert_true(pfs_temporary_owed() > 0 || n_looks > 0);
	bytes_left = 2 * MIB + pfs_temporary_owed();
	assert_int_equal(run(&answer, ROWS), -ENOSPC);
	pfs_answer_close(answer);
	pfs_query_finish(query);
	bytes_left = 64 * MIB;
	assert_int_equal(run(&answer, ROWS), 0);
	pfs_answer_close(answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_looks),
		cmocka_unit_test_setup_teardown(test_statements, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_together, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
