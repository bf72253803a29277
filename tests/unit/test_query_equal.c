/* SPDX-License-Identifier: MIT */
/* Statements have the rows that SQLite has over a copy of nodes in a table of its own: those of
 * tests/query/statements.sql and random ones.  PFS_LONG=N: so many; PFS_TEST_SEED: another seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/checked.h"
#include "fs/query/parts/parts.h"
#include "fs/query/relational/relational.h"
#include "fs/query/times/timed.h"
#include "tests/ref/grouped.h"
#include "tests/ref/nested.h"
#include "tests/ref/parts.h"
#include "tests/ref/random.h"
#include "tests/ref/statements.h"
#include "tests/ref/windows.h"
#include "tests/ref/temp_store.h"

#define CORPUS "tests/query/statements.sql"
#define NODES  150
#define RANDOM	    300 /* statements */
#define RANDOM_LONG 5000

#ifdef PFS_VERIFY
#define ASKED_AGAIN 4
#else
#define ASKED_AGAIN 1
#endif

static struct temp_store store;
static struct pfs_tree *tree;
static struct pfs_queries *queries;
static sqlite3 *reference;
static uint64_t seed;
static unsigned long relational; /* statements that the operators ran, */
static unsigned long with_parts; /* or parts of which they ran */

static unsigned below(unsigned n)
{
	return random_below(&seed, n);
}

/* ---- the tree ---- */

static void set_values(uint64_t ino, unsigned i)
{
	static const int64_t sizes[] = {0, 1, 100, 100, 101, 4096, 5000, INT64_C(1) << 33};
	static const char *const tags[] = {"red", "green", "", "5"};
	struct stat st = {.st_size = sizes[below(PFS_COUNT(sizes))],
			  .st_mtim = {.tv_sec = below(2000000000), .tv_nsec = below(1000000000)},
			  .st_uid = below(3) * 17};
	unsigned set = PFS_SET_MTIME | PFS_SET_UID;
	struct pfs_entry entry;
	char number[32];

	assert_int_equal(pfs_tree_getattr(tree, &entry, ino), 0);
	if (S_ISREG(entry.attr.st_mode))
		set |= PFS_SET_SIZE;
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &st, set, &temp_root), 0);
	if (S_ISLNK(entry.attr.st_mode) || below(2))
		return;
	(void)snprintf(number, sizeof(number), "%u", i % 9);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.tag", tags[i % 4], strlen(tags[i % 4]),
					   0),
			 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.size", number, strlen(number), 0), 0);
}

/* Names that repeat, with and without what comes after a dot, and one that is no UTF-8. */
static void grow_tree(unsigned nodes)
{
	static const char *const ends[] = {"", "", ".c", ".txt", ".tar.gz", ".", "_x", "\xff"};
	uint64_t dirs[NODES] = {PFS_ROOT_PRIME};
	unsigned n_dirs = 1;

	for (unsigned i = 0; i < nodes; i++) {
		uint64_t parent = dirs[below(n_dirs)];
		unsigned kind = below(10);
		struct pfs_entry entry;
		char name[32];
		int error;

		(void)snprintf(name, sizeof(name), "%s%u%s", kind < 3 ? "d" : "f", below(20),
			       ends[below(PFS_COUNT(ends))]);
		if (kind == 9)
			error = pfs_tree_symlink(tree, &entry, parent, below(2) ? name : "c", "d1",
						 &temp_root);
		else
			error = pfs_tree_make(tree, &entry, parent, name,
					      kind < 3 ? S_IFDIR | 0755
						       : S_IFREG | (below(2) ? 0644 : 0755),
					      0, &temp_root);
		if (error)
			continue;
		if (kind < 3)
			dirs[n_dirs++] = entry.attr.st_ino;
		set_values(entry.attr.st_ino, i);
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
	}
}

static void import_columns(void)
{
	static const struct {
		const char *name;
		enum pfs_attr_type type;
	} columns[] = {{"stars", PFS_ATTR_INTEGER}, {"score", PFS_ATTR_REAL}};
	struct pfs_store *file;

	assert_int_equal(pfs_store_open(&file, store.path, &(struct pfs_store_options){0}), 0);
	assert_int_equal(pfs_store_begin(file), 0);
	for (size_t i = 0; i < PFS_COUNT(columns); i++)
		assert_int_equal(pfs_store_put_column(file, columns[i].name,
						      strlen(columns[i].name), columns[i].type),
				 0);
	assert_int_equal(pfs_store_put_attr(file, PFS_ROOT_PRIME,
					    &(struct pfs_attr_record){.name = "stars",
								      .name_len = 5,
								      .type = PFS_ATTR_INTEGER,
								      .integer = 5}),
			 0);
	assert_int_equal(pfs_store_put_attr(file, PFS_ROOT_PRIME,
					    &(struct pfs_attr_record){.name = "score",
								      .name_len = 5,
								      .type = PFS_ATTR_REAL,
								      .real = 2.5}),
			 0);
	assert_int_equal(pfs_store_commit(file, NULL), 0);
	assert_int_equal(pfs_store_close(file), 0);
}

/* ---- the copy ---- */

static void run_reference(const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(reference, sql, NULL, NULL, &message))
		fail_msg("%s: %s", sql, message);
}

static struct pfs_query *begin(const char *sql, size_t len)
{
	const struct pfs_query_scope scope = {
		.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};
	struct pfs_query_error error;
	struct pfs_query *query;

	return pfs_query_start(&query, queries, &scope, sql, len, &error) ? NULL : query;
}

static void bind(sqlite3_stmt *insert, int at, const struct pfs_query_value *value)
{
	switch (value->type) {
	case PFS_VALUE_NULL:
		(void)sqlite3_bind_null(insert, at);
		break;
	case PFS_VALUE_INT:
		(void)sqlite3_bind_int64(insert, at, value->integer);
		break;
	case PFS_VALUE_REAL:
		(void)sqlite3_bind_double(insert, at, value->real);
		break;
	default:
		(void)sqlite3_bind_text(insert, at, value->bytes, (int)value->size,
					SQLITE_TRANSIENT);
	}
}

static void copy_rows(struct pfs_query *query)
{
	size_t n = pfs_query_columns(query);
	struct pfs_query_error error;
	sqlite3_stmt *insert;
	char sql[1024], *end = stpcpy(sql, "INSERT INTO nodes VALUES (?");
	int got;

	for (size_t i = 1; i < n; i++)
		end = stpcpy(end, ", ?");
	(void)stpcpy(end, ")");
	assert_int_equal(sqlite3_prepare_v2(reference, sql, -1, &insert, NULL), SQLITE_OK);
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN) {
		if (got == -EAGAIN) { /* the committer frees nodes: from the first row again */
			run_reference("DELETE FROM nodes");
			continue;
		}
		for (size_t i = 0; i < n; i++) {
			struct pfs_query_value value;

			pfs_query_value(query, i, &value);
			bind(insert, (int)i + 1, &value);
		}
		assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
		assert_int_equal(sqlite3_reset(insert), SQLITE_OK);
	}
	assert_int_equal(got, 0);
	assert_int_equal(sqlite3_finalize(insert), SQLITE_OK);
}

/* The table as nodes declares it. */
static void copy_table(void)
{
	static const char columns[] = "SELECT name, type FROM pragma_table_info('nodes')";
	struct pfs_query *query = begin(columns, strlen(columns));
	char sql[4096] = "CREATE TABLE nodes (";
	struct pfs_query_error error;

	assert_non_null(query);
	while (pfs_query_next(query, &error) == 1) {
		struct pfs_query_value name, type;
		size_t len = strlen(sql);

		pfs_query_value(query, 0, &name);
		pfs_query_value(query, 1, &type);
		(void)snprintf(sql + len, sizeof(sql) - len, "%s\"%.*s\" %.*s%s",
			       sql[len - 1] == '(' ? "" : ", ", (int)name.size, name.bytes,
			       (int)type.size, type.bytes,
			       name.size == 3 && !memcmp(name.bytes, "ino", 3) ? " PRIMARY KEY" : "");
	}
	pfs_query_finish(query);
	(void)stpcpy(sql + strlen(sql), ")");
	run_reference(sql);
	query = begin("SELECT * FROM nodes", 19);
	assert_non_null(query);
	copy_rows(query);
	pfs_query_finish(query);
}

/* ---- the tree's functions over the copy: by walking up its rows ---- */

static int64_t look_up(const char *sql, sqlite3_value *key)
{
	sqlite3_stmt *row;
	int64_t ino = 0;

	assert_int_equal(sqlite3_prepare_v2(reference, sql, -1, &row, NULL), SQLITE_OK);
	(void)sqlite3_bind_value(row, 1, key);
	if (sqlite3_step(row) == SQLITE_ROW)
		ino = sqlite3_column_int64(row, 0);
	(void)sqlite3_finalize(row);
	return ino;
}

static int64_t parent_of(int64_t ino)
{
	sqlite3_stmt *row;
	int64_t parent = 0;

	assert_int_equal(sqlite3_prepare_v2(reference, "SELECT parent FROM nodes WHERE ino = ?", -1,
					    &row, NULL),
			 SQLITE_OK);
	(void)sqlite3_bind_int64(row, 1, ino);
	if (sqlite3_step(row) == SQLITE_ROW)
		parent = sqlite3_column_int64(row, 0);
	(void)sqlite3_finalize(row);
	return parent;
}

/* 0: none. */
static int64_t node(sqlite3_value *value)
{
	if (sqlite3_value_type(value) == SQLITE_INTEGER)
		return look_up("SELECT ino FROM nodes WHERE ino = ?", value);
	if (sqlite3_value_type(value) == SQLITE_TEXT)
		return look_up("SELECT ino FROM nodes WHERE path = '/' || ltrim(?1, '/')", value);
	return 0;
}

static bool lies_under(int64_t ino, int64_t top)
{
	while (ino && ino != top)
		ino = parent_of(ino);
	return ino == top;
}

enum { UNDER, CHILD_OF, ANCESTOR_OF, COMMON };

static int64_t deepest_common(int64_t a, int64_t b)
{
	while (!lies_under(b, a))
		a = parent_of(a);
	return a;
}

static void relate(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t a = node(argv[0]), b = node(argv[1]);

	(void)argc;
	if (!a || !b)
		return;
	switch (*(const int *)sqlite3_user_data(context)) {
	case UNDER:
		sqlite3_result_int(context, lies_under(a, b));
		break;
	case CHILD_OF:
		sqlite3_result_int(context, parent_of(a) == b);
		break;
	case ANCESTOR_OF:
		sqlite3_result_int(context, a != b && lies_under(b, a));
		break;
	default:
		sqlite3_result_int64(context, deepest_common(a, b));
	}
}

static void common_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t *state = sqlite3_aggregate_context(context, sizeof(*state));
	int64_t ino = node(argv[0]);

	(void)argc;
	if (ino)
		*state = *state ? deepest_common(*state, ino) : ino;
}

static void common_final(sqlite3_context *context)
{
	const int64_t *state = sqlite3_aggregate_context(context, 0);

	if (state && *state)
		sqlite3_result_int64(context, *state);
}

static void ino_of(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t ino = node(argv[0]);

	(void)argc;
	if (ino)
		sqlite3_result_int64(context, ino);
}

static void path_of(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3_stmt *row;

	(void)argc;
	assert_int_equal(sqlite3_prepare_v2(reference, "SELECT path FROM nodes WHERE ino = ?", -1,
					    &row, NULL),
			 SQLITE_OK);
	(void)sqlite3_bind_int64(row, 1, node(argv[0]));
	if (sqlite3_step(row) == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(row, 0));
	(void)sqlite3_finalize(row);
}

static void add_functions(void)
{
	static const char *const names[] = {"under", "child_of", "ancestor_of", "common_ancestor"};
	static int which[] = {UNDER, CHILD_OF, ANCESTOR_OF, COMMON};

	for (size_t i = 0; i < PFS_COUNT(names); i++)
		(void)sqlite3_create_function(reference, names[i], 2, SQLITE_UTF8, &which[i], relate,
					      NULL, NULL);
	(void)sqlite3_create_function(reference, "ino_of", 1, SQLITE_UTF8, NULL, ino_of, NULL,
				      NULL);
	(void)sqlite3_create_function(reference, "path_of", 1, SQLITE_UTF8, NULL, path_of, NULL,
				      NULL);
	(void)sqlite3_create_function(reference, "common_ancestor", 1, SQLITE_UTF8, NULL, NULL,
				      common_step, common_final);
}

static void add_tables(void)
{
	for (const char *const *sql = random_statement_tables; *sql; sql++) {
		struct pfs_query *query = begin(*sql, strlen(*sql));

		assert_non_null(query);
		pfs_query_finish(query);
		run_reference(*sql);
	}
}

static int set_up(void **state)
{
	(void)state;
	temp_store_create(&store);
	import_columns();
	tree = temp_tree_open(&store);
	grow_tree(NODES);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	assert_int_equal(sqlite3_open(":memory:", &reference), SQLITE_OK);
	copy_table();
	add_functions();
	add_tables();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)sqlite3_close(reference);
	pfs_queries_close(queries);
	temp_tree_close(tree);
	temp_store_remove(&store);
	return 0;
}

/* ---- comparing ---- */

struct rows {
	char **line; /* a row as text, types told apart */
	size_t n, capacity;
	bool failed;
};

static void add_row(struct rows *rows, char *line)
{
	if (pfs_grow(&rows->line, &rows->capacity, rows->n + 1, sizeof(*rows->line)))
		fail_msg("no memory");
	else
		rows->line[rows->n++] = line;
}

static void drop(struct rows *rows)
{
	for (size_t i = 0; i < rows->n; i++)
		free(rows->line[i]);
	free(rows->line);
	*rows = (struct rows){.n = 0};
}

static void write_value(FILE *out, int type, int64_t integer, double real, const char *bytes,
			size_t size)
{
	if (type == SQLITE_INTEGER)
		(void)fprintf(out, "i%lld ", (long long)integer);
	else if (type == SQLITE_FLOAT)
		(void)fprintf(out, "r%.12g ", real); /* sums may be added in another order */
	else if (type == SQLITE_NULL)
		(void)fputs("- ", out);
	else
		(void)fprintf(out, "%c%zu:%.*s ", type == SQLITE_TEXT ? 't' : 'b', size, (int)size,
			      bytes);
}

/* And they had an answer. */
static bool has_parts(const struct pfs_query *query)
{
	return query->parts && pfs_parts_text(query->parts, query) != &query->text;
}

static void ours(struct rows *rows, const char *sql, size_t len)
{
	static unsigned n;
	struct pfs_query *query = begin(sql, len);
	struct pfs_query_error error;
	int got = query ? 1 : -1;

	if (query && ++n % 4 > 1) /* and tables are looked at in pieces */
		query->piece = 1 + n % 100;
	while (query && ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)) {
		if (got == -EAGAIN) { /* the committer frees nodes: from the first row again */
			drop(rows);
			continue;
		}
		char *line;
		size_t size;
		FILE *out = open_memstream(&line, &size);

		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			static const int types[] = {SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT,
						    SQLITE_TEXT, SQLITE_BLOB};
			struct pfs_query_value v;

			pfs_query_value(query, i, &v);
			write_value(out, types[v.type], v.integer, v.real, v.bytes, v.size);
		}
		(void)fclose(out);
		add_row(rows, line);
	}
	rows->failed = got < 0;
	relational += query && pfs_relational_has_rows(query->relational);
	with_parts += query && has_parts(query);
	if (query && getenv("PFS_TEST_PLANS")) {
		(void)fprintf(stderr, "%.*s: ", (int)len, sql);
		pfs_parts_describe(query->parts, stderr);
		pfs_relational_describe(query->relational, stderr);
	}
	pfs_query_finish(query);
}

/* A statement that names the hidden column `preorder`, as the copy, which has none, is to be asked. */
static char *spell_preorder(const char *sql, size_t len)
{
	static const char word[] = "preorder";
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	while (len) {
		bool of_table = len > sizeof(word) && sql[1] == '.';
		size_t before = of_table ? 2 : 0, is = before + sizeof(word) - 1;

		if (len < is || strncmp(sql + before, word, sizeof(word) - 1) != 0) {
			(void)fputc(*sql, out);
			is = 1;
		} else {
			(void)fprintf(out, "replace(%.*spath, '/', CAST(x'00' AS TEXT))",
				      (int)before, sql);
		}
		sql += is;
		len -= is;
	}
	(void)fclose(out);
	return text;
}

static int list_columns(void *arg PFS_UNUSED, const char *table,
			int (*add)(void *to, const char *name, bool is_hidden), void *to)
{
	char *sql = sqlite3_mprintf("SELECT name FROM pragma_table_info(%Q)", table);
	sqlite3_stmt *row;
	int error = 0;

	assert_int_equal(sqlite3_prepare_v2(reference, sql, -1, &row, NULL), SQLITE_OK);
	while (!error && sqlite3_step(row) == SQLITE_ROW)
		error = add(to, (const char *)sqlite3_column_text(row, 0), false);
	(void)sqlite3_finalize(row);
	sqlite3_free(sql);
	return error;
}

static void theirs(struct rows *rows, const char *sql, size_t len)
{
	const struct pfs_timed_tables tables = {.columns = list_columns};
	struct pfs_sql_problem doubt;
	char *spelt = spell_preorder(sql, len);
	struct pfs_edits text;
	sqlite3_stmt *row;
	int result;

	assert_int_equal(pfs_timed_replace(&text, spelt, strlen(spelt), pfs_time_now(), &tables, &doubt), 0);
	free(spelt);
	result = sqlite3_prepare_v2(reference, text.text, (int)text.len, &row, NULL);
	pfs_edits_finish(&text);
	while (!result && (result = sqlite3_step(row)) == SQLITE_ROW) {
		char *line;
		size_t size;
		FILE *out = open_memstream(&line, &size);

		for (int i = 0; i < sqlite3_column_count(row); i++)
			write_value(out, sqlite3_column_type(row, i), sqlite3_column_int64(row, i),
				    sqlite3_column_type(row, i) == SQLITE_FLOAT
					    ? sqlite3_column_double(row, i)
					    : 0,
				    sqlite3_column_blob(row, i),
				    sqlite3_column_type(row, i) >= SQLITE_TEXT
					    ? (size_t)sqlite3_column_bytes(row, i)
					    : 0);
		(void)fclose(out);
		add_row(rows, line);
		result = SQLITE_OK;
	}
	rows->failed = result != SQLITE_DONE || *doubt.text;
	(void)sqlite3_finalize(row);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct rows *rows)
{
	if (rows->n)
		qsort(rows->line, rows->n, sizeof(*rows->line), by_text);
}

/* Whether ours has the rows of b; prints how not. */
static bool compare_with(const struct rows *b, const char *sql, size_t len, bool ordered)
{
	struct rows a = {.n = 0};
	bool equal;
	size_t i = 0;

	ours(&a, sql, len);
	if (!ordered)
		sort(&a);
	while (i < a.n && i < b->n && !strcmp(a.line[i], b->line[i]))
		i++;
	equal = a.failed == b->failed && (a.failed || (i == a.n && i == b->n));
	if (!equal)
		print_error("%.*s\n  row %zu: %s, SQLite's %s (%zu rows, %zu)\n", (int)len, sql, i,
			    a.failed  ? "failed"
			    : i < a.n ? a.line[i]
				      : "none",
			    b->failed  ? "failed"
			    : i < b->n ? b->line[i]
				       : "none",
			    a.n, b->n);
	drop(&a);
	return equal;
}

/* The same, asked once, and asked again, as it was kept; of builds that verify, which ask SQLite each time, some. */
static bool compare(const char *sql, size_t len, bool ordered)
{
	static unsigned asked;
	struct rows b = {.n = 0};
	unsigned long operators, parts;
	bool equal;

	theirs(&b, sql, len);
	if (!ordered)
		sort(&b);
	equal = compare_with(&b, sql, len, ordered);
	operators = relational;
	parts = with_parts;
	if (equal && asked++ % ASKED_AGAIN == 0)
		equal = compare_with(&b, sql, len, ordered);
	relational = operators; /* statements are counted once */
	with_parts = parts;
	drop(&b);
	return equal;
}

static void test_corpus(void **state)
{
	FILE *file = fopen(CORPUS, "r");
	unsigned n = 0, wrong = 0;
	size_t capacity = 0;
	char *line = NULL;
	ssize_t len;

	(void)state;
	if (!file)
		skip();
	while ((len = getline(&line, &capacity, file)) > 0) {
		bool ordered = strncmp(line, "= ", 2) == 0;

		len -= line[len - 1] == '\n';
		if (len == 0 || strncmp(line, "--", 2) == 0)
			continue;
		n++;
		wrong += !compare(line + 2 * ordered, (size_t)len - 2 * ordered, ordered);
	}
	free(line);
	(void)fclose(file);
	print_message("%u statements, %u with other rows\n", n, wrong);
	assert_true(n >= 300);
	assert_int_equal(wrong, 0);
}

/* ---- random statements ---- */

static bool compare_random(bool (*make)(FILE *out, uint64_t *seed))
{
	char *sql;
	size_t len;
	FILE *out = open_memstream(&sql, &len);
	bool ordered = make(out, &seed), equal;

	(void)fclose(out);
	equal = compare(sql, len, ordered);
	free(sql);
	return equal;
}

/* PFS_LONG: 1 for the long mode, or a number. */
static unsigned long how_many(void)
{
	const char *text = getenv("PFS_LONG");
	unsigned long n = text ? strtoul(text, NULL, 10) : 0;

	if (n == 0)
		return RANDOM;
	return n == 1 ? RANDOM_LONG : n;
}

static void test_random(void **state)
{
	unsigned long n = how_many();
	unsigned wrong = 0;

	(void)state;
	for (unsigned long i = 0; i < n; i++)
		wrong += !compare_random(random_statement);
	print_message("%lu random statements, %u with other rows\n", n, wrong);
	assert_int_equal(wrong, 0);
}

/* What has an argument twice in another one, which has it twice ... */
static void test_nested(void **state)
{
	static const char *const forms[][2] = {{"coalesce(", ", 1)"},
					       {"(", " BETWEEN 0 AND 1)"},
					       {"(CASE ", " WHEN 0 THEN 1 WHEN 1 THEN 2 END)"}};

	(void)state;
	for (size_t form = 0; form < PFS_COUNT(forms); form++) {
		char *sql;
		size_t len;
		FILE *out = open_memstream(&sql, &len);

		(void)fputs("SELECT count(*) FROM nodes WHERE ", out);
		for (unsigned i = 0; i < 60; i++)
			(void)fputs(forms[form][0], out);
		(void)fputs("size", out);
		for (unsigned i = 0; i < 60; i++)
			(void)fputs(forms[form][1], out);
		(void)fclose(out);
		assert_true(compare(sql, len, false));
		free(sql);
	}
}

/* ---- orders, while the tree changes ---- */

static void change_tree(void)
{
	static const char sql[] = "SELECT ino, parent, name FROM nodes WHERE ino <> 2 ORDER BY ino";
	struct pfs_query *query = begin(sql, strlen(sql));
	unsigned n = 1 + below(NODES / 2);
	struct pfs_query_error error;
	struct pfs_query_value ino, parent, name;
	char old[64], new[80];

	for (int got = 1; n && (got == 1 || got == -EAGAIN); n -= got == 1)
		got = pfs_query_next(query, &error);
	pfs_query_value(query, 0, &ino);
	pfs_query_value(query, 1, &parent);
	pfs_query_value(query, 2, &name);
	(void)snprintf(old, sizeof(old), "%.*s", (int)name.size, name.bytes);
	pfs_query_finish(query);
	(void)snprintf(new, sizeof(new), "%s-%u", below(2) ? old : "d1", below(5));
	switch (below(4)) {
	case 0:
		(void)!pfs_tree_rename(tree, (uint64_t)parent.integer, old,
				       below(2) ? (uint64_t)parent.integer : PFS_ROOT_PRIME, new, 0);
		break;
	case 1:
		(void)!pfs_tree_unlink(tree, (uint64_t)parent.integer, old);
		grow_tree(4);
		break;
	default:
		set_values((uint64_t)ino.integer, below(9));
	}
}

static void copy_again(void)
{
	struct pfs_query *query = begin("SELECT * FROM nodes", 19);

	run_reference("BEGIN; DELETE FROM nodes");
	copy_rows(query);
	run_reference("COMMIT");
	pfs_query_finish(query);
}

static void test_ordered(void **state)
{
	unsigned long n = how_many();
	unsigned wrong = 0;

	(void)state;
	for (unsigned long i = 0; i < n; i++) {
		wrong += !compare_random(random_order);
		if (below(3) == 0) {
			change_tree();
			copy_again();
		}
	}
	print_message("%lu random orders, %u with other rows\n", n, wrong);
	assert_int_equal(wrong, 0);
}

/* While the tree changes, too.  So many of them are run past SQLite that the comparison says
 * something. */
static void compare_many(bool (*make)(FILE *out, uint64_t *seed), const char *what)
{
	unsigned long n = how_many() * 4;
	unsigned wrong = 0;

	relational = with_parts = 0;
	for (unsigned long i = 0; i < n; i++) {
		wrong += !compare_random(make);
		if (below(12) == 0) {
			change_tree();
			copy_again();
		}
	}
	print_message("%lu statements %s, %lu past SQLite, %lu in parts, %u with other rows\n", n, what,
		      relational, with_parts, wrong);
	assert_int_equal(wrong, 0);
	assert_true(relational + with_parts > n / 4);
}

static void test_rows(void **state)
{
	(void)state;
	compare_many(random_rows, "of rows as they are");
}

static void test_grouped(void **state)
{
	(void)state;
	compare_many(random_grouped, "that group or join");
}

static void test_nested_selects(void **state)
{
	(void)state;
	compare_many(random_nested, "of sub-selects, WITH and UNION");
}

static void test_parts(void **state)
{
	(void)state;
	compare_many(random_parts, "of which SQLite runs the whole");
	assert_true(with_parts > relational);
}

static void test_windows(void **state)
{
	(void)state;
	compare_many(random_windows, "with windows");
}

/* ---- who runs what ---- */

enum runner { SQLITE, PARTS, OPERATORS };

static enum runner runner_of(const char *sql)
{
	struct pfs_query *query = begin(sql, strlen(sql));
	struct pfs_query_error error;
	enum runner runner;
	int got;

	if (!query) {
		fail_msg("not run: %s", sql);
		return SQLITE;
	}
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)
		;
	runner = pfs_relational_has_rows(query->relational) ? OPERATORS
		 : has_parts(query)			    ? PARTS
							    : SQLITE;
	pfs_query_finish(query);
	return runner;
}

/* Statements that the operators run whole, */
static const char *const operators[] = {
	"SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext ORDER BY 3 DESC LIMIT 10",
	"SELECT type, count(*) AS n FROM nodes GROUP BY type ORDER BY n",
	"SELECT depth, count(*) FROM nodes GROUP BY depth",
	"SELECT tag, avg(size) FROM nodes GROUP BY tag HAVING count(*) > 1",
	"SELECT owner, sum(size) FROM nodes GROUP BY owner",
	"SELECT parent, sum(size) FROM nodes GROUP BY parent ORDER BY 2 DESC LIMIT 10",
	"SELECT count(*), sum(size) FROM nodes WHERE size BETWEEN 100 AND 5000",
	"SELECT count(*) FROM nodes WHERE name LIKE '%d1%'",
	"SELECT DISTINCT ext FROM nodes",
	"SELECT k, count(*), sum(size) FROM nodes NATURAL JOIN side GROUP BY k",
	"SELECT a.path, n FROM nodes a JOIN side ON k = a.name ORDER BY n DESC LIMIT 3",
	"SELECT p.path, count(*) FROM nodes n JOIN nodes p ON n.parent = p.ino GROUP BY 1",
	"SELECT count(*) FROM nodes WHERE under(ino, 2) AND mtime > '2001-01-01'",
	"SELECT max(n) FROM (SELECT parent, count(*) AS n FROM nodes GROUP BY parent)",
	"SELECT path, n FROM (SELECT parent p, count(*) n FROM nodes GROUP BY 1) JOIN "
	"nodes ON ino = p",
	"WITH big AS (SELECT * FROM nodes WHERE size > 100) SELECT ext, sum(size) FROM big "
	"GROUP BY 1",
	"WITH a AS (SELECT depth FROM nodes), b(e, m) AS (SELECT * , 1 FROM a) SELECT "
	"sum(m) FROM b",
	"SELECT 'd' AS k, count(*) FROM nodes UNION ALL SELECT ext, size FROM nodes ORDER "
	"BY k, 2",
	"SELECT name FROM nodes UNION SELECT ext FROM nodes",
	"SELECT name FROM nodes INTERSECT SELECT ext FROM nodes",
	"SELECT ext FROM nodes GROUP BY ext EXCEPT SELECT ext FROM side",
	"SELECT ext FROM nodes UNION SELECT type FROM nodes EXCEPT SELECT name FROM nodes "
	"UNION ALL SELECT k FROM side",
	"SELECT count(*) FROM (SELECT ino FROM nodes WHERE type = 'd' EXCEPT SELECT parent "
	"FROM nodes)",
	"SELECT upper(substr(name, 1, 1)) AS c, count(*) FROM nodes GROUP BY c",
	"SELECT upper(type), substr(lower(ext), 2), sum(size) FROM nodes GROUP BY type, "
	"lower(ext)",
	"SELECT count(*) FROM nodes WHERE replace(name, 'd', '') = name AND instr(name, "
	"'1') > 0",
	"SELECT count(*) FROM nodes a JOIN nodes b ON upper(a.name) = b.name || '.C'",
	"WITH RECURSIVE i(v) AS (SELECT 0 UNION ALL SELECT v + 1 FROM i LIMIT 30), o(uid, "
	"team) AS "
	"(SELECT v, 'team ' || v % 3 FROM i) SELECT team, count(*), sum(size) FROM nodes "
	"JOIN o USING (uid) GROUP BY team",
	"WITH v(e) AS (VALUES ('c'), ('txt'), ('c')) SELECT e, count(*) FROM v JOIN nodes "
	"ON ext = e GROUP BY e",
	"SELECT ext, w FROM nodes LEFT JOIN (SELECT 'c' AS e, 2 AS w UNION ALL VALUES "
	"('h', 3)) ON ext = e GROUP BY ext, w",
	"SELECT count(*) FROM (SELECT size FROM nodes ORDER BY size, ino LIMIT 5)",
	"SELECT path FROM nodes WHERE size > 100",
	"SELECT path, tag FROM nodes WHERE path LIKE '%d1%' AND (size > 9 OR tag = 'x') "
	"ORDER BY path LIMIT 5 OFFSET 2",
	"SELECT * FROM nodes ORDER BY subtree_size DESC",
	"SELECT path FROM (SELECT * FROM nodes WHERE size > 100)",
	"SELECT name FROM nodes WHERE subtree_count > 1 AND ino = 2",
	"SELECT sum(size) OVER (ORDER BY ino) FROM nodes",
	"SELECT t, sum(n) OVER (ORDER BY t) FROM (SELECT ext t, count(*) n FROM nodes "
	"GROUP BY ext)",
	"SELECT path, rank() OVER (PARTITION BY parent ORDER BY size DESC) AS r FROM nodes "
	"ORDER BY r, ino LIMIT 5",
	"SELECT max(r) FROM (SELECT row_number() OVER (PARTITION BY ext ORDER BY size) AS "
	"r FROM nodes) WHERE r < 9",
	"SELECT rank() OVER (ORDER BY size), sum(size) OVER (PARTITION BY ext), "
	"row_number() OVER (ORDER BY ino) FROM nodes",
};

/* that SQLite runs whole, */
static const char *const sqlites[] = {
	"SELECT count(*) FROM nodes WHERE ino = 2",
	"SELECT max(size) FROM nodes",
	"SELECT round(size / 3), rank() OVER (ORDER BY size) FROM nodes",
	"SELECT hex(ext), name FROM nodes GROUP BY ext",
	"SELECT a.name FROM nodes a WHERE size = (SELECT max(size) FROM nodes b WHERE "
	"b.parent = a.parent)",
	"SELECT type, group_concat(name) FROM nodes GROUP BY type",
	"SELECT group_concat(a.name) FROM nodes a JOIN side s ON s.ext = a.ext",
	"SELECT n FROM (SELECT parent, count(*) n FROM nodes GROUP BY parent) WHERE parent "
	"= 2",
	"SELECT count(*) FROM (SELECT size FROM nodes ORDER BY size LIMIT 5)",
	"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT "
	"max(x) FROM n",
	"SELECT sum(size) OVER (ORDER BY ino ROWS 1 PRECEDING) FROM nodes",
	"SELECT count(*) FROM nodes WHERE size = name",
};

/* and parts of which the operators run. */
static const char *const parts[] = {
	"SELECT ext, count(*), rank() OVER (ORDER BY count(*)) FROM nodes GROUP BY ext",
	"SELECT hex(ext), count(*) AS n FROM nodes GROUP BY ext HAVING n > 1 ORDER BY "
	"abs(n)",
	"SELECT hex(type), sum(size) FROM nodes GROUP BY type",
	"SELECT type, ext, printf('%d', max(size)) FROM nodes GROUP BY 1, 2",
	"SELECT round(avg(size), 1) FROM nodes",
	"SELECT ext, 100.0 * count(*) / (SELECT count(*) FROM nodes) FROM nodes GROUP BY "
	"ext",
	"SELECT (SELECT count(*) FROM nodes) - 1",
	"SELECT path FROM nodes WHERE size > (SELECT avg(size) FROM nodes)",
	"SELECT path FROM nodes WHERE ext IN (SELECT ext FROM side GROUP BY ext)",
	"SELECT t, sum(n) OVER (ORDER BY t ROWS 2 PRECEDING) FROM (SELECT ext t, count(*) "
	"n FROM nodes GROUP BY ext)",
	"WITH w AS (SELECT ext, sum(size) s FROM nodes GROUP BY ext) SELECT hex(ext), s "
	"FROM w",
	"SELECT hex(a.name), rank() OVER (ORDER BY s.n) FROM nodes a JOIN side s ON "
	"s.ext = a.ext",
	"SELECT path, (SELECT count(*) FROM nodes c WHERE c.parent = n.ino) FROM nodes n "
	"JOIN (SELECT parent p, sum(size) s FROM nodes GROUP BY 1 ORDER BY s, p LIMIT 5) "
	"ON ino = p",
};

static void test_who_runs(void **state)
{
	(void)state;
	for (size_t i = 0; i < PFS_COUNT(operators); i++) {
		if (runner_of(operators[i]) != OPERATORS)
			fail_msg("not by operators: %s", operators[i]);
	}
	for (size_t i = 0; i < PFS_COUNT(parts); i++) {
		if (runner_of(parts[i]) != PARTS)
			fail_msg("not in parts: %s", parts[i]);
	}
	for (size_t i = 0; i < PFS_COUNT(sqlites); i++) {
		if (runner_of(sqlites[i]) != SQLITE)
			fail_msg("not by SQLite: %s", sqlites[i]);
	}
}

int main(void)
{
	const char *given = getenv("PFS_TEST_SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),	cmocka_unit_test(test_random),
		cmocka_unit_test(test_nested),	cmocka_unit_test(test_who_runs),
		cmocka_unit_test(test_grouped), cmocka_unit_test(test_nested_selects),
		cmocka_unit_test(test_parts),	cmocka_unit_test(test_ordered),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_windows),
	};

	seed = given ? strtoull(given, NULL, 10) : 4;
	print_message("seed %llu (PFS_TEST_SEED sets it)\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
