/* SPDX-License-Identifier: MIT */
/* fs/query/relational/bound.h - a SELECT whose names mean something: what is read, and what is
 * computed of it, in the words of the operators (gpu/predicate.h).
 *
 * What is not known to be computed there exactly as by SQLite is not bound, and SQLite runs the
 * statement: an operator is here only if its operands' classes, affinities and collations leave no
 * question.  Everything lies in one arena. */
#ifndef PFS_FS_QUERY_RELATIONAL_BOUND_H
#define PFS_FS_QUERY_RELATIONAL_BOUND_H

#include "fs/query/internal.h"
#include "fs/query/parse/arena.h"
#include "fs/query/parse/parse.h"
#include "fs/nodes/columns.h"
#include "gpu/aggregate.h"
#include "gpu/relation.h"
#include "gpu/window.h"

#define PFS_AGGREGATES_MAX 64
#define PFS_INPUTS_MAX	   16
#define PFS_MADE_MAX	   16 /* of a block; with more it is SQLite's */
#define PFS_TERM_ARGS_MAX  8
#define PFS_FEW_ROWS	   100 /* that SQLite takes groups for at most */

enum pfs_class {		 /* of values that are not NULL */
		 PFS_CLASS_NONE, /* always NULL */
		 PFS_CLASS_NUMBER,
		 PFS_CLASS_TRUTH, /* 0 or 1 */
		 PFS_CLASS_TEXT,
};

enum pfs_affinity { PFS_NO_AFFINITY, PFS_NUMERIC, PFS_TEXTUAL };

enum pfs_bound_kind {
	PFS_BOUND_CONSTANT, /* constant */
	PFS_BOUND_COLUMN,   /* input, column */
	PFS_BOUND_STEP,	    /* op of args; LIKE and the like: constant, escape; IN: list */
	PFS_BOUND_NODES, /* the tree's function `test` of ino and a node: the input's row is one */
	PFS_BOUND_AGGREGATE, /* number `aggregate` of the block's */
	PFS_BOUND_MADE, /* steps on the text of args[0], a column: a column of the same input */
	/* A window function of the block: `aggregate` is the number of its window times
	 * WINDOW_FUNCTIONS_MAX (bind_call.c), plus its own number in that window. */
	PFS_BOUND_WINDOW,
	PFS_BOUND_PRINTED, /* args, as `format` prints them; constant: as that was written */
};

struct pfs_text_step; /* textchain.h */

struct pfs_term {
	enum pfs_bound_kind kind;
	enum pfs_class class;
	enum pfs_affinity affinity;
	enum pfs_collation collation;
	bool is_late; /* a column that the operators have not: only a result of the whole, or a
		       * key */
	bool is_path; /* of a key: the node's number, which is in place of its path */
	bool has_collation; /* a column's, or */
	bool is_collated;   /* said with COLLATE */
	bool can_be_null;
	enum pfs_op op;
	struct pfs_term *args[PFS_TERM_ARGS_MAX]; /* which others may have, too */
	unsigned n_args;
	unsigned size; /* terms that are met on a walk from here: PFS_PROGRAM_STEPS at most */
	struct pfs_constant constant;
	struct pfs_constant *list;
	size_t n_list;
	uint32_t escape;
	const struct pfs_sql_format *format; /* PRINTED */
	const struct pfs_text_step *steps; /* MADE */
	unsigned n_steps;
	unsigned input, column;
	size_t aggregate;
	enum pfs_test test;
	struct pfs_sql_value node;
};

struct pfs_bound_aggregate {
	enum pfs_aggregate_op op;
	struct pfs_term *arg;	       /* NULL: count(*) */
	struct pfs_constant separator; /* GROUP_CONCAT: a text */
};

/* A column that a statement may name. */
struct pfs_input_column {
	const char *name;
	struct pfs_column_wish wish; /* of nodes */
	enum pfs_class class;
	enum pfs_affinity affinity;
	enum pfs_collation collation;
	bool can_be_null;
	enum pfs_node_kind kind; /* of nodes: OWNER and GROUP are the names of the wish's numbers */
	const char *why_not; /* the operators cannot have it; NULL: they can */
	bool is_late;	     /* of nodes: they cannot, but it is known of each node in the end */
	bool is_total; /* of nodes: of a subtree; why_not is of rows as they are, else totals.c
			  makes it */
	bool is_used;	     /* as a column of the operators' */
	bool is_hidden;	     /* not one of those that NATURAL compares */
	bool is_merged;	     /* with one before it, by USING or NATURAL */
	unsigned at;	     /* among the used ones */
	unsigned number;     /* of nodes: in their table */
};

enum pfs_input_kind {
	PFS_INPUT_NODES,
	PFS_INPUT_SIDE,
	PFS_INPUT_BLOCKS,
	PFS_INPUT_VALUES,
	PFS_INPUT_QUEUE, /* of a step of a recursion: the rows of the step before */
};

struct pfs_block;

struct pfs_input {
	enum pfs_input_kind kind;
	const char *table; /* as it is declared; of BLOCKS a CTE's, of others and VALUES "" */
	const char *name;  /* what columns of it may be qualified with */
	struct pfs_input_column *columns;
	size_t n_columns;
	size_t n_used;
	bool is_read; /* some column of it is */
	bool is_left; /* LEFT JOIN */
	bool is_cross; /* CROSS JOIN, by which SQLite keeps to the order of tables */
	/* A sub-select of an expression (lift.c); is_value: of one row, joined with none,
	 * whose numbers are constants once it has run. */
	bool is_lifted, is_value;
	bool is_once; /* lifted: SQLite, too, runs it once */
	bool is_flat; /* nodes, of which a sub-select shows some columns (bind_rows.c) */
	const struct pfs_side_table *side;
	/* BLOCKS, a sub-select: the rows of all parts, one after another; those columns that are
	 * used are each part's results, by number. */
	struct pfs_block **parts;
	size_t n_parts;
	/* More than 0: the parts from that one on are steps of a recursion, which are run until
	 * they have no more rows. */
	size_t n_first;
	/* QUEUE: whose steps' rows they are; the step's nodes are children of those that its column
	 * `key` has the numbers of. */
	const struct pfs_input *of;
	unsigned key;
	/* VALUES, which the statement says itself: row by row; in each column NULLs and values of
	 * one type */
	const struct pfs_constant *values;
	size_t n_rows;
	/* Nodes that were folded (fold.c): the input of their children, in whose table this input's
	 * columns lie, behind that one's own; this input is not joined. Else the input's own
	 * number; is_value: PFS_INPUTS_MAX. */
	unsigned parent_of;
	/* Conditions, each as it stands in an AND: */
	struct pfs_term *on;	/* of ON, with the inputs before it; NULL: none */
	struct pfs_term *equal; /* of USING and NATURAL, too */
};

struct pfs_bound_order {
	struct pfs_term *value;
	bool is_descending, nulls_last;
};

/* A window of a block, and its functions. */
struct pfs_bound_window {
	struct pfs_bound_order *keys; /* of the partitions, then of the order */
	size_t n_keys, n_partition;
	struct pfs_bound_function {
		enum pfs_window_op op;
		struct pfs_term *arg; /* NULL: it has none */
		int64_t distance;
		struct pfs_term *term; /* that it is named by */
	} *functions;
	size_t n_functions;
};

/* A SELECT of columns of nodes, row by row, in no order or one that the image has: what its cursor
 * (cursor.h) goes by. */
struct pfs_row_plan {
	int *columns;		/* of the table, by result */
	size_t n_columns;
	struct pfs_sql_argument *arguments; /* the conditions that a scan answers, */
	size_t n_arguments;
	const struct pfs_term **rest; /* and the others; each as it stands in an AND */
	size_t n_rest;
	/* True for a LIMIT without an order whose conditions use no index. `rest` repeats the
	 * conditions, since the first rows may satisfy the LIMIT. */
	bool is_short;
	struct pfs_order order[PFS_ORDERS_MAX];
	size_t n_order;
};

struct pfs_block {
	struct pfs_row_plan *rows; /* NULL: it is no such SELECT */
	struct pfs_input *inputs; /* their side tables are to be put back */
	size_t n_inputs;
	struct pfs_term *where; /* NULL: none; as having */
	struct pfs_term **group;
	size_t n_group;
	struct pfs_bound_aggregate *aggregates;
	size_t n_aggregates;
	struct pfs_term *having;
	/* Not of a block that is grouped or distinct.  As they are met: SQLite sorts by the last
	 * one first, so that the first one's order is that of the rows. */
	struct pfs_bound_window *windows;
	size_t n_windows;
	struct pfs_term **results;
	size_t n_results;
	struct pfs_bound_order *order;
	size_t n_order;
	/* Of a part: its ORDER BY, which no LIMIT needs. It is the outer SELECT's if that leaves
	 * rows as they are. */
	struct pfs_bound_order *dropped;
	size_t n_dropped;
	bool is_in_order; /* its rows come in the order of a sub-select's */
	const struct pfs_term *
		made[PFS_MADE_MAX]; /* MADE that are used: columns of their tables, in this order */
	size_t n_made;
	size_t n_printed; /* PRINTED terms and their arguments, equal ones included */
	bool is_grouped; /* GROUP BY, or aggregates without it: n_group 0 */
	bool is_aggregate; /* it is written so, and no compound that is made so */
	/* GROUP BY has as many terms as ORDER BY, and SQLite makes its groups descend by each term
	 * that stands where one of ORDER BY descends. That shows where ORDER BY leaves the order of
	 * groups open. */
	bool groups_descend;
	bool is_distinct;
	bool is_set;  /* distinct rows of a compound, which SQLite has in the order of all their
			 columns */
	bool shows_order; /* in which order its rows come is seen, if only by a LIMIT */
	bool passes_order; /* and with that in which order those of its first input's parts come */
	/* SQLite meets its rows in one scan of nodes alone, and each group's as they ascend: what
	 * depends on the order of rows is known. */
	bool is_scan;
	bool wants_places; /* which rows of its only input they are, is part of the answer */
	uint64_t limit, offset; /* limit UINT64_MAX: none */
};

/* Says what SQLite is to prepare before it tells what it reads. text NULL: nothing, for it has
 * prepared all. */
struct pfs_bind_part {
	const char *text;
	size_t len;
	bool is_prepared; /* out: it was asked; the statement that it had is gone */
	bool is_change; /* the SELECT is what changes rows of its table, of which SQLite need not be
			   asked whether it is read */
	bool takes_rows; /* a part that may be rows of nodes as they are (struct pfs_row_plan) */
};

/* Binds a SELECT; *out is in the arena. -ENOTSUP: it is not taken, and *why says which part of it;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_bind(struct pfs_block **out, const char **why, struct pfs_query *query,
			    struct pfs_arena *arena, const struct pfs_select *select,
			    struct pfs_bind_part *part);
/* Returns true if the rows that a LIMIT leaves follow from the order alone; false: they may be some
 * of several that are equal, and another run may leave others. */
bool pfs_block_is_determined(const struct pfs_block *block);
/* Returns true if they are SQLite's, too, since it is known in which order it has those that the
 * order leaves open. */
bool pfs_block_is_known(const struct pfs_block *block);
/* Returns true if it is seen that rows are joined in the order of the first input's. */
bool pfs_block_keeps_order(const struct pfs_block *block);
/* Returns true if it has an ORDER BY, or a sub-select has, that SQLite leaves out where something
 * else orders the rows or joins them. */
bool pfs_block_may_lose_order(const struct pfs_block *block);
/* Returns true if SQLite plans with PFS_FEW_ROWS of them at most. */
bool pfs_block_is_few(const struct pfs_block *block);
/* Returns true if there are more inputs than the first one and sub-selects in expressions. */
bool pfs_block_joins(const struct pfs_block *block);
/* Returns true for that column of an input of nodes. */
bool pfs_block_is_field(const struct pfs_block *block, const struct pfs_term *term,
			enum pfs_field field);
/* Returns true for a column of nodes that is a subtree's total. */
bool pfs_block_is_total(const struct pfs_block *block, const struct pfs_term *term);
/* Returns true if some column that the block or a part of it computes with is one. */
bool pfs_block_has_totals(const struct pfs_block *block);
/* Returns true for a node's number as it is, which no two rows of its input share. */
bool pfs_block_is_node(const struct pfs_block *block, const struct pfs_term *term);
/* Returns the inputs that the term names, bit by bit; what is a column of another input counts as
 * that one's. */
uint32_t pfs_term_inputs(const struct pfs_block *block, const struct pfs_term *term);
/* fold.c: sets parent_of where it can, for statements about all nodes. */
void pfs_block_fold(struct pfs_block *block);
/* Takes the side tables again that pfs_block_finish has put back, as they are now, for another
 * query of the same connection. -ESTALE: one is not what was bound; and other errors.
 * pfs_block_finish puts back those that were taken. */
PFS_MUST_CHECK int pfs_block_take_sides(struct pfs_block *block, struct pfs_query *query);
/* Returns the number of the block's made column that is this one; n_made: it has none. */
size_t pfs_block_made(const struct pfs_block *block, const struct pfs_term *term);
/* Puts back the side tables that the block uses; NULL is allowed. */
void pfs_block_finish(struct pfs_block *block, struct pfs_queries *queries);

bool pfs_bound_equals(const struct pfs_term *a, const struct pfs_term *b);
/* Returns true if the term's first steps are all those of `with`. */
bool pfs_steps_begin(const struct pfs_term *term, const struct pfs_term *with);
static inline bool pfs_bound_is_number(const struct pfs_term *bound)
{
	return bound->class != PFS_CLASS_TEXT;
}

#endif
