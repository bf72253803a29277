/* SPDX-License-Identifier: MIT */
/* Which of a statement's constraints the image answers, and what that costs. */
#include "fs/query/internal.h"

#include "base/checked.h"
#include "fs/nodes/relation.h"

#define SMALL_PART 64 /* of all nodes; listing a subtree below that costs next to nothing */

const struct pfs_node_column *pfs_push_column(const struct pfs_node_table *table, int column)
{
	return &table->columns[column < 0 ? pfs_node_ino : column];
}

static bool is_text(const struct pfs_sql_value *value)
{
	return value && value->type == PFS_SQL_TEXT;
}

static bool takes_text(const struct pfs_sql_constraint *constraint)
{
	switch (constraint->op) {
	case PFS_SQL_EQ:
	case PFS_SQL_IS:
	case PFS_SQL_GLOB:
	case PFS_SQL_LIKE:
	case PFS_SQL_IS_NULL:
	case PFS_SQL_NOT_NULL:
		return true;
	case PFS_SQL_NE:
	case PFS_SQL_LT:
	case PFS_SQL_LE:
	case PFS_SQL_GT:
	case PFS_SQL_GE:
		return is_text(constraint->value);
	default:
		return false;
	}
}

static bool takes_type(const struct pfs_sql_constraint *constraint)
{
	return constraint->op == PFS_SQL_EQ || constraint->op == PFS_SQL_IS ||
	       (constraint->op == PFS_SQL_NE && is_text(constraint->value));
}

static void decide(const struct pfs_query *query, const struct pfs_node_column *column,
		   struct pfs_sql_constraint *constraint)
{
	bool literal = is_text(constraint->value) || constraint->op == PFS_SQL_IS_NULL ||
		       constraint->op == PFS_SQL_NOT_NULL;

	if ((query->is_limited && pfs_field_is_viewers(column->field)) ||
	    (column->kind != PFS_NODE_INTEGER && pfs_is_selected_member(query, constraint)))
		return; /* the image's values are of all nodes: only gathered ones are the
			 * viewer's */
	if (column->kind != PFS_NODE_ATTR &&
	    pfs_fields[column->field].source == PFS_SOURCE_COMPARED)
		return; /* it may change while nothing of the image does */
	switch (column->kind) {
	case PFS_NODE_INTEGER:
		constraint->take =
			constraint->op <= PFS_SQL_NOT_NULL ||
			(constraint->op >= PFS_SQL_FUNCTION && column->field == PFS_FIELD_INO);
		constraint->exact = constraint->take;
		break;
	case PFS_NODE_BYTES:
		constraint->take = column->field != PFS_FIELD_PREORDER && takes_text(constraint);
		constraint->exact = constraint->take && literal;
		break;
	case PFS_NODE_TYPE:
		constraint->take = takes_type(constraint);
		constraint->exact = constraint->take && literal;
		break;
	default:
		break;
	}
}

/* About what share of the nodes a constraint leaves, and what finding them costs, a row being 1. */
struct guess {
	double share; /* of all */
	double rows;  /* at most; 0: no bound */
	double work;  /* per node of the tree, if nothing better bounds the scan */
};

/* If the subtree is a known range of slots, its exact size.  Only for viewers who see every
 * node. */
static struct guess guess_under(const struct pfs_query *query, const struct pfs_sql_value *top)
{
	struct guess guess = {.share = 0.05, .work = 0.005};
	uint32_t slot = PFS_NO_SLOT, span = 0;

	if (!top || query->is_limited)
		return guess;
	if (!query->holds)
		(void)pfs_scan_lock(query->tree, __func__);
	if (top->type == PFS_SQL_TEXT)
		slot = pfs_relation_resolve(query->tree, NULL, top->bytes, top->size);
	else if (top->type == PFS_SQL_INTEGER)
		slot = pfs_scan_slot_of(query->tree, (uint64_t)top->integer);
	if (slot != PFS_NO_SLOT)
		span = pfs_scan_span(query->tree, slot);
	if (!query->holds)
		pfs_scan_unlock(query->tree);
	if (span && span < (double)query->n_nodes / SMALL_PART)
		guess.rows = span;
	else if (span)
		guess.share = PFS_MIN(span / (double)query->n_nodes, 1);
	return guess;
}

static struct guess guess_call(const struct pfs_query *query,
			       const struct pfs_sql_constraint *constraint)
{
	switch (constraint->op - PFS_SQL_FUNCTION) {
	case PFS_CALL_CHILD_OF:
		return (struct guess){.rows = 20};
	case PFS_CALL_ANCESTOR_OF:
		return (struct guess){.rows = 10};
	default:
		return guess_under(query, constraint->value);
	}
}

static struct guess guess_one(enum pfs_field field, int op)
{
	bool equal = op == PFS_SQL_EQ || op == PFS_SQL_IS;

	if (equal && pfs_fields[field].values == PFS_VALUES_ALL)
		return (struct guess){.rows = 1};
	if (equal && field == PFS_FIELD_PARENT)
		return (struct guess){.rows = 20};
	if (equal)
		return (struct guess){.share = pfs_field_is_bytes(field) ? 0.001 : 0.05,
				      .work = 0.01};
	if (op == PFS_SQL_GLOB || op == PFS_SQL_LIKE)
		return (struct guess){.share = 0.05, .work = 0.05};
	if (op == PFS_SQL_NE || op == PFS_SQL_NOT_NULL)
		return (struct guess){.share = 0.9, .work = 0.01};
	return (struct guess){.share = 0.25, .work = 0.01};
}

static void estimate(struct pfs_sql_plan *plan, const struct pfs_query *query)
{
	const struct pfs_node_table *table = query->connection->table;
	double nodes = (double)query->n_nodes;
	double rows = nodes, work = 0.002 * nodes;
	bool found = false; /* by an index */

	for (size_t i = 0; i < plan->n; i++) {
		const struct pfs_sql_constraint *constraint = &plan->constraints[i];
		int column = constraint->column < 0 ? pfs_node_ino : constraint->column;
		struct guess guess;

		if (!constraint->take)
			continue;
		guess = constraint->op >= PFS_SQL_FUNCTION
				? guess_call(query, constraint)
				: guess_one(table->columns[column].field, constraint->op);
		if (guess.rows > 0) {
			rows = PFS_MIN(rows, guess.rows);
			found = true;
		} else {
			rows *= guess.share;
			work += guess.work * nodes;
		}
		/* NOLINTNEXTLINE(clang-diagnostic-float-equal): as it was set */
		plan->unique |= guess.rows == 1 && constraint->op < PFS_SQL_FUNCTION;
	}
	plan->rows = (int64_t)PFS_MAX(rows, 1);
	plan->cost = PFS_MAX(rows, 1) + (found ? 2 : work + 20);
}

/* Returns true if the image has what it takes to order: no attributes and names of owners, nor
 * totals for a viewer who does not see all. */
static bool can_order(const struct pfs_query *query, const struct pfs_sql_plan *plan)
{
	const struct pfs_node_table *table = query->connection->table;

	if (!plan->n_order || plan->n_order > PFS_ORDERS_MAX)
		return false;
	for (size_t i = 0; i < plan->n_order; i++) {
		const struct pfs_node_column *column =
			pfs_push_column(table, plan->order[i].column);

		if (column->kind == PFS_NODE_ATTR || column->kind == PFS_NODE_OWNER ||
		    column->kind == PFS_NODE_GROUP || !pfs_fields[column->field].is_ordered)
			return false;
		if (query->is_limited && pfs_field_is_viewers(column->field))
			return false;
	}
	return true;
}

/* To SQLite a statement uses what it is ordered by: that is not made unless it is asked for. */
static void spare_preorder(struct pfs_sql_plan *plan, const struct pfs_node_table *table)
{
	for (size_t i = 0; i < plan->n_order; i++) {
		int column = plan->order[i].column;

		if (column >= 0 && table->columns[column].field == PFS_FIELD_PREORDER)
			plan->columns &= ~(UINT64_C(1) << column);
	}
}

/* Beside which SQLite shows the range of what begins as its pattern. */
static bool has_glob(const struct pfs_sql_plan *plan, int column)
{
	for (size_t i = 0; i < plan->n; i++)
		if (plan->constraints[i].op == PFS_SQL_GLOB &&
		    plan->constraints[i].column == column)
			return true;
	return false;
}

void pfs_push_plan(void *user, struct pfs_sql_plan *plan)
{
	struct pfs_query *query = user;
	const struct pfs_node_table *table = query->connection->table;

	for (size_t i = 0; i < plan->n; i++) {
		struct pfs_sql_constraint *constraint = &plan->constraints[i];
		int column = constraint->column < 0 ? pfs_node_ino : constraint->column;

		decide(query, &table->columns[column], constraint);
		if ((constraint->op == PFS_SQL_GE || constraint->op == PFS_SQL_LT) &&
		    has_glob(plan, constraint->column))
			constraint->take = constraint->exact = false;
	}
	plan->ordered = can_order(query, plan);
	if (plan->ordered)
		spare_preorder(plan, table);
	plan->id = query->connection->plan_ids++;
	estimate(plan, query);
}
