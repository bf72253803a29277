/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_group.c - grouping on the device: keys as numbers, which are places in the totals
 * where they are dense and otherwise looked up in a table; sums only where none can overflow. */
#include "gpu/cuda/cuda_operators.h"

#include "base/checked.h"
#include "gpu/aggregate.h"

#define DENSE_MIN  ((uint64_t)1 << 20) /* numbers that need no table, however few rows */
#define DENSE_MAX  ((uint64_t)1 << 30)
#define SUM_LIMIT  0x1p62 /* sums below it are exact in any order, whatever doubles round */
#define GROUPS_MAX ((uint64_t)1 << 31)
#define LISTED_AT_ONCE 16384u
#define SEEN_MIN   ((uint64_t)1 << 26) /* bits of combinations with values, however few rows */
#define SEEN_MAX   ((uint64_t)1 << 36)

struct work {
	const struct pfs_source *source;
	struct pfs_device_places places;
	struct pfs_device_keys keys;
	struct pfs_device_table table;
	struct pfs_device_groups groups;
};

/* Where totals lie: at the numbers themselves, or in a table. */
static int make_table(struct pfs_job *job, struct work *w, uint64_t limit)
{
	uint64_t n = w->places.to - w->places.from, dense = PFS_MAX(4 * n, DENSE_MIN);

	if (limit <= dense && limit <= DENSE_MAX) {
		w->groups.n = limit;
		return 0;
	}
	PFS_TRY(pfs_job_table(job, &w->table, n, GROUPS_MAX));
	w->groups.n = w->table.capacity;
	return 0;
}

/* How the device makes each aggregate; one that is not here is the host's. */
static const struct {
	bool is_known;
	enum pfs_device_aggregate_op op, op_of_reals;
	enum pfs_device_show show;
} device_aggregates[PFS_N_AGGREGATES] = {
	[PFS_COUNT_ALL] = {true, PFS_DEVICE_COUNT, PFS_DEVICE_COUNT, PFS_SHOW_COUNT},
	[PFS_COUNT] = {true, PFS_DEVICE_COUNT, PFS_DEVICE_COUNT, PFS_SHOW_COUNT},
	[PFS_COUNT_DISTINCT] = {true, PFS_DEVICE_DISTINCT, PFS_DEVICE_DISTINCT, PFS_SHOW_VALUE},
	[PFS_SUM] = {true, PFS_DEVICE_SUM, PFS_DEVICE_SUM_REAL, PFS_SHOW_VALUE},
	[PFS_TOTAL] = {true, PFS_DEVICE_SUM, PFS_DEVICE_SUM_REAL, PFS_SHOW_REAL},
	[PFS_AVG] = {true, PFS_DEVICE_SUM, PFS_DEVICE_SUM_REAL, PFS_SHOW_MEAN},
	[PFS_MIN] = {true, PFS_DEVICE_MIN, PFS_DEVICE_MIN, PFS_SHOW_EXTREME},
	[PFS_MAX] = {true, PFS_DEVICE_MAX, PFS_DEVICE_MAX, PFS_SHOW_EXTREME},
};

/* -EOPNOTSUPP unless no sum, in any order, can leave 64 bits. */
static int check_sum(struct pfs_job *job, const struct pfs_source *source,
		     const struct pfs_aggregate *aggregate, const struct pfs_device_value *value)
{
	struct pfs_device_bounds bounds;
	double n = source->table ? source->table->n_rows : (double)source->tuples->n;
	double most;

	PFS_TRY(pfs_job_bounds(job, &bounds, source, aggregate->ref, value));
	if (bounds.least > bounds.most)
		return 0;
	most = PFS_MAX((double)bounds.most, -(double)bounds.least) * n;
	if (most < SUM_LIMIT)
		return 0;
	/* The array's own sum, where the source's rows are among its elements, once each. */
	if (source->tuples || (bounds.above == 0 && bounds.below == 0))
		return -EOPNOTSUPP;
	return bounds.above < SUM_LIMIT && bounds.below < SUM_LIMIT ? 0 : -EOPNOTSUPP;
}

static int neutral_values(struct pfs_job *job, struct pfs_device_aggregate *a, uint64_t n)
{
	if (a->op == PFS_DEVICE_COUNT)
		return 0;
	if (a->op != PFS_DEVICE_MIN && a->op != PFS_DEVICE_MAX)
		return pfs_job_alloc_zero(job, &a->d_value, n * 8);
	PFS_TRY(pfs_job_alloc(job, &a->d_value, n * 8));
	return pfs_cuda_fill_64(a->d_value,
				(unsigned long long)(a->op == PFS_DEVICE_MIN ? INT64_MAX
									     : INT64_MIN),
				n, job->stream);
}

/* The least and largest text are those of the least and largest rank. */
static int rank_texts(struct pfs_job *job, struct pfs_device_aggregate *a,
		      const struct pfs_source *source, const struct pfs_aggregate *aggregate)
{
	const struct pfs_dictionary *dictionary = pfs_source_dictionary(source, aggregate->ref);

	if (aggregate->collation != PFS_BINARY) /* of equal ones it would be any */
		return -EOPNOTSUPP;
	PFS_TRY(pfs_job_rank(job, &a->d_rank, dictionary, PFS_BINARY));
	return pfs_job_order(job, &a->d_code, dictionary);
}

static int add_aggregate(struct pfs_job *job, struct work *w,
			 const struct pfs_aggregate *aggregate)
{
	struct pfs_device_aggregate *a = &w->groups.aggregate[w->groups.n_aggregates++];
	const enum pfs_fold_takes takes = pfs_fold_of(aggregate->op)->takes;
	enum pfs_kind kind = PFS_KIND_INTEGER;

	if (!device_aggregates[aggregate->op].is_known)
		return -EOPNOTSUPP;
	a->show = device_aggregates[aggregate->op].show;
	a->is_null_of_none = !pfs_aggregate_traits[aggregate->op].is_zero_of_none;
	if (takes == PFS_TAKES_NOTHING)
		return 0;
	PFS_TRY(pfs_job_value(job, &a->value, &kind, w->source, aggregate->ref));
	if (kind == PFS_KIND_NUMBER || (kind == PFS_KIND_PLACE && takes != PFS_TAKES_NULLS &&
					aggregate->op != PFS_COUNT_DISTINCT))
		return -EOPNOTSUPP;
	a->op = kind == PFS_KIND_REAL ? device_aggregates[aggregate->op].op_of_reals
				      : device_aggregates[aggregate->op].op;
	if (a->op == PFS_DEVICE_SUM && a->value.column.d_via)
		return -EOPNOTSUPP; /* an element may be added more than once */
	if (a->op == PFS_DEVICE_SUM)
		PFS_TRY(check_sum(job, w->source, aggregate, &a->value));
	if (kind == PFS_KIND_CODE && (a->op == PFS_DEVICE_MIN || a->op == PFS_DEVICE_MAX))
		PFS_TRY(rank_texts(job, a, w->source, aggregate));
	a->can_be_null = pfs_value_can_be_null(&a->value);
	if (a->can_be_null && a->op != PFS_DEVICE_DISTINCT)
		PFS_TRY(pfs_job_alloc_zero(job, &a->d_count, w->groups.n * sizeof(uint32_t)));
	return neutral_values(job, a, w->groups.n);
}

/* ---- different values ---- */

/* Combinations of groups and values: a bit each, or a table of them. */
static int make_pairs(struct pfs_job *job, uint32_t **d_seen, struct pfs_device_table *pairs,
		      uint64_t combinations, uint64_t rows)
{
	*d_seen = NULL;
	*pairs = (struct pfs_device_table){0};
	if (combinations <= PFS_MAX(64 * rows, SEEN_MIN) && combinations <= SEEN_MAX)
		return pfs_job_alloc_zero(job, d_seen, pfs_div_round_up(combinations, 32) * 4);
	return pfs_job_table(job, pairs, rows, GROUPS_MAX);
}

static int count_distinct(struct pfs_job *job, const struct work *w, size_t k,
			  const struct pfs_aggregate *aggregate)
{
	struct pfs_device_keys value;
	struct pfs_device_table pairs;
	uint64_t n_values, combinations;
	uint32_t *d_seen;

	PFS_TRY(pfs_job_keys(job, &value, &n_values,
			     &(struct pfs_key_refs){w->source, &aggregate->ref,
						    &aggregate->collation, 1, &w->places}));
	if (__builtin_mul_overflow(w->groups.n, n_values, &combinations))
		return -EOPNOTSUPP;
	PFS_TRY(make_pairs(job, &d_seen, &pairs, combinations, w->places.to - w->places.from));
	PFS_TRY(pfs_cuda_group_distinct(w->groups.aggregate[k].d_value, &value.key[0], n_values,
					&w->keys, &w->table, d_seen, &pairs, &w->places,
					job->stream));
	return pfs_job_table_check(job, &pairs);
}

/* ---- results ---- */

static enum pfs_kind result_kind(const struct pfs_device_aggregate *a, enum pfs_aggregate_op op)
{
	enum pfs_kind kind = a->value.column.is_real ? PFS_KIND_REAL : PFS_KIND_INTEGER;

	return pfs_aggregate_kind(&pfs_aggregate_traits[op], a->d_code ? PFS_KIND_CODE : kind);
}

static int put_result(struct pfs_job *job, struct pfs_tuples *out, size_t at, const struct work *w,
		      size_t k, const struct pfs_aggregate *aggregate, const uint32_t *d_list)
{
	const struct pfs_device_aggregate *a = &w->groups.aggregate[k];
	struct pfs_device_tuples *device = out->device;

	out->computed[at].kind = result_kind(a, aggregate->op);
	out->computed[at].n = out->n;
	if (a->d_code)
		out->computed[at].dictionary = pfs_source_dictionary(w->source, aggregate->ref);
	PFS_TRY(pfs_job_alloc(job, &device->d_data[at], out->n * 8));
	pfs_device_tuples_own(job, out, device->d_data[at]);
	PFS_TRY(pfs_job_alloc_zero(job, &device->d_nulls[at], pfs_div_round_up(out->n, 64) * 8));
	pfs_device_tuples_own(job, out, device->d_nulls[at]);
	return pfs_cuda_group_result(device->d_data[at], device->d_nulls[at], a, w->groups.d_count,
				     d_list, out->n, job->stream);
}

/* True: the groups' numbers are as it happened, by hashes and by which thread came first. */
static bool is_by_chance(const struct work *w)
{
	bool is = w->table.capacity;

	for (uint32_t k = 0; k < w->keys.n; k++)
		is |= w->keys.key[k].is_text;
	return is;
}

/* Puts groups into the order of their first tuples. */
static int order_groups(struct pfs_job *job, uint32_t **d_list, uint64_t n, const struct work *w)
{
	const struct pfs_device_value first = {.column = {.d_data = w->groups.d_first,
							  .mask = UINT64_MAX,
							  .width = sizeof(*w->groups.d_first)}};
	const int bits = 64 - __builtin_clzll(w->places.to | 1);
	uint64_t *d_keys, *d_ordered_keys;
	void *d_temporary = NULL;
	uint32_t *d_ordered;
	size_t size = 0;

	if (n == 0)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &d_keys, n * sizeof(*d_keys)));
	PFS_TRY(pfs_job_alloc(job, &d_ordered_keys, n * sizeof(*d_ordered_keys)));
	PFS_TRY(pfs_job_alloc(job, &d_ordered, n * sizeof(*d_ordered)));
	PFS_TRY(pfs_cuda_values_at(d_keys, false, NULL, &first, *d_list, n, job->stream));
	for (int pass = 0; pass < 2; pass++) {
		PFS_TRY(pfs_cuda_sort_pairs(d_temporary, &size, d_ordered_keys, d_keys, d_ordered,
					    *d_list, n, bits, job->stream));
		if (pass == 0)
			PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	}
	*d_list = d_ordered;
	return 0;
}

/* Lists the groups that have a tuple; without keys the one, in any case.  *d_n is NULL, or *n is
 * how many groups there can be, and *d_n how many of them are listed, which is not waited for;
 * numbers behind them are 0. */
static int list_groups(struct pfs_job *job, uint32_t **d_list, uint64_t *n, uint64_t **d_n,
		       const struct work *w)
{
	struct pfs_device_places all = {.to = w->groups.n};
	uint32_t *d_bits;

	*d_n = NULL;
	*n = w->keys.n ? w->groups.n : 1;
	if (w->keys.n == 0)
		return pfs_job_alloc_zero(job, d_list, sizeof(**d_list));
	if (w->groups.n <= LISTED_AT_ONCE && !is_by_chance(w)) {
		PFS_TRY(pfs_job_alloc(job, d_list, w->groups.n * sizeof(**d_list)));
		PFS_TRY(pfs_job_alloc(job, d_n, sizeof(**d_n)));
		return pfs_cuda_group_list(*d_list, *d_n, w->groups.d_count, (uint32_t)w->groups.n,
					   job->stream);
	}
	PFS_TRY(pfs_job_alloc_zero(job, &d_bits, pfs_div_round_up(w->groups.n, 64) * 8));
	PFS_TRY(pfs_cuda_group_bits(d_bits, w->groups.d_count, w->groups.n, job->stream));
	all.d_mask = d_bits;
	PFS_TRY(pfs_job_list(job, d_list, n, &all));
	return is_by_chance(w) ? order_groups(job, d_list, *n, w) : 0;
}

/* Makes the batch as long as there are groups. */
static int shorten(struct pfs_job *job, struct pfs_tuples *out, const uint64_t *d_n)
{
	PFS_TRY(pfs_job_download(job, &out->n, d_n, sizeof(out->n)));
	for (size_t i = 0; i < out->n_computed; i++)
		out->computed[i].n = out->n;
	return 0;
}

static int read_out(struct pfs_job *job, struct pfs_tuples **out, struct work *w,
		    const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	const struct pfs_source *source = w->source;
	size_t n_computed = pfs_source_computed(source);
	uint32_t *d_list, *d_first;
	uint64_t n, *d_n;

	PFS_TRY(list_groups(job, &d_list, &n, &d_n, w));
	PFS_TRY(pfs_device_tuples_make(job, out, n, pfs_source_tables(source),
				       n_computed + n_aggregates));
	PFS_TRY(pfs_job_alloc(job, &d_first, n * sizeof(*d_first)));
	PFS_TRY(pfs_cuda_rows_at(d_first, w->groups.d_first, 0, d_list, n, job->stream));
	PFS_TRY(pfs_job_put(job, *out, 0, 0, source, d_first, true));
	for (size_t k = 0; k < n_aggregates; k++)
		PFS_TRY(put_result(job, *out, n_computed + k, w, k, &aggregates[k], d_list));
	return d_n ? shorten(job, *out, d_n) : 0;
}

/* The keys as numbers, and totals for as many groups as there can be. */
static int make_groups(struct pfs_job *job, struct work *w, const struct pfs_group_key *keys,
		       size_t n_keys)
{
	struct pfs_ref refs[PFS_DEVICE_KEYS];
	enum pfs_collation collations[PFS_DEVICE_KEYS];
	uint64_t limit;

	for (size_t i = 0; i < n_keys; i++) {
		refs[i] = keys[i].ref;
		collations[i] = keys[i].collation;
	}
	PFS_TRY(pfs_job_keys(job, &w->keys, &limit,
			     &(struct pfs_key_refs){w->source, refs, collations, n_keys,
						    &w->places}));
	PFS_TRY(make_table(job, w, limit));
	PFS_TRY(pfs_job_alloc(job, &w->groups.d_first, w->groups.n * sizeof(uint32_t)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(w->groups.d_first, 0xff, w->groups.n * sizeof(uint32_t),
					 job->stream)));
	return pfs_job_alloc_zero(job, &w->groups.d_count, w->groups.n * sizeof(uint32_t));
}

static int add_rows(struct pfs_job *job, const struct work *w)
{
	size_t room = pfs_cuda_group_room(&w->groups, &w->table, &w->places);
	void *d_temporary = NULL;

	if (room)
		PFS_TRY(pfs_job_alloc(job, &d_temporary, room));
	PFS_TRY(pfs_cuda_group(&w->groups, &w->keys, &w->table, &w->places, d_temporary,
			       job->stream));
	return pfs_job_table_check(job, &w->table);
}

static int group(struct pfs_job *job, struct pfs_tuples **out, struct work *w,
		 const struct pfs_group_key *keys, size_t n_keys,
		 const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	if (n_keys > PFS_DEVICE_KEYS || n_aggregates > PFS_DEVICE_AGGREGATES)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_job_places(job, &w->places, w->source));
	PFS_TRY(make_groups(job, w, keys, n_keys));
	for (size_t k = 0; k < n_aggregates; k++)
		PFS_TRY(add_aggregate(job, w, &aggregates[k]));
	PFS_TRY(add_rows(job, w));
	for (size_t k = 0; k < n_aggregates; k++)
		if (pfs_fold_of(aggregates[k].op)->groups_again)
			PFS_TRY(count_distinct(job, w, k, &aggregates[k]));
	return read_out(job, out, w, aggregates, n_aggregates);
}

static int cuda_group(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_tuples **out, const struct pfs_source *source,
		      const struct pfs_group_key *keys, size_t n_keys,
		      const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	struct work w = {.source = source};
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error
					: group(&job, out, &w, keys, n_keys, aggregates,
						n_aggregates));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

const struct pfs_group_family pfs_cuda_group_family = {.group = cuda_group};
