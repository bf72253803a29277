/* SPDX-License-Identifier: MIT */
/* What aggregates keep of each group: memory, adding, merging. */
#include "gpu/host/fold.h"

#include <string.h>

#include "gpu/host/concat.h"
#include "gpu/host/dictionary.h"
#include "gpu/host/evaluate.h"
#include "gpu/host/lanes.h"
#include "gpu/host/number.h"
#include "gpu/host/text.h"

/* Takes the values of a fold before it that has the same program, or opens the program. */
static int open_program(struct pfs_fold *fold, size_t n_before, const struct pfs_run *run,
			const struct pfs_source *source, const struct pfs_program *program)
{
	struct pfs_evaluator *evaluator;
	bool is_truth;
	int error;

	for (size_t back = 1; back <= n_before; back++) {
		const struct pfs_fold *other = fold - back;

		if (!other->evaluator || other->back || other->evaluator->program != program)
			continue;
		fold->reader = other->reader;
		fold->evaluator = other->evaluator;
		fold->back = back;
		return 0;
	}
	PFS_TRY(pfs_program_check(&fold->reader.kind, &is_truth, program, source->table,
				  source->tuples));
	PFS_TRY(pfs_run_alloc(run, &evaluator, 1, sizeof(*evaluator)));
	error = pfs_evaluator_open(evaluator, NULL, run, source, program);
	if (error)
		pfs_run_free(run, evaluator, 1, sizeof(*evaluator));
	else
		fold->evaluator = evaluator;
	return error;
}

int pfs_fold_open(struct pfs_fold *fold, size_t n_before, const struct pfs_run *run,
		  const struct pfs_source *source, const struct pfs_aggregate *aggregate)
{
	const struct pfs_dictionary *dictionary;

	*fold = (struct pfs_fold){.traits = &pfs_aggregate_traits[aggregate->op],
				  .collation = aggregate->collation,
				  .separator = aggregate->separator,
				  .texts = aggregate->texts};
	if (aggregate->program)
		return open_program(fold, n_before, run, source, aggregate->program);
	pfs_cell_reader_open(&fold->reader, source, aggregate->ref);
	if (fold->traits->fold == PFS_FOLD_TEXTS)
		return pfs_concat_open(fold, run, source);
	if (!pfs_fold_of(aggregate->op)->is_end || fold->reader.kind != PFS_KIND_CODE)
		return 0;
	dictionary = fold->reader.column ? fold->reader.column->dictionary
					 : fold->reader.vector->dictionary;
	return pfs_codes_rank(&fold->rank, run, dictionary, fold->collation);
}

void pfs_fold_has_tuples(struct pfs_fold *fold)
{
	fold->is_full = fold->traits->fold == PFS_FOLD_SUM && !fold->evaluator &&
			fold->traits->result == PFS_RESULT_ARGUMENT &&
			fold->reader.kind == PFS_KIND_INTEGER &&
			pfs_cell_reader_has_values(&fold->reader);
}

void pfs_fold_close(const struct pfs_run *run, struct pfs_fold *fold)
{
	if (fold->evaluator && !fold->back) {
		pfs_evaluator_close(fold->evaluator);
		pfs_run_free(run, fold->evaluator, 1, sizeof(*fold->evaluator));
	}
	pfs_codes_map_close(run, &fold->rank);
	pfs_concat_close(run, fold);
}

/* ---- memory ---- */

enum kept {
	KEEPS_COUNT,   /* how many values there are */
	KEEPS_INTEGER, /* and an integer */
	KEEPS_NUMBER,  /* and a number, or one of each kind */
	KEEPS_PLACE,   /* and the place of that number */
	KEEPS_LIST,    /* how many values there are, and where the first and the last is */
};

static enum kept kept_of(const struct pfs_fold *fold)
{
	switch (fold->traits->fold) {
	case PFS_FOLD_TUPLES:
	case PFS_FOLD_VALUES:
	case PFS_FOLD_DIFFERENT:
		break;
	case PFS_FOLD_SUM:
		return fold->reader.kind == PFS_KIND_INTEGER ? KEEPS_INTEGER : KEEPS_NUMBER;
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
		return KEEPS_PLACE;
	case PFS_FOLD_TEXTS:
		return KEEPS_LIST;
	}
	return KEEPS_COUNT;
}

/* An array of a table: where its address is, and what an element takes. */
struct part {
	void *array;
	size_t size;
	bool wanted;
};

#define N_PARTS 8u

static void list_parts(struct part parts[N_PARTS], const struct pfs_fold *fold,
		       struct pfs_fold_table *t)
{
	const enum kept kept = kept_of(fold);
	const bool is_number = kept == KEEPS_NUMBER || kept == KEEPS_PLACE;
	const struct part all[N_PARTS] = {
		{&t->count, sizeof(*t->count), !fold->is_full},
		{&t->integer, sizeof(*t->integer), is_number || kept == KEEPS_INTEGER},
		{&t->real, sizeof(*t->real), is_number},
		{&t->is_real, sizeof(*t->is_real), is_number},
		{&t->at, sizeof(*t->at), kept >= KEEPS_PLACE},
		{&t->last, sizeof(*t->last), kept == KEEPS_LIST},
		{&t->positive, sizeof(*t->positive), fold->exact},
		{&t->negative, sizeof(*t->negative), fold->exact},
	};

	memcpy(parts, all, sizeof(all));
}

int pfs_fold_reserve(const struct pfs_fold *fold, const struct pfs_run *run,
		     struct pfs_fold_table *t, size_t capacity, bool clear)
{
	struct part parts[N_PARTS];

	if (capacity <= t->capacity)
		return 0;
	if (fold->evaluator && !fold->back && !t->slots) {
		PFS_TRY(pfs_run_alloc_raw(run, &t->slots, fold->evaluator->depth,
					  sizeof(*t->slots)));
		t->n_slots = fold->evaluator->depth;
	}
	list_parts(parts, fold, t);
	for (size_t i = 0; i < PFS_COUNT(parts); i++) {
		int error = parts[i].wanted ? pfs_run_grow(run, parts[i].array, t->capacity,
							   capacity, parts[i].size, clear)
					    : 0;

		if (!error)
			continue;
		while (i-- > 0) { /* restores the arrays that have grown */
			void **at = parts[i].array;

			if (!parts[i].wanted)
				continue;
			pfs_run_free(run, *at, capacity, parts[i].size);
			*at = NULL;
		}
		return error;
	}
	t->capacity = capacity;
	return 0;
}

void pfs_fold_clear(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t from, size_t n)
{
	struct part parts[N_PARTS];

	list_parts(parts, fold, t);
	for (size_t i = 0; i < N_PARTS; i++) {
		if (parts[i].wanted)
			memset(*(char **)parts[i].array + from * parts[i].size, 0,
			       n * parts[i].size);
	}
}

void pfs_fold_copy(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t at,
		   struct pfs_fold_table *other, size_t from, size_t n)
{
	struct part to[N_PARTS], of_other[N_PARTS];

	list_parts(to, fold, t);
	list_parts(of_other, fold, other);
	for (size_t i = 0; i < N_PARTS; i++) {
		if (n && to[i].wanted)
			memcpy(*(char **)to[i].array + at * to[i].size,
			       *(char **)of_other[i].array + from * to[i].size, n * to[i].size);
	}
}

void pfs_fold_table_free(const struct pfs_run *run, struct pfs_fold_table *t)
{
	pfs_run_free(run, t->count, t->capacity, sizeof(*t->count));
	pfs_run_free(run, t->integer, t->capacity, sizeof(*t->integer));
	pfs_run_free(run, t->real, t->capacity, sizeof(*t->real));
	pfs_run_free(run, t->is_real, t->capacity, sizeof(*t->is_real));
	pfs_run_free(run, t->at, t->capacity, sizeof(*t->at));
	pfs_run_free(run, t->last, t->capacity, sizeof(*t->last));
	pfs_run_free(run, t->positive, t->capacity, sizeof(*t->positive));
	pfs_run_free(run, t->negative, t->capacity, sizeof(*t->negative));
	pfs_run_free(run, t->slots, t->n_slots, sizeof(*t->slots));
	*t = (struct pfs_fold_table){0};
}

/* ---- adding ---- */

static void add_exact(struct pfs_fold_table *t, size_t group, int64_t value)
{
	if (value < 0)
		t->negative[group] += -(pfs_u128)value & UINT64_MAX;
	else
		t->positive[group] += (uint64_t)value;
}

/* Returns how many of n cells are not NULL. */
static uint32_t values_of(const struct pfs_cells *cells, uint32_t n)
{
	uint32_t nulls = 0;

	for (uint32_t w = 0; cells->has_nulls && w * 64 < n; w++)
		nulls += (uint32_t)__builtin_popcountll(cells->nulls[w]);
	return n - nulls;
}

/* Integers, none NULL; group NULL: all of group 0, and NULLs, which stand as 0, add nothing. */
static void sum_integers(struct pfs_fold_table *t, const struct pfs_cells *cells,
			 const uint32_t *group, uint32_t n)
{
	uint64_t sum, high, low;

	pfs_lanes()->sum(&sum, &high, &low, cells->integers, n);
	t->size += ((pfs_u128)high << 32) + low;
	if (!group) {
		t->integer[0] = (int64_t)((uint64_t)t->integer[0] + sum);
		if (t->count)
			t->count[0] += values_of(cells, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t g = group[i];

		t->integer[g] = (int64_t)((uint64_t)t->integer[g] + (uint64_t)cells->integers[i]);
	}
	for (uint32_t i = 0; t->count && i < n; i++)
		t->count[group[i]]++;
}

static void sum_one(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t group,
		    struct pfs_number value)
{
	if (!fold->is_full)
		t->count[group]++;
	if (value.is_real) {
		t->real[group] += value.real;
		t->is_real[group] = 1;
		return;
	}
	t->integer[group] = (int64_t)((uint64_t)t->integer[group] + (uint64_t)value.integer);
	t->size += (uint64_t)(value.integer < 0 ? ~value.integer : value.integer);
	if (fold->exact)
		add_exact(t, group, value.integer);
}

/* Returns less than 0 if a is less. Codes are compared by rank. */
static int compare(const struct pfs_fold *fold, struct pfs_number a, struct pfs_number b)
{
	const uint8_t *a_text, *b_text;
	size_t a_len, b_len;

	if (fold->reader.kind != PFS_KIND_PLACE)
		return pfs_compare_numbers(a, b);
	a_text = pfs_cell_text(&fold->reader, (uint32_t)a.integer, &a_len);
	b_text = pfs_cell_text(&fold->reader, (uint32_t)b.integer, &b_len);
	return pfs_text_compare(fold->collation, a_text, a_len, b_text, b_len);
}

/* Makes the value the group's extreme if it is better, or as good and earlier. */
static void offer(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t group,
		  struct pfs_number value, uint32_t at, int64_t count)
{
	const bool wants_least = fold->traits->fold == PFS_FOLD_LEAST;
	bool is_better = t->count[group] == 0;

	if (!is_better) {
		struct pfs_number best = {.is_real = t->is_real[group],
					  .integer = t->integer[group],
					  .real = t->real[group]};
		int order = compare(fold, value, best);

		is_better = order == 0 ? at < t->at[group] : (order < 0) == wants_least;
	}
	t->count[group] += count;
	if (!is_better)
		return;
	t->is_real[group] = value.is_real;
	t->integer[group] = value.is_real ? 0 : value.integer;
	t->real[group] = value.is_real ? value.real : 0;
	t->at[group] = at;
}

static struct pfs_number number_of(const struct pfs_fold *fold, const struct pfs_cells *cells,
				   uint32_t i)
{
	struct pfs_number value = {0};

	switch (fold->reader.kind) {
	case PFS_KIND_CODE:
		value.integer = fold->rank.of ? fold->rank.of[cells->codes[i]] : 0;
		return value;
	case PFS_KIND_PLACE:
		value.integer = cells->codes[i];
		return value;
	case PFS_KIND_NUMBER:
		value.is_real = cells->has_reals && pfs_bit(cells->is_real, i);
		break;
	case PFS_KIND_REAL:
		value.is_real = true;
		break;
	case PFS_KIND_INTEGER:
		break;
	}
	if (value.is_real)
		value.real = cells->reals[i];
	else
		value.integer = cells->integers[i];
	return value;
}

static void add_one_by_one(const struct pfs_fold *fold, struct pfs_fold_table *t,
			   const struct pfs_span *span, const uint32_t *group,
			   const struct pfs_cells *cells)
{
	for (uint32_t i = 0; i < span->n; i++) {
		size_t g = group ? group[i] : 0;

		if (cells->has_nulls && pfs_bit(cells->nulls, i))
			continue;
		switch (fold->traits->fold) {
		case PFS_FOLD_VALUES:
			t->count[g]++;
			break;
		case PFS_FOLD_LEAST:
		case PFS_FOLD_GREATEST:
			offer(fold, t, g, number_of(fold, cells, i), pfs_span_at(span, i), 1);
			break;
		case PFS_FOLD_SUM:
			sum_one(fold, t, g, number_of(fold, cells, i));
			break;
		case PFS_FOLD_TEXTS:
			pfs_concat_add(fold, t, g, pfs_span_at(span, i));
			break;
		case PFS_FOLD_TUPLES:
		case PFS_FOLD_DIFFERENT:
			break; /* it has no fold */
		}
	}
}

/* Integers of one group, none NULL: only the span's best is offered. */
static void offer_integers(const struct pfs_fold *fold, struct pfs_fold_table *t,
			   const struct pfs_span *span, const struct pfs_cells *cells)
{
	struct pfs_number best = {0};
	int64_t least, greatest;
	uint32_t i = 0;

	pfs_lanes()->extremes(&least, &greatest, cells->integers, span->n);
	best.integer = fold->traits->fold == PFS_FOLD_LEAST ? least : greatest;
	while (cells->integers[i] != best.integer)
		i++;
	offer(fold, t, 0, best, pfs_span_at(span, i), span->n);
}

/* Adds all of the span at once; false: that is to be done one by one. */
static bool add_at_once(const struct pfs_fold *fold, struct pfs_fold_table *t,
			const struct pfs_span *span, const uint32_t *group,
			const struct pfs_cells *cells)
{
	enum pfs_kind kind = fold->reader.kind;

	switch (fold->traits->fold) {
	case PFS_FOLD_VALUES:
		if (group)
			return false;
		t->count[0] += values_of(cells, span->n);
		return true;
	case PFS_FOLD_SUM:
		if (fold->exact || (cells->has_nulls && group) ||
		    !(kind == PFS_KIND_INTEGER || (kind == PFS_KIND_NUMBER && !cells->has_reals)))
			return false;
		sum_integers(t, cells, group, span->n);
		return true;
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
		if (kind != PFS_KIND_INTEGER || cells->has_nulls || group)
			return false;
		offer_integers(fold, t, span, cells);
		return true;
	case PFS_FOLD_TEXTS:
		return false;
	case PFS_FOLD_TUPLES:
	case PFS_FOLD_DIFFERENT:
		break; /* it has no fold */
	}
	return true;
}

/* Computes the program's values, in the table's slots, as those of a column are read: 0 at NULLs,
 * and no bits behind the last one. */
static const struct pfs_cells *compute(const struct pfs_fold *fold, const struct pfs_fold_table *t,
				       const struct pfs_span *span)
{
	struct pfs_slot *slot = pfs_evaluate_with(fold->evaluator, t->slots, span);
	struct pfs_cells *cells = &slot->cells;

	pfs_slot_to_number(slot, span->n);
	if (!cells->has_nulls)
		return cells;
	if (span->n % 64)
		cells->nulls[span->n / 64] &= (UINT64_C(1) << span->n % 64) - 1;
	pfs_cells_clear_nulls(cells, fold->reader.kind, span->n);
	return cells;
}

void pfs_fold_add(const struct pfs_fold *fold, struct pfs_fold_table *t,
		  const struct pfs_span *span, const uint32_t *group)
{
	const struct pfs_cells *cells;
	struct pfs_cells read;

	if (span->n == 0)
		return;
	if (!fold->evaluator && fold->traits->fold == PFS_FOLD_VALUES && !group &&
	    pfs_cell_reader_has_values(&fold->reader)) {
		t->count[0] += span->n;
		return;
	}
	if (fold->back) {
		cells = &(t - fold->back)->slots->cells;
	} else if (fold->evaluator) {
		cells = compute(fold, t, span);
	} else {
		pfs_cells_read(&fold->reader, span, &read);
		cells = &read;
	}
	if (!add_at_once(fold, t, span, group, cells))
		add_one_by_one(fold, t, span, group, cells);
}

static void merge_sums(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t into,
		       const struct pfs_fold_table *other, size_t from)
{
	if (!fold->is_full)
		t->count[into] += other->count[from];
	t->integer[into] = (int64_t)((uint64_t)t->integer[into] + (uint64_t)other->integer[from]);
	if (t->real) {
		t->real[into] += other->real[from];
		t->is_real[into] |= other->is_real[from];
	}
	if (fold->exact) {
		t->positive[into] += other->positive[from];
		t->negative[into] += other->negative[from];
	}
}

void pfs_fold_merge(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t into,
		    const struct pfs_fold_table *other, size_t from)
{
	struct pfs_number value;

	if (!fold->is_full && other->count[from] == 0)
		return;
	switch (fold->traits->fold) {
	case PFS_FOLD_VALUES:
		t->count[into] += other->count[from];
		return;
	case PFS_FOLD_LEAST:
	case PFS_FOLD_GREATEST:
		value = (struct pfs_number){.is_real = other->is_real[from],
					    .integer = other->integer[from],
					    .real = other->real[from]};
		offer(fold, t, into, value, other->at[from], other->count[from]);
		return;
	case PFS_FOLD_SUM:
		merge_sums(fold, t, into, other, from);
		return;
	case PFS_FOLD_TEXTS:
		pfs_concat_merge(fold, t, into, other, from);
		return;
	case PFS_FOLD_TUPLES:
	case PFS_FOLD_DIFFERENT:
		return;
	}
}

/* None of the groups' integers is negative; their sum fits 64 bits. */
static bool none_is_negative(const struct pfs_fold_table *table, const uint32_t *order,
			     size_t n_groups)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n_groups; i++)
		sum += (uint64_t)table->integer[order ? order[i] : i];
	return sum == (uint64_t)table->size;
}

bool pfs_fold_wants_exact(const struct pfs_fold *fold, const struct pfs_fold_table *table,
			  uint64_t n, const uint32_t *order, size_t n_groups)
{
	if (!pfs_fold_traits[fold->traits->fold].can_overflow || fold->exact)
		return false;
	if (table->size + n > INT64_MAX)
		return true;
	return fold->traits->result != PFS_RESULT_ARGUMENT && table->size + n > PFS_REAL_EXACT &&
	       !none_is_negative(table, order, n_groups);
}
