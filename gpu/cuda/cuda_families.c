/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_families.c - the CUDA back end of the relational operators: which functions it has
 * (gpu/engine_impl.h says what they do), how it is opened and closed. */
#include "gpu/engine_impl.h"

#include <stdlib.h>

#include "gpu/cuda/cuda_engine.h"
#include "gpu/cuda/cuda_operators.h"
#include "gpu/resident.h"

#define MIRROR_SHARE(n) ((n) / 10 * 6)

static _Atomic uint64_t bytes_left;

uint64_t pfs_cuda_bytes_left(void)
{
	return bytes_left;
}

static void close_pool(cudaMemPool_t pool)
{
	uint64_t used = 0;

	if (cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess)
		bytes_left += used;
	(void)cudaMemPoolDestroy(pool);
}

static void close_operators(struct pfs_operator_backend *b)
{
	struct pfs_cuda_operators *o = pfs_cuda_operators_of(b);

	pfs_resident_keep_away();
	(void)cudaDeviceSynchronize();
	pfs_codes_drop_all(o);
	pfs_mirrors_drop_all(o);
	for (unsigned i = 0; i < o->n_idle; i++)
		(void)cudaStreamDestroy(o->idle[i]);
	(void)cudaDeviceSynchronize();
	if (o->pool)
		close_pool(o->pool);
	pfs_resident_come_back();
	pfs_staging_close(o);
	pfs_pinned_free(o->windows);
	(void)pthread_mutex_destroy(&o->staging_lock);
	(void)pthread_cond_destroy(&o->changed);
	(void)pthread_mutex_destroy(&o->lock);
	free(o);
}

static const struct pfs_families families = {
	.name = "cuda",
	.close = close_operators,
	.select = &pfs_cuda_select_family,
	.sort = &pfs_cuda_sort_family,
	.group = &pfs_cuda_group_family,
	.join = &pfs_cuda_join_family,
	.gather = &pfs_cuda_gather_family,
	.index = &pfs_cuda_index_family,
	.wide_index = &pfs_cuda_wide_index_family,
	.prefix = &pfs_cuda_prefix_family,
};

static int open_pool(struct pfs_cuda_operators *o)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {.type = cudaMemLocationTypeDevice}};
	uint64_t keep = UINT64_MAX; /* freed memory stays in the pool */
	size_t free_size, all;

	PFS_TRY(PFS_CUDA(cudaMemGetInfo(&free_size, &all)));
	o->mirror_limit = MIRROR_SHARE(all);
	PFS_TRY(PFS_CUDA(cudaMemPoolCreate(&o->pool, &props)));
	return PFS_CUDA(cudaMemPoolSetAttribute(o->pool, cudaMemPoolAttrReleaseThreshold, &keep));
}

int pfs_cuda_operators_open(struct pfs_operator_backend **out)
{
	struct pfs_cuda_operators *o;
	pthread_condattr_t attr;
	int n = 0, error;

	*out = NULL;
	if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
		(void)cudaGetLastError();
		return -ENODEV;
	}
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->base.families = &families;
	(void)pthread_mutex_init(&o->lock, NULL);
	(void)pthread_mutex_init(&o->staging_lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&o->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	error = open_pool(o);
	if (!error && pfs_pinned_alloc(&o->windows, PFS_JOB_STREAMS * PFS_JOB_WINDOW))
		o->windows = NULL; /* jobs do without */
	if (error)
		close_operators(&o->base);
	else
		*out = &o->base;
	return error == -EIO ? -ENODEV : error;
}
