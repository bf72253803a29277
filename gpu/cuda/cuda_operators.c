/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_operators.c - the streams and the memory of jobs, and tables in it. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"

#define PAD		64u /* kernels may read a little past an array */
#define TABLE_MIN	1024u
#define RETRY_SECONDS	30  /* a device that failed is tried again after so long */

static int64_t seconds_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* o->lock is held. */
static void *take_window(struct pfs_cuda_operators *o)
{
	const uint32_t free_ones = ~o->windows_taken & ((1u << PFS_JOB_STREAMS) - 1);

	if (!o->windows || !free_ones)
		return NULL;
	o->windows_taken |= free_ones & -free_ones;
	return (char *)o->windows + __builtin_ctz(free_ones) * (size_t)PFS_JOB_WINDOW;
}

static void return_window(struct pfs_cuda_operators *o, const void *window)
{
	const size_t at = (size_t)((const char *)window - (const char *)o->windows);

	o->windows_taken &= ~(1u << at / PFS_JOB_WINDOW);
}

static int take_stream(struct pfs_job *job)
{
	struct pfs_cuda_operators *o = job->o;

	{
		PFS_LOCKED(&o->lock);

		if (o->failed_at && seconds_now() - o->failed_at < RETRY_SECONDS)
			return -EOPNOTSUPP;
		o->failed_at = 0;
		job->window = take_window(o);
		if (o->n_idle) {
			job->stream = o->idle[--o->n_idle];
			return 0;
		}
	}
	return PFS_CUDA(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking));
}

int pfs_job_begin(struct pfs_job *job, struct pfs_operator_backend *b, const struct pfs_run *run)
{
	*job = (struct pfs_job){.o = pfs_cuda_operators_of(b), .run = run, .left = SIZE_MAX};
	PFS_TRY(pfs_run_poll(run));
	return take_stream(job);
}

struct timed {
	cudaEvent_t from, to;
	int (*once)(struct pfs_job *job, void *context);
	void *context;
};

static int time_once(struct pfs_job *job, double *seconds, const struct timed *timed)
{
	float ms = 0;

	PFS_TRY(PFS_CUDA(cudaEventRecord(timed->from, job->stream)));
	PFS_TRY(timed->once(job, timed->context));
	PFS_TRY(PFS_CUDA(cudaEventRecord(timed->to, job->stream)));
	PFS_TRY(PFS_CUDA(cudaEventSynchronize(timed->to)));
	PFS_TRY(PFS_CUDA(cudaEventElapsedTime(&ms, timed->from, timed->to)));
	*seconds = ms / 1e3;
	return 0;
}

int pfs_job_time(struct pfs_job *job, double *seconds, unsigned n,
		 int (*once)(struct pfs_job *job, void *context), void *context)
{
	struct timed timed = {.once = once, .context = context};
	double warm_up;
	int error;

	PFS_TRY(PFS_CUDA(cudaEventCreate(&timed.from)));
	error = PFS_CUDA(cudaEventCreate(&timed.to));
	for (unsigned i = 0; !error && i < n + 2; i++)
		error = time_once(job, i < 2 ? &warm_up : &seconds[i - 2], &timed);
	(void)cudaEventDestroy(timed.from);
	if (timed.to)
		(void)cudaEventDestroy(timed.to);
	return error;
}

int pfs_job_end(struct pfs_job *job, int error)
{
	struct pfs_cuda_operators *o = job->o;
	int late = 0;

	if (job->stream) {
		pfs_job_free_since(job, 0);
		late = job->is_idle ? 0 : PFS_CUDA(cudaStreamSynchronize(job->stream));
	}
	pfs_job_return_leases(job);
	free(job->d_temporary);
	free(job->leases);
	error = error ? error : late;

	PFS_LOCKED(&o->lock);
	if (job->window)
		return_window(o, job->window);
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

void pfs_job_free_since(struct pfs_job *job, size_t n)
{
	while (job->n_temporary > n)
		(void)cudaFreeAsync(job->d_temporary[--job->n_temporary], job->stream);
}

bool pfs_job_keep(struct pfs_job *job, const void *d_memory)
{
	for (size_t i = 0; i < job->n_temporary; i++) {
		if (job->d_temporary[i] != d_memory)
			continue;
		job->d_temporary[i] = job->d_temporary[--job->n_temporary];
		return true;
	}
	return false;
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
	return pfs_job_copy(job, *(void **)out, from, size);
}

int pfs_job_download(struct pfs_job *job, void *to, const void *d_from, size_t size)
{
	if (size)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(to, d_from, size, cudaMemcpyDeviceToHost,
						 job->stream)));
	return PFS_CUDA(cudaStreamSynchronize(job->stream));
}

/* ---- tables of numbers ---- */

int pfs_job_table(struct pfs_job *job, struct pfs_device_table *table, uint64_t numbers,
		  uint64_t most)
{
	uint64_t capacity = TABLE_MIN;

	while (capacity < 2 * numbers)
		capacity *= 2;
	if (capacity > most)
		return -EOPNOTSUPP;
	*table = (struct pfs_device_table){.capacity = capacity, .seed = pfs_random_seed()};
	PFS_TRY(pfs_job_alloc(job, &table->d_numbers, capacity * sizeof(*table->d_numbers)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(table->d_numbers, 0xff,
					 capacity * sizeof(*table->d_numbers), job->stream)));
	return pfs_job_alloc_zero(job, &table->d_refused, sizeof(*table->d_refused));
}

int pfs_job_table_check(struct pfs_job *job, const struct pfs_device_table *table)
{
	uint32_t refused = 0;

	if (table->capacity)
		PFS_TRY(pfs_job_download(job, &refused, table->d_refused, sizeof(refused)));
	return refused ? -EOPNOTSUPP : 0;
}
