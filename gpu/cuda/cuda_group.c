/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_group.c - grouping on the device: keys as numbers, which are places in the totals
 * where they are dense and otherwise looked up in a table; sums only where none can overflow. */
#include "gpu/cuda/cuda_operators.h"

#include "base/checked.h"
#include "gpu/aggregate.h"

#define DENSE_MIN  ((uint64_t)1 << 20) /* numbers that need no table, however few rows */
#define DENSE_MAX  ((uint64_t)1 << 30)
#define SUM_LIMIT  0x1p62 /* sums below it are exact in any order, whatever doubles round */
#define REAL_LIMIT 0x1p52 /* of both signs, too, if they are reals */
#define GROUPS_MAX ((uint64_t)1 << 31)
#define LISTED_AT_ONCE 16384u /* groups that a block lists faster than several launches do */
#define ALIGNED	       256u   /* where memory of its own would begin */
#define SEEN_MIN   ((uint64_t)1 << 26) /* bits of combinations with values, however few rows */
#define SEEN_MAX   ((uint64_t)1 << 36)

struct work {
	const struct pfs_source *source;
	const struct pfs_aggregate *aggregates;
	struct pfs_device_places places;
	struct pfs_device_keys keys;
	struct pfs_device_table table;
	struct pfs_device_groups groups;
	/* Of groups that are listed by one launch; else NULL. */
	uint32_t *d_list;
	struct pfs_device_listed *listed; /* in the job's window, or on the device */
};

/* Memory for several arrays. Their sizes are added up first, then each has its place. */
struct room {
	uint8_t *d_memory; /* NULL: sizes are added up */
	size_t size;
};

static void *place_in(struct room *room, size_t size)
{
	void *at = room->d_memory ? room->d_memory + room->size : NULL;

	room->size += pfs_div_round_up(size, ALIGNED) * ALIGNED;
	return at;
}

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

/* -EOPNOTSUPP unless no sum, in any order, can leave 64 bits, nor round as a real where there are
 * both signs. */
static int check_sum(struct pfs_job *job, const struct pfs_source *source,
		     const struct pfs_aggregate *aggregate, const struct pfs_device_value *value)
{
	struct pfs_device_bounds bounds;
	double n = source->table ? source->table->n_rows : (double)source->tuples->n;
	double most, limit = SUM_LIMIT;

	PFS_TRY(pfs_job_bounds(job, &bounds, source, aggregate->ref, value));
	if (bounds.least > bounds.most)
		return 0;
	most = PFS_MAX((double)bounds.most, -(double)bounds.least) * n;
	if (pfs_aggregate_traits[aggregate->op].result != PFS_RESULT_ARGUMENT && bounds.least < 0 &&
	    bounds.most > 0)
		limit = REAL_LIMIT;
	if (most < limit)
		return 0;
	/* The array's own sum, where the source's rows are among its elements, once each. */
	if (source->tuples || (bounds.above == 0 && bounds.below == 0))
		return -EOPNOTSUPP;
	return bounds.above < limit && bounds.below < limit ? 0 : -EOPNOTSUPP;
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
	return 0;
}

/* True: the groups' numbers are as it happened, by hashes and by which thread came first. */
static bool is_by_chance(const struct work *w)
{
	bool is = w->table.capacity;

	for (uint32_t k = 0; k < w->keys.n; k++)
		is |= w->keys.key[k].is_text;
	return is;
}

static void place_totals(struct work *w, struct room *room)
{
	struct pfs_device_groups *groups = &w->groups;

	groups->d_first = place_in(room, groups->n * sizeof(*groups->d_first));
	groups->d_count = place_in(room, groups->n * sizeof(*groups->d_count));
	for (uint32_t k = 0; k < groups->n_aggregates; k++) {
		struct pfs_device_aggregate *a = &groups->aggregate[k];

		if (a->op != PFS_DEVICE_COUNT)
			a->d_value = place_in(room, groups->n * sizeof(*a->d_value));
		if (a->can_be_null && a->op != PFS_DEVICE_DISTINCT)
			a->d_count = place_in(room, groups->n * sizeof(*a->d_count));
	}
	if (groups->n > LISTED_AT_ONCE || is_by_chance(w))
		return;
	w->d_list = place_in(room, groups->n * sizeof(*w->d_list));
	w->listed = place_in(room, sizeof(*w->listed));
}

/* The aggregates' totals, for as many groups as there can be. */
static int make_totals(struct pfs_job *job, struct work *w, size_t n_aggregates)
{
	struct room room = {0};

	for (size_t k = 0; k < n_aggregates; k++)
		PFS_TRY(add_aggregate(job, w, &w->aggregates[k]));
	place_totals(w, &room);
	PFS_TRY(pfs_job_alloc(job, &room.d_memory, room.size));
	room.size = 0;
	place_totals(w, &room);
	if (w->listed && job->window)
		w->listed = job->window;
	return pfs_cuda_group_clear(&w->groups, job->stream);
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

static void place_shown(struct pfs_device_shown *shown, struct room *room, const struct work *w,
			uint64_t n)
{
	shown->d_places = place_in(room, n * sizeof(*shown->d_places));
	for (uint32_t k = 0; k < w->groups.n_aggregates; k++) {
		const struct pfs_device_aggregate *a = &w->groups.aggregate[k];
		bool has_nulls = a->is_null_of_none && (a->d_count || w->keys.n == 0);

		shown->d_data[k] = place_in(room, n * 8);
		shown->d_nulls[k] = has_nulls ? place_in(room, pfs_div_round_up(n, 64) * 8) : NULL;
	}
}

/* A batch of n groups, and where in it their results are to be. */
static int make_batch(struct pfs_job *job, struct pfs_tuples **out, struct pfs_device_shown *shown,
		      const struct work *w, uint64_t n)
{
	size_t before = pfs_source_computed(w->source);
	struct pfs_device_tuples *device;
	struct room room = {0};

	PFS_TRY(pfs_device_tuples_make(job, out, n, pfs_source_tables(w->source),
				       before + w->groups.n_aggregates));
	place_shown(shown, &room, w, n);
	PFS_TRY(pfs_job_alloc(job, &room.d_memory, room.size));
	pfs_device_tuples_own(job, *out, room.d_memory);
	room.size = 0;
	place_shown(shown, &room, w, n);
	device = (*out)->device;
	for (uint32_t k = 0; k < w->groups.n_aggregates; k++) {
		const struct pfs_device_aggregate *a = &w->groups.aggregate[k];
		struct pfs_vector *v = &(*out)->computed[before + k];

		v->kind = result_kind(a, w->aggregates[k].op);
		v->n = n;
		if (a->d_code)
			v->dictionary = pfs_source_dictionary(w->source, w->aggregates[k].ref);
		device->d_data[before + k] = shown->d_data[k];
		device->d_nulls[before + k] = shown->d_nulls[k];
	}
	return 0;
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

/* Lists many groups, those that have a tuple. */
static int list_groups(struct pfs_job *job, uint32_t **d_list, uint64_t *n, const struct work *w)
{
	struct pfs_device_places all = {.to = w->groups.n};
	uint32_t *d_bits;

	PFS_TRY(pfs_cuda_group_late(&w->groups, &w->keys, &w->table, &w->places, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_bits, pfs_div_round_up(w->groups.n, 64) * 8));
	PFS_TRY(pfs_cuda_group_bits(d_bits, w->groups.d_count, w->groups.n, job->stream));
	all.d_mask = d_bits;
	PFS_TRY(pfs_job_list(job, d_list, n, &all));
	return is_by_chance(w) ? order_groups(job, d_list, *n, w) : 0;
}

/* Queues all that makes the batch; of few groups it is for as many as there can be. */
static int queue_batch(struct pfs_job *job, struct pfs_tuples **out, const struct work *w)
{
	struct pfs_device_shown shown;
	uint32_t *d_list = w->d_list;
	uint64_t n = w->groups.n;

	if (!d_list)
		PFS_TRY(list_groups(job, &d_list, &n, w));
	PFS_TRY(make_batch(job, out, &shown, w, n));
	PFS_TRY(w->d_list ? pfs_cuda_group_list(&shown, d_list, w->listed, &w->groups,
						w->keys.n == 0, job->stream)
			  : pfs_cuda_group_show(&shown, &w->groups, d_list, n, job->stream));
	return pfs_job_put(job, *out, 0, 0, w->source, shown.d_places, true);
}

/* Waits for the batch, and reads how many groups it has. */
static int wait_for_batch(struct pfs_job *job, struct pfs_device_listed *listed,
			  const struct work *w)
{
	if (w->listed != job->window)
		return pfs_job_download(job, listed, w->listed, sizeof(*listed));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	*listed = *w->listed;
	return 0;
}

static int read_out(struct pfs_job *job, struct pfs_tuples **out, const struct work *w)
{
	struct pfs_device_listed listed;

	PFS_TRY(queue_batch(job, out, w));
	if (!w->d_list)
		return 0;
	PFS_TRY(wait_for_batch(job, &listed, w));
	if (listed.is_late) { /* seldom, and then the rows are read once more */
		pfs_tuples_free(job->run, *out);
		*out = NULL;
		PFS_TRY(pfs_cuda_group_late(&w->groups, &w->keys, &w->table, &w->places,
					    job->stream));
		PFS_TRY(queue_batch(job, out, w));
		PFS_TRY(wait_for_batch(job, &listed, w));
	}
	job->is_idle = true;
	(*out)->n = listed.n;
	for (size_t i = 0; i < (*out)->n_computed; i++)
		(*out)->computed[i].n = listed.n;
	return 0;
}

/* The keys as numbers, and how many groups there can be. */
static int number_keys(struct pfs_job *job, struct work *w, const struct pfs_group_key *keys,
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
	return make_table(job, w, limit);
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
		 const struct pfs_group_key *keys, size_t n_keys, size_t n_aggregates)
{
	if (n_keys > PFS_DEVICE_KEYS || n_aggregates > PFS_DEVICE_AGGREGATES)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_job_places(job, &w->places, w->source));
	PFS_TRY(number_keys(job, w, keys, n_keys));
	PFS_TRY(make_totals(job, w, n_aggregates));
	PFS_TRY(add_rows(job, w));
	for (size_t k = 0; k < n_aggregates; k++)
		if (pfs_fold_of(w->aggregates[k].op)->groups_again)
			PFS_TRY(count_distinct(job, w, k, &w->aggregates[k]));
	return read_out(job, out, w);
}

static int cuda_group(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_tuples **out, const struct pfs_source *source,
		      const struct pfs_group_key *keys, size_t n_keys,
		      const struct pfs_aggregate *aggregates, size_t n_aggregates)
{
	struct work w = {.source = source, .aggregates = aggregates};
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : group(&job, out, &w, keys, n_keys, n_aggregates));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

const struct pfs_group_family pfs_cuda_group_family = {.group = cuda_group};
