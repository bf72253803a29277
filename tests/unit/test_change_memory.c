/* SPDX-License-Identifier: MIT */
/* Statements with no memory at their first, second, third, ... request, primefs's own or SQLite's:
 * one fails and nothing has changed, or it is done.  PFS_LONG=1: at each request. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "tests/ref/change_model.h"
#include "tests/unit/store_model.h"
#include "tests/vfs/faultvfs.h"
#include "tests/vfs/memory.h"

static struct temp_store temp;

/* What is done, and what makes it possible to do it again. */
static const struct {
	const char *done, *undone;
} statements[] = {
	{"SELECT count(*) FROM nodes, t1, t3 WHERE t1.a = ino AND t3.a < 50", NULL},
	{"INSERT INTO t3 SELECT id, b FROM t1", "DELETE FROM t3"},
	{"SELECT path, tag, (SELECT count(*) FROM t1) FROM nodes ORDER BY name DESC", NULL},
	{"INSERT INTO nodes (path, type, tag) VALUES ('/x', 'd', 1), ('/x/y', 'f', 'z')",
	 "DELETE FROM nodes WHERE under(ino, '/x')"},
	{"INSERT INTO nodes (path, target) SELECT path || '/link', name FROM nodes WHERE type = "
	 "'d' AND "
	 "depth > 0",
	 "DELETE FROM nodes WHERE type = 'l'"},
	{"DELETE FROM nodes WHERE under(ino, '/d4')",
	 "INSERT INTO nodes (path, type, tag) VALUES ('/d4', 'd', 1), ('/d4/f', 'f', 'z')"},
	{"UPDATE nodes SET mode = mode | 7, uid = uid + 1, mtime = mtime + 1 WHERE type = 'f'",
	 NULL},
	{"UPDATE nodes SET tag = path || tag, note = 5 WHERE depth < 2",
	 "UPDATE nodes SET tag = 'y', note = NULL"},
	{"UPDATE nodes SET path = '/d1/d2' WHERE path = '/d2'",
	 "UPDATE nodes SET path = '/d2' WHERE path = '/d1/d2'"},
	{"UPDATE nodes SET name = CASE name WHEN 'd1' THEN 'd3' ELSE 'd1' END WHERE name IN ('d1', "
	 "'d3')",
	 NULL},
	{"UPDATE nodes SET size = size % 5000 + 3000 WHERE path = '/d0/f0'", NULL},
	{"CREATE TABLE t2 AS SELECT * FROM nodes", "DROP TABLE t2"},
	{"INSERT INTO t1 (a, b) SELECT ino, name FROM nodes", "DELETE FROM t1 WHERE b LIKE 'f%'"},
	{"UPDATE t1 SET b = b || a, a = NULL", "UPDATE t1 SET a = id, b = 'b'"},
	{"CREATE INDEX i1 ON t1 (b)", "DROP INDEX i1"},
};

static void undo(size_t i)
{
	int error = change_model_run(statements[i].undone);

	if (error)
		fail_msg("%s: %d", change_model_text(), error);
}

/* After a commit that failed: it is tried again. */
static bool recovers(void)
{
	for (unsigned tries = 0; tries < 3000 && pfs_tree_failure(change_model_tree()); tries++)
		(void)usleep(10000);
	return !pfs_tree_failure(change_model_tree());
}

/* True: it did not come to a refusal. */
static bool attempt(size_t i, unsigned n, bool (*refuse)(bool begin, unsigned n))
{
	struct change_state before, after;
	bool refused;
	int error;

	assert_int_equal(change_model_import("t3"), 0);
	/* by connections of its own, so that those of the statement have not seen the table */
	change_model_look(&before, change_model_tree());
	(void)refuse(true, n);
	error = change_model_run(statements[i].done);
	refused = refuse(false, n);
	change_model_look(&after, NULL);
	/* it may have been the committer's request, which ends what the import began */
	assert_true(!refused || recovers());
	if (error == -EROFS && refused)
		error = -ENOMEM;
	if (error && (error != -ENOMEM || !refused || memcmp(&before, &after, sizeof(before)) != 0))
		fail_msg("%s: request %u: %d, %s", error ? change_model_text() : statements[i].done,
			 n, error,
			 memcmp(&before, &after, sizeof(before)) ? "changed" : "as before");
	if (!error && statements[i].undone)
		undo(i);
	return !refused;
}

static void run_out(bool (*refuse)(bool begin, unsigned n))
{
	unsigned tries = 0;

	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		for (unsigned n = 0; !attempt(i, n, refuse); n += long_mode() ? 1 : 1 + n / 16)
			tries++;
	}
	print_message("%u refusals\n", tries);
	assert_true(tries > 10 * PFS_COUNT(statements));
}

static bool refuse_once(bool begin, unsigned n)
{
	if (!begin)
		return memory_grant();
	memory_refuse((int)n, 1);
	return false;
}

static bool refuse_for_ever(bool begin, unsigned n)
{
	if (!begin)
		return memory_grant();
	memory_refuse((int)n, MEMORY_FOR_EVER);
	return false;
}

static bool refuse_sqlite(bool begin, unsigned n)
{
	const struct fault_plan plan = {
		.calls = FAULT_BIT(FAULT_MEMORY), .first = n, .count = 1, .error = ENOMEM};
	bool refused = fault_failures() > 0;

	fault_set(begin ? &plan : NULL);
	return refused;
}

static void test_own(void **state)
{
	(void)state;
	run_out(refuse_once);
	run_out(refuse_for_ever);
}

static void test_sqlite(void **state)
{
	(void)state;
	run_out(refuse_sqlite);
}

static int set_up(void **state)
{
	(void)state;
	temp_store_create(&temp);
	/* nobody commits meanwhile but who has to */
	change_model_start(&temp, &(struct pfs_tree_options){.commit_ms = 1000000}, 1);
	return 0;
}

static int tear_down(void **state)
{
	struct change_state before, after;

	(void)state;
	change_model_look(&before, NULL);
	assert_int_equal(change_model_close(), 0);
	change_model_reopen(&temp, &(struct pfs_tree_options){0});
	change_model_look(&after, NULL);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(change_model_close(), 0);
	assert_int_equal(temp_store_findings(&temp), 0);
	temp_store_remove(&temp);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sqlite, set_up, tear_down),
	};

	if (fault_register(true))
		return 1;
	pfs_log_open((enum pfs_log_level)0, false); /* the refusals are meant */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
