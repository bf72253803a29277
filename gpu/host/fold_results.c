/* SPDX-License-Identifier: MIT */
/* Results of aggregates, from what was kept for each group. */
#include "gpu/host/fold.h"

#include <stdatomic.h>

#include "gpu/host/concat.h"
#include "gpu/host/evaluate.h"

/* Returns the sum of the integers as a real. */
static double integers_as_real(const struct pfs_fold *fold, const struct pfs_fold_table *t,
			       size_t group)
{
	if (!fold->exact)
		return (double)t->integer[group];
	if (t->positive[group] >= t->negative[group])
		return (double)(t->positive[group] - t->negative[group]);
	return -(double)(t->negative[group] - t->positive[group]);
}

/* Returns 0 if the sum stays within 64 bits in every order of adding, -EOVERFLOW if in none, and
 * -EOPNOTSUPP if in some. */
static int check_sum(const struct pfs_fold *fold, const struct pfs_fold_table *t, size_t group)
{
	const pfs_u128 most = INT64_MAX;
	pfs_u128 positive, negative;

	if (!fold->exact)
		return 0;
	positive = t->positive[group];
	negative = t->negative[group];
	if (positive <= most && negative <= most + 1)
		return 0;
	if (t->is_real && t->is_real[group])
		return -EOPNOTSUPP;
	if (positive > negative ? positive - negative > most : negative - positive > most + 1)
		return -EOVERFLOW;
	return -EOPNOTSUPP;
}

/* -EOPNOTSUPP if SQLite, which adds reals, may lose more than the last bits of the sum, by which
 * order it meets the integers in. */
static int check_real_sum(const struct pfs_fold *fold, const struct pfs_fold_table *t, size_t group)
{
	if (!fold->exact || !t->positive[group] || !t->negative[group])
		return 0;
	return t->positive[group] + t->negative[group] > PFS_REAL_EXACT ? -EOPNOTSUPP : 0;
}

static int finish_sum(const struct pfs_fold *fold, struct pfs_vector *out,
		      const struct pfs_fold_table *t, size_t group, uint64_t i)
{
	double real = (t->real ? t->real[group] : 0) + integers_as_real(fold, t, group);
	uint64_t bit = UINT64_C(1) << i % 64;
	bool is_integer = false;

	if (!fold->is_full && t->count[group] == 0 && !fold->traits->is_zero_of_none) {
		out->nulls[i / 64] |= bit;
		out->integers[i] = 0;
		return 0;
	}
	switch (fold->traits->result) {
	case PFS_RESULT_ARGUMENT:
		PFS_TRY(check_sum(fold, t, group));
		is_integer = !(t->is_real && t->is_real[group]);
		break;
	case PFS_RESULT_MEAN:
		PFS_TRY(check_real_sum(fold, t, group));
		real /= (double)t->count[group];
		break;
	case PFS_RESULT_REAL:
		PFS_TRY(check_real_sum(fold, t, group));
		break;
	case PFS_RESULT_INTEGER:
	case PFS_RESULT_TEXT:
		break;
	}
	if (is_integer) {
		out->integers[i] = t->integer[group];
		return 0;
	}
	/* SQLite's result for infinities of both signs */
	if (real != real) {
		out->nulls[i / 64] |= bit;
		out->integers[i] = 0;
		return 0;
	}
	out->reals[i] = real;
	if (out->is_real)
		out->is_real[i / 64] |= bit;
	return 0;
}

static void finish_extreme(const struct pfs_fold *fold, struct pfs_vector *out,
			   const struct pfs_fold_table *t, size_t group, uint64_t i)
{
	bool is_text = fold->reader.kind == PFS_KIND_CODE || fold->reader.kind == PFS_KIND_PLACE;
	struct pfs_scalar cell = {0};
	bool is_there = t->count[group] && pfs_scalar_read(&fold->reader, t->at[group], &cell);

	if (!is_there)
		out->nulls[i / 64] |= UINT64_C(1) << i % 64;
	if (is_text)
		out->codes[i] = (uint32_t)cell.integer;
	else if (cell.is_real)
		out->reals[i] = cell.real;
	else
		out->integers[i] = cell.integer;
	if (cell.is_real && out->is_real)
		out->is_real[i / 64] |= UINT64_C(1) << i % 64;
}

/* Writes the result of one group as value number i. */
static int finish_one(const struct pfs_fold *fold, struct pfs_vector *out,
		      const struct pfs_fold_table *t, size_t group, uint64_t i)
{
	switch (fold->traits->fold) {
	case PFS_FOLD_VALUES:
		out->integers[i] = t->count[group];
		return 0;
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
		finish_extreme(fold, out, t, group, i);
		return 0;
	case PFS_FOLD_SUM:
		return finish_sum(fold, out, t, group, i);
	case PFS_FOLD_TUPLES:
	case PFS_FOLD_DIFFERENT:
	case PFS_FOLD_TEXTS:
		break;
	}
	return -EINVAL;
}

struct finishing {
	const struct pfs_fold *fold;
	const struct pfs_fold_table *table;
	const uint32_t *order;
	struct pfs_vector *out;
};

static int finish_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct finishing *f = context;

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		PFS_TRY(finish_one(f->fold, f->out, f->table, f->order ? f->order[i] : i, i));
	return 0;
}

/* Returns where the table has an array of integers that are the results; NULL: it has none. */
static int64_t **array_of_results(const struct pfs_fold *fold, struct pfs_fold_table *table)
{
	if (fold->traits->fold == PFS_FOLD_VALUES)
		return &table->count;
	if (fold->traits->fold == PFS_FOLD_SUM && fold->reader.kind == PFS_KIND_INTEGER &&
	    fold->traits->result == PFS_RESULT_ARGUMENT)
		return &table->integer;
	return NULL;
}

/* Makes the vector, of the table's array if each result is to be written where it was read. */
static int make_vector(const struct pfs_fold *fold, const struct pfs_run *run,
		       struct pfs_vector *out, struct pfs_fold_table *table, const uint32_t *order,
		       uint64_t n)
{
	enum pfs_kind kind = pfs_aggregate_kind(fold->traits, fold->reader.kind);
	int64_t **results = array_of_results(fold, table);

	if (results && !order && table->capacity == n) {
		*out = (struct pfs_vector){.kind = kind, .integers = *results, .n = n};
		*results = NULL;
	} else {
		PFS_TRY(pfs_vector_make(run, out, kind, n));
	}
	PFS_TRY(pfs_vector_make_bits(run, &out->nulls, n));
	return kind == PFS_KIND_NUMBER ? pfs_vector_make_bits(run, &out->is_real, n) : 0;
}

int pfs_fold_finish(const struct pfs_fold *fold, struct pfs_host_operators *host,
		    const struct pfs_run *run, struct pfs_vector *out, struct pfs_fold_table *table,
		    const uint32_t *order, uint64_t n)
{
	const struct pfs_fold_table kept = *table;
	struct finishing f = {.fold = fold, .table = &kept, .order = order, .out = out};
	const struct pfs_cell_reader *reader = &fold->reader;

	PFS_TRY(fold->evaluator ? atomic_load(&fold->evaluator->error) : 0);
	PFS_TRY(make_vector(fold, run, out, table, order, n));
	if (!fold->evaluator) {
		out->dictionary =
			reader->column ? reader->column->dictionary : reader->vector->dictionary;
		out->heap = reader->column ? reader->column->heap : reader->vector->heap;
	}
	if (fold->traits->fold == PFS_FOLD_TEXTS)
		PFS_TRY(pfs_concat_finish(fold, host, run, out, table, order, n));
	else
		PFS_TRY(pfs_host_for(host, run, n, PFS_PIECE, finish_piece, &f));
	pfs_vector_trim(run, out);
	return 0;
}
