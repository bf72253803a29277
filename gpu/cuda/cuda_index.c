/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_index.c - ordered indexes on the device: made, asked, read in order, checked. */
#include "gpu/cuda/cuda_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/log.h"

#define SPARE_SHARE   8u /* of the pages: so many more are kept for splits */
#define SPARE_PAGES   64u
/* From so many questions on, sorting them pays: on an H200 a million were answered sooner as they
 * came, ten million in order (docs/BENCHMARKS.md). In fewer leaves than SORT_LEAVES, which stay in
 * the cache, it never does. */
#define SORT_MIN      2000000u
#define SORT_LEAVES   (1u << 16)
#define SORT_BITS     16

void pfs_index_arrays(struct pfs_index_tree *tree, void **arrays[PFS_INDEX_ARRAYS])
{
	struct pfs_device_btree *d = &tree->d;
	size_t i = 0;

	arrays[i++] = (void **)&d->pages.d_keys;
	arrays[i++] = (void **)&d->pages.d_values;
	arrays[i++] = (void **)&d->pages.d_count;
	arrays[i++] = (void **)&d->pages.d_next;
	arrays[i++] = (void **)&d->leaves.d_page;
	arrays[i++] = (void **)&d->leaves.d_fence;
	arrays[i++] = (void **)&d->leaves.d_fence_value;
	arrays[i++] = (void **)&tree->d_levels;
	arrays[i++] = (void **)&tree->d_free;
}

size_t pfs_index_set_levels(struct pfs_device_btree *t, const uint64_t *d_levels, uint32_t n)
{
	size_t used = 0;

	t->top = 0;
	t->d_level[0] = t->leaves.d_fence;
	t->n_level[0] = n;
	while (t->has_upper && n > PFS_TOP_MAX) {
		n = (uint32_t)pfs_div_round_up(n, 1u << PFS_FAN_BITS);
		t->top++;
		t->d_level[t->top] = d_levels ? d_levels + used : NULL;
		t->n_level[t->top] = n;
		used += n;
	}
	return used;
}

int pfs_index_upper_download(struct pfs_job *job, struct pfs_index_tree *tree)
{
	const struct pfs_device_leaves *leaves = &tree->d.leaves;

	if (tree->d.has_upper)
		return 0;
	PFS_TRY(pfs_job_download(job, tree->upper.keys, leaves->d_fence,
				 leaves->n * sizeof(*leaves->d_fence)));
	PFS_TRY(pfs_job_download(job, tree->upper.values, leaves->d_fence_value,
				 leaves->n * sizeof(*leaves->d_fence_value)));
	pfs_index_upper_set(&tree->upper, leaves->n);
	return 0;
}

int pfs_index_alloc_leaves(struct pfs_job *job, struct pfs_device_leaves *leaves, uint32_t n)
{
	leaves->n = n;
	PFS_TRY(pfs_job_alloc(job, &leaves->d_page, n * sizeof(*leaves->d_page)));
	PFS_TRY(pfs_job_alloc(job, &leaves->d_fence, n * sizeof(*leaves->d_fence)));
	return pfs_job_alloc(job, &leaves->d_fence_value, n * sizeof(*leaves->d_fence_value));
}

int pfs_index_alloc_pages(struct pfs_job *job, struct pfs_device_pages *pages, uint32_t n)
{
	size_t entries = (size_t)n * PFS_PAGE;

	PFS_TRY(pfs_job_alloc(job, &pages->d_keys, entries * sizeof(*pages->d_keys)));
	PFS_TRY(pfs_job_alloc(job, &pages->d_values, entries * sizeof(*pages->d_values)));
	PFS_TRY(pfs_job_alloc(job, &pages->d_count, n * sizeof(*pages->d_count)));
	return pfs_job_alloc(job, &pages->d_next, n * sizeof(*pages->d_next));
}

int pfs_index_clear_pages(struct pfs_job *job, struct pfs_device_pages *pages, uint32_t from,
			  uint32_t n)
{
	size_t first = (size_t)from * PFS_PAGE, entries = (size_t)n * PFS_PAGE;

	PFS_TRY(PFS_CUDA(cudaMemsetAsync(pages->d_keys + first, 0, entries * sizeof(*pages->d_keys),
					 job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(pages->d_values + first, 0,
					 entries * sizeof(*pages->d_values), job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(pages->d_count + from, 0, n * sizeof(*pages->d_count),
					 job->stream)));
	return PFS_CUDA(cudaMemsetAsync(pages->d_next + from, 0, n * sizeof(*pages->d_next),
					job->stream));
}

int pfs_index_sums(struct pfs_job *job, uint32_t *d_out, const uint32_t *d_in, uint64_t n)
{
	void *d_temporary;
	size_t size = 0;

	PFS_TRY(pfs_cuda_sums_32(NULL, &size, d_out, d_in, n, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	return pfs_cuda_sums_32(d_temporary, &size, d_out, d_in, n, job->stream);
}

int pfs_index_sort(struct pfs_job *job, uint64_t **d_keys, void *d_with, size_t value_size,
		   uint32_t n, int first_bit, int bits)
{
	uint64_t *d_keys_out;
	void *d_with_out, *d_temporary;
	size_t size = 0;

	PFS_TRY(pfs_job_alloc(job, &d_keys_out, n * sizeof(*d_keys_out)));
	PFS_TRY(pfs_job_alloc(job, &d_with_out, n * value_size));
	PFS_TRY(pfs_cuda_index_sort(NULL, &size, d_keys_out, *d_keys, d_with_out, *(void **)d_with,
				    value_size, n, first_bit, bits, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	PFS_TRY(pfs_cuda_index_sort(d_temporary, &size, d_keys_out, *d_keys, d_with_out,
				    *(void **)d_with, value_size, n, first_bit, bits, job->stream));
	*d_keys = d_keys_out;
	*(void **)d_with = d_with_out;
	return 0;
}

/* ---- making ---- */

static void close_tree(struct pfs_operator_backend *b, const struct pfs_run *run,
		       struct pfs_index_tree *tree)
{
	void **arrays[PFS_INDEX_ARRAYS];

	(void)run;
	pfs_index_arrays(tree, arrays);
	for (size_t i = 0; i < PFS_INDEX_ARRAYS; i++)
		pfs_device_give(pfs_cuda_operators_of(b), *arrays[i]);
	pfs_index_upper_free(&tree->upper);
	free(tree);
}

static int alloc_tree(struct pfs_job *job, struct pfs_index_tree *tree, uint32_t n_leaves)
{
	size_t level_keys = pfs_index_set_levels(&tree->d, NULL, n_leaves);

	if (!tree->d.has_upper)
		PFS_TRY(pfs_index_upper_reserve(&tree->upper, n_leaves));
	tree->n_pages = n_leaves + n_leaves / SPARE_SHARE + SPARE_PAGES;
	PFS_TRY(pfs_index_alloc_pages(job, &tree->d.pages, tree->n_pages));
	PFS_TRY(pfs_index_alloc_leaves(job, &tree->d.leaves, n_leaves));
	PFS_TRY(pfs_job_alloc(job, &tree->d_levels, level_keys * sizeof(*tree->d_levels)));
	PFS_TRY(pfs_job_alloc(job, &tree->d_free, tree->n_pages * sizeof(*tree->d_free)));
	tree->level_room = n_leaves;
	(void)pfs_index_set_levels(&tree->d, tree->d_levels, n_leaves);
	return 0;
}

static int build_in(struct pfs_job *job, struct pfs_index_tree *tree, const uint64_t *keys,
		    const void *values, size_t n)
{
	uint32_t n_leaves = (uint32_t)PFS_MAX(pfs_div_round_up(n, PFS_PAGE_FILL), 1u);
	uint64_t *d_keys;
	pfs_index_value *d_values;

	PFS_TRY(alloc_tree(job, tree, n_leaves));
	PFS_TRY(pfs_job_upload(job, &d_keys, keys, n * sizeof(*keys)));
	PFS_TRY(pfs_job_upload(job, &d_values, values, n * sizeof(*d_values)));
	PFS_TRY(pfs_cuda_index_build(&tree->d, d_keys, d_values, n, job->stream));
	tree->n_free = tree->n_pages - n_leaves;
	PFS_TRY(pfs_index_clear_pages(job, &tree->d.pages, n_leaves, tree->n_free));
	PFS_TRY(pfs_cuda_index_free_pages(tree->d_free, n_leaves, tree->n_free, job->stream));
	tree->n = n;
	tree->greatest = n ? keys[n - 1] : 0;
	PFS_TRY(pfs_cuda_index_links(&tree->d, job->stream));
	return pfs_index_upper_download(job, tree);
}

static int build(struct pfs_operator_backend *b, const struct pfs_run *run,
		 struct pfs_index_tree **out, const struct pfs_index_shape *shape,
		 const uint64_t *keys, const void *values, size_t n)
{
	struct pfs_index_tree *tree = calloc(1, sizeof(*tree));
	void **arrays[PFS_INDEX_ARRAYS];
	struct pfs_job job;
	int error;

	*out = NULL;
	if (!tree)
		return -ENOMEM;
	tree->d.is_unique = shape->kind == PFS_INDEX_UNIQUE;
	tree->d.has_upper = shape->upper != PFS_INDEX_UPPER_HOST;
	error = pfs_job_begin(&job, b, run);
	error = error ? error : build_in(&job, tree, keys, values, n);
	pfs_index_arrays(tree, arrays);
	for (size_t i = 0; i < PFS_INDEX_ARRAYS; i++) {
		if (error)
			*arrays[i] = NULL; /* the job's still */
		else
			pfs_job_keep(&job, *arrays[i]);
	}
	error = pfs_job_end(&job, error);
	if (error)
		close_tree(b, run, tree);
	else
		*out = tree;
	return error;
}

/* ---- questions ---- */

/* As pfs_index_answer, of questions that are sorted first. Answers are put to their places by a
 * kernel of its own: stores far apart, each behind a search, took half of its time. */
static int answer_sorted(struct pfs_job *job, const struct pfs_index_tree *tree,
			 const struct pfs_device_find *find)
{
	struct pfs_device_find sorted = *find;
	int bits = 64 - __builtin_clzll(tree->greatest | 1);
	int first = PFS_MAX(bits - SORT_BITS, 0);
	uint64_t *d_keys = (uint64_t *)find->d_keys;
	uint32_t *d_places;

	PFS_TRY(pfs_job_alloc(job, &d_places, find->n * sizeof(*d_places)));
	PFS_TRY(pfs_cuda_index_numbers(d_places, find->n, job->stream));
	PFS_TRY(pfs_index_sort(job, &d_keys, &d_places, sizeof(*d_places), find->n, first,
			       bits - first));
	sorted.d_keys = d_keys;
	PFS_TRY(pfs_job_alloc(job, &sorted.d_values, find->n * sizeof(*sorted.d_values)));
	if (find->d_found_keys)
		PFS_TRY(pfs_job_alloc_zero(job, &sorted.d_found_keys,
					   find->n * sizeof(*sorted.d_found_keys)));
	PFS_TRY(pfs_cuda_index_find(&tree->d, &sorted, job->stream));
	if (find->d_found_keys)
		PFS_TRY(pfs_cuda_index_put(find->d_found_keys, sorted.d_found_keys, d_places,
					   sizeof(*sorted.d_found_keys), find->n, job->stream));
	return pfs_cuda_index_put(find->d_values, sorted.d_values, d_places,
				  sizeof(*sorted.d_values), find->n, job->stream);
}

int pfs_index_answer(struct pfs_job *job, const struct pfs_index_tree *tree,
		     const struct pfs_device_find *find)
{
	size_t n_before = job->n_temporary;
	int error;

	if (find->n < SORT_MIN || tree->d.leaves.n < SORT_LEAVES)
		return pfs_cuda_index_find(&tree->d, find, job->stream);
	error = answer_sorted(job, tree, find);
	pfs_job_free_since(job, n_before);
	return error;
}

/* Questions whose leaves the host has looked up. */
static int answer_at(struct pfs_job *job, const struct pfs_index_tree *tree,
		     struct pfs_device_find *find, const struct pfs_index_query *query)
{
	pfs_index_value value = query->question == PFS_INDEX_GREATER ? PFS_VALUE_NONE : 0;
	uint32_t *leaves, *d_at = NULL;
	int error;

	PFS_TRY(pfs_run_alloc_raw(job->run, &leaves, query->n, sizeof(*leaves)));
	error = pfs_index_upper_find(&tree->upper, job->run, leaves, query->keys, query->n, value);
	error = error ? error : pfs_job_upload(job, &d_at, leaves, query->n * sizeof(*leaves));
	find->d_at = d_at;
	error = error ? error : pfs_cuda_index_find(&tree->d, find, job->stream);
	error = error ? error
		      : PFS_CUDA(cudaStreamSynchronize(
				job->stream)); /* leaves are read until then */
	pfs_run_free(job->run, leaves, query->n, sizeof(*leaves));
	return error;
}

static int find_in(struct pfs_job *job, const struct pfs_index_tree *tree,
		   const struct pfs_index_query *query)
{
	struct pfs_device_find find = {.n = (uint32_t)query->n, .question = (int)query->question};
	size_t n = query->n;
	uint64_t *d_keys;

	PFS_TRY(pfs_job_upload(job, &d_keys, query->keys, n * sizeof(*d_keys)));
	find.d_keys = d_keys;
	PFS_TRY(pfs_job_alloc(job, &find.d_values, n * sizeof(*find.d_values)));
	if (query->found_keys)
		PFS_TRY(pfs_job_alloc_zero(job, &find.d_found_keys,
					   n * sizeof(*find.d_found_keys)));
	PFS_TRY(tree->d.has_upper ? pfs_index_answer(job, tree, &find)
				  : answer_at(job, tree, &find, query));
	if (query->found_keys)
		PFS_TRY(pfs_job_download(job, query->found_keys, find.d_found_keys,
					 n * sizeof(*find.d_found_keys)));
	return pfs_job_download(job, query->values, find.d_values, n * sizeof(*find.d_values));
}

static int find(struct pfs_operator_backend *b, const struct pfs_run *run,
		const struct pfs_index_tree *tree, const struct pfs_index_query *query)
{
	struct pfs_job job;
	int error;

	if (query->n == 0)
		return 0;
	error = pfs_job_begin(&job, b, run);
	error = error ? error : find_in(&job, tree, query);
	return pfs_job_end(&job, error);
}

static int range_in(struct pfs_job *job, const struct pfs_index_tree *tree,
		    struct pfs_index_list *out, uint64_t first, uint64_t last)
{
	const struct pfs_device_btree *d = &tree->d;
	struct pfs_device_range range;
	uint64_t *d_counts, *d_sums, *d_keys, n;
	pfs_index_value *d_values;
	uint32_t *d_ends;
	void *d_temporary;
	size_t n_leaves, size = 0;

	PFS_TRY(pfs_job_alloc(job, &d_ends, sizeof(range)));
	PFS_TRY(pfs_cuda_index_ends(d, d_ends, first, last, job->stream));
	PFS_TRY(pfs_job_download(job, &range, d_ends, sizeof(range)));
	n_leaves = (size_t)range.to - range.from + 1;
	PFS_TRY(pfs_job_alloc(job, &d_counts, (n_leaves + 1) * sizeof(*d_counts)));
	PFS_TRY(pfs_job_alloc(job, &d_sums, (n_leaves + 1) * sizeof(*d_sums)));
	PFS_TRY(pfs_cuda_index_range_counts(d, d_counts, &range, job->stream));
	PFS_TRY(pfs_cuda_sums_64(NULL, &size, d_sums, d_counts, n_leaves + 1, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	PFS_TRY(pfs_cuda_sums_64(d_temporary, &size, d_sums, d_counts, n_leaves + 1, job->stream));
	PFS_TRY(pfs_job_download(job, &n, d_sums + n_leaves, sizeof(n)));
	PFS_TRY(pfs_job_alloc(job, &d_keys, n * sizeof(*d_keys)));
	PFS_TRY(pfs_job_alloc(job, &d_values, n * sizeof(*d_values)));
	PFS_TRY(pfs_cuda_index_range_copy(d, d_keys, d_values, d_sums, &range, job->stream));
	PFS_TRY(pfs_index_list_make(job->run, out, n, PFS_VALUES_WIDE));
	PFS_TRY(pfs_job_download(job, out->keys, d_keys, n * sizeof(*d_keys)));
	return pfs_job_download(job, PFS_LIST_VALUES(out), d_values, n * sizeof(*d_values));
}

static int range(struct pfs_operator_backend *b, const struct pfs_run *run,
		 const struct pfs_index_tree *tree, struct pfs_index_list *out, uint64_t first,
		 uint64_t last)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = error ? error : range_in(&job, tree, out, first, last);
	error = pfs_job_end(&job, error);
	if (error)
		pfs_index_list_free(run, out);
	return error;
}

/* ---- the rest ---- */

static void describe(const struct pfs_index_tree *tree, struct pfs_index_info *info)
{
	size_t entry = sizeof(uint64_t) + sizeof(pfs_index_value);

	info->n = tree->n;
	info->page = PFS_PAGE;
	info->n_leaves = tree->d.leaves.n;
	info->bytes = tree->n_pages * (PFS_PAGE * entry + 3 * sizeof(uint32_t)) +
		      tree->d.leaves.n * (entry + sizeof(uint32_t));
	info->upper_bytes = pfs_index_upper_memory(&tree->upper);
}

/* The fences that the host has are those of the list. */
static int verify_upper(struct pfs_job *job, const struct pfs_index_tree *tree)
{
	const size_t size = tree->d.leaves.n * sizeof(uint64_t);
	uint64_t *fences;
	int error;

	if (tree->d.has_upper)
		return 0;
	fences = malloc(size);
	if (!fences)
		return -ENOMEM;
	error = pfs_job_download(job, fences, tree->d.leaves.d_fence, size);
	if (!error &&
	    (tree->upper.n[0] != tree->d.leaves.n || memcmp(fences, tree->upper.keys, size) != 0)) {
		pfs_error(
			"an index on the device: the upper levels on the host are of other leaves");
		error = -EUCLEAN;
	}
	free(fences);
	return error;
}

static int verify_in(struct pfs_job *job, const struct pfs_index_tree *tree)
{
	static const char *const rules[] = {"none",    "its count", "its order", "unused entries",
					    "a fence", "its link",  "a level above"};
	uint32_t *d_bad, bad[2];
	uint64_t *d_n, n;

	PFS_TRY(pfs_job_alloc_zero(job, &d_bad, sizeof(bad)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_n, sizeof(n)));
	PFS_TRY(pfs_cuda_index_verify(&tree->d, d_bad, d_n, job->stream));
	PFS_TRY(pfs_job_download(job, bad, d_bad, sizeof(bad)));
	PFS_TRY(pfs_job_download(job, &n, d_n, sizeof(n)));
	if (bad[0])
		pfs_error("an index on the device: page %u: %s is wrong", bad[1],
			  rules[PFS_MIN(bad[0], PFS_COUNT(rules) - 1)]);
	else if (n != tree->n || tree->n_free + tree->d.leaves.n != tree->n_pages)
		pfs_error("an index on the device: %llu entries, not %llu; %u pages free of %u",
			  (unsigned long long)n, (unsigned long long)tree->n, tree->n_free,
			  tree->n_pages);
	else
		return verify_upper(job, tree);
	return -EUCLEAN;
}

static int verify(struct pfs_operator_backend *b, const struct pfs_run *run,
		  const struct pfs_index_tree *tree)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = error ? error : verify_in(&job, tree);
	return pfs_job_end(&job, error);
}

const struct pfs_index_family pfs_cuda_index_family = {
	.build = build,
	.close = close_tree,
	.find = find,
	.range = range,
	.insert = pfs_cuda_index_insert_batch,
	.remove = pfs_cuda_index_remove_batch,
	.describe = describe,
	.verify = verify,
};
