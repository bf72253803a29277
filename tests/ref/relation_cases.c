/* SPDX-License-Identifier: MIT */
/* Each operator over random tables, beside SQLite's answer to the same question. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "gpu/aggregate.h"
#include "tests/ref/relation_met.h"

static struct ref_expression expression; /* large */

static bool is_text_column(const struct ref_table *t, unsigned column)
{
	return t->columns[column].kind == PFS_KIND_CODE ||
	       t->columns[column].kind == PFS_KIND_PLACE;
}

static const char *collation_name(enum pfs_collation collation)
{
	static const char *const names[] = {"BINARY", "NOCASE", "RTRIM"};

	return names[collation];
}

/* Half of the time all rows; else those of a set, which `sql` then names, too. */
static struct pfs_source random_source(struct ref_world *w, struct ref_table *t, char *sql,
				       const char *name)
{
	struct pfs_source source = {.table = &t->table};
	uint32_t n = t->table.n_rows, from = ref_below(w, n + 1), to;

	*sql = 0;
	if (ref_below(w, 2)) {
		if (n && ref_below(w, 3) == 0) { /* a fragment */
			to = from + ref_below(w, n - from + 1);
			source.from = PFS_MIN(from, to - (to > 0));
			source.to = PFS_MAX(to, source.from + 1);
			(void)sprintf(sql, " AND %s.r >= %u AND %s.r < %u", name,
				      (unsigned)source.from, name, (unsigned)source.to);
		}
		return source;
	}
	to = from + ref_below(w, n - from + 1);
	{
		const struct pfs_step steps[] = {{.op = PFS_OP_BITS}};
		struct pfs_program program = {.steps = steps, .n = 1};
		struct pfs_rows *range, *rows;
		struct pfs_step step = steps[0];

		assert_int_equal(pfs_rows_of_range(&w->run, &range, n, from, to), 0);
		step.bits = range;
		program.steps = &step;
		assert_int_equal(pfs_select(&w->run, &rows, &source, &program), 0);
		pfs_rows_free(&w->run, range);
		source.rows = rows;
	}
	(void)sprintf(sql, " AND %s.r >= %u AND %s.r < %u", name, from, name, to);
	return source;
}

/* As random_source, or a batch of those rows. */
static struct pfs_source random_input(struct ref_world *w, struct ref_table *t, char *sql,
				      const char *name)
{
	struct pfs_source source = random_source(w, t, sql, name), batch = {0};

	if (ref_below(w, 3))
		return source;
	assert_int_equal(pfs_compute(&w->run, &batch.tuples, &source, NULL, 0), 0);
	pfs_rows_free(&w->run, source.rows);
	return batch;
}

static void finish_source(struct ref_world *w, struct pfs_source *source)
{
	pfs_tuples_free(&w->run, source->tuples);
	pfs_rows_free(&w->run, source->rows);
}

struct pair {
	uint32_t left, right;
};

/* ---- select, count ---- */

void ref_case_select(struct ref_world *w)
{
	struct ref_expression *e = &expression;
	char sql[70000], where[200];
	struct pfs_source source = random_source(w, &w->a, where, "a");
	struct pfs_program program;
	struct pfs_rows *rows;
	uint64_t count, next = 0, expected = 0;
	sqlite3_stmt *statement;
	uint32_t row;

	memset(e, 0, sizeof(*e));
	ref_condition(w, e, ref_below(w, 5));
	ref_met_program(w, e);
	program = (struct pfs_program){.steps = e->steps, .n = e->n};
	assert_int_equal(pfs_select(&w->run, &rows, &source, &program), 0);
	assert_int_equal(pfs_rows_count(&w->run, &count, rows), 0);
	assert_int_equal(pfs_rows_here(&w->run, rows), 0);
	(void)snprintf(sql, sizeof(sql), "SELECT r FROM a WHERE (%s)%s ORDER BY r", e->sql, where);
	statement = ref_prepare(w, sql, e);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		expected++;
		if (pfs_rows_next(rows, &next, &row, 1) != 1 ||
		    row != sqlite3_column_int64(statement, 0))
			fail_msg("row %lld of %s", (long long)sqlite3_column_int64(statement, 0),
				 sql);
	}
	if (pfs_rows_next(rows, &next, &row, 1) || count != expected)
		fail_msg("%llu rows, not %llu of %s", (unsigned long long)count,
			 (unsigned long long)expected, sql);
	(void)sqlite3_finalize(statement);
	pfs_rows_free(&w->run, rows);
	finish_source(w, &source);
	ref_expression_finish(w, e);
}

/* ---- values ---- */

/* Reals may differ by `error`. */
static bool same_value(const struct pfs_vector *v, uint64_t i, sqlite3_stmt *statement, int column,
		       double error)
{
	int type = sqlite3_column_type(statement, column);
	bool is_real;
	const uint8_t *text;
	size_t len;

	if (pfs_vector_is_null(v, i))
		return type == SQLITE_NULL;
	if (v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE) {
		if (type != SQLITE_TEXT)
			return false;
		text = pfs_vector_text(v, i, &len);
		return len == (size_t)sqlite3_column_bytes(statement, column) &&
		       memcmp(text, sqlite3_column_text(statement, column), len) == 0;
	}
	is_real = v->kind == PFS_KIND_REAL || (v->is_real && (v->is_real[i / 64] >> i % 64 & 1));
	if (is_real)
		return type == SQLITE_FLOAT &&
		       (v->reals[i] == sqlite3_column_double(statement, column) ||
			fabs(v->reals[i] - sqlite3_column_double(statement, column)) <= error);
	return type == SQLITE_INTEGER && v->integers[i] == sqlite3_column_int64(statement, column);
}

void ref_case_compute(struct ref_world *w)
{
	struct ref_expression *e = &expression;
	char sql[70000], where[200];
	struct pfs_source source = random_input(w, &w->a, where, "a"), computed = {0};
	unsigned column = ref_below(w, REF_COLUMNS_MAX);
	struct pfs_program program;
	struct pfs_tuples *tuples;
	struct pfs_vector gathered;
	sqlite3_stmt *statement;
	uint64_t i = 0;

	memset(e, 0, sizeof(*e));
	ref_number(w, e, 1 + ref_below(w, 3));
	ref_met_program(w, e);
	program = (struct pfs_program){.steps = e->steps, .n = e->n};
	assert_int_equal(pfs_compute(&w->run, &tuples, &source, &program, 1), 0);
	assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
	computed.tuples = tuples;
	assert_int_equal(pfs_gather(&w->run, &gathered, ref_below(w, 2) ? &computed : &source,
				    (struct pfs_ref){0, (uint16_t)column}),
			 0);
	(void)snprintf(sql, sizeof(sql), "SELECT %s, c%u FROM a WHERE 1%s ORDER BY r", e->sql,
		       column, where);
	statement = ref_prepare(w, sql, e);
	for (; sqlite3_step(statement) == SQLITE_ROW; i++) {
		if (i >= tuples->n || !same_value(&tuples->computed[0], i, statement, 0, 0))
			fail_msg("value %llu (%s) of %s", (unsigned long long)i,
				 (const char *)sqlite3_column_text(statement, 0), sql);
		if (!same_value(&gathered, i, statement, 1, 0))
			fail_msg("column value %llu of %s", (unsigned long long)i, sql);
	}
	assert_int_equal(i, tuples->n);
	assert_int_equal(i, gathered.n);
	(void)sqlite3_finalize(statement);
	pfs_vector_free(&w->run, &gathered);
	pfs_tuples_free(&w->run, tuples);
	finish_source(w, &source);
	ref_expression_finish(w, e);
}

/* ---- sort ---- */

static uint32_t row_of(const struct pfs_tuples *tuples, unsigned table, uint64_t i)
{
	const struct pfs_tuple_table *t = &tuples->tables[table];

	return t->rows ? t->rows[i] : t->from + (uint32_t)i;
}

void ref_case_sort(struct ref_world *w)
{
	char sql[4000], where[200], *at = sql;
	struct pfs_source source = random_input(w, &w->a, where, "a");
	unsigned n_keys = ref_below(w, 4), n = w->a.table.n_rows;
	uint64_t offset = ref_below(w, 3) ? 0 : ref_below(w, n + 3), i = 0;
	uint64_t limit = ref_below(w, 2)   ? UINT64_MAX
			 : ref_below(w, 4) ? ref_below(w, 20)
					   : ref_below(w, n + 3);
	struct pfs_sort_key keys[4];
	struct pfs_tuples *tuples;
	sqlite3_stmt *statement;

	at += sprintf(at, "SELECT r FROM a WHERE 1%s ORDER BY ", where);
	for (unsigned k = 0; k < n_keys; k++) {
		keys[k] = (struct pfs_sort_key){.ref = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
						.collation = (enum pfs_collation)ref_below(w, 3),
						.descending = ref_below(w, 2),
						.nulls_last = ref_below(w, 2)};
		ref_met(w, REF_SORT, w->a.columns[keys[k].ref.column].kind);
		at += sprintf(at, "c%u COLLATE %s %s NULLS %s, ", keys[k].ref.column,
			      collation_name(keys[k].collation),
			      keys[k].descending ? "DESC" : "ASC",
			      keys[k].nulls_last ? "LAST" : "FIRST");
	}
	(void)sprintf(at, "r LIMIT %lld OFFSET %llu", limit == UINT64_MAX ? -1LL : (long long)limit,
		      (unsigned long long)offset);
	assert_int_equal(pfs_sort(&w->run, &tuples, &source, keys, n_keys, offset, limit), 0);
	assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
	statement = ref_prepare(w, sql, NULL);
	for (; sqlite3_step(statement) == SQLITE_ROW; i++) {
		if (i >= tuples->n || row_of(tuples, 0, i) != sqlite3_column_int64(statement, 0))
			fail_msg("place %llu of %s", (unsigned long long)i, sql);
	}
	assert_int_equal(i, tuples->n);
	(void)sqlite3_finalize(statement);
	pfs_tuples_free(&w->run, tuples);
	finish_source(w, &source);
}

/* ---- group ---- */

static const char *const aggregate_names[] = {
	"count(*)", "count", "count(DISTINCT", "sum", "total", "avg", "min", "max", "group_concat"};

/* What stands between values, and where the texts are put. */
static void say_separator(struct ref_world *w, struct pfs_aggregate *aggregate,
			  struct pfs_texts *texts)
{
	static const char *const separators[] = {",", "", "; "};
	const char *separator = separators[ref_below(w, PFS_COUNT(separators))];

	*texts = (struct pfs_texts){.limit = INT32_MAX};
	aggregate->texts = texts;
	aggregate->separator = (struct pfs_constant){
		.type = PFS_IS_TEXT, .text = separator, .len = strlen(separator)};
}

static unsigned say_aggregates(struct ref_world *w, struct pfs_aggregate *aggregates,
			       struct pfs_texts *texts, char **at)
{
	unsigned n = ref_below(w, 5);

	for (unsigned k = 0; k < n; k++) {
		enum pfs_aggregate_op op =
			(enum pfs_aggregate_op)ref_below(w, PFS_COUNT(aggregate_names));
		unsigned column = ref_below(w, REF_COLUMNS_MAX);
		const char *name;

		if (is_text_column(&w->a, column) &&
		    (op == PFS_SUM || op == PFS_TOTAL || op == PFS_AVG))
			op = PFS_COUNT;
		aggregates[k] =
			(struct pfs_aggregate){.op = op,
					       .ref = {0, (uint16_t)column},
					       .collation = (enum pfs_collation)ref_below(w, 3)};
		ref_met(w, REF_AGGREGATE + op, w->a.columns[column].kind);
		name = aggregate_names[op];
		say_separator(w, &aggregates[k], &texts[k]);
		if (op == PFS_COUNT_ALL)
			*at += sprintf(*at, ", count(*)");
		else if (op == PFS_GROUP_CONCAT)
			*at += sprintf(*at, ", group_concat(c%u, '%s')", column,
				       aggregates[k].separator.text);
		else
			*at += sprintf(*at, ", %s%s c%u COLLATE %s)", name,
				       op == PFS_COUNT_DISTINCT ? "" : "(", column,
				       collation_name(aggregates[k].collation));
	}
	return n;
}

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	if (x->left != y->left)
		return x->left < y->left ? -1 : 1;
	return (x->right > y->right) - (x->right < y->right);
}

/* Groups are told apart by their first rows. */
static struct pair *sort_groups(const struct pfs_tuples *tuples)
{
	struct pair *groups = calloc(tuples->n + 1, sizeof(*groups));

	assert_non_null(groups);
	for (uint32_t i = 0; i < tuples->n; i++)
		groups[i] = (struct pair){row_of(tuples, 0, i), i};
	qsort(groups, tuples->n, sizeof(*groups), compare_pairs);
	return groups;
}

static void compare_groups(const struct pfs_tuples *tuples, sqlite3_stmt *statement, unsigned n,
			   const char *sql)
{
	struct pair *groups = sort_groups(tuples);
	uint64_t n_groups = 0;
	int error;

	while ((error = sqlite3_step(statement)) == SQLITE_ROW) {
		bool is_none = sqlite3_column_type(statement, 0) == SQLITE_NULL;
		uint32_t first =
			is_none ? PFS_NO_ROW : (uint32_t)sqlite3_column_int64(statement, 0);
		uint32_t i = groups[n_groups].right;

		if (n_groups >= tuples->n || groups[n_groups++].left != first)
			fail_msg("no group of row %lld in %s",
				 (long long)sqlite3_column_int64(statement, 0), sql);
		for (unsigned k = 0; k < n; k++) {
			/* The order of additions changes the last bits of what is added. */
			double added = sqlite3_column_double(statement, (int)(n + k) + 1);

			if (isinf(added)) /* of both signs: NULL in one order, infinite in another
					   */
				continue;
			if (!same_value(&tuples->computed[k], i, statement, (int)k + 1,
					added * 1e-12))
				fail_msg("group %lld, aggregate %u (%s) of %s",
					 (long long)sqlite3_column_int64(statement, 0), k,
					 (const char *)sqlite3_column_text(statement, (int)k + 1),
					 sql);
		}
	}
	assert_int_equal(error, SQLITE_DONE);
	assert_int_equal(n_groups, tuples->n);
	free(groups);
}

/* Half of the time a condition, where groups are made by the host, of a table. */
static bool random_where(struct ref_world *w, struct pfs_source *source, struct ref_expression *e,
			 struct pfs_program *program)
{
	memset(e, 0, sizeof(*e));
	if (!source->table || w->run.on != PFS_ENGINE_HOST || ref_below(w, 2))
		return false;
	ref_condition(w, e, ref_below(w, 3));
	*program = (struct pfs_program){.steps = e->steps, .n = e->n};
	source->where = program;
	return true;
}

void ref_case_group(struct ref_world *w)
{
	static char sql[70000];
	char where[200], *at = sql;
	struct ref_expression *e = &expression;
	struct pfs_program program;
	struct pfs_source source = random_input(w, &w->a, where, "a");
	unsigned n_keys = ref_below(w, 4), n;
	struct pfs_group_key keys[4];
	struct pfs_aggregate aggregates[5];
	struct pfs_texts texts[5];
	struct pfs_tuples *tuples;
	sqlite3_stmt *statement;
	int error, status;

	at += sprintf(at, "SELECT min(r)");
	n = say_aggregates(w, aggregates, texts, &at);
	for (unsigned k = 0; k < n; k++) /* how much is added */
		at += aggregates[k].op >= PFS_SUM && aggregates[k].op <= PFS_AVG
			      ? sprintf(at, ", total(abs(c%u * 1.0))", aggregates[k].ref.column)
			      : sprintf(at, ", 0");
	at += sprintf(at, " FROM a WHERE 1%s", where);
	if (random_where(w, &source, e, &program))
		at += sprintf(at, " AND (%s)", e->sql);
	for (unsigned k = 0; k < n_keys; k++) {
		keys[k] =
			(struct pfs_group_key){.ref = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
					       .collation = (enum pfs_collation)ref_below(w, 3)};
		ref_met(w, REF_GROUP, w->a.columns[keys[k].ref.column].kind);
		at += sprintf(at, "%s c%u COLLATE %s", k ? "," : " GROUP BY", keys[k].ref.column,
			      collation_name(keys[k].collation));
	}
	(void)sprintf(at, " ORDER BY 1");
	error = pfs_group(&w->run, &tuples, &source, keys, n_keys, aggregates, n);
	statement = ref_prepare(w, sql, e);
	if (error) {
		assert_true(error == -EOVERFLOW || error == -EOPNOTSUPP);
		assert_null(tuples);
		while ((status = sqlite3_step(statement)) == SQLITE_ROW)
			;
		if (error == -EOVERFLOW && status == SQLITE_DONE)
			fail_msg("no overflow in %s", sql);
	} else {
		assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
		compare_groups(tuples, statement, n, sql);
		pfs_tuples_free(&w->run, tuples);
	}
	for (unsigned k = 0; k < n; k++)
		pfs_texts_free(&w->run, &texts[k]);
	(void)sqlite3_finalize(statement);
	finish_source(w, &source);
	ref_expression_finish(w, e);
}

/* ---- join ---- */

static void compare_joined(const struct pfs_tuples *tuples, sqlite3_stmt *statement,
			   const char *sql)
{
	struct pair *pairs = calloc(tuples->n + 1, sizeof(*pairs));
	uint64_t i = 0;

	assert_non_null(pairs);
	for (; i < tuples->n; i++)
		pairs[i] = (struct pair){row_of(tuples, 0, i), row_of(tuples, 1, i)};
	qsort(pairs, tuples->n, sizeof(*pairs), compare_pairs);
	for (i = 0; sqlite3_step(statement) == SQLITE_ROW; i++) {
		bool is_none = sqlite3_column_type(statement, 1) == SQLITE_NULL;
		uint32_t right =
			is_none ? PFS_NO_ROW : (uint32_t)sqlite3_column_int64(statement, 1);

		if (i >= tuples->n || pairs[i].left != sqlite3_column_int64(statement, 0) ||
		    pairs[i].right != right)
			fail_msg("pair %llu of %s", (unsigned long long)i, sql);
	}
	if (i != tuples->n)
		fail_msg("%llu pairs, not %llu of %s", (unsigned long long)tuples->n,
			 (unsigned long long)i, sql);
	free(pairs);
}

void ref_case_join(struct ref_world *w)
{
	static const enum pfs_join_how hows[] = {PFS_JOIN_AUTO, PFS_JOIN_HASH, PFS_JOIN_MERGE};
	char sql[4000], left_where[200], right_where[200], *at = sql;
	struct pfs_source left = random_input(w, &w->a, left_where, "a");
	struct pfs_source right = random_input(w, &w->b, right_where, "b");
	const struct pfs_step steps[] = {
		{.op = PFS_OP_COLUMN, .ref = {0, (uint16_t)(ref_below(w, 2) ? 0 : 1)}},
		{.op = PFS_OP_COLUMN, .ref = {1, (uint16_t)(ref_below(w, 2) ? 0 : 1)}},
		{.op = PFS_OP_LT},
	};
	const struct pfs_program condition = {.steps = steps, .n = 3};
	struct pfs_join_key keys[3];
	struct pfs_join join = {.kind = ref_below(w, 2) ? PFS_JOIN_LEFT : PFS_JOIN_INNER,
				.how = hows[ref_below(w, 3)],
				.keys = keys,
				.n_keys = 1 + ref_below(w, 2)};
	struct pfs_tuples *tuples;
	sqlite3_stmt *statement;

	at += sprintf(at,
		      "SELECT a.r, b.r FROM (SELECT * FROM a WHERE 1%s) a %s JOIN "
		      "(SELECT * FROM b WHERE 1%s) b ON 1",
		      left_where, join.kind == PFS_JOIN_LEFT ? "LEFT" : "", right_where);
	for (size_t k = 0; k < join.n_keys; k++) {
		keys[k] =
			(struct pfs_join_key){.left = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
					      .right = {0, (uint16_t)ref_below(w, REF_COLUMNS_MAX)},
					      .collation = (enum pfs_collation)ref_below(w, 3)};
		ref_met(w, REF_JOIN, w->a.columns[keys[k].left.column].kind);
		at += sprintf(at, " AND a.c%u COLLATE %s = b.c%u", keys[k].left.column,
			      collation_name(keys[k].collation), keys[k].right.column);
	}
	if (ref_below(w, 3) == 0) {
		join.condition = &condition;
		at += sprintf(at, " AND a.c%u < b.c%u", steps[0].ref.column, steps[1].ref.column);
	}
	(void)sprintf(at, " ORDER BY 1, b.r IS NULL, 2");
	assert_int_equal(pfs_join(&w->run, &tuples, &left, &right, &join), 0);
	assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
	statement = ref_prepare(w, sql, NULL);
	compare_joined(tuples, statement, sql);
	(void)sqlite3_finalize(statement);
	pfs_tuples_free(&w->run, tuples);
	finish_source(w, &left);
	finish_source(w, &right);
}

/* ---- column indexes ---- */

static struct pfs_column_index *build_index(struct ref_world *w, struct ref_table *t,
					    unsigned column, enum pfs_collation collation)
{
	const struct pfs_source source = {.table = &t->table};
	struct pfs_column_index *index;

	assert_int_equal(
		pfs_column_index_build(&w->run, &index, &source, (uint16_t)column, collation), 0);
	return index;
}

/* The rows between two values of the column, in its order. */
static void check_range(struct ref_world *w, struct pfs_column_index *index)
{
	struct ref_table *t = &w->a;
	struct pfs_bound bounds[2];
	struct ref_expression *e = &expression;
	uint64_t from, to;
	char sql[1000];
	sqlite3_stmt *statement;

	for (unsigned i = 0; i < 2; i++) {
		uint32_t n = t->table.n_rows;

		bounds[i] = (struct pfs_bound){.is_open = ref_below(w, 2)};
		if (n)
			bounds[i].value = t->values[(size_t)ref_below(w, n) * REF_COLUMNS_MAX +
						    (ref_below(w, 9) ? index->column : 0)];
		e->bound[i] = bounds[i].value;
	}
	e->n_bound = 2;
	(void)sprintf(
		sql,
		"SELECT r FROM a WHERE c%u COLLATE %s %s ?1 AND c%u COLLATE %s %s ?2 "
		"ORDER BY c%u COLLATE %s, r",
		index->column, collation_name(index->collation),
		bounds[0].is_open ? ">" : ">=", index->column, collation_name(index->collation),
		bounds[1].is_open ? "<" : "<=", index->column, collation_name(index->collation));
	assert_int_equal(pfs_column_index_range(&w->run, &from, &to, index, &bounds[0], &bounds[1]),
			 0);
	statement = ref_prepare(w, sql, e);
	for (; sqlite3_step(statement) == SQLITE_ROW; from++) {
		if (from >= to || index->rows[from] != sqlite3_column_int64(statement, 0))
			fail_msg("place %llu of %s", (unsigned long long)from, sql);
	}
	assert_int_equal(from, to);
	(void)sqlite3_finalize(statement);
	ref_expression_finish(w, e);
}

/* The join of all fragment pairs, one after the other, is the join. */
static void check_merge(struct ref_world *w, struct pfs_column_index *a, struct pfs_column_index *b)
{
	size_t k = 1 + ref_below(w, 6);
	uint64_t left_at[8], right_at[8], pairs = 0;
	char sql[1000];
	sqlite3_stmt *statement;

	assert_int_equal(pfs_column_index_cut(&w->run, left_at, right_at, k, a, b), 0);
	assert_int_equal(left_at[0] + right_at[0], 0);
	assert_int_equal(left_at[k] + right_at[k], a->n + b->n);
	(void)sprintf(sql,
		      "SELECT a.r, b.r FROM a JOIN b ON a.c%u COLLATE %s = b.c%u "
		      "ORDER BY a.c%u COLLATE %s, 1, 2",
		      a->column, collation_name(a->collation), b->column, a->column,
		      collation_name(a->collation));
	statement = ref_prepare(w, sql, NULL);
	for (size_t i = 0; i < k; i++) {
		struct pfs_index_fragment left = {a, left_at[i], left_at[i + 1]};
		struct pfs_index_fragment right = {b, right_at[i], right_at[i + 1]};
		struct pfs_tuples *tuples;

		assert_int_equal(pfs_column_index_join(&w->run, &tuples, &left, &right), 0);
		assert_int_equal(pfs_tuples_here(&w->run, tuples), 0);
		for (uint64_t p = 0; p < tuples->n; p++, pairs++) {
			if (sqlite3_step(statement) != SQLITE_ROW ||
			    row_of(tuples, 0, p) != sqlite3_column_int64(statement, 0) ||
			    row_of(tuples, 1, p) != sqlite3_column_int64(statement, 1))
				fail_msg("pair %llu of %s", (unsigned long long)pairs, sql);
		}
		pfs_tuples_free(&w->run, tuples);
	}
	assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
	(void)sqlite3_finalize(statement);
}

void ref_case_index(struct ref_world *w)
{
	enum pfs_collation collation = (enum pfs_collation)ref_below(w, 3);
	struct pfs_column_index *a =
		build_index(w, &w->a, ref_below(w, REF_COLUMNS_MAX), collation);
	struct pfs_column_index *b =
		build_index(w, &w->b, ref_below(w, REF_COLUMNS_MAX), collation);

	ref_met(w, REF_INDEX, w->a.columns[a->column].kind);
	assert_int_equal(pfs_column_index_here(&w->run, a), 0);
	check_range(w, a);
	check_merge(w, a, b);
	pfs_column_index_free(&w->run, a);
	pfs_column_index_free(&w->run, b);
}
