/* SPDX-License-Identifier: MIT */
/* Functions, aggregates, functions of windows, and CASE. */
#include "fs/query/relational/bind.h"

#include <string.h>

#define WINDOWS_MAX	     8
#define WINDOW_FUNCTIONS_MAX 64

static struct pfs_term *choose(struct pfs_binder *binder, struct pfs_term *condition,
			       struct pfs_term *yes, struct pfs_term *no)
{
	struct pfs_term *bound;

	if (!condition || !yes || !no)
		return NULL;
	if (!pfs_bound_is_number(condition) || !pfs_bound_is_number(yes) ||
	    !pfs_bound_is_number(no) || condition->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "CASE of texts");
	bound = pfs_bound_step(binder, PFS_OP_CHOOSE, PFS_CLASS_NUMBER, condition, yes);
	return bound ? pfs_term_add(binder, bound, no) : NULL;
}

struct pfs_term *pfs_bind_whens(struct pfs_binder *binder, const struct pfs_expr *expr,
				const struct pfs_item *item)
{
	struct pfs_term *condition, *yes, *no;

	if (!item)
		return expr->right ? pfs_bind_expr(binder, expr->right) : pfs_term_null(binder);
	condition = pfs_bind_expr(binder, item->expr);
	if (expr->left)
		condition = pfs_bind_comparison(binder, PFS_OP_EQ,
						pfs_bind_expr(binder, expr->left), condition);
	yes = condition ? pfs_bind_expr(binder, item->next->expr) : NULL;
	no = yes ? pfs_bind_whens(binder, expr, item->next->next) : NULL;
	return choose(binder, condition, yes, no);
}

static bool is_same_aggregate(const struct pfs_bound_aggregate *a,
			      const struct pfs_bound_aggregate *b)
{
	const struct pfs_constant *x = &a->separator, *y = &b->separator;

	return a->op == b->op && x->len == y->len &&
	       (!x->len || memcmp(x->text, y->text, x->len) == 0) &&
	       (a->arg == b->arg || (a->arg && b->arg && pfs_bound_equals(a->arg, b->arg)));
}

static struct pfs_term *add_aggregate(struct pfs_binder *binder,
				      const struct pfs_bound_aggregate *aggregate)
{
	const struct pfs_aggregate_traits *traits = &pfs_aggregate_traits[aggregate->op];
	const struct pfs_term *arg = aggregate->arg;
	struct pfs_block *block = binder->block;
	struct pfs_term *bound = pfs_term_new(binder, PFS_BOUND_AGGREGATE, PFS_CLASS_NUMBER);
	size_t i = 0;

	if (!bound)
		return NULL;
	while (i < block->n_aggregates && !is_same_aggregate(&block->aggregates[i], aggregate))
		i++;
	if (i == PFS_AGGREGATES_MAX)
		return pfs_bind_refuse(binder, "very many aggregates");
	if (i == block->n_aggregates)
		block->aggregates[block->n_aggregates++] = *aggregate;
	bound->aggregate = i;
	bound->can_be_null = !traits->is_zero_of_none;
	if (traits->result == PFS_RESULT_TEXT)
		bound->class = PFS_CLASS_TEXT;
	if (arg && pfs_fold_of(aggregate->op)->is_end)
		bound->class = arg->class; /* and not its collation: an aggregate has none */
	return bound;
}

/* FILTER leaves out rows: as if the argument were NULL there. */
static struct pfs_term *filtered(struct pfs_binder *binder, const struct pfs_expr *filter,
				 struct pfs_term *arg)
{
	struct pfs_term *condition = pfs_bind_condition(binder, filter);

	if (!condition)
		return NULL;
	if (!arg)
		arg = pfs_term_integer(binder, 1);
	return arg ? choose(binder, condition, arg, pfs_term_null(binder)) : NULL;
}

static const struct pfs_bound_aggregate count_all = {.op = PFS_COUNT_ALL};

/* Whether the aggregate takes such an argument; a constant one only counts rows. */
static struct pfs_term *bind_argument(struct pfs_binder *binder,
				      const struct pfs_bound_aggregate *aggregate)
{
	const struct pfs_term *arg = aggregate->arg;

	if (arg->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "an aggregate of NULL");
	if (arg->kind == PFS_BOUND_CONSTANT && aggregate->op == PFS_COUNT)
		return add_aggregate(binder, &count_all);
	if (arg->kind == PFS_BOUND_CONSTANT)
		return pfs_bind_refuse(binder, "an aggregate of a constant");
	if (arg->is_collated &&
	    (aggregate->op == PFS_GROUP_CONCAT || pfs_fold_of(aggregate->op)->is_end))
		return pfs_bind_refuse(binder, "an aggregate that hands a collation on");
	if (!pfs_bound_is_number(arg) && pfs_fold_of(aggregate->op)->takes == PFS_TAKES_NUMBERS)
		return pfs_bind_refuse(binder, "a sum of texts");
	return add_aggregate(binder, aggregate);
}

/* What stands between the values: a comma, if nothing is said. */
static void bind_separator(struct pfs_binder *binder, struct pfs_constant *out,
			   const struct pfs_expr *expr)
{
	const struct pfs_term *separator;

	*out = (struct pfs_constant){.type = PFS_IS_TEXT, .text = ",", .len = 1};
	if (!expr->items || expr->items->n < 2)
		return;
	separator = pfs_bind_expr(binder, expr->items->last->expr);
	if (!separator)
		return;
	*out = separator->constant;
	if (separator->kind != PFS_BOUND_CONSTANT || separator->class != PFS_CLASS_TEXT ||
	    separator->is_collated)
		pfs_bind_refuse(binder, "group_concat with what is no constant text between");
}

static struct pfs_term *bind_aggregate(struct pfs_binder *binder, const struct pfs_expr *expr,
				       enum pfs_aggregate_op op)
{
	struct pfs_bound_aggregate aggregate = {.op = op};
	bool counts_rows = expr->is_star || !expr->items;

	if (!binder->takes_aggregates || binder->in_aggregate)
		return pfs_bind_refuse(binder, "an aggregate where none can be");
	if (counts_rows && op != PFS_COUNT)
		return pfs_bind_refuse(binder, "an aggregate of nothing");
	if (expr->is_distinct && op == PFS_COUNT)
		aggregate.op = PFS_COUNT_DISTINCT;
	else if (expr->is_distinct && !pfs_fold_of(op)->is_end)
		return pfs_bind_refuse(binder, "DISTINCT in an aggregate other than count");
	binder->in_aggregate = true;
	if (!counts_rows)
		aggregate.arg = pfs_bind_expr(binder, expr->items->first->expr);
	if (expr->left && !binder->error)
		aggregate.arg = filtered(binder, expr->left, aggregate.arg);
	if (op == PFS_GROUP_CONCAT)
		bind_separator(binder, &aggregate.separator, expr);
	binder->in_aggregate = false;
	if (binder->error)
		return NULL;
	return aggregate.arg ? bind_argument(binder, &aggregate)
			     : add_aggregate(binder, &count_all);
}

/* under(ino, X) and its like, of a column `ino` of nodes and a constant. */
static struct pfs_term *bind_relation(struct pfs_binder *binder, const struct pfs_expr *expr,
				      enum pfs_test test)
{
	struct pfs_term *ino, *node, *bound;

	if (!expr->items || expr->items->n != 2)
		return pfs_bind_refuse(binder, "a function of the tree");
	ino = pfs_bind_expr(binder, expr->items->first->expr);
	node = ino ? pfs_bind_expr(binder, expr->items->last->expr) : NULL;
	if (!node)
		return NULL;
	if (ino->kind != PFS_BOUND_COLUMN || node->kind != PFS_BOUND_CONSTANT ||
	    binder->block->inputs[ino->input].kind != PFS_INPUT_NODES ||
	    binder->block->inputs[ino->input].columns[ino->column].wish.field != PFS_FIELD_INO ||
	    (node->constant.type != PFS_IS_INTEGER && node->constant.type != PFS_IS_TEXT))
		return pfs_bind_refuse(binder, "a function of the tree with what is no constant");
	if (binder->block->inputs[ino->input].is_left) /* NULL, where there is no row */
		return pfs_bind_refuse(binder, "a function of the tree after a LEFT JOIN");
	bound = pfs_term_new(binder, PFS_BOUND_NODES, PFS_CLASS_TRUTH);
	if (!bound)
		return NULL;
	bound->input = ino->input;
	bound->test = test;
	bound->node.type = node->constant.type == PFS_IS_TEXT ? PFS_SQL_TEXT : PFS_SQL_INTEGER;
	if (node->constant.type == PFS_IS_TEXT)
		bound->node.bytes = node->constant.text;
	else
		bound->node.integer = node->constant.integer;
	bound->node.size = node->constant.len;
	return bound;
}

/* The first of two that is not NULL; the second is NULL in its stead. */
static struct pfs_term *bind_coalesce(struct pfs_binder *binder, const struct pfs_item *item)
{
	struct pfs_term *first = pfs_bind_expr(binder, item->expr), *rest, *is_there;

	if (!first || !item->next)
		return first;
	rest = bind_coalesce(binder, item->next);
	if (!rest)
		return NULL;
	if (first->class == PFS_CLASS_NONE)
		return pfs_bind_refuse(binder, "coalesce of NULL");
	is_there = pfs_bound_step(binder, PFS_OP_NOT_NULL, PFS_CLASS_TRUTH, first, NULL);
	return choose(binder, is_there, first, rest);
}

static struct pfs_term *bind_length(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *text = pfs_bind_expr(binder, expr->items->first->expr);

	if (!text)
		return NULL;
	if (text->class != PFS_CLASS_TEXT ||
	    (text->kind != PFS_BOUND_COLUMN && text->kind != PFS_BOUND_MADE &&
	     text->kind != PFS_BOUND_AGGREGATE && text->kind != PFS_BOUND_PRINTED))
		return pfs_bind_refuse(binder,
				       "the length of what is no column or aggregate of texts");
	return pfs_bound_step(binder, PFS_OP_LENGTH, PFS_CLASS_NUMBER, text, NULL);
}

/* Adds a value that printf() prints by that conversion. SQLite would take a number from the text
 * that a conversion of numbers is given. */
static struct pfs_term *add_printed(struct pfs_binder *binder, struct pfs_term *bound,
				    const struct pfs_sql_piece *piece, struct pfs_term *value)
{
	bool is_number = pfs_bound_is_number(value);

	if (value->kind == PFS_BOUND_CONSTANT || value->is_late || value->is_collated)
		return pfs_bind_refuse(binder, "printf of a constant, a path or a target");
	if (!is_number && piece->what != PFS_SQL_AS_TEXT)
		return pfs_bind_refuse(binder, "printf of a text as a number");
	return pfs_term_add(binder, bound, value);
}

/* printf() of numbers and texts. */
static struct pfs_term *bind_printed(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	const struct pfs_item *item = expr->items->first;
	struct pfs_term *text = pfs_bind_expr(binder, item->expr);
	struct pfs_term *bound =
		text ? pfs_term_new(binder, PFS_BOUND_PRINTED, PFS_CLASS_TEXT) : NULL;
	struct pfs_sql_format *format = bound ? pfs_bind_get(binder, sizeof(*format)) : NULL;

	if (!format)
		return NULL;
	if (text->kind != PFS_BOUND_CONSTANT || text->class != PFS_CLASS_TEXT ||
	    text->is_collated ||
	    !pfs_sql_format_take(format, text->constant.text, text->constant.len) ||
	    format->n_values != expr->items->n - 1 || format->n_values > PFS_TERM_ARGS_MAX)
		return pfs_bind_refuse(binder, "printf by another format");
	for (size_t i = 0; i < format->n_pieces && bound; i++) {
		struct pfs_term *value;

		if (format->pieces[i].what == PFS_SQL_AS_IS)
			continue;
		item = item->next;
		value = pfs_bind_expr(binder, item->expr);
		bound = value ? add_printed(binder, bound, &format->pieces[i], value) : NULL;
	}
	if (!bound)
		return NULL;
	bound->format = format;
	bound->constant = text->constant;
	binder->block->n_printed += 1 + bound->n_args;
	return bound;
}

static struct pfs_term *bind_text(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_term *args[PFS_TEXT_ARGS_MAX];
	size_t n = 0;

	for (const struct pfs_item *item = expr->items ? expr->items->first : NULL; item;
	     item = item->next) {
		args[n] = pfs_bind_expr(binder, item->expr);
		if (!args[n++])
			return NULL;
	}
	return pfs_bind_text(binder, expr->name, args, n);
}

/* ---- windows ---- */

static void add_window_key(struct pfs_binder *binder, struct pfs_bound_window *window,
			   const struct pfs_item *item, bool is_of_partition)
{
	struct pfs_term *value = pfs_bind_expr(binder, item->expr);

	if (!value)
		return;
	if (value->is_late)
		pfs_bind_refuse(binder, "a window by a path or target");
	if (value->kind == PFS_BOUND_CONSTANT)
		return; /* all have it */
	window->n_partition += is_of_partition;
	window->keys[window->n_keys++] = (struct pfs_bound_order){
		.value = value,
		.is_descending = item->is_descending,
		.nulls_last = item->nulls == PFS_NULLS_DEFAULT ? item->is_descending
							       : item->nulls == PFS_NULLS_LAST,
	};
}

static void bind_window_keys(struct pfs_binder *binder, struct pfs_bound_window *window,
			     const struct pfs_expr *expr)
{
	const struct pfs_item *item = expr->over ? expr->over->first : NULL;
	size_t n = (size_t)expr->n_partition + expr->n_order;

	window->keys = pfs_bind_get(binder, (n + 1) * sizeof(*window->keys));
	for (size_t i = 0; item && i < n && !binder->error; i++, item = item->next)
		add_window_key(binder, window, item, i < expr->n_partition);
}

static bool is_same_window(const struct pfs_bound_window *a, const struct pfs_bound_window *b)
{
	if (a->n_keys != b->n_keys || a->n_partition != b->n_partition)
		return false;
	for (size_t i = 0; i < a->n_keys; i++) {
		if (!pfs_bound_equals(a->keys[i].value, b->keys[i].value) ||
		    a->keys[i].is_descending != b->keys[i].is_descending ||
		    a->keys[i].nulls_last != b->keys[i].nulls_last)
			return false;
	}
	return true;
}

/* The block's window of these keys, which may be new. */
static struct pfs_bound_window *find_window(struct pfs_binder *binder,
					    const struct pfs_bound_window *window)
{
	struct pfs_block *block = binder->block;
	struct pfs_bound_window *own;
	size_t i = 0;

	while (i < block->n_windows && !is_same_window(&block->windows[i], window))
		i++;
	if (i == WINDOWS_MAX)
		return pfs_bind_refuse(binder, "very many windows");
	if (!block->windows)
		block->windows = pfs_bind_get(binder, WINDOWS_MAX * sizeof(*block->windows));
	if (binder->error)
		return NULL;
	own = &block->windows[i];
	if (i == block->n_windows) {
		*own = *window;
		own->functions =
			pfs_bind_get(binder, WINDOW_FUNCTIONS_MAX * sizeof(*own->functions));
		block->n_windows++;
	}
	return binder->error ? NULL : own;
}

static bool find_window_op(enum pfs_window_op *op, const struct pfs_expr *expr)
{
	unsigned i = 0;

	while (i < PFS_N_WINDOWS && !pfs_name_is(expr->name, pfs_window_traits[i].name))
		i++;
	*op = i;
	return i < PFS_N_WINDOWS;
}

/* The number of NTILE, LAG and LEAD. */
static void bind_distance(struct pfs_binder *binder, struct pfs_bound_function *function,
			  const struct pfs_item *item)
{
	struct pfs_term *number = pfs_bind_expr(binder, item->expr);

	if (!number)
		return;
	function->distance = number->constant.integer;
	if (number->kind != PFS_BOUND_CONSTANT || number->constant.type != PFS_IS_INTEGER ||
	    function->distance < (function->op == PFS_NTILE))
		pfs_bind_refuse(binder, "a window's function with what is no number of rows");
}

static void bind_window_argument(struct pfs_binder *binder, struct pfs_bound_function *function,
				 const struct pfs_item *item)
{
	struct pfs_term *arg = pfs_bind_expr(binder, item->expr);

	if (!arg)
		return;
	function->arg = arg;
	if (!pfs_bound_is_number(arg) || arg->class == PFS_CLASS_NONE ||
	    arg->kind == PFS_BOUND_CONSTANT || arg->is_late)
		pfs_bind_refuse(binder, "a window's function of a text or a constant");
}

static void bind_window_arguments(struct pfs_binder *binder, struct pfs_bound_function *function,
				  const struct pfs_expr *expr)
{
	const struct pfs_item *item = expr->items ? expr->items->first : NULL;
	bool has_distance =
		function->op == PFS_NTILE || function->op == PFS_LAG || function->op == PFS_LEAD;

	if (function->op == PFS_WINDOW_COUNT && !item) {
		function->op = PFS_WINDOW_TUPLES;
		return;
	}
	function->distance = 1;
	if (pfs_window_traits[function->op].has_argument && item) {
		bind_window_argument(binder, function, item);
		item = item->next;
	} else if (pfs_window_traits[function->op].has_argument) {
		pfs_bind_refuse(binder, "a window's function of nothing");
	}
	if (has_distance && item) {
		bind_distance(binder, function, item);
		item = item->next;
	}
	if (item)
		pfs_bind_refuse(binder, "a window's function with a default");
}

static struct pfs_term *add_function(struct pfs_binder *binder,
				     const struct pfs_bound_window *window,
				     const struct pfs_bound_function *function)
{
	struct pfs_bound_window *own = find_window(binder, window);
	struct pfs_term *bound;

	if (!own)
		return NULL;
	if (own->n_functions == WINDOW_FUNCTIONS_MAX)
		return pfs_bind_refuse(binder, "very many functions of a window");
	bound = pfs_term_new(binder, PFS_BOUND_WINDOW, PFS_CLASS_NUMBER);
	if (binder->error)
		return NULL;
	bound->aggregate =
		(size_t)(own - binder->block->windows) * WINDOW_FUNCTIONS_MAX + own->n_functions;
	bound->can_be_null = function->arg != NULL;
	own->functions[own->n_functions] = *function;
	own->functions[own->n_functions++].term = bound;
	return bound;
}

static struct pfs_term *bind_window(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	struct pfs_bound_window window = {.keys = NULL};
	struct pfs_bound_function function = {.arg = NULL};

	if (!binder->takes_aggregates || binder->in_aggregate)
		return pfs_bind_refuse(binder, "a window where none can be");
	if (!expr->is_plain_window || expr->left || expr->is_distinct ||
	    !find_window_op(&function.op, expr))
		return pfs_bind_refuse(binder, "a window of another kind");
	binder->in_aggregate = true;
	bind_window_arguments(binder, &function, expr);
	if (!binder->error)
		bind_window_keys(binder, &window, expr);
	binder->in_aggregate = false;
	return binder->error ? NULL : add_function(binder, &window, &function);
}

/* ---- any of them ---- */

struct pfs_term *pfs_bind_call(struct pfs_binder *binder, const struct pfs_expr *expr)
{
	static const struct {
		const char *name;
		enum pfs_test test;
	} relations[] = {{"under", PFS_TEST_UNDER},
			 {"child_of", PFS_TEST_CHILD_OF},
			 {"ancestor_of", PFS_TEST_ANCESTOR_OF}};
	size_t n = expr->items ? expr->items->n : 0;
	enum pfs_aggregate_op op;

	if (expr->is_window)
		return bind_window(binder, expr);
	if (n <= 2 && pfs_aggregate_by_name(&op, expr->name->text, expr->name->len) &&
	    (n < 2 || op == PFS_GROUP_CONCAT))
		return bind_aggregate(binder, expr, op);
	if (expr->left || expr->is_distinct)
		return pfs_bind_refuse(binder, "an aggregate of another kind");
	for (size_t i = 0; i < PFS_COUNT(relations); i++) {
		if (pfs_name_is(expr->name, relations[i].name))
			return bind_relation(binder, expr, relations[i].test);
	}
	if (n == 1 && pfs_name_is(expr->name, "length"))
		return bind_length(binder, expr);
	if (n >= 2 && (pfs_name_is(expr->name, "printf") || pfs_name_is(expr->name, "format")))
		return bind_printed(binder, expr);
	if (n >= 2 &&
	    (pfs_name_is(expr->name, "coalesce") || (n == 2 && pfs_name_is(expr->name, "ifnull"))))
		return bind_coalesce(binder, expr->items->first);
	if (pfs_bind_is_text(expr->name, n))
		return bind_text(binder, expr);
	return pfs_bind_refuse(binder, "a function that is SQLite's");
}
