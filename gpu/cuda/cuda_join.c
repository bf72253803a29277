/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_join.c - equality joins on the device: right's rows by their keys' numbers, one
 * each or in their order (a counting sort), left's looked up among them; and the merge of two
 * column indexes. */
#include "base/checked.h"
#include "gpu/cuda/cuda_operators.h"

#define DENSE_MIN ((uint64_t)1 << 22) /* numbers that need no table, however few rows */
#define DENSE_MAX ((uint64_t)1 << 30)

struct side {
	const struct pfs_source *source;
	struct pfs_device_places places;
	struct pfs_ref refs[PFS_DEVICE_KEYS];
	enum pfs_collation collations[PFS_DEVICE_KEYS];
};

/* Right's rows by number. */
struct built {
	struct pfs_device_keys keys;
	struct pfs_device_table table;
	uint64_t limit, n; /* n: places of counts */
	unsigned long long *d_slots; /* NULL: keys are unique, and d_rows has a row a number */
	uint32_t *d_rows;
};

static uint64_t size_of(const struct side *side)
{
	return side->places.to - side->places.from;
}

static int make_table(struct pfs_job *job, struct built *b, uint64_t rows)
{
	b->n = b->limit;
	if (b->limit <= PFS_MAX(8 * rows, DENSE_MIN) && b->limit <= DENSE_MAX)
		return 0;
	PFS_TRY(pfs_job_table(job, &b->table, rows, DENSE_MAX));
	b->n = b->table.capacity;
	return 0;
}

/* How many rows each number has, and of each row where its number's count is. */
static int count_rows(struct pfs_job *job, uint32_t **d_counts, uint32_t **d_groups,
		      const struct built *b, const struct side *right)
{
	PFS_TRY(pfs_job_alloc(job, d_groups, size_of(right) * sizeof(**d_groups)));
	PFS_TRY(pfs_job_alloc_zero(job, d_counts, b->n * sizeof(**d_counts)));
	return pfs_cuda_join_build(*d_groups, *d_counts, &b->keys, &b->table, &right->places,
				   job->stream);
}

/* Where each number's rows begin. */
static int sum_counts(struct pfs_job *job, uint32_t **d_sums, const uint32_t *d_counts, uint64_t n)
{
	void *d_temporary;
	size_t size = 0;

	PFS_TRY(pfs_job_alloc(job, d_sums, n * sizeof(**d_sums)));
	PFS_TRY(pfs_cuda_sums_32(NULL, &size, *d_sums, d_counts, n, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	return pfs_cuda_sums_32(d_temporary, &size, *d_sums, d_counts, n, job->stream);
}

static int build_slots(struct pfs_job *job, struct built *b, const struct side *right)
{
	uint32_t *d_groups, *d_counts, *d_ends;

	PFS_TRY(count_rows(job, &d_counts, &d_groups, b, right));
	PFS_TRY(sum_counts(job, &d_ends, d_counts, b->n));
	PFS_TRY(pfs_job_alloc(job, &b->d_rows, size_of(right) * sizeof(*b->d_rows)));
	PFS_TRY(pfs_job_alloc(job, &b->d_slots, b->n * sizeof(*b->d_slots)));
	PFS_TRY(pfs_cuda_join_scatter(b->d_rows, d_ends, d_groups, &right->places, job->stream));
	return pfs_cuda_join_pack(b->d_slots, d_counts, d_ends, b->d_rows, b->n, job->stream);
}

/* *unique: no two of right's rows have the same key. */
static int build_unique(struct pfs_job *job, struct built *b, bool *unique,
			const struct side *right, size_t n_keys)
{
	const struct pfs_table_column *column = pfs_source_column(right->source, right->refs[0]);
	bool is_declared = n_keys == 1 && right->source->table && column->unique &&
			   right->collations[0] == PFS_BINARY;
	uint32_t *d_repeated, repeated = 0;

	PFS_TRY(pfs_job_alloc(job, &b->d_rows, b->n * sizeof(*b->d_rows)));
	PFS_TRY(PFS_CUDA(
		cudaMemsetAsync(b->d_rows, 0xff, b->n * sizeof(*b->d_rows), job->stream)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_repeated, sizeof(*d_repeated)));
	PFS_TRY(pfs_cuda_join_build_unique(b->d_rows, d_repeated, &b->keys, &b->table,
					   &right->places, job->stream));
	if (!is_declared)
		PFS_TRY(pfs_job_download(job, &repeated, d_repeated, sizeof(repeated)));
	*unique = !repeated;
	return 0;
}

static int build(struct pfs_job *job, struct built *b, const struct side *right, size_t n_keys)
{
	bool unique = false;

	PFS_TRY(pfs_job_keys(job, &b->keys, &b->limit,
			     &(struct pfs_key_refs){.source = right->source,
						    .refs = right->refs,
						    .collations = right->collations,
						    .n = n_keys}));
	PFS_TRY(make_table(job, b, size_of(right)));
	if (size_of(right) <= b->limit)
		PFS_TRY(build_unique(job, b, &unique, right, n_keys));
	if (!unique)
		PFS_TRY(build_slots(job, b, right));
	return pfs_job_table_check(job, &b->table);
}

/* A left key's value as right's keys have it.  -EOPNOTSUPP: the two are not compared as numbers of
 * one kind. */
static int left_key(struct pfs_job *job, struct pfs_device_key *key, const struct side *left,
		    const struct side *right, size_t i)
{
	const struct pfs_dictionary *mine = pfs_source_dictionary(left->source, left->refs[i]);
	const struct pfs_dictionary *other = pfs_source_dictionary(right->source, right->refs[i]);
	bool is_real = key->value.column.is_real;
	enum pfs_kind kind;

	PFS_TRY(pfs_job_value(job, &key->value, &kind, left->source, left->refs[i]));
	if (kind == PFS_KIND_PLACE || kind == PFS_KIND_NUMBER || !mine != !other ||
	    key->value.column.is_real != is_real)
		return -EOPNOTSUPP;
	if (mine == other) /* right's fold, if any, is left's */
		return 0;
	return pfs_job_translate(job, &key->d_map, mine, other, left->collations[i]);
}

static int left_keys(struct pfs_job *job, struct pfs_device_keys *keys, const struct built *b,
		     const struct side *left, const struct side *right)
{
	*keys = b->keys;
	for (uint32_t i = 0; i < keys->n; i++)
		PFS_TRY(left_key(job, &keys->key[i], left, right, i));
	return 0;
}

/* Where pairs begin, and how many there are; d_pairs has room for one more. */
static int sum_up(struct pfs_job *job, uint64_t **d_starts, uint64_t *total, uint64_t *d_pairs,
		  uint64_t n)
{
	void *d_temporary;
	size_t size = 0;

	PFS_TRY(pfs_job_alloc(job, d_starts, (n + 1) * sizeof(**d_starts)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(d_pairs + n, 0, sizeof(*d_pairs), job->stream)));
	PFS_TRY(pfs_cuda_sums_64(NULL, &size, *d_starts, d_pairs, n + 1, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	PFS_TRY(pfs_cuda_sums_64(d_temporary, &size, *d_starts, d_pairs, n + 1, job->stream));
	PFS_TRY(pfs_job_download(job, total, *d_starts + n, sizeof(*total)));
	return *total > PFS_ROWS_MAX ? -EOPNOTSUPP : 0;
}

static int put_pairs(struct pfs_job *job, struct pfs_tuples **out, uint64_t n,
		     const struct side *left, const struct side *right, uint32_t *d_left,
		     uint32_t *d_right)
{
	size_t n_tables = pfs_source_tables(left->source);
	size_t n_computed = pfs_source_computed(left->source);

	PFS_TRY(pfs_device_tuples_make(job, out, n, n_tables + pfs_source_tables(right->source),
				       n_computed + pfs_source_computed(right->source)));
	PFS_TRY(pfs_job_put(job, *out, 0, 0, left->source, d_left, true));
	return pfs_job_put(job, *out, n_tables, n_computed, right->source, d_right, true);
}

static int probe_slots(struct pfs_job *job, struct pfs_tuples **out, const struct built *b,
		       const struct pfs_device_keys *keys, const struct side *left,
		       const struct side *right, bool outer)
{
	uint64_t n = size_of(left), tiles = pfs_cuda_join_tiles(n), total, *d_sums, *d_starts;
	unsigned long long *d_found;
	uint32_t *d_left, *d_right;

	PFS_TRY(pfs_job_alloc(job, &d_found, (tiles + 1) * pfs_cuda_join_tile() * 8));
	PFS_TRY(pfs_job_alloc(job, &d_sums, (tiles + 2) * sizeof(*d_sums)));
	PFS_TRY(pfs_cuda_join_find(d_found, d_sums, keys, &b->table, b->limit, b->d_slots,
				   &left->places, outer, job->stream));
	PFS_TRY(sum_up(job, &d_starts, &total, d_sums, tiles));
	PFS_TRY(pfs_job_alloc(job, &d_left, total * sizeof(*d_left)));
	PFS_TRY(pfs_job_alloc(job, &d_right, total * sizeof(*d_right)));
	PFS_TRY(pfs_cuda_join_write(d_left, d_right, d_starts, d_found, b->d_rows,
				    left->places.from, n, job->stream));
	return put_pairs(job, out, total, left, right, d_left, d_right);
}

/* The first n of an array with room for `room`, where only they have room if they are few. */
static int fit(struct pfs_job *job, uint32_t **d_rows, uint64_t n, uint64_t room)
{
	uint32_t *d_fitting;

	if (n >= room / 4)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &d_fitting, n * sizeof(*d_fitting)));
	if (n)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_fitting, *d_rows, n * sizeof(*d_fitting),
						 cudaMemcpyDeviceToDevice, job->stream)));
	*d_rows = d_fitting;
	return 0;
}

/* Where left is a range of a table's rows and each has a partner, or is kept without one, left's
 * rows of the pairs are that range, and right's are written where they are.  Else *out stays
 * NULL. */
static int probe_range(struct pfs_job *job, struct pfs_tuples **out, const struct built *b,
		       const struct pfs_device_keys *keys, const struct side *left,
		       const struct side *right, bool outer)
{
	uint64_t n = size_of(left);
	uint32_t *d_right, *d_missing, missing = 0;

	if (!left->source->table || left->places.d_mask || n == 0)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &d_right, n * sizeof(*d_right)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_missing, sizeof(*d_missing)));
	PFS_TRY(pfs_cuda_join_partners(d_right, d_missing, keys, &b->table, b->limit, b->d_rows,
				       &left->places, outer, job->stream));
	if (!outer)
		PFS_TRY(pfs_job_download(job, &missing, d_missing, sizeof(missing)));
	if (missing)
		return 0;
	PFS_TRY(pfs_device_tuples_make(job, out, n, 1 + pfs_source_tables(right->source),
				       pfs_source_computed(right->source)));
	(*out)->tables[0].table = left->source->table;
	(*out)->tables[0].from = (uint32_t)left->places.from;
	return pfs_job_put(job, *out, 1, 0, right->source, d_right, true);
}

static int probe_unique(struct pfs_job *job, struct pfs_tuples **out, const struct built *b,
			const struct pfs_device_keys *keys, const struct side *left,
			const struct side *right, bool outer)
{
	uint64_t n = size_of(left), total, *d_total;
	uint32_t *d_left, *d_right;

	PFS_TRY(pfs_job_alloc(job, &d_left, n * sizeof(*d_left)));
	PFS_TRY(pfs_job_alloc(job, &d_right, n * sizeof(*d_right)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_total, sizeof(*d_total)));
	PFS_TRY(pfs_cuda_join_unique(d_left, d_right, d_total, keys, &b->table, b->limit, b->d_rows,
				     &left->places, outer, job->stream));
	PFS_TRY(pfs_job_download(job, &total, d_total, sizeof(total)));
	PFS_TRY(fit(job, &d_left, total, n));
	PFS_TRY(fit(job, &d_right, total, n));
	return put_pairs(job, out, total, left, right, d_left, d_right);
}

static int probe(struct pfs_job *job, struct pfs_tuples **out, const struct built *b,
		 const struct side *left, const struct side *right, bool outer)
{
	struct pfs_device_keys keys;

	PFS_TRY(pfs_run_check(job->run));
	PFS_TRY(left_keys(job, &keys, b, left, right));
	if (!b->d_slots)
		PFS_TRY(probe_range(job, out, b, &keys, left, right, outer));
	if (*out)
		return 0;
	return b->d_slots ? probe_slots(job, out, b, &keys, left, right, outer)
			  : probe_unique(job, out, b, &keys, left, right, outer);
}

static int join(struct pfs_job *job, struct pfs_tuples **out, struct side *left, struct side *right,
		const struct pfs_join *what)
{
	struct built b = {0};

	if (what->condition || what->n_keys > PFS_DEVICE_KEYS)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < what->n_keys; i++) {
		left->refs[i] = what->keys[i].left;
		right->refs[i] = what->keys[i].right;
		left->collations[i] = right->collations[i] = what->keys[i].collation;
	}
	PFS_TRY(pfs_job_places(job, &left->places, left->source));
	PFS_TRY(pfs_job_places(job, &right->places, right->source));
	PFS_TRY(build(job, &b, right, what->n_keys));
	return probe(job, out, &b, left, right, what->kind == PFS_JOIN_LEFT);
}

static int cuda_join(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_source *left,
		     const struct pfs_source *right, const struct pfs_join *what)
{
	struct side sides[2] = {{.source = left}, {.source = right}};
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job,
			    error ? error : join(&job, out, &sides[0], &sides[1], what));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

/* ---- two indexes ---- */

struct merging {
	const struct pfs_index_fragment *few, *many; /* few is not the larger one */
	bool swapped;				     /* it is right's */
	struct pfs_merge_range *d_ranges;
	uint64_t *d_starts, total; /* pairs */
};

/* Finds the ranges of the keys of the smaller index, and where the pairs of each begin. */
static int count_merged(struct pfs_job *job, struct merging *m)
{
	const struct pfs_device_index *few = m->few->index->device;
	const struct pfs_device_index *many = m->many->index->device;
	const struct pfs_merge_side side = {many->d_keys,     m->many->from,	  m->many->to,
					    many->d_run_keys, many->d_run_starts, many->n_runs};
	uint64_t n = m->few->to - m->few->from, *d_pairs;

	PFS_TRY(pfs_job_alloc(job, &d_pairs, (n + 1) * sizeof(*d_pairs)));
	PFS_TRY(pfs_job_alloc(job, &m->d_ranges, n * sizeof(*m->d_ranges)));
	PFS_TRY(pfs_cuda_merge_count(d_pairs, m->d_ranges, few->d_keys + m->few->from, n, &side,
				     job->stream));
	return sum_up(job, &m->d_starts, &m->total, d_pairs, n);
}

/* Fills the batch's two tables with the rows of the pairs. */
static int write_merged(struct pfs_job *job, struct pfs_tuples *out, const struct merging *m)
{
	const struct pfs_device_index *few = m->few->index->device;
	const struct pfs_device_index *many = m->many->index->device;
	struct pfs_device_tuples *device = out->device;
	uint32_t *d_share_keys;

	PFS_TRY(pfs_job_alloc(job, &d_share_keys,
			      (pfs_cuda_merge_shares(m->total) + 1) * sizeof(*d_share_keys)));
	for (size_t i = 0; i < 2; i++) {
		PFS_TRY(pfs_job_alloc(job, &device->d_rows[i], m->total * sizeof(uint32_t)));
		pfs_device_tuples_own(job, out, device->d_rows[i]);
	}
	return pfs_cuda_merge_write(device->d_rows[m->swapped], device->d_rows[!m->swapped],
				    d_share_keys, m->d_starts, m->few->to - m->few->from,
				    m->d_ranges, few->d_rows + m->few->from, many->d_rows, m->total,
				    m->swapped, job->stream);
}

static int merge(struct pfs_job *job, struct pfs_tuples **out,
		 const struct pfs_index_fragment *left, const struct pfs_index_fragment *right)
{
	const struct pfs_table_column *a = &left->index->table->columns[left->index->column];
	const struct pfs_table_column *b = &right->index->table->columns[right->index->column];
	struct merging m = {.few = left, .many = right};

	m.swapped = right->to - right->from < left->to - left->from;
	if (m.swapped) {
		m.few = right;
		m.many = left;
	}
	if (!left->index->device || !right->index->device || a->kind != b->kind ||
	    a->dictionary != b->dictionary)
		return -EOPNOTSUPP;
	PFS_TRY(count_merged(job, &m));
	PFS_TRY(pfs_device_tuples_make(job, out, m.total, 2, 0));
	(*out)->tables[0].table = left->index->table;
	(*out)->tables[1].table = right->index->table;
	return write_merged(job, *out, &m);
}

static int cuda_merge(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_tuples **out, const struct pfs_index_fragment *left,
		      const struct pfs_index_fragment *right)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : merge(&job, out, left, right));
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

const struct pfs_join_family pfs_cuda_join_family = {.join = cuda_join, .merge = cuda_merge};
