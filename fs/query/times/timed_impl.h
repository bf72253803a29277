/* SPDX-License-Identifier: MIT */
/* fs/query/times/timed_impl.h - what the files behind timed.h share: timed.c (statements, what is
 * put into them), timed_expr.c (expressions and what they compare), timed_select.c (selects and
 * their columns), timed_scope.c (names).
 *
 * Once memory was short (t->error) whatever is asked for is empty, and all return soon. */
#ifndef PFS_FS_QUERY_TIMES_TIMED_IMPL_H
#define PFS_FS_QUERY_TIMES_TIMED_IMPL_H

#include "fs/query/parse/arena.h"
#include "fs/query/parse/parse.h"
#include "fs/query/times/timed.h"
#include "fs/query/times/times.h"

enum pfs_timed_kind {
	PFS_BOUND_NOT,	   /* no time */
	PFS_BOUND_LITERAL, /* NULL or a number: may stand among times and others */
	PFS_BOUND_TIME,
	PFS_BOUND_SUM,	 /* a time and something else: numbers beside it are as they are */
	PFS_BOUND_MIXED, /* sometimes a time, or not known */
};

struct pfs_timed_column {
	const char *name; /* NULL: none that could be written */
	uint32_t len;
	enum pfs_timed_kind bound;
	bool is_hidden; /* from `*` */
	bool is_merged; /* USING or NATURAL: the one before it has its name */
};

struct pfs_timed_columns {
	struct pfs_timed_column *list; /* in the arena */
	size_t n, capacity;
};

struct pfs_timed_source { /* one of FROM */
	const struct pfs_name *name;
	struct pfs_timed_columns columns;
	struct pfs_timed_source *next;
};

struct pfs_timed_scope {
	struct pfs_timed_source *first, *last;
	const struct pfs_timed_columns *aliases; /* of results; NULL: not to be used here */
	const struct pfs_timed_scope *outer;
};

/* The CTEs that are known at a place. */
struct pfs_timed_ctes {
	const struct pfs_with *with;
	struct pfs_timed_cte *states; /* by the CTEs of `with`, in their order */
	const struct pfs_timed_scope *scope; /* around the WITH */
	struct pfs_timed_ctes *outer;
};

struct pfs_timed_cte {
	bool is_begun;
	struct pfs_timed_columns columns;
};

enum pfs_insertion_kind { PFS_INSERT_CLOSING, PFS_INSERT_OPENING, PFS_INSERT_INSTEAD };

struct pfs_insertion {
	uint32_t at, old_len; /* in the text that is parsed */
	enum pfs_insertion_kind kind;
	size_t number; /* in their order */
	const char *text;
};

struct pfs_timed {
	struct pfs_arena arena;
	const char *text;
	const struct pfs_timed_tables *tables;
	int64_t now;
	struct pfs_insertion *insertions;
	size_t n, capacity;
	struct pfs_sql_problem *doubt;
	unsigned depth; /* of selects */
	int error;
};

/* Notes a doubt; only the first one counts. */
void pfs_timed_doubt(struct pfs_timed *t, uint32_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Notes what is put into the text; `text` is a constant, or the arena's. */
void pfs_timed_insert(struct pfs_timed *t, uint32_t at, uint32_t old_len,
		      enum pfs_insertion_kind kind, const char *text);

/* ---- timed_scope.c ---- */

bool pfs_timed_same(const char *a, size_t a_len, const char *b, size_t b_len);
void pfs_timed_add_column(struct pfs_timed *t, struct pfs_timed_columns *columns,
			  const struct pfs_timed_column *column);
void pfs_timed_add_columns(struct pfs_timed *t, struct pfs_timed_columns *to,
			   const struct pfs_timed_columns *from, bool all);
struct pfs_timed_source *pfs_timed_add_source(struct pfs_timed *t, struct pfs_timed_scope *scope,
					      const struct pfs_name *name);
/* Joins the last source with those before it: what both have is one column. */
void pfs_timed_merge(struct pfs_timed *t, struct pfs_timed_scope *scope,
		     const struct pfs_from *from);
/* Gets the columns of a CTE or a table; at: where it is named. */
void pfs_timed_table(struct pfs_timed *t, struct pfs_timed_columns *columns,
		     const struct pfs_name *schema, const struct pfs_name *name,
		     struct pfs_timed_ctes *ctes);
struct pfs_timed_column *pfs_timed_find_column(const struct pfs_timed_columns *columns,
					       const char *name, size_t len);
/* Returns what a column is. *is_string: there is no such column, and SQLite takes it for text. */
enum pfs_timed_kind pfs_timed_resolve(const struct pfs_expr *column,
				      const struct pfs_timed_scope *scope, bool *is_string);

/* ---- timed_select.c ---- */

/* Returns the columns of a SELECT. ctes may be NULL, and so may scope. */
struct pfs_timed_columns pfs_timed_select(struct pfs_timed *t, const struct pfs_select *select,
					  const struct pfs_timed_scope *scope,
					  struct pfs_timed_ctes *ctes);
void pfs_timed_cte(struct pfs_timed *t, struct pfs_timed_ctes *ctes, const struct pfs_cte *cte,
		   struct pfs_timed_cte *state);
struct pfs_timed_ctes *pfs_timed_with(struct pfs_timed *t, const struct pfs_with *with,
				      const struct pfs_timed_scope *scope,
				      struct pfs_timed_ctes *outer);
void pfs_timed_from(struct pfs_timed *t, struct pfs_timed_scope *scope, const struct pfs_from *from,
		    struct pfs_timed_ctes *ctes);
/* Returns what stands at a place where either may stand. */
enum pfs_timed_kind pfs_bound_either(enum pfs_timed_kind a, enum pfs_timed_kind b);

/* ---- timed_expr.c; expressions and lists may be NULL ---- */

enum pfs_timed_kind pfs_timed_expr(struct pfs_timed *t, const struct pfs_expr *expr,
			      const struct pfs_timed_scope *scope, struct pfs_timed_ctes *ctes);
void pfs_timed_items(struct pfs_timed *t, const struct pfs_items *items,
		     const struct pfs_timed_scope *scope, struct pfs_timed_ctes *ctes);
/* Notes that the column (NULL: none) is set to a value that is bound so: it is made a time if the
 * column is one. */
void pfs_timed_set(struct pfs_timed *t, const struct pfs_timed_columns *columns,
		   const struct pfs_name *column, const struct pfs_expr *value,
		   enum pfs_timed_kind bound);

#endif
