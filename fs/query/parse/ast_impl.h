/* SPDX-License-Identifier: MIT */
/* fs/query/parse/ast_impl.h - what the rules of grammar.y do: nodes of the tree (ast.h), made in
 * the arena.
 *
 * Once something failed (p->error) every function returns NULL or an empty thing; all of them take
 * such as arguments.  A node begins at its first token and ends where the last one read ends
 * (p->end). */
#ifndef PFS_FS_QUERY_PARSE_AST_IMPL_H
#define PFS_FS_QUERY_PARSE_AST_IMPL_H

#include "fs/query/parse/arena.h"
#include "fs/query/parse/lexer.h"
#include "fs/query/parse/parse.h"

struct pfs_parser {
	struct pfs_arena arena;
	const char *sql;
	uint32_t begin; /* of the first token */
	uint32_t end;	/* of the last one that was shifted */
	int error;	/* 0, -ENOTSUP (`not` says why) or -ENOMEM */
	struct pfs_not_taken not ;
	struct pfs_statement *statement;
};

/* Rules of the grammar hand these on, which are no nodes of the tree. */
struct pfs_qualified {
	const struct pfs_name *schema, *name;
	uint32_t at;
};
struct pfs_target {
	struct pfs_qualified table;
	const struct pfs_name *alias;
};
struct pfs_operator {
	struct pfs_lexeme token;
	bool negated;
};
struct pfs_limit {
	struct pfs_expr *limit, *offset;
};
struct pfs_value_rows {
	struct pfs_items *first, *last;
};
struct pfs_name_list {
	struct pfs_column_names *first, *last;
};
struct pfs_over { /* a window; a frame of one */
	struct pfs_items *items;
	uint16_t n_partition, n_order;
	bool is_plain;
};
struct pfs_filter_over {
	struct pfs_expr *filter;
	struct pfs_over over;
	bool is_window;
};

/* The first reason counts. */
void pfs_ast_refuse(struct pfs_parser *p, uint32_t at, const char *why);

const struct pfs_name *pfs_ast_name(struct pfs_parser *p, struct pfs_lexeme token);
struct pfs_name_list pfs_ast_names(struct pfs_parser *p, struct pfs_name_list list,
				   struct pfs_lexeme token);
/* As it is written, quotes and all. */
const struct pfs_name *pfs_ast_words(struct pfs_parser *p, struct pfs_lexeme words);
/* The token and all up to here. */
struct pfs_lexeme pfs_ast_to_here(const struct pfs_parser *p, struct pfs_lexeme token);
struct pfs_qualified pfs_ast_qualified(struct pfs_parser *p, const struct pfs_lexeme *schema,
				       const struct pfs_lexeme *name);

/* ---- ast_expr.c; in `list` NULL is the empty one ---- */

struct pfs_items *pfs_ast_items(struct pfs_parser *p, struct pfs_items *list,
				struct pfs_item *item);
/* One list of two; either may be NULL. */
struct pfs_items *pfs_ast_joined(struct pfs_parser *p, struct pfs_items *list,
				 struct pfs_items *more);
struct pfs_item *pfs_ast_item(struct pfs_parser *p, struct pfs_expr *expr);
struct pfs_item *pfs_ast_star(struct pfs_parser *p, struct pfs_lexeme first,
			      const struct pfs_lexeme *table);
void pfs_ast_direction(struct pfs_item *item, const struct pfs_expr *expr, bool is_descending,
		       enum pfs_nulls nulls);

struct pfs_expr *pfs_ast_literal(struct pfs_parser *p, enum pfs_expr_kind kind,
				 struct pfs_lexeme token);
struct pfs_expr *pfs_ast_column(struct pfs_parser *p, const struct pfs_lexeme *schema,
				const struct pfs_lexeme *table, const struct pfs_lexeme *name);
struct pfs_expr *pfs_ast_parens(struct pfs_parser *p, struct pfs_lexeme open,
				struct pfs_expr *expr);
struct pfs_expr *pfs_ast_unary(struct pfs_parser *p, enum pfs_ast_op op, struct pfs_lexeme token,
			       struct pfs_expr *operand);
struct pfs_expr *pfs_ast_binary(struct pfs_parser *p, enum pfs_ast_op op, struct pfs_expr *left,
				struct pfs_lexeme token, struct pfs_expr *right);
/* CAST and COLLATE. */
struct pfs_expr *pfs_ast_named(struct pfs_parser *p, enum pfs_expr_kind kind, struct pfs_lexeme op,
			       struct pfs_expr *operand, struct pfs_lexeme name);
struct pfs_expr *pfs_ast_like(struct pfs_parser *p, struct pfs_expr *left, struct pfs_operator op,
			      struct pfs_expr *right, struct pfs_expr *escape);
struct pfs_expr *pfs_ast_is_null(struct pfs_parser *p, struct pfs_expr *operand,
				 struct pfs_lexeme op, bool negated);
struct pfs_expr *pfs_ast_between(struct pfs_parser *p, struct pfs_expr *left,
				 struct pfs_operator op, struct pfs_expr *right,
				 struct pfs_expr *third);
/* select NULL: a list. */
struct pfs_expr *pfs_ast_in(struct pfs_parser *p, struct pfs_expr *left, struct pfs_operator op,
			    struct pfs_items *items, struct pfs_select *select);
struct pfs_expr *pfs_ast_in_table(struct pfs_parser *p, struct pfs_expr *left,
				  struct pfs_operator op, struct pfs_qualified table,
				  struct pfs_items *args);
struct pfs_expr *pfs_ast_select_value(struct pfs_parser *p, enum pfs_expr_kind kind,
				      struct pfs_lexeme first, struct pfs_select *select);
struct pfs_items *pfs_ast_when(struct pfs_parser *p, struct pfs_items *list, struct pfs_expr *when,
			       struct pfs_expr *then);
struct pfs_expr *pfs_ast_case(struct pfs_parser *p, struct pfs_lexeme first,
			      struct pfs_expr *operand, struct pfs_items *whens,
			      struct pfs_expr *otherwise);
struct pfs_expr *pfs_ast_row(struct pfs_parser *p, struct pfs_lexeme open, struct pfs_items *items,
			     struct pfs_expr *last);
struct pfs_expr *pfs_ast_call(struct pfs_parser *p, struct pfs_lexeme name, bool is_distinct,
			      struct pfs_items *items);
struct pfs_expr *pfs_ast_star_call(struct pfs_parser *p, struct pfs_lexeme name);
struct pfs_over pfs_ast_over(struct pfs_parser *p, bool is_named, struct pfs_items *partition,
			     struct pfs_items *order, struct pfs_over frame);
void pfs_ast_filter(struct pfs_parser *p, struct pfs_expr *call, struct pfs_filter_over rest);

/* ---- ast_select.c ---- */

unsigned pfs_ast_join(struct pfs_parser *p, struct pfs_lexeme word); /* enum pfs_joins */
struct pfs_from *pfs_ast_table(struct pfs_parser *p, struct pfs_qualified table,
				 const struct pfs_name *alias, bool is_indexed);
struct pfs_from *pfs_ast_table_function(struct pfs_parser *p, struct pfs_qualified table,
					  struct pfs_items *args, const struct pfs_name *alias);
struct pfs_from *pfs_ast_sub_select(struct pfs_parser *p, struct pfs_lexeme open,
				      struct pfs_select *select, const struct pfs_name *alias);
struct pfs_from *pfs_ast_sub_join(struct pfs_parser *p, struct pfs_lexeme open,
				    struct pfs_from *inner, const struct pfs_name *alias);
void pfs_ast_on(struct pfs_parser *p, struct pfs_from *source, struct pfs_expr *on);
struct pfs_from *pfs_ast_source_list(struct pfs_parser *p, struct pfs_from *list, unsigned join,
				       struct pfs_from *source);

struct pfs_core *pfs_ast_core(struct pfs_parser *p, struct pfs_lexeme first, bool is_distinct,
			      struct pfs_items *results, struct pfs_from *from,
			      struct pfs_expr *where);
void pfs_ast_grouped(struct pfs_core *core, struct pfs_items *group, struct pfs_expr *having,
		     struct pfs_items *windows);
struct pfs_core *pfs_ast_values(struct pfs_parser *p, struct pfs_lexeme first,
				struct pfs_value_rows rows);
struct pfs_value_rows pfs_ast_rows(struct pfs_parser *p, struct pfs_value_rows rows,
				   struct pfs_items *row);
struct pfs_select *pfs_ast_select(struct pfs_parser *p, struct pfs_core *core,
				  struct pfs_items *order, struct pfs_limit limit);
struct pfs_select *pfs_ast_compound(struct pfs_parser *p, struct pfs_select *select,
				    enum pfs_compound compound, struct pfs_core *core,
				    struct pfs_items *order, struct pfs_limit limit);
struct pfs_select *pfs_ast_with(struct pfs_parser *p, struct pfs_select *select,
				struct pfs_with *with, bool is_recursive);
struct pfs_with *pfs_ast_ctes(struct pfs_parser *p, struct pfs_with *with, struct pfs_cte *cte);
struct pfs_cte *pfs_ast_cte(struct pfs_parser *p, struct pfs_lexeme name,
			    struct pfs_column_names *columns, enum pfs_materialized materialized,
			    struct pfs_select *select);

/* ---- ast_change.c ---- */

struct pfs_statement *pfs_ast_statement(struct pfs_parser *p, enum pfs_statement_kind kind);
struct pfs_statement *pfs_ast_change(struct pfs_parser *p, enum pfs_statement_kind kind,
				     struct pfs_with *with, struct pfs_target target,
				     bool has_conflict);
void pfs_ast_changed(struct pfs_statement *statement, struct pfs_expr *where,
		     struct pfs_items *order, struct pfs_limit limit);
struct pfs_statement *pfs_ast_definition(struct pfs_parser *p, enum pfs_statement_kind kind,
					 struct pfs_qualified table, bool if_exists);
void pfs_ast_index(struct pfs_parser *p, struct pfs_statement *statement, struct pfs_lexeme table,
		   struct pfs_items *terms, struct pfs_expr *where);
struct pfs_column_def *pfs_ast_column_def(struct pfs_parser *p, struct pfs_lexeme name,
					  struct pfs_lexeme type);
struct pfs_column_def *pfs_ast_definitions(struct pfs_column_def *list,
					   struct pfs_column_def *more);

/* ---- for ast_*.c ---- */

/* Zeroed memory; NULL: something failed. */
void *pfs_ast_get(struct pfs_parser *p, size_t size);
/* One more than the depth of the deepest; refuses what is too deep. */
uint16_t pfs_ast_depth(struct pfs_parser *p, unsigned deepest);
static inline struct pfs_text_range pfs_ast_span(const struct pfs_parser *p, uint32_t at)
{
	return (struct pfs_text_range){at, p->end - at};
}
static inline unsigned pfs_depth_of(const struct pfs_expr *expr)
{
	return expr ? expr->depth : 0;
}
static inline unsigned pfs_depth_of_items(const struct pfs_items *items)
{
	return items ? items->depth : 0;
}
static inline unsigned pfs_depth_of_select(const struct pfs_select *select)
{
	return select ? select->depth : 0;
}
static inline unsigned pfs_deeper(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

#endif
