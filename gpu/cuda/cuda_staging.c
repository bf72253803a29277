/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_staging.c - large arrays of the host on their way to the device.  From memory that
 * is not pinned the driver copies with one thread, which moves a sixth of what the bus does.  So
 * several threads fill two pinned pieces in turn, while the device takes the other one.  One array
 * goes this way at a time; whoever comes meanwhile leaves it to the driver. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/pool.h"
#include "base/thread.h"
#include "gpu/cuda/cuda_engine.h"

#define WORTH	((size_t)4 << 20) /* bytes */
#define PIECE	((size_t)4 << 20)
#define GRAIN	((size_t)256 << 10) /* that a thread copies at a time */
#define THREADS 16

struct pfs_staging {
	struct pfs_pool *pool;
	void *pieces[2];
	cudaEvent_t taken[2]; /* the device has what was put there last */
};

static void close_staging(struct pfs_staging *staging)
{
	pfs_pool_close(staging->pool);
	for (size_t i = 0; i < 2; i++) {
		if (staging->taken[i])
			(void)cudaEventDestroy(staging->taken[i]);
		pfs_pinned_free(staging->pieces[i]);
	}
	free(staging);
}

static int make_staging(struct pfs_staging *staging)
{
	unsigned n = (unsigned)PFS_MIN(PFS_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), THREADS);

	for (size_t i = 0; i < 2; i++) {
		PFS_TRY(pfs_pinned_alloc(&staging->pieces[i], PIECE));
		PFS_TRY(PFS_CUDA(
			cudaEventCreateWithFlags(&staging->taken[i], cudaEventDisableTiming)));
	}
	return pfs_pool_open(&staging->pool, n, PFS_THREAD_NICE);
}

static int open_staging(struct pfs_staging **out)
{
	struct pfs_staging *staging = calloc(1, sizeof(*staging));
	int error;

	if (!staging)
		return -ENOMEM;
	error = make_staging(staging);
	if (error)
		close_staging(staging);
	else
		*out = staging;
	return error;
}

void pfs_staging_close(struct pfs_cuda_operators *o)
{
	if (o->staging)
		close_staging(o->staging);
	o->staging = NULL;
}

struct copy {
	uint8_t *to;
	const uint8_t *from;
};

static void copy_some(void *context, size_t from, size_t to)
{
	const struct copy *copy = context;

	memcpy(copy->to + from, copy->from + from, to - from);
}

/* Through one of the pieces, once the device has what was there. */
static int copy_piece(struct pfs_job *job, struct pfs_staging *staging, size_t turn, uint8_t *d_to,
		      const uint8_t *from, size_t size)
{
	struct copy copy = {staging->pieces[turn], from};

	PFS_TRY(PFS_CUDA(cudaEventSynchronize(staging->taken[turn])));
	pfs_pool_run(staging->pool, size, GRAIN, copy_some, &copy);
	PFS_TRY(PFS_CUDA(
		cudaMemcpyAsync(d_to, copy.to, size, cudaMemcpyHostToDevice, job->stream)));
	return PFS_CUDA(cudaEventRecord(staging->taken[turn], job->stream));
}

static int copy_staged(struct pfs_job *job, struct pfs_staging *staging, uint8_t *d_to,
		       const uint8_t *from, size_t size)
{
	for (size_t at = 0, turn = 0; at < size; at += PIECE, turn ^= 1)
		PFS_TRY(copy_piece(job, staging, turn, d_to + at, from + at,
				   PFS_MIN(size - at, PIECE)));
	return 0;
}

/* True: the calling thread has the staging, and unlocks it. */
static bool take_staging(struct pfs_cuda_operators *o)
{
	if (pthread_mutex_trylock(&o->staging_lock))
		return false;
	if (!o->staging && !o->no_staging)
		o->no_staging = open_staging(&o->staging) != 0;
	if (o->staging)
		return true;
	(void)pthread_mutex_unlock(&o->staging_lock);
	return false;
}

int pfs_job_copy(struct pfs_job *job, void *d_to, const void *from, size_t size)
{
	int error;

	if (size < WORTH || !take_staging(job->o))
		return PFS_CUDA(
			cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice, job->stream));
	error = copy_staged(job, job->o->staging, d_to, from, size);
	(void)pthread_mutex_unlock(&job->o->staging_lock);
	return error;
}
