/* SPDX-License-Identifier: MIT */
#include "tests/ref/unparse.h"

static const char *const operators[] = {
	[PFS_AST_OR] = "OR",	      [PFS_AST_AND] = "AND",	    [PFS_AST_EQ] = "=",
	[PFS_AST_NE] = "<>",	      [PFS_AST_LT] = "<",	    [PFS_AST_LE] = "<=",
	[PFS_AST_GT] = ">",	      [PFS_AST_GE] = ">=",	    [PFS_AST_IS] = "IS",
	[PFS_AST_IS_NOT] = "IS NOT",  [PFS_AST_BIT_AND] = "&",	    [PFS_AST_BIT_OR] = "|",
	[PFS_AST_SHIFT_LEFT] = "<<",  [PFS_AST_SHIFT_RIGHT] = ">>", [PFS_AST_ADD] = "+",
	[PFS_AST_SUBTRACT] = "-",     [PFS_AST_MULTIPLY] = "*",	    [PFS_AST_DIVIDE] = "/",
	[PFS_AST_REMAINDER] = "%",    [PFS_AST_CONCAT] = "||",	    [PFS_AST_ARROW] = "->",
	[PFS_AST_LONG_ARROW] = "->>", [PFS_AST_NOT] = "NOT ",	    [PFS_AST_NEGATE] = "-",
	[PFS_AST_PLUS] = "+",	      [PFS_AST_BIT_NOT] = "~",	    [PFS_AST_LIKE] = "LIKE",
	[PFS_AST_GLOB] = "GLOB",      [PFS_AST_REGEXP] = "REGEXP",  [PFS_AST_MATCH] = "MATCH",
};

static void put_quoted(FILE *out, const struct pfs_name *name, char quote)
{
	(void)putc(quote, out);
	for (uint32_t i = 0; i < name->len; i++) {
		if (name->text[i] == quote)
			(void)putc(quote, out);
		(void)putc(name->text[i], out);
	}
	(void)putc(quote, out);
}

/* Plain words stay so: `rowid` and "true" in quotes would be something else. */
static void put_name(FILE *out, const struct pfs_name *name)
{
	if (name->quote)
		put_quoted(out, name, '"');
	else
		(void)fputs(name->text, out);
}

static void put_qualified(FILE *out, const struct pfs_name *schema, const struct pfs_name *name)
{
	if (schema) {
		put_name(out, schema);
		(void)putc('.', out);
	}
	put_name(out, name);
}

static void put_items(FILE *out, const struct pfs_items *items)
{
	for (const struct pfs_item *item = items ? items->first : NULL; item; item = item->next) {
		if (item->expr) {
			unparse_expr(out, item->expr);
		} else {
			if (item->table)
				put_name(out, item->table);
			(void)fputs(item->table ? ".*" : "*", out);
		}
		if (item->alias) {
			(void)fputs(" AS ", out);
			put_name(out, item->alias);
		}
		if (item->is_descending)
			(void)fputs(" DESC", out);
		if (item->nulls)
			(void)fputs(item->nulls == PFS_NULLS_FIRST ? " NULLS FIRST" : " NULLS LAST",
				    out);
		if (item->next)
			(void)fputs(", ", out);
	}
}

static void put_literal(FILE *out, const struct pfs_expr *expr)
{
	switch (expr->kind) {
	case PFS_EXPR_STRING:
		put_quoted(out, expr->name, '\'');
		break;
	case PFS_EXPR_BLOB:
		(void)fputs("x", out);
		put_quoted(out, expr->name, '\'');
		break;
	default:
		(void)fputs(expr->name->text, out);
	}
}

static void put_case(FILE *out, const struct pfs_expr *expr)
{
	(void)fputs("CASE ", out);
	if (expr->left)
		unparse_expr(out, expr->left);
	for (const struct pfs_item *item = expr->items->first; item; item = item->next->next) {
		(void)fputs(" WHEN ", out);
		unparse_expr(out, item->expr);
		(void)fputs(" THEN ", out);
		unparse_expr(out, item->next->expr);
	}
	if (expr->right) {
		(void)fputs(" ELSE ", out);
		unparse_expr(out, expr->right);
	}
	(void)fputs(" END", out);
}

static void put_call(FILE *out, const struct pfs_expr *expr)
{
	put_name(out, expr->name);
	(void)fputs(expr->is_distinct ? "(DISTINCT " : "(", out);
	if (expr->is_star)
		(void)putc('*', out);
	put_items(out, expr->items);
	(void)putc(')', out);
	if (expr->left) {
		(void)fputs(" FILTER (WHERE ", out);
		unparse_expr(out, expr->left);
		(void)putc(')', out);
	}
	if (expr->is_window) { /* of its words only these are known */
		(void)fputs(" OVER (ORDER BY ", out);
		put_items(out, expr->over);
		(void)putc(')', out);
	}
}

static void put_in(FILE *out, const struct pfs_expr *expr)
{
	unparse_expr(out, expr->left);
	(void)fputs(expr->negated ? " NOT IN " : " IN ", out);
	if (expr->kind == PFS_EXPR_IN_TABLE)
		put_qualified(out, expr->schema, expr->name);
	if (expr->kind == PFS_EXPR_IN_TABLE && !expr->items)
		return;
	(void)putc('(', out);
	if (expr->select)
		unparse_select(out, expr->select);
	put_items(out, expr->items);
	(void)putc(')', out);
}

static void put_operation(FILE *out, const struct pfs_expr *expr)
{
	if (expr->kind == PFS_EXPR_UNARY) {
		(void)fputs(operators[expr->op], out);
		unparse_expr(out, expr->left);
		return;
	}
	unparse_expr(out, expr->left);
	(void)fprintf(out, expr->negated ? " NOT %s " : " %s ", operators[expr->op]);
	unparse_expr(out, expr->right);
	if (expr->third) {
		(void)fputs(" ESCAPE ", out);
		unparse_expr(out, expr->third);
	}
}

static void put_other(FILE *out, const struct pfs_expr *expr)
{
	switch (expr->kind) {
	case PFS_EXPR_IS_NULL:
		unparse_expr(out, expr->left);
		(void)fputs(expr->negated ? " NOTNULL" : " ISNULL", out);
		break;
	case PFS_EXPR_BETWEEN:
		unparse_expr(out, expr->left);
		(void)fputs(expr->negated ? " NOT BETWEEN " : " BETWEEN ", out);
		unparse_expr(out, expr->right);
		(void)fputs(" AND ", out);
		unparse_expr(out, expr->third);
		break;
	case PFS_EXPR_CAST:
		(void)fputs("CAST(", out);
		unparse_expr(out, expr->left);
		(void)fprintf(out, " AS %s)", expr->name->text);
		break;
	case PFS_EXPR_COLLATE:
		unparse_expr(out, expr->left);
		(void)fputs(" COLLATE ", out);
		put_name(out, expr->name);
		break;
	case PFS_EXPR_EXISTS:
		(void)fputs("EXISTS (", out);
		unparse_select(out, expr->select);
		(void)putc(')', out);
		break;
	case PFS_EXPR_SELECT:
		unparse_select(out, expr->select);
		break;
	case PFS_EXPR_ROW:
		put_items(out, expr->items);
		break;
	default:
		break;
	}
}

void unparse_expr(FILE *out, const struct pfs_expr *expr)
{
	switch (expr->kind) {
	case PFS_EXPR_NULL:
		(void)fputs("NULL", out);
		return;
	case PFS_EXPR_INTEGER:
	case PFS_EXPR_REAL:
	case PFS_EXPR_STRING:
	case PFS_EXPR_BLOB:
	case PFS_EXPR_BIND:
	case PFS_EXPR_NOW:
		put_literal(out, expr);
		return;
	case PFS_EXPR_COLUMN:
		if (expr->schema) {
			put_name(out, expr->schema);
			(void)putc('.', out);
		}
		put_qualified(out, expr->table, expr->name);
		return;
	case PFS_EXPR_CALL:
		put_call(out, expr);
		return;
	default:
		break;
	}
	(void)putc('(', out);
	switch (expr->kind) {
	case PFS_EXPR_CASE:
		put_case(out, expr);
		break;
	case PFS_EXPR_IN_LIST:
	case PFS_EXPR_IN_SELECT:
	case PFS_EXPR_IN_TABLE:
		put_in(out, expr);
		break;
	case PFS_EXPR_UNARY:
	case PFS_EXPR_BINARY:
	case PFS_EXPR_LIKE:
		put_operation(out, expr);
		break;
	default:
		put_other(out, expr);
	}
	(void)putc(')', out);
}

/* ---- SELECT ---- */

static void put_names(FILE *out, const struct pfs_column_names *names)
{
	(void)putc('(', out);
	for (; names; names = names->next) {
		put_name(out, &names->name);
		if (names->next)
			(void)fputs(", ", out);
	}
	(void)putc(')', out);
}

static void put_join(FILE *out, unsigned join)
{
	static const struct {
		unsigned join;
		const char *word;
	} words[] = {
		{PFS_JOINS_NATURAL, "NATURAL "},
		{PFS_JOINS_CROSS, "CROSS "},
		{PFS_JOINS_LEFT, "LEFT "},
		{PFS_JOINS_RIGHT, "RIGHT "},
	};

	if (join & PFS_JOINS_COMMA) {
		(void)fputs(", ", out);
		return;
	}
	(void)putc(' ', out);
	if ((join & PFS_JOINS_LEFT) && (join & PFS_JOINS_RIGHT)) {
		(void)fputs(join & PFS_JOINS_NATURAL ? "NATURAL FULL JOIN " : "FULL JOIN ", out);
		return;
	}
	for (size_t i = 0; i < PFS_COUNT(words); i++) {
		if (join & words[i].join)
			(void)fputs(words[i].word, out);
	}
	(void)fputs("JOIN ", out);
}

static void put_sources(FILE *out, const struct pfs_from *source);

static void put_source(FILE *out, const struct pfs_from *source)
{
	switch (source->kind) {
	case PFS_FROM_TABLE:
		put_qualified(out, source->schema, source->name);
		break;
	case PFS_FROM_FUNCTION:
		put_qualified(out, source->schema, source->name);
		(void)putc('(', out);
		put_items(out, source->args);
		(void)putc(')', out);
		break;
	case PFS_FROM_SELECT:
		(void)putc('(', out);
		unparse_select(out, source->select);
		(void)putc(')', out);
		break;
	case PFS_FROM_JOIN:
		(void)putc('(', out);
		put_sources(out, source->inner);
		(void)putc(')', out);
		break;
	}
	if (source->alias) {
		(void)fputs(" AS ", out);
		put_name(out, source->alias);
	}
	if (source->on) {
		(void)fputs(" ON ", out);
		unparse_expr(out, source->on);
	}
	if (source->using) {
		(void)fputs(" USING ", out);
		put_names(out, source->using);
	}
}

static void put_sources(FILE *out, const struct pfs_from *source)
{
	for (const struct pfs_from *first = source; source; source = source->next) {
		if (source != first)
			put_join(out, source->join);
		put_source(out, source);
	}
}

static void put_core(FILE *out, const struct pfs_core *core)
{
	if (!core->results) {
		(void)fputs("VALUES ", out);
		for (const struct pfs_items *row = core->rows; row; row = row->next) {
			(void)putc('(', out);
			put_items(out, row);
			(void)fputs(row->next ? "), " : ")", out);
		}
		return;
	}
	(void)fputs(core->is_distinct ? "SELECT DISTINCT " : "SELECT ", out);
	put_items(out, core->results);
	if (core->from) {
		(void)fputs(" FROM ", out);
		put_sources(out, core->from);
	}
	if (core->where) {
		(void)fputs(" WHERE ", out);
		unparse_expr(out, core->where);
	}
	if (core->group) {
		(void)fputs(" GROUP BY ", out);
		put_items(out, core->group);
	}
	if (core->having) {
		(void)fputs(" HAVING ", out);
		unparse_expr(out, core->having);
	}
}

static void put_with(FILE *out, const struct pfs_with *with)
{
	if (!with)
		return;
	(void)fputs(with->is_recursive ? "WITH RECURSIVE " : "WITH ", out);
	for (const struct pfs_cte *cte = with->first; cte; cte = cte->next) {
		put_name(out, &cte->name);
		if (cte->columns)
			put_names(out, cte->columns);
		(void)fputs(cte->materialized == PFS_CTE_MATERIALIZED ? " AS MATERIALIZED ("
			    : cte->materialized == PFS_CTE_NOT_MATERIALIZED
				    ? " AS NOT MATERIALIZED ("
				    : " AS (",
			    out);
		unparse_select(out, cte->select);
		(void)fputs(cte->next ? "), " : ") ", out);
	}
}

static void put_end(FILE *out, const struct pfs_items *order, const struct pfs_expr *limit,
		    const struct pfs_expr *offset)
{
	if (order) {
		(void)fputs(" ORDER BY ", out);
		put_items(out, order);
	}
	if (limit) {
		(void)fputs(" LIMIT ", out);
		unparse_expr(out, limit);
	}
	if (offset) {
		(void)fputs(" OFFSET ", out);
		unparse_expr(out, offset);
	}
}

void unparse_select(FILE *out, const struct pfs_select *select)
{
	static const char *const compounds[] = {
		[PFS_UNION_ALL] = " UNION ALL ",
		[PFS_UNION] = " UNION ",
		[PFS_INTERSECT] = " INTERSECT ",
		[PFS_EXCEPT] = " EXCEPT ",
	};

	put_with(out, select->with);
	for (const struct pfs_core *core = select->first; core; core = core->next) {
		if (core->compound)
			(void)fputs(compounds[core->compound], out);
		put_core(out, core);
	}
	put_end(out, select->order, select->limit, select->offset);
}

/* ---- changes ---- */

static void put_settings(FILE *out, const struct pfs_statement *statement)
{
	(void)fputs(" SET ", out);
	for (const struct pfs_item *item = statement->set->first; item; item = item->next) {
		put_name(out, item->alias);
		(void)fputs(" = ", out);
		unparse_expr(out, item->expr);
		if (item->next)
			(void)fputs(", ", out);
	}
}

static void put_definitions(FILE *out, const struct pfs_column_def *def)
{
	(void)fputs(" (", out);
	for (; def; def = def->next) {
		put_name(out, &def->name);
		(void)fprintf(out, def->type.len ? " %s" : "%s", def->type.text);
		(void)fprintf(out, "%s%s", def->is_not_null ? " NOT NULL" : "",
			      def->is_primary_key ? " PRIMARY KEY" : "");
		(void)fputs(def->is_descending ? " DESC" : "", out);
		if (def->default_value) {
			(void)fputs(" DEFAULT (", out);
			unparse_expr(out, def->default_value);
			(void)putc(')', out);
		}
		if (def->next)
			(void)fputs(", ", out);
	}
	(void)putc(')', out);
}

static void put_change(FILE *out, const struct pfs_statement *statement)
{
	put_with(out, statement->with);
	if (statement->kind == PFS_STATEMENT_INSERT)
		(void)fputs("INSERT INTO ", out);
	else
		(void)fputs(statement->kind == PFS_STATEMENT_UPDATE ? "UPDATE " : "DELETE FROM ",
			    out);
	put_qualified(out, statement->schema, statement->table);
	if (statement->alias) {
		(void)fputs(" AS ", out);
		put_name(out, statement->alias);
	}
	if (statement->columns)
		put_names(out, statement->columns);
	if (statement->set)
		put_settings(out, statement);
	if (statement->kind == PFS_STATEMENT_INSERT)
		(void)fputs(statement->select ? " " : " DEFAULT VALUES", out);
	if (statement->select)
		unparse_select(out, statement->select);
	if (statement->from) {
		(void)fputs(" FROM ", out);
		put_sources(out, statement->from);
	}
	if (statement->where) {
		(void)fputs(" WHERE ", out);
		unparse_expr(out, statement->where);
	}
	put_end(out, statement->order, statement->limit, statement->offset);
}

static void put_definition(FILE *out, const struct pfs_statement *statement)
{
	static const char *const words[] = {
		[PFS_STATEMENT_CREATE_TABLE] = "CREATE TABLE ",
		[PFS_STATEMENT_DROP_TABLE] = "DROP TABLE ",
		[PFS_STATEMENT_CREATE_INDEX] = "CREATE INDEX ",
		[PFS_STATEMENT_DROP_INDEX] = "DROP INDEX ",
	};

	(void)fputs(words[statement->kind], out);
	if (statement->kind != PFS_STATEMENT_CREATE_INDEX) {
		put_qualified(out, statement->schema, statement->table);
	} else {
		put_qualified(out, statement->schema, statement->index);
		(void)fputs(" ON ", out);
		put_name(out, statement->table);
		(void)fputs(" (", out);
		put_items(out, statement->order);
		(void)putc(')', out);
	}
	if (statement->select) {
		(void)fputs(" AS ", out);
		unparse_select(out, statement->select);
	}
	if (statement->definitions)
		put_definitions(out, statement->definitions);
}

void unparse_statement(FILE *out, const struct pfs_statement *statement)
{
	switch (statement->kind) {
	case PFS_STATEMENT_SELECT:
		unparse_select(out, statement->select);
		break;
	case PFS_STATEMENT_INSERT:
	case PFS_STATEMENT_UPDATE:
	case PFS_STATEMENT_DELETE:
		put_change(out, statement);
		break;
	default:
		put_definition(out, statement);
	}
}
