/* SPDX-License-Identifier: MIT */
/* Tuples of two random tables that a condition keeps, beside SQLite's answer to the same
 * question. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ref/relation_met.h"

static struct ref_expression expression; /* large */

struct pair {
	int64_t left, right; /* right -1: none */
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->left != y->left)
		return x->left < y->left ? -1 : 1;
	return (x->right > y->right) - (x->right < y->right);
}

static int64_t row_of(const struct pfs_tuple_table *table, uint64_t i)
{
	uint32_t row = table->rows ? table->rows[i] : table->from + (uint32_t)i;

	return row == PFS_NO_ROW ? INT64_C(-1) : row;
}

static void compare_tuples(const struct pfs_tuples *tuples, sqlite3_stmt *statement,
			   const char *sql)
{
	struct pair *pairs = calloc(tuples->n + 1, sizeof(*pairs));
	uint64_t i = 0;

	assert_non_null(pairs);
	for (; i < tuples->n; i++)
		pairs[i] = (struct pair){row_of(&tuples->tables[0], i),
					 row_of(&tuples->tables[1], i)};
	qsort(pairs, tuples->n, sizeof(*pairs), compare_pairs);
	for (i = 0; sqlite3_step(statement) == SQLITE_ROW; i++) {
		if (i >= tuples->n || pairs[i].left != sqlite3_column_int64(statement, 0) ||
		    pairs[i].right != sqlite3_column_int64(statement, 1))
			fail_msg("pair %llu of %s", (unsigned long long)i, sql);
	}
	assert_int_equal(i, tuples->n);
	free(pairs);
}

/* Adds to the expression whether the right table has a row or, as NOT IN is bound, that it has
 * none. */
static void say_partner(struct ref_world *w, struct ref_expression *e)
{
	bool is_and = ref_below(w, 2), is_null = ref_below(w, 2);

	e->steps[e->n++] = (struct pfs_step){.op = PFS_OP_COLUMN,
					     .ref = {1, (uint16_t)ref_below(w, REF_COLUMNS_MAX)}};
	e->len += (size_t)snprintf(e->sql + e->len, sizeof(e->sql) - e->len, " %s b%u %s",
				   is_and ? "AND" : "OR", e->steps[e->n - 1].ref.column,
				   is_null ? "IS NULL" : "NOT NULL");
	e->steps[e->n++] = (struct pfs_step){.op = is_null ? PFS_OP_IS_NULL : PFS_OP_NOT_NULL};
	e->steps[e->n++] = (struct pfs_step){.op = is_and ? PFS_OP_AND : PFS_OP_OR};
}

void ref_case_filter(struct ref_world *w)
{
	static char sql[70000];
	static const char *const collations[] = {"BINARY", "NOCASE", "RTRIM"};
	const struct pfs_source left = {.table = &w->a.table}, right = {.table = &w->b.table};
	struct pfs_join_key key = {.left = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
				   .right = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
				   .collation = (enum pfs_collation)ref_below(w, 3)};
	const struct pfs_join join = {.kind = PFS_JOIN_LEFT, .keys = &key, .n_keys = 1};
	struct ref_expression *e = &expression;
	struct pfs_program program;
	struct pfs_source source = {0};
	struct pfs_tuples *tuples;
	sqlite3_stmt *statement;
	char *at = sql;

	memset(e, 0, sizeof(*e));
	do { /* sets are of rows of a table */
		ref_expression_finish(w, e);
		ref_condition(w, e, ref_below(w, 3));
	} while (e->n_sets);
	ref_met_program(w, e);
	if (ref_below(w, 3))
		say_partner(w, e);
	program = (struct pfs_program){.steps = e->steps, .n = e->n};
	at += sprintf(at, "SELECT a.r, ifnull(br, -1) FROM a LEFT JOIN (SELECT r AS br");
	for (unsigned i = 0; i < REF_COLUMNS_MAX; i++)
		at += sprintf(at, ", c%u AS b%u", i, i);
	(void)sprintf(at, " FROM b) ON a.c%u COLLATE %s = b%u WHERE (%s) ORDER BY 1, 2",
		      key.left.column, collations[key.collation], key.right.column, e->sql);
	assert_int_equal(pfs_join(&w->run, &source.tuples, &left, &right, &join), 0);
	assert_int_equal(pfs_filter(&w->run, &tuples, &source, &program), 0);
	assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
	statement = ref_prepare(w, sql, e);
	compare_tuples(tuples, statement, sql);
	(void)sqlite3_finalize(statement);
	pfs_tuples_free(&w->run, tuples);
	pfs_tuples_free(&w->run, source.tuples);
	ref_expression_finish(w, e);
}
