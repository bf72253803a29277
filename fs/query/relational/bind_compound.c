/* SPDX-License-Identifier: MIT */
/* SELECTs made of SELECTs: WITH, sub-selects in FROM, UNION, INTERSECT and EXCEPT. */
#include "fs/query/relational/bind.h"

#include <strings.h>

#define LEVELS_MAX 8  /* a CTE that names itself goes on without end */
#define BLOCKS_MAX 64 /* one that is named twice, of one that is named twice ... */

/* ---- CTEs ---- */

static int enter_with(struct pfs_binder *binder, const struct pfs_with *with)
{
	struct pfs_bind_scope *scope;

	if (!with)
		return binder->error;
	scope = pfs_bind_get(binder, sizeof(*scope));
	if (!scope)
		return binder->error;
	*scope = (struct pfs_bind_scope){with, binder->scope};
	binder->scope = scope;
	return 0;
}

/* ---- columns ---- */

/* What a result is called outside, as SQLite has it. */
static const char *name_of(struct pfs_binder *binder, const struct pfs_item *item,
			   const struct pfs_term *result)
{
	if (item && item->alias)
		return item->alias->text;
	if (item && item->expr && item->expr->kind == PFS_EXPR_COLUMN)
		return item->expr->name->text;
	if (item && item->expr)
		return NULL;
	return binder->block->inputs[result->input].columns[result->column].name;
}

/* Values of one class, affinity and collation, and such as stay what they are when they are put
 * aside. */
static const char *why_not(const struct pfs_term *result)
{
	if (result->is_late)
		return "a path or target of a sub-select";
	if (result->class == PFS_CLASS_NONE)
		return "NULL as a column of a sub-select";
	if (result->class == PFS_CLASS_TEXT && result->collation != PFS_BINARY)
		return "a collation in a sub-select";
	return NULL;
}

static struct pfs_input_column column_of(const struct pfs_term *result, const char *name)
{
	return (struct pfs_input_column){
		.name = name,
		.class = result->class == PFS_CLASS_TEXT ? PFS_CLASS_TEXT : PFS_CLASS_NUMBER,
		.affinity = result->affinity,
		.can_be_null = result->can_be_null,
		.why_not = why_not(result),
	};
}

/* Returns true if a column before has the name, which then means that one. */
static bool is_named(const struct pfs_input *input, size_t before, const char *name)
{
	for (size_t i = 0; i < before && name; i++) {
		if (input->columns[i].name && strcasecmp(input->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

static void set_columns(struct pfs_binder *binder, struct pfs_input *input)
{
	const struct pfs_block *part = binder->block;
	size_t n = part->n_results;

	input->columns = pfs_bind_get(binder, (n + 1) * sizeof(*input->columns));
	for (size_t i = 0; input->columns && i < n; i++) {
		const struct pfs_term *result = part->results[i];
		const char *name = name_of(binder, binder->items ? binder->items[i] : NULL, result);

		if (is_named(input, i, name))
			name = NULL;
		input->columns[i] = column_of(result, name);
		input->n_columns = i + 1;
	}
}

/* A further part has the same columns, or nobody can use them. */
static void match_columns(struct pfs_binder *binder, struct pfs_input *input)
{
	const struct pfs_block *part = binder->block;

	if (part->n_results != input->n_columns) {
		pfs_bind_refuse(binder, "parts with other columns");
		return;
	}
	for (size_t i = 0; i < input->n_columns; i++) {
		struct pfs_input_column *column = &input->columns[i];
		struct pfs_input_column other = column_of(part->results[i], NULL);

		column->can_be_null |= other.can_be_null;
		if (!column->why_not)
			column->why_not = other.why_not;
		if (!column->why_not && column->class != other.class)
			column->why_not = "UNION of numbers and texts";
		if (column->affinity !=
		    other.affinity) /* nothing that would be converted is compared */
			column->affinity = PFS_NO_AFFINITY;
	}
}

static void rename_columns(struct pfs_binder *binder, struct pfs_input *input,
			   const struct pfs_column_names *names)
{
	size_t i = 0;

	for (; names && i < input->n_columns; names = names->next, i++)
		input->columns[i].name =
			is_named(input, i, names->name.text) ? NULL : names->name.text;
	if (i < input->n_columns || names)
		pfs_bind_refuse(binder, "a CTE with other columns");
}

/* ---- parts ---- */

static void finish_part(struct pfs_binder *binder, struct pfs_input *input, bool is_member)
{
	struct pfs_block *block = binder->block;
	bool is_cut = block->limit != UINT64_MAX || block->offset;

	if (!pfs_block_is_determined(block))
		pfs_bind_refuse(binder, "a LIMIT in a sub-select whose order leaves rows open");
	if (!is_cut && !is_member) {
		block->dropped = block->order;
		block->n_dropped = block->n_order;
		block->n_order = 0;
	}
	if (input->n_parts == 1)
		set_columns(binder, input);
	else
		match_columns(binder, input);
}

static int bind_cores(struct pfs_binder *binder, const struct pfs_core *first,
		      const struct pfs_core *past);

/* One part of the input: a CTE that is closed, a whole SELECT, or those of a compound up to another
 * one. */
static void add_part(struct pfs_binder *outer, struct pfs_input *input,
		     const struct pfs_bind_scope *scope, const struct pfs_select *select,
		     const struct pfs_core *first, const struct pfs_core *past,
		     const struct pfs_cte *closed)
{
	struct pfs_binder binder = {
		.query = outer->query,
		.text = outer->text,
		.arena = outer->arena,
		.scope = scope,
		.level = outer->level + 1,
		.step = outer->next,
		.reads = outer->reads,
		.n_blocks = outer->n_blocks + 1,
		.block = pfs_bind_get(outer, sizeof(*binder.block)),
	};
	int error;

	if (binder.level > LEVELS_MAX || binder.n_blocks > BLOCKS_MAX)
		pfs_bind_refuse(outer, "sub-selects without end");
	if (outer->error)
		return;
	input->parts[input->n_parts++] = binder.block;
	error = closed	 ? pfs_bind_closed(&binder, scope, closed)
		: select ? pfs_bind_select(&binder, select)
			 : bind_cores(&binder, first, past);
	if (!error)
		finish_part(&binder, input, !select && !closed);
	outer->reads = binder.reads;
	outer->n_blocks = binder.n_blocks;
	outer->error = binder.error;
	outer->why = binder.why;
}

/* Those from `second` on are a part each, and what stands before it is one. */
static void add_parts(struct pfs_binder *binder, struct pfs_input *input,
		      const struct pfs_core *first, const struct pfs_core *second,
		      const struct pfs_core *past)
{
	size_t n = 1;

	for (const struct pfs_core *core = second; core != past; core = core->next)
		n++;
	input->parts = pfs_bind_get(binder, n * sizeof(struct pfs_block *));
	if (!binder->error)
		add_part(binder, input, binder->scope, NULL, first, second, NULL);
	for (const struct pfs_core *core = second; core != past && !binder->error;
	     core = core->next)
		add_part(binder, input, binder->scope, NULL, core, core->next, NULL);
}

/* ---- sets: rows are grouped by all of their columns, and which parts a group is of decides,
 * unless a join does (lift.c) ---- */

/* Numbers the parts, in a column behind the others. */
static void add_tags(struct pfs_binder *binder, struct pfs_input *input)
{
	size_t n = input->n_columns;

	for (size_t i = 0; i < input->n_parts && !binder->error; i++) {
		struct pfs_block *part = input->parts[i];
		struct pfs_term **results =
			pfs_bind_get(binder, (n + 1) * sizeof(struct pfs_term *));

		for (size_t c = 0; c < n && results; c++)
			results[c] = part->results[c];
		if (!results)
			return;
		results[n] = pfs_term_integer(binder, (int64_t)i);
		part->results = results;
		part->n_results = n + 1;
	}
	input->columns[n] = (struct pfs_input_column){.class = PFS_CLASS_NUMBER, .is_hidden = true};
	input->n_columns = n + 1;
}

/* Makes the test whether a row of the group is of that part: max(tag = number). */
static struct pfs_term *is_of(struct pfs_binder *binder, unsigned tag, size_t number)
{
	struct pfs_block *block = binder->block;
	struct pfs_term *same, *bound;

	same = pfs_bind_comparison(binder, PFS_OP_EQ, pfs_bind_own_column(binder, 0, tag),
				   pfs_term_integer(binder, (int64_t)number));
	bound = same ? pfs_term_new(binder, PFS_BOUND_AGGREGATE, PFS_CLASS_NUMBER) : NULL;
	if (!bound)
		return NULL;
	bound->aggregate = block->n_aggregates;
	block->aggregates[block->n_aggregates++] =
		(struct pfs_bound_aggregate){.op = PFS_MAX, .arg = same};
	return bound;
}

/* As the compound says it, from the left to the right. */
static struct pfs_term *bind_membership(struct pfs_binder *binder, const struct pfs_core *first,
					const struct pfs_core *past, unsigned tag)
{
	struct pfs_term *is_in = is_of(binder, tag, 0), *other;
	size_t number = 1;

	for (const struct pfs_core *core = first->next; core != past && is_in; core = core->next) {
		other = is_of(binder, tag, number++);
		if (core->compound == PFS_EXCEPT)
			other = pfs_bind_not(binder, other, true);
		is_in = pfs_bind_both(binder, core->compound <= PFS_UNION ? PFS_OP_OR : PFS_OP_AND,
				      is_in, other);
	}
	return is_in;
}

static void group_by_all(struct pfs_block *block)
{
	block->is_grouped = true;
	block->group = block->results;
	block->n_group = block->n_results;
}

static void bind_set(struct pfs_binder *binder, const struct pfs_core *first,
		     const struct pfs_core *past)
{
	struct pfs_block *block = binder->block;
	struct pfs_input *input = &block->inputs[0];

	for (size_t i = 0; i < block->n_results; i++) {
		if (block->results[i]->is_late) /* or of several classes */
			pfs_bind_refuse(binder,
					"INTERSECT or EXCEPT of what the operators do not have");
	}
	block->aggregates = pfs_bind_get(binder, input->n_parts * sizeof(*block->aggregates));
	if (!binder->error)
		add_tags(binder, input);
	if (binder->error)
		return;
	group_by_all(block);
	block->having = bind_membership(binder, first, past, (unsigned)block->n_results);
}

/* ---- compounds ---- */

/* The first SELECT's result of that alias, or, failing that, which is that column. */
static struct pfs_term *named(const struct pfs_block *block, const struct pfs_items *items,
			      const struct pfs_name *name)
{
	struct pfs_term *column = NULL;
	size_t i = 0;

	for (const struct pfs_item *item = items ? items->first : NULL; item;
	     item = item->next, i++) {
		if (!item->expr)
			return NULL;
		if (item->alias && pfs_name_is(name, item->alias->text))
			return block->results[i];
		if (!item->alias && item->expr->kind == PFS_EXPR_COLUMN && !column &&
		    pfs_name_is(name, item->expr->name->text))
			column = block->results[i];
	}
	return column;
}

static struct pfs_term *order_value(struct pfs_binder *binder, const struct pfs_select *select,
				    const struct pfs_expr *expr)
{
	struct pfs_term *found = NULL;

	if (expr->kind == PFS_EXPR_INTEGER)
		return pfs_bind_numbered(binder, expr);
	if (expr->kind == PFS_EXPR_COLUMN && !expr->table)
		found = named(binder->block, select->first->results, expr->name);
	return found ? found : pfs_bind_refuse(binder, "UNION in the order of what is no result");
}

static void bind_compound_end(struct pfs_binder *binder, const struct pfs_select *select)
{
	struct pfs_block *block = binder->block;

	if (pfs_bind_limit(binder, select) || !select->order)
		return;
	block->order = pfs_bind_get(binder, select->order->n * sizeof(*block->order));
	for (const struct pfs_item *item = select->order->first; item && !binder->error;
	     item = item->next) {
		struct pfs_term *value = order_value(binder, select, item->expr);

		if (value)
			pfs_bind_order(binder, value, item);
	}
	pfs_bind_check_members(binder);
}

/* The last of them before whose rows all are made distinct; NULL: none is. */
static const struct pfs_core *last_set(const struct pfs_core *first, const struct pfs_core *past)
{
	const struct pfs_core *last = NULL;

	for (const struct pfs_core *core = first->next; core != past; core = core->next) {
		if (core->compound != PFS_UNION_ALL)
			last = core;
	}
	return last;
}

static bool has_only_unions(const struct pfs_core *first, const struct pfs_core *past)
{
	bool has = true;

	for (const struct pfs_core *core = first->next; core != past; core = core->next)
		has &= core->compound <= PFS_UNION;
	return has;
}

/* All columns of an input whose rows are those of the SELECTs. */
static int bind_compound(struct pfs_binder *binder, const struct pfs_core *first,
			 const struct pfs_core *past)
{
	const struct pfs_core *last = last_set(first, past), *lifted = NULL;
	bool is_set = last && last->next == past;
	struct pfs_block *block = binder->block;
	struct pfs_input *input;

	block->limit = UINT64_MAX;
	block->inputs = pfs_bind_get(binder, sizeof(*block->inputs));
	if (binder->error)
		return binder->error;
	block->n_inputs = 1;
	input = &block->inputs[0];
	input->kind = PFS_INPUT_BLOCKS;
	input->table = input->name = "";
	if (first->next == last && is_set && last->compound != PFS_UNION)
		PFS_TRY(pfs_bind_lift_set(binder, &lifted, first, last));
	if (lifted)
		add_parts(binder, input, lifted, lifted->next, lifted->next);
	else
		add_parts(binder, input, first, last && !is_set ? last->next : first->next, past);
	if (binder->error)
		return binder->error;
	block->results = pfs_bind_get(binder, input->n_columns * sizeof(struct pfs_term *));
	binder->is_unsure = binder->level != 0;
	for (unsigned i = 0; i < input->n_columns && !binder->error; i++)
		block->results[block->n_results++] = pfs_bind_own_column(binder, 0, i);
	binder->is_unsure = false;
	block->is_set = block->is_distinct = is_set && has_only_unions(first, past);
	if (lifted)
		group_by_all(block);
	else if (is_set && !block->is_distinct && !binder->error)
		bind_set(binder, first, past);
	return binder->error;
}

static int bind_cores(struct pfs_binder *binder, const struct pfs_core *first,
		      const struct pfs_core *past)
{
	if (first && first->next != past)
		return bind_compound(binder, first, past);
	return first ? pfs_bind_core(binder, first, NULL) : binder->error;
}

int pfs_bind_select(struct pfs_binder *binder, const struct pfs_select *select)
{
	PFS_TRY(enter_with(binder, select->with));
	if (!select->first->next)
		return pfs_bind_core(binder, select->first, select);
	PFS_TRY(bind_compound(binder, select->first, NULL));
	bind_compound_end(binder, select);
	return binder->error;
}

/* A compound that is nothing but its parts. */
static bool is_plain_union(const struct pfs_block *block, const struct pfs_select *select)
{
	return select->first->next && !block->is_distinct && !block->is_grouped &&
	       block->limit == UINT64_MAX && !block->offset && !block->n_dropped;
}

int pfs_bind_blocks(struct pfs_binder *binder, struct pfs_input *input,
		    const struct pfs_select *select, const struct pfs_bind_scope *scope,
		    const struct pfs_column_names *names)
{
	input->kind = PFS_INPUT_BLOCKS;
	input->parts = pfs_bind_get(binder, sizeof(struct pfs_block *));
	if (!binder->error)
		add_part(binder, input, scope, select, NULL, NULL, NULL);
	if (!binder->error && is_plain_union(input->parts[0], select)) {
		const struct pfs_input *all = &input->parts[0]->inputs[0];

		input->n_parts = all->n_parts;
		input->parts = all->parts;
	}
	if (names && !binder->error)
		rename_columns(binder, input, names);
	return binder->error;
}

/* Its first parts say which columns there are; steps only match them. */
int pfs_bind_recursive_blocks(struct pfs_binder *binder, struct pfs_input *input,
			      const struct pfs_bind_scope *scope, const struct pfs_cte *cte)
{
	const struct pfs_bind_recursion recursion = {cte, input};
	size_t n = 0;

	for (const struct pfs_core *core = cte->select->first; core; core = core->next)
		n++;
	input->kind = PFS_INPUT_BLOCKS;
	input->parts = pfs_bind_get(binder, n * sizeof(struct pfs_block *));
	for (const struct pfs_core *core = cte->select->first; core && !binder->error;
	     core = core->next) {
		bool is_step = pfs_bind_is_step(core, cte);

		if (is_step && !input->n_first) {
			if (cte->columns)
				rename_columns(binder, input, cte->columns);
			pfs_bind_queue_columns(binder, input);
		}
		binder->next = is_step ? &recursion : NULL;
		add_part(binder, input, scope, NULL, core, core->next, NULL);
		binder->next = NULL;
		if (is_step && !binder->error)
			pfs_bind_check_step(binder, input);
	}
	return binder->error;
}

int pfs_bind_closed_blocks(struct pfs_binder *binder, struct pfs_input *input,
			   const struct pfs_bind_scope *scope, const struct pfs_cte *cte)
{
	input->kind = PFS_INPUT_BLOCKS;
	input->parts = pfs_bind_get(binder, sizeof(struct pfs_block *));
	if (!binder->error)
		add_part(binder, input, scope, NULL, NULL, NULL, cte);
	return binder->error;
}
