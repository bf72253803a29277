/* SPDX-License-Identifier: MIT */
/* tests/unit/query_util.h - a small tree, statements over it, and their rows as text. */
#ifndef PFS_TESTS_UNIT_QUERY_UTIL_H
#define PFS_TESTS_UNIT_QUERY_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/query/tables.h"
#include "meta/store.h"
#include "tests/ref/temp_store.h"

static struct temp_store store;
static struct pfs_tree *tree;
static struct pfs_queries *queries;
static struct pfs_query_scope scope;
static struct pfs_query_error error;

static inline uint64_t make(uint64_t parent, const char *name, mode_t mode)
{
	uint64_t ino = temp_tree_make(tree, parent, name, mode);

	assert_int_not_equal(ino, 0);
	return ino;
}

static inline uint64_t ino_of(const char *path)
{
	uint64_t ino;

	assert_int_equal(pfs_tree_resolve(tree, &ino, path), 0);
	return ino;
}

static void open_queries(void)
{
	tree = temp_tree_open(&store);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
}

static void close_queries(void)
{
	pfs_queries_close(queries);
	temp_tree_close(tree);
}

static inline void reopen(void)
{
	close_queries();
	open_queries();
}

/* /a/b/c.txt, /a/d.c, /e.tar.gz */
static inline int set_up(void **state)
{
	uint64_t a, b;

	(void)state;
	temp_store_create(&store);
	open_queries();
	a = make(PFS_ROOT_PRIME, "a", S_IFDIR | 0755);
	b = make(a, "b", S_IFDIR | 0755);
	(void)make(b, "c.txt", S_IFREG | 0644);
	(void)make(a, "d.c", S_IFREG | 0600);
	(void)make(PFS_ROOT_PRIME, "e.tar.gz", S_IFREG | 0644);
	scope = (struct pfs_query_scope){
		.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};
	return 0;
}

/* Makes "folder 0", "folder 1" and so on, in each of them the files that are named: name_file
 * writes the name of a folder's file, or returns false if the folder has no more. */
static inline void make_folders(unsigned n,
				bool (*name_file)(char name[32], unsigned folder, unsigned file))
{
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		uint64_t folder;

		(void)snprintf(name, sizeof(name), "folder %u", i);
		folder = make(PFS_ROOT_PRIME, name, S_IFDIR | 0755);
		for (unsigned j = 0; name_file(name, i, j); j++)
			(void)make(folder, name, S_IFREG | 0644);
	}
}

static int tear_down(void **state)
{
	(void)state;
	close_queries();
	temp_store_remove(&store);
	return 0;
}

static void append_value(char *out, size_t size, const struct pfs_query *query, size_t column)
{
	struct pfs_sql_value value;
	size_t len = strlen(out);

	pfs_query_value(query, column, &value);
	switch (value.type) {
	case PFS_SQL_NULL:
		(void)snprintf(out + len, size - len, "-");
		break;
	case PFS_SQL_INTEGER:
		(void)snprintf(out + len, size - len, "%lld", (long long)value.integer);
		break;
	case PFS_SQL_REAL:
		(void)snprintf(out + len, size - len, "%.17g", value.real);
		break;
	default:
		(void)snprintf(out + len, size - len, "%.*s", (int)value.size, value.bytes);
	}
}

static inline struct pfs_query *begin(const char *sql)
{
	struct pfs_query *query;

	if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
		fail_msg("%s: %s", sql, error.text);
	return query;
}

/* The rows that are left as text: values separated by blanks, rows by commas. */
static void rest_text(char *text, size_t size, struct pfs_query *query)
{
	int got;

	*text = 0;
	while ((got = pfs_query_next(query, &error)) == 1 || got == -EAGAIN) {
		if (got == -EAGAIN) { /* the committer frees nodes in the background: from the first
					 row again */
			*text = 0;
			continue;
		}
		for (size_t i = 0; i < pfs_query_columns(query); i++) {
			size_t len = strlen(text);

			(void)snprintf(text + len, size - len, "%s", i ? " " : *text ? "," : "");
			append_value(text, size, query, i);
		}
	}
	if (got)
		fail_msg("%s", error.text);
	assert_int_equal(pfs_query_next(query, &error), 0); /* still the end */
}

/* Runs the statement; its rows as text. */
static void query_text(char *text, size_t size, const char *sql)
{
	struct pfs_query *query = begin(sql);

	rest_text(text, size, query);
	pfs_query_finish(query);
}

static inline void check(const char *sql, const char *expected)
{
	static char text[1 << 16];

	for (unsigned i = 0; i < 2; i++) { /* the second time as it was kept */
		query_text(text, sizeof(text), sql);
		if (strcmp(text, expected) != 0)
			fail_msg("%s: %s, not %s", sql, text, expected);
	}
}

/* Runs a statement that changes so many rows. */
static inline void change(const char *sql, uint64_t expected)
{
	struct pfs_query *query;

	if (pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error))
		fail_msg("%s: %s", sql, error.text);
	assert_int_equal(pfs_query_next(query, &error), 0);
	if (pfs_query_changes(query) != expected)
		fail_msg("%s: %llu rows", sql, (unsigned long long)pfs_query_changes(query));
	pfs_query_finish(query);
}

/* It fails so, and part of the reason is `text`. */
static inline void refuse(const char *sql, int code, const char *text)
{
	struct pfs_query *query;
	int got = pfs_query_start(&query, queries, &scope, sql, strlen(sql), &error);

	if (got != code || !strstr(error.text, text))
		fail_msg("%s: %d: %s", sql, got, got ? error.text : "no error");
	assert_null(query);
	assert_int_equal(error.error, code);
}

#endif
