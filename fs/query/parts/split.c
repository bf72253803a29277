/* SPDX-License-Identifier: MIT */
/* A SELECT in two: its FROM, WHERE and GROUP BY with whatever its expressions need of them is a
 * part; around it stand its results, HAVING (now a WHERE), windows and ORDER BY.
 *
 * Grouped, what is needed is the keys, written as in GROUP BY, and aggregates; else columns.  A
 * name that is not needed so must be an alias of a result. */
#include "fs/query/parts/parts_impl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fs/query/relational/bound.h"
#include "fs/query/relational/relational.h"
#include "gpu/aggregate.h"

#define NEEDED_MAX 256

struct needed { /* where a column of the part is */
	const struct pfs_expr *expr;
	size_t column;
};

struct split {
	struct pfs_finder *finder;
	const struct pfs_select *select;
	const struct pfs_core *core;
	bool is_grouped;
	struct needed needed[NEEDED_MAX];
	size_t n;
	const struct pfs_expr *columns[NEEDED_MAX]; /* of the part, each the first of its kind */
	size_t n_columns;
	const struct pfs_name *aliases[NEEDED_MAX]; /* used as such in expressions */
	size_t n_aliases;
	bool cannot;
};

/* ---- what is the same ---- */

static bool is_name(const struct pfs_name *a, const struct pfs_name *b)
{
	return a && b ? a->len == b->len && strncasecmp(a->text, b->text, a->len) == 0 : a == b;
}

static bool is_word(const struct pfs_name *name, const char *word)
{
	return name->len == strlen(word) && strncasecmp(name->text, word, name->len) == 0;
}

static bool is_same(const struct pfs_expr *a, const struct pfs_expr *b);

static bool are_same(const struct pfs_items *a, const struct pfs_items *b)
{
	const struct pfs_item *x = a ? a->first : NULL, *y = b ? b->first : NULL;

	for (; x && y; x = x->next, y = y->next) {
		if (!is_same(x->expr, y->expr))
			return false;
	}
	return x == y; /* both NULL */
}

/* Literals are compared as they were written: in doubt two are not the same. */
static bool is_same(const struct pfs_expr *a, const struct pfs_expr *b)
{
	bool is_named = a && a->kind != PFS_EXPR_STRING && a->kind != PFS_EXPR_BLOB;

	if (!a || !b)
		return a == b;
	if (a->kind != b->kind || a->op != b->op || a->negated != b->negated ||
	    a->is_distinct != b->is_distinct || a->is_star != b->is_star || a->select ||
	    b->select || a->is_window || b->is_window)
		return false;
	if (!is_name(a->schema, b->schema) || !is_name(a->table, b->table) ||
	    !is_name(a->name, b->name))
		return false;
	if (!is_named && (a->name->len != b->name->len ||
			  memcmp(a->name->text, b->name->text, a->name->len) != 0))
		return false;
	return is_same(a->left, b->left) && is_same(a->right, b->right) &&
	       is_same(a->third, b->third) && are_same(a->items, b->items);
}

/* ---- what is needed ---- */

/* GROUP BY 2 is the second result. */
static const struct pfs_expr *key_of(const struct pfs_core *core, const struct pfs_item *item)
{
	const struct pfs_item *result = core->results->first;
	long number;

	if (item->expr->kind != PFS_EXPR_INTEGER)
		return item->expr;
	number = strtol(item->expr->name->text, NULL, 10);
	while (result && result->expr && --number > 0)
		result = result->next;
	return number == 0 && result ? result->expr : NULL;
}

static bool is_key(const struct split *split, const struct pfs_expr *expr)
{
	const struct pfs_items *group = split->core->group;

	for (const struct pfs_item *item = group ? group->first : NULL; item; item = item->next) {
		if (is_same(key_of(split->core, item), expr))
			return true;
	}
	return false;
}

/* Some functions depend on the order of rows, which a part does not say. */
static bool is_scalar(const struct pfs_expr *expr)
{
	static const char *const prefixes[] = {"group_", "string_agg", "json_group_",
					       "jsonb_group_", "common_ancestor"};

	for (size_t i = 0; i < PFS_COUNT(prefixes); i++) {
		size_t len = strlen(prefixes[i]);

		if (expr->name->len >= len && strncasecmp(expr->name->text, prefixes[i], len) == 0)
			return false;
	}
	return true;
}

/* One that the operators have. */
static bool is_aggregate(const struct pfs_expr *expr)
{
	size_t n = expr->items ? expr->items->n : 0;
	enum pfs_aggregate_op op;

	return expr->kind == PFS_EXPR_CALL && !expr->is_window && n <= 1 && is_scalar(expr) &&
	       pfs_aggregate_by_name(&op, expr->name->text, expr->name->len);
}

static const struct pfs_item *find_alias(const struct split *split, const struct pfs_expr *expr)
{
	const struct pfs_item *item = expr->table ? NULL : split->core->results->first;

	while (item && !is_name(item->alias, expr->name))
		item = item->next;
	return item;
}

static void need(struct split *split, const struct pfs_expr *expr)
{
	size_t column = 0;

	while (column < split->n_columns && !is_same(split->columns[column], expr))
		column++;
	if (split->n == NEEDED_MAX) {
		split->cannot = true;
		return;
	}
	if (column == split->n_columns)
		split->columns[split->n_columns++] = expr;
	split->needed[split->n++] = (struct needed){expr, column};
}

/* A name: a column comes before an alias, which is looked at once columns are known. */
static void need_name(struct split *split, const struct pfs_expr *expr)
{
	const struct pfs_item *item = find_alias(split, expr);
	bool is_itself = item && item->expr && item->expr->kind == PFS_EXPR_COLUMN &&
			 is_name(item->expr->name, expr->name);

	if (item && !is_itself && split->n_aliases < NEEDED_MAX)
		split->aliases[split->n_aliases++] = expr->name;
	else if (!split->is_grouped && !item)
		need(split, expr);
	else
		split->cannot = true;
}

static void look_into_items(struct split *split, const struct pfs_items *items);

/* A sub-select that is a part itself names nothing of this SELECT. */
static bool stands_alone(struct split *split, const struct pfs_expr *expr)
{
	bool is_value = expr->kind == PFS_EXPR_SELECT;

	return !expr->select || (expr->kind != PFS_EXPR_EXISTS && !expr->select->with &&
				 pfs_finder_take(split->finder, expr->select->span,
						 is_value ? PFS_PART_VALUE : PFS_PART_SET, false));
}

static void look_into(struct split *split, const struct pfs_expr *expr)
{
	if (!expr || split->cannot)
		return;
	if (split->is_grouped && (is_key(split, expr) || is_aggregate(expr))) {
		need(split, expr);
		return;
	}
	split->cannot |= !stands_alone(split, expr) || expr->kind == PFS_EXPR_IN_TABLE ||
			 expr->kind == PFS_EXPR_BIND ||
			 (expr->kind == PFS_EXPR_CALL && !expr->is_window && !is_scalar(expr));
	if (expr->kind == PFS_EXPR_COLUMN) {
		need_name(split, expr);
		return;
	}
	look_into(split, expr->left);
	look_into(split, expr->right);
	look_into(split, expr->third);
	look_into_items(split, expr->items);
	look_into_items(split, expr->over);
}

static void look_into_items(struct split *split, const struct pfs_items *items)
{
	const struct pfs_item *item = items ? items->first : NULL;

	for (; item; item = item->next) {
		if (item->expr)
			look_into(split, item->expr);
		else
			split->cannot = true; /* * */
	}
}

/* A term that is the name of a result alone is that result. */
static void look_into_order(struct split *split, const struct pfs_items *items)
{
	const struct pfs_item *item = items ? items->first : NULL;

	for (; item; item = item->next) {
		if (item->expr->kind != PFS_EXPR_COLUMN || !find_alias(split, item->expr))
			look_into(split, item->expr);
	}
}

static bool has_aggregate(const struct pfs_expr *expr);

static bool have_aggregate(const struct pfs_items *items)
{
	const struct pfs_item *item = items ? items->first : NULL;

	while (item && !has_aggregate(item->expr))
		item = item->next;
	return item != NULL;
}

static bool has_aggregate(const struct pfs_expr *expr)
{
	return expr && (is_aggregate(expr) || has_aggregate(expr->left) ||
			has_aggregate(expr->right) || has_aggregate(expr->third) ||
			have_aggregate(expr->items) || have_aggregate(expr->over));
}

/* ---- the part ---- */

static void write_span(FILE *out, const struct split *split, struct pfs_text_range span)
{
	(void)fwrite(split->finder->text + span.at, 1, span.len, out);
}

static uint32_t end_of(struct pfs_text_range span)
{
	return span.at + span.len;
}

/* Returns the text from FROM's first source up to HAVING or the core's end. */
static struct pfs_text_range inner_of(const struct pfs_core *core)
{
	uint32_t at = core->from->span.at;

	return (struct pfs_text_range){
		at, (core->having ? core->having->span.at : end_of(core->span)) - at};
}

static void write_keys(FILE *out, const struct split *split, const struct pfs_item *order)
{
	const struct pfs_core *core = split->core;

	for (const struct pfs_item *key = core->group->first; key; key = key->next) {
		write_span(out, split, key_of(core, key)->span);
		(void)fputs(order && order->is_descending ? " DESC" : "", out);
		(void)fputs(key->next ? ", " : "", out);
		order = order ? order->next : NULL;
	}
}

/* As struct pfs_block's groups_descend. */
static bool do_descend(const struct split *split)
{
	const struct pfs_items *order = split->select->order;
	const struct pfs_item *item =
		order && order->n == split->core->group->n ? order->first : NULL;

	while (item && !item->is_descending)
		item = item->next;
	return item != NULL;
}

static void write_part(FILE *out, const struct split *split)
{
	const struct pfs_core *core = split->core;
	const struct pfs_item *key = core->group ? core->group->first : NULL;
	struct pfs_text_range inner = inner_of(core);

	for (size_t i = 0; i < split->n_columns; i++) {
		(void)fputs(i ? ", " : "SELECT ", out);
		write_span(out, split, split->columns[i]->span);
	}
	(void)fputs(" FROM ", out);
	if (key)
		inner.len = key->span.at - inner.at;
	write_span(out, split, inner);
	if (!key)
		return;
	write_keys(out, split, NULL);
	if (do_descend(split)) {
		(void)fputs(" ORDER BY ", out);
		write_keys(out, split, split->select->order->first);
	}
}

static bool take(struct split *split)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool is_taken;

	if (out)
		write_part(out, split);
	if (!out || fclose(out)) {
		split->finder->error = -ENOMEM;
		free(text);
		return false;
	}
	is_taken = pfs_part_take(split->finder, PFS_PART_ROWS, text, size);
	free(text);
	return is_taken;
}

/* An alias that is a column's name, too, is the column within an expression. */
static bool is_column(const struct pfs_block *block, const struct pfs_name *name)
{
	for (size_t i = 0; i < block->n_inputs; i++) {
		for (size_t c = 0; c < block->inputs[i].n_columns; c++) {
			const char *column = block->inputs[i].columns[c].name;

			if (column && is_word(name, column))
				return true;
		}
	}
	return is_word(name, "rowid") || is_word(name, "oid") || is_word(name, "_rowid_");
}

static bool are_aliases(const struct split *split)
{
	const struct pfs_parts *parts = split->finder->parts;
	const struct pfs_block *block = pfs_relational_block(parts->part[parts->n - 1].relational);

	for (size_t i = 0; i < split->n_aliases; i++) {
		if (is_column(block, split->aliases[i]))
			return false;
	}
	return true;
}

/* ---- what stands around it ---- */

static void put(struct split *split, struct pfs_text_range span,
		void (*write)(FILE *out, const struct split *split, size_t number), size_t number)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		write(out, split, number);
	if (!out || fclose(out))
		split->finder->error = -ENOMEM;
	pfs_finder_put(split->finder, span, text);
}

static void write_column(FILE *out, const struct split *split, size_t number)
{
	pfs_part_column(split->finder, out, split->needed[number].column);
}

static void write_source(FILE *out, const struct split *split, size_t number PFS_UNUSED)
{
	(void)fprintf(out, PFS_SQL_PART_NAME "%u%s", split->finder->parts->n - 1,
		      split->core->having ? " WHERE " : "");
}

/* What SQLite calls a result without a name. */
static void write_name(FILE *out, const struct split *split, size_t number)
{
	const struct pfs_item *item = split->core->results->first;
	const char *text;
	uint32_t len;

	while (number--)
		item = item->next;
	if (item->expr->kind == PFS_EXPR_COLUMN) {
		text = item->expr->name->text;
		len = item->expr->name->len;
	} else {
		text = split->finder->text + item->span.at;
		len = item->span.len;
	}
	(void)fputs(" AS \"", out);
	for (uint32_t i = 0; i < len; i++)
		(void)fprintf(out, text[i] == '"' ? "\"\"" : "%c", text[i]);
	(void)fputc('"', out);
}

/* Titles of the whole are known already. */
static void put_names(struct split *split)
{
	size_t number = 0;

	if (split->select == split->finder->select)
		return;
	for (const struct pfs_item *item = split->core->results->first; item;
	     item = item->next, number++) {
		if (!item->alias)
			put(split, (struct pfs_text_range){end_of(item->span), 0}, write_name,
			    number);
	}
}

static void write_offset(FILE *out, const struct split *split, size_t number PFS_UNUSED)
{
	(void)fprintf(out, "%s OFFSET 0", split->select->limit ? "" : " LIMIT -1");
}

/* Without its groups SQLite would merge the SELECT with the one around it, and join or sort its
 * rows otherwise, the latter before its LIMIT; not so if it has an offset. */
static void keep_apart(struct split *split)
{
	const struct pfs_select *select = split->select;

	if ((select->limit || split->is_grouped) && !select->offset &&
	    select != split->finder->select)
		put(split, (struct pfs_text_range){end_of(select->span), 0}, write_offset, 0);
}

static bool can_be_split(const struct pfs_select *select)
{
	const struct pfs_core *core = select->first;

	return !core->next && core->results && core->from && !core->windows &&
	       (!core->having || core->group);
}

bool pfs_split(struct pfs_finder *finder, const struct pfs_select *select)
{
	struct split split = {.finder = finder, .select = select, .core = select->first};
	const struct pfs_core *core = select->first;

	if (!can_be_split(select))
		return false;
	split.is_grouped =
		core->group || have_aggregate(core->results) || have_aggregate(select->order);
	for (const struct pfs_item *item = core->group ? core->group->first : NULL; item;
	     item = item->next) {
		if (!key_of(core, item))
			return false;
	}
	look_into_items(&split, core->results);
	look_into(&split, core->having);
	look_into_order(&split, select->order);
	if (!split.is_grouped && select->limit && !select->order)
		return false; /* the first rows are enough */
	if (split.cannot || !split.n_columns || !take(&split))
		return false;
	if (!are_aliases(&split)) {
		pfs_part_free(&finder->parts->part[--finder->parts->n]);
		return false;
	}
	put(&split, inner_of(core), write_source, 0);
	for (size_t i = 0; i < split.n; i++)
		put(&split, split.needed[i].expr->span, write_column, i);
	put_names(&split);
	keep_apart(&split);
	return true;
}
