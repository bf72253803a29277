/* SPDX-License-Identifier: MIT */
/* fs/query/parse/ast.h - a statement as a tree: what was written, with nothing looked up.
 *
 * Every node lies in the arena of the struct pfs_parsed that it belongs to, and is read only. Every
 * node says where it stands: a span is `len` bytes of the statement from byte `at` on.  A pointer
 * is NULL where the statement has nothing, unless its comment says otherwise. Whoever walks the
 * tree may recurse: it is at most PFS_AST_DEPTH_MAX deep (parse.h). */
#ifndef PFS_FS_QUERY_PARSE_AST_H
#define PFS_FS_QUERY_PARSE_AST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pfs_text_range {
	uint32_t at, len;
};

/* A word without its quotes, or a literal's text: of a string what it says, of a number its digits,
 * of a blob the digits between its quotes. */
struct pfs_name {
	const char *text; /* ended by a 0 besides; it may hold others */
	uint32_t len;
	char quote; /* what it was written in: " ' ` [, or 0 */
	struct pfs_text_range span;
};

enum pfs_ast_op {
	PFS_AST_NONE,
	PFS_AST_OR,
	PFS_AST_AND,
	PFS_AST_EQ,
	PFS_AST_NE,
	PFS_AST_LT,
	PFS_AST_LE,
	PFS_AST_GT,
	PFS_AST_GE,
	PFS_AST_IS, /* also IS NOT DISTINCT FROM */
	PFS_AST_IS_NOT,
	PFS_AST_BIT_AND,
	PFS_AST_BIT_OR,
	PFS_AST_SHIFT_LEFT,
	PFS_AST_SHIFT_RIGHT,
	PFS_AST_ADD,
	PFS_AST_SUBTRACT,
	PFS_AST_MULTIPLY,
	PFS_AST_DIVIDE,
	PFS_AST_REMAINDER,
	PFS_AST_CONCAT,
	PFS_AST_ARROW,	   /* -> */
	PFS_AST_LONG_ARROW, /* ->> */
	PFS_AST_NOT,	   /* of one operand, as the next three */
	PFS_AST_NEGATE,
	PFS_AST_PLUS,
	PFS_AST_BIT_NOT,
	PFS_AST_LIKE, /* of PFS_EXPR_LIKE, as the next three */
	PFS_AST_GLOB,
	PFS_AST_REGEXP,
	PFS_AST_MATCH,
};

enum pfs_expr_kind {
	PFS_EXPR_NULL,	    /* the literal */
	PFS_EXPR_INTEGER,   /* name: digits, without a sign, or 0x and digits */
	PFS_EXPR_REAL,	    /* name */
	PFS_EXPR_STRING,    /* name */
	PFS_EXPR_BLOB,	    /* name */
	PFS_EXPR_BIND,	    /* name: ?, ?7, :x, @x or $x */
	PFS_EXPR_NOW,	    /* name: CURRENT_DATE, CURRENT_TIME or CURRENT_TIMESTAMP */
	PFS_EXPR_COLUMN,    /* [[schema.]table.]name; a name in " may turn out to be a string */
	PFS_EXPR_UNARY,	    /* op left */
	PFS_EXPR_BINARY,    /* left op right */
	PFS_EXPR_LIKE,	    /* left [NOT] op right [ESCAPE third] */
	PFS_EXPR_IS_NULL,   /* left ISNULL, left [NOT] NULL; `left IS NULL` is PFS_EXPR_BINARY */
	PFS_EXPR_BETWEEN,   /* left [NOT] BETWEEN right AND third */
	PFS_EXPR_IN_LIST,   /* left [NOT] IN (items), which may be empty */
	PFS_EXPR_IN_SELECT, /* left [NOT] IN (select) */
	PFS_EXPR_IN_TABLE,  /* left [NOT] IN [schema.]name[(items)] */
	PFS_EXPR_CASE, /* CASE left WHEN items[0] THEN items[1] ... ELSE right END; left, right or
			  NULL */
	PFS_EXPR_CAST, /* CAST(left AS name); name's text is "" if no type was given */
	PFS_EXPR_COLLATE, /* left COLLATE name */
	PFS_EXPR_CALL,	  /* name([DISTINCT] items), name(*) if is_star; with FILTER (WHERE left) */
	PFS_EXPR_SELECT,  /* (select), a value or a row of them */
	PFS_EXPR_EXISTS,  /* EXISTS (select); NOT EXISTS is a PFS_EXPR_UNARY of it */
	PFS_EXPR_ROW,	  /* (items), two at least */
};

struct pfs_expr {
	enum pfs_expr_kind kind;
	enum pfs_ast_op op;
	bool negated;	  /* NOT LIKE, NOT IN, NOT BETWEEN; NOT NULL */
	bool is_distinct; /* of PFS_EXPR_CALL, as the next two */
	bool is_star;
	bool is_window; /* it has an OVER: `over` */
	bool in_parens; /* the span includes them */
	uint16_t depth; /* of the tree that it is the top of; a leaf's is 1 */
	struct pfs_text_range span;
	struct pfs_text_range
		op_span; /* of the operator's first word; of PFS_EXPR_CALL the name's */
	const struct pfs_name *schema, *table, *name;
	struct pfs_expr *left, *right, *third;
	struct pfs_items *items;
	struct pfs_items *over; /* a window's expressions, in the order written: first those of */
	uint16_t n_partition, n_order; /* PARTITION BY and of ORDER BY */
	bool is_plain_window; /* without another's name, and without a frame */
	struct pfs_select *select;
};

enum pfs_nulls { PFS_NULLS_DEFAULT, PFS_NULLS_FIRST, PFS_NULLS_LAST };

/* One of a list: a result, an argument, a term of ORDER BY or GROUP BY, a WHEN or a THEN ... */
struct pfs_item {
	struct pfs_expr *expr;	      /* NULL: `*` or `table.*` of a result */
	const struct pfs_name *table; /* of `table.*` */
	const struct pfs_name *alias; /* of a result; of SET and INSERT the column */
	bool is_descending;
	enum pfs_nulls nulls;
	struct pfs_text_range span; /* without the alias, without ASC or DESC */
	struct pfs_item *next;
};

struct pfs_items {
	struct pfs_item *first, *last; /* never NULL in a list of results, terms or rows */
	size_t n;
	uint16_t depth;
	struct pfs_items *next; /* the next row of VALUES */
};

struct pfs_column_names {
	struct pfs_name name;
	struct pfs_column_names *next;
};

enum pfs_joins {
	PFS_JOINS_COMMA = 1,
	PFS_JOINS_NATURAL = 2,
	PFS_JOINS_LEFT = 4,
	PFS_JOINS_RIGHT = 8, /* with PFS_JOINS_LEFT: FULL */
	PFS_JOINS_CROSS = 16,
	PFS_JOINS_INNER = 32, /* said */
	PFS_JOINS_OUTER = 64, /* said */
};

enum pfs_from_kind {
	PFS_FROM_TABLE,    /* [schema.]name, or a CTE's */
	PFS_FROM_FUNCTION, /* [schema.]name(args) */
	PFS_FROM_SELECT,   /* (select) */
	PFS_FROM_JOIN,     /* (inner), more sources in parentheses */
};

/* One of a FROM, in the order written.  How it is joined with what stands before it is its own. */
struct pfs_from {
	enum pfs_from_kind kind;
	unsigned join; /* enum pfs_joins, or-ed; 0: the first, or a plain JOIN */
	const struct pfs_name *schema, *name, *alias;
	struct pfs_items *args;
	struct pfs_select *select;
	struct pfs_from *inner;
	struct pfs_expr *on;
	struct pfs_column_names *using;
	struct pfs_column_names
		*columns; /* of a sub-select that stood in an expression; the grammar has none */
	bool is_once;	  /* of such a sub-select: SQLite, too, runs it once, and not for each row
			     around it */
	bool is_indexed; /* INDEXED BY or NOT INDEXED */
	uint16_t depth;
	struct pfs_text_range span;		/* without the alias and ON */
	struct pfs_from *next, *last; /* last: of the first one's list */
};

enum pfs_compound { PFS_COMPOUND_NONE, PFS_UNION_ALL, PFS_UNION, PFS_INTERSECT, PFS_EXCEPT };

/* One SELECT of a compound, or VALUES. */
struct pfs_core {
	enum pfs_compound compound; /* with all before it, which bind as strongly */
	struct pfs_text_range span;
	bool is_distinct;
	struct pfs_items *results; /* NULL: VALUES */
	struct pfs_from *from;
	struct pfs_expr *where;
	struct pfs_items *group;
	struct pfs_expr *having;
	struct pfs_items *windows; /* the expressions of WINDOW */
	struct pfs_items *rows;	   /* of VALUES, chained by `next` */
	struct pfs_core *next;
};

enum pfs_materialized { PFS_CTE_DEFAULT, PFS_CTE_MATERIALIZED, PFS_CTE_NOT_MATERIALIZED };

struct pfs_cte {
	struct pfs_name name;
	struct pfs_column_names *columns;
	enum pfs_materialized materialized;
	struct pfs_select *select;
	struct pfs_cte *next;
};

struct pfs_with {
	bool is_recursive; /* the word was said */
	struct pfs_cte *first, *last;
	uint16_t depth;
};

struct pfs_select {
	struct pfs_text_range span; /* of its cores, its ORDER BY and LIMIT; not of the WITH */
	struct pfs_with *with;
	struct pfs_core *first, *last; /* never NULL */
	struct pfs_items *order;
	struct pfs_expr *limit, *offset;
	uint16_t depth;
};

enum pfs_statement_kind {
	PFS_STATEMENT_SELECT,
	PFS_STATEMENT_INSERT,
	PFS_STATEMENT_UPDATE,
	PFS_STATEMENT_DELETE,
	PFS_STATEMENT_CREATE_TABLE,
	PFS_STATEMENT_DROP_TABLE,
	PFS_STATEMENT_CREATE_INDEX,
	PFS_STATEMENT_DROP_INDEX,
};

struct pfs_column_def {
	struct pfs_name name;
	struct pfs_name type; /* its words as written; len 0: none */
	bool is_not_null, is_primary_key, is_descending;
	struct pfs_expr *default_value;
	struct pfs_column_def *next, *last;
};

struct pfs_statement {
	enum pfs_statement_kind kind;
	struct pfs_text_range span; /* from its first word to its last, without a semicolon */
	/* SELECT; INSERT's rows; CREATE TABLE ... AS */
	struct pfs_select *select;
	struct pfs_with *with;			       /* of INSERT, UPDATE and DELETE */
	const struct pfs_name *schema, *table, *alias; /* DROP INDEX: the index's in `table` */
	bool has_conflict;			       /* OR REPLACE and the like; REPLACE INTO */
	bool is_temporary, is_unique, if_exists;       /* if_exists: IF [NOT] EXISTS */
	struct pfs_column_names *columns;		       /* of INSERT */
	struct pfs_items *set;			       /* of UPDATE: alias = expr */
	struct pfs_from *from;		       /* of UPDATE */
	struct pfs_expr *where;			       /* also CREATE INDEX's */
	struct pfs_items *order;		       /* also CREATE INDEX's columns */
	struct pfs_expr *limit, *offset;
	const struct pfs_name *index; /* of CREATE INDEX */
	struct pfs_column_def *definitions;
};

#endif
