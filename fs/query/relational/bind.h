/* SPDX-License-Identifier: MIT */
/* fs/query/relational/bind.h - inside of pfs_bind (bound.h), each file before those that it calls:
 * bind.c (a statement, and what SQLite was asked to read for it); bind_compound.c, bind_select.c,
 * bind_from.c, lift.c (SELECTs and their sources, which may be SELECTs), bind_values.c,
 * bind_closed.c (rows that a statement says itself), bind_recursion.c (steps), bind_rows.c (rows as
 * they are); bind_expr.c, bind_compare.c, bind_call.c, bind_text.c (expressions in expressions);
 * bind_column.c and bind_term.c (what those are made of).
 *
 * Whoever returns a term returns NULL when binder->error is set, and takes a NULL for an argument
 * that has failed. */
#ifndef PFS_FS_QUERY_RELATIONAL_BIND_H
#define PFS_FS_QUERY_RELATIONAL_BIND_H

#include "fs/query/relational/bound.h"

/* A table and column that was bound. If these are not what SQLite's authorizer was asked about,
 * SQLite runs the statement (compare_reads in bind.c). */
struct pfs_bound_read {
	const char *table, *column;
	bool is_optional; /* USING and NATURAL */
	struct pfs_bound_read *next;
};

/* The CTEs that a SELECT may name: its own WITH's, then those of the SELECTs around it. */
struct pfs_bind_scope {
	const struct pfs_with *with;
	const struct pfs_bind_scope *outer; /* NULL: none */
};

/* A recursive CTE and the input that it is, while its steps are bound. */
struct pfs_bind_recursion {
	const struct pfs_cte *cte;
	const struct pfs_input *input;
};

/* Binds one SELECT of the statement. */
struct pfs_binder {
	struct pfs_query *query;
	struct pfs_arena *arena;
	const char *text; /* of the statement; NULL: it is a part, or changes something */
	struct pfs_block *block;
	const struct pfs_core *core;
	const struct pfs_bind_scope *scope;
	const struct pfs_item **items; /* by result, what it was written as */
	const struct pfs_bind_recursion *step; /* the recursion whose step it binds; NULL: none */
	const struct pfs_bind_recursion *next; /* `step` of the part that is bound next */
	unsigned level;		       /* 0: the statement's own; more: a sub-select */
	bool is_table; /* of a part: its rows are never those of nodes as they are */
	bool is_said; /* VALUES of an INSERT: a column may have several types */
	bool in_aggregate, takes_aggregates, takes_aliases;
	bool is_inner, was_inner; /* it is in an expression; the SELECT around it is in one */
	/* It binds a result of a sub-select that is a column alone: if the operators cannot have
	 * the column, it is marked late, not refused. */
	bool is_unsure;
	/* Set if the SELECT may be answered as plain rows (struct pfs_row_plan), which may then use
	 * late columns anywhere. `lax` says why it is refused if it turns out not to be one; NULL:
	 * no such column was used. */
	bool takes_rows;
	const char *lax;
	/* These belong to the whole statement, and each binder hands them on to the next: */
	struct pfs_bound_read *reads;
	unsigned n_blocks;
	int error;	 /* 0, -ENOTSUP (`why` says) or -ENOMEM */
	const char *why; /* a constant: "ORDER BY a path" */
};

/* ---- bind_expr.c ---- */

struct pfs_term *pfs_bind_expr(struct pfs_binder *binder, const struct pfs_expr *expr);
/* Binds a condition, whose class is number, truth or none. */
struct pfs_term *pfs_bind_condition(struct pfs_binder *binder, const struct pfs_expr *expr);

/* ---- bind_select.c ---- */

/* Binds a SELECT, and its ORDER BY and LIMIT, into the binder's block.  end NULL: it has none. */
PFS_MUST_CHECK int pfs_bind_core(struct pfs_binder *binder, const struct pfs_core *core,
				 const struct pfs_select *end);
/* Binds LIMIT and OFFSET. */
PFS_MUST_CHECK int pfs_bind_limit(struct pfs_binder *binder, const struct pfs_select *select);
/* Returns the result that a term of GROUP BY or ORDER BY names by its number. */
struct pfs_term *pfs_bind_numbered(struct pfs_binder *binder, const struct pfs_expr *expr);
/* Adds a term to the block's order, which has room for it. */
void pfs_bind_order(struct pfs_binder *binder, struct pfs_term *value, const struct pfs_item *item);

/* ---- bind_order.c ---- */

/* Finds out in which order the rows of a block come that is bound but for that.  written: the
 * SELECT as it stands; end NULL: it is a compound's. */
void pfs_bind_row_order(struct pfs_binder *binder, const struct pfs_core *written,
			const struct pfs_select *end);
/* Refuses a compound whose LIMIT shows an order of its members' groups that they have not. */
void pfs_bind_check_members(struct pfs_binder *binder);
/* Sets passes_order, and shows_order of those blocks whose order this block's shows.  Refuses
 * joined rows of which the binder's block leaves some out, in an order that is not known. */
void pfs_bind_pass_order(struct pfs_binder *binder, struct pfs_block *block);

/* ---- bind_values.c ---- */

/* Binds VALUES, or a SELECT of constants without FROM, into the binder's block. */
PFS_MUST_CHECK int pfs_bind_values(struct pfs_binder *binder, const struct pfs_core *core,
				   const struct pfs_select *end);

/* Binds rows of an input, of which columns' names and values are known, into the binder's block. */
PFS_MUST_CHECK int pfs_bind_rows_of_values(struct pfs_binder *binder, const struct pfs_input *rows);

/* ---- bind_closed.c ---- */

/* Returns true for a CTE of that scope whose rows follow from the text alone, by recursion: SQLite
 * is asked for them. */
bool pfs_bind_is_closed(const struct pfs_bind_scope *scope, const struct pfs_cte *cte);
/* Binds the CTE's rows into the binder's block. */
PFS_MUST_CHECK int pfs_bind_closed(struct pfs_binder *binder, const struct pfs_bind_scope *scope,
				   const struct pfs_cte *cte);

/* ---- bind_recursion.c ---- */

/* Returns true for a CTE whose first SELECTs do not name it and all others do. */
bool pfs_bind_is_recursive(const struct pfs_cte *cte);
/* Returns true for one of its SELECTs that names it in FROM. */
bool pfs_bind_is_step(const struct pfs_core *core, const struct pfs_cte *cte);
/* Binds the columns of a recursion's input, all of which its steps have. */
void pfs_bind_queue_columns(struct pfs_binder *binder, struct pfs_input *input);
/* Binds the rows of the step before. */
PFS_MUST_CHECK int pfs_bind_queue(struct pfs_binder *binder, struct pfs_input *input);
/* Refuses the input's last part if it is no step to children of nodes. */
void pfs_bind_check_step(struct pfs_binder *binder, struct pfs_input *input);

/* ---- bind_rows.c ---- */

/* If the block's only input is a sub-select of plain columns of nodes, makes the nodes the input
 * (is_flat), and the sub-select's WHERE the block's. */
PFS_MUST_CHECK int pfs_bind_flatten(struct pfs_binder *binder);
/* Sets the block's `rows` if it is a SELECT of rows as they are; where it is none, `lax` is
 * refused. */
PFS_MUST_CHECK int pfs_bind_rows(struct pfs_binder *binder);

/* ---- bind_column.c ---- */

/* Returns the column of one of the inputs; NULL: there is none (which is no error yet), or it is
 * refused. */
struct pfs_term *pfs_bind_column(struct pfs_binder *binder, const struct pfs_name *table,
				 const struct pfs_name *name);
struct pfs_term *pfs_bind_input_column(struct pfs_binder *binder, unsigned input, unsigned number);
/* Returns such a term for a column that SQLite does not know of, so it is left out of the key. */
struct pfs_term *pfs_bind_own_column(struct pfs_binder *binder, unsigned input, unsigned number);

/* ---- bind_compound.c ---- */

/* Binds a whole SELECT into the binder's block, which is new. */
PFS_MUST_CHECK int pfs_bind_select(struct pfs_binder *binder, const struct pfs_select *select);
/* Makes a sub-select, or a CTE's, an input of the block. names NULL: its columns have the names of
 * its results. */
PFS_MUST_CHECK int pfs_bind_blocks(struct pfs_binder *binder, struct pfs_input *input,
				   const struct pfs_select *select,
				   const struct pfs_bind_scope *scope,
				   const struct pfs_column_names *names);

/* Makes a CTE that is closed such an input. */
PFS_MUST_CHECK int pfs_bind_closed_blocks(struct pfs_binder *binder, struct pfs_input *input,
					  const struct pfs_bind_scope *scope,
					  const struct pfs_cte *cte);

/* Makes a CTE that is recursive such an input. */
PFS_MUST_CHECK int pfs_bind_recursive_blocks(struct pfs_binder *binder, struct pfs_input *input,
					     const struct pfs_bind_scope *scope,
					     const struct pfs_cte *cte);

/* ---- bind_from.c ---- */

/* Binds the sources and how they are joined. */
PFS_MUST_CHECK int pfs_bind_from(struct pfs_binder *binder, const struct pfs_from *from);

/* ---- lift.c ---- */

/* Makes *core the SELECT whose sub-selects in conditions and results are sources behind those of
 * its FROM, in the arena; the same, if it has none. end: as pfs_bind_core. */
PFS_MUST_CHECK int pfs_bind_lift(struct pfs_binder *binder, const struct pfs_core **core,
				 const struct pfs_select *end);

/* Sets *out to what `first INTERSECT second`, or EXCEPT, is as one SELECT in the arena: DISTINCT,
 * with the second one a source behind those of the first. NULL: it is left as it is, for a column
 * of the first may be NULL, or one of the second is none. */
PFS_MUST_CHECK int pfs_bind_lift_set(struct pfs_binder *binder, const struct pfs_core **out,
				     const struct pfs_core *first, const struct pfs_core *second);

/* ---- bind_term.c ---- */

/* Remembers the reason; returns NULL.  The first one counts. */
void *pfs_bind_refuse(struct pfs_binder *binder, const char *why);
/* Returns a copy, in the arena, of a name that may be gone before what is bound; "" on -ENOMEM. */
const char *pfs_bind_keep(struct pfs_binder *binder, const char *name);
void *pfs_bind_get(struct pfs_binder *binder, size_t size); /* zeroed; NULL: -ENOMEM */
/* Notes a column that SQLite is asked about. */
void pfs_bind_read(struct pfs_binder *binder, const char *table, const char *column);
/* Notes a column that SQLite may or may not be asked about. */
void pfs_bind_may_read(struct pfs_binder *binder, const char *table, const char *column);
/* Returns true if the name is this word, in upper or lower case; false where word is NULL, as of
 * what has no name. */
bool pfs_name_is(const struct pfs_name *name, const char *word);
struct pfs_term *pfs_term_new(struct pfs_binder *binder, enum pfs_bound_kind kind,
			      enum pfs_class class);
/* Gives `bound` another argument, and returns it. */
struct pfs_term *pfs_term_add(struct pfs_binder *binder, struct pfs_term *bound,
			      struct pfs_term *arg);
/* Makes a step; b NULL: of an operator of one operand. */
struct pfs_term *pfs_bound_step(struct pfs_binder *binder, enum pfs_op op, enum pfs_class class,
				struct pfs_term *a, struct pfs_term *b);
struct pfs_term *pfs_term_integer(struct pfs_binder *binder, int64_t value);
struct pfs_term *pfs_term_null(struct pfs_binder *binder);
/* Finds the CTE of that name, and the scope that its own names are of; NULL: there is none. */
const struct pfs_cte *pfs_bind_find_cte(const struct pfs_binder *binder,
					const struct pfs_bind_scope **scope,
					const struct pfs_name *name);

/* ---- bind_compare.c ---- */

struct pfs_term *pfs_bind_comparison(struct pfs_binder *binder, enum pfs_op op, struct pfs_term *a,
				     struct pfs_term *b);
/* Puts NOT before it, if negated. */
struct pfs_term *pfs_bind_not(struct pfs_binder *binder, struct pfs_term *bound, bool negated);
struct pfs_term *pfs_bind_both(struct pfs_binder *binder, enum pfs_op op, struct pfs_term *a,
			       struct pfs_term *b);
/* Joins two conditions by AND; a NULL: returns b alone. */
struct pfs_term *pfs_bind_and(struct pfs_binder *binder, struct pfs_term *a, struct pfs_term *b);
struct pfs_term *pfs_bind_between(struct pfs_binder *binder, const struct pfs_expr *expr);
struct pfs_term *pfs_bind_in(struct pfs_binder *binder, const struct pfs_expr *expr);
struct pfs_term *pfs_bind_like(struct pfs_binder *binder, const struct pfs_expr *expr);

/* ---- bind_text.c ---- */

#define PFS_TEXT_ARGS_MAX 3

/* Returns true for a function of texts, with n arguments. */
bool pfs_bind_is_text(const struct pfs_name *name, size_t n);
/* Binds a call of one. */
struct pfs_term *pfs_bind_text(struct pfs_binder *binder, const struct pfs_name *name,
			       struct pfs_term *const *args, size_t n);
/* Binds left || right. */
struct pfs_term *pfs_bind_concat(struct pfs_binder *binder, const struct pfs_term *left,
				 const struct pfs_term *right);

/* ---- bind_call.c ---- */

struct pfs_term *pfs_bind_call(struct pfs_binder *binder, const struct pfs_expr *expr);
/* Binds a CASE from that WHEN on; item NULL: its ELSE. */
struct pfs_term *pfs_bind_whens(struct pfs_binder *binder, const struct pfs_expr *expr,
				const struct pfs_item *item);

#endif
