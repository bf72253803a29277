/* SPDX-License-Identifier: MIT */
#include "tests/ref/node_copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static int64_t look_up(sqlite3 *copy, const char *sql, sqlite3_value *key)
{
	sqlite3_stmt *row;
	int64_t ino = 0;

	assert_int_equal(sqlite3_prepare_v2(copy, sql, -1, &row, NULL), SQLITE_OK);
	(void)sqlite3_bind_value(row, 1, key);
	if (sqlite3_step(row) == SQLITE_ROW)
		ino = sqlite3_column_int64(row, 0);
	(void)sqlite3_finalize(row);
	return ino;
}

static int64_t parent_of(sqlite3 *copy, int64_t ino)
{
	sqlite3_stmt *row;
	int64_t parent = 0;

	assert_int_equal(
		sqlite3_prepare_v2(copy, "SELECT parent FROM nodes WHERE ino = ?", -1, &row, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(row, 1, ino);
	if (sqlite3_step(row) == SQLITE_ROW)
		parent = sqlite3_column_int64(row, 0);
	(void)sqlite3_finalize(row);
	return parent;
}

/* 0: none. */
static int64_t node(sqlite3 *copy, sqlite3_value *value)
{
	if (sqlite3_value_type(value) == SQLITE_INTEGER)
		return look_up(copy, "SELECT ino FROM nodes WHERE ino = ?", value);
	if (sqlite3_value_type(value) == SQLITE_TEXT)
		return look_up(copy, "SELECT ino FROM nodes WHERE path = '/' || ltrim(?1, '/')",
			       value);
	return 0;
}

static bool lies_under(sqlite3 *copy, int64_t ino, int64_t top)
{
	while (ino && ino != top)
		ino = parent_of(copy, ino);
	return ino == top;
}

enum { UNDER, CHILD_OF, ANCESTOR_OF, COMMON };

static int64_t deepest_common(sqlite3 *copy, int64_t a, int64_t b)
{
	while (!lies_under(copy, b, a))
		a = parent_of(copy, a);
	return a;
}

static void relate(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3 *copy = sqlite3_context_db_handle(context);
	int64_t a = node(copy, argv[0]), b = node(copy, argv[1]);

	(void)argc;
	if (!a || !b)
		return;
	switch (*(const int *)sqlite3_user_data(context)) {
	case UNDER:
		sqlite3_result_int(context, lies_under(copy, a, b));
		break;
	case CHILD_OF:
		sqlite3_result_int(context, parent_of(copy, a) == b);
		break;
	case ANCESTOR_OF:
		sqlite3_result_int(context, a != b && lies_under(copy, b, a));
		break;
	default:
		sqlite3_result_int64(context, deepest_common(copy, a, b));
	}
}

static void common_step(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	int64_t *state = sqlite3_aggregate_context(context, sizeof(*state));
	sqlite3 *copy = sqlite3_context_db_handle(context);
	int64_t ino = node(copy, argv[0]);

	(void)argc;
	if (ino)
		*state = *state ? deepest_common(copy, *state, ino) : ino;
}

static void common_final(sqlite3_context *context)
{
	const int64_t *state = sqlite3_aggregate_context(context, 0);

	if (state && *state)
		sqlite3_result_int64(context, *state);
}

static void ino_of(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3 *copy = sqlite3_context_db_handle(context);
	int64_t ino = node(copy, argv[0]);

	(void)argc;
	if (ino)
		sqlite3_result_int64(context, ino);
}

static void path_of(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	sqlite3 *copy = sqlite3_context_db_handle(context);
	sqlite3_stmt *row;

	(void)argc;
	assert_int_equal(
		sqlite3_prepare_v2(copy, "SELECT path FROM nodes WHERE ino = ?", -1, &row, NULL),
		SQLITE_OK);
	(void)sqlite3_bind_int64(row, 1, node(copy, argv[0]));
	if (sqlite3_step(row) == SQLITE_ROW)
		sqlite3_result_value(context, sqlite3_column_value(row, 0));
	(void)sqlite3_finalize(row);
}

void node_copy_add_functions(sqlite3 *copy)
{
	static const char *const names[] = {"under", "child_of", "ancestor_of", "common_ancestor"};
	static int which[] = {UNDER, CHILD_OF, ANCESTOR_OF, COMMON};

	for (size_t i = 0; i < PFS_COUNT(names); i++)
		(void)sqlite3_create_function(copy, names[i], 2, SQLITE_UTF8, &which[i], relate,
					      NULL, NULL);
	(void)sqlite3_create_function(copy, "ino_of", 1, SQLITE_UTF8, NULL, ino_of, NULL, NULL);
	(void)sqlite3_create_function(copy, "path_of", 1, SQLITE_UTF8, NULL, path_of, NULL, NULL);
	(void)sqlite3_create_function(copy, "common_ancestor", 1, SQLITE_UTF8, NULL, NULL,
				      common_step, common_final);
}

/* What the copy has not: the number of a row is another one there. */
static const struct {
	const char *word, *before,
		*behind; /* of a table's name and a point, if they stand before the word */
} spelled[] = {
	{"preorder", "replace(", "path, '/', CAST(x'00' AS TEXT))"},
	{"nodes WHERE rowid", "nodes WHERE ", "ino"},
	{"SELECT rowid", "SELECT ", "ino"},
};

/* Writes what stands for the word that the text begins with, and returns how long that is; 0: it is
 * none. */
static size_t spell(FILE *out, const char *sql, size_t len)
{
	for (size_t i = 0; i < PFS_COUNT(spelled); i++) {
		size_t size = strlen(spelled[i].word),
		       before = len > size + 1 && sql[1] == '.' ? 2 : 0;

		if (len < before + size || strncmp(sql + before, spelled[i].word, size) != 0)
			continue;
		(void)fprintf(out, "%s%.*s%s", spelled[i].before, (int)before, sql,
			      spelled[i].behind);
		return before + size;
	}
	return 0;
}

char *node_copy_spelling(const char *sql, size_t len)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t is = 0; len; sql += is, len -= is) {
		is = spell(out, sql, len);
		if (is)
			continue;
		(void)fputc(*sql, out);
		is = 1;
	}
	(void)fclose(out);
	return text;
}
