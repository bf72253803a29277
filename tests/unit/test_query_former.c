/* SPDX-License-Identifier: MIT */
/* nodes_at(TIME): what `nodes` was then, whatever has happened since. */
#include "base/clock.h"
#include "fs/query/times/times.h"
#include "meta/history.h"
#include "tests/ref/random.h"
#include "tests/unit/query_util.h"

#define STATES	  24
#define FOLDERS	  12
#define TEXT_SIZE 65536
#define COLUMNS_OF                                                                                 \
	"path, name, ino, parent, depth, type, mode, uid, gid, size, blocks, target, mtime, ctime"

struct state {
	int64_t time;
	char *text;
};

static uint64_t folders[FOLDERS];

static int set_up_history(void **state)
{
	const struct pfs_history_rule rule = {.age = INT64_C(3600) * 1000000000};
	const struct pfs_tree_options options = {.history = &rule};
	int failed = set_up(state);

	close_queries();
	tree = temp_tree_open_with(&store, &options);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	return failed;
}

/* The time of now, with all that is done in the store, and nothing else of that time. */
static int64_t commit(void)
{
	int64_t now;

	assert_int_equal(pfs_tree_sync(tree), 0);
	now = pfs_time_now();
	while (pfs_time_now() == now) {
	}
	return now;
}

static void remember(struct state *state)
{
	state->time = commit();
	state->text = malloc(TEXT_SIZE);
	assert_non_null(state->text);
	query_text(state->text, TEXT_SIZE, "SELECT " COLUMNS_OF " FROM nodes ORDER BY path");
}

static void change_something(uint64_t *random)
{
	uint64_t *folder = &folders[random_below(random, FOLDERS)], made;
	uint64_t other = folders[random_below(random, FOLDERS)];
	const struct stat attr = {.st_mode = 0700 | random_below(random, 64)};
	struct pfs_entry entry;
	char name[8], to[8];

	(void)snprintf(name, sizeof(name), "n%d", (int)random_below(random, 5));
	(void)snprintf(to, sizeof(to), "n%d", (int)random_below(random, 5));
	switch (random_below(random, 7)) { /* what cannot be done is not */
	case 0:
		made = temp_tree_make(tree, *folder, name, S_IFDIR | 0755);
		if (made)
			folders[1 + random_below(random, FOLDERS - 1)] = made;
		break;
	case 1:
		(void)temp_tree_make(tree, *folder, name, S_IFREG | 0644);
		break;
	case 2:
		if (!pfs_tree_symlink(tree, &entry, *folder, name, to, &temp_root))
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
		break;
	case 3:
		if (pfs_tree_unlink(tree, *folder, name))
			(void)!pfs_tree_rmdir(tree, *folder, name);
		break;
	case 4:
		(void)!pfs_tree_setattr(tree, &entry, *folder, &attr, PFS_SET_MODE, &temp_root);
		break;
	default:
		(void)!pfs_tree_rename(tree, *folder, name, other, to, 0);
		break;
	}
}

static void rows_are_what_they_were(void **state PFS_UNUSED)
{
	static char text[TEXT_SIZE];
	struct state states[STATES];
	uint64_t random = 7;
	char sql[256];

	for (size_t i = 0; i < FOLDERS; i++)
		folders[i] = PFS_ROOT_PRIME;
	for (size_t i = 0; i < STATES; i++) {
		for (int n = 0; n < 12; n++)
			change_something(&random);
		remember(&states[i]);
	}
	for (size_t i = 0; i < STATES; i++) {
		(void)snprintf(sql, sizeof(sql),
			       "SELECT " COLUMNS_OF " FROM nodes_at('%lld') ORDER BY path",
			       (long long)states[i].time);
		query_text(text, sizeof(text), sql);
		assert_string_equal(text, states[i].text);
		free(states[i].text);
	}
}

/* More rows than are read at once, and than one batch of others. */
static void many_rows_come_in_batches(void **state PFS_UNUSED)
{
	char name[16], sql[128];
	int64_t then;

	for (int i = 0; i < 700; i++) {
		(void)snprintf(name, sizeof(name), "f%03d", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	then = commit();
	change("DELETE FROM nodes WHERE name GLOB 'f*'", 700);
	(void)commit();
	(void)snprintf(sql, sizeof(sql),
		       "SELECT count(*), count(DISTINCT path), sum(depth) FROM nodes_at(%lld) "
		       "WHERE name GLOB 'f*'",
		       (long long)then);
	check(sql, "700 700 700");
	check("SELECT count(*) FROM nodes_at('now') WHERE name GLOB 'f*'", "0");
}

/* Rows that an outer table asks for again are not opened again, and those of one number are found
 * by it. */
static void inner_rows_are_opened_once(void **state PFS_UNUSED)
{
	enum { FILES = 3000 };
	uint64_t start, once;
	char name[16], sql[256];
	int64_t then;

	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), "f%04d", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	then = commit();
	change("UPDATE nodes SET mode = 384 WHERE name GLOB 'f*5'", FILES / 10);
	change("DELETE FROM nodes WHERE name GLOB 'f*7'", FILES / 10);
	(void)commit();
	start = pfs_now_ns();
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(*), sum(mode = 33188) FROM nodes_at(%lld) WHERE name GLOB 'f*'",
		(long long)then);
	check(sql, "3000 3000");
	once = pfs_now_ns() - start;
	start = pfs_now_ns();
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(*), sum(w.mode = 33188), sum(n.mode = 33188) FROM nodes AS n CROSS JOIN nodes_at(%lld) AS w "
		"WHERE w.ino = n.ino AND n.name GLOB 'f*'",
		(long long)then);
	check(sql, "2700 2700 2400");
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(*), sum((SELECT mode FROM nodes_at(%lld) AS w WHERE w.ino = n.ino) = 33188) "
		"FROM nodes AS n WHERE name GLOB 'f*'",
		(long long)then);
	check(sql, "2700 2700");
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT count(*) FROM nodes_at(%lld) WHERE ino IN (SELECT ino FROM nodes WHERE name GLOB 'f*' "
		"UNION ALL SELECT NULL UNION ALL SELECT 'x' UNION ALL SELECT -5 UNION ALL SELECT 9e18)",
		(long long)then);
	check(sql, "2700");
	/* It opened the store 5,400 times, and read all rows each time. */
	assert_true(pfs_now_ns() - start < 200 * once + 2000000000);
}

static bool is_forgotten(int64_t time)
{
	struct pfs_history history;

	assert_int_equal(pfs_tree_history(tree, &history), 0);
	return history.since > time;
}

/* A long answer lets go of the store while it rests, and goes on with what was; if that has been
 * forgotten, it says so. */
static void a_time_may_be_forgotten_meanwhile(void **state PFS_UNUSED)
{
	const struct pfs_history_rule small = {.size = 20000};
	const struct pfs_tree_options options = {.history = &small};
	struct pfs_query *query;
	char name[16], sql[128];
	int got, rows = 0;
	int64_t then;

	close_queries();
	tree = temp_tree_open_with(&store, &options);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	for (int i = 0; i < 900; i++) {
		(void)snprintf(name, sizeof(name), "f%03d", i);
		(void)make(PFS_ROOT_PRIME, name, S_IFREG | 0644);
	}
	then = commit();
	(void)snprintf(sql, sizeof(sql), "SELECT name FROM nodes_at(%lld)", (long long)then);
	for (int forgets = 0; forgets < 2; forgets++) {
		query = begin(sql);
		assert_int_equal(pfs_query_next(query, &error), 1);
		pfs_query_rests(query);
		change("UPDATE nodes SET mode = 384 WHERE path = '/a'", 1);
		for (int i = 0; i < 4 * forgets; i++) {
			change("UPDATE nodes SET uid = uid + 1 WHERE name GLOB 'f*'", 900);
			(void)commit();
		}
		for (int i = 0; i < 3000 * forgets && !is_forgotten(then); i++)
			(void)usleep(10000);
		for (rows = 1; (got = pfs_query_next(query, &error)) == 1;)
			rows++;
		if (forgets) {
			assert_int_equal(got, -ESTALE);
			assert_non_null(strstr(error.text, "forgotten while"));
		} else {
			assert_int_equal(got, 0);
			assert_true(rows > 900);
		}
		pfs_query_finish(query);
	}
}

static void it_is_a_table_like_others(void **state PFS_UNUSED)
{
	int64_t then = commit();
	char sql[512];

	change("UPDATE nodes SET path = '/x' WHERE path = '/a/b'", 1);
	change("DELETE FROM nodes WHERE path = '/e.tar.gz'", 1);
	(void)commit();
	(void)snprintf(
		sql, sizeof(sql),
		"SELECT w.path, n.path FROM nodes_at(%lld) AS w LEFT JOIN nodes AS n USING (ino) "
		"WHERE w.path IS NOT n.path ORDER BY 1",
		(long long)then);
	check(sql, "/a/b /x,/a/b/c.txt /x/c.txt,/e.tar.gz -");
	check("SELECT count(*) FROM nodes_at('now') WHERE mtime > '1 hour ago' AND mtime < "
	      "'tomorrow'",
	      "5");
	check("SELECT count(*) FROM nodes_at('now'), nodes_at('now')", "25");
	check("SELECT count(*) FROM nodes_at(NULL)", "0");
	(void)snprintf(sql, sizeof(sql),
		       "DELETE FROM nodes WHERE ino IN (SELECT ino FROM nodes_at(%lld) WHERE name "
		       "= 'd.c')",
		       (long long)then);
	change(sql, 1);
}

static void set_attr(const char *path, const char *name, const char *value)
{
	assert_int_equal(pfs_tree_setxattr(tree, ino_of(path), name, value, strlen(value), 0), 0);
}

static void attributes_are_what_they_were(void **state PFS_UNUSED)
{
	int64_t first, second;
	char sql[256];

	set_attr("/a/d.c", "user.x", "5");
	set_attr("/a/d.c", "user.long", "a text");
	set_attr("/e.tar.gz", "user.x", "7");
	first = commit();
	set_attr("/a/d.c", "user.x", "6");
	assert_int_equal(pfs_tree_removexattr(tree, ino_of("/a/d.c"), "user.long"), 0);
	assert_int_equal(pfs_tree_unlink(tree, PFS_ROOT_PRIME, "e.tar.gz"), 0);
	second = commit();
	(void)snprintf(sql, sizeof(sql),
		       "SELECT w.path, a.name, a.value FROM attrs_at(%lld) AS a JOIN "
		       "nodes_at(%lld) AS w USING (ino) "
		       "ORDER BY 1, 2",
		       (long long)first, (long long)first);
	check(sql, "/a/d.c long a text,/a/d.c x 5,/e.tar.gz x 7");
	(void)snprintf(sql, sizeof(sql), "SELECT name, value FROM attrs_at(%lld)",
		       (long long)second);
	check(sql, "x 6");
}

static void refuse_rows(const char *sql, const char *text)
{
	struct pfs_query *query = begin(sql);

	assert_int_equal(pfs_query_next(query, &error), -EINVAL);
	if (!strstr(error.text, text))
		fail_msg("%s: %s", sql, error.text);
	pfs_query_finish(query);
}

static void what_is_not_known_is_said(void **state PFS_UNUSED)
{
	const struct pfs_history_rule nothing = {.age = 0};
	const struct pfs_tree_options options = {.history = &nothing};

	refuse_rows("SELECT * FROM nodes_at('1 year ago')", "is known from 20");
	refuse_rows("SELECT * FROM nodes_at('soon')", "takes a time");
	scope.sees_all = false;
	scope.uid = scope.gid = 1000;
	refuse_rows("SELECT * FROM nodes_at('now')", "for the user who mounts");
	scope.sees_all = true;
	close_queries();
	tree = temp_tree_open_with(&store, &options);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	refuse_rows("SELECT * FROM nodes_at('now')", "keeps no history");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rows_are_what_they_were, set_up_history, tear_down),
		cmocka_unit_test_setup_teardown(many_rows_come_in_batches, set_up_history,
						tear_down),
		cmocka_unit_test_setup_teardown(inner_rows_are_opened_once, set_up_history,
						tear_down),
		cmocka_unit_test_setup_teardown(a_time_may_be_forgotten_meanwhile, set_up_history,
						tear_down),
		cmocka_unit_test_setup_teardown(it_is_a_table_like_others, set_up_history,
						tear_down),
		cmocka_unit_test_setup_teardown(attributes_are_what_they_were, set_up_history,
						tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_known_is_said, set_up_history,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
