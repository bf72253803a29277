/* SPDX-License-Identifier: MIT */
/* Statements have the rows that SQLite has over a copy of nodes in a table of its own: those of
 * tests/query/statements.sql and random ones.  PFS_LONG=N: so many; PFS_TEST_SEED: another seed. */
#include "tests/unit/random_tree_util.h"

#include "base/checked.h"
#include "fs/query/times/timed.h"
#include "tests/ref/corners.h"
#include "tests/ref/grouped.h"
#include "tests/ref/nested.h"
#include "tests/ref/node_copy.h"
#include "tests/ref/parts.h"
#include "tests/ref/random_sides.h"
#include "tests/ref/recursion.h"
#include "tests/ref/tied.h"
#include "tests/ref/windows.h"

#define CORPUS	    "tests/query/statements.sql"
#define RANDOM	    300 /* statements */
#define RANDOM_LONG 5000

#ifdef PFS_VERIFY
#define ASKED_AGAIN 4
#else
#define ASKED_AGAIN 1
#endif

static sqlite3 *reference;
static unsigned long relational;   /* statements that the operators ran, */
static unsigned long with_parts;   /* or parts of which they ran; */
static unsigned long by_operators; /* and those that changed rows of a side table past SQLite */

/* ---- the copy ---- */

static void run_reference(const char *sql)
{
	char *message = NULL;

	if (sqlite3_exec(reference, sql, NULL, NULL, &message))
		fail_msg("%s: %s", sql, message);
}

static void bind(sqlite3_stmt *insert, int at, const struct pfs_sql_value *value)
{
	switch (value->type) {
	case PFS_SQL_NULL:
		(void)sqlite3_bind_null(insert, at);
		break;
	case PFS_SQL_INTEGER:
		(void)sqlite3_bind_int64(insert, at, value->integer);
		break;
	case PFS_SQL_REAL:
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
			struct pfs_sql_value value;

			pfs_query_value(query, i, &value);
			bind(insert, (int)i + 1, &value);
		}
		assert_int_equal(sqlite3_step(insert), SQLITE_DONE);
		assert_int_equal(sqlite3_reset(insert), SQLITE_OK);
	}
	assert_int_equal(got, 0);
	assert_int_equal(sqlite3_finalize(insert), SQLITE_OK);
}

/* The table as nodes declares it.  Its rows lie in the order in which a scan of nodes meets them,
 * so that `ino` is no name of SQLite's own number of a row; and it has no index, by which SQLite
 * would have groups in another order. */
static void copy_table(void)
{
	static const char columns[] = "SELECT name, type FROM pragma_table_info('nodes')";
	struct pfs_query *query = begin(columns, strlen(columns));
	char sql[4096] = "CREATE TABLE nodes (";
	struct pfs_query_error error;

	assert_non_null(query);
	while (pfs_query_next(query, &error) == 1) {
		struct pfs_sql_value name, type;
		size_t len = strlen(sql);

		pfs_query_value(query, 0, &name);
		pfs_query_value(query, 1, &type);
		(void)snprintf(sql + len, sizeof(sql) - len, "%s\"%.*s\" %.*s",
			       sql[len - 1] == '(' ? "" : ", ", (int)name.size, name.bytes,
			       (int)type.size, type.bytes);
	}
	pfs_query_finish(query);
	(void)stpcpy(sql + strlen(sql), ")");
	run_reference(sql);
	query = begin("SELECT * FROM nodes", 19);
	assert_non_null(query);
	copy_rows(query);
	pfs_query_finish(query);
}

static int set_up(void **state)
{
	(void)state;
	open_random_tree();
	assert_int_equal(sqlite3_open(":memory:", &reference), SQLITE_OK);
	copy_table();
	node_copy_add_functions(reference);
	for (const char *const *sql = random_statement_tables; *sql; sql++)
		run_reference(*sql);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)sqlite3_close(reference);
	close_random_tree();
	return 0;
}

/* ---- comparing ---- */

struct rows {
	char **line; /* a row as text, types told apart */
	size_t n, capacity;
	bool failed;
	bool left_64_bits; /* it failed for a sum, */
	bool is_sqlites;   /* which SQLite adds up, perhaps of parts, in the order of rows that its
			      plan meets them in */
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
			struct pfs_sql_value v;

			pfs_query_value(query, i, &v);
			write_value(out, types[v.type], v.integer, v.real, v.bytes, v.size);
		}
		(void)fclose(out);
		add_row(rows, line);
	}
	rows->failed = got < 0;
	rows->left_64_bits = got < 0 && query && !strcmp(error.text, "integer overflow");
	rows->is_sqlites = query && !pfs_relational_has_rows(query->relational);
	relational += query && pfs_relational_has_rows(query->relational);
	with_parts += query && has_parts(query);
	if (query && getenv("PFS_TEST_PLANS")) {
		(void)fprintf(stderr, "%.*s: ", (int)len, sql);
		pfs_parts_describe(query->parts, stderr);
		pfs_relational_describe(query->relational, stderr);
	}
	pfs_query_finish(query);
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
	char *spelt = node_copy_spelling(sql, len);
	struct pfs_edits text;
	sqlite3_stmt *row;
	int result;

	assert_int_equal(
		pfs_timed_replace(&text, spelt, strlen(spelt), pfs_time_now(), &tables, &doubt), 0);
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
	rows->left_64_bits = rows->failed && !strcmp(sqlite3_errmsg(reference), "integer overflow");
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
	equal = a.failed == b->failed ? a.failed || (i == a.n && i == b->n)
				      : a.is_sqlites && (a.left_64_bits || b->left_64_bits);
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

/* The same, asked once, and asked again, as it was kept; of builds that verify, which ask SQLite
 * each time, some. */
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
	struct pfs_sql_value ino, parent, name;
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
				       below(2) ? (uint64_t)parent.integer : PFS_ROOT_PRIME, new,
				       0);
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

/* So many are run past SQLite that the comparison says something, if they are not few; between two,
 * `change` may change the tables. */
static void compare_changing(bool (*make)(FILE *out, uint64_t *seed), void (*change)(void),
			     const char *what)
{
	unsigned long n = how_many() * 4;
	unsigned wrong = 0;

	relational = with_parts = 0;
	for (unsigned long i = 0; i < n; i++) {
		wrong += !compare_random(make);
		change();
	}
	print_message("%lu statements %s, %lu past SQLite, %lu in parts, %u with other rows\n", n,
		      what, relational, with_parts, wrong);
	assert_int_equal(wrong, 0);
	assert_true(n < 100 || relational + with_parts > n / 4);
}

static void change_now_and_then(void)
{
	if (below(12) == 0) {
		change_tree();
		copy_again();
	}
}

static void compare_many(bool (*make)(FILE *out, uint64_t *seed), const char *what)
{
	compare_changing(make, change_now_and_then, what);
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

static void test_texts(void **state)
{
	(void)state;
	compare_many(random_texts, "of texts that several rows make");
}

#define ONE "CASE WHEN a.size % 2 THEN 1 ELSE 1.0 END"

/* Of 1 and 1.0 the one that comes first stays: which that is, is known of a scan of nodes, and not
 * of a join. */
static void test_classes(void **state)
{
	static const struct {
		const char *sql;
		unsigned long past; /* 1: past SQLite */
	} cases[] = {
		{"SELECT DISTINCT " ONE " FROM nodes a", 1},
		{"SELECT " ONE ", count(*) FROM nodes a GROUP BY 1", 1},
		{"SELECT max(" ONE "), count(*) FROM nodes a", 1},
		{"SELECT DISTINCT " ONE " FROM nodes a JOIN nodes b ON a.name = b.name", 0},
		{"SELECT " ONE ", count(*) FROM nodes a JOIN nodes b ON a.name = b.name GROUP BY 1",
		 0},
		{"SELECT min(" ONE "), count(*) FROM nodes a JOIN nodes b ON a.name = b.name", 0},
		{"SELECT DISTINCT " ONE " FROM nodes a WHERE a.depth = 1 OR a.size > 0", 0},
		{"SELECT DISTINCT " ONE " * 1.0 FROM nodes a JOIN nodes b ON a.name = b.name", 1},
		{"SELECT DISTINCT " ONE
		 " FROM nodes a JOIN nodes b ON a.name = b.name WHERE a.size % 2",
		 1},
		{"SELECT sum(n) FROM (SELECT " ONE " * 1.0 AS n FROM nodes a)", 1},
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		struct rows rows = {.n = 0};

		relational = 0;
		if (cases[i].past)
			assert_true(compare(cases[i].sql, strlen(cases[i].sql), false));
		else
			ours(&rows, cases[i].sql, strlen(cases[i].sql));
		assert_false(rows.failed);
		if (relational != cases[i].past)
			fail_msg("%s: %lu", cases[i].sql, relational);
		drop(&rows);
	}
}

static void test_nested_selects(void **state)
{
	(void)state;
	compare_many(random_nested, "of sub-selects, WITH and UNION");
}

/* ORDER BY leaves rows open that SQLite has in the order of groups or sets. */
static void test_known(void **state)
{
	(void)state;
	compare_many(random_known, "that show the order of groups and sets");
}

static void test_parts(void **state)
{
	(void)state;
	compare_many(random_parts, "of which SQLite runs the whole");
	assert_true(with_parts > relational);
}

static void test_tied(void **state)
{
	(void)state;
	compare_many(random_tied, "with sub-selects in expressions");
}

static void test_corners(void **state)
{
	(void)state;
	compare_many(random_corners, "of what others make seldom");
}

static void test_windows(void **state)
{
	(void)state;
	compare_many(random_windows, "with windows");
}

static void test_recursion(void **state)
{
	(void)state;
	compare_many(random_recursion, "of recursion over nodes");
}

/* ---- statements that change something ---- */

/* Runs it on both sides, and counts what had parts.  False: one has an error, and the other none,
 * or both have one, *equal. */
static bool run_both(const char *sql, bool *equal)
{
	struct pfs_query *query = begin(sql, strlen(sql));
	struct rows none = {.n = 0};
	bool failed = !query;

	with_parts += query && has_parts(query);
	by_operators += query && query->is_by_operators;
	pfs_query_finish(query);
	theirs(&none, sql, strlen(sql));
	*equal = failed == none.failed;
	return !failed && !none.failed;
}

/* A table made of the statement's rows has SQLite's columns, types and rows. */
static bool compare_made(bool (*make)(FILE *out, uint64_t *seed))
{
	static const char columns[] = "SELECT name, type FROM pragma_table_info('made')";
	static const char all[] = "SELECT * FROM made";
	static const char create[] = "CREATE TABLE made AS ", insert[] = "INSERT   INTO   made ";
	bool equal, ignored;
	size_t len;
	char *sql;
	FILE *out = open_memstream(&sql, &len);

	_Static_assert(sizeof(create) == sizeof(insert), "one takes the other's place");
	(void)fputs(create, out);
	(void)make(out, &seed);
	(void)fclose(out);
	if (run_both(sql, &equal)) {
		equal = compare(columns, sizeof(columns) - 1, true) &&
			compare(all, sizeof(all) - 1, false);
		memcpy(sql, insert, sizeof(insert) - 1); /* and once more, into that table */
		equal = equal && run_both(sql, &ignored) && compare(all, sizeof(all) - 1, false);
	}
	if (!equal)
		print_error("%s\n", sql);
	free(sql);
	(void)run_both("DROP TABLE IF EXISTS made", &ignored);
	return equal;
}

static void test_made_tables(void **state)
{
	static bool (*const makers[])(FILE * out, uint64_t * seed) = {
		random_grouped, random_parts, random_nested, random_windows, random_statement};
	unsigned long n = how_many();
	unsigned wrong = 0;

	(void)state;
	with_parts = by_operators = 0;
	for (unsigned long i = 0; i < n; i++)
		wrong += !compare_made(makers[i % PFS_COUNT(makers)]);
	print_message("%lu tables made of statements and filled again, %lu times in parts, %lu "
		      "past SQLite, %u other ones\n",
		      n, with_parts, by_operators, wrong);
	assert_int_equal(wrong, 0);
	assert_true(with_parts > n / 2);
	assert_true(by_operators > n / 8);
}

/* The nodes that an UPDATE has found are those that SQLite finds. */
static bool compare_updated(const char *where, unsigned number)
{
	const char *at = strchr(where, '@');
	char condition[200], sql[300];
	struct rows found = {.n = 0};
	struct pfs_query *query;
	bool equal;

	(void)snprintf(condition, sizeof(condition), "%.*s%u%s",
		       at ? (int)(at - where) : (int)strlen(where), where, below(9),
		       at ? at + 1 : "");
	if (!at)
		(void)snprintf(condition, sizeof(condition), "%s", where);
	(void)snprintf(sql, sizeof(sql), "SELECT ino FROM nodes WHERE %s", condition);
	theirs(&found, sql, strlen(sql));
	sort(&found);
	(void)snprintf(sql, sizeof(sql), "UPDATE nodes SET gid = %u WHERE %s", number, condition);
	query = begin(sql, strlen(sql));
	with_parts += query && has_parts(query);
	pfs_query_finish(query);
	(void)snprintf(sql, sizeof(sql), "SELECT ino FROM nodes WHERE gid = %u", number);
	equal = query && compare_with(&found, sql, strlen(sql), false);
	if (!equal)
		print_error("  where %s\n", condition);
	drop(&found);
	return equal;
}

static void test_updated_nodes(void **state)
{
	static const char *const conditions[] = {
		"ino % 9 = @",
		"length(name) > @",
		"size % 3 = 1 AND name LIKE '%@%'",
		"substr(name, 1, 2) = 'f@'",
		"upper(ext) = 'TXT' OR depth = @",
		"size > (SELECT avg(size) FROM nodes WHERE uid <> @)",
		"parent IN (SELECT ino FROM nodes WHERE name LIKE 'd@%') AND size % 2 = 0",
		"ext IN (SELECT ext FROM nodes GROUP BY ext HAVING count(*) > @)",
		"EXISTS (SELECT 1 FROM side s WHERE s.n = nodes.depth) AND ino % 2",
		"mode & 64 AND stars IS NULL",
		"tag || '' = '@' OR size + 0 = 100",
		"under(ino, '/') AND size * 2 > @",
		"length(path) % 9 = @",
		"random() IS NULL OR size % 5 = @ % 5",
	};
	unsigned long n = how_many();
	unsigned wrong = 0;

	(void)state;
	with_parts = 0;
	for (unsigned i = 0; i < n; i++) {
		wrong += !compare_updated(conditions[i % PFS_COUNT(conditions)], 1000 + i);
		if (below(12) == 0) {
			change_tree();
			copy_again();
		}
	}
	copy_again();
	print_message("%lu updates of nodes, %lu with parts, %u of other ones\n", n, with_parts,
		      wrong);
	assert_int_equal(wrong, 0);
	assert_true(with_parts > n / 3);
}

/* ---- random side tables ---- */

/* Makes them anew, here and there. */
static void fill_sides(void)
{
	char *text = NULL, *next, *sql;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	random_sides_fill(out, &seed);
	(void)fclose(out);
	next = text;
	while ((sql = strsep(&next, "\n")) && *sql) {
		struct pfs_query *query = begin(sql, strlen(sql));

		if (!query)
			fail_msg("%.200s", sql);
		pfs_query_finish(query);
		run_reference(sql);
	}
	free(text);
}

static void fill_now_and_then(void)
{
	if (below(25) == 0)
		fill_sides();
}

static void test_sides(void **state)
{
	(void)state;
	fill_sides();
	compare_changing(random_sides, fill_now_and_then, "of random side tables");
}

/* A text is a number beside a column of numbers, though that has none. */
static void test_affinities(void **state)
{
	static const char *const statements[] = {
		"SELECT a, count(*) FROM made WHERE b < a GROUP BY a",
		"SELECT a, count(*) FROM made WHERE c > b GROUP BY a",
		"SELECT b < a, count(*) FROM made GROUP BY 1",
		"SELECT x.c, count(*) FROM made x JOIN made y ON x.c = y.a GROUP BY x.c",
	};
	bool equal;

	(void)state;
	assert_true(run_both("CREATE TABLE made (a, b NUMERIC, c TEXT)", &equal));
	assert_true(run_both("INSERT INTO made VALUES ('12', '', '7'), ('x', 'y', 'z')", &equal));
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		assert_true(compare(statements[i], strlen(statements[i]), false));
	assert_true(run_both("DROP TABLE made", &equal));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus),	       cmocka_unit_test(test_random),
		cmocka_unit_test(test_nested),	       cmocka_unit_test(test_grouped),
		cmocka_unit_test(test_nested_selects), cmocka_unit_test(test_parts),
		cmocka_unit_test(test_ordered),	       cmocka_unit_test(test_rows),
		cmocka_unit_test(test_windows),	       cmocka_unit_test(test_tied),
		cmocka_unit_test(test_recursion),      cmocka_unit_test(test_made_tables),
		cmocka_unit_test(test_updated_nodes),  cmocka_unit_test(test_sides),
		cmocka_unit_test(test_texts),	       cmocka_unit_test(test_classes),
		cmocka_unit_test(test_corners),	       cmocka_unit_test(test_known),
		cmocka_unit_test(test_affinities),
	};

	take_seed();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
