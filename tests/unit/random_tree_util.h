/* SPDX-License-Identifier: MIT */
/* tests/unit/random_tree_util.h - a random tree with attributes and side tables, and statements
 * over it. */
#ifndef PFS_TESTS_UNIT_RANDOM_TREE_UTIL_H
#define PFS_TESTS_UNIT_RANDOM_TREE_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/query/parts/parts.h"
#include "fs/query/relational/relational.h"
#include "tests/ref/random.h"
#include "tests/ref/statements.h"
#include "tests/ref/temp_store.h"

#define NODES 150

static struct temp_store store;
static struct pfs_tree *tree;
static struct pfs_queries *queries;
static uint64_t seed;

static inline unsigned below(unsigned n)
{
	return random_below(&seed, n);
}

static inline void set_values(uint64_t ino, unsigned i)
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
	assert_int_equal(
		pfs_tree_setxattr(tree, ino, "user.tag", tags[i % 4], strlen(tags[i % 4]), 0), 0);
	assert_int_equal(pfs_tree_setxattr(tree, ino, "user.size", number, strlen(number), 0), 0);
}

/* Names that repeat, with and without what comes after a dot, which may be a number, and one that
 * is no UTF-8. */
static inline void grow_tree(unsigned nodes)
{
	static const char *const ends[] = {"",	"",   ".c",  ".txt", ".tar.gz",
					   ".", "_x", ".01", "\xff"};
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

static inline void import_columns(void)
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

static inline struct pfs_query *begin(const char *sql, size_t len)
{
	const struct pfs_query_scope scope = {
		.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};
	struct pfs_query_error error;
	struct pfs_query *query;

	return pfs_query_start(&query, queries, &scope, sql, len, &error) ? NULL : query;
}

/* Operators ran parts of the statement, and they had an answer. */
static inline bool has_parts(const struct pfs_query *query)
{
	return query->parts && pfs_parts_text(query->parts, query) != &query->text;
}

static inline void open_random_tree(void)
{
	temp_store_create(&store);
	import_columns();
	tree = temp_tree_open(&store);
	grow_tree(NODES);
	assert_int_equal(pfs_queries_open(&queries, tree), 0);
	for (const char *const *sql = random_statement_tables; *sql; sql++) {
		struct pfs_query *query = begin(*sql, strlen(*sql));

		assert_non_null(query);
		pfs_query_finish(query);
	}
}

static inline void close_random_tree(void)
{
	pfs_queries_close(queries);
	temp_tree_close(tree);
	temp_store_remove(&store);
}

/* The program's seed: PFS_TEST_SEED, or the usual one. */
static inline void take_seed(void)
{
	const char *given = getenv("PFS_TEST_SEED");

	seed = given ? strtoull(given, NULL, 10) : 4;
	print_message("seed %llu (PFS_TEST_SEED sets it)\n", (unsigned long long)seed);
}

#endif
