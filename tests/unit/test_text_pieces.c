/* SPDX-License-Identifier: MIT */
/* Functions of texts over as many rows as are cut into pieces: the same answers with any number of
 * threads, and none where memory ends. */
#include "tests/unit/query_util.h"

#include "fs/query/internal.h"
#include "gpu/relation.h"

#define N_ROWS "100000" /* several pieces, the last one shorter */

static const unsigned threads[] = {1, 2, 7};

static const char *const statements[] = {
	/* numbers; a heap; dictionaries, the second of so many texts that pieces differ */
	"SELECT count(*), sum(instr(a, '7')), max(instr(a, '99')) FROM t",
	"SELECT k, replace(a, '1', 'one') FROM t WHERE k % 997 = 0 ORDER BY k",
	"SELECT min(upper(a) || 'x'), max(upper(a) || 'x'), count(upper(a) || 'x') FROM t",
	"SELECT substr(a, 1, 3) s, count(*) FROM t GROUP BY s ORDER BY s",
	"SELECT count(*), count(DISTINCT substr(a, 3, 4)), max(substr(a, 3, 4)) FROM t",
	"SELECT substr(d, 2) s, count(*), sum(instr(d, '5')) FROM t GROUP BY s ORDER BY s LIMIT 9",
};

static void change_threads(unsigned n)
{
	reopen();
	assert_int_equal(pfs_operators_open(&queries->placement.operators, PFS_ENGINE_HOST, n), 0);
}

static int fill(void **state)
{
	char text[64];

	(void)set_up(state);
	query_text(text, sizeof(text), "CREATE TABLE t(k INTEGER PRIMARY KEY, a TEXT, d TEXT)");
	query_text(text, sizeof(text),
		   "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
		   "WHERE "
		   "i < " N_ROWS
		   ") SELECT i, CASE WHEN i % 11 THEN 'n' || (i * 7919 % 100003) || '.c' "
		   "END, 'd' || (i / 9 % 40000) FROM n");
	return 0;
}

static void test_threads(void **state)
{
	static char texts[PFS_COUNT(statements)][1 << 17], text[1 << 17];

	(void)state;
	for (size_t t = 0; t < PFS_COUNT(threads); t++) {
		uint64_t host = 0, before, device;

		change_threads(threads[t]);
		for (size_t i = 0; i < PFS_COUNT(statements); i++) {
			before = host;
			query_text(t ? text : texts[i], sizeof(text), statements[i]);
			(void)pfs_queries_count(queries, &host, &device);
			assert_true(host > before);
			if (t)
				assert_string_equal(text, texts[i]);
		}
	}
}

static void test_memory(void **state)
{
	(void)state;
	change_threads(7);
	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		int got = -ENOMEM;

		for (scope.memory_limit = 1 << 16; got == -ENOMEM; scope.memory_limit *= 2) {
			struct pfs_query *query = NULL;

			got = pfs_query_start(&query, queries, &scope, statements[i],
					      strlen(statements[i]), &error);
			while (!got && (got = pfs_query_next(query, &error)) == 1)
				got = 0;
			assert_true(got == 0 || got == -ENOMEM);
			pfs_query_finish(query);
		}
		scope.memory_limit = 0;
	}
}

/* ---- pieces that fail ---- */

struct failing {
	uint64_t first, n_done;
};

static int fail_from(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct failing *failing = context;

	(void)worker;
	(void)__atomic_add_fetch(&failing->n_done, to - from, __ATOMIC_RELAXED);
	return from < failing->first ? 0 : from == failing->first ? -EDOM : -ERANGE;
}

static void test_first_error(void **state)
{
	(void)state;
	for (size_t t = 0; t < PFS_COUNT(threads); t++) {
		struct pfs_run run = {.on = PFS_ENGINE_HOST};

		assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, threads[t]),
				 0);
		for (uint64_t first = 0; first <= 1000; first += 10) {
			struct failing failing = {.first = first};

			assert_int_equal(pfs_operators_for(&run, 995, 10, fail_from, &failing),
					 first < 995 ? -EDOM : 0);
			assert_true(failing.n_done >= PFS_MIN(first, 995u));
		}
		pfs_operators_close(run.operators);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_first_error),
	};

	return cmocka_run_group_tests(tests, fill, tear_down);
}
