/* SPDX-License-Identifier: MIT */
/* Statements that change nodes: what they do, what they refuse, that a refused one does nothing. */
#include "fs/tree/listen.h"
#include "tests/ref/random.h"
#include "tests/unit/query_util.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/xattr.h>

static struct pfs_entry attr_of(const char *path)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino_of(path)), 0);
	return entry;
}

static void check_tree(const char *expected)
{
	check("SELECT group_concat(path, ' ') FROM (SELECT path FROM nodes ORDER BY path)",
	      expected);
}

#define TREE "/ /a /a/b /a/b/c.txt /a/d.c /e.tar.gz"

static void test_attributes(void **state)
{
	(void)state;
	change("UPDATE nodes SET mode = mode | 64, uid = 7, mtime = '2020-01-02' WHERE type = 'f'",
	       3);
	assert_int_equal(attr_of("/a/d.c").attr.st_mode, S_IFREG | 0700);
	assert_int_equal(attr_of("/e.tar.gz").attr.st_uid, 7);
	assert_int_equal(attr_of("/a/b/c.txt").attr.st_mtim.tv_sec, 1577923200);
	change("UPDATE nodes SET owner = 'root', gid = 5, atime = seconds(1.5) WHERE name = 'd.c'",
	       1);
	assert_int_equal(attr_of("/a/d.c").attr.st_uid, 0);
	assert_int_equal(attr_of("/a/d.c").attr.st_gid, 5);
	assert_int_equal(attr_of("/a/d.c").attr.st_atim.tv_nsec, 500000000);
	change("UPDATE nodes SET size = 1000 WHERE name = 'd.c'", 1);
	assert_int_equal(attr_of("/a/d.c").attr.st_size, 1000);
	reopen();
	assert_int_equal(attr_of("/a/d.c").attr.st_size, 1000);
	assert_int_equal(attr_of("/a/d.c").attr.st_mode, S_IFREG | 0700);
	refuse("UPDATE nodes SET size = 0 WHERE type = 'f'", -EINVAL, "of one file");
	refuse("UPDATE nodes SET size = 0 WHERE path = '/a'", -EISDIR, "size");
	refuse("UPDATE nodes SET mode = 16877 WHERE path = '/a/d.c'", -EINVAL, "/a/d.c: ");
	refuse("UPDATE nodes SET mode = 'x'", -EINVAL, "mode: ");
	refuse("UPDATE nodes SET uid = -1", -EINVAL, "uid: ");
	refuse("UPDATE nodes SET owner = 'no such user'", -EINVAL, "no user");
	refuse("UPDATE nodes SET depth = 1", -EINVAL, "depth: this column cannot be set");
	refuse("UPDATE nodes SET preorder = 'x'", -EINVAL, "preorder: this column cannot be set");
	refuse("UPDATE nodes SET ino = 1 WHERE path = '/a'", -EINVAL, "ino: ");
	refuse("UPDATE nodes SET rowid = 5 WHERE path = '/a'", -EINVAL,
	       "rowid: this column cannot");
	refuse("UPDATE nodes SET oid = NULL, uid = 3", -EINVAL, "rowid: this column cannot");
	refuse("INSERT INTO nodes (_rowid_, path) VALUES (5, '/new')", -EINVAL, "rowid: ");
	change("UPDATE nodes SET oid = CAST(ino AS TEXT), uid = 8 WHERE path = '/a'", 1);
	change("UPDATE nodes SET rowid = ino + 0.0, gid = 9 WHERE path = '/a'", 1);
	change("UPDATE nodes SET _rowid_ = ino || '.0', gid = 9 WHERE path = '/a'", 1);
	check("SELECT uid, gid FROM nodes WHERE path = '/a'", "8 9");
	refuse("UPDATE nodes SET rowid = ino + 0.5", -EINVAL, "rowid: this column cannot");
	refuse("UPDATE nodes SET rowid = ino || 'x'", -EINVAL, "rowid: this column cannot");
	refuse("UPDATE nodes SET rowid = CAST(ino AS BLOB)", -EINVAL, "rowid: this column cannot");
	refuse("UPDATE nodes SET rowid = 1e300", -EINVAL, "rowid: this column cannot");
	refuse("UPDATE nodes SET name = NULL WHERE path = '/a'", -EINVAL, "never NULL");
	refuse("UPDATE OR IGNORE nodes SET mode = 1", -EINVAL, "OR IGNORE");
	check_tree(TREE);
}

/* Runs a statement and looks whether its plan says so. */
static void change_as(const char *sql, uint64_t expected, const char *step, bool is_there)
{
	struct pfs_query *query;
	char *plan;

	scope.explains = true;
	query = begin(sql);
	scope.explains = false;
	assert_int_equal(pfs_query_changes(query), expected);
	assert_int_equal(pfs_query_plan(query, &plan), 0);
	if (!strstr(plan, step) == is_there)
		fail_msg("%s: %s", sql, plan);
	free(plan);
	pfs_query_finish(query);
}

/* The operators find nodes where a scan alone cannot; each is then looked for by its number. */
static void test_members(void **state)
{
	static const char part[] = "part 0: run by the relational operators on the host: nodes";

	(void)state;
	change_as("UPDATE nodes SET mtime = seconds(5) WHERE length(name) = 3 AND size % 2 = 0", 1,
		  part, true);
	check("SELECT path FROM nodes WHERE mtime = seconds(5)", "/a/d.c");
	change_as("UPDATE nodes AS n SET mtime = seconds(6) WHERE n.type = 'f' AND n.ino % 1 = 0",
		  3, part, true);
	change_as("UPDATE nodes SET uid = 5 WHERE name = 'd.c'", 1, "part", false);
	change_as(
		"UPDATE nodes SET uid = 8 WHERE name IN (SELECT name FROM nodes WHERE name = 'd.c') AND length(name) = 3",
		1, "nodes, where name IN", false);
	change_as("UPDATE nodes SET uid = 6 WHERE upper(name) LIKE 'D.%'", 1, part, true);
	change_as("UPDATE nodes SET uid = 7 WHERE depth = (SELECT max(depth) FROM nodes)", 1, part,
		  true);
	change_as(
		"WITH m AS (SELECT count(*) d FROM nodes GROUP BY type) UPDATE nodes SET uid = 8 WHERE depth = (SELECT d FROM m)",
		1, "part 0", true);
	check("SELECT path, uid FROM nodes WHERE uid > 0 ORDER BY path", "/a/b/c.txt 8,/a/d.c 6");
	scope.ino = ino_of("/a/b");
	change_as("UPDATE nodes SET mtime = seconds(7) WHERE type = 'f' AND length(name) > 0", 1,
		  part, true);
	scope.ino = PFS_ROOT_PRIME;
	check("SELECT path FROM nodes WHERE mtime = seconds(7)", "/a/b/c.txt");
	change_as(
		"INSERT INTO nodes (path, type) SELECT '/new-' || type, 'd' FROM nodes GROUP BY type",
		2, "part 0", true);
	change_as("DELETE FROM nodes WHERE substr(name, 1, 4) = 'new-' AND size % 1 = 0", 2, part,
		  true);
	change("DELETE FROM nodes WHERE child_of(ino, '') AND name = 'e.tar.gz'", 0);
	change("DELETE FROM nodes WHERE under(ino, '')", 0);
	check_tree(TREE);
}

static void test_xattrs(void **state)
{
	char value[32];

	(void)state;
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a"), "user.tag", "x", 1, 0), 0);
	change("UPDATE nodes SET tag = name || '!' WHERE type = 'f'", 3);
	assert_int_equal(
		pfs_tree_getxattr(tree, value, sizeof(value), ino_of("/a/d.c"), "user.tag"), 4);
	assert_memory_equal(value, "d.c!", 4);
	reopen();
	check("SELECT tag FROM nodes WHERE tag IS NOT NULL ORDER BY path",
	      "x,c.txt!,d.c!,e.tar.gz!");
	change("UPDATE nodes SET tag = NULL", 6);
	check("SELECT count(tag) FROM nodes", "0");
	reopen();
	check("SELECT count(*) FROM nodes", "6");
	refuse("UPDATE nodes SET tagg = 1", -EINVAL, "no such column");
}

static void test_moves(void **state)
{
	uint64_t b;
	char sql[200];

	(void)state;
	b = ino_of("/a/b");
	change("UPDATE nodes SET name = upper(name) WHERE name GLOB '*.c'", 1);
	check_tree("/ /a /a/D.C /a/b /a/b/c.txt /e.tar.gz");
	(void)snprintf(sql, sizeof(sql), "UPDATE nodes SET parent = %llu WHERE name = 'e.tar.gz'",
		       (unsigned long long)b);
	change(sql, 1);
	check_tree("/ /a /a/D.C /a/b /a/b/c.txt /a/b/e.tar.gz");
	change("UPDATE nodes SET path = '/B' WHERE path = '/a/b'", 1);
	check_tree("/ /B /B/c.txt /B/e.tar.gz /a /a/D.C");
	/* a whole subtree by its paths, which stays as it is: only its top moves */
	change("UPDATE nodes SET path = replace(path, '/B', '/a/B') WHERE under(ino, '/B')", 3);
	check_tree("/ /a /a/B /a/B/c.txt /a/B/e.tar.gz /a/D.C");
	/* names are exchanged, a directory comes to lie in what was in it */
	change("UPDATE nodes SET name = CASE name WHEN 'D.C' THEN 'B' ELSE 'D.C' END "
	       "WHERE child_of(ino, '/a')", 2);
	check_tree("/ /a /a/B /a/D.C /a/D.C/c.txt /a/D.C/e.tar.gz");
	change("UPDATE nodes SET path = CASE path WHEN '/a' THEN '/x/y' ELSE '/x' END "
	       "WHERE path IN ('/a', '/a/D.C')", 2);
	check_tree("/ /x /x/c.txt /x/e.tar.gz /x/y /x/y/B");
	reopen();
	check_tree("/ /x /x/c.txt /x/e.tar.gz /x/y /x/y/B");
	check("SELECT depth FROM nodes WHERE name = 'B'", "3");
	check("SELECT name FROM nodes WHERE under(ino, '/x/y') ORDER BY name", "B,y");
}

/* The root has a place, too, which a statement about all nodes sets to what it is. */
static void test_all_nodes(void **state)
{
	(void)state;
	change("UPDATE nodes SET name = replace(name, 'd', 'D')", 6);
	check("SELECT path FROM nodes WHERE name GLOB '*D*'", "/a/D.c");
	change("UPDATE nodes SET path = replace(path, 'D', 'd')", 6);
	check_tree(TREE);
}

static void test_refused_moves(void **state)
{
	(void)state;
	refuse("UPDATE nodes SET name = 'b' WHERE path = '/a/d.c'", -EEXIST, "/a/b: exists");
	refuse("UPDATE nodes SET name = 'x' WHERE child_of(ino, '/a')", -EEXIST, "two rows");
	refuse("UPDATE nodes SET path = '/x' WHERE type = 'f'", -EEXIST, "/x: two rows");
	refuse("UPDATE nodes SET path = '/a/b/x' WHERE path = '/a'", -EINVAL, "");
	refuse("UPDATE nodes SET parent = ino WHERE path = '/a'", -EINVAL, "within itself");
	refuse("UPDATE nodes SET path = '/n/x' WHERE path = '/a'", -ENOENT, "no such directory");
	refuse("UPDATE nodes SET path = '/e.tar.gz/x' WHERE path = '/a'", -ENOTDIR, "is none");
	refuse("UPDATE nodes SET path = 'x' WHERE path = '/a'", -EINVAL, "begins with /");
	refuse("UPDATE nodes SET path = '/a/b/' WHERE path = '/a'", -EINVAL, "no name");
	refuse("UPDATE nodes SET path = '/x', name = 'y' WHERE path = '/a'", -EINVAL, "path: set");
	refuse("UPDATE nodes SET parent = 4 WHERE path = '/a'", -ENOENT, "number of its parent");
	refuse("UPDATE nodes SET name = 'a/b' WHERE path = '/a'", -EINVAL, "no name");
	refuse("UPDATE nodes SET name = '.query' WHERE path = '/a'", -EEXIST, "reserved");
	refuse("UPDATE nodes SET name = 'a' || char(0) WHERE path = '/a'", -EINVAL, "no name");
	refuse("UPDATE nodes SET name = 'r' WHERE path = '/'", -EBUSY, "root");
	refuse("UPDATE nodes SET parent = ino WHERE path = '/'", -EBUSY, "root");
	refuse("UPDATE nodes SET path = CASE path WHEN '/a' THEN '/z' ELSE '/a/b/x' END "
	       "WHERE path IN ('/a', '/e.tar.gz')",
	       -EINVAL, "moves the directory above");
	check_tree(TREE);
}

static void test_delete(void **state)
{
	struct pfs_entry entry;
	char byte;

	(void)state;
	refuse("DELETE FROM nodes WHERE path = '/a'", -ENOTEMPTY, "/a/");
	refuse("DELETE FROM nodes WHERE name <> 'c.txt' AND path <> '/'", -ENOTEMPTY, "/a/b/c.txt");
	refuse("DELETE FROM nodes", -EBUSY, "root");
	check_tree(TREE);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/d.c"), "user.k", "v", 1, 0), 0);
	assert_int_equal(pfs_tree_lookup(tree, &entry, ino_of("/a"), "d.c"), 0);
	assert_int_equal(pfs_tree_write(tree, entry.attr.st_ino, "z", 1, 0, true, false), 1);
	assert_int_equal(pfs_tree_sync(tree), 0);
	change("DELETE FROM nodes WHERE under(ino, '/a')", 4);
	check_tree("/ /e.tar.gz");
	/* what is open stays whole */
	assert_int_equal(pfs_tree_read(tree, &byte, 1, entry.attr.st_ino, 0, false), 1);
	assert_int_equal(byte, 'z');
	assert_int_equal(pfs_tree_sync(tree), 0);
	assert_int_equal(pfs_tree_getxattr(tree, &byte, 1, entry.attr.st_ino, "user.k"), 1);
	pfs_tree_forget(tree, entry.attr.st_ino, 1);
	reopen();
	check_tree("/ /e.tar.gz");
	change("DELETE FROM nodes WHERE 0", 0);
}

static void test_insert(void **state)
{
	(void)state;
	scope.uid = 12;
	scope.gid = 13;
	change("INSERT INTO nodes (path, type, mtime) VALUES ('/n/m/x', 'f', '1999-12-31T23:59:59Z'), "
	       "('/n/m', 'd', seconds(5)), ('/n', 'd', 0)",
	       3);
	check("SELECT path, type, mode, uid, gid, mtime FROM nodes WHERE under(ino, '/n') "
	      "ORDER BY path",
	      "/n d 16877 12 13 0,/n/m d 16877 12 13 5000000000,/n/m/x f 33188 12 13 946684799000000000");
	change("INSERT INTO nodes (parent, name, target) SELECT ino, 'link', '../' || name FROM nodes "
	       "WHERE type = 'd' AND path GLOB '/n*'",
	       2);
	check("SELECT target, type, size, mode FROM nodes WHERE path = '/n/m/link'",
	      "../m l 4 41471");
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a"), "user.tag", "x", 1, 0), 0);
	change("INSERT INTO nodes (path, tag, mode) VALUES ('/t', 5, 384)", 1);
	check("SELECT tag, mode, uid FROM nodes WHERE path = '/t'", "5 33152 12");
	reopen();
	check("SELECT tag, mode, uid FROM nodes WHERE path = '/t'", "5 33152 12");
	check("SELECT count(*) FROM nodes WHERE under(ino, '/n')", "5");
	refuse("INSERT INTO nodes (path) VALUES ('/u'), ('/t')", -EEXIST, "/t: exists");
	refuse("INSERT INTO nodes (path) VALUES ('/u'), ('/u')", -EEXIST, "two rows");
	refuse("INSERT INTO nodes (path) VALUES ('/u'), ('/u/v')", -ENOTDIR, "is none");
	refuse("INSERT INTO nodes (path) VALUES ('/u/v')", -ENOENT, "no such directory");
	refuse("INSERT INTO nodes (name) VALUES ('v')", -EINVAL, "needs a path");
	refuse("INSERT INTO nodes (path, type) VALUES ('/u', 'c')", -EINVAL, "type: ");
	refuse("INSERT INTO nodes (path, type, target) VALUES ('/u', 'f', 'x')", -EINVAL, "target");
	refuse("INSERT INTO nodes (path, type) VALUES ('/u', 'l')", -EINVAL, "target");
	refuse("INSERT INTO nodes (path, size) VALUES ('/u', 1)", -EINVAL, "size");
	refuse("INSERT INTO nodes (path, ino) VALUES ('/u', 7)", -EINVAL, "ino: ");
	refuse("INSERT INTO nodes DEFAULT VALUES", -EINVAL, "needs a path");
	check("SELECT count(*) FROM nodes WHERE name = 'u'", "0");
}

/* ---- against a naive copy ---- */

#define NODES 24

struct copy {
	uint64_t ino[NODES]; /* 0: none; the first is the root */
	size_t parent[NODES];
	char name[NODES];
	bool directory[NODES];
};

static uint64_t random_state;

static unsigned rnd(unsigned n)
{
	return random_below(&random_state, n);
}

static bool has_cycle(const struct copy *copy, size_t i)
{
	for (size_t steps = 0; steps <= NODES; steps++) {
		if (!i)
			return false;
		i = copy->parent[i];
	}
	return true;
}

static bool is_sound(const struct copy *copy)
{
	for (size_t i = 1; i < NODES; i++) {
		if (!copy->ino[i])
			continue;
		if (!copy->ino[copy->parent[i]] || !copy->directory[copy->parent[i]] ||
		    has_cycle(copy, i))
			return false;
		for (size_t j = 1; j < i; j++) {
			if (copy->ino[j] && copy->parent[i] == copy->parent[j] &&
			    copy->name[i] == copy->name[j])
				return false;
		}
	}
	return true;
}

static void check_copy(const struct copy *copy)
{
	char expected[4096] = "", *at = expected;
	static char found[1 << 16];

	for (size_t i = 1; i < NODES; i++) {
		if (copy->ino[i])
			at += sprintf(at, "%s%llu %llu %c", at == expected ? "" : ",",
				      (unsigned long long)copy->ino[i],
				      (unsigned long long)copy->ino[copy->parent[i]],
				      copy->name[i]);
	}
	/* the copy's order is that of the numbers' making, which SQL is told by their places */
	at = found + sprintf(found, "SELECT n.ino, n.parent, n.name FROM json_each('[0");
	for (size_t i = 1; i < NODES; i++)
		at += sprintf(at, ",%llu", (unsigned long long)copy->ino[i]);
	(void)sprintf(at, "]') j JOIN nodes n ON n.ino = j.value ORDER BY j.key");
	check(found, expected);
}

/* Runs it; it works exactly if `after` is sound, which then is the tree. */
static void try(struct copy *copy, const struct copy *after, const char *sql)
{
	struct pfs_query *query;
	int got = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error);

	if (!got != is_sound(after))
		fail_msg("%s: %d %s", sql, got, error.text);
	pfs_query_finish(query);
	if (!got)
		*copy = *after;
}

static void insert_one(struct copy *copy)
{
	struct copy after = *copy;
	size_t i = 1, parent = rnd(NODES);
	char sql[200];

	while (i < NODES && copy->ino[i])
		i++;
	if (i == NODES || !copy->ino[parent])
		return;
	after.ino[i] = 1;
	after.parent[i] = parent;
	after.name[i] = (char)('a' + rnd(6));
	after.directory[i] = rnd(3) > 0;
	(void)snprintf(sql, sizeof(sql),
		       "INSERT INTO nodes (parent, name, type) VALUES (%llu, '%c', '%c')",
		       (unsigned long long)copy->ino[parent], after.name[i],
		       after.directory[i] ? 'd' : 'f');
	try(copy, &after, sql);
	if (copy->ino[i]) {
		char ino[64];

		(void)snprintf(sql, sizeof(sql),
			       "SELECT ino FROM nodes WHERE parent = %llu AND name = '%c'",
			       (unsigned long long)copy->ino[parent], after.name[i]);
		query_text(ino, sizeof(ino), sql);
		copy->ino[i] = strtoull(ino, NULL, 10);
	}
}

static void delete_some(struct copy *copy)
{
	struct copy after = *copy;
	char sql[1024], *at = sql + sprintf(sql, "DELETE FROM nodes WHERE ino IN (0");

	for (size_t i = 1; i < NODES; i++) {
		if (!copy->ino[i] || rnd(4))
			continue;
		after.ino[i] = 0;
		at += sprintf(at, ", %llu", (unsigned long long)copy->ino[i]);
	}
	(void)sprintf(at, ")");
	try(copy, &after, sql);
}

static void move_some(struct copy *copy)
{
	struct copy after = *copy;
	char sql[4096], parents[1024], names[1024], *p = parents, *n = names, *at;

	*p = *n = 0;
	at = sql + sprintf(sql, "UPDATE nodes SET parent = CASE ino ");
	for (size_t i = 1; i < NODES; i++) {
		size_t parent = rnd(NODES);

		if (!copy->ino[i] || rnd(4) || !copy->ino[parent])
			continue;
		if (rnd(2)) {
			after.parent[i] = parent;
			p += sprintf(p, "WHEN %llu THEN %llu ", (unsigned long long)copy->ino[i],
				     (unsigned long long)copy->ino[parent]);
		}
		after.name[i] = (char)('a' + rnd(6));
		n += sprintf(n, "WHEN %llu THEN '%c' ", (unsigned long long)copy->ino[i],
			     after.name[i]);
	}
	(void)sprintf(at,
		      "WHEN 0 THEN 0 %sELSE parent END, name = CASE ino WHEN 0 THEN '' %sELSE name "
		      "END WHERE ino <> 2",
		      parents, names);
	try(copy, &after, sql);
}

static void test_random(void **state)
{
	struct copy copy = {.ino = {PFS_ROOT_PRIME}, .directory = {true}};
	const char *given = getenv("PFS_SEED");
	unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : 4;

	(void)state;
	print_message("PFS_SEED=%u\n", seed);
	random_state = seed;
	change("DELETE FROM nodes WHERE ino <> 2", 5);
	for (unsigned i = 0; i < 1500; i++) {
		switch (rnd(6)) {
		case 0:
			delete_some(&copy);
			break;
		case 1:
		case 2:
			insert_one(&copy);
			insert_one(&copy);
			insert_one(&copy);
			break;
		default:
			move_some(&copy);
		}
		if (i % 50 == 0) /* what is derived follows */
			check("SELECT count(*) FROM nodes AS n WHERE n.subtree_count <> "
			      "(SELECT count(*) FROM nodes AS u WHERE under(u.ino, n.ino))", "0");
		if (i % 10 == 0)
			check_copy(&copy);
		if (i % 300 == 299)
			reopen();
	}
	check_copy(&copy);
	close_queries();
	assert_int_equal(temp_store_findings(&store), 0);
	open_queries();
}

static void test_many(void **state)
{
	(void)state;
	change("INSERT INTO nodes (path, type) SELECT '/m', 'd' UNION ALL SELECT "
	       "'/m/' || (value / 1000), 'd' FROM (WITH RECURSIVE n(value) AS (SELECT 0 UNION ALL "
	       "SELECT value + 1000 FROM n WHERE value < 99000) SELECT value FROM n)", 101);
	change("INSERT INTO nodes (path) WITH RECURSIVE n(v) AS (SELECT 0 UNION ALL SELECT v + 1 "
	       "FROM n WHERE v < 99999) SELECT '/m/' || (v / 1000) || '/' || v FROM n", 100000);
	change("UPDATE nodes SET name = name || '.x', mode = 256 WHERE type = 'f' AND "
	       "under(ino, '/m')", 100000);
	change("UPDATE nodes SET path = '/m/' || name WHERE type = 'f' AND under(ino, '/m')",
	       100000);
	check("SELECT count(*), sum(mode = 33024) FROM nodes WHERE parent = ino_of('/m')",
	      "100100 100000");
	change("DELETE FROM nodes WHERE under(ino, '/m')", 100101);
	check_tree(TREE);
}

/* ---- what the kernel is told ---- */

static char told[4096];

static void note(void *arg, uint64_t ino, const char *name)
{
	size_t at = strlen(told);

	(void)arg;
	(void)snprintf(told + at, sizeof(told) - at, "%llu%s%s ", (unsigned long long)ino,
		       name ? "/" : "", name ? name : "");
}

static void ignore(void *arg, uint64_t ino)
{
	(void)arg;
	(void)ino;
}

static bool was_told(uint64_t ino, const char *name)
{
	char notice[300];

	(void)snprintf(notice, sizeof(notice), "%llu%s%s ", (unsigned long long)ino,
		       name ? "/" : "", name ? name : "");
	return strstr(told, notice) != NULL;
}

static void test_listener(void **state)
{
	const struct pfs_tree_listener listener = {.changed = note, .rights_change = ignore};
	uint64_t a = ino_of("/a"), file;
	struct pfs_entry entry;

	(void)state;
	pfs_tree_listen(tree, &listener);
	*told = 0;
	change("UPDATE nodes SET name = 'x' WHERE name = 'd.c'", 1);
	assert_string_equal(told, ""); /* nobody has looked anything up there */
	assert_int_equal(pfs_tree_lookup(tree, &entry, PFS_ROOT_PRIME, "a"), 0);
	assert_int_equal(pfs_tree_lookup(tree, &entry, a, "x"), 0);
	file = entry.attr.st_ino;
	change("UPDATE nodes SET path = '/y', mode = 0 WHERE name = 'x'", 1);
	assert_true(was_told(a, "x"));
	assert_true(was_told(a, NULL));
	assert_true(was_told(file, NULL));
	assert_true(was_told(PFS_ROOT_PRIME, "y"));
	assert_true(was_told(PFS_ROOT_PRIME, NULL));
	*told = 0;
	change("DELETE FROM nodes WHERE path = '/y'", 1);
	assert_true(was_told(PFS_ROOT_PRIME, "y"));
	*told = 0;
	refuse("UPDATE nodes SET name = 'e.tar.gz' WHERE path = '/a'", -EEXIST, "exists");
	assert_string_equal(told, "");
	pfs_tree_forget(tree, file, 1);
	pfs_tree_forget(tree, a, 1);
}

/* Who is told of it; freed when it is no longer the listener. */
struct ear {
	atomic_uint calls, inside;
};

static void hear(void *arg, uint64_t ino, const char *name)
{
	struct ear *ear = arg;

	(void)ino;
	(void)name;
	atomic_fetch_add(&ear->inside, 1);
	(void)usleep(1000); /* time enough to be missed */
	atomic_fetch_add(&ear->calls, 1);
	atomic_fetch_sub(&ear->inside, 1);
}

static atomic_bool is_enough;

static void *tell_on(void *arg)
{
	while (!atomic_load(&is_enough))
		pfs_tell_changed(arg, PFS_ROOT_PRIME, "name");
	return NULL;
}

static void test_listener_goes(void **state)
{
	static const struct pfs_tree_listener nobody;
	pthread_t tellers[2];

	(void)state;
	atomic_store(&is_enough, false);
	for (size_t i = 0; i < PFS_COUNT(tellers); i++)
		assert_int_equal(pthread_create(&tellers[i], NULL, tell_on, tree), 0);
	for (unsigned round = 0; round < 20; round++) {
		struct ear *ear = calloc(1, sizeof(*ear));

		assert_non_null(ear);
		pfs_tree_listen(tree, &(struct pfs_tree_listener){.arg = ear, .changed = hear});
		while (!atomic_load(&ear->calls))
			(void)sched_yield();
		pfs_tree_listen(tree, &nobody);
		assert_int_equal(atomic_load(&ear->inside), 0);
		free(ear);
	}
	atomic_store(&is_enough, true);
	for (size_t i = 0; i < PFS_COUNT(tellers); i++)
		assert_int_equal(pthread_join(tellers[i], NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_attributes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_members, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_xattrs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_nodes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused_moves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_delete, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_insert, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_listener, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_listener_goes, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
