/* SPDX-License-Identifier: MIT */
/* fs/query/relational/lift.h - inside of pfs_bind_lift (bind.h): sub-selects on their way to
 * sources. lift.c finds them in expressions, lift_source.c makes sources of them, lift_tree.c what
 * nobody has written of the tree.
 *
 * Whoever returns a node returns NULL when binder->error is set, and all take such a NULL. */
#ifndef PFS_FS_QUERY_RELATIONAL_LIFT_H
#define PFS_FS_QUERY_RELATIONAL_LIFT_H

#include "fs/query/relational/bind.h"

/* ---- lift_tree.c ---- */

struct pfs_expr *pfs_lift_expr(struct pfs_binder *binder, enum pfs_expr_kind kind);
/* a op b. */
struct pfs_expr *pfs_lift_step(struct pfs_binder *binder, enum pfs_ast_op op, struct pfs_expr *a,
			       struct pfs_expr *b);
/* Makes it `*all AND one`; *all NULL: one. */
void pfs_lift_and(struct pfs_binder *binder, struct pfs_expr **all, struct pfs_expr *one);
/* expr IS [NOT] NULL. */
struct pfs_expr *pfs_lift_is_null(struct pfs_binder *binder, struct pfs_expr *expr, bool negated);
/* A number of that kind; digits: a constant. */
struct pfs_expr *pfs_lift_number(struct pfs_binder *binder, enum pfs_expr_kind kind,
				 const char *digits);
/* name(arg); arg NULL: name(*). name: a constant. */
struct pfs_expr *pfs_lift_call(struct pfs_binder *binder, const char *name, struct pfs_expr *arg);
/* Adds to *items, which are made with the first. expr NULL: a result `*`. */
void pfs_lift_add(struct pfs_binder *binder, struct pfs_items **items, struct pfs_expr *expr);

/* ---- lift_source.c ---- */

/* Holds the sources of one SELECT, and behind them those of its sub-selects. */
struct pfs_lift {
	struct pfs_binder *binder;
	struct pfs_from *first, *last;
	unsigned n;
};

/* One sub-select; an expression of its own is one of the SELECT `core`. */
struct pfs_lifted {
	struct pfs_lift *lift;
	const struct pfs_core *core;
	struct pfs_items *results; /* the keys, in the order of `on`, and then what is asked for */
	struct pfs_expr *on;	   /* NULL: nothing ties it to the SELECT around it */
	struct pfs_expr *where;	   /* what is left of its own */
	const struct pfs_name *alias;
	struct pfs_column_names *names, *last_name; /* of the results */
	bool is_once; /* nothing of the SELECT around is named in it */
};

void pfs_lifted_begin(struct pfs_lifted *lifted, struct pfs_lift *lift,
		      const struct pfs_core *core);
/* Takes WHERE apart at its ANDs into keys and what the sub-select keeps. */
void pfs_lifted_split(struct pfs_lifted *lifted, struct pfs_expr *where);
/* Adds a key, own = outer; is_outer_first: outer = own, since whose collation counts depends on the
 * side. */
void pfs_lifted_add_key(struct pfs_lifted *lifted, struct pfs_expr *own, struct pfs_expr *outer,
			bool is_outer_first);
/* Adds a result, and returns the column that it is in the SELECT around. */
struct pfs_expr *pfs_lifted_add(struct pfs_lifted *lifted, struct pfs_expr *expr);
/* Returns the first result's column. */
struct pfs_expr *pfs_lifted_key(const struct pfs_lifted *lifted);
/* Returns true if the expression names a column of the SELECT around. */
bool pfs_lifted_names_outer(const struct pfs_lifted *lifted, const struct pfs_expr *expr);
/* Adds the source: `core` with the results that were added. */
void pfs_lifted_finish(struct pfs_lifted *lifted, const struct pfs_select *select,
		       const struct pfs_core *core);
/* Returns true for a column of these sources that is declared so that it cannot be NULL. */
bool pfs_lift_is_never_null(struct pfs_binder *binder, const struct pfs_from *from,
			    const struct pfs_expr *expr);

#endif
