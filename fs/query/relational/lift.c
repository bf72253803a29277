/* SPDX-License-Identifier: MIT */
/* Sub-selects in expressions.  Each becomes one more source of the SELECT around it: with a row for
 * each key that ties the two together, joined by LEFT JOIN; in the expression a column of that row
 * stands for it, which is NULL where there is none.
 *
 *	EXISTS (SELECT 1 FROM t WHERE k = o AND w), o IN (SELECT k FROM t WHERE w)
 *		LEFT JOIN (SELECT DISTINCT k FROM t WHERE w) ON k = o:  k IS NOT NULL
 *
 *	(SELECT sum(v) FROM t WHERE k = o AND w)
 *		LEFT JOIN (SELECT k, sum(v) FROM t WHERE w GROUP BY k) ON k = o:  its sum
 *
 * What nothing ties to the SELECT around it is a source of one row, which is joined with none.
 *
 * Where NULL might be taken for false, or more than equalities tie the two, the sub-select is
 * refused. */
#include "fs/query/relational/lift.h"

#include <string.h>

#define SET_KEYS_MAX 8

/* ---- what can be lifted ---- */

static bool computes(const struct pfs_items *items)
{
	for (const struct pfs_item *item = items->first; item; item = item->next) {
		if (item->expr && item->expr->kind != PFS_EXPR_COLUMN &&
		    item->expr->kind > PFS_EXPR_BLOB)
			return true;
	}
	return false;
}

/* One SELECT of rows; a LIMIT of one is none. */
static bool is_single(const struct pfs_select *select)
{
	const struct pfs_core *core = select->first;
	bool is_limited = select->limit && (select->limit->kind != PFS_EXPR_INTEGER ||
					    strcmp(select->limit->name->text, "1") != 0);

	return core == select->last && core->results && core->from && !core->group &&
	       !core->having && !core->windows && !is_limited && !select->offset && !select->with;
}

static bool is_aggregate(const struct pfs_expr *expr)
{
	enum pfs_aggregate_op op;

	return expr->kind == PFS_EXPR_CALL && !expr->is_window &&
	       (!expr->items || expr->items->n < 2) &&
	       pfs_aggregate_by_name(&op, expr->name->text, expr->name->len);
}

/* Has one somewhere. */
static bool has_aggregate(const struct pfs_expr *expr)
{
	bool has;

	if (!expr)
		return false;
	has = is_aggregate(expr) || has_aggregate(expr->left) || has_aggregate(expr->right) ||
	      has_aggregate(expr->third);
	for (const struct pfs_item *item = expr->items ? expr->items->first : NULL; item && !has;
	     item = item->next)
		has = has_aggregate(item->expr);
	return has;
}

/* expr IS NOT NULL, or expr NOTNULL. */
static bool is_not_null_test(const struct pfs_expr *expr)
{
	if (expr->kind == PFS_EXPR_IS_NULL)
		return expr->negated;
	return expr->kind == PFS_EXPR_BINARY && expr->op == PFS_AST_IS_NOT &&
	       expr->right->kind == PFS_EXPR_NULL;
}

/* True if one of the conditions that AND ties together in WHERE is that the column is not NULL:
 * then the sub-select has no row in which it is. */
static bool is_tested_not_null(const struct pfs_expr *where, const struct pfs_expr *column)
{
	const struct pfs_expr *tested;

	if (!where || column->kind != PFS_EXPR_COLUMN)
		return false;
	if (where->kind == PFS_EXPR_BINARY && where->op == PFS_AST_AND)
		return is_tested_not_null(where->left, column) ||
		       is_tested_not_null(where->right, column);
	if (!is_not_null_test(where))
		return false;
	tested = where->left;
	return tested->kind == PFS_EXPR_COLUMN && pfs_name_is(tested->name, column->name->text) &&
	       (tested->table ? column->table && pfs_name_is(tested->table, column->table->text)
			      : !column->table);
}

/* ---- EXISTS ---- */

static bool has_nodes(const struct pfs_from *from)
{
	while (from &&
	       (from->kind != PFS_FROM_TABLE || !pfs_name_is(from->name, pfs_nodes_source.name)))
		from = from->next;
	return from != NULL;
}

/* SQLite asks about what it selects, though nobody sees that. */
static void note_results(struct pfs_binder *binder, const struct pfs_core *core)
{
	const struct pfs_node_table *table = binder->query->connection->table;
	bool has_all = has_nodes(core->from);

	for (const struct pfs_item *item = core->results->first; item; item = item->next) {
		for (size_t i = 0; i < table->n; i++) {
			const char *name = table->columns[i].name;

			if (item->expr ? item->expr->kind == PFS_EXPR_COLUMN &&
						 pfs_name_is(item->expr->name, name)
				       : has_all)
				pfs_bind_may_read(binder, pfs_nodes_source.name, name);
		}
	}
}

static struct pfs_expr *lift_exists(struct pfs_lift *lift, const struct pfs_expr *expr)
{
	const struct pfs_select *select = expr->select;
	struct pfs_core source = *select->first;
	struct pfs_binder *binder = lift->binder;
	struct pfs_lifted lifted;
	struct pfs_expr *n = NULL;

	if (!is_single(select) || computes(source.results))
		return pfs_bind_refuse(binder, "EXISTS of more than rows");
	pfs_lifted_begin(&lifted, lift, select->first);
	pfs_lifted_split(&lifted, source.where);
	source.where = lifted.where;
	source.is_distinct = lifted.on != NULL;
	if (!lifted.on)
		n = pfs_lifted_add(&lifted, pfs_lift_call(binder, "count", NULL));
	if (binder->error)
		return NULL;
	note_results(binder, &source);
	pfs_lifted_finish(&lifted, select, &source);
	return lifted.on ? pfs_lift_is_null(binder, pfs_lifted_key(&lifted), true)
			 : pfs_lift_step(binder, PFS_AST_GT, n,
					 pfs_lift_number(binder, PFS_EXPR_INTEGER, "0"));
}

/* ---- IN ---- */

/* What is not one column of rows is a source of its own below. */
static void wrap(struct pfs_binder *binder, struct pfs_core *core, const struct pfs_select *select)
{
	struct pfs_from *from = pfs_bind_get(binder, sizeof(*from));

	if (from)
		*from = (struct pfs_from){.kind = PFS_FROM_SELECT,
					  .select = (struct pfs_select *)select,
					  .span = select->span};
	*core = (struct pfs_core){.span = select->span, .from = from};
}

/* o NOT IN (SELECT k ...), where NULL is as false: there is no k, or neither o nor a k is NULL, and
 * o is not there. */
static struct pfs_expr *is_in_none(struct pfs_lift *lift, const struct pfs_expr *expr,
				   struct pfs_expr *is_missing)
{
	struct pfs_core source = *expr->select->first;
	struct pfs_binder *binder = lift->binder;
	struct pfs_expr *all, *known, *none;
	struct pfs_lifted lifted;

	pfs_lifted_begin(&lifted, lift, expr->select->first);
	all = pfs_lifted_add(&lifted, pfs_lift_call(binder, "count", NULL));
	known = pfs_lifted_add(&lifted,
			       pfs_lift_call(binder, "count", source.results->first->expr));
	source.is_distinct = false;
	pfs_lifted_finish(&lifted, expr->select, &source);
	none = pfs_lift_step(binder, PFS_AST_EQ, all,
			     pfs_lift_number(binder, PFS_EXPR_INTEGER, "0"));
	pfs_lift_and(binder, &is_missing, pfs_lift_is_null(binder, expr->left, true));
	pfs_lift_and(binder, &is_missing, pfs_lift_step(binder, PFS_AST_EQ, all, known));
	return pfs_lift_step(binder, PFS_AST_OR, none, is_missing);
}

static struct pfs_expr *lift_in(struct pfs_lift *lift, const struct pfs_expr *expr,
				bool is_condition)
{
	const struct pfs_select *select = expr->select;
	struct pfs_core source = *select->first;
	struct pfs_binder *binder = lift->binder;
	bool is_plain = is_single(select) && !select->limit && !computes(source.results);
	struct pfs_expr *key = is_plain && source.results->n == 1 ? source.results->first->expr
								  : NULL,
			*is_there;
	const bool is_wrapped = !key;
	struct pfs_lifted lifted;

	if (expr->left->kind != PFS_EXPR_COLUMN || (is_plain && !key))
		return pfs_bind_refuse(binder, "IN of what is no column");
	if (is_wrapped)
		wrap(binder, &source, select);
	pfs_lifted_begin(&lifted, lift, select->first);
	/* A key of NULL is all that is selected. */
	pfs_lifted_add_key(&lifted, key, expr->left, true);
	if (!is_wrapped) {
		pfs_lifted_split(&lifted, source.where);
		source.where = lifted.where;
	}
	lifted.is_once = lifted.results && lifted.results->n == 1;
	source.is_distinct = true;
	pfs_lifted_finish(&lifted, select, &source);
	is_there = pfs_lift_is_null(binder, pfs_lifted_key(&lifted), !expr->negated);
	if ((is_condition && !expr->negated) ||
	    (!is_wrapped && pfs_lift_is_never_null(binder, lift->first, expr->left) &&
	     (pfs_lift_is_never_null(binder, source.from, key) ||
	      is_tested_not_null(select->first->where, key))))
		return is_there;
	if (is_condition && !is_wrapped && !binder->error && lifted.results->n == 1)
		return is_in_none(lift, expr, is_there);
	return pfs_bind_refuse(binder, "IN of what may be NULL");
}

/* ---- values ---- */

/* Nodes by their number: one row at most. */
static bool is_of_one_node(const struct pfs_lifted *lifted)
{
	const struct pfs_from *from = lifted->core->from;
	const struct pfs_expr *key = lifted->results ? lifted->results->first->expr : NULL;

	return key && !from->next && key->kind == PFS_EXPR_COLUMN &&
	       pfs_name_is(key->name, "ino") &&
	       pfs_lift_is_never_null(lifted->lift->binder, from, key);
}

/* An aggregate of no rows is NULL, but for these. */
static struct pfs_expr *or_none(struct pfs_binder *binder, struct pfs_expr *value,
				const struct pfs_expr *of)
{
	bool is_count = pfs_name_is(of->name, "count");
	struct pfs_expr *expr;

	if (!is_count && !pfs_name_is(of->name, "total"))
		return value;
	expr = pfs_lift_call(binder, "coalesce", value);
	if (expr)
		pfs_lift_add(binder, &expr->items,
			     is_count ? pfs_lift_number(binder, PFS_EXPR_INTEGER, "0")
				      : pfs_lift_number(binder, PFS_EXPR_REAL, "0.0"));
	return expr;
}

static struct pfs_expr *lift_value(struct pfs_lift *lift, const struct pfs_expr *expr)
{
	const struct pfs_select *select = expr->select;
	struct pfs_core source = *select->first;
	struct pfs_binder *binder = lift->binder;
	struct pfs_expr *value = source.results && source.results->n == 1
					 ? source.results->first->expr
					 : NULL,
			*column;
	struct pfs_lifted lifted;
	bool is_grouped;

	if (!is_single(select) || !value || source.is_distinct)
		return pfs_bind_refuse(binder, "a sub-select of more than a value");
	pfs_lifted_begin(&lifted, lift, select->first);
	pfs_lifted_split(&lifted, source.where);
	is_grouped = lifted.on && is_aggregate(value);
	if (!binder->error && lifted.on &&
	    (pfs_lifted_names_outer(&lifted, value) ||
	     (!is_grouped && (has_aggregate(value) || !is_of_one_node(&lifted)))))
		pfs_bind_refuse(binder,
				"a sub-select that is no aggregate of what a column is tied to");
	for (const struct pfs_item *item = is_grouped ? lifted.results->first : NULL;
	     item && !binder->error; item = item->next)
		pfs_lift_add(binder, &source.group, item->expr);
	column = pfs_lifted_add(&lifted, value);
	source.where = lifted.where;
	pfs_lifted_finish(&lifted, select, &source);
	return is_grouped ? or_none(binder, column, value) : column;
}

/* ---- expressions ---- */

static bool has_select(const struct pfs_expr *expr);

static bool any_has_select(const struct pfs_items *items)
{
	for (const struct pfs_item *item = items ? items->first : NULL; item; item = item->next) {
		if (has_select(item->expr))
			return true;
	}
	return false;
}

static bool has_select(const struct pfs_expr *expr)
{
	if (!expr)
		return false;
	return expr->kind == PFS_EXPR_IN_SELECT || expr->kind == PFS_EXPR_EXISTS ||
	       expr->kind == PFS_EXPR_SELECT || has_select(expr->left) || has_select(expr->right) ||
	       has_select(expr->third) || any_has_select(expr->items);
}

static struct pfs_expr *lift_expr(struct pfs_lift *lift, struct pfs_expr *expr, bool is_condition);

static struct pfs_items *lift_items(struct pfs_lift *lift, const struct pfs_items *items)
{
	struct pfs_items *copy = pfs_bind_get(lift->binder, sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *items;
	copy->first = copy->last = NULL;
	copy->n = 0;
	for (const struct pfs_item *item = items->first; item; item = item->next) {
		pfs_lift_add(lift->binder, &copy, lift_expr(lift, item->expr, false));
		if (lift->binder->error)
			return NULL;
		copy->last->table = item->table;
		copy->last->alias = item->alias;
		copy->last->span = item->span;
	}
	return copy;
}

/* is_condition: NULL is as false there. */
static struct pfs_expr *lift_expr(struct pfs_lift *lift, struct pfs_expr *expr, bool is_condition)
{
	struct pfs_expr *copy;
	bool is_junction;

	if (lift->binder->error || !has_select(expr))
		return expr;
	switch (expr->kind) {
	case PFS_EXPR_EXISTS:
		return lift_exists(lift, expr);
	case PFS_EXPR_IN_SELECT:
		return lift_in(lift, expr, is_condition);
	case PFS_EXPR_SELECT:
		return lift_value(lift, expr);
	default:
		break;
	}
	copy = pfs_bind_get(lift->binder, sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *expr;
	is_junction = expr->kind == PFS_EXPR_BINARY &&
		      (expr->op == PFS_AST_AND || expr->op == PFS_AST_OR);
	copy->left = lift_expr(lift, expr->left, is_condition && is_junction);
	copy->right = lift_expr(lift, expr->right, is_condition && is_junction);
	copy->third = lift_expr(lift, expr->third, false);
	if (expr->items)
		copy->items = lift_items(lift, expr->items);
	return copy;
}

/* ---- the SELECT ---- */

/* Copies its sources, so that others can stand behind them. */
static void begin(struct pfs_lift *lift, struct pfs_binder *binder, const struct pfs_from *from)
{
	*lift = (struct pfs_lift){.binder = binder};
	for (; from; from = from->next) {
		struct pfs_from *copy = pfs_bind_get(binder, sizeof(*copy));

		if (!copy)
			return;
		*copy = *from;
		copy->next = NULL;
		if (lift->last)
			lift->last->next = copy;
		else
			lift->first = copy;
		lift->last = copy;
		lift->n++;
	}
}

/* Refuses what is tied to rows, of the sources behind that one. */
static void take_values(struct pfs_binder *binder, const struct pfs_from *last, const char *why)
{
	for (const struct pfs_from *from = last ? last->next : NULL; from && !binder->error;
	     from = from->next) {
		if (from->on)
			pfs_bind_refuse(binder, why);
	}
}

/* ---- INTERSECT and EXCEPT ---- */

/* A SELECT of columns that are never NULL, so that a row that is equal to another one is found by
 * these; only they are compared. */
static bool has_keys(struct pfs_binder *binder, const struct pfs_core *core)
{
	if (!core->results || core->group || core->having || core->windows ||
	    core->results->n > SET_KEYS_MAX)
		return false;
	for (const struct pfs_item *item = core->results->first; item; item = item->next) {
		if (!item->expr || !pfs_lift_is_never_null(binder, core->from, item->expr))
			return false;
	}
	return true;
}

static bool has_columns(const struct pfs_core *core, size_t n)
{
	return core->results && core->from && !core->group && !core->having && !core->windows &&
	       core->results->n == n && !computes(core->results);
}

int pfs_bind_lift_set(struct pfs_binder *binder, const struct pfs_core **out,
		      const struct pfs_core *first, const struct pfs_core *second)
{
	struct pfs_core source = *second, *copy;
	struct pfs_select *select;
	const struct pfs_item *own;
	struct pfs_lifted lifted;
	struct pfs_lift lift;

	*out = NULL;
	if (!has_keys(binder, first) || !has_columns(second, first->results->n))
		return binder->error;
	copy = pfs_bind_get(binder, sizeof(*copy));
	select = pfs_bind_get(binder, sizeof(*select));
	begin(&lift, binder, first->from);
	if (binder->error)
		return binder->error;
	select->span = second->span;
	*copy = *first;
	copy->from = lift.first;
	copy->compound = PFS_COMPOUND_NONE;
	copy->next = NULL;
	pfs_lifted_begin(&lifted, &lift, second);
	own = second->results->first;
	for (const struct pfs_item *item = first->results->first; item;
	     item = item->next, own = own->next)
		pfs_lifted_add_key(&lifted, own->expr, item->expr, true);
	lifted.is_once = source.is_distinct = copy->is_distinct = true;
	pfs_lifted_finish(&lifted, select, &source);
	pfs_lift_and(binder, &copy->where,
		     pfs_lift_is_null(binder, pfs_lifted_key(&lifted),
				      second->compound == PFS_INTERSECT));
	*out = copy;
	return binder->error;
}

int pfs_bind_lift(struct pfs_binder *binder, const struct pfs_core **core,
		  const struct pfs_select *end)
{
	const struct pfs_core *old = *core;
	bool wants_first_rows = end && end->limit && !end->order && !old->group;
	const struct pfs_from *last;
	struct pfs_core *copy;
	struct pfs_lift lift;

	if (binder->is_said ||
	    (!any_has_select(old->results) && !has_select(old->where) && !has_select(old->having)))
		return 0;
	copy = pfs_bind_get(binder, sizeof(*copy));
	begin(&lift, binder, old->from);
	if (binder->error)
		return binder->error;
	*copy = *old;
	copy->from = lift.first;
	last = lift.last;
	copy->where = lift_expr(&lift, old->where, true);
	if (wants_first_rows && !binder->error) /* they need not wait for all keys */
		take_values(binder, last, "few rows of many, with what is tied to them");
	last = lift.last;
	if (any_has_select(old->results))
		copy->results = lift_items(&lift, old->results);
	copy->having = lift_expr(&lift, old->having, false);
	if (old->group && !binder->error)
		take_values(binder, last, "a sub-select that is tied to a group");
	*core = copy;
	return binder->error;
}
