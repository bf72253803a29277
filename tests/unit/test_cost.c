/* SPDX-License-Identifier: MIT */
/* Estimates: what is more costs more, what is small is the host's, and a plan tells both. */
#include "cost_util.h"

#include "fs/query/relational/relational.h"

#define MANY 100000000u
#define FEW  1000u

static struct pfs_cost cost(const char *sql, uint64_t nodes, unsigned threads)
{
	return cost_of(sql, &pfs_rates_fixed, nodes, threads);
}

static void is_dearer(const char *sql, const char *than)
{
	struct pfs_cost a = cost(sql, MANY, 2), b = cost(than, MANY, 2);

	if (a.host_ns <= b.host_ns || a.device_ns <= b.device_ns)
		fail_msg("%s is not dearer than %s", sql, than);
}

static void test_order(void **state)
{
	static const char by_type[] = "SELECT type, count(*) FROM nodes GROUP BY type";

	(void)state;
	is_dearer("SELECT parent, count(*) FROM nodes GROUP BY parent", by_type);
	is_dearer("SELECT type, count(DISTINCT size) FROM nodes GROUP BY type", by_type);
	is_dearer(by_type, "SELECT count(*), sum(size) FROM nodes");
	is_dearer("SELECT count(*) FROM nodes WHERE name LIKE '%a%'",
		  "SELECT count(*) FROM nodes WHERE size > 9");
	/* whether a text is there, and where */
	is_dearer("SELECT count(*) FROM nodes WHERE instr(name, 'a') > 1",
		  "SELECT count(*) FROM nodes WHERE instr(name, 'a') > 0");
	is_dearer("SELECT count(*) FROM nodes WHERE instr(name, 'a') = 1",
		  "SELECT count(*) FROM nodes WHERE 1 <= instr(name, 'a')");
	is_dearer("SELECT count(*) FROM nodes WHERE replace(name, 'a', 'b') <> ext",
		  "SELECT count(*) FROM nodes WHERE replace(name, 'a', 'b') <> name");
	is_dearer("SELECT parent, count(*) FROM nodes GROUP BY 1 ORDER BY 2",
		  "SELECT parent, count(*) FROM nodes GROUP BY 1 ORDER BY 2 LIMIT 10");
	is_dearer("SELECT count(*) FROM (SELECT parent, count(*) FROM nodes GROUP BY 1)",
		  "SELECT count(*) FROM (SELECT type, count(*) FROM nodes GROUP BY 1)");
	is_dearer("SELECT count(*) FROM nodes a JOIN nodes b ON a.name = b.name",
		  "SELECT sum(size) FROM nodes");
}

/* The host has what is small, the device what is large; more threads are faster. */
static void test_choice(void **state)
{
	static const char sql[] = "SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext";
	struct pfs_cost few = cost(sql, FEW, 2), many = cost(sql, MANY, 2);
	struct pfs_cost threads = cost(sql, MANY, 16);

	(void)state;
	/* what is grouped before it is joined costs as much as a group */
	assert_true(
		cost("SELECT a.ext, count(*) FROM nodes a JOIN nodes b ON a.type = b.type GROUP BY a.ext",
		     MANY, 2)
			.host_ns <
		cost("SELECT a.name, count(*) FROM nodes a JOIN nodes b ON a.name = b.name GROUP BY a.name",
		     MANY, 2)
			.host_ns);
	assert_true(few.host_ns < few.device_ns);
	assert_true(many.device_ns < many.host_ns);
	assert_true(threads.host_ns < many.host_ns && threads.device_ns == many.device_ns);
}

/* What is sorted for a merge alone is not worth it, on either side. */
static void test_joins(void **state)
{
	static const char join[] = "SELECT count(*) FROM nodes a JOIN nodes b ON a.name = b.name";
	struct pfs_cost joined = cost(join, MANY, 2),
			alone = cost("SELECT count(*) FROM nodes", MANY, 2);
	struct pfs_query *query = begin(join);
	char *plan;

	(void)state;
	assert_int_equal(alone.host_join.hash_ns + alone.device_join.merge_ns, 0);
	assert_true(joined.host_join.hash_ns &&
		    joined.host_join.hash_ns < joined.host_join.merge_ns);
	assert_true(joined.device_join.hash_ns &&
		    joined.device_join.hash_ns < joined.device_join.merge_ns);
	assert_true(joined.host_join.hash_ns < joined.host_ns &&
		    joined.device_join.hash_ns < joined.device_ns);
	while (pfs_query_next(query, &error) == 1)
		;
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	assert_non_null(strstr(plan, "\njoins: "));
	assert_non_null(strstr(plan, " ms by hash, "));
	assert_non_null(strstr(plan, "; chosen: hash\n"));
	free(plan);
	pfs_query_finish(query);
}

/* A device is started once as much time is lost as its start and the columns of the statement
 * take. */
static void test_start(void **state)
{
	struct pfs_cost one = cost("SELECT sum(size) FROM nodes", MANY, 2);
	struct pfs_cost two = cost("SELECT sum(size), max(mtime) FROM nodes", MANY, 2);
	struct pfs_cost none = cost("SELECT sum(size) FROM nodes", 0, 2);
	struct pfs_placement placement = {.kind = PFS_ENGINE_HOST};
	uint64_t start = one.start_ns;

	(void)state;
	assert_true(none.start_ns > 0);
	assert_true(start > none.start_ns);
	assert_true(two.start_ns > start);
	assert_int_equal(pfs_placement_open(&placement, PFS_ENGINE_AUTO, NULL, NULL), 0);
	pfs_placement_took(&placement, &one, one.device_ns + start / 2);
	assert_false(placement.asked);
	pfs_placement_took(&placement, &one, one.device_ns); /* nothing lost */
	assert_false(placement.asked);
	pfs_placement_took(&placement, &one, one.device_ns + start / 2 + 1);
	assert_true(placement.asked);
	pfs_placement_close(&placement);
}

static void test_plan(void **state)
{
	struct pfs_query *query = begin("SELECT type, count(*) FROM nodes GROUP BY type");
	char *plan;

	(void)state;
	while (pfs_query_next(query, &error) == 1)
		;
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	assert_non_null(strstr(plan, "\nestimated: "));
	assert_non_null(strstr(plan, " ms on the host, "));
	assert_non_null(strstr(plan, "chosen: the host\n"));
	assert_null(strstr(plan, "by hash"));
	free(plan);
	pfs_query_finish(query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_choice),
		cmocka_unit_test(test_joins),
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_plan),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
