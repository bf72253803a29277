/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_prefix.c - copies of prefix trees on the device: brought up to date by the page,
 * asked, measured. */
#include "gpu/probe_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/lazy.h"
#include "gpu/cuda/cuda_operators.h"
#include "gpu/cuda/prefix_kernels.h"
#include "gpu/prefix_impl.h"

#define TABLE_WORDS ((size_t)1 << 24) /* of results, at once, unless one key alone needs more */
#define KEYS_AT_ONCE 32768u	      /* the second dimension of a grid */
#define SPARE_SHARE  4u		      /* of a section: so much more is allocated */

_Static_assert(PFS_PREFIX_SHARED == PFS_PREFIX_BLOCK_MAX, "a block's results fit");
_Static_assert(PFS_PREFIX_NAME_ROOM == PFS_PREFIX_NAME_MAX + 1, "names as the dictionary has them");

enum { FIRST, LIST, PLACE, BLOCK, BLOCK_ARRAYS };

struct pfs_prefix_copy {
	uint8_t *d_sections[PFS_PREFIX_ON_DEVICE];
	size_t room[PFS_PREFIX_ON_DEVICE];
	uint32_t *d_blocks[BLOCK_ARRAYS];
	uint64_t blocks_of; /* the tree's changes when they were made, and 1; 0: never */
};

/* ---- up to date ---- */

static void drop(struct pfs_operator_backend *b, struct pfs_prefix_copy *copy)
{
	for (size_t i = 0; i < PFS_COUNT(copy->d_sections); i++)
		pfs_device_give(pfs_cuda_operators_of(b), copy->d_sections[i]);
	for (size_t i = 0; i < PFS_COUNT(copy->d_blocks); i++)
		pfs_device_give(pfs_cuda_operators_of(b), copy->d_blocks[i]);
	free(copy);
}

static int copy_bytes(struct pfs_job *job, uint8_t *d_to, const void *from, size_t size)
{
	pfs_lazy_touch(from, size);
	return PFS_CUDA(cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice, job->stream));
}

/* Room for the section; what the device has of it stays. */
static int grow(struct pfs_job *job, struct pfs_prefix_copy *copy, size_t i, size_t used)
{
	uint8_t *d_old = copy->d_sections[i], *d_new;
	size_t wanted = (used / PFS_PREFIX_PAGE + 1) * PFS_PREFIX_PAGE;

	if (used <= copy->room[i])
		return 0;
	wanted += wanted / SPARE_SHARE;
	PFS_TRY(pfs_job_alloc_zero(job, &d_new, wanted));
	pfs_job_keep(job, d_new);
	copy->d_sections[i] = d_new;
	if (d_old) {
		pfs_job_adopt(job, d_old);
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_new, d_old, copy->room[i],
						 cudaMemcpyDeviceToDevice, job->stream)));
	}
	copy->room[i] = wanted;
	return 0;
}

/* Runs of pages that have changed. */
static int send_pages(struct pfs_job *job, const struct pfs_prefix_section *section, uint8_t *d_to)
{
	size_t n = pfs_div_round_up(section->used, PFS_PREFIX_PAGE), to;
	uint8_t *stale = section->stale.base;
	const uint8_t *bytes = section->memory.base;

	for (size_t from = 0; from < n; from = to + 1) {
		size_t at = from * PFS_PREFIX_PAGE;

		for (to = from; to < n && stale[to]; to++)
			;
		if (to == from)
			continue;
		PFS_TRY(copy_bytes(job, d_to + at, bytes + at,
				   PFS_MIN(to * PFS_PREFIX_PAGE, section->used) - at));
		memset(stale + from, 0, to - from);
	}
	return 0;
}

/* Sections that the device has use for. */
static bool is_wanted(const struct pfs_prefix_tree *tree, size_t i)
{
	return i == PFS_PREFIX_WORDS || i == (tree->view.is_compact ? PFS_PREFIX_RECORDS
								     : PFS_PREFIX_GROUPS);
}

static void mark_all(const struct pfs_prefix_tree *tree)
{
	for (size_t i = 0; i < PFS_PREFIX_ON_DEVICE; i++)
		memset(tree->sections[i].stale.base, 1,
		       pfs_div_round_up(tree->sections[i].used, PFS_PREFIX_PAGE));
}

static int bring_up_to_date(struct pfs_job *job, struct pfs_prefix *index)
{
	struct pfs_prefix_tree *tree = &index->tree;

	if (!index->copy) {
		index->copy = calloc(1, sizeof(*index->copy));
		if (!index->copy)
			return -ENOMEM;
		mark_all(tree);
	}
	for (size_t i = 0; i < PFS_PREFIX_ON_DEVICE; i++) {
		if (!is_wanted(tree, i))
			continue;
		PFS_TRY(grow(job, index->copy, i, tree->sections[i].used));
		PFS_TRY(send_pages(job, &tree->sections[i], index->copy->d_sections[i]));
	}
	return 0;
}

static int send_array(struct pfs_job *job, uint32_t **d_array, const uint32_t *array, size_t n)
{
	uint32_t *d_new;

	PFS_TRY(pfs_job_upload(job, &d_new, array, n * sizeof(*array)));
	pfs_job_keep(job, d_new);
	pfs_job_adopt(job, *d_array);
	*d_array = d_new;
	return 0;
}

static int send_blocks(struct pfs_job *job, struct pfs_prefix *index, struct pfs_device_blocks *out)
{
	struct pfs_prefix_copy *copy = index->copy;
	const struct pfs_prefix_blocks *blocks;

	PFS_TRY(pfs_prefix_blocks_get(index, &blocks));
	if (copy->blocks_of != index->tree.changes + 1) {
		size_t n = blocks->n_partitions;

		PFS_TRY(send_array(job, &copy->d_blocks[FIRST], blocks->first,
				   (size_t)blocks->n_blocks + 1));
		PFS_TRY(send_array(job, &copy->d_blocks[LIST], blocks->list, n));
		PFS_TRY(send_array(job, &copy->d_blocks[PLACE], blocks->place, n));
		PFS_TRY(send_array(job, &copy->d_blocks[BLOCK], blocks->block, n));
		copy->blocks_of = index->tree.changes + 1;
	}
	*out = (struct pfs_device_blocks){copy->d_blocks[FIRST], copy->d_blocks[LIST],
					  copy->d_blocks[PLACE], copy->d_blocks[BLOCK],
					  blocks->n_blocks};
	return 0;
}

/* ---- questions ---- */

static int send_keys(struct pfs_job *job, struct pfs_device_prefix *prefix,
		     const struct pfs_prefix_texts *keys)
{
	uint64_t *at, *d_at;
	uint8_t *bytes = NULL, *d_bytes;
	size_t size = 0;
	int error;

	PFS_TRY(pfs_run_alloc_raw(job->run, &at, keys->n + 1, sizeof(*at)));
	for (size_t i = 0; i < keys->n; i++) {
		at[i] = size;
		size += keys->texts[i].len;
	}
	at[keys->n] = size;
	error = pfs_run_alloc_raw(job->run, &bytes, size, 1);
	for (size_t i = 0; i < keys->n && !error; i++)
		if (keys->texts[i].len)
			memcpy(bytes + at[i], keys->texts[i].bytes, keys->texts[i].len);
	error = error ? error : pfs_job_upload(job, &d_bytes, bytes, size);
	error = error ? error : pfs_job_upload(job, &d_at, at, (keys->n + 1) * sizeof(*at));
	if (!error) {
		prefix->d_bytes = d_bytes;
		prefix->d_at = d_at;
		error = pfs_job_alloc_zero(job, &prefix->d_items,
					   keys->n * sizeof(*prefix->d_items));
	}
	pfs_run_free(job->run, bytes, size, 1);
	pfs_run_free(job->run, at, keys->n + 1, sizeof(*at));
	return error;
}

/* The tree, the keys and room for the answers on the device. */
static int prepare(struct pfs_job *job, struct pfs_prefix *index, struct pfs_device_prefix *prefix,
		   const struct pfs_prefix_texts *keys)
{
	struct pfs_prefix_copy *copy;

	PFS_TRY(bring_up_to_date(job, index));
	copy = index->copy;
	*prefix = (struct pfs_device_prefix){
		.view = index->tree.view,
		.n_partitions = pfs_prefix_n_partitions(&index->tree),
	};
	prefix->view.words = (const uint32_t *)copy->d_sections[PFS_PREFIX_WORDS];
	prefix->view.groups =
		(const struct pfs_prefix_group *)copy->d_sections[PFS_PREFIX_GROUPS];
	prefix->view.records = copy->d_sections[PFS_PREFIX_RECORDS];
	if (keys->traversal == PFS_PREFIX_HIERARCHICAL && !prefix->view.is_compact)
		PFS_TRY(send_blocks(job, index, &prefix->blocks));
	return send_keys(job, prefix, keys);
}

/* Everything that the answers need, but the keys and the tree; results stay on the device. */
struct ask {
	struct pfs_device_prefix prefix;
	struct pfs_device_prefix_batch batch;
	enum pfs_prefix_traversal traversal;
	size_t row; /* words a key */
	uint32_t n, at_once;
};

static int make_table(struct pfs_job *job, struct ask *ask)
{
	struct pfs_device_prefix_batch *batch = &ask->batch;
	size_t words;

	ask->at_once = ask->n;
	if (ask->traversal == PFS_PREFIX_SERIAL)
		return 0;
	ask->row = ask->traversal == PFS_PREFIX_HIERARCHICAL ? ask->prefix.blocks.n
							     : ask->prefix.n_partitions;
	ask->at_once = (uint32_t)PFS_MIN(TABLE_WORDS / ask->row + 1, KEYS_AT_ONCE);
	ask->at_once = PFS_MIN(ask->at_once, ask->n);
	words = ask->row * ask->at_once;
	PFS_TRY(pfs_job_alloc(job, &batch->d_results, words * sizeof(uint32_t)));
	if (ask->traversal != PFS_PREFIX_PARALLEL)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &batch->d_previous, words * sizeof(uint32_t)));
	return pfs_job_alloc(job, &batch->d_counts, ask->at_once * sizeof(uint32_t));
}

static int ask_some(struct pfs_job *job, const struct ask *ask)
{
	const struct pfs_device_prefix_batch *batch = &ask->batch;

	switch (ask->traversal) {
	case PFS_PREFIX_SPECULATIVE:
		return pfs_cuda_prefix_speculative(&ask->prefix, batch, job->stream);
	case PFS_PREFIX_HIERARCHICAL:
		return pfs_cuda_prefix_hierarchical(&ask->prefix, batch, job->stream);
	case PFS_PREFIX_PARALLEL:
		PFS_TRY(PFS_CUDA(cudaMemsetAsync(batch->d_previous, 0,
						 ask->row * batch->n * sizeof(uint32_t),
						 job->stream)));
		PFS_TRY(PFS_CUDA(cudaMemsetAsync(batch->d_counts, 0, batch->n * sizeof(uint32_t),
						 job->stream)));
		return pfs_cuda_prefix_parallel(&ask->prefix, batch, job->stream);
	case PFS_PREFIX_SERIAL:
		break;
	}
	return pfs_cuda_prefix_serial(&ask->prefix, batch, job->stream);
}

static int ask_all(struct pfs_job *job, struct ask *ask)
{
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(ask->prefix.d_items, 0, ask->n * sizeof(uint32_t),
					 job->stream)));
	for (uint32_t from = 0; from < ask->n; from += ask->at_once) {
		ask->batch.from = from;
		ask->batch.n = PFS_MIN(ask->at_once, ask->n - from);
		PFS_TRY(ask_some(job, ask));
	}
	return 0;
}

static int begin_asking(struct pfs_job *job, struct pfs_prefix *index, struct ask *ask,
			const struct pfs_prefix_texts *keys)
{
	*ask = (struct ask){.traversal = keys->traversal, .n = (uint32_t)keys->n};
	if (index->tree.view.is_compact)
		ask->traversal = PFS_PREFIX_SERIAL;
	PFS_TRY(prepare(job, index, &ask->prefix, keys));
	return make_table(job, ask);
}

static int find_in(struct pfs_job *job, struct pfs_prefix *index, uint32_t *items,
		   const struct pfs_prefix_texts *keys)
{
	struct ask ask;

	PFS_TRY(begin_asking(job, index, &ask, keys));
	PFS_TRY(ask_all(job, &ask));
	return pfs_job_download(job, items, ask.prefix.d_items, keys->n * sizeof(*items));
}

static int find(struct pfs_operator_backend *b, const struct pfs_run *run, struct pfs_prefix *index,
		uint32_t *items, bool *unsure, const struct pfs_prefix_texts *keys)
{
	struct pfs_job job;
	int error;

	*unsure = keys->traversal == PFS_PREFIX_PARALLEL && !index->tree.view.is_compact;
	if (keys->n == 0)
		return 0;
	error = pfs_job_begin(&job, b, run);
	error = error ? error : find_in(&job, index, items, keys);
	return pfs_job_end(&job, error);
}

static int find_name_in(struct pfs_job *job, uint32_t *found, const char *names, size_t n,
			const char *name)
{
	uint32_t *d_names, *d_name, *d_found;

	PFS_TRY(pfs_job_upload(job, &d_names, names, n * PFS_PREFIX_NAME_ROOM));
	PFS_TRY(pfs_job_upload(job, &d_name, name, PFS_PREFIX_NAME_ROOM));
	PFS_TRY(pfs_job_upload(job, &d_found, found, sizeof(*found)));
	PFS_TRY(pfs_cuda_prefix_name(d_found, d_names, (uint32_t)n, d_name, job->stream));
	return pfs_job_download(job, found, d_found, sizeof(*found));
}

static int find_name(struct pfs_operator_backend *b, const struct pfs_run *run, uint32_t *found,
		     const char *names, size_t n, const char *name)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = error ? error : find_name_in(&job, found, names, n, name);
	return pfs_job_end(&job, error);
}

/* ---- for benchmarks ---- */

static int ask_once(struct pfs_job *job, void *ask)
{
	return ask_all(job, ask);
}

static int probe_in(struct pfs_job *job, struct pfs_prefix *index, double *seconds, unsigned repeat,
		    const struct pfs_prefix_texts *keys)
{
	struct ask ask;

	PFS_TRY(begin_asking(job, index, &ask, keys));
	return pfs_job_time(job, seconds, repeat, ask_once, &ask);
}

int pfs_cuda_prefix_probe(struct pfs_operator_backend *b, const struct pfs_run *run,
			  struct pfs_prefix *index, double *seconds, unsigned repeat,
			  const struct pfs_prefix_texts *keys)
{
	struct pfs_job job;
	int error;

	if (keys->n == 0)
		return -EINVAL;
	error = pfs_job_begin(&job, b, run);
	error = error ? error : probe_in(&job, index, seconds, repeat, keys);
	return pfs_job_end(&job, error);
}

const struct pfs_prefix_family pfs_cuda_prefix_family = {
	.find = find,
	.drop = drop,
	.find_name = find_name,
};
