/* SPDX-License-Identifier: MIT */
/* gpu/relation.h - the relational operators: select, compute, filter, sort, group, join and gather,
 * on the host's cores or a CUDA device, with SQLite's results.
 *
 * Two things flow between operators and no third: sets of rows (gpu/rows.h) out of selections, and
 * batches (struct pfs_tuples) out of all others.  A batch names rows, it does not copy them:
 * columns are fetched by pfs_gather, as late as possible.
 *
 * Threads: any number of callers on one pfs_operators; they run side by side. The caller frees
 * results, with the run that they were made with (or with one of the same charge and context).
 *
 * Errors of all functions: -ENOMEM; what run's functions return; -EINVAL: the description is wrong;
 * -EOPNOTSUPP: the description is right, but the operators cannot give SQLite's results for it, and
 * SQLite runs the statement. On failure nothing is left, and outputs are NULL. If a device fails,
 * the operator is repeated on the host, and the caller sees no error; but if an input lies only on
 * the device, the error is -EIO, and the statement is repeated with on = HOST. */
#ifndef PFS_GPU_RELATION_H
#define PFS_GPU_RELATION_H

#include "gpu/predicate.h"
#include "gpu/rows.h"
#include "gpu/run.h"
#include "gpu/table.h"

struct pfs_operators;
struct pfs_pool;

/* Opens the operators. n_threads 0: one thread a processor; they start with the first operator that
 * wants them. AUTO and HOST open no device. CUDA: -ENODEV if there is none. -ENOMEM. */
PFS_MUST_CHECK int pfs_operators_open(struct pfs_operators **out, enum pfs_engine_kind kind,
				      unsigned n_threads);
/* As pfs_operators_open, on threads that stay the caller's (base/pool.h), who may use them for
 * other work, too; NULL: whoever calls an operator works alone. */
PFS_MUST_CHECK int pfs_operators_open_on(struct pfs_operators **out, enum pfs_engine_kind kind,
					 struct pfs_pool *pool);
/* Closes the operators; all results have been freed before. */
void pfs_operators_close(struct pfs_operators *operators);
/* Starts the device, if it is not running, which takes a third of a second. Any thread may call
 * this, also beside operators. -ENODEV. */
PFS_MUST_CHECK int pfs_operators_start_device(struct pfs_operators *operators);
bool pfs_operators_has_device(const struct pfs_operators *operators);
/* How many operators the host and the device have run: of pfs_operators_count since
 * pfs_operators_open. */
struct pfs_operator_counts {
	uint64_t host, device;
};
void pfs_operators_count(const struct pfs_operators *operators, struct pfs_operator_counts *counts);
/* Calls work(context, worker, from, to) for pieces of 0..n, `grain` long but for the last, on the
 * host's threads, which operators use, too; run->poll is called before each piece. After a piece
 * has failed, no further one begins; the error is that of the first of the failed pieces. An
 * operator must not call it. */
PFS_MUST_CHECK int pfs_operators_for(const struct pfs_run *run, uint64_t n, uint64_t grain,
				     int (*work)(void *context, unsigned worker, uint64_t from,
						 uint64_t to),
				     void *context);

/* Sends changed blocks of the table's arrays to the device's mirrors, about `size` bytes, except
 * for mirrors that an operator is reading. If run->on is HOST, or there is no device, does nothing.
 * Returns 1 if more blocks have changed, else 0; -ENOMEM, -EIO, -EOPNOTSUPP, what run->poll
 * returns. */
PFS_MUST_CHECK int pfs_table_mirror(const struct pfs_run *run, const struct pfs_table *table,
				    size_t size);

/* ---- batches ---- */

/* Computed values, or a column's, of a batch's rows. */
struct pfs_vector {
	enum pfs_kind kind;
	union {
		void *data;
		int64_t *integers; /* INTEGER; NUMBER if the value's bit in is_real is 0 */
		double *reals;	   /* REAL; NUMBER if that bit is 1 */
		uint32_t *codes;   /* CODE, PLACE; undefined for NULLs */
	};
	uint64_t *nulls;   /* a bit a row; NULL: no value is NULL */
	uint64_t *is_real; /* NUMBER: a bit a row */
	uint64_t n;
	const struct pfs_dictionary *dictionary; /* CODE */
	const struct pfs_heap *heap;		 /* PLACE */
};

struct pfs_tuple_table {
	const struct pfs_table *table;
	/* The n rows of this table in the batch's order; PFS_NO_ROW: the tuple has none of it.
	 * NULL: they are `from`, from + 1, ... */
	uint32_t *rows;
	uint32_t from;
};

/* A batch: n tuples of one row of each table and one value of each vector. */
struct pfs_tuples {
	uint64_t n;
	uint16_t n_tables, n_computed;
	struct pfs_tuple_table *tables;
	struct pfs_vector *computed;
	/* If the batch is on a device: `rows` and `data` are NULL until pfs_tuples_here. */
	struct pfs_operator_backend *backend;
	void *device;
};

void pfs_tuples_free(const struct pfs_run *run, struct pfs_tuples *tuples); /* NULL is allowed */
/* Brings rows and computed vectors into the host's memory. */
PFS_MUST_CHECK int pfs_tuples_here(const struct pfs_run *run, struct pfs_tuples *tuples);
/* Brings the columns of a table that are vectors of batches into the host's memory, and sets their
 * data and nulls: the table's owner may write them. The operators below do so for the host. */
PFS_MUST_CHECK int pfs_table_here(const struct pfs_run *run, const struct pfs_table *table);
/* Makes a batch of one table: its rows in the set, ascending; the set is in the host's memory. */
PFS_MUST_CHECK int pfs_tuples_of_rows(const struct pfs_run *run, struct pfs_tuples **out,
				      const struct pfs_table *table, const struct pfs_rows *rows);

/* Makes a batch of n tuples of no table, with these vectors of n values each. The batch then owns
 * the vectors; on failure they have been freed. */
PFS_MUST_CHECK int pfs_tuples_of_vectors(const struct pfs_run *run, struct pfs_tuples **out,
					 uint64_t n, struct pfs_vector *vectors, size_t n_vectors);

/* Makes one batch of all tuples of the parts, in their order. The parts are batches of the same
 * tables, with computed vectors of the same kinds. -EOPNOTSUPP: they are not. */
PFS_MUST_CHECK int pfs_tuples_concat(const struct pfs_run *run, struct pfs_tuples **out,
				     struct pfs_tuples *const *parts, size_t n_parts);

/* What an operator reads: rows of a table (rows NULL: all rows that exist; else rows that exist)
 * or, if table is NULL, the batch `tuples`; and of these the fragment from..to, of row numbers or
 * of places in the batch; to 0: to the end. Operators over disjoint fragments may run at once, on
 * different devices. */
struct pfs_source {
	const struct pfs_table *table;
	/* rows and tuples stay the same, but may move to the host's memory if the host needs
	 * them. */
	struct pfs_rows *rows;
	struct pfs_tuples *tuples;
	uint64_t from, to;
	/* For pfs_group alone, and for a table: rows for which it is not true are left out; NULL:
	 * none is. A device returns -EOPNOTSUPP, so that the host groups. */
	const struct pfs_program *where;
};

/* ---- select, filter, compute ---- */

/* Selects the rows of the source, which is of a table, for which the program is true (NULL:
 * all). */
PFS_MUST_CHECK int pfs_select(const struct pfs_run *run, struct pfs_rows **out,
			      const struct pfs_source *source, const struct pfs_program *program);

/* Keeps the tuples of the source for which the program is true, in their order: for HAVING, and
 * conditions on both sides of a join. */
PFS_MUST_CHECK int pfs_filter(const struct pfs_run *run, struct pfs_tuples **out,
			      const struct pfs_source *source, const struct pfs_program *program);

/* Makes the source a batch with vectors added: the programs' values (truths as 0 and 1). */
PFS_MUST_CHECK int pfs_compute(const struct pfs_run *run, struct pfs_tuples **out,
			       const struct pfs_source *source, const struct pfs_program *programs,
			       size_t n_programs);
/* Makes a batch of these vectors alone, without the source's tables and vectors. */
PFS_MUST_CHECK int pfs_project(const struct pfs_run *run, struct pfs_tuples **out,
			       const struct pfs_source *source, const struct pfs_program *programs,
			       size_t n_programs);

/* ---- sort ---- */

struct pfs_sort_key {
	struct pfs_ref ref;
	enum pfs_collation collation;
	bool descending;
	bool nulls_last; /* SQLite's default: first when ascending, last when descending */
};

/* Sorts the source's tuples in the keys' order; equal tuples stay in the source's order. Leaves out
 * the first `offset` tuples, and gives at most `limit` of the others (UINT64_MAX: all). NULL comes
 * first, then numbers, then texts. A small limit takes memory for so many rows, not for all. */
PFS_MUST_CHECK int pfs_sort(const struct pfs_run *run, struct pfs_tuples **out,
			    const struct pfs_source *source, const struct pfs_sort_key *keys,
			    size_t n_keys, uint64_t offset, uint64_t limit);

/* ---- group ---- */

struct pfs_aggregate; /* gpu/aggregate.h */

struct pfs_group_key {
	struct pfs_ref ref;
	enum pfs_collation collation;
};

/* Makes one tuple for each combination of the keys' values (NULL is a value), in no particular
 * order. It has the rows and computed values of the group's first tuple, and then the aggregates as
 * further vectors. pfs_gather then fetches the keys' values. Without aggregates this is DISTINCT.
 * Without keys there is one group, also if the source is empty; its rows are then PFS_NO_ROW, and
 * its values NULL. GROUP_CONCAT has the values of a group's tuples in the source's order, which for
 * a table is that of its rows: the caller asks for it only where SQLite meets them in that order,
 * too. -EOVERFLOW: SQLite's "integer overflow" of SUM. -EOPNOTSUPP also if SUM overflows in some
 * orders of the rows only, if TOTAL or AVG of integers of both signs would round in some, for SUM,
 * TOTAL and AVG of texts, and for GROUP_CONCAT of reals. */
PFS_MUST_CHECK int pfs_group(const struct pfs_run *run, struct pfs_tuples **out,
			     const struct pfs_source *source, const struct pfs_group_key *keys,
			     size_t n_keys, const struct pfs_aggregate *aggregates,
			     size_t n_aggregates);

/* ---- join ---- */

enum pfs_join_kind { PFS_JOIN_INNER, PFS_JOIN_LEFT };
/* The way that the caller prefers; a back end that has only one takes that. */
enum pfs_join_how { PFS_JOIN_AUTO, PFS_JOIN_HASH, PFS_JOIN_MERGE };

struct pfs_join_key {
	struct pfs_ref left, right; /* tuples join if these are equal, and neither is NULL */
	enum pfs_collation collation;
};

struct pfs_join {
	enum pfs_join_kind kind;
	enum pfs_join_how how;
	const struct pfs_join_key *keys;
	size_t n_keys; /* at least 1 */
	/* The condition of ON beyond the keys, over both sides' tables (left's, then right's; no
	 * computed vectors); NULL: none. */
	const struct pfs_program *condition;
};

/* Makes a tuple of each pair of tuples, one of each side, that belong together; it has the tables
 * and vectors of left, then those of right. LEFT: also makes one of each tuple of left without a
 * partner, with right's rows PFS_NO_ROW and values NULL. The host's come in left's order, and what
 * belongs to one of left in right's; a device's in no particular order. */
PFS_MUST_CHECK int pfs_join(const struct pfs_run *run, struct pfs_tuples **out,
			    const struct pfs_source *left, const struct pfs_source *right,
			    const struct pfs_join *join);

/* Finds the rows of left, which is of a table, whose key some tuple of right has, too. The set may
 * also have rows that the source leaves out. -EOPNOTSUPP: the keys are not elements of one array
 * in which no two are equal. */
PFS_MUST_CHECK int pfs_partners(const struct pfs_run *run, struct pfs_rows **out,
				const struct pfs_source *left, const struct pfs_source *right,
				const struct pfs_join_key *key);

/* ---- gather ---- */

/* Gets the values of one column for the source's tuples, in their order. The caller frees them with
 * pfs_vector_free. pfs_vector_text gives the text of a CODE or PLACE. */
PFS_MUST_CHECK int pfs_gather(const struct pfs_run *run, struct pfs_vector *out,
			      const struct pfs_source *source, struct pfs_ref ref);
void pfs_vector_free(const struct pfs_run *run, struct pfs_vector *vector);

/* pfs_vector_make makes a vector of n values that are not yet set, pfs_vector_make_bits bits for n
 * values, all 0. */
PFS_MUST_CHECK int pfs_vector_make(const struct pfs_run *run, struct pfs_vector *vector,
				   enum pfs_kind kind, uint64_t n);
PFS_MUST_CHECK int pfs_vector_make_bits(const struct pfs_run *run, uint64_t **bits, uint64_t n);

static inline bool pfs_vector_is_null(const struct pfs_vector *v, uint64_t i)
{
	return v->nulls && (v->nulls[i / 64] >> i % 64 & 1);
}

static inline const uint8_t *pfs_vector_text(const struct pfs_vector *v, uint64_t i, size_t *len)
{
	return v->kind == PFS_KIND_CODE ? pfs_dictionary_text(v->dictionary, v->codes[i], len)
					: pfs_heap_text(v->heap, v->codes[i], len);
}

/* ---- column indexes ---- */

/* The rows of a table in the order of one column's values, equal values in row order, without rows
 * whose value is NULL. It has the values that the table had when the index was made. */
struct pfs_column_index {
	const struct pfs_table *table;
	uint16_t column;
	enum pfs_collation collation;
	uint32_t *rows;
	uint64_t n;
	/* A number for each element of `rows`; they never fall. If the values are integers or
	 * reals, equal values have equal numbers, also in another index of the same kind. NULL: the
	 * back end makes none. */
	uint64_t *numbers;
	struct pfs_operator_backend *backend; /* as in struct pfs_tuples: rows may be only there */
	void *device;
};

PFS_MUST_CHECK int pfs_column_index_build(const struct pfs_run *run, struct pfs_column_index **out,
					  const struct pfs_source *source, uint16_t column,
					  enum pfs_collation collation);
void pfs_column_index_free(const struct pfs_run *run, struct pfs_column_index *index);
PFS_MUST_CHECK int pfs_column_index_here(const struct pfs_run *run, struct pfs_column_index *index);

/* Finds where the values between low and high are: rows[*from] up to, but without, rows[*to]. A
 * bound that is NULL does not limit; is_open: the bound's own value is not included. */
struct pfs_bound {
	struct pfs_constant value;
	bool is_open;
};
PFS_MUST_CHECK int pfs_column_index_range(const struct pfs_run *run, uint64_t *from, uint64_t *to,
					  struct pfs_column_index *index,
					  const struct pfs_bound *low,
					  const struct pfs_bound *high);

/* Cuts the domain of both columns into k intervals. Interval i is the fragment of the left index
 * from left_at[i] to left_at[i + 1], and of the right one from right_at[i] to right_at[i + 1]; each
 * fragment joins only with that of the same interval. The intervals are about equally large, but
 * equal values are always in one. Both arrays have room for k + 1 elements. */
PFS_MUST_CHECK int pfs_column_index_cut(const struct pfs_run *run, uint64_t *left_at,
					uint64_t *right_at, size_t k, struct pfs_column_index *left,
					struct pfs_column_index *right);

/* Joins a fragment of each index by equality, by merging them. Makes a batch of two tables in the
 * order of values. */
struct pfs_index_fragment {
	struct pfs_column_index *index; /* may move to the host's memory if the host needs it */
	uint64_t from, to;
};
PFS_MUST_CHECK int pfs_column_index_join(const struct pfs_run *run, struct pfs_tuples **out,
					 const struct pfs_index_fragment *left,
					 const struct pfs_index_fragment *right);

#endif
