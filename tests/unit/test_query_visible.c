/* SPDX-License-Identifier: MIT */
/* Statements of a viewer who does not see all: as over a tree that has nothing but what he sees. */
#include "twin_util.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/xattr.h>

#include "fs/query/output/format.h"
#include "fs/query/internal.h"
#include "fs/query/relational/relational.h"
#include "fs/nodes/visible.h"

static uint64_t seed = 20261121;
static struct temp_store temp;
static struct pfs_queries *queries;
static _Atomic unsigned past;	 /* statements of theirs that the operators ran */

/* ---- statements as text ---- */

static int append(void *arg, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, arg) == size ? 0 : -EIO;
}

/* The rows as text, allocated.  -EAGAIN: the tree has changed, and they are void: the committer
 * frees nodes in the background. */
static char *rows_of(struct pfs_query *query, int *status, struct pfs_query_error *error)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const struct pfs_sink sink = {out, append};

	assert_non_null(out);
	*status = pfs_format_rows(query, PFS_FORMAT_TSV, &sink, error);
	if (*status)
		(void)fprintf(out, "error %d: %s\n", *status, error->text);
	assert_int_equal(fclose(out), 0);
	return text;
}

/* The rows, or why there are none; allocated. */
static char *run(struct pfs_queries *of, const struct pfs_query_scope *scope, const char *sql)
{
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;
	char *text = NULL;
	int status = pfs_query_start(&query, of, scope, sql, strlen(sql), &error);

	if (status) {
		assert_int_not_equal(asprintf(&text, "error %d: %s\n", status, error.text), -1);
		return text;
	}
	do {
		free(text);
		text = rows_of(query, &status, &error);
	} while (status == -EAGAIN);
	if (!status && of == queries && query->is_limited)
		past += pfs_relational_has_rows(query->relational);
	pfs_query_finish(query);
	return text;
}

static void compare(const struct pfs_query_scope *limited, const struct pfs_query_scope *all,
		    const char *sql)
{
	char *got = run(queries, limited, sql), *wanted = run(twin_queries, all, sql);

	if (strcmp(got, wanted) != 0)
		fail_msg("%s: is\n%s\nwanted\n%s", sql, got, wanted);
	free(got);
	free(wanted);
}

/* The plan, once all rows have been read; allocated. */
static char *plan_of(struct pfs_queries *of, const struct pfs_query_scope *scope, const char *sql)
{
	struct pfs_query_scope explaining = *scope;
	struct pfs_query_error error;
	struct pfs_query *query;
	char *plan;
	int got;

	explaining.explains = true;
	if (pfs_query_start(&query, of, &explaining, sql, strlen(sql), &error))
		return strdup(error.text);
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)
		;
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	pfs_query_finish(query);
	return plan;
}

/* The same viewer's, with what is hidden and without.  SQLite's tell in which order rows came. */
static void compare_plans(const struct pfs_query_scope *limited, const char *sql)
{
	char *got = plan_of(queries, limited, sql), *wanted = plan_of(twin_queries, limited, sql);

	if (!strncmp(got, "run by", 6) != !strncmp(wanted, "run by", 6) ||
	    (!strncmp(got, "run by", 6) && strcmp(got, wanted) != 0))
		fail_msg("%s: the plan is\n%s\nwanted\n%s", sql, got, wanted);
	free(got);
	free(wanted);
}

/* ---- random viewers ---- */

static const char *const statements[] = {
	"SELECT upper(type), count(*), rank() OVER (ORDER BY sum(size)) FROM nodes GROUP BY type",
	"SELECT upper(tag), (SELECT count(*) FROM nodes), max(size) || '' FROM nodes GROUP BY tag",
	"SELECT name FROM nodes GROUP BY name EXCEPT SELECT ext FROM nodes GROUP BY ext",
	"SELECT path, name, ext, type, depth, uid, gid, mode, mtime, target FROM nodes ORDER BY path",
	"SELECT path, subtree_count, subtree_size, subtree_blocks, subtree_mtime FROM nodes ORDER BY path",
	"SELECT count(*), sum(size), sum(subtree_count), max(mtime), max(subtree_mtime) FROM nodes",
	"SELECT count(*), sum(size) FROM nodes WHERE type = 'f'",
	"SELECT type, count(*), total(size) FROM nodes GROUP BY type ORDER BY type",
	"SELECT ext, count(*) FROM nodes GROUP BY ext ORDER BY 2 DESC, 1",
	"SELECT uid, gid, count(*) FROM nodes GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT path FROM nodes WHERE subtree_count > 3 ORDER BY path",
	"SELECT path FROM nodes WHERE subtree_count = 1 AND type = 'd' ORDER BY path",
	"SELECT path FROM nodes WHERE subtree_size BETWEEN 1 AND 500000 ORDER BY path",
	"SELECT path FROM nodes WHERE subtree_mtime > seconds(500) ORDER BY path",
	"SELECT path FROM nodes WHERE subtree_blocks IS NOT NULL AND subtree_blocks < 3 ORDER BY path",
	"SELECT max(subtree_size), min(subtree_count) FROM nodes WHERE depth = 1",
	"SELECT path FROM nodes ORDER BY subtree_size DESC, path LIMIT 5",
	"SELECT path FROM nodes ORDER BY subtree_count, name, path",
	"SELECT size, path FROM nodes ORDER BY size DESC, path LIMIT 7",
	"SELECT mtime, path FROM nodes ORDER BY mtime, path LIMIT 9",
	"SELECT name, path FROM nodes WHERE type <> 'd' ORDER BY name, path LIMIT 20",
	"SELECT path FROM nodes ORDER BY path DESC LIMIT 3",
	"SELECT path, hex(preorder) FROM nodes ORDER BY preorder",
	"SELECT path FROM nodes WHERE type = 'f' ORDER BY preorder LIMIT 4",
	"SELECT DISTINCT name FROM nodes ORDER BY name",
	"SELECT DISTINCT depth FROM nodes ORDER BY depth DESC",
	"SELECT min(name), max(name), min(path), max(path) FROM nodes",
	"SELECT count(*) FROM nodes",
	"SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM nodes WHERE type = 'd')",
	"SELECT count(*), path FROM nodes WHERE subtree_count = (SELECT max(subtree_count) FROM nodes)",
	"SELECT path, row_number() OVER (ORDER BY subtree_size, path) FROM nodes ORDER BY path",
	"SELECT path FROM nodes WHERE name GLOB '*a*' ORDER BY path",
	"SELECT path FROM nodes WHERE name LIKE 'A%' ORDER BY path",
	"SELECT path FROM nodes WHERE name = 'a' ORDER BY path",
	"SELECT path FROM nodes WHERE name >= 'b' ORDER BY path",
	"SELECT path FROM nodes WHERE path GLOB '/a*/*' ORDER BY path",
	"SELECT path FROM nodes WHERE ext = 'so' OR size > 900000 ORDER BY path",
	"SELECT path FROM nodes WHERE size >= 5 AND uid = 2 ORDER BY path",
	"SELECT path FROM nodes WHERE mode & 4 ORDER BY path",
	"SELECT path FROM nodes WHERE depth > 3 ORDER BY path",
	"SELECT path_of(parent), count(*) FROM nodes GROUP BY parent ORDER BY 1",
	"SELECT a.path, (SELECT count(*) FROM nodes WHERE under(ino, a.ino)) FROM nodes a ORDER BY 1",
	"SELECT a.path, (SELECT count(*) FROM nodes WHERE child_of(ino, a.ino)) FROM nodes a ORDER BY 1",
	"SELECT a.path, (SELECT group_concat(path) FROM nodes WHERE ancestor_of(ino, a.ino)) FROM nodes a ORDER BY 1",
	"SELECT path_of(common_ancestor(ino)) FROM nodes WHERE type = 'f'",
	"SELECT a.path, b.path, path_of(common_ancestor(a.ino, b.ino)) FROM nodes a JOIN nodes b USING (size) "
		"WHERE a.path < b.path AND a.type = 'f' AND b.type = 'f' ORDER BY 1, 2",
	"SELECT ext, min(name), max(size), count(DISTINCT uid) FROM nodes WHERE size > 5 GROUP BY ext ORDER BY 1",
	"SELECT p.path, count(*), sum(n.size) FROM nodes n JOIN nodes p ON n.parent = p.ino GROUP BY p.ino ORDER BY 1",
	"SELECT p.path, n.path FROM nodes n LEFT JOIN nodes p ON p.name = n.name AND p.size > n.size ORDER BY 1, 2",
	"SELECT DISTINCT depth, type FROM nodes WHERE name LIKE '%a%' ORDER BY 1, 2",
	"SELECT count(*), sum(depth) FROM nodes WHERE name GLOB '*a*' AND under(ino, '/')",
	"SELECT owner, owner_group, count(*) FROM nodes GROUP BY 1, 2 ORDER BY 1, 2",
	"SELECT max(n), sum(n) FROM (SELECT parent, count(*) AS n FROM nodes GROUP BY parent)",
	"SELECT type, sum(size * 9223372036854775807) FROM nodes GROUP BY type ORDER BY 1",
	"SELECT name FROM nodes WHERE type = 'd' UNION SELECT ext FROM nodes ORDER BY 1",
	"WITH RECURSIVE t(i) AS (SELECT ino_of('/') UNION ALL SELECT ino FROM nodes JOIN t ON parent = i) "
		"SELECT count(*) FROM t",
};

/* In place of each @. */
static void put_path(char *sql, const char *form, const char *path)
{
	for (; *form; form++) {
		if (*form == '@')
			sql = stpcpy(sql, path);
		else
			*sql++ = *form;
	}
	*sql = 0;
}

/* What is hidden is as what is not there: by path, by number, and in plans. */
static void check_hidden(const struct pfs_query_scope *limited, const struct pfs_query_scope *all,
			 const struct seen *seen)
{
	static const char *const forms[] = {
		"SELECT ino_of('@'), path_of(ino_of('@'))",
		"SELECT path_of(ino_of('@/..')), path_of(ino_of('@/.'))",
		"SELECT path_of(ino_of('@/../..')), path_of(ino_of('@/../.'))",
		"SELECT count(*) FROM nodes WHERE under(ino, '@') OR ino = ino_of('@')",
		"SELECT count(*) FROM nodes WHERE under(ino, '@') AND path <> '@'",
		"SELECT count(*) FROM nodes WHERE child_of(ino, '@') AND path <> '@'",
		"SELECT count(*) FROM nodes WHERE ancestor_of(ino, '@') AND path <> '@'",
		"SELECT count(*) FROM nodes WHERE path = '@' OR path = '@/x'",
		"SELECT count(*) FROM nodes WHERE path = '@' AND path <= '@'",
		"SELECT path_of(common_ancestor('@', '/')), common_ancestor('@', '/') IS NULL",
	};
	static char sql[1 << 16];

	for (size_t i = 0; i < PFS_COUNT(forms); i++) {
		char *got, *wanted;

		put_path(sql, forms[i], seen->path);
		got = run(queries, limited, sql);
		wanted = run(twin_queries, all, sql);
		if (i && strcmp(got, wanted) != 0) /* numbers differ in the twin */
			fail_msg("%s: is\n%s\nwanted\n%s", sql, got, wanted);
		if (!i && !strstr(got, "\t\n") != !strstr(wanted, "\t\n"))
			fail_msg("%s: is\n%s\nwanted\n%s", sql, got, wanted);
		free(got);
		free(wanted);
	}
}

static void check_number(const struct pfs_query_scope *limited, const struct seen *seen,
			 bool is_seen)
{
	char sql[512], *got;

	(void)snprintf(sql, sizeof(sql),
		       "SELECT path_of(%llu) IS NULL, under(%llu, 2), under(2, %llu), "
		       "common_ancestor(%llu, 2), (SELECT count(*) FROM nodes WHERE ino = %llu), "
		       "(SELECT count(*) FROM nodes WHERE rowid = %llu), "
		       "(SELECT count(*) FROM nodes WHERE parent = %llu) > 0",
		       (unsigned long long)seen->ino, (unsigned long long)seen->ino,
		       (unsigned long long)seen->ino, (unsigned long long)seen->ino,
		       (unsigned long long)seen->ino, (unsigned long long)seen->ino,
		       (unsigned long long)seen->ino);
	got = run(queries, limited, sql);
	if (!is_seen && !strstr(got, "\n1\t\t\t\t0\t0\t0\n"))
		fail_msg("%s tells of %s: %s", sql, seen->path, got);
	if (is_seen && !strstr(got, "\n0\t1\t"))
		fail_msg("%s hides %s: %s", sql, seen->path, got);
	free(got);
}

static void check_viewer(const struct pfs_viewer *viewer)
{
	const struct pfs_query_scope all = {.ino = PFS_ROOT_PRIME, .sees_all = true};
	const struct pfs_query_scope limited = {
		.ino = PFS_ROOT_PRIME,
		.uid = viewer->uid,
		.gid = viewer->gid,
		.groups = viewer->groups,
		.n_groups = viewer->n_groups,
	};

	make_twin(viewer);
	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		compare(&limited, &all, statements[i]);
		compare_plans(&limited, statements[i]);
	}
	for (size_t i = 1; i < model.n; i++) {
		check_hidden(&limited, &all, &model.seen[i]);
		check_number(&limited, &model.seen[i], sees(i, viewer));
	}
	remove_twin();
}

static void open_model(size_t nodes)
{
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
	assert_int_equal(pfs_queries_open(&queries, model.tree), 0);
	random_tree(model.tree, nodes);
	model_look(&model, model.tree);
}

static void close_model(void)
{
	pfs_queries_close(queries);
	model_forget(&model);
	temp_tree_close(model.tree);
	temp_store_remove(&temp);
}

static void test_random_viewers(void **state)
{
	(void)state;
	if (getenv("PFS_TEST_SMALL")) {
		print_message("valgrind has no address space for two trees at a time\n");
		skip();
	}
	for (uint64_t i = 0; i < 4; i++) {
		random_state = seed + i;
		print_message("seed %llu\n", (unsigned long long)random_state);
		open_model(100);
		for (int round = 0; round < 3; round++) {
			gid_t groups[2] = {rnd(4), rnd(4)};
			struct pfs_viewer viewer = {
				.uid = 1 + rnd(5),
				.gid = rnd(6),
				.groups = groups,
				.n_groups = rnd(3),
			};

			random_changes(&model, 3);
			random_rights(&model);
			check_viewer(&viewer);
		}
		close_model();
	}
	print_message("%u viewers saw some nodes and not others; %u statements past SQLite\n",
		      in_part, past);
	assert_true(in_part > 5);
	assert_true(past > 100);
}

/* ---- by hand ---- */

static uint64_t make(uint64_t parent, const char *name, mode_t mode, uid_t uid)
{
	struct stat attr = {.st_mode = mode, .st_uid = uid, .st_gid = uid};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(model.tree, &entry, parent, name, mode, 0, &temp_root), 0);
	assert_int_equal(pfs_tree_setattr(model.tree, &entry, entry.attr.st_ino, &attr,
					  PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID, &temp_root),
			 0);
	pfs_tree_forget(model.tree, entry.attr.st_ino, 2);
	return entry.attr.st_ino;
}

static void set_xattr(uint64_t ino, const char *name)
{
	assert_int_equal(pfs_tree_setxattr(model.tree, ino, name, "v", 1, 0), 0);
}

static void expect(const struct pfs_query_scope *scope, const char *sql, const char *wanted)
{
	char *got = run(queries, scope, sql);

	if (!strstr(got, wanted))
		fail_msg("%s: %s, wanted %s", sql, got, wanted);
	free(got);
}

static const struct pfs_query_scope nobody = {.ino = PFS_ROOT_PRIME, .uid = 500, .gid = 500};
static const struct pfs_query_scope owner = {
	.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};

/* A column that only hidden or unreadable nodes have is none. */
static void test_attributes(void **state)
{
	static const char columns[] =
		"SELECT group_concat(name) AS c FROM pragma_table_info('nodes') "
		"WHERE name IN ('open', 'hidden', 'barred', 'rare')";
	uint64_t closed, file;

	(void)state;
	open_model(0);
	closed = make(PFS_ROOT_PRIME, "closed", S_IFDIR | 0700, 0);
	set_xattr(make(closed, "x", S_IFREG | 0644, 0), "user.hidden");
	set_xattr(make(PFS_ROOT_PRIME, "f", S_IFREG | 0600, 0), "user.barred");
	expect(&nobody, columns, "c\n\n");
	file = make(PFS_ROOT_PRIME, "g", S_IFREG | 0644, 0);
	set_xattr(file, "user.open");
	expect(&nobody, columns, "c\nopen\n");
	expect(&owner, columns, "c\nbarred,hidden,open\n");
	expect(&nobody, "SELECT hidden FROM nodes", "no such column: hidden");
	expect(&nobody, "SELECT barred FROM nodes", "no such column: barred");
	expect(&nobody, "SELECT path FROM nodes WHERE open = 'v'", "path\n/g\n");
	set_xattr(file, "user.barred");
	expect(&nobody, "SELECT path, barred FROM nodes ORDER BY path",
	       "/\t\n/closed\t\n/f\t\n/g\tv\n");
	expect(&nobody, "SELECT barred, count(*) FROM nodes GROUP BY barred ORDER BY 1",
	       "\n\t3\nv\t1\n");
	expect(&nobody, "SELECT hiddeN FROM nodes", "table_info(nodes)");
	for (int i = 0; i < 700; i++) { /* more than are sampled */
		char name[16];

		(void)snprintf(name, sizeof(name), "n%d", i);
		set_xattr(make(PFS_ROOT_PRIME, name, S_IFREG | 0644, 0),
			  i == 333 ? "user.rare" : "user.open");
	}
	expect(&nobody, columns, "c\nbarred,open,rare\n");
	expect(&owner, columns, "c\nbarred,hidden,open,rare\n");
	close_model();
}

/* Rights that change count from the next statement on; groups, too. */
static void test_rights_change(void **state)
{
	static const char count[] = "SELECT count(*) AS c FROM nodes";
	static const gid_t groups[] = {7, 900};
	struct pfs_query_scope member = nobody;
	uint64_t closed;

	(void)state;
	open_model(0);
	closed = make(PFS_ROOT_PRIME, "closed", S_IFDIR | 0750, 900);
	(void)make(closed, "x", S_IFREG | 0644, 0);
	member.groups = groups;
	member.n_groups = 2;
	expect(&nobody, count, "c\n2\n");
	expect(&member, count, "c\n3\n");
	expect(&owner, "UPDATE nodes SET mode = 493 WHERE name = 'closed'", "");
	expect(&nobody, count, "c\n3\n");
	expect(&owner, "UPDATE nodes SET mode = 457 WHERE name = 'closed'", ""); /* 0711 */
	expect(&nobody, count, "c\n2\n");
	expect(&member, count, "c\n2\n");
	member.ino = closed; /* itself is seen */
	expect(&member, count, "c\n1\n");
	(void)make(closed, "y", S_IFDIR | 0755, 0);
	expect(&owner, "SELECT count(*) AS c FROM nodes", "c\n4\n");
	expect(&owner, "INSERT INTO nodes(path) VALUES ('/closed/y/z')", "");
	member.ino = closed + 0;
	assert_int_equal(pfs_tree_resolve(model.tree, &member.ino, "/closed/y"), 0);
	expect(&member, count, "error -13: nodes are shown below directories");
	close_model();
}

/* Neither a changed row nor its number is known to whoever asks on the same connection later. */
static void test_no_traces(void **state)
{
	static const char *const changes[] = {
		"INSERT INTO nodes(path) VALUES ('/made')",
		"UPDATE nodes SET mode = 384",
		"DELETE FROM nodes WHERE name = 'made'",
		"CREATE TABLE u(a)",
		"INSERT INTO t VALUES (1)",
		"DROP TABLE t",
	};

	(void)state;
	open_model(0);
	expect(&owner, "CREATE TABLE t(a)", "");
	expect(&owner, "INSERT INTO t VALUES (1), (2), (3)", "");
	for (int i = 0; i < 8; i++)
		expect(&nobody, "SELECT last_insert_rowid(), changes(), total_changes()",
		       "\n0\t0\t0\n");
	for (size_t i = 0; i < PFS_COUNT(changes); i++)
		expect(&nobody, changes[i], "error -13: ");
	expect(&owner, "SELECT count(*) AS n FROM t", "n\n3\n");
	close_model();
}

/* Plans have no figures of what is hidden. */
static void test_plan(void **state)
{
	static const char sql[] = "SELECT count(*) FROM nodes WHERE path GLOB '/closed/d/*'";
	struct pfs_query_scope explaining = nobody;
	struct pfs_query_error error;
	struct pfs_query *query;
	uint64_t closed;
	char *plan;

	(void)state;
	explaining.explains = true;
	open_model(0);
	closed = make(PFS_ROOT_PRIME, "closed", S_IFDIR | 0700, 0);
	for (int there = 0; there < 2; there++) {
		assert_int_equal(
			pfs_query_start(&query, queries, &explaining, sql, strlen(sql), &error), 0);
		while (pfs_query_next(query, &error) == 1)
			;
		assert_int_equal(pfs_query_plan(query, &plan), 0);
		assert_non_null(strstr(plan, "not begun"));
		assert_null(strstr(plan, "estimated"));
		free(plan);
		pfs_query_finish(query);
		(void)make(make(closed, there ? "e" : "d", S_IFDIR | 0755, 0), "x", S_IFREG | 0644,
			   0);
	}
	close_model();
}

/* A hidden value that the operators do not take is none: rows and plan stay as they were. */
static void test_hidden_values(void **state)
{
	static const char sql[] = "SELECT owner, count(*) FROM nodes GROUP BY owner";
	char *rows, *plan, *rows_after, *plan_after;
	uint64_t closed;

	(void)state;
	open_model(0);
	closed = make(PFS_ROOT_PRIME, "closed", S_IFDIR | 0700, 0);
	rows = run(queries, &nobody, sql);
	plan = plan_of(queries, &nobody, sql);
	(void)make(closed, "x", S_IFREG | 0644, 3000000000);
	rows_after = run(queries, &nobody, sql);
	plan_after = plan_of(queries, &nobody, sql);
	assert_non_null(strstr(plan, "run by the relational operators"));
	assert_string_equal(rows, rows_after);
	assert_string_equal(plan, plan_after);
	free(rows);
	free(plan);
	free(rows_after);
	free(plan_after);
	close_model();
}

/* ---- many at a time ---- */

#define ASKERS 4

struct asker {
	pthread_t thread;
	uid_t uid;
	unsigned wrong;
};

static atomic_bool stop_asking;

/* Totals are those of the rows, whatever changes meanwhile; what is in the closed directory is
 * never there. */
static void *ask(void *arg)
{
	static const char sql[] =
		"SELECT (SELECT subtree_count FROM nodes WHERE ino = 2) - count(*) AS d, "
		"sum(name = 'secret') AS s FROM nodes";
	struct pfs_query_scope scope = nobody;
	struct asker *asker = arg;

	scope.uid = scope.gid = asker->uid;
	while (!stop_asking) {
		char *got = run(queries, &scope, sql);

		if (strcmp(got, "d\ts\n0\t0\n") != 0 && !strstr(got, "run it again")) {
			print_message("%s\n", got);
			asker->wrong++;
		}
		free(got);
	}
	return NULL;
}

static void set_mode(uint64_t ino, mode_t mode)
{
	const struct stat attr = {.st_mode = mode};
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_setattr(model.tree, &entry, ino, &attr, PFS_SET_MODE, &temp_root),
			 0);
}

static void test_threads(void **state)
{
	uint64_t closed, half;
	struct asker askers[ASKERS];
	char name[16];

	(void)state;
	open_model(60);
	set_mode(PFS_ROOT_PRIME, 0755);
	closed = make(PFS_ROOT_PRIME, "closed", S_IFDIR | 0700, 0);
	half = make(PFS_ROOT_PRIME, "half", S_IFDIR | 0700, 501);
	(void)make(closed, "secret", S_IFREG | 0644, 0);
	for (unsigned i = 0; i < ASKERS; i++) {
		askers[i] = (struct asker){.uid = 500 + i % 3};
		assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
	}
	for (unsigned i = 0; i < 300; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		set_xattr(make(i % 2 ? half : closed, name, S_IFREG | 0644, 0), "user.tag");
		set_mode(half, i % 3 ? 0755 : 0700);
		(void)usleep(500);
	}
	stop_asking = true;
	for (size_t i = 0; i < ASKERS; i++) {
		assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
		assert_int_equal(askers[i].wrong, 0);
	}
	close_model();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_viewers), cmocka_unit_test(test_attributes),
		cmocka_unit_test(test_rights_change),  cmocka_unit_test(test_no_traces),
		cmocka_unit_test(test_plan),	       cmocka_unit_test(test_hidden_values),
		cmocka_unit_test(test_threads),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
