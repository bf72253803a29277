/* SPDX-License-Identifier: MIT */
/* A daemon that is asked short statements of each kind, again and again, has as much memory and as
 * many descriptors in the end as soon after it began.  PFS_LONG=1: a million of them (make
 * check-leaks); N: so many. */
#include "query_util.h"

#include <dirent.h>
#include <malloc.h>

#include "fs/query/internal.h"
#include "fs/query/output/format.h"

#define WARM	    40u	      /* rounds before memory is looked at: caches fill */
#define SHORT	    4000u     /* statements, */
#define LONG	    1000000u  /* and of the long mode */
#define CHANGES	    8u	      /* rounds, of which one changes something: what it does waits for the disk */
/* By how much memory may differ, and half a byte more for each statement: the allocator counts as
 * used what it keeps for threads (without that, glibc.malloc.tcache_count=0, nothing grows but
 * arrays by the number of tables that there ever were). A leak of 32 bytes in one of the statements
 * is twice as much. */
#define GROWN_BYTES (256u << 10)

static const char *const statements[] = {
	/* rows as they are, by scans, operators and indexes */
	"SELECT path, size FROM nodes WHERE name GLOB '*.c'",
	"SELECT name FROM nodes ORDER BY size DESC LIMIT 2",
	"SELECT ino FROM nodes WHERE parent = 2 ORDER BY name",
	"SELECT path FROM nodes WHERE under(ino, '/a') AND size + 1 > 0",
	/* the operators */
	"SELECT count(*) FROM nodes",
	"SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 2 DESC",
	"SELECT a.name, b.name FROM nodes a JOIN nodes b ON b.parent = a.ino WHERE a.mode > 0 AND b.size >= 0",
	"SELECT k, count(*) FROM nodes JOIN kept ON ext = k GROUP BY k",
	"SELECT name FROM nodes WHERE ino IN (SELECT i FROM kept)",
	"SELECT upper(substr(name, 1, 1)) AS c, count(*) FROM nodes GROUP BY c",
	"SELECT name, row_number() OVER (PARTITION BY parent ORDER BY size, ino) FROM nodes ORDER BY ino",
	"SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent FROM nodes",
	"SELECT DISTINCT owner, tag FROM nodes",
	"WITH RECURSIVE t(i) AS (SELECT 2 UNION ALL SELECT ino FROM nodes, t WHERE parent = i) SELECT count(*) FROM t",
	/* SQLite, alone and with parts */
	"SELECT 1",
	"SELECT printf('%s!', name) FROM nodes",
	"SELECT group_concat(name, ',') FROM nodes GROUP BY parent",
	"SELECT total(s) || '' FROM (SELECT sum(size) AS s FROM nodes GROUP BY ext)",
	"SELECT i FROM kept WHERE k = 'c'",
	"SELECT json_group_array(name) FROM nodes WHERE size >= 0",
	"SELECT count(*) FROM nodes WHERE mtime > '1 day ago'",
	/* errors */
	"SELECT nothing FROM nodes",
	"SELECT sum(9223372036854775807) FROM nodes",
	"DROP TABLE nodes",
	"SELECT (",
	"SELECT abs(-9223372036854775808)",
};

/* The last ones make and drop a table: what is remembered of changes is forgotten then. */
static const char *const changes[] = {
	"UPDATE nodes SET mode = 420 WHERE name = 'd.c'",
	"UPDATE nodes SET tag = 'x' WHERE ext = 'txt'",
	"INSERT INTO kept VALUES (7, 'txt')",
	"UPDATE kept SET k = 'md' WHERE i = 7",
	"DELETE FROM kept WHERE i = 7",
	"CREATE TABLE short AS SELECT ext, count(*) AS n FROM nodes GROUP BY ext",
	"INSERT INTO short SELECT name, size FROM nodes",
	"DROP TABLE short",
};

static int drop(void *arg PFS_UNUSED, const void *bytes PFS_UNUSED, size_t size PFS_UNUSED)
{
	return 0;
}

enum how { WHOLE, FIRST_ROW, FROZEN, PLANNED, HOWS };

/* All of it; its first row alone; over a frozen tree; with its plan. */
static void ask(const char *sql, enum how how)
{
	const struct pfs_sink sink = {NULL, drop};
	struct pfs_query *query;
	char *plan;
	int got = 0;

	if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
		return;
	if (how == FROZEN && pfs_query_freeze(query))
		got = 0; /* it goes on over the live tree */
	if (how == FIRST_ROW)
		got = pfs_query_next(query, &error);
	else
		while (pfs_format_rows(query, PFS_FORMAT_TSV, &sink, &error) == -EAGAIN)
			;
	if (how == PLANNED && !got && !pfs_query_plan(query, &plan))
		free(plan);
	pfs_query_finish(query);
}

/* Returns how many statements these were. */
static unsigned long ask_all(unsigned round)
{
	size_t n_changes = round % CHANGES ? 0 : PFS_COUNT(changes);

	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		ask(statements[i], (enum how)((round + i) % HOWS));
	for (size_t i = 0; i < n_changes; i++)
		ask(changes[i], (enum how)((round / CHANGES + i) % HOWS));
	return PFS_COUNT(statements) + n_changes;
}

static unsigned count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	assert_int_equal(closedir(dir), 0);
	return n;
}

struct held {
	size_t bytes;
	unsigned descriptors;
};

/* When everything is committed, so that nothing of it is on its way. */
static struct held look(void)
{
	struct mallinfo2 info;

	assert_int_equal(pfs_tree_sync(tree), 0);
	info = mallinfo2();
	return (struct held){info.uordblks + info.hblkhd, count_descriptors()};
}

static void test_leaks(void **state)
{
	const char *text = getenv("PFS_LONG");
	unsigned long wanted = text ? strtoul(text, NULL, 10) : 0, n = 0;
	struct held before, after;

	(void)state;
	pfs_query_finish(begin("CREATE TABLE kept (i INTEGER, k TEXT)"));
	pfs_query_finish(begin("INSERT INTO kept SELECT ino, ext FROM nodes"));
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.tag", "x", 1, 0), 0);
	for (unsigned round = 0; round < WARM; round++)
		(void)ask_all(round);
	before = look();
	wanted = wanted == 1 ? LONG : wanted ? wanted : SHORT;
	for (unsigned round = 0; n < wanted; round++)
		n += ask_all(round);
	after = look();
	print_message(
		"%lu statements: %zu bytes before, %zu after; %u descriptors before, %u after\n", n,
		before.bytes, after.bytes, before.descriptors, after.descriptors);
	assert_in_range(after.descriptors, 0, before.descriptors);
	assert_in_range(after.bytes, 0, before.bytes + GROWN_BYTES + n / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_leaks, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
