/* SPDX-License-Identifier: MIT */
#include "tests/ref/change_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include <cmocka.h>

#include "base/checked.h"
#include "base/siphash.h"
#include "fs/query/tables.h"
#include "tests/ref/random.h"

#define PLACES 6 /* directories, and files in each; few, so that they clash */

static const struct pfs_query_scope scope = {
	.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};

static struct pfs_tree *tree;
static struct pfs_queries *queries;
static uint64_t random_state;
static char text[1024];

static uint32_t below(uint32_t n)
{
	return random_below(&random_state, n);
}

/* ---- statements ---- */

int change_model_run(const char *sql)
{
	struct pfs_query_error error = {.error = 0};
	struct pfs_query *query;
	int status = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error);

	while (!status && (status = pfs_query_next(query, &error)) == 1)
		status = 0;
	if (status)
		(void)snprintf(text, sizeof(text), "%s: %s", sql, error.text);
	pfs_query_finish(query);
	return status;
}

/* Each of @1 to @3 stands for a number below PLACES. */
static void fill_in(const char *statement)
{
	uint32_t numbers[] = {below(PLACES), below(PLACES), below(PLACES)};
	char *out = text;

	for (; *statement; statement++) {
		if (*statement == '@')
			out += sprintf(out, "%u", numbers[*++statement - '1']);
		else
			*out++ = *statement;
	}
	*out = 0;
}

static int change_nodes(void)
{
	static const char *const statements[] = {
		"INSERT INTO nodes (path, type) VALUES ('/d@1', 'd'), ('/d@1/d@2', 'd'), "
		"('/d@1/d@2/f1', 'f'), ('/d@1/f@3', 'f')",
		"INSERT INTO nodes (parent, name, tag, mtime) SELECT ino, 'n@1', path, 5 FROM "
		"nodes "
		"WHERE type = 'd' AND ino % 2",
		"INSERT INTO nodes (path, target) VALUES ('/d@1/l@2', '../d@3'), ('/d@1/l@3', 'x')",
		"UPDATE nodes SET mode = 256 + @1, uid = @2, mtime = '200@3-01-01' WHERE type = "
		"'f' AND "
		"ino % 3 = @1 % 3",
		"UPDATE nodes SET tag = name || @1, note = NULL WHERE type IN ('f', 'd') AND "
		"depth = @2 % 3",
		"UPDATE nodes SET note = zeroblob(@1 * 1000) WHERE type = 'f' AND ino % 4 = @2 % 4",
		"UPDATE nodes SET tag = NULL WHERE under(ino, '/d@1')",
		"UPDATE nodes SET path = '/d@1/' || name WHERE child_of(ino, '/d@2') AND type = "
		"'f'",
		"UPDATE nodes SET path = '/d@1/d@2' WHERE path = '/d@3'",
		"UPDATE nodes SET name = substr(name, 1, 20) || '@1' WHERE child_of(ino, '/d@2')",
		"UPDATE nodes SET name = CASE name WHEN 'd@1' THEN 'd@2' ELSE 'd@1' END "
		"WHERE child_of(ino, '/') AND name IN ('d@1', 'd@2')",
		"UPDATE nodes SET size = @1 * 3000 WHERE path = '/d@2/f@3'",
		"DELETE FROM nodes WHERE under(ino, '/d@1')",
		"DELETE FROM nodes WHERE type = 'f' AND ino % 7 = @1",
		"UPDATE nodes SET gid = @1, note = name WHERE length(name) % 4 = @2 % 4 AND type = 'f'",
		"UPDATE nodes SET tag = (SELECT count(*) FROM nodes WHERE depth > @1) WHERE depth > "
		"(SELECT avg(depth) FROM nodes) AND ino % 2",
		"INSERT INTO nodes (path, tag) SELECT '/g@1-' || depth, count(*) FROM nodes GROUP BY depth",
	};

	fill_in(statements[below(PFS_COUNT(statements))]);
	return change_model_run(text);
}

static int change_tables(void)
{
	static const char *const statements[] = {
		"CREATE TABLE t@1 (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)",
		"CREATE TABLE t@1 AS SELECT ino AS a, name AS b FROM nodes",
		"INSERT INTO t@1 (a, b) SELECT ino, path FROM nodes WHERE ino % 2 = @2 % 2",
		"CREATE TABLE t@1 AS SELECT depth AS a, max(name) AS b FROM nodes GROUP BY depth",
		"INSERT INTO t@1 (a, b) SELECT count(*), type FROM nodes WHERE ino % 2 = @2 % 2 GROUP BY type",
		"INSERT INTO t@1 (a, b) VALUES (@2, zeroblob(@3 * 9000)), (@3, NULL)",
		"UPDATE t@1 SET a = a + 1, b = substr(b, 1, 30) || '@2' WHERE a % 2",
		"DELETE FROM t@1 WHERE a % 3 = @2 % 3",
		"DELETE FROM t@1",
		"CREATE INDEX i@1 ON t@1 (a)",
		"DROP TABLE t@1",
	};

	fill_in(statements[below(PFS_COUNT(statements))]);
	return change_model_run(text);
}

/* ---- the rest ---- */

static int change_saved(void)
{
	static const char statement[] = "SELECT count(*) FROM nodes";
	char path[16], name[8];
	uint64_t ino;
	bool removed = below(3) == 0;
	int error;

	(void)snprintf(path, sizeof(path), "/d%u", below(PLACES));
	(void)snprintf(name, sizeof(name), "q%u", below(3));
	(void)snprintf(text, sizeof(text), "%s: saved query %s%s", path, name,
		       removed ? " removed" : "");
	error = pfs_tree_resolve(tree, &ino, path);
	if (error)
		return error;
	return pfs_tree_set_saved(tree, ino, name, removed ? NULL : statement,
				  below(sizeof(statement)), 0);
}

static int write_file(void)
{
	static uint8_t bytes[10000];
	struct pfs_entry entry;
	uint64_t ino;
	ssize_t n;
	int error;

	(void)snprintf(text, sizeof(text), "/d%u/f%u", below(PLACES), below(PLACES));
	error = pfs_tree_resolve(tree, &ino, text);
	if (error)
		return error;
	error = pfs_tree_getattr(tree, &entry, ino);
	if (error || !S_ISREG(entry.attr.st_mode))
		return error;
	memset(bytes, (int)below(256), sizeof(bytes));
	n = pfs_tree_write(tree, ino, bytes, 1 + below(sizeof(bytes)), below(3000), true, false);
	return n < 0 ? (int)n : 0;
}

struct csv {
	char bytes[4000];
	size_t size;
};

static ssize_t read_csv(void *arg, void *data, size_t size, uint64_t offset)
{
	const struct csv *csv = arg;

	size = offset < csv->size ? PFS_MIN(size, csv->size - offset) : 0;
	memcpy(data, csv->bytes + offset, size);
	return (ssize_t)size;
}

int change_model_import(const char *name)
{
	struct pfs_query_error error;
	struct csv csv = {.size = 0};
	const struct pfs_table_bytes bytes = {.arg = &csv, .read = read_csv};

	(void)snprintf(text, sizeof(text), "%s from CSV", name);
	csv.size = (size_t)sprintf(csv.bytes, "a,b\n");
	for (uint32_t i = below(150); i > 0; i--)
		csv.size += (size_t)sprintf(csv.bytes + csv.size, "%u,row %u\n", below(99), i);
	return pfs_table_import(queries, name, &bytes, &error);
}

static int import_table(void)
{
	char name[8];

	(void)snprintf(name, sizeof(name), "t%u", below(PLACES));
	return change_model_import(name);
}

static int drop_table(void)
{
	struct pfs_query_error error;
	char name[8];

	(void)snprintf(name, sizeof(name), "t%u", below(PLACES));
	(void)snprintf(text, sizeof(text), "%s dropped", name);
	return pfs_table_drop(queries, name, &error);
}

int change_model_step(enum change_part *part)
{
	uint32_t kind = below(24);

	*part = kind < 16 ? CHANGE_NODES : CHANGE_TABLES;
	if (kind < 12)
		return change_nodes();
	if (kind < 14)
		return change_saved();
	if (kind < 16)
		return write_file();
	if (kind < 21)
		return change_tables();
	return kind < 23 ? import_table() : drop_table();
}

const char *change_model_text(void)
{
	return text;
}

bool change_model_may_refuse(int error)
{
	static const int reasons[] = {-EEXIST,	  -EINVAL,  -ENOENT, -ENOTDIR,
				      -ENOTEMPTY, -ENODATA, -EPERM};

	for (size_t i = 0; i < PFS_COUNT(reasons); i++) {
		if (error == reasons[i])
			return true;
	}
	return false;
}

/* ---- states ---- */

static uint64_t sum_of(const void *bytes, size_t size, uint64_t key)
{
	return pfs_siphash(bytes, size, key, size);
}

static uint64_t sum_value(const struct pfs_query *query, size_t column)
{
	const char *name = pfs_query_column_name(query, column);
	uint64_t sum = sum_of(name, strlen(name), 1);
	struct pfs_sql_value value;

	pfs_query_value(query, column, &value);
	if (value.type ==
	    PFS_SQL_NULL) /* an attribute that nobody has is no column after a while */
		return 0;
	if (value.type == PFS_SQL_INTEGER)
		return sum_of(&value.integer, sizeof(value.integer), sum);
	if (value.type == PFS_SQL_REAL)
		return sum_of(&value.real, sizeof(value.real), sum);
	return sum_of(value.bytes, value.size, sum);
}

/* The rows in whatever order; columns, too. */
static uint64_t sum_rows(struct pfs_queries *of, const char *sql)
{
	struct pfs_query_error error;
	struct pfs_query *query;
	uint64_t sum = 0;
	int got;

	if (pfs_query_start(&query, of, &scope, sql, strlen(sql), &error))
		fail_msg("%s: %s", sql, error.text);
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN) {
		uint64_t row = 0;

		if (got == -EAGAIN) { /* it begins again */
			sum = 0;
			continue;
		}
		for (size_t i = 0; i < pfs_query_columns(query); i++)
			row += sum_value(query, i);
		sum += sum_of(&row, sizeof(row), 2);
	}
	if (got)
		fail_msg("%s: %s", sql, error.text);
	pfs_query_finish(query);
	return sum;
}

struct sums {
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	uint64_t ino, sum;
};

static int add_saved(void *arg, const char *name, size_t len)
{
	struct sums *sums = arg;
	char statement[64], terminated[8];
	ssize_t n;

	(void)snprintf(terminated, sizeof(terminated), "%.*s", (int)len, name);
	n = pfs_tree_get_saved(sums->tree, statement, sizeof(statement), sums->ino, terminated);
	assert_true(n >= 0);
	sums->sum += sum_of(statement, (size_t)n, sum_of(name, len, sums->ino));
	return 0;
}

static int add_node(void *arg, const struct pfs_walk_node *node)
{
	const struct stat *attr = &node->entry.attr;
	struct sums *sums = arg;
	static uint8_t bytes[20000];
	ssize_t n;

	sums->ino = attr->st_ino;
	if (S_ISREG(attr->st_mode)) {
		n = pfs_tree_read(sums->tree, bytes, sizeof(bytes), attr->st_ino, 0,
				  PFS_READ_NOATIME);
		assert_int_equal(n, attr->st_size);
		sums->sum += sum_of(bytes, (size_t)n, attr->st_ino);
	}
	if (S_ISDIR(attr->st_mode))
		assert_int_equal(pfs_tree_list_saved(sums->tree, attr->st_ino, add_saved, sums), 0);
	return 0;
}

static int add_table(void *arg, const char *name)
{
	struct sums *sums = arg;
	char sql[64];

	(void)snprintf(sql, sizeof(sql), "SELECT rowid, * FROM %s", name);
	sums->sum += sum_of(name, strlen(name), 3) ^ sum_rows(sums->queries, sql);
	return 0;
}

void change_model_look(struct change_state *state, struct pfs_tree *of)
{
	struct sums sums = {.tree = of ? of : tree, .queries = queries};

	if (of)
		assert_int_equal(pfs_queries_open(&sums.queries, of), 0);
	assert_int_equal(pfs_tree_walk(sums.tree, PFS_ROOT_PRIME, add_node, &sums), 0);
	state->part[CHANGE_NODES] = sums.sum + sum_rows(sums.queries, "SELECT * FROM nodes");
	sums.sum = 0;
	assert_int_equal(pfs_tables_names(sums.queries, add_table, &sums), 0);
	state->part[CHANGE_TABLES] = sums.sum;
	if (of)
		pfs_queries_close(sums.queries);
}

/* ---- life ---- */

void change_model_reopen(const struct temp_store *temp, const struct pfs_tree_options *options)
{
	tree = temp_tree_open_with(temp, options);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
}

int change_model_close(void)
{
	pfs_queries_close(queries);
	return pfs_tree_close(tree);
}

void change_model_start(const struct temp_store *temp, const struct pfs_tree_options *options,
			uint64_t seed)
{
	static const char *const statements[] = {
		"INSERT INTO nodes (path, type) SELECT '/d' || value, 'd' FROM "
		"json_each('[0,1,2,3,4]')",
		"INSERT INTO nodes (path) SELECT d.path || '/f' || value FROM nodes d, "
		"json_each('[0,1,2,3,4,5]') WHERE d.depth = 1",
		"CREATE TABLE t1 (id INTEGER PRIMARY KEY, a INTEGER, b TEXT)",
		"INSERT INTO t1 (a, b) SELECT ino, path FROM nodes",
	};

	random_state = seed;
	change_model_reopen(temp, options);
	assert_int_equal(pfs_tree_setxattr(tree, PFS_ROOT_PRIME, "user.tag", "x", 1, 0), 0);
	assert_int_equal(pfs_tree_setxattr(tree, PFS_ROOT_PRIME, "user.note", "x", 1, 0), 0);
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		assert_int_equal(change_model_run(statements[i]), 0);
	assert_int_equal(pfs_tree_sync(tree), 0);
}

struct pfs_tree *change_model_tree(void)
{
	return tree;
}
