/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_operators.c - the CUDA back end of the relational operators: opened, closed, and its
 * jobs' streams and memory. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "base/log.h"
#include "gpu/resident.h"

#define PAD		64u /* kernels may read a little past an array */
#define RETRY_SECONDS	30  /* a device that failed is tried again after so long */
#define MIRROR_SHARE(n) ((n) / 10 * 6)

static int64_t seconds_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* ---- jobs ---- */

static int take_stream(struct pfs_job *job)
{
	struct pfs_cuda_operators *o = job->o;

	{
		PFS_LOCKED(&o->lock);

		if (o->failed_at && seconds_now() - o->failed_at < RETRY_SECONDS)
			return -EOPNOTSUPP;
		o->failed_at = 0;
		if (o->n_idle) {
			job->stream = o->idle[--o->n_idle];
			return 0;
		}
	}
	return PFS_CUDA(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking));
}

int pfs_job_begin(struct pfs_job *job, struct pfs_operator_backend *b, const struct pfs_run *run)
{
	*job = (struct pfs_job){.o = pfs_cuda_operators_of(b), .run = run};
	PFS_TRY(pfs_run_poll(run));
	return take_stream(job);
}

int pfs_job_end(struct pfs_job *job, int error)
{
	struct pfs_cuda_operators *o = job->o;
	int late = 0;

	if (job->stream) {
		for (size_t i = 0; i < job->n_temporary; i++)
			(void)cudaFreeAsync(job->d_temporary[i], job->stream);
		late = PFS_CUDA(cudaStreamSynchronize(job->stream));
	}
	pfs_job_return_leases(job);
	free(job->d_temporary);
	free(job->leases);
	error = error ? error : late;

	PFS_LOCKED(&o->lock);
	if (error == -EIO && !o->failed_at) {
		o->failed_at = PFS_MAX(seconds_now(), 1);
		pfs_warning("the device failed: statements run on the processor for a while");
	}
	if (job->stream && o->n_idle < PFS_JOB_STREAMS && error != -EIO)
		o->idle[o->n_idle++] = job->stream;
	else if (job->stream)
		(void)cudaStreamDestroy(job->stream);
	return error;
}

static int remember(struct pfs_job *job, void *d_memory)
{
	PFS_TRY(pfs_grow(&job->d_temporary, &job->temporary_capacity, job->n_temporary + 1,
			 sizeof(*job->d_temporary)));
	job->d_temporary[job->n_temporary++] = d_memory;
	return 0;
}

int pfs_job_alloc(struct pfs_job *job, void *out, size_t size)
{
	void *d_memory;
	int error;

	*(void **)out = NULL;
	PFS_TRY(PFS_CUDA(
		cudaMallocFromPoolAsync(&d_memory, size + PAD, job->o->pool, job->stream)));
	error = remember(job, d_memory);
	if (error) {
		(void)cudaFreeAsync(d_memory, job->stream);
		return error;
	}
	*(void **)out = d_memory;
	return 0;
}

int pfs_job_alloc_zero(struct pfs_job *job, void *out, size_t size)
{
	PFS_TRY(pfs_job_alloc(job, out, size));
	return PFS_CUDA(cudaMemsetAsync(*(void **)out, 0, size + PAD, job->stream));
}

void pfs_job_keep(struct pfs_job *job, const void *d_memory)
{
	for (size_t i = 0; i < job->n_temporary; i++) {
		if (job->d_temporary[i] != d_memory)
			continue;
		job->d_temporary[i] = job->d_temporary[--job->n_temporary];
		return;
	}
}

void pfs_job_adopt(struct pfs_job *job, void *d_memory)
{
	if (d_memory && remember(job, d_memory))
		(void)cudaFreeAsync(d_memory, job->stream); /* after what is queued */
}

void pfs_device_give(struct pfs_cuda_operators *o, void *d_memory)
{
	(void)o;
	/* Whoever used it has waited for its stream: the legacy stream's order is enough. */
	if (d_memory)
		(void)cudaFreeAsync(d_memory, cudaStreamPerThread);
}

int pfs_job_upload(struct pfs_job *job, void *out, const void *from, size_t size)
{
	PFS_TRY(pfs_job_alloc(job, out, size));
	if (size == 0)
		return 0;
	pfs_lazy_touch(from, size);
	return PFS_CUDA(cudaMemcpyAsync(*(void **)out, from, size, cudaMemcpyHostToDevice,
					job->stream));
}

int pfs_job_download(struct pfs_job *job, void *to, const void *d_from, size_t size)
{
	if (size)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(to, d_from, size, cudaMemcpyDeviceToHost,
						 job->stream)));
	return PFS_CUDA(cudaStreamSynchronize(job->stream));
}

/* ---- opening ---- */

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
		(void)cudaMemPoolDestroy(o->pool);
	pfs_resident_come_back();
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
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&o->changed, &attr);
	(void)pthread_condattr_destroy(&attr);
	error = open_pool(o);
	if (error)
		close_operators(&o->base);
	else
		*out = &o->base;
	return error == -EIO ? -ENODEV : error;
}
