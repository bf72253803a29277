/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_index_change.c - batches of changes of an index on the device.  Whatever needs
 * memory comes before the first kernel that changes the tree. */
#include "gpu/cuda/cuda_index.h"

#include "base/checked.h"

#define PAGES_MAX (1u << 27) /* entries have 32-bit numbers */

/* Puts `d_new`, the job's memory, in the place of *array, which the job frees. */
static void swap_array(struct pfs_job *job, void *array, void *d_new)
{
	pfs_job_keep(job, d_new);
	pfs_job_adopt(job, *(void **)array);
	*(void **)array = d_new;
}

static void swap_leaves(struct pfs_job *job, struct pfs_index_tree *tree,
			const struct pfs_device_leaves *leaves)
{
	swap_array(job, &tree->d.leaves.d_page, leaves->d_page);
	swap_array(job, &tree->d.leaves.d_fence, leaves->d_fence);
	swap_array(job, &tree->d.leaves.d_fence_value, leaves->d_fence_value);
	tree->d.leaves.n = leaves->n;
	(void)pfs_index_set_levels(&tree->d, tree->d_levels, leaves->n);
}

/* What follows from a new list. */
static int relink(struct pfs_job *job, struct pfs_index_tree *tree)
{
	PFS_TRY(pfs_cuda_index_links(&tree->d, job->stream));
	return pfs_index_upper_download(job, tree);
}

/* At least `wanted` free pages. */
static int make_free(struct pfs_job *job, struct pfs_index_tree *tree, uint32_t wanted)
{
	struct pfs_device_pages *old = &tree->d.pages, pages;
	uint32_t more, n = tree->n_pages, *d_free;
	size_t entries = (size_t)n * PFS_PAGE;

	if (wanted <= tree->n_free)
		return 0;
	more = PFS_MAX(wanted - tree->n_free, n / 4);
	if (more > PAGES_MAX - n)
		return -ENOMEM;
	PFS_TRY(pfs_index_alloc_pages(job, &pages, n + more));
	PFS_TRY(pfs_job_alloc(job, &d_free, (n + more) * sizeof(*d_free)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(pages.d_keys, old->d_keys, entries * sizeof(*old->d_keys),
					 cudaMemcpyDeviceToDevice, job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(pages.d_values, old->d_values,
					 entries * sizeof(*old->d_values), cudaMemcpyDeviceToDevice,
					 job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(pages.d_count, old->d_count, n * sizeof(*old->d_count),
					 cudaMemcpyDeviceToDevice, job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(pages.d_next, old->d_next, n * sizeof(*old->d_next),
					 cudaMemcpyDeviceToDevice, job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_free, tree->d_free, tree->n_free * sizeof(*d_free),
					 cudaMemcpyDeviceToDevice, job->stream)));
	PFS_TRY(pfs_index_clear_pages(job, &pages, n, more));
	PFS_TRY(pfs_cuda_index_free_pages(d_free + tree->n_free, n, more, job->stream));
	swap_array(job, &old->d_keys, pages.d_keys);
	swap_array(job, &old->d_values, pages.d_values);
	swap_array(job, &old->d_count, pages.d_count);
	swap_array(job, &old->d_next, pages.d_next);
	swap_array(job, &tree->d_free, d_free);
	tree->n_pages += more;
	tree->n_free += more;
	return 0;
}

static int make_level_room(struct pfs_job *job, struct pfs_index_tree *tree, uint32_t n_leaves)
{
	struct pfs_device_btree scratch = {.has_upper = tree->d.has_upper};
	uint32_t room = n_leaves + n_leaves / 8;
	uint64_t *d_levels;

	if (!tree->d.has_upper)
		PFS_TRY(pfs_index_upper_reserve(&tree->upper, n_leaves));
	if (n_leaves <= tree->level_room)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &d_levels,
			      pfs_index_set_levels(&scratch, NULL, room) * sizeof(*d_levels)));
	swap_array(job, &tree->d_levels, d_levels);
	tree->level_room = room;
	return 0; /* filled with the list that follows */
}

/* Runs one batch of insertions or removals as a job; *n_changed is how many pairs it added or
 * removed. */
static int
change_batch(struct pfs_operator_backend *b, const struct pfs_run *run, struct pfs_index_tree *tree,
	     uint64_t *n_changed, const struct pfs_index_change *change,
	     int (*change_in)(struct pfs_job *job, struct pfs_index_tree *tree, uint64_t *n_changed,
			      const struct pfs_index_change *change))
{
	struct pfs_job job;
	int error;

	*n_changed = 0;
	if (change->n == 0)
		return 0;
	error = pfs_job_begin(&job, b, run);
	error = error ? error : change_in(&job, tree, n_changed, change);
	return pfs_job_end(&job, error);
}

/* ---- insertion ---- */

struct batch {
	uint64_t *d_keys;
	pfs_index_value *d_values;
	uint32_t n;
};

/* On the device and sorted: by key, in the order given; with duplicates, by value, too. */
static int sort_batch(struct pfs_job *job, struct batch *batch,
		      const struct pfs_index_change *change, bool is_unique)
{
	uint64_t *d_keys_out;
	pfs_index_value *d_values_out;
	void *d_temporary;
	size_t size = 0;

	batch->n = (uint32_t)change->n;
	PFS_TRY(pfs_job_upload(job, &batch->d_keys, change->keys, change->n * sizeof(uint64_t)));
	PFS_TRY(pfs_job_upload(job, &batch->d_values, change->values,
			       change->n * sizeof(*batch->d_values)));
	if (!is_unique) {
		PFS_TRY(pfs_job_alloc(job, &d_keys_out, change->n * sizeof(*d_keys_out)));
		PFS_TRY(pfs_job_alloc(job, &d_values_out, change->n * sizeof(*d_values_out)));
		PFS_TRY(pfs_cuda_index_sort_values(NULL, &size, d_values_out, batch->d_values,
						   d_keys_out, batch->d_keys, batch->n,
						   job->stream));
		PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
		PFS_TRY(pfs_cuda_index_sort_values(d_temporary, &size, d_values_out,
						   batch->d_values, d_keys_out, batch->d_keys,
						   batch->n, job->stream));
		batch->d_keys = d_keys_out;
		batch->d_values = d_values_out;
	}
	return pfs_index_sort(job, &batch->d_keys, &batch->d_values, sizeof(*batch->d_values),
			      batch->n, 0, 64);
}

/* Leaves only what is new in `in`; d_place as pfs_cuda_index_mark_new has it. */
static int choose_new(struct pfs_job *job, const struct pfs_index_tree *tree,
		      struct pfs_device_insertion *in, uint32_t **d_place,
		      const struct batch *batch, bool replace)
{
	uint32_t *d_is_new, *d_at, *d_rank, *d_at_out, n = batch->n;
	pfs_index_value *d_values;
	uint64_t *d_keys;

	PFS_TRY(pfs_job_alloc_zero(job, &d_is_new, (n + 1) * sizeof(*d_is_new)));
	PFS_TRY(pfs_job_alloc(job, &d_rank, (n + 1) * sizeof(*d_rank)));
	PFS_TRY(pfs_job_alloc(job, &d_at, n * sizeof(*d_at)));
	PFS_TRY(pfs_job_alloc(job, d_place, n * sizeof(**d_place)));
	PFS_TRY(pfs_cuda_index_mark_new(&tree->d, d_is_new, d_at, *d_place, batch->d_keys,
					batch->d_values, n, replace, job->stream));
	PFS_TRY(pfs_index_sums(job, d_rank, d_is_new, (uint64_t)n + 1));
	PFS_TRY(pfs_job_download(job, &in->n, d_rank + n, sizeof(in->n)));
	PFS_TRY(pfs_job_alloc(job, &d_keys, in->n * sizeof(*d_keys)));
	PFS_TRY(pfs_job_alloc(job, &d_values, in->n * sizeof(*d_values)));
	PFS_TRY(pfs_job_alloc(job, &d_at_out, in->n * sizeof(*d_at_out)));
	in->d_keys = d_keys;
	in->d_values = d_values;
	in->d_at = d_at_out;
	return pfs_cuda_index_compact(d_keys, d_values, d_at_out, batch->d_keys, batch->d_values,
				      d_at, d_is_new, d_rank, n, job->stream);
}

/* *n_out leaves there will be, *n_fresh of them pages of leaves that are split. */
static int share_out(struct pfs_job *job, const struct pfs_index_tree *tree,
		     struct pfs_device_insertion *in, uint32_t *n_out, uint32_t *n_fresh)
{
	size_t n = tree->d.leaves.n, size = (n + 1) * sizeof(uint32_t);
	uint32_t *d_pages, *d_fresh;

	PFS_TRY(pfs_job_alloc_zero(job, &in->d_begin, size));
	PFS_TRY(pfs_job_alloc_zero(job, &in->d_end, size));
	PFS_TRY(pfs_job_alloc(job, &in->d_out_at, size));
	PFS_TRY(pfs_job_alloc(job, &in->d_fresh_at, size));
	PFS_TRY(pfs_job_alloc(job, &d_pages, size));
	PFS_TRY(pfs_job_alloc(job, &d_fresh, size));
	PFS_TRY(pfs_cuda_index_shares(&tree->d, in, d_pages, d_fresh, job->stream));
	PFS_TRY(pfs_index_sums(job, in->d_out_at, d_pages, n + 1));
	PFS_TRY(pfs_index_sums(job, in->d_fresh_at, d_fresh, n + 1));
	PFS_TRY(pfs_job_download(job, n_out, in->d_out_at + n, sizeof(*n_out)));
	return pfs_job_download(job, n_fresh, in->d_fresh_at + n, sizeof(*n_fresh));
}

/* The memory of a list that grows. */
struct splitting {
	struct pfs_device_leaves out;
	uint32_t *d_n, n_fresh;
};

static int prepare_split(struct pfs_job *job, struct pfs_index_tree *tree,
			 struct splitting *splitting, uint32_t n_out)
{
	PFS_TRY(make_free(job, tree, splitting->n_fresh));
	PFS_TRY(pfs_index_alloc_leaves(job, &splitting->out, n_out));
	PFS_TRY(pfs_job_alloc(job, &splitting->d_n, sizeof(*splitting->d_n)));
	return make_level_room(job, tree, n_out);
}

static int insert_split(struct pfs_job *job, struct pfs_index_tree *tree,
			struct pfs_device_insertion *in, const struct splitting *splitting)
{
	uint32_t *d_n = splitting->d_n;

	in->d_free = tree->d_free;
	in->n_free = tree->n_free;
	PFS_TRY(pfs_cuda_index_insert_split(&tree->d, in, &splitting->out, job->stream));
	tree->n_free -= splitting->n_fresh;
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_n, &tree->n_free, sizeof(*d_n), cudaMemcpyHostToDevice,
					 job->stream)));
	PFS_TRY(pfs_cuda_index_retire_split(&tree->d, in, tree->d_free, d_n, job->stream));
	PFS_TRY(pfs_job_download(job, &tree->n_free, d_n, sizeof(*d_n)));
	swap_leaves(job, tree, &splitting->out);
	return relink(job, tree);
}

/* One pair, by a kernel that sorts and splits nothing, and answers into the host's memory;
 * *inserted says whether there was room. */
static int insert_one(struct pfs_job *job, struct pfs_index_tree *tree,
		      enum pfs_device_inserted *inserted, const struct pfs_index_change *change,
		      bool replace)
{
	const pfs_index_value *values = change->values;
	const uint32_t *answer = job->window;

	PFS_TRY(pfs_cuda_index_insert_one(&tree->d, job->window, *change->keys, *values, replace,
					  job->stream));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	*inserted = *answer;
	return 0;
}

static int insert_in(struct pfs_job *job, struct pfs_index_tree *tree, uint64_t *n_added,
		     const struct pfs_index_change *change)
{
	struct pfs_device_insertion in = {0};
	struct splitting splitting = {0};
	struct batch batch;
	bool replace = tree->d.is_unique && change->policy == PFS_INDEX_REPLACE;
	enum pfs_device_inserted inserted = PFS_INSERTED_NO_ROOM;
	uint32_t *d_place, n_out = 0;
	uint64_t greatest;

	if (change->n == 1 && job->window)
		PFS_TRY(insert_one(job, tree, &inserted, change, replace));
	if (inserted != PFS_INSERTED_NO_ROOM) {
		*n_added = inserted == PFS_INSERTED_NEW;
		tree->greatest = PFS_MAX(tree->greatest, *change->keys);
		tree->n += *n_added;
		return 0;
	}
	PFS_TRY(sort_batch(job, &batch, change, tree->d.is_unique));
	PFS_TRY(pfs_job_download(job, &greatest, batch.d_keys + batch.n - 1, sizeof(greatest)));
	PFS_TRY(choose_new(job, tree, &in, &d_place, &batch, replace));
	if (in.n)
		PFS_TRY(share_out(job, tree, &in, &n_out, &splitting.n_fresh));
	if (splitting.n_fresh)
		PFS_TRY(prepare_split(job, tree, &splitting, n_out));
	if (replace) /* first: the insertion moves entries */
		PFS_TRY(pfs_cuda_index_replace(&tree->d, d_place, batch.d_values, batch.n,
					       job->stream));
	if (splitting.n_fresh)
		PFS_TRY(insert_split(job, tree, &in, &splitting));
	else if (in.n)
		PFS_TRY(pfs_cuda_index_insert(&tree->d, &in, job->stream));
	tree->greatest = PFS_MAX(tree->greatest, greatest);
	tree->n += in.n;
	*n_added = in.n;
	return 0;
}

int pfs_cuda_index_insert_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_index_tree *tree, uint64_t *n_added,
				const struct pfs_index_change *change)
{
	return change_batch(b, run, tree, n_added, change, insert_in);
}

/* ---- removal ---- */

/* What joining needs, taken before anything changes. */
struct joining {
	struct pfs_device_leaves list[2]; /* taken in turns */
	uint32_t *d_stays, *d_rank, *d_n;
	void *d_temporary;
	size_t temporary_size;
};

static int prepare_joining(struct pfs_job *job, struct joining *joining, uint32_t n)
{
	size_t size = ((size_t)n + 1) * sizeof(uint32_t);

	PFS_TRY(pfs_index_alloc_leaves(job, &joining->list[0], n));
	PFS_TRY(pfs_index_alloc_leaves(job, &joining->list[1], n));
	PFS_TRY(pfs_job_alloc(job, &joining->d_stays, size));
	PFS_TRY(pfs_job_alloc(job, &joining->d_rank, size));
	PFS_TRY(pfs_job_alloc(job, &joining->d_n, sizeof(uint32_t)));
	PFS_TRY(pfs_cuda_sums_32(NULL, &joining->temporary_size, joining->d_rank, joining->d_stays,
				 (uint64_t)n + 1, job->stream));
	return pfs_job_alloc(job, &joining->d_temporary, joining->temporary_size);
}

/* One round over pairs that start at even or odd positions of `now`; *n_joined pairs. */
static int join_round(struct pfs_job *job, struct pfs_index_tree *tree, struct joining *joining,
		      const struct pfs_device_btree *now, struct pfs_device_leaves *out,
		      uint32_t parity)
{
	uint32_t n = now->leaves.n, joined;

	PFS_TRY(PFS_CUDA(cudaMemsetAsync(joining->d_n, 0, sizeof(uint32_t), job->stream)));
	PFS_TRY(pfs_cuda_index_ones(joining->d_stays, n, job->stream));
	PFS_TRY(pfs_cuda_index_join(now, joining->d_stays, joining->d_n, parity, job->stream));
	PFS_TRY(pfs_job_download(job, &joined, joining->d_n, sizeof(joined)));
	out->n = n - joined;
	if (joined == 0)
		return 0;
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(joining->d_n, &tree->n_free, sizeof(uint32_t),
					 cudaMemcpyHostToDevice, job->stream)));
	PFS_TRY(pfs_cuda_sums_32(joining->d_temporary, &joining->temporary_size, joining->d_rank,
				 joining->d_stays, n, job->stream));
	PFS_TRY(pfs_cuda_index_drop(now, out, joining->d_stays, joining->d_rank, tree->d_free,
				    joining->d_n, job->stream));
	return pfs_job_download(job, &tree->n_free, joining->d_n, sizeof(tree->n_free));
}

/* Until neither the even nor the odd pairs can be joined any more. */
static int join_poor(struct pfs_job *job, struct pfs_index_tree *tree, struct joining *joining)
{
	struct pfs_device_btree now = tree->d;
	unsigned in_vain = 0, turn = 0;
	bool changed = false;

	for (uint32_t parity = 0; in_vain < 2 && now.leaves.n > 1; parity ^= 1) {
		struct pfs_device_leaves *out = &joining->list[turn];

		PFS_TRY(join_round(job, tree, joining, &now, out, parity));
		in_vain = out->n == now.leaves.n ? in_vain + 1 : 0;
		if (in_vain)
			continue;
		now.leaves = *out;
		turn ^= 1;
		changed = true;
	}
	if (!changed)
		return 0;
	swap_leaves(job, tree, &now.leaves);
	return relink(job, tree);
}

static int remove_in(struct pfs_job *job, struct pfs_index_tree *tree, uint64_t *n_removed,
		     const struct pfs_index_change *change)
{
	uint32_t n = tree->d.leaves.n, removed, *d_dead, *d_n;
	pfs_index_value *d_values = NULL;
	struct joining joining = {0};
	uint64_t *d_keys;

	PFS_TRY(pfs_job_upload(job, &d_keys, change->keys, change->n * sizeof(*d_keys)));
	if (change->values)
		PFS_TRY(pfs_job_upload(job, &d_values, change->values,
				       change->n * sizeof(*d_values)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_dead, n * sizeof(*d_dead)));
	PFS_TRY(pfs_job_alloc_zero(job, &d_n, sizeof(*d_n)));
	PFS_TRY(prepare_joining(job, &joining, n));
	PFS_TRY(pfs_cuda_index_mark_dead(&tree->d, d_dead, d_keys, d_values, (uint32_t)change->n,
					 job->stream));
	PFS_TRY(pfs_cuda_index_close_gaps(&tree->d, d_dead, d_n, job->stream));
	PFS_TRY(pfs_job_download(job, &removed, d_n, sizeof(removed)));
	tree->n -= removed;
	*n_removed = removed;
	return removed ? join_poor(job, tree, &joining) : 0;
}

int pfs_cuda_index_remove_batch(struct pfs_operator_backend *b, const struct pfs_run *run,
				struct pfs_index_tree *tree, uint64_t *n_removed,
				const struct pfs_index_change *change)
{
	return change_batch(b, run, tree, n_removed, change, remove_in);
}
