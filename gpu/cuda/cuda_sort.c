/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_sort.c - order on the device: radix sorts from the last key to the first, each
 * stable, with the NULLs put before or behind by a bit of their own.
 *
 * With a small limit most of the input is left out first: histograms of the first key's digits tell
 * which keys can be among the first; only these are listed and sorted.  If the device has no order
 * for a further key, such as texts of a heap, the host sorts what is left. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define DIGIT	   12 /* bits, as the histogram of sort.cu has */
#define WORTH	   65536u
#define CANDIDATES 4u /* so many times the limit are few enough */
#define LEFT_MOST  262144u /* so many are left at most, where the host sorts them */
#define REPEATED   4u /* entries a key, on average, from which an index lists its runs */

struct key {
	struct pfs_device_sort_key device;
	bool can_be_null;
};

/* The places in the order so far, and room for what comes next. */
struct sort {
	uint32_t *d_places, *d_next;
	uint64_t *d_keys, *d_keys_next;
	uint8_t *d_flags, *d_flags_next;
	void *d_temporary;
	size_t temporary_size;
	uint64_t n;
};

static int read_key(struct pfs_job *job, struct key *out, const struct pfs_source *source,
		    const struct pfs_sort_key *key)
{
	enum pfs_kind kind;

	PFS_TRY(pfs_job_value(job, &out->device.value, &kind, source, key->ref));
	if (kind == PFS_KIND_PLACE || kind == PFS_KIND_NUMBER)
		return -EOPNOTSUPP;
	out->device.d_rank = NULL;
	if (kind == PFS_KIND_CODE)
		PFS_TRY(pfs_job_rank(job, &out->device.d_rank,
				     pfs_source_dictionary(source, key->ref), key->collation));
	out->device.descending = key->descending;
	out->device.nulls_first = !key->nulls_last;
	out->can_be_null = pfs_value_can_be_null(&out->device.value);
	return 0;
}

static int make_keys(struct pfs_job *job, struct sort *s, const struct key *key)
{
	return pfs_cuda_sort_keys(s->d_keys, key->can_be_null ? s->d_flags : NULL, &key->device,
				  s->d_places, s->n, job->stream);
}

/* Pairs of s->n, or flags, into the next places, which then are the places. */
static int sort_once(struct pfs_job *job, struct sort *s, bool flags, int bits)
{
	uint32_t *d_places = s->d_places;
	size_t size = 0;

	for (int pass = 0; pass < 2; pass++) {
		void *d_temporary = pass ? s->d_temporary : NULL;

		PFS_TRY(flags ? pfs_cuda_sort_flags(d_temporary, &size, s->d_flags_next, s->d_flags,
						    s->d_next, d_places, s->n, job->stream)
			      : pfs_cuda_sort_pairs(d_temporary, &size, s->d_keys_next, s->d_keys,
						    s->d_next, d_places, s->n, bits, job->stream));
		if (!pass && size > s->temporary_size) {
			PFS_TRY(pfs_job_alloc(job, &s->d_temporary, size));
			s->temporary_size = size;
		}
	}
	s->d_places = s->d_next;
	s->d_next = d_places;
	return 0;
}

static int sort_by(struct pfs_job *job, struct sort *s, const struct key *key)
{
	PFS_TRY(pfs_run_check(job->run));
	PFS_TRY(make_keys(job, s, key));
	PFS_TRY(sort_once(job, s, false,
			  key->device.d_rank && !key->device.descending ? 32 : 64));
	if (!key->can_be_null)
		return 0;
	PFS_TRY(make_keys(job, s, key)); /* the flags, in the new order */
	return sort_once(job, s, true, 1);
}

/* ---- a small limit ---- */

/* Where the wanted-th key lies: *most is not below it, and few keys are at most that, if not many
 * are equal. */
static int find_threshold(struct pfs_job *job, uint64_t *most, const struct key *key,
			  const struct pfs_device_places *places, uint64_t wanted)
{
	uint32_t histogram[1 << DIGIT], *d_histogram;
	uint64_t prefix = 0, before = 0;

	*most = UINT64_MAX;
	PFS_TRY(pfs_job_alloc(job, &d_histogram, sizeof(histogram)));
	for (int shift = 64 - DIGIT;; shift -= DIGIT) {
		uint64_t digit = 0;

		PFS_TRY(PFS_CUDA(
			cudaMemsetAsync(d_histogram, 0, sizeof(histogram), job->stream)));
		PFS_TRY(pfs_cuda_sort_histogram(d_histogram, &key->device, places, prefix, shift,
						job->stream));
		PFS_TRY(pfs_job_download(job, histogram, d_histogram, sizeof(histogram)));
		while (digit < PFS_COUNT(histogram) && before + histogram[digit] < wanted)
			before += histogram[digit++];
		if (digit == PFS_COUNT(histogram)) /* there are not so many */
			return 0;
		prefix = prefix << DIGIT | digit;
		*most = ((prefix + 1) << shift) - 1;
		if (shift < DIGIT || histogram[digit] <= CANDIDATES * wanted + WORTH)
			return 0;
	}
}

/* Leaves out the places that cannot be among the first `wanted`. */
static int leave_out(struct pfs_job *job, struct pfs_device_places *places, const struct key *key,
		     uint64_t wanted)
{
	uint32_t *d_bits;
	uint64_t most;

	PFS_TRY(find_threshold(job, &most, key, places, wanted));
	PFS_TRY(pfs_job_alloc_zero(job, &d_bits, pfs_div_round_up(places->to, 64) * 8));
	PFS_TRY(pfs_cuda_sort_at_most(d_bits, &key->device, places, most, job->stream));
	places->d_mask = d_bits;
	return 0;
}

/* ---- the operator ---- */

static int begin_sort(struct pfs_job *job, struct sort *s, const struct pfs_device_places *places)
{
	PFS_TRY(pfs_job_list(job, &s->d_places, &s->n, places));
	if (!s->d_places) {
		PFS_TRY(pfs_job_alloc(job, &s->d_places, s->n * sizeof(uint32_t)));
		PFS_TRY(pfs_cuda_count_up(s->d_places, (uint32_t)places->from, s->n, job->stream));
	}
	PFS_TRY(pfs_job_alloc(job, &s->d_next, s->n * sizeof(uint32_t)));
	PFS_TRY(pfs_job_alloc(job, &s->d_keys, s->n * sizeof(uint64_t)));
	PFS_TRY(pfs_job_alloc(job, &s->d_keys_next, s->n * sizeof(uint64_t)));
	PFS_TRY(pfs_job_alloc(job, &s->d_flags, s->n));
	return pfs_job_alloc(job, &s->d_flags_next, s->n);
}

/* Reads the keys up to the first that the device has no order for: *n of them, at least one. */
static int read_keys(struct pfs_job *job, struct key *keys, size_t *n,
		     const struct pfs_source *source, const struct pfs_sort_key *sort_keys,
		     size_t n_keys)
{
	int error = 0;

	for (*n = 0; *n < n_keys && !error; *n += !error)
		error = read_key(job, &keys[*n], source, &sort_keys[*n]);
	return error == -EOPNOTSUPP && *n ? 0 : error;
}

/* Leaves out what cannot be among the wanted ones, where that is worth it.  -EOPNOTSUPP: it is not,
 * though it would have to be. */
static int narrow(struct pfs_job *job, struct pfs_device_places *places, const struct key *first,
		  uint64_t wanted, bool has_to_be)
{
	uint64_t n = places->to - places->from;

	if (!first || !wanted || n <= WORTH || wanted >= n / 16)
		return has_to_be ? -EOPNOTSUPP : 0;
	return leave_out(job, places, first, wanted);
}

/* *is_sorted false: *out has all tuples that can be among the wanted ones, in the source's
 * order. */
static int sort(struct pfs_job *job, struct pfs_tuples **out, bool *is_sorted,
		const struct pfs_source *source, const struct pfs_sort_key *sort_keys,
		size_t n_keys, uint64_t offset, uint64_t limit)
{
	struct key *keys PFS_FREE = calloc(n_keys + 1, sizeof(*keys));
	struct pfs_device_places places;
	struct sort s = {0};
	uint64_t wanted, n;
	size_t n_read;

	if (!keys)
		return -ENOMEM;
	if (__builtin_add_overflow(offset, limit, &wanted))
		wanted = UINT64_MAX;
	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(read_keys(job, keys, &n_read, source, sort_keys, n_keys));
	*is_sorted = n_read == n_keys;
	PFS_TRY(narrow(job, &places, n_keys ? keys : NULL, wanted, !*is_sorted));
	PFS_TRY(begin_sort(job, &s, &places));
	if (!*is_sorted && s.n > LEFT_MOST)
		return -EOPNOTSUPP;
	for (size_t i = *is_sorted ? n_keys : 0; i-- > 0 && s.n;)
		PFS_TRY(sort_by(job, &s, &keys[i]));
	offset = *is_sorted ? PFS_MIN(offset, s.n) : 0;
	n = *is_sorted ? PFS_MIN(limit, s.n - offset) : s.n;
	PFS_TRY(pfs_device_tuples_make(job, out, n, pfs_source_tables(source),
				       pfs_source_computed(source)));
	return pfs_job_put(job, *out, 0, 0, source, s.d_places + offset, offset == 0);
}

static int cuda_sort(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_source *source,
		     const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset,
		     uint64_t limit)
{
	bool is_sorted = true;
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error
					: sort(&job, out, &is_sorted, source, keys, n_keys, offset,
					       limit));
	if (!error && !is_sorted)
		error = pfs_sort_here(run, out, keys, n_keys, offset, limit);
	if (error) {
		pfs_tuples_free(run, *out);
		*out = NULL;
	}
	return error;
}

/* ---- column indexes ---- */

/* Lists the runs of equal keys, if these are few: a merge then searches them in place of all
 * keys. */
static int list_runs(struct pfs_job *job, struct pfs_device_index *device, uint64_t n)
{
	struct pfs_device_places all = {.to = n};
	uint32_t *d_bits, *d_starts;
	uint64_t n_runs;

	PFS_TRY(pfs_job_alloc(job, &d_bits, pfs_div_round_up(n, 64) * 8));
	PFS_TRY(pfs_cuda_run_bits(d_bits, device->d_keys, n, job->stream));
	all.d_mask = d_bits;
	PFS_TRY(pfs_job_list(job, &d_starts, &n_runs, &all));
	if (n_runs > n / REPEATED)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &device->d_run_starts, (n_runs + 1) * sizeof(*d_starts)));
	PFS_TRY(pfs_job_alloc(job, &device->d_run_keys, n_runs * sizeof(*device->d_run_keys)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(device->d_run_starts, d_starts, n_runs * sizeof(*d_starts),
					 cudaMemcpyDeviceToDevice, job->stream)));
	device->n_runs = n_runs;
	return pfs_cuda_run_keys(device->d_run_keys, device->d_run_starts, device->d_keys, n_runs,
				 n, job->stream);
}

static int keep_index(struct pfs_job *job, struct pfs_column_index *index,
		      const struct pfs_device_index *made, uint64_t n)
{
	struct pfs_device_index *device = malloc(sizeof(*device));

	if (!device)
		return -ENOMEM;
	*device = *made;
	pfs_job_keep(job, device->d_rows);
	pfs_job_keep(job, device->d_keys);
	pfs_job_keep(job, device->d_run_keys);
	pfs_job_keep(job, device->d_run_starts);
	index->n = n;
	index->device = device;
	index->backend = &job->o->base;
	return 0;
}

static int make_index(struct pfs_job *job, struct pfs_column_index *index,
		      const struct pfs_source *source)
{
	const struct pfs_sort_key by = {.ref = {0, index->column}, .collation = index->collation};
	struct pfs_device_index device = {0};
	struct pfs_device_places places;
	struct pfs_device_program not_null = {
		.n = 2, .step = {{.op = PFS_DEVICE_IS_NULL}, {.op = PFS_DEVICE_NOT}}};
	struct sort s = {0};
	struct key key;
	uint32_t *d_bits;

	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(read_key(job, &key, source, &by));
	if (key.can_be_null) {
		not_null.step[0].value = key.device.value;
		PFS_TRY(pfs_job_alloc(job, &d_bits,
				      pfs_div_round_up(source->table->n_rows, 64) * 8));
		PFS_TRY(pfs_cuda_select(d_bits, source->table->n_rows, NULL, &places, &not_null,
					job->stream));
		places.d_mask = d_bits;
		key.can_be_null = false;
	}
	PFS_TRY(begin_sort(job, &s, &places));
	if (s.n)
		PFS_TRY(sort_by(job, &s, &key));
	device.d_rows = s.d_places;
	device.d_keys = s.d_keys_next;
	if (s.n)
		PFS_TRY(list_runs(job, &device, s.n));
	return keep_index(job, index, &device, s.n);
}

static int cuda_index(struct pfs_operator_backend *b, const struct pfs_run *run,
		      struct pfs_column_index *index, const struct pfs_source *source)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	return pfs_job_end(&job, error ? error : make_index(&job, index, source));
}

static void cuda_release_index(struct pfs_operator_backend *b, const struct pfs_run *run,
			       struct pfs_column_index *index)
{
	struct pfs_device_index *device = index->device;

	(void)run;
	pfs_device_give(pfs_cuda_operators_of(b), device->d_rows);
	pfs_device_give(pfs_cuda_operators_of(b), device->d_keys);
	pfs_device_give(pfs_cuda_operators_of(b), device->d_run_keys);
	pfs_device_give(pfs_cuda_operators_of(b), device->d_run_starts);
	free(device);
	index->device = NULL;
}

static int fetch_index(struct pfs_job *job, struct pfs_column_index *index)
{
	const struct pfs_device_index *device = index->device;

	PFS_TRY(pfs_run_alloc_raw(job->run, &index->rows, index->n, sizeof(*index->rows)));
	return pfs_job_download(job, index->rows, device->d_rows, index->n * sizeof(uint32_t));
}

/* It then is in both places. */
static int cuda_fetch_index(struct pfs_operator_backend *b, const struct pfs_run *run,
			    struct pfs_column_index *index)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : fetch_index(&job, index));
	return error == -EOPNOTSUPP ? -EIO : error;
}

const struct pfs_sort_family pfs_cuda_sort_family = {
	.sort = cuda_sort,
	.index = cuda_index,
	.fetch = cuda_fetch_index,
	.release = cuda_release_index,
};
