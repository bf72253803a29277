/* SPDX-License-Identifier: MIT */
/* SELECTs of rows as they are: columns of nodes, in an order that the image has.  WHERE is taken
 * apart at its ANDs into what a scan answers (fs/query/push.c) and what the operators compute. */
#include "fs/query/relational/bind.h"

#define ARGUMENTS_MAX 64 /* that a scan can have */

static unsigned number_of(const struct pfs_binder *binder, const struct pfs_term *term)
{
	return binder->block->inputs[0].columns[term->column].number;
}

static const struct pfs_node_column *node_column(const struct pfs_binder *binder,
						 const struct pfs_term *term)
{
	return &binder->query->connection->table->columns[number_of(binder, term)];
}

/* ---- conditions ---- */

static bool take_constant(struct pfs_sql_argument *out, const struct pfs_constant *constant)
{
	switch (constant->type) {
	case PFS_IS_INTEGER:
		out->value = (struct pfs_sql_value){.type = PFS_SQL_INTEGER,
						    .integer = constant->integer};
		break;
	case PFS_IS_REAL:
		out->value = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = constant->real};
		break;
	case PFS_IS_TEXT:
		out->value = (struct pfs_sql_value){
			.type = PFS_SQL_TEXT, .bytes = constant->text, .size = constant->len};
		break;
	case PFS_IS_NULL:
		return false;
	}
	out->number = out->value;
	return true;
}

/* The comparison as a scan has it; -1: it has none such. */
static int compared(enum pfs_op op)
{
	switch (op) {
	case PFS_OP_EQ:
		return PFS_SQL_EQ;
	case PFS_OP_NE:
		return PFS_SQL_NE;
	case PFS_OP_IS:
		return PFS_SQL_IS;
	case PFS_OP_LT:
		return PFS_SQL_LT;
	case PFS_OP_LE:
		return PFS_SQL_LE;
	case PFS_OP_GT:
		return PFS_SQL_GT;
	case PFS_OP_GE:
		return PFS_SQL_GE;
	default:
		return -1;
	}
}

/* A column compared with a constant of its own class. */
static bool take_comparison(struct pfs_sql_argument *out, const struct pfs_binder *binder,
			    const struct pfs_term *term)
{
	bool is_mirrored = term->args[0]->kind == PFS_BOUND_CONSTANT;
	const struct pfs_term *constant = term->args[!is_mirrored];
	const struct pfs_term *column = term->args[is_mirrored];

	out->op = compared(is_mirrored ? pfs_op_mirrored(term->op) : term->op);
	if (out->op < 0 || constant->kind != PFS_BOUND_CONSTANT ||
	    column->kind != PFS_BOUND_COLUMN || term->collation != PFS_BINARY ||
	    !take_constant(out, &constant->constant))
		return false;
	out->column = (int)number_of(binder, column);
	switch (node_column(binder, column)->kind) {
	case PFS_NODE_INTEGER:
		return out->value.type != PFS_SQL_TEXT;
	case PFS_NODE_BYTES:
		return out->value.type == PFS_SQL_TEXT;
	case PFS_NODE_TYPE:
		return out->value.type == PFS_SQL_TEXT &&
		       (out->op <= PFS_SQL_NE || out->op == PFS_SQL_IS);
	default:
		return false;
	}
}

/* A pattern, or NULL or not. */
static bool take_test(struct pfs_sql_argument *out, const struct pfs_binder *binder,
		      const struct pfs_term *term)
{
	enum pfs_node_kind kind;

	if (term->args[0]->kind != PFS_BOUND_COLUMN)
		return false;
	out->column = (int)number_of(binder, term->args[0]);
	kind = node_column(binder, term->args[0])->kind;
	switch (term->op) {
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
		out->op = term->op == PFS_OP_LIKE ? PFS_SQL_LIKE : PFS_SQL_GLOB;
		return kind == PFS_NODE_BYTES && !term->escape &&
		       take_constant(out, &term->constant);
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
		out->op = term->op == PFS_OP_IS_NULL ? PFS_SQL_IS_NULL : PFS_SQL_NOT_NULL;
		return kind == PFS_NODE_INTEGER || kind == PFS_NODE_BYTES;
	default:
		return false;
	}
}

static void take_nodes(struct pfs_sql_argument *out, const struct pfs_term *term)
{
	int call = term->test == PFS_TEST_UNDER	     ? PFS_CALL_UNDER
		   : term->test == PFS_TEST_CHILD_OF ? PFS_CALL_CHILD_OF
						     : PFS_CALL_ANCESTOR_OF;

	*out = (struct pfs_sql_argument){
		.column = pfs_node_ino, .op = PFS_SQL_FUNCTION + call, .value = term->node};
}

/* Returns true if a scan can test the column's values as the viewer sees them. */
static bool is_scanned(const struct pfs_binder *binder, const struct pfs_sql_argument *argument)
{
	enum pfs_field field = binder->query->connection->table->columns[argument->column].field;

	return field != PFS_FIELD_PREORDER &&
	       !(binder->query->is_limited && pfs_field_is_viewers(field));
}

static bool take_argument(struct pfs_sql_argument *out, const struct pfs_binder *binder,
			  const struct pfs_term *term)
{
	if (term->kind == PFS_BOUND_NODES) {
		take_nodes(out, term);
		return true;
	}
	if (term->kind != PFS_BOUND_STEP || !term->n_args)
		return false;
	return (term->n_args == 2 ? take_comparison(out, binder, term)
				  : take_test(out, binder, term)) &&
	       is_scanned(binder, out);
}

/* True if a scan finds rows by this condition without looking at each, or if the operators cannot
 * test it. */
static bool finds(const struct pfs_binder *binder, const struct pfs_sql_argument *argument)
{
	const struct pfs_node_column *column =
		&binder->query->connection->table->columns[argument->column];

	return argument->op >= PFS_SQL_FUNCTION || column->kind == PFS_NODE_BYTES ||
	       pfs_fields[column->field].operand == PFS_OPERAND_ABSENT ||
	       (argument->op == PFS_SQL_EQ &&
		(column->field == PFS_FIELD_INO || column->field == PFS_FIELD_PARENT));
}

/* What a cursor has not, or would make of all rows for a few: late columns, totals, and made
 * ones. */
static bool has_late(const struct pfs_block *block, const struct pfs_term *term)
{
	bool has = term->kind == PFS_BOUND_MADE ||
		   (term->kind == PFS_BOUND_COLUMN && term->is_late) ||
		   pfs_block_is_total(block, term);

	for (unsigned i = 0; i < term->n_args; i++)
		has |= has_late(block, term->args[i]);
	return has;
}

static size_t count(const struct pfs_term *where)
{
	if (!where || where->kind != PFS_BOUND_STEP || where->op != PFS_OP_AND)
		return where != NULL;
	return count(where->args[0]) + count(where->args[1]);
}

/* False: a condition can be had neither way. */
static bool split(const struct pfs_binder *binder, struct pfs_row_plan *plan,
		  const struct pfs_term *where)
{
	struct pfs_sql_argument *argument = &plan->arguments[plan->n_arguments];

	if (!where)
		return true;
	if (where->kind == PFS_BOUND_STEP && where->op == PFS_OP_AND)
		return split(binder, plan, where->args[0]) && split(binder, plan, where->args[1]);
	*argument = (struct pfs_sql_argument){.op = -1};
	if (plan->n_arguments == ARGUMENTS_MAX || !take_argument(argument, binder, where)) {
		plan->rest[plan->n_rest++] = where;
		plan->is_short = false;
		return !has_late(binder->block, where);
	}
	plan->n_arguments++;
	plan->is_short &= !finds(binder, argument);
	if (plan->is_short)
		plan->rest[plan->n_rest++] = where;
	return true;
}

/* ---- results and order ---- */

static bool take_order(const struct pfs_binder *binder, struct pfs_row_plan *plan)
{
	const struct pfs_block *block = binder->block;

	if (block->n_order > PFS_ORDERS_MAX)
		return false;
	for (; plan->n_order < block->n_order; plan->n_order++) {
		const struct pfs_bound_order *order = &block->order[plan->n_order];
		const struct pfs_node_column *column;

		if (order->value->kind != PFS_BOUND_COLUMN ||
		    order->value->collation != PFS_BINARY ||
		    order->nulls_last != order->is_descending)
			return false;
		column = node_column(binder, order->value);
		if (column->kind == PFS_NODE_ATTR || column->kind == PFS_NODE_OWNER ||
		    column->kind == PFS_NODE_GROUP || !pfs_fields[column->field].is_ordered ||
		    (binder->query->is_limited && pfs_field_is_viewers(column->field)))
			return false;
		plan->order[plan->n_order] = (struct pfs_order){.field = column->field,
								.descending = order->is_descending};
	}
	return true;
}

static bool take_results(const struct pfs_binder *binder, struct pfs_row_plan *plan)
{
	const struct pfs_block *block = binder->block;

	for (; plan->n_columns < block->n_results; plan->n_columns++) {
		const struct pfs_term *result = block->results[plan->n_columns];

		if (result->kind != PFS_BOUND_COLUMN)
			return false;
		plan->columns[plan->n_columns] = (int)number_of(binder, result);
	}
	return true;
}

/* ---- sub-selects ---- */

static bool is_of_nodes(const struct pfs_block *part)
{
	for (size_t i = 0; i < part->n_results; i++) {
		if (part->results[i]->kind != PFS_BOUND_COLUMN || part->results[i]->is_collated)
			return false;
	}
	return part->n_inputs == 1 && part->inputs[0].kind == PFS_INPUT_NODES &&
	       !part->is_grouped && !part->is_distinct && !part->n_order &&
	       part->limit == UINT64_MAX && !part->offset;
}

/* The nodes' own columns, which conditions of the sub-select name, and then those that it shows. */
static void show_columns(struct pfs_input *input, struct pfs_input_column *columns,
			 const struct pfs_block *part)
{
	const struct pfs_input *from = &part->inputs[0];

	for (size_t i = 0; i < from->n_columns; i++) {
		columns[i] = from->columns[i];
		columns[i].name = NULL;
		columns[i].is_hidden = true;
	}
	for (size_t i = 0; i < part->n_results; i++) {
		struct pfs_input_column *column = &columns[from->n_columns + i];

		*column = from->columns[part->results[i]->column];
		column->name = input->columns[i].name;
		column->is_hidden = false;
	}
	input->columns = columns;
	input->n_columns = from->n_columns + part->n_results;
}

int pfs_bind_flatten(struct pfs_binder *binder)
{
	struct pfs_input *input = &binder->block->inputs[0];
	const struct pfs_block *part = input->n_parts == 1 ? input->parts[0] : NULL;
	struct pfs_input_column *columns;

	if (binder->block->n_inputs != 1 || !part || !is_of_nodes(part))
		return 0;
	columns = pfs_bind_get(binder, (part->inputs[0].n_columns + part->n_results + 1) *
					       sizeof(*columns));
	if (!columns)
		return binder->error;
	show_columns(input, columns, part);
	input->kind = PFS_INPUT_NODES;
	input->is_flat = input->is_read = true;
	input->n_parts = 0;
	binder->block->where = part->where;
	binder->block->dropped = part->dropped;
	binder->block->n_dropped = part->n_dropped;
	return 0;
}

/* ---- the whole ---- */

int pfs_bind_rows(struct pfs_binder *binder)
{
	struct pfs_block *block = binder->block;
	size_t n = count(block->where);
	struct pfs_row_plan *plan;

	if (!binder->takes_rows)
		return 0;
	plan = pfs_bind_get(binder, sizeof(*plan));
	if (plan)
		plan->columns =
			pfs_bind_get(binder, (block->n_results + 1) * sizeof(*plan->columns));
	if (plan)
		plan->arguments = pfs_bind_get(binder, (n + 1) * sizeof(*plan->arguments));
	if (plan)
		plan->rest = pfs_bind_get(binder, (n + 1) * sizeof(struct pfs_term *));
	if (!plan || binder->error)
		return binder->error;
	plan->is_short = block->limit != UINT64_MAX && !block->n_order && n;
	if (!block->is_grouped && take_results(binder, plan) && take_order(binder, plan) &&
	    split(binder, plan, block->where))
		block->rows = plan;
	else if (binder->lax)
		pfs_bind_refuse(binder, binder->lax);
	return binder->error;
}
