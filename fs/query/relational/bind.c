/* SPDX-License-Identifier: MIT */
/* One SELECT: its parts in the order in which SQLite resolves their names, and the key. */
#include <string.h>
#include <strings.h>

#include "fs/query/relational/bind.h"
#include "fs/query/relational/sidetable.h"

void *pfs_bind_refuse(struct pfs_binder *binder, const char *why)
{
	if (!binder->error) {
		binder->error = -ENOTSUP;
		binder->why = why;
	}
	return NULL;
}

void *pfs_bind_get(struct pfs_binder *binder, size_t size)
{
	void *piece = binder->error ? NULL : pfs_arena_get(binder->arena, size);

	if (!piece && !binder->error)
		binder->error = -ENOMEM;
	return piece;
}

/* ---- columns ---- */

static void note_read(struct pfs_binder *binder, const char *table, const char *column,
		      bool is_optional)
{
	struct pfs_bound_read *read = pfs_bind_get(binder, sizeof(*read));

	if (!read)
		return;
	*read = (struct pfs_bound_read){table, column, is_optional, binder->reads};
	binder->reads = read;
}

void pfs_bind_may_read(struct pfs_binder *binder, const char *table, const char *column)
{
	note_read(binder, table, column, true);
}

struct pfs_term *pfs_bind_own_column(struct pfs_binder *binder, unsigned input, unsigned number)
{
	struct pfs_input *from = &binder->block->inputs[input];
	struct pfs_input_column *column = &from->columns[number];
	struct pfs_term *bound = pfs_bind_get(binder, sizeof(*bound));

	if (!bound)
		return NULL;
	if (column->why_not)
		return pfs_bind_refuse(binder, column->why_not);
	if (!column->is_used && !column->is_late) {
		column->at = (unsigned)from->n_used++;
		column->is_used = true;
	}
	bound->kind = PFS_BOUND_COLUMN;
	bound->size = 1;
	bound->class = column->class;
	bound->affinity = column->affinity;
	bound->collation = column->collation;
	bound->has_collation = true;
	bound->is_late = column->is_late;
	bound->can_be_null = column->can_be_null || from->is_left;
	bound->input = input;
	bound->column = number;
	return bound;
}

struct pfs_term *pfs_bind_input_column(struct pfs_binder *binder, unsigned input, unsigned number)
{
	struct pfs_input *from = &binder->block->inputs[input];

	note_read(binder, from->table, from->columns[number].name, false);
	from->is_read = true;
	return pfs_bind_own_column(binder, input, number);
}

struct pfs_term *pfs_bind_column(struct pfs_binder *binder, const struct pfs_name *table,
				 const struct pfs_name *name)
{
	const struct pfs_block *block = binder->block;
	unsigned input = 0, column = 0;
	size_t found = 0;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *from = &block->inputs[i];

		if (table && !pfs_name_is(table, from->name))
			continue;
		for (unsigned c = 0; c < from->n_columns; c++) {
			if (!pfs_name_is(name, from->columns[c].name) ||
			    (!table && from->columns[c].is_merged))
				continue;
			found++;
			input = i;
			column = c;
		}
	}
	if (found > 1)
		return pfs_bind_refuse(binder, "a name that two tables have");
	return found ? pfs_bind_input_column(binder, input, column) : NULL;
}

/* ---- results ---- */

static bool add_result(struct pfs_binder *binder, struct pfs_term *bound)
{
	struct pfs_block *block = binder->block;

	if (!bound)
		return false;
	block->results[block->n_results++] = bound;
	return true;
}

static int bind_results(struct pfs_binder *binder, const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;

	block->results = pfs_bind_get(binder, items->n * sizeof(struct pfs_term *));
	binder->takes_aggregates = true;
	for (const struct pfs_item *item = items->first; item && block->results;
	     item = item->next) {
		if (!item->expr)
			pfs_bind_refuse(binder, "a * among the results");
		else if (!add_result(binder, pfs_bind_expr(binder, item->expr)))
			break;
	}
	binder->takes_aggregates = false;
	return binder->error;
}

/* The result that a term of GROUP BY or ORDER BY names by its number. */
static struct pfs_term *numbered(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	int64_t number = 0;

	for (const char *c = expr->name->text; *c && number < 10000; c++)
		number = number * 10 + (*c - '0');
	if (number < 1 || (uint64_t)number > binder->block->n_results)
		return pfs_bind_refuse(binder, "a number that is no result's");
	return binder->block->results[number - 1];
}

/* Each node has one path, and each path is one node's. */
static struct pfs_term *key_of(struct pfs_binder *binder, const struct pfs_term *late)
{
	const struct pfs_input_column *column =
		&binder->block->inputs[late->input].columns[late->column];

	if (column->wish.field != PFS_FIELD_PATH)
		return pfs_bind_refuse(binder, "GROUP BY a target");
	return pfs_bind_own_column(binder, late->input, (unsigned)pfs_node_ino);
}

static int bind_group(struct pfs_binder *binder, const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;

	if (!items)
		return 0;
	block->group = pfs_bind_get(binder, items->n * sizeof(struct pfs_term *));
	for (const struct pfs_item *item = items->first; item && block->group; item = item->next) {
		struct pfs_term *key = item->expr->kind == PFS_EXPR_INTEGER
					       ? numbered(binder, item->expr)
					       : pfs_bind_expr(binder, item->expr);

		if (!key)
			break;
		if (key->is_late)
			key = key_of(binder, key);
		if (!key)
			break;
		if (key->kind == PFS_BOUND_CONSTANT || key->kind == PFS_BOUND_AGGREGATE)
			pfs_bind_refuse(binder, "GROUP BY a constant or an aggregate");
		if (key->collation != PFS_BINARY && key->class == PFS_CLASS_TEXT)
			pfs_bind_refuse(binder, "GROUP BY with a collation");
		block->group[block->n_group++] = key;
	}
	block->is_grouped = true;
	return binder->error;
}

/* A result that has that name. */
static struct pfs_term *named(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	size_t i = 0;

	if (expr->kind != PFS_EXPR_COLUMN || expr->table)
		return NULL;
	for (const struct pfs_item *item = binder->core->results->first; item; item = item->next) {
		if (item->alias && pfs_name_is(expr->name, item->alias->text))
			return binder->block->results[i];
		i++;
	}
	return NULL;
}

static struct pfs_term *bind_order_value(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound;

	if (expr->kind == PFS_EXPR_INTEGER)
		return numbered(binder, expr);
	bound = named(binder, expr);
	return bound ? bound : pfs_bind_expr(binder, expr);
}

static int bind_order(struct pfs_binder *binder, const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;

	if (!items)
		return 0;
	block->order = pfs_bind_get(binder, items->n * sizeof(*block->order));
	binder->takes_aggregates = true;
	for (const struct pfs_item *item = items->first; item && block->order; item = item->next) {
		struct pfs_term *value = bind_order_value(binder, item->expr);

		if (!value)
			break;
		if (value->is_late)
			pfs_bind_refuse(binder, "ORDER BY a path or target");
		block->order[block->n_order++] = (struct pfs_bound_order){
			.value = value,
			.is_descending = item->is_descending,
			.nulls_last = item->nulls == PFS_NULLS_DEFAULT
					      ? item->is_descending
					      : item->nulls == PFS_NULLS_LAST,
		};
	}
	binder->takes_aggregates = false;
	return binder->error;
}

static uint64_t bind_count(struct pfs_binder *binder, const struct pfs_expr *expr,
			   uint64_t if_negative)
{
	struct pfs_term *bound = pfs_bind_expr(binder, expr);

	if (!bound)
		return 0;
	if (bound->kind != PFS_BOUND_CONSTANT || bound->constant.type != PFS_IS_INTEGER)
		return pfs_bind_refuse(binder, "a LIMIT that is no number"), 0;
	return bound->constant.integer < 0 ? if_negative : (uint64_t)bound->constant.integer;
}

/* ---- the whole ---- */

static int bind_having(struct pfs_binder *binder, const struct pfs_expr *having)
{
	struct pfs_block *block = binder->block;

	if (!having)
		return 0;
	if (!block->n_group)
		pfs_bind_refuse(binder, "HAVING without GROUP BY");
	binder->takes_aggregates = true;
	block->having = pfs_bind_condition(binder, having);
	binder->takes_aggregates = false;
	return binder->error;
}

static int bind_end(struct pfs_binder *binder, const struct pfs_select *select)
{
	struct pfs_block *block = binder->block;

	PFS_TRY(bind_order(binder, select->order));
	block->limit = UINT64_MAX;
	if (select->limit)
		block->limit = bind_count(binder, select->limit, UINT64_MAX);
	if (select->offset)
		block->offset = bind_count(binder, select->offset, 0);
	return binder->error;
}

static int bind_core(struct pfs_binder *binder, const struct pfs_select *select)
{
	const struct pfs_core *core = select->first;
	struct pfs_block *block = binder->block;

	block->aggregates = pfs_bind_get(binder, PFS_AGGREGATES_MAX * sizeof(*block->aggregates));
	if (!block->aggregates)
		return binder->error;
	PFS_TRY(pfs_bind_from(binder, core->from));
	PFS_TRY(bind_results(binder, core->results));
	binder->takes_aliases = true;
	if (core->where)
		block->where = pfs_bind_condition(binder, core->where);
	PFS_TRY(binder->error);
	PFS_TRY(bind_group(binder, core->group));
	PFS_TRY(bind_having(binder, core->having));
	PFS_TRY(bind_end(binder, select));
	block->is_distinct = core->is_distinct;
	block->is_grouped |= block->n_aggregates != 0;
	return 0;
}

static bool is_asked(const struct pfs_bound_read *read, const struct pfs_sql_read *reads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(read->table, reads[i].table) == 0 &&
		    strcasecmp(read->column, reads[i].column) == 0)
			return true;
	}
	return read->is_optional;
}

/* SQLite's own table is read when it reads its tables' declarations for the first time; no statement
 * that is bound names it. */
static bool is_bound(const struct pfs_sql_read *asked, const struct pfs_bound_read *reads)
{
	if (strncasecmp(asked->table, "sqlite_", 7) == 0)
		return true;
	for (; reads; reads = reads->next) {
		if (strcasecmp(reads->table, asked->table) == 0 &&
		    strcasecmp(reads->column, asked->column) == 0)
			return true;
	}
	return false;
}

/* The second key: what was bound is what SQLite's authorizer was asked about. */
static int compare_reads(struct pfs_binder *binder)
{
	const struct pfs_sql_read *asked;
	size_t n;

	if (!pfs_sql_reads(binder->query->connection->sql, &asked, &n))
		pfs_bind_refuse(binder, "too many columns");
	for (unsigned i = 0; i < binder->block->n_inputs; i++) {
		if (!binder->block->inputs[i].is_read)
			note_read(binder, binder->block->inputs[i].table, "", false);
	}
	for (const struct pfs_bound_read *read = binder->reads; read; read = read->next) {
		if (!is_asked(read, asked, n))
			pfs_bind_refuse(binder, "a column that SQLite does not read");
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_bound(&asked[i], binder->reads))
			pfs_bind_refuse(binder, "a column that SQLite reads elsewhere");
	}
	return binder->error;
}

int pfs_bind(struct pfs_block **out, const char **why, struct pfs_query *query,
	     struct pfs_arena *arena, const struct pfs_select *select)
{
	struct pfs_binder binder = {.query = query, .arena = arena, .core = select->first};
	int error;

	*out = NULL;
	binder.block = pfs_bind_get(&binder, sizeof(*binder.block));
	if (select->with)
		pfs_bind_refuse(&binder, "WITH");
	else if (select->first->next)
		pfs_bind_refuse(&binder, "UNION and its like");
	else if (!select->first->results || !select->first->from)
		pfs_bind_refuse(&binder, "VALUES, or no FROM");
	error = binder.error ? binder.error : bind_core(&binder, select);
	if (!error)
		error = compare_reads(&binder);
	*why = binder.why;
	if (error) {
		pfs_block_finish(binder.block, query->queries);
		return error;
	}
	if (query->top == PFS_ROOT_PRIME)
		pfs_block_fold(binder.block);
	*out = binder.block;
	return 0;
}

void pfs_block_finish(struct pfs_block *block, struct pfs_queries *queries)
{
	for (size_t i = 0; block && i < block->n_inputs; i++) {
		if (block->inputs[i].side)
			pfs_side_table_put(queries, block->inputs[i].side);
		block->inputs[i].side = NULL;
	}
}
