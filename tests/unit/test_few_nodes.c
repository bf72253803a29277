/* SPDX-License-Identifier: MIT */
/* Nodes whose number, parent or name has to be equal to one of a few values are looked up, each
 * value by itself, and have the rows that a look at all nodes has. */
#include "query_util.h"

#include "fs/query/internal.h"

#define FOLDERS 100u
#define FILES	30u

static bool name_file(char name[32], unsigned folder, unsigned file)
{
	(void)snprintf(name, 32, "file %u", folder * 7 + file);
	return file < FILES;
}

static int set_up_many(void **state)
{
	if (set_up(state))
		return -1;
	make_folders(FOLDERS, name_file);
	pfs_query_finish(begin("CREATE TABLE few (i INTEGER, r REAL, n TEXT)"));
	pfs_query_finish(begin(
		"INSERT INTO few SELECT ino, ino, name FROM nodes WHERE name IN ('folder 3', 'file 20', 'file 21')"));
	pfs_query_finish(begin(
		"INSERT INTO few VALUES (NULL, NULL, NULL), (-1, 2.5, 'no such'), (1000003, 1e300, ''), (2, 2, 'a')"));
	pfs_query_finish(begin("CREATE TABLE many AS SELECT ino AS i, name AS n FROM nodes"));
	pfs_query_finish(begin("DELETE FROM few WHERE n = 'file 21'"));
	return 0;
}

/* The plan has that line, or does not, and the statement has the rows of another one. */
static void same(const char *sql, const char *other, const char *line)
{
	static char a[1 << 20], b[1 << 20];
	struct pfs_query *query = begin(sql);
	char *plan;

	query->explains = true;
	rest_text(a, sizeof(a), query);
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (!strstr(plan, line))
		fail_msg("%s: %s", sql, plan);
	free(plan);
	pfs_query_finish(query);
	query_text(b, sizeof(b), other);
	assert_string_equal(a, b);
}

static const char few[] = "; chosen: few", all[] = "; chosen: all";

static void test_numbers(void **state)
{
	(void)state;
	same("SELECT path FROM nodes WHERE ino IN (SELECT i FROM few) ORDER BY ino",
	     "SELECT path FROM nodes WHERE +ino IN (SELECT i FROM few) ORDER BY ino", few);
	same("SELECT path FROM nodes WHERE ino IN (SELECT r FROM few) AND size = 0 ORDER BY ino",
	     "SELECT path FROM nodes WHERE +ino IN (SELECT r FROM few) ORDER BY ino", few);
	same("SELECT count(*), min(n.ino) FROM nodes n JOIN few ON n.ino = i",
	     "SELECT count(*), min(n.ino) FROM nodes n JOIN few ON n.ino + 0 = i", few);
	same("SELECT f.n, name FROM few f LEFT JOIN nodes ON ino = r ORDER BY f.n, r",
	     "SELECT f.n, (SELECT name FROM nodes WHERE ino = r) FROM few f ORDER BY f.n, r", few);
	same("SELECT count(*) FROM nodes WHERE ino IN (SELECT i FROM many)",
	     "SELECT count(*) FROM nodes", "\njoins: ");
}

static void test_parents(void **state)
{
	(void)state;
	same("SELECT path FROM nodes WHERE parent IN (SELECT i FROM few) ORDER BY ino",
	     "SELECT path FROM nodes WHERE +parent IN (SELECT i FROM few) ORDER BY ino", few);
	/* of more than are listed, by a look at all parents */
	same("SELECT count(*), min(size) FROM nodes WHERE parent IN (SELECT i FROM many WHERE n GLOB 'folder*')",
	     "SELECT count(*), min(size) FROM nodes WHERE +parent IN (SELECT i FROM many WHERE n GLOB 'folder*')",
	     few);
}

/* By the index of names, which is made when it was missed twice; until then all nodes are looked
 * at. */
static void test_names(void **state)
{
	static const char sql[] =
		"SELECT path FROM nodes WHERE name IN (SELECT n FROM few) ORDER BY ino";
	static const char other[] =
		"SELECT path FROM nodes WHERE +name IN (SELECT n FROM few) ORDER BY ino";

	(void)state;
#ifndef PFS_VERIFY /* which runs each statement twice */
	same(sql, other, all);
	same(sql, other, "index of names is not made yet");
#else
	same(sql, other, "few nodes or all");
	same(sql, other, "few nodes or all");
#endif
	same(sql, other, few);
	same("SELECT count(*) FROM nodes WHERE name IN (SELECT n FROM many)",
	     "SELECT count(*) FROM nodes", all);
}

/* A pattern that few names fit has the index made, too, where the rows are counted. */
static void test_patterns(void **state)
{
	static const char sql[] = "SELECT count(*) FROM nodes WHERE name GLOB 'folder 99*'";
	static const struct pfs_predicate name = {.field = PFS_FIELD_NAME,
						  .test = PFS_TEST_GLOB,
						  .text = "folder 99*",
						  .text_len = sizeof("folder 99*") - 1};
	char text[64];
	bool is_short;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		query_text(text, sizeof(text), sql);
	(void)pfs_scan_lock(tree, __func__);
	is_short = pfs_scan_is_short(tree, &name, 1);
	pfs_scan_unlock(tree);
	assert_true(is_short);
}

/* Where a row that is not there is asked for, or one that only might be, all nodes are looked
 * at. */
static void test_others(void **state)
{
	(void)state;
	same("SELECT count(*), count(i) FROM nodes LEFT JOIN few ON ino = i",
	     "SELECT count(*), (SELECT count(*) FROM few WHERE i IN (SELECT ino FROM nodes)) FROM nodes",
	     "\njoins: ");
	same("SELECT count(*) FROM nodes WHERE ino NOT IN (SELECT i FROM few WHERE i IS NOT NULL)",
	     "SELECT count(*) - (SELECT count(DISTINCT i) FROM few WHERE i IN (SELECT ino FROM nodes)) FROM nodes",
	     "\njoins: ");
	same("SELECT count(*) FROM nodes WHERE ino IN (SELECT i FROM few) OR size = 0",
	     "SELECT count(*) FROM nodes", "\njoins: ");
}

/* Below another directory than the root, only what lies there is found. */
static void test_below(void **state)
{
	(void)state;
	scope.ino = ino_of("/folder 3");
	same("SELECT name FROM nodes WHERE ino IN (SELECT i FROM few) ORDER BY ino",
	     "SELECT name FROM nodes WHERE +ino IN (SELECT i FROM few) ORDER BY ino", few);
	same("SELECT name FROM nodes WHERE parent IN (SELECT i FROM few) ORDER BY ino",
	     "SELECT name FROM nodes WHERE +parent IN (SELECT i FROM few) ORDER BY ino", few);
	scope.ino = PFS_ROOT_PRIME;
}

/* INTERSECT and EXCEPT of columns that are never NULL are joins; what is NULL on the right is equal
 * to nothing. */
static void test_sets(void **state)
{
	(void)state;
	same("SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent FROM nodes",
	     "SELECT ino FROM nodes d WHERE type = 'd' AND NOT EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino) ORDER BY 1",
	     "\njoins: ");
	same("SELECT name FROM nodes INTERSECT SELECT n FROM few ORDER BY 1",
	     "SELECT DISTINCT name FROM nodes WHERE +name IN (SELECT n FROM few) ORDER BY 1",
	     "\njoins: ");
	same("SELECT count(*) FROM (SELECT ino, name FROM nodes INTERSECT SELECT i, n FROM few)",
	     "SELECT count(*) FROM few WHERE i IN (SELECT ino FROM nodes) AND i <> 2", "\njoins: ");
}

/* What SQLite would find once and whole is found by the operators, however few the nodes are. */
static void test_once(void **state)
{
	(void)state;
	same("SELECT name FROM nodes WHERE size + 1 = 2 AND ino IN (SELECT parent FROM nodes)",
	     "SELECT name FROM nodes WHERE size + 1 = 2", "run by the relational operators");
}

/* Totals of those nodes that are found, and of all. */
static void test_totals(void **state)
{
	(void)state;
	same("SELECT n, sum(subtree_count) FROM nodes JOIN few ON name = n GROUP BY n ORDER BY n",
	     "SELECT n, sum((SELECT subtree_count FROM nodes x WHERE x.ino = nodes.ino)) FROM nodes JOIN few ON +name = n "
	     "GROUP BY n ORDER BY n",
	     few);
	same("SELECT type, max(subtree_count) FROM nodes GROUP BY type ORDER BY type",
	     "SELECT 'd', subtree_count FROM nodes WHERE ino = 2 UNION ALL SELECT 'f', 1",
	     "run by the relational operators");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_parents),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_once),
	};

	const struct CMUnitTest without_index[] = {cmocka_unit_test(test_patterns)};

	return cmocka_run_group_tests(tests, set_up_many, tear_down) +
	       cmocka_run_group_tests(without_index, set_up_many, tear_down);
}
