/* SPDX-License-Identifier: MIT */
/* fs/query/relational/run.h - a bound SELECT on the operators. */
#ifndef PFS_FS_QUERY_RELATIONAL_RUN_H
#define PFS_FS_QUERY_RELATIONAL_RUN_H

#include "fs/query/relational/bound.h"
#include "fs/query/relational/ownernames.h"

/* ---- programs.c: bound values as programs ---- */

/* A value that a vector or a column has already: a key, an aggregate, or a computed value. */
struct pfs_known_value {
	const struct pfs_term *bound;
	struct pfs_ref ref;
};

/* The rows for which a function of the tree is true. */
struct pfs_node_set {
	const struct pfs_term *bound;
	struct pfs_rows *rows;
};

/* Holds what programs of one stage of a statement may refer to. */
struct pfs_stage {
	struct pfs_arena *arena;
	const struct pfs_block *block;
	struct pfs_known_value *known;
	size_t n_known;
	bool has_columns; /* columns of all inputs may be named: nothing is grouped yet */
	/* After grouping, bit i is set if columns of input i may still be named, as its node's
	 * number is a key. Without grouping all bits are set. */
	uint32_t whole;
	const uint16_t *table_of; /* by input: the number of its table in the batch */
	const struct pfs_table *tables; /* by input; that of an input that is a value has one row */
	const struct pfs_node_set *sets;
	size_t n_sets;
};

/* Returns true, and sets *ref, if a column or vector of the stage is the value. */
bool pfs_stage_ref(const struct pfs_stage *stage, struct pfs_ref *ref,
		   const struct pfs_term *bound);
/* Returns true if the host can compute the aggregate's argument while it aggregates, so that it
 * need not be there before. */
bool pfs_stage_folds(const struct pfs_stage *stage, const struct pfs_bound_aggregate *aggregate);
/* Writes the block's aggregates to `out`, which has an empty place for each. -EOPNOTSUPP: one is of
 * a value that the stage does not have, and that is not computed meanwhile. */
PFS_MUST_CHECK int pfs_stage_aggregates(const struct pfs_stage *stage, struct pfs_aggregate *out,
					const struct pfs_block *block);
/* Makes a program that computes a value, or, of several conditions, their conjunction. -EOPNOTSUPP:
 * they refer to what is not there; -ENOMEM. */
PFS_MUST_CHECK int pfs_stage_program(const struct pfs_stage *stage, struct pfs_program *out,
				     const struct pfs_term *const *terms, size_t n);
/* Returns the number that a column, stored or made, has in its input's table. */
size_t pfs_stage_column(const struct pfs_stage *stage, const struct pfs_term *bound);
/* Notes that the value is there from now on, as `ref`. */
void pfs_stage_add(struct pfs_stage *stage, const struct pfs_term *bound, struct pfs_ref ref);

/* ---- run.c ---- */

struct pfs_eager; /* eager_groups.h */
struct pfs_joining;
struct pfs_subselect; /* subselect.c: the rows of a sub-select as a table */
struct pfs_kept_texts;
struct pfs_made_texts;
struct pfs_made_totals;

/* A recursion whose steps run. */
struct pfs_recursion {
	const struct pfs_input *of;
	struct pfs_table rows;		   /* the rows of the step before */
	const struct pfs_recursion *outer; /* the recursion in whose step this one runs, or NULL */
};

/* Holds what the blocks of a statement share while it runs. */
struct pfs_run_context {
	struct pfs_query *query;
	struct pfs_arena *arena;
	const struct pfs_run *run;
	pthread_t thread; /* that runs the statement, and alone asks whether it is to go on */
	struct pfs_owner_names
		owners[2]; /* names of users, and of groups; both are empty between runs */
	struct pfs_kept_texts
		*kept_texts; /* of kept_texts.c; freed when the statement's block has run */
	struct pfs_made_texts *made;	 /* of texts.c; freed then, too */
	const struct pfs_recursion *recursion; /* the one whose step runs, or NULL */
	struct pfs_few_nodes few;	       /* the last choice of few_nodes.c */
	bool is_slower;			       /* than SQLite, which the operators gave up for */
	uint64_t text_limit; /* most bytes of a text made of several rows; set where a block makes
				one */
};

/* Begins the context of a query's statement, and its run, which is the host's: its operators ask
 * the query whether they are to go on, and for memory. The thread is the caller, until `thread` is
 * set. All four stay where they are while operators run. */
void pfs_run_context_begin(struct pfs_run_context *context, struct pfs_run *run,
			   struct pfs_query *query, struct pfs_arena *arena);

/* A block that is being run. Each stage leaves the source of the next one. */
struct pfs_running {
	const struct pfs_block *block;
	struct pfs_run_context *context;
	struct pfs_query *query; /* this and the next two are the context's */
	struct pfs_arena *arena;
	const struct pfs_run *run;
	struct pfs_table *tables;	       /* by input */
	struct pfs_subselect *subselects;      /* what keeps the tables of sub-selects */
	struct pfs_made_totals *totals;	       /* what keeps the totals that were made */
	uint32_t has_lifted; /* bit i is set if input i is lifted and has its table, or marks */
	struct pfs_rows *marked[PFS_INPUTS_MAX]; /* by lifted input: the nodes that it marks */
	struct pfs_rows *rows[PFS_INPUTS_MAX]; /* by input: the selected rows; NULL: all */
	struct pfs_node_set *sets;
	struct pfs_eager *early;   /* NULL: inputs are joined as they are */
	struct pfs_tuples *tuples; /* NULL: the source is a table */
	struct pfs_source source;
	struct pfs_stage stage;
	struct pfs_joining *joining; /* the joins that are still to be done */
};

#define PFS_PIECE_ROWS	      (UINT64_C(1) << 19)
#define PFS_PIECE_ROWS_DEVICE (UINT64_C(1) << 28) /* a device takes a millisecond for 50,000,000 rows */

/* Returns how many rows a cursor looks at in one hold of the tree at most. */
static inline uint64_t pfs_running_piece(const struct pfs_running *running)
{
	if (running->query->piece)
		return running->query->piece;
	return running->run->on == PFS_ENGINE_HOST ? PFS_PIECE_ROWS : PFS_PIECE_ROWS_DEVICE;
}

#define PFS_LOOK_ROWS (UINT64_C(1) << 16) /* rows between two polls, where work is done row by row */

/* Polls the run once in PFS_LOOK_ROWS calls, of which each has the number of its row. */
static inline int pfs_running_look(const struct pfs_running *running, uint64_t row)
{
	return row % PFS_LOOK_ROWS ? 0 : pfs_run_poll(running->run);
}

/* ---- programs.c ---- */

/* Selects rows of the source, which is the input's, that the program is true for. */
PFS_MUST_CHECK int pfs_running_select(struct pfs_running *running, struct pfs_source *source,
				      unsigned input, const struct pfs_program *program);
/* Selects the rows that the source's condition is true for, if it has one yet. */
PFS_MUST_CHECK int pfs_running_settle(struct pfs_running *running);

/* One column of an answer: a vector, or one value that each row has. */
struct pfs_answer_column {
	struct pfs_vector vector;
	const struct pfs_constant *constant; /* what each row has; NULL: the vector says */
	char *text; /* copies of all rows' texts, one behind the other; NULL: it has no texts */
	uint64_t *offset; /* by row: where its text begins */
	uint64_t n_offsets;
};

struct pfs_answer_rows {
	struct pfs_answer_column *columns;
	size_t n_columns;
	uint64_t first, n; /* the answer is n rows of the vectors, from the first on */
	uint32_t *places; /* by row of the vectors; NULL: the block does not want them */
	uint64_t n_places;
};

/* Begins the stages of a block. pfs_running_end frees what they had, also after a begin that
 * failed. -ENOMEM. */
PFS_MUST_CHECK int pfs_running_begin(struct pfs_running *running, const struct pfs_block *block,
				     struct pfs_run_context *context);
void pfs_running_end(struct pfs_running *running);

/* The first stage: makes the tables of the inputs, and joins their rows. */
PFS_MUST_CHECK int pfs_running_find(struct pfs_running *running);
/* Runs the block, with the tree held. -EOPNOTSUPP, and what else the operators return. */
PFS_MUST_CHECK int pfs_block_run(struct pfs_answer_rows *out, const struct pfs_block *block,
				 struct pfs_run_context *context);

/* Returns for what the operators have given up with that error, for people. */
const char *pfs_run_why_not(const struct pfs_run_context *context, int error);
/* Runs the block of a part of an input, and makes its rows a batch whose last vectors are the
 * results. is_alone: no other part's rows are put behind it; so it may stay on a device. */
PFS_MUST_CHECK int pfs_block_run_part(struct pfs_tuples **out, const struct pfs_block *block,
				      struct pfs_run_context *context, bool is_alone);
/* Gets the value of a column in a row, which has that number in the answer. `arg` is a struct
 * pfs_answer_rows. The value's bytes are valid until the rows are freed. */
void pfs_answer_value(const void *arg, uint64_t row, size_t number, struct pfs_sql_value *out);
void pfs_answer_rows_free(struct pfs_answer_rows *rows, const struct pfs_run *run);

/* ---- recursion.c ---- */

/* Gets the rows of the step before, which a QUEUE is. */
PFS_MUST_CHECK int pfs_recursion_queue(const struct pfs_running *running, struct pfs_table *table,
				       const struct pfs_input *queue);
/* Returns true if so little lies below the only node that a recursion begins with that SQLite's way
 * takes less. */
bool pfs_recursion_is_short(const struct pfs_running *running, const struct pfs_input *input,
			    const struct pfs_table *first);

/* ---- group.c ---- */

/* Leaves the first tuple of each combination of the keys' values. */
PFS_MUST_CHECK int pfs_running_distinct(struct pfs_running *running, struct pfs_group_key *keys,
					size_t n);

/* ---- programs.c ---- */

/* Makes these tuples, which become the block's, the source of the next stage. */
void pfs_running_go_on(struct pfs_running *running, struct pfs_tuples *tuples);

/* ---- compute.c ---- */

/* Puts a vector that the host computes beside the tuples, where the caller may write to it. The
 * stages that follow run on the host, too. */
PFS_MUST_CHECK int pfs_running_add_vector(struct pfs_running *running, struct pfs_vector **out,
					  struct pfs_ref *ref, const struct pfs_program *program);
/* Makes a vector of each printed text in the term; the stage has them afterwards. */
PFS_MUST_CHECK int pfs_running_print_all(struct pfs_running *running, const struct pfs_term *term);
/* Computes a vector for each value that the stage does not have yet; the stage has them
 * afterwards. */
PFS_MUST_CHECK int pfs_running_compute(struct pfs_running *running,
				       const struct pfs_term *const *values, size_t n);

/* ---- inputs.c ---- */

/* Makes the columns of nodes that the block wants, before the tree is held. Errors are those of
 * pfs_columns_prepare. */
PFS_MUST_CHECK int pfs_inputs_prepare(const struct pfs_block *block,
				      struct pfs_run_context *context);
/* Makes the tables of the inputs, whose columns are in the order of pfs_input_column.at. Of the
 * lifted inputs only those that are values get one. */
PFS_MUST_CHECK int pfs_running_tables(struct pfs_running *running);
/* Makes the tables of those lifted inputs whose values may name few nodes, before these are looked
 * for; or marks these. */
PFS_MUST_CHECK int pfs_running_tied(struct pfs_running *running);
/* Makes the tables of the other lifted inputs, once the rows that they belong to are the source.
 * -EOPNOTSUPP: these are so few that SQLite is faster, row by row. */
PFS_MUST_CHECK int pfs_running_lifted(struct pfs_running *running);

/* ---- texts.c ---- */

struct pfs_printing; /* printed.h */

/* Holds the memory of one column that was made. */
struct pfs_made_texts {
	void *cells; /* by element */
	size_t cells_size; /* in bytes */
	bool is_heap;	   /* the texts lie in `heap`, not in `dictionary` */
	bool are_new;	   /* no text that is put into `dictionary` is there */
	uint8_t *bytes;	   /* the heap's */
	uint64_t size, capacity;
	struct pfs_heap heap;
	struct pfs_dictionary_builder dictionary;
	uint64_t charged; /* bytes of the dictionary that were charged to the run */
	struct pfs_made_texts *next;
};

/* Puts a text there; *out becomes its place in the heap, or its code in the dictionary. */
PFS_MUST_CHECK int pfs_made_texts_put(struct pfs_made_texts *texts, const struct pfs_run *run,
				      uint32_t *out, const uint8_t *text, size_t len);
/* Puts the made columns of that input's table behind its columns. */
PFS_MUST_CHECK int pfs_running_texts(struct pfs_running *running, unsigned input);
/* Replaces the values of a computed vector, which may be one of those that are printed, by what is
 * printed. */
PFS_MUST_CHECK int pfs_running_print(struct pfs_running *running, struct pfs_vector *vector,
				     const struct pfs_printing *printing);
void pfs_made_texts_free(struct pfs_run_context *context);

/* ---- printed_codes.c ---- */

/* Prints each integer once, if rows consist of one that is printed as such, and if these lie so
 * close together and repeat so often that this is faster. *done: it has, and the cells are codes of
 * the texts' dictionary. */
PFS_MUST_CHECK int pfs_running_print_codes(struct pfs_running *running, bool *done, uint32_t *cells,
					   struct pfs_made_texts *texts,
					   const struct pfs_printing *printing);

/* ---- late.c ---- */

/* Makes a column of paths or targets, for the answer's rows alone. */
PFS_MUST_CHECK int pfs_running_gather_late(struct pfs_running *running,
					   struct pfs_answer_column *column,
					   const struct pfs_term *late);
/* Puts a vector beside the tuples whose numbers ascend as a scan meets the input's rows, or as
 * their paths ascend, and sets *out to it. No row at all comes before all rows. The stages that
 * follow are the host's. */
PFS_MUST_CHECK int pfs_running_rank(struct pfs_running *running, struct pfs_ref *out,
				    unsigned input, bool by_path);

/* ---- totals.c ---- */

/* Makes those columns of an input of nodes that are totals, of the rows that are selected so
 * far. */
PFS_MUST_CHECK int pfs_running_totals(struct pfs_running *running, unsigned input);
void pfs_made_totals_free(struct pfs_running *running);

/* ---- subselect.c ---- */

/* Makes a batch of the n rows that the stages have left, in their order, whose last vectors are the
 * block's results. is_alone: as of pfs_block_run_part. */
PFS_MUST_CHECK int pfs_running_vectors(struct pfs_running *running, struct pfs_tuples **out,
				       uint64_t n, bool is_alone);
/* Runs the parts of an input, and makes a table of their rows. */
PFS_MUST_CHECK int pfs_subselect_get(struct pfs_running *running, struct pfs_table *table,
				     const struct pfs_input *input);
void pfs_subselects_free(struct pfs_running *running);

/* ---- kept_texts.c ---- */

/* Returns a place for texts that are freed when the statement's block has run; NULL: -ENOMEM. */
struct pfs_texts *pfs_kept_texts_add(struct pfs_run_context *context);
void pfs_kept_texts_free(struct pfs_run_context *context);

/* ---- group.c ---- */

PFS_MUST_CHECK int pfs_running_group(struct pfs_running *running);

/* ---- window.c ---- */

/* Puts the functions of the block's windows, if it has any, beside the rows, which are in the first
 * one's order then. */
PFS_MUST_CHECK int pfs_running_windows(struct pfs_running *running);

/* ---- few_nodes.c ---- */

/* Sets *rows to a superset of the input's rows that can be in the answer, if values of another
 * input name few of them; else it stays NULL. The tree is held. */
PFS_MUST_CHECK int pfs_running_few_nodes(struct pfs_running *running, struct pfs_rows **rows,
					 unsigned input);

/* ---- join.c ---- */

/* The program of conditions on the one input that there is. */
PFS_MUST_CHECK int pfs_running_conditions(struct pfs_running *running, struct pfs_program *out,
					  const struct pfs_term *const *terms, size_t n);

/* The first stage: rows of the inputs for which WHERE and ON are true, joined; and then with the
 * lifted ones.  Of a large table that is grouped next, the condition may be left to that: it is
 * then the source's. */
PFS_MUST_CHECK int pfs_running_join(struct pfs_running *running);
/* Makes the input one whose conditions are kept: it needs no table, and is not joined. */
void pfs_running_joined(struct pfs_running *running, unsigned input);
PFS_MUST_CHECK int pfs_running_join_lifted(struct pfs_running *running);

#endif
