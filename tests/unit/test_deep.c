/* SPDX-License-Identifier: MIT */
/* A chain of directories that is very deep: statements over it leave the tree to others, and end
 * when they are to. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "fs/nodes/ordered.h"
#include "fs/image/hold.h"
#include "tests/unit/query_util.h"

/* Who writes may wait for a statement's second run, as a whole; that takes a tenth of this. */
#if defined(__SANITIZE_THREAD__)
#define DEEP   20000
#define WAIT_S 20
#elif defined(__SANITIZE_ADDRESS__)
#define DEEP   60000
#define WAIT_S 20
#else
#define DEEP   60000
#define WAIT_S 5
#endif

static uint64_t deepest;

static int set_up_chain(void **state)
{
	uint64_t at = PFS_ROOT_PRIME;

	(void)state;
	temp_store_create(&store);
	open_queries();
	for (unsigned i = 0; i < DEEP; i++)
		at = make(at, "d", S_IFDIR | 0755);
	deepest = at;
	scope = (struct pfs_query_scope){.ino = PFS_ROOT_PRIME, .sees_all = true};
	return 0;
}

static double seconds(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run_to_end(struct pfs_queries *of, const char *sql)
{
	struct pfs_query_error why;
	struct pfs_query *query;
	int got = pfs_query_start(&query, of, &scope, sql, strlen(sql), &why);

	if (got)
		return got;
	do
		got = pfs_query_next(query, &why);
	while (got == 1 || got == -EAGAIN);
	pfs_query_finish(query);
	return got;
}

/* Depths, right after what moves them, too. */
static void test_depths(void **state PFS_UNUSED)
{
	uint64_t half = 0, other;
	struct pfs_entry entry;
	int64_t depth, n;
	char sql[128];

	assert_int_equal(run_to_end(queries, "SELECT path FROM nodes ORDER BY depth LIMIT 10"), 0);
	for (int i = 0; i < 2; i++) {
		struct pfs_query *query =
			begin("SELECT sum(depth), max(depth), count(*) FROM nodes");
		struct pfs_sql_value value;

		assert_int_equal(pfs_query_next(query, &error), 1);
		pfs_query_value(query, 1, &value);
		depth = value.integer;
		assert_int_equal(depth, i ? DEEP / 2 + 2 : DEEP);
		pfs_query_value(query, 2, &value);
		n = value.integer;
		pfs_query_value(query, 0, &value);
		if (!i)
			assert_int_equal(value.integer, (int64_t)DEEP * (DEEP + 1) / 2);
		assert_int_equal(n, DEEP + 1 + i);
		pfs_query_finish(query);
		if (i)
			break;
		/* the lower half goes to the root */
		(void)snprintf(sql, sizeof(sql), "SELECT parent FROM nodes WHERE depth = %d",
			       DEEP / 2);
		query = begin(sql);
		assert_int_equal(pfs_query_next(query, &error), 1);
		pfs_query_value(query, 0, &value);
		half = (uint64_t)value.integer;
		pfs_query_finish(query);
		other = make(PFS_ROOT_PRIME, "e", S_IFDIR | 0755);
		assert_int_equal(pfs_tree_rename(tree, half, "d", other, "d", 0), 0);
		assert_int_equal(pfs_tree_lookup(tree, &entry, other, "d"), 0);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
}

/* ---- others wait for moments only ---- */

static atomic_bool done;
static atomic_uint runs;

static void *ask(void *arg)
{
	const char *sql = arg;

	while (!atomic_load(&done)) {
		if (run_to_end(queries, sql))
			return (void *)1;
		atomic_fetch_add(&runs, 1);
	}
	return NULL;
}

static void test_others(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT path FROM nodes ORDER BY depth LIMIT 10",
		"SELECT ino FROM nodes ORDER BY type, depth DESC LIMIT 10",
		"SELECT count(*) FROM nodes WHERE depth > 3 AND depth < 50000",
		"SELECT ino FROM nodes WHERE path LIKE '%x' LIMIT 3",
	};
	char name[32];

	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		double longest = 0, began;
		pthread_t thread[3];
		unsigned n;
		void *failed;

		atomic_store(&done, false);
		atomic_store(&runs, 0);
		for (size_t t = 0; t < 3; t++)
			assert_int_equal(
				pthread_create(&thread[t], NULL, ask, (void *)statements[i]), 0);
		/* one who writes every now and then: each statement may then run once more,
		 * whole */
		began = seconds();
		for (n = 0; n < 20 || (atomic_load(&runs) < 3 && seconds() < began + 60); n++) {
			struct pfs_entry entry;
			double at;

			(void)usleep(20000);
			at = seconds();
			(void)snprintf(name, sizeof(name), "n%zu.%u", i, n);
			(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
			assert_int_equal(pfs_tree_lookup(tree, &entry, PFS_ROOT_PRIME, name), 0);
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
			longest = PFS_MAX(longest, seconds() - at);
		}
		atomic_store(&done, true);
		for (size_t t = 0; t < 3; t++) {
			assert_int_equal(pthread_join(thread[t], &failed), 0);
			assert_null(failed);
		}
		print_message("%s: %u runs, waited %.3f s at most\n", statements[i],
			      atomic_load(&runs), longest);
		assert_true(longest < WAIT_S);
	}
}

/* ---- looks ---- */

#define SLOW "SELECT count(*) FROM nodes WHERE path LIKE '%dx%d' OR path LIKE '%x' OR path LIKE 'x%y'"

struct looks {
	unsigned n, end; /* asked; 0: never ended */
	double last, longest;
};

static int count_look(void *arg)
{
	struct looks *looks = arg;
	double now = seconds();

	looks->longest = PFS_MAX(looks->longest, now - looks->last);
	looks->last = now;
	return ++looks->n == looks->end ? -EAGAIN : 0;
}

/* Each part of a scan asks as it goes, and ends where it is told to. */
static void test_looks(void **state PFS_UNUSED)
{
	static const struct pfs_order orders[][2] = {
		{{.field = PFS_FIELD_TYPE}, {.field = PFS_FIELD_PATH}},
		{{.field = PFS_FIELD_TYPE}, {.field = PFS_FIELD_DEPTH, .descending = true}},
		{{.field = PFS_FIELD_PREORDER}},
		{{.field = PFS_FIELD_PATH, .descending = true}},
	};
	const struct pfs_predicate predicate = {
		.field = PFS_FIELD_PATH, .test = PFS_TEST_CONTAINS, .text = "dd", .text_len = 2};
	_Atomic bool stop = false;

	for (size_t i = 0; i < PFS_COUNT(orders); i++) {
		for (unsigned end = 0; end < (i < 2 ? 3 : 2); end++) {
			struct looks looks = {.end = end, .last = seconds()};
			const struct pfs_scan_watch watch = {&stop, count_look, &looks};
			const struct pfs_ordered_question question = {
				.order = orders[i],
				.n_order = i < 2 ? 2 : 1,
				.n = i == 0 && !end,
				.predicates = &predicate,
				.limit = UINT64_MAX,
				.watch = &watch,
			};
			struct pfs_ordered *ordered;
			uint32_t slots[64];
			size_t n = PFS_COUNT(slots);
			int status;

			(void)pfs_scan_lock(tree, __func__);
			status = pfs_ordered_open(&ordered, tree, &question);
			if (!status)
				status = pfs_ordered_next(ordered, slots, &n);
			pfs_ordered_close(ordered);
			pfs_scan_unlock(tree);
			assert_int_equal(status, end ? -EAGAIN : 0);
			assert_true(looks.n >= (end ? end : i < 2 ? 3 : 1));
			assert_true(looks.longest < 2);
		}
	}
}

static bool is_gone(void *arg)
{
	return ++*(unsigned *)arg > 2;
}

/* The clock and a client that goes are noticed inside of one scan. */
static void test_ends(void **state PFS_UNUSED)
{
	unsigned asked = 0;

	scope.time_limit_ms = 20;
	assert_int_equal(run_to_end(queries, SLOW), -ETIMEDOUT);
	scope.time_limit_ms = 0;
	scope.gone = is_gone;
	scope.gone_arg = &asked;
	assert_int_equal(run_to_end(queries, SLOW), -EINTR);
	scope.gone = NULL;
}

/* ---- how long the tree is held in one piece ---- */

#define HOLD_NS UINT64_C(50000000)
#if defined(__SANITIZE_THREAD__)
#define SLOWER 30
#elif defined(__SANITIZE_ADDRESS__)
#define SLOWER 10
#else
#define SLOWER 1
#endif

/* How long a statement holds the tree at the most, of processor time; nothing is known of the tree
 * before it. */
static uint64_t run_and_time(const char *statement)
{
	static unsigned n;
	char name[32];
	uint64_t held;

	(void)snprintf(name, sizeof(name), "h%u", n++);
	(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	(void)pfs_hold_longest(tree, false, true);
	assert_int_equal(run_to_end(queries, statement), 0);
	held = pfs_hold_longest(tree, false, false).cpu_ns;
	assert_true(held > 0);
	return held;
}

static void test_holds(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT ino FROM nodes ORDER BY type, path LIMIT 10",
		"SELECT ino FROM nodes ORDER BY type, depth, path DESC",
		"SELECT path FROM nodes ORDER BY path DESC LIMIT 10",
		"SELECT sum(subtree_size) FROM nodes",
		"SELECT count(*) FROM nodes WHERE subtree_count > 50",
		"SELECT ino FROM nodes ORDER BY subtree_mtime DESC, path LIMIT 3",
		"SELECT ext, count(*) FROM nodes WHERE path LIKE '%d/d' GROUP BY 1",
		"SELECT count(*) FROM nodes WHERE name GLOB '*x*' AND links > 1",
		"SELECT sum(depth) FROM nodes WHERE under(ino, '/d/d/d')",
	};

	pfs_hold_count_cpu();
	for (unsigned limited = 0; limited < 2; limited++) {
		scope.sees_all = !limited;
		scope.uid = scope.gid = 4711;
		for (size_t i = 0; i < PFS_COUNT(statements); i++) {
			uint64_t held;

			held = run_and_time(statements[i]);
			/* A machine that is short of time or of pages takes long for anything, now
			 * and then. */
			for (unsigned n = 0; n < 3 && held >= HOLD_NS * SLOWER; n++)
				held = run_and_time(statements[i]);
			print_message("%5.1f ms: %s\n", (double)held / 1e6, statements[i]);
			assert_true(held < HOLD_NS * SLOWER);
		}
	}
	scope.sees_all = true;
}

/* ---- long texts ---- */

#define LEVELS	  20000
#define LONG_NAME 250
#define FILES	  3000
#define TEN	  "__________" /* no more than half of a name */
#define TWO_HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define TWO_THOUSAND                                                                               \
	TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED        \
		TWO_HUNDRED TWO_HUNDRED TWO_HUNDRED
#define SINGLE	  TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* Names of 250 bytes: a path at the bottom has 5 MB. */
static int set_up_long(void **state)
{
	char name[LONG_NAME + 1];
	uint64_t at = PFS_ROOT_PRIME;

	(void)state;
	temp_store_create(&store);
	open_queries();
	memset(name, 'a', LONG_NAME);
	name[0] = 'x';
	name[LONG_NAME] = '\0';
	for (unsigned i = 0; i < LEVELS; i++)
		at = make(at, name, S_IFDIR | 0755);
	for (unsigned i = 0; i < FILES; i++) {
		(void)snprintf(name + LONG_NAME - 5, 6, "%05u", i);
		(void)make(at, name, S_IFREG | 0644);
	}
	scope = (struct pfs_query_scope){
		.ino = PFS_ROOT_PRIME, .sees_all = true, .time_limit_ms = 500};
	return 0;
}

/* Holds go by the work that texts are, not by nodes.  The pattern fits at no place of a name, and
 * goes back to each. */
static void test_long_texts(void **state PFS_UNUSED)
{
	static const char *const statements[] = {
		"SELECT ino FROM nodes WHERE path LIKE '%x' AND type = 'f'",
		"SELECT ino FROM nodes WHERE path LIKE '%b%' AND type = 'f'",
		"SELECT count(*) FROM nodes WHERE path GLOB '/x*b*' AND type = 'f'",
		"SELECT ino FROM nodes WHERE name LIKE '%a" SINGLE "x%'",
		"SELECT ino FROM nodes WHERE name NOT LIKE '%a" SINGLE "x%' AND type = 'd'",
		"SELECT count(*) FROM nodes WHERE name LIKE '%a" SINGLE "x%' AND links > 1",
		"SELECT ext, count(*) FROM nodes WHERE name LIKE '%a" SINGLE "x%' GROUP BY 1",
		"SELECT count(*) FROM nodes WHERE ino IN (SELECT ino FROM nodes WHERE type = 'f') AND path LIKE '%x'",
	};

	pfs_hold_count_cpu();
	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		uint64_t held;
		int got;

		(void)pfs_hold_longest(tree, false, true);
		got = run_to_end(queries, statements[i]);
		assert_true(got == 0 || got == -ETIMEDOUT);
		held = pfs_hold_longest(tree, false, false).cpu_ns;
		print_message("%5.1f ms: %s\n", (double)held / 1e6, statements[i]);
		assert_true(held < HOLD_NS * SLOWER);
	}
	scope.time_limit_ms = 0; /* its steps end it */
	assert_int_equal(run_to_end(queries,
				    "SELECT ino FROM nodes WHERE path LIKE '%a" TWO_THOUSAND
				    "y%' AND type = 'f'"),
			 -E2BIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_others, set_up_chain, tear_down),
		cmocka_unit_test_setup_teardown(test_looks, set_up_chain, tear_down),
		cmocka_unit_test_setup_teardown(test_ends, set_up_chain, tear_down),
		cmocka_unit_test_setup_teardown(test_holds, set_up_chain, tear_down),
		cmocka_unit_test_setup_teardown(test_depths, set_up_chain, tear_down),
		cmocka_unit_test_setup_teardown(test_long_texts, set_up_long, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
