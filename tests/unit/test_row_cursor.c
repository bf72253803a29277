/* SPDX-License-Identifier: MIT */
/* Rows as they are: which statements have them from the operators, and that they are SQLite's,
 * whatever happens on the way. */
#include "tests/unit/query_util.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fs/query/output/answer.h"
#include "fs/query/internal.h"
#include "fs/query/relational/relational.h"

#define FILES 5000

static int set_up_files(void **state)
{
	int failed = set_up(state);
	uint64_t dir = ino_of("/a/b");
	char name[32];

	for (int i = 0; i < FILES; i++) {
		(void)snprintf(name, sizeof(name), i % 7 ? "f%d.txt" : "odd\t%d\n\\\xff", i);
		(void)make(dir, name, S_IFREG | 0600);
	}
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/b/f1.txt"), "user.tag", "one", 3, 0),
			 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino_of("/a/b/f2.txt"), "user.n", "12", 2, 0), 0);
	return failed;
}

/* by_sqlite: the operators are not asked. */
static struct pfs_query *begin_by(const char *sql, bool by_sqlite)
{
	struct pfs_query *query = begin(sql);

	if (by_sqlite) {
		pfs_relational_free(query->relational);
		query->relational = NULL;
	}
	return query;
}

/* ---- which ones ---- */

static bool has_cursor(const char *sql)
{
	struct pfs_query *query = begin_by(sql, false);
	bool past;

	if (pfs_query_next(query, &error) != 1)
		fail_msg("%s: no row", sql);
	past = pfs_relational_gives_rows(query->relational);
	pfs_query_finish(query);
	return past;
}

static void test_plain(void **state)
{
	static const char *const statements[] = {
		"SELECT name FROM nodes",
		"SELECT * FROM nodes",
		"SELECT name, name, size, name FROM nodes",
		"SELECT n.size AS s, path p FROM nodes AS n WHERE n.type = 'f'",
		"SELECT path FROM nodes WHERE size >= 0 AND mode < 100000 AND name GLOB 'f*'",
		"SELECT path FROM nodes WHERE under(ino, '/a') AND ext > 'a'",
		"SELECT path FROM nodes WHERE size < 1024 * 1024",
		"SELECT path FROM nodes WHERE mtime > '2001-01-01' AND uid = -1 + 1",
		"SELECT path, size FROM nodes ORDER BY size DESC, path",
		"SELECT name FROM nodes ORDER BY 1",
		"SELECT path, owner, owner_group, tag, n, target FROM nodes",
		"SELECT path FROM nodes WHERE name LIKE '%f%'",
		"SELECT ALL path FROM nodes WHERE ino > 1 -- a comment; \n",
		"SELECT name FROM nodes WHERE type = 'f' OR size < 7",
		"SELECT name FROM nodes WHERE type IN ('f', 'd')",
		"SELECT name FROM nodes WHERE NOT under(ino, '/e.tar.gz')",
		"SELECT name FROM nodes WHERE name LIKE 'f!%%' ESCAPE '!' OR name LIKE 'f%'",
		"SELECT name FROM nodes WHERE name LIKE '%f%' ESCAPE '!'",
		"SELECT name FROM nodes WHERE name NOT LIKE 'x%'",
		"SELECT name FROM nodes WHERE name > ext",
		"SELECT name FROM nodes WHERE length(name) > 1",
		"SELECT name FROM nodes LIMIT 4000",
		"SELECT name FROM nodes LIMIT -1 OFFSET 3",
		"SELECT name FROM nodes WHERE tag = 'one' OR tag IS NULL",
		"SELECT name FROM nodes WHERE tag IS NULL",
		"SELECT name FROM nodes WHERE owner IS NOT 'x'",
		"SELECT name FROM nodes WHERE CASE WHEN size THEN 1 ELSE 2 END",
		"SELECT name FROM nodes WHERE name = name COLLATE NOCASE",
		"SELECT rowid, * FROM nodes",
		"SELECT path FROM (SELECT path, size FROM nodes)",
		"WITH n AS (SELECT path FROM nodes WHERE type = 'f') SELECT path FROM n",
		"WITH n AS MATERIALIZED (SELECT path FROM nodes) SELECT path FROM n",
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		if (!has_cursor(statements[i]))
			fail_msg("%s: not past SQLite", statements[i]);
}

static void test_not_plain(void **state)
{
	static const char *const statements[] = {
		"SELECT name || '' FROM nodes",
		"SELECT 1, name FROM nodes",
		"SELECT name, NULL FROM nodes",
		"SELECT size + 0 FROM nodes",
		"SELECT CAST(size AS TEXT) FROM nodes",
		"SELECT +size FROM nodes WHERE +size >= 0",
		"SELECT length(name) FROM nodes",
		"SELECT DISTINCT name FROM nodes",
		"SELECT DISTINCT type FROM nodes ORDER BY type",
		"SELECT a.name, b.name FROM nodes a JOIN nodes b ON b.ino = a.parent",
		"SELECT a.name FROM nodes a, nodes b WHERE b.ino = 2",
		"SELECT name FROM nodes, (SELECT 1)",
		"SELECT name, value FROM nodes, json_each('[1]')",
		"SELECT count(*) FROM nodes",
		"SELECT max(name) FROM nodes",
		"SELECT type, count(*) FROM nodes GROUP BY type",
		"SELECT type FROM nodes GROUP BY type",
		"SELECT name, row_number() OVER () FROM nodes",
		"SELECT name FROM nodes ORDER BY length(name)",
		"SELECT name FROM nodes ORDER BY name COLLATE NOCASE",
		"SELECT name FROM nodes ORDER BY owner",
		"SELECT name FROM nodes ORDER BY tag",
		"SELECT name FROM nodes UNION SELECT 'x'",
		"SELECT name FROM nodes UNION ALL SELECT name FROM nodes",
		"SELECT name FROM nodes UNION ALL SELECT 'x'",
		"SELECT name FROM nodes WHERE ino IN (SELECT ino FROM nodes WHERE type = 'f')",
		"SELECT name FROM nodes a WHERE EXISTS (SELECT 1 FROM nodes b WHERE b.ino = a.parent)",
		"SELECT name, (SELECT count(*) FROM nodes b WHERE b.parent = a.ino) FROM nodes a",
		"SELECT name FROM nodes WHERE size < (SELECT max(size) + 9 FROM nodes)",
		"SELECT name FROM nodes WHERE 1 > random() - 9223372036854775807",
		"SELECT max(name), size FROM nodes",
		"SELECT value FROM json_each('[1, 2, 3]')",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) SELECT i FROM n",
		"SELECT path FROM (SELECT path FROM nodes LIMIT 2000)",
		"SELECT path FROM (SELECT DISTINCT path FROM nodes)",
		"EXPLAIN SELECT path FROM nodes",
		"EXPLAIN QUERY PLAN SELECT path FROM nodes",
		"SELECT path FROM nodes WHERE under(ino, ino_of('/a'))",
		"VALUES (1), (2)",
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		if (has_cursor(statements[i]))
			fail_msg("%s: past SQLite", statements[i]);
}

/* ---- the same rows ---- */

/* -EAGAIN, as where others wait for the tree, is one more run. */
static char *text_of(const char *sql, bool by_sqlite)
{
	struct pfs_query *query = begin_by(sql, by_sqlite);
	struct pfs_sql_value value;
	char *text = NULL;
	int got;

	do {
		size_t size;
		FILE *out;

		free(text);
		out = open_memstream(&text, &size);
		while ((got = pfs_query_next(query, &error)) == 1) {
			for (size_t i = 0; i < pfs_query_columns(query); i++) {
				pfs_query_value(query, i, &value);
				(void)fprintf(out, "%d ", (int)value.type);
				if (value.type == PFS_SQL_INTEGER)
					(void)fprintf(out, "%lld", (long long)value.integer);
				if (value.type == PFS_SQL_REAL)
					(void)fprintf(out, "%.17g", value.real);
				if (value.size)
					(void)fwrite(value.bytes, 1, value.size, out);
				(void)fputc('|', out);
			}
			(void)fputc('\n', out);
		}
		(void)fclose(out);
	} while (got == -EAGAIN);
	assert_int_equal(got, 0);
	assert_int_equal(pfs_query_next(query, &error), 0); /* still the end */
	pfs_query_finish(query);
	return text;
}

static void test_same_rows(void **state)
{
	static const char *const statements[] = {
		"SELECT * FROM nodes",
		"SELECT path FROM nodes WHERE path LIKE '%1%' AND subtree_count < 3 AND path > '/a/b/f2'",
		"SELECT name FROM nodes WHERE (size = 0 OR tag = 'one') AND name LIKE 'f%' AND 3 < ino",
		"SELECT name, ino FROM nodes WHERE (size = 0 OR tag = 'one') ORDER BY name LIMIT 100 OFFSET 17",
		"SELECT name FROM nodes WHERE (size = 0 OR tag = 'one') AND path GLOB '/a/*' ORDER BY path DESC",
		"SELECT path FROM nodes WHERE ino > 20 LIMIT 40 OFFSET 3000",
		"SELECT path FROM nodes WHERE size = 0 AND ino > 20 LIMIT 400 OFFSET 3",
		"SELECT path FROM nodes WHERE type = 'f' AND name > 'f2' LIMIT 400 OFFSET 3",
		"SELECT path FROM nodes WHERE type = 'f' AND name > 'f2' AND length(name) > 6 LIMIT 9",
		"SELECT rowid, nodes.oid, size FROM nodes WHERE _rowid_ < 99 ORDER BY rowid DESC",
		"SELECT b, * FROM (SELECT size a, path AS b, path, ino FROM nodes WHERE name > 'c') WHERE b LIKE '%1%' ORDER BY ino",
		"WITH n(a, b) AS (SELECT name, tag FROM nodes WHERE size = 0 OR tag = 'x') SELECT a, b FROM n WHERE a > 'd' LIMIT 9",
		"SELECT path FROM nodes LIMIT 1",
		"SELECT path FROM nodes LIMIT 0",
		"SELECT path FROM nodes LIMIT 10 OFFSET 99999",
		"SELECT name, n, tag, ext, target FROM nodes ORDER BY name",
		"SELECT size, path, owner, rdev FROM nodes WHERE under(ino, '/a/b') ORDER BY path DESC",
		"SELECT path, subtree_count, subtree_size FROM nodes ORDER BY subtree_count, path",
		"SELECT ino FROM nodes WHERE name GLOB 'f*'",
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(statements); i++) {
		char *with = text_of(statements[i], false), *without = text_of(statements[i], true);

		assert_string_equal(with, without);
		free(with);
		free(without);
	}
}

/* ---- written in parts ---- */

static int append(void *arg, const void *bytes, size_t size)
{
	return fwrite(bytes, 1, size, arg) == size ? 0 : -EIO;
}

/* The statement's rows, written; -EAGAIN is one more run. */
static int write_text(char **text, const char *sql, enum pfs_format format, bool by_sqlite)
{
	struct pfs_query *query = begin_by(sql, by_sqlite);
	int status;

	*text = NULL;
	do {
		size_t size;
		FILE *out;

		free(*text);
		out = open_memstream(text, &size);
		status = pfs_format_rows(query, format, &(struct pfs_sink){out, append}, &error);
		(void)fclose(out);
	} while (status == -EAGAIN);
	pfs_query_finish(query);
	if (status) {
		free(*text);
		*text = NULL;
	}
	return status;
}

static void check_written(const char *sql, enum pfs_format format)
{
	char *with, *without;

	assert_int_equal(write_text(&with, sql, format, false), 0);
	assert_int_equal(write_text(&without, sql, format, true), 0);
	assert_string_equal(with, without);
	free(with);
	free(without);
}

static void test_written(void **state)
{
	static const enum pfs_format formats[] = {PFS_FORMAT_TSV, PFS_FORMAT_CSV, PFS_FORMAT_JSON,
						  PFS_FORMAT_TEXT, PFS_FORMAT_PATHS};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(formats); i++) {
		check_written("SELECT * FROM nodes", formats[i]);
		check_written("SELECT name, n, tag, target, path FROM nodes ORDER BY name DESC",
			      formats[i]);
		check_written("SELECT size, size, ino FROM nodes WHERE ino > 2", formats[i]);
	}
}

static void check_answer(const char *sql, const char *wanted, size_t memory, uint64_t budget)
{
	struct pfs_answer *answer;
	size_t size = strlen(wanted);
	char *text = malloc(size + 1);

	pfs_answers_set_budget(budget);
	assert_int_equal(pfs_answer_create(&answer, memory, 0), 0);
	pfs_answer_keep_more(answer);
	assert_int_equal(pfs_answer_run(answer, queries, &scope, sql, strlen(sql), PFS_FORMAT_TSV,
					&error),
			 0);
	assert_int_equal(pfs_answer_size(answer), size);
	assert_int_equal(pfs_answer_read(answer, text, size + 1, 0), size);
	assert_memory_equal(text, wanted, size);
	for (uint64_t at = 1; at < size; at += 70001) {
		size_t n = PFS_MIN((size_t)4000, size - at);

		assert_int_equal(pfs_answer_read(answer, text, 4000, at), n);
		assert_memory_equal(text, wanted + at, n);
	}
	pfs_answer_close(answer);
	assert_int_equal(pfs_answers_taken(), 0);
	pfs_answers_set_budget(0);
	free(text);
}

/* Into memory that the answer lends, or once there is none, or no more, by copies and into a
 * file. */
static void test_into_answer(void **state)
{
	static const char sql[] = "SELECT *, *, path, path, path FROM nodes ORDER BY ino DESC";
	char *wanted;

	(void)state;
	assert_int_equal(write_text(&wanted, sql, PFS_FORMAT_TSV, true), 0);
	assert_true(strlen(wanted) > 1536 << 10);
	check_answer(sql, wanted, 4 << 20, 0);
	check_answer(sql, wanted, 64 << 10, 0);
	check_answer(sql, wanted, 64 << 10, 1);
	check_answer(sql, wanted, 1500 << 10, 2 << 20);
	check_answer(sql, wanted, 3 << 20, 1);
	free(wanted);
}

struct cut {
	char *text[PFS_PARTS_MAX];
	atomic_uint cuts;
};

/* Names; of every other part but the first not all. */
static int cut_parts(void *arg, size_t number, const struct pfs_portion *part)
{
	size_t rows = number % 2 ? part->n / 3 + 1 : part->n, size;
	struct cut *cut = arg;
	FILE *out;

	assert_true(number < PFS_PARTS_MAX);
	free(cut->text[number]);
	out = open_memstream(&cut->text[number], &size);
	for (size_t row = 0; row < rows; row++) {
		struct pfs_sql_value value = {.size = 0};

		pfs_portion_value(part, row, 0, &value);
		(void)fprintf(out, "%.*s\n", (int)value.size, value.bytes);
	}
	(void)fclose(out);
	cut->cuts += rows < part->n;
	return (int)rows;
}

/* What was not done of a part, and all parts behind it, come again. */
static void test_cut(void **state)
{
	struct pfs_query *query = begin_by("SELECT name FROM nodes ORDER BY ino", false);
	struct cut cut = {.cuts = 0};
	struct pfs_sql_value value;
	char *text = NULL, *wanted;
	size_t size, n_parts = 0;
	FILE *out = open_memstream(&text, &size);
	int got;

	(void)state;
	do {
		got = pfs_query_parts(query, &n_parts, cut_parts, &cut, &error);
		for (size_t i = 0; got == 1 && i < n_parts; i++)
			(void)fputs(cut.text[i], out);
		if (got)
			continue;
		got = pfs_query_next(query, &error);
		if (got == 1) {
			pfs_query_value(query, 0, &value);
			(void)fprintf(out, "%.*s\n", (int)value.size, value.bytes);
		}
	} while (got == 1);
	assert_int_equal(got, 0);
	assert_true(cut.cuts > 0);
	pfs_query_finish(query);
	(void)fclose(out);
	assert_int_equal(
		write_text(&wanted, "SELECT name FROM nodes ORDER BY ino", PFS_FORMAT_PATHS, true),
		0);
	assert_string_equal(text, wanted);
	free(text);
	free(wanted);
	for (size_t i = 0; i < PFS_PARTS_MAX; i++)
		free(cut.text[i]);
}

/* Parts that the thread that asks has done itself; others take their time over theirs. */
struct shares {
	pthread_t own;
	unsigned n_own;
	_Atomic uint64_t rows;
};

static int share_part(void *arg, size_t number PFS_UNUSED, const struct pfs_portion *part)
{
	struct shares *shares = arg;

	if (pthread_equal(pthread_self(), shares->own))
		shares->n_own++;
	else
		(void)usleep(20000);
	atomic_fetch_add(&shares->rows, part->n);
	return (int)part->n;
}

/* Who holds the tree does so many parts in one hold, whether or not others come to help: all rows
 * come all the same. */
static void test_own_parts(void **state)
{
	struct shares shares = {.own = pthread_self()};
	struct pfs_query *query;
	uint64_t dir = ino_of("/a"), rows = 0;
	char name[32];
	size_t n_parts;
	int got;

	(void)state;
	for (unsigned i = 0; i < 4 * FILES; i++) {
		(void)snprintf(name, sizeof(name), "more%u", i);
		(void)make(dir, name, S_IFREG | 0600);
	}
	query = begin_by("SELECT ino, tag FROM nodes", false);
	do {
		shares.n_own = 0;
		got = pfs_query_parts(query, &n_parts, share_part, &shares, &error);
		assert_in_range(shares.n_own, 0, 4);
		if (got == 0) {
			got = pfs_query_next(query, &error);
			rows += got == 1;
		}
	} while (got == 1);
	assert_int_equal(got, 0);
	pfs_query_finish(query);
	rows += atomic_load(&shares.rows);
	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)rows);
	check("SELECT count(*) FROM nodes", name);
}

static int fail_part(void *arg, size_t number, const struct pfs_portion *part)
{
	(void)arg;
	return number ? -ENOSPC : (int)part->n;
}

static void test_part_fails(void **state)
{
	struct pfs_query *query = begin_by("SELECT path FROM nodes", false);
	size_t n_parts;
	int got;

	(void)state;
	while ((got = pfs_query_parts(query, &n_parts, fail_part, NULL, &error)) >= 0)
		if (got == 0)
			assert_int_equal(pfs_query_next(query, &error), 1);
	assert_int_equal(got, -ENOSPC);
	assert_int_equal(pfs_query_parts(query, &n_parts, fail_part, NULL, &error), 0);
	assert_int_equal(pfs_query_next(query, &error), -ENOSPC);
	pfs_query_finish(query);
}

/* ---- on the way ---- */

static void test_restart(void **state)
{
	struct pfs_query *query = begin_by("SELECT path, tag FROM nodes", false);
	unsigned rows;

	(void)state;
	for (rows = 0; rows < 3; rows++)
		assert_int_equal(pfs_query_next(query, &error), 1);
	(void)make(PFS_ROOT_PRIME, "new", S_IFREG | 0644);
	while (pfs_query_next(query, &error) == 1)
		rows++;
	assert_int_equal(error.error, -EAGAIN);
	assert_true(rows < FILES);
	for (rows = 0; pfs_query_next(query, &error) == 1; rows++)
		;
	assert_int_equal(rows, FILES + 7);
	(void)make(PFS_ROOT_PRIME, "newer", S_IFREG | 0644); /* the tree is free again */
	pfs_query_finish(query);

	query = begin_by("SELECT path FROM nodes", false); /* given up in the second run */
	assert_int_equal(pfs_query_next(query, &error), 1);
	(void)make(PFS_ROOT_PRIME, "newest", S_IFREG | 0644);
	while (pfs_query_next(query, &error) == 1)
		;
	assert_int_equal(error.error, -EAGAIN);
	for (rows = 0; rows < 200; rows++)
		assert_int_equal(pfs_query_next(query, &error), 1);
	pfs_query_finish(query);
	(void)make(PFS_ROOT_PRIME, "last", S_IFREG | 0644);
}

static bool is_gone(void *asked) /* asked every few milliseconds */
{
	return ++*(unsigned *)asked;
}

static void test_interrupt(void **state)
{
	struct pfs_query *query = begin_by("SELECT path FROM nodes", false);
	unsigned asked = 0;
	char *text;
	int got;

	(void)state;
	for (int i = 0; i < 200; i++)
		assert_int_equal(pfs_query_next(query, &error), 1);
	pfs_query_interrupt(query);
	assert_int_equal(pfs_query_next(query, &error), -EINTR);
	assert_int_equal(pfs_query_next(query, &error), -EINTR);
	pfs_query_finish(query);

	scope.gone = is_gone;
	scope.gone_arg = &asked;
	query = begin_by("SELECT path FROM nodes", false);
	while ((got = pfs_query_next(query, &error)) == 1)
		;
	assert_int_equal(got, -EINTR);
	pfs_query_finish(query);
	asked = 0;
	assert_int_equal(write_text(&text, "SELECT path FROM nodes", PFS_FORMAT_TSV, false),
			 -EINTR);
	scope.gone = NULL;

	query = begin_by("SELECT path FROM nodes", false);
	assert_int_equal(pfs_query_next(query, &error), 1);
	query->deadline_ns = 1;	    /* long ago */
	query->ticked_ns = 0; /* as if the clock had gone on since */
	while ((got = pfs_query_next(query, &error)) == 1)
		;
	assert_int_equal(got, -ETIMEDOUT);
	pfs_query_finish(query);
}

/* Whatever memory was enough is enough. */
static void test_memory(void **state)
{
	char *wanted = text_of("SELECT path, name FROM nodes", true), *got, *written;

	(void)state;
	assert_int_equal(write_text(&written, "SELECT path, name FROM nodes", PFS_FORMAT_TSV, true),
			 0);
	for (scope.memory_limit = 512 << 10; scope.memory_limit < 16 << 20;
	     scope.memory_limit *= 2) {
		got = text_of("SELECT path, name FROM nodes", false);
		assert_string_equal(got, wanted);
		free(got);
		assert_int_equal(
			write_text(&got, "SELECT path, name FROM nodes", PFS_FORMAT_TSV, false), 0);
		assert_string_equal(got, written);
		free(got);
	}
	free(wanted);
	free(written);
	scope.memory_limit = 100000;
	for (int by_sqlite = 0; by_sqlite < 2; by_sqlite++) {
		struct pfs_query *query =
			begin_by("SELECT path, name FROM nodes ORDER BY size, name", by_sqlite);
		int status;

		while ((status = pfs_query_next(query, &error)) == 1)
			;
		assert_int_equal(status, -ENOMEM);
		pfs_query_finish(query);
	}
}

static void test_plan(void **state)
{
	struct pfs_query *query;
	char *text;

	(void)state;
	scope.explains = true;
	query = begin_by("SELECT path FROM nodes WHERE name GLOB 'f*'", false);
	while (pfs_query_next(query, &error) == 1)
		;
	assert_int_equal(pfs_query_plan(query, &text), 0);
	assert_non_null(strstr(text, "name begins with 'f'"));
	assert_non_null(strstr(text, "selected 4285, read 4285"));
	assert_non_null(strstr(text, "run by the relational operators"));
	free(text);
	pfs_query_finish(query);
}

/* ---- beside a writer ---- */

static void *write_names(void *arg)
{
	atomic_bool *done = arg;
	struct pfs_entry entry;
	char name[32];

	for (unsigned i = 0; !*done; i++) {
		(void)snprintf(name, sizeof(name), "w%u", i % 50);
		if (!pfs_tree_make(tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0600, 0,
				   &temp_root))
			pfs_tree_forget(tree, entry.attr.st_ino, 1);
		else if (pfs_tree_unlink(tree, PFS_ROOT_PRIME, name))
			return NULL;
		(void)usleep(200);
	}
	return NULL;
}

static void test_writer(void **state)
{
	atomic_bool done = false;
	char *wanted, *text;
	pthread_t thread;

	(void)state;
	assert_int_equal(write_text(&wanted, "SELECT name, path FROM nodes WHERE under(ino, '/a')",
				    PFS_FORMAT_TSV, true),
			 0);
	assert_int_equal(pthread_create(&thread, NULL, write_names, &done), 0);
	for (int i = 0; i < 20; i++) {
		struct pfs_query *query =
			begin_by("SELECT path FROM nodes WHERE under(ino, '/a')", false);
		unsigned rows = 0;
		int got;

		while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN)
			rows = got == 1 ? rows + 1 : 0;
		assert_int_equal(got, 0);
		assert_int_equal(rows, FILES + 4);
		pfs_query_finish(query);
		assert_int_equal(write_text(&text,
					    "SELECT name, path FROM nodes WHERE under(ino, '/a')",
					    PFS_FORMAT_TSV, false),
				 0);
		assert_string_equal(text, wanted);
		free(text);
	}
	done = true;
	(void)pthread_join(thread, NULL);
	free(wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_not_plain, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_same_rows, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_written, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_into_answer, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_cut, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_part_fails, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_own_parts, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_restart, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_interrupt, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_memory, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_plan, set_up_files, tear_down),
		cmocka_unit_test_setup_teardown(test_writer, set_up_files, tear_down),
	};

	return cmocka_run_group_tests_name("row_cursor", tests, NULL, NULL);
}
