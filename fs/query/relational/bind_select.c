/* SPDX-License-Identifier: MIT */
/* One SELECT: its parts in the order in which SQLite resolves their names. */
#include "fs/query/relational/bind.h"

/* ---- results ---- */

static size_t count_results(const struct pfs_block *block, const struct pfs_items *items)
{
	size_t n = 0, n_columns = 0;

	for (size_t i = 0; i < block->n_inputs; i++)
		n_columns += block->inputs[i].n_columns;
	for (const struct pfs_item *item = items->first; item; item = item->next)
		n += item->expr ? 1 : n_columns;
	return n;
}

static void add_result(struct pfs_binder *binder, struct pfs_term *bound,
		       const struct pfs_item *item)
{
	struct pfs_block *block = binder->block;

	if (!bound)
		return;
	binder->items[block->n_results] = item;
	block->results[block->n_results++] = bound;
}

/* `*` is every column that is not hidden, without those that USING and NATURAL have merged. */
static void add_star(struct pfs_binder *binder, const struct pfs_item *item)
{
	const struct pfs_block *block = binder->block;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *from = &block->inputs[i];

		if (item->table && !pfs_name_is(item->table, from->name))
			continue;
		for (unsigned c = 0; c < from->n_columns && !binder->error; c++) {
			if (from->columns[c].is_hidden ||
			    (!item->table && from->columns[c].is_merged))
				continue;
			add_result(binder, pfs_bind_input_column(binder, i, c), item);
		}
	}
}

/* A sub-select may have columns that the operators have not, as long as nobody uses them. */
static int bind_results(struct pfs_binder *binder, const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;
	size_t n = count_results(block, items);

	block->results = pfs_bind_get(binder, n * sizeof(struct pfs_term *));
	binder->items = pfs_bind_get(binder, n * sizeof(struct pfs_item *));
	binder->takes_aggregates = true;
	for (const struct pfs_item *item = items->first; item && !binder->error;
	     item = item->next) {
		const struct pfs_expr *expr = item->expr;

		binder->is_unsure = binder->level && (!expr || expr->kind == PFS_EXPR_COLUMN);
		if (expr)
			add_result(binder, pfs_bind_expr(binder, expr), item);
		else
			add_star(binder, item);
	}
	binder->takes_aggregates = binder->is_unsure = false;
	return binder->error;
}

/* The result that a term of GROUP BY or ORDER BY names by its number. */
struct pfs_term *pfs_bind_numbered(struct pfs_binder *binder, const struct pfs_expr *expr)
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
	struct pfs_term *key;

	if (binder->block->inputs[late->input].kind != PFS_INPUT_NODES || column->wish.attr ||
	    column->wish.field != PFS_FIELD_PATH)
		return pfs_bind_refuse(binder, "GROUP BY a target");
	key = pfs_bind_own_column(binder, late->input, (unsigned)pfs_node_ino);
	if (key)
		key->is_path = true;
	return key;
}

static int bind_group(struct pfs_binder *binder, const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;

	if (!items)
		return 0;
	block->group = pfs_bind_get(binder, items->n * sizeof(struct pfs_term *));
	for (const struct pfs_item *item = items->first; item && block->group; item = item->next) {
		struct pfs_term *key = item->expr->kind == PFS_EXPR_INTEGER
					       ? pfs_bind_numbered(binder, item->expr)
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
	if (expr->kind != PFS_EXPR_COLUMN || expr->table)
		return NULL;
	for (size_t i = 0; i < binder->block->n_results; i++) {
		const struct pfs_name *alias = binder->items[i]->alias;

		if (alias && pfs_name_is(expr->name, alias->text))
			return binder->block->results[i];
	}
	return NULL;
}

static struct pfs_term *bind_order_value(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *bound;

	if (expr->kind == PFS_EXPR_INTEGER)
		return pfs_bind_numbered(binder, expr);
	bound = named(binder, expr);
	return bound ? bound : pfs_bind_expr(binder, expr);
}

void pfs_bind_order(struct pfs_binder *binder, struct pfs_term *value, const struct pfs_item *item)
{
	struct pfs_block *block = binder->block;

	if (value->is_late) {
		binder->lax = "ORDER BY a path or target";
		if (!binder->takes_rows)
			pfs_bind_refuse(binder, binder->lax);
	}
	block->order[block->n_order++] = (struct pfs_bound_order){
		.value = value,
		.is_descending = item->is_descending,
		.nulls_last = item->nulls == PFS_NULLS_DEFAULT ? item->is_descending
							       : item->nulls == PFS_NULLS_LAST,
	};
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
		pfs_bind_order(binder, value, item);
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

int pfs_bind_limit(struct pfs_binder *binder, const struct pfs_select *select)
{
	struct pfs_block *block = binder->block;

	block->limit = UINT64_MAX;
	if (select && select->limit)
		block->limit = bind_count(binder, select->limit, UINT64_MAX);
	if (select && select->offset)
		block->offset = bind_count(binder, select->offset, 0);
	return binder->error;
}

/* No name of a table that is read without any column of it is left out of the key. */
static void note_unread(struct pfs_binder *binder)
{
	for (size_t i = 0; i < binder->block->n_inputs; i++) {
		const struct pfs_input *input = &binder->block->inputs[i];

		if (input->kind == PFS_INPUT_BLOCKS || input->is_flat)
			pfs_bind_may_read(binder, input->table, "");
		else if (!input->is_read)
			pfs_bind_read(binder, input->table, "");
	}
}

/* FROM and the results, which the rest may name. */
static int bind_beginning(struct pfs_binder *binder, const struct pfs_core *core)
{
	struct pfs_block *block = binder->block;

	binder->core = core;
	block->aggregates = pfs_bind_get(binder, PFS_AGGREGATES_MAX * sizeof(*block->aggregates));
	PFS_TRY(binder->error);
	PFS_TRY(pfs_bind_from(binder, core->from));
	PFS_TRY(pfs_bind_flatten(binder));
	binder->takes_rows = !binder->level && !binder->is_table && !core->group &&
			     !core->is_distinct && block->n_inputs == 1 &&
			     block->inputs[0].kind == PFS_INPUT_NODES;
	PFS_TRY(bind_results(binder, core->results));
	binder->takes_aliases = true;
	return 0;
}

static bool has_printed(const struct pfs_term *term)
{
	bool has = term && term->kind == PFS_BOUND_PRINTED;

	for (unsigned i = 0; term && i < term->n_args; i++)
		has |= has_printed(term->args[i]);
	return has;
}

/* Numbers are printed once rows are selected and joined. */
static void check_printed(struct pfs_binder *binder)
{
	const struct pfs_block *block = binder->block;
	bool has = has_printed(block->where);

	for (size_t i = 0; i < block->n_inputs; i++)
		has |= has_printed(block->inputs[i].on);
	if (has)
		pfs_bind_refuse(binder, "printf in a condition on rows");
}

/* True if no two rows are equal, since each group shows its keys. */
static bool shows_groups(const struct pfs_block *block)
{
	size_t n = 0;

	for (size_t i = 0; i < block->n_group; i++) {
		size_t at = 0;

		while (at < block->n_results &&
		       !pfs_bound_equals(block->results[at], block->group[i]))
			at++;
		n += at < block->n_results;
	}
	return block->is_grouped && n == block->n_group;
}

static void note_groups(struct pfs_block *block, bool is_distinct)
{
	block->is_grouped |= block->n_aggregates != 0;
	block->is_aggregate = block->is_grouped;
	block->is_distinct = is_distinct && !shows_groups(block);
	block->groups_descend = block->n_group && block->n_group == block->n_order;
}

int pfs_bind_core(struct pfs_binder *binder, const struct pfs_core *core,
		  const struct pfs_select *end)
{
	struct pfs_block *block = binder->block;
	const struct pfs_core *written = core;

	if (!core->from)
		return pfs_bind_values(binder, core, end);
	PFS_TRY(pfs_bind_lift(binder, &core, end));
	PFS_TRY(bind_beginning(binder, core));
	if (core->where)
		block->where =
			pfs_bind_and(binder, block->where, pfs_bind_condition(binder, core->where));
	PFS_TRY(binder->error);
	PFS_TRY(bind_group(binder, core->group));
	PFS_TRY(bind_having(binder, core->having));
	if (end)
		PFS_TRY(bind_order(binder, end->order));
	PFS_TRY(pfs_bind_limit(binder, end));
	note_unread(binder);
	note_groups(block, core->is_distinct);
	check_printed(binder);
	pfs_bind_row_order(binder, written, end);
	return binder->error ? binder->error : pfs_bind_rows(binder);
}
