/* SPDX-License-Identifier: MIT */
/* Conditions that only ask whether a node has a partner among other nodes mark those that have one,
 * instead of a join with them, and have a join's rows. */
#include "query_util.h"

#include "fs/query/internal.h"
#include "gpu/relation.h"

#define FOLDERS 60u
#define FILES	40u

static unsigned marked; /* times that nodes were marked */

/* NOLINTBEGIN(bugprone-reserved-identifier): the names that the linker's --wrap gives */
int __real_pfs_partners(const struct pfs_run *run, struct pfs_rows **out,
			const struct pfs_source *left, const struct pfs_source *right,
			const struct pfs_join_key *key);
int __wrap_pfs_partners(const struct pfs_run *run, struct pfs_rows **out,
			const struct pfs_source *left, const struct pfs_source *right,
			const struct pfs_join_key *key);

int __wrap_pfs_partners(const struct pfs_run *run, struct pfs_rows **out,
			const struct pfs_source *left, const struct pfs_source *right,
			const struct pfs_join_key *key)
{
	marked++;
	return __real_pfs_partners(run, out, left, right, key);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* Every third folder is empty. */
static bool name_file(char name[32], unsigned folder, unsigned file)
{
	(void)snprintf(name, 32, "file %u.%s", file, file % 4 ? "c" : "txt");
	return file < FILES && folder % 3;
}

static int set_up_many(void **state)
{
	if (set_up(state))
		return -1;
	make_folders(FOLDERS, name_file);
	return 0;
}

/* Both have the same rows; the first one marks nodes so many times, the other one never. */
static void same(const char *sql, const char *other, unsigned times)
{
	static char a[1 << 20], b[1 << 20];

	marked = 0;
	query_text(a, sizeof(a), sql);
	if (marked != times)
		fail_msg("%s: marked %u times", sql, marked);
	query_text(b, sizeof(b), other);
	assert_int_equal(marked, times);
	assert_string_equal(a, b);
}

static void test_marked(void **state)
{
	(void)state;
	same("SELECT name FROM nodes d WHERE type = 'd' AND EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino) ORDER BY ino",
	      "SELECT name FROM nodes d WHERE type = 'd' AND (SELECT count(*) FROM nodes f WHERE f.parent = d.ino) > 0 ORDER BY ino",
	      1);
	same("SELECT count(*) FROM nodes WHERE ino NOT IN (SELECT ino FROM nodes WHERE ext = 'c')",
	      "SELECT count(*) FROM nodes WHERE ext IS NULL OR ext <> 'c'", 1);
	same("SELECT name FROM nodes d WHERE type = 'd' AND NOT EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino) ORDER BY ino",
	      "SELECT name FROM nodes d WHERE type = 'd' AND (SELECT count(*) FROM nodes f WHERE f.parent = d.ino) = 0 ORDER BY ino",
	      1);
	same("SELECT count(*) FROM nodes d WHERE NOT NOT EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino AND f.ext = 'txt')",
	      "SELECT count(DISTINCT parent) FROM nodes WHERE ext = 'txt'", 1);
	same("SELECT count(*) FROM nodes d WHERE NOT (ino IN (SELECT parent FROM nodes WHERE parent IS NOT NULL))",
	      "SELECT count(*) FROM nodes d WHERE (SELECT count(*) FROM nodes f WHERE f.parent = d.ino) = 0",
	      1);
}

/* Also where nothing else is asked of the nodes, and where these are joined with others. */
static void test_all_marked(void **state)
{
	(void)state;
	same("SELECT count(*) FROM nodes d WHERE EXISTS (SELECT 1 FROM nodes f WHERE f.parent = "
	     "d.ino)",
	     "SELECT count(DISTINCT parent) FROM nodes", 1);
	same("SELECT count(*) FROM nodes WHERE ino IN (SELECT parent FROM nodes)",
	     "SELECT count(DISTINCT parent) FROM nodes", 1);
	same("SELECT name FROM nodes WHERE type = 'd' AND ino IN (SELECT parent FROM nodes WHERE "
	     "ext = 'txt') ORDER BY ino",
	     "SELECT name FROM nodes d WHERE (SELECT count(*) FROM nodes f WHERE f.parent = d.ino "
	     "AND f.ext = 'txt') > 0 ORDER BY ino",
	     1);
	same("SELECT count(*) FROM nodes d JOIN nodes e ON e.name = d.name WHERE EXISTS (SELECT 1 "
	     "FROM nodes f WHERE f.parent = d.ino AND f.ext = 'txt')",
	     "SELECT count(DISTINCT parent) FROM nodes WHERE ext = 'txt'", 1);
	same("SELECT count(*) FROM nodes d LEFT JOIN nodes e ON e.parent = d.ino AND e.ext = 'txt' "
	     "WHERE d.ino IN (SELECT parent FROM nodes WHERE name = 'file 3.c')",
	     "SELECT count(*) FROM nodes WHERE name GLOB 'file *.txt'", 1);
	same("SELECT count(*) FROM nodes d LEFT JOIN nodes e ON e.parent = d.ino AND e.ino IN "
	     "(SELECT ino FROM nodes WHERE ext = 'txt')",
	     "SELECT count(*) + (SELECT count(*) FROM nodes) - count(DISTINCT parent) FROM nodes "
	     "WHERE ext = 'txt'",
	     0);
	scope.ino = ino_of("/folder 4");
	same("SELECT count(*) FROM nodes WHERE ino IN (SELECT parent FROM nodes)", "SELECT 1", 1);
	scope.ino = PFS_ROOT_PRIME;
}

/* What is marked has no table in the batch, and others that are behind it have one. */
static void test_mixed(void **state)
{
	static const char sql[] =
		"SELECT sum((SELECT count(*) FROM nodes f WHERE f.parent = d.ino)) FROM nodes d "
		"WHERE NOT EXISTS (SELECT 1 FROM nodes g WHERE g.parent = d.ino AND g.type = 'd') "
		"AND d.ino IN (SELECT parent FROM nodes WHERE ext = 'txt')";
	struct pfs_query *query = begin(sql);
	char text[256], *plan;

	(void)state;
	query->explains = true;
	rest_text(text, sizeof(text), query);
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (!strstr(plan, "run by the relational operators"))
		fail_msg("%s", plan);
	free(plan);
	pfs_query_finish(query);
	same(sql,
	     "SELECT sum(n) FROM (SELECT count(*) AS n FROM nodes GROUP BY parent "
	     "HAVING sum(ext = 'txt') > 0 AND sum(type = 'd') = 0)",
	     2);
}

/* Earlier sub-selects leave no row, or few, for the later ones. */
static void test_few_left(void **state)
{
	(void)state;
	same("SELECT count(*) FROM nodes n "
	     "WHERE NOT EXISTS (SELECT 1 FROM nodes k WHERE k.ino = n.ino AND k.ext = 'c') "
	     "AND NOT EXISTS (SELECT 1 FROM nodes k WHERE k.ino = n.ino) "
	     "AND NOT EXISTS (SELECT 1 FROM nodes k WHERE k.parent = n.ino AND k.depth = 1)",
	     "SELECT 0", 3);
	same("SELECT name FROM nodes n "
	     "WHERE EXISTS (SELECT 1 FROM nodes k WHERE k.parent = n.ino AND k.depth = 1) "
	     "AND EXISTS (SELECT 1 FROM nodes k WHERE k.parent = n.ino AND k.type = 'd')",
	     "SELECT name FROM nodes WHERE depth = 0", 2);
}

/* Where something else is asked of the partners, or they have another key. */
static void test_joined(void **state)
{
	(void)state;
	same("SELECT name FROM nodes d WHERE type = 'd' AND (size > 0 OR EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino) AND NOT EXISTS (SELECT 1 FROM nodes f WHERE f.parent = d.ino AND f.ext = 'h')) ORDER BY ino",
	      "SELECT name FROM nodes d WHERE type = 'd' AND (size > 0 OR (SELECT count(*) FROM nodes f WHERE f.parent = d.ino) > 0) ORDER BY ino",
	      0);
	same("SELECT count(*) FROM nodes n WHERE EXISTS (SELECT 1 FROM nodes o WHERE o.name = n.name AND o.ext = 'txt')",
	      "SELECT count(*) FROM nodes WHERE ext = 'txt'", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_marked),
		cmocka_unit_test(test_all_marked),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_few_left),
		cmocka_unit_test(test_joined),
	};

	return cmocka_run_group_tests(tests, set_up_many, tear_down);
}
