/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_staging.c - large arrays of the host on their way to the device.  From memory that
 * is not pinned the driver copies with one thread, which moves a sixth of what the bus does.  So
 * several threads copy pieces to pinned memory, and each sends its own; one waits for another only
 * where all places are taken, and at the array's end.  Memory that is filled when it is touched is
 * filled by all of them.  One array goes this way at a time; whoever comes meanwhile leaves it
 * to the driver. */
#include "gpu/cuda/cuda_operators.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "base/pool.h"
#include "base/thread.h"
#include "gpu/cuda/cuda_engine.h"

#define WORTH	((size_t)1 << 20) /* bytes */
#define PIECE	((size_t)512 << 10)
#define THREADS 16u
#define PLACES	(2 * THREADS) /* for pieces: a thread fills one while its last one is on the bus */

struct place {
	pthread_mutex_t lock; /* held by the thread that puts a piece there */
	cudaEvent_t taken;    /* the device has what was put there last */
};

struct pfs_staging {
	struct pfs_pool *pool;
	uint8_t *memory; /* pinned; a piece for each place */
	struct place places[PLACES];
};

static void close_staging(struct pfs_staging *staging)
{
	pfs_pool_close(staging->pool);
	for (size_t i = 0; i < PLACES; i++) {
		if (staging->places[i].taken)
			(void)cudaEventDestroy(staging->places[i].taken);
		(void)pthread_mutex_destroy(&staging->places[i].lock);
	}
	pfs_pinned_free(staging->memory);
	free(staging);
}

static int make_staging(struct pfs_staging *staging)
{
	unsigned n = (unsigned)PFS_MIN(PFS_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1), (long)THREADS);
	void *memory;

	for (size_t i = 0; i < PLACES; i++)
		(void)pthread_mutex_init(&staging->places[i].lock, NULL);
	PFS_TRY(pfs_pinned_alloc(&memory, PLACES * PIECE));
	staging->memory = memory;
	for (size_t i = 0; i < PLACES; i++)
		PFS_TRY(PFS_CUDA(
			cudaEventCreateWithFlags(&staging->places[i].taken,
						 cudaEventDisableTiming | cudaEventBlockingSync)));
	/* Requests may wait for the memory that they fill. */
	return pfs_pool_open(&staging->pool, n, 0);
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
	struct pfs_staging *staging;
	cudaStream_t stream;
	uint8_t *d_to;
	const uint8_t *from;
	atomic_int error; /* of a piece that failed; others may follow it */
};

/* Puts a piece to its place once the device has what was there, and sends it. */
static int send_piece(const struct copy *copy, size_t from, size_t to)
{
	const size_t number = from / PIECE % PLACES;
	struct place *place = &copy->staging->places[number];
	uint8_t *pinned = copy->staging->memory + number * PIECE;
	PFS_LOCKED(&place->lock);

	pfs_lazy_touch(copy->from + from, to - from);
	PFS_TRY(PFS_CUDA(cudaEventSynchronize(place->taken)));
	memcpy(pinned, copy->from + from, to - from);
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(copy->d_to + from, pinned, to - from,
					 cudaMemcpyHostToDevice, copy->stream)));
	return PFS_CUDA(cudaEventRecord(place->taken, copy->stream));
}

static void send_pieces(void *context, size_t from, size_t to)
{
	struct copy *copy = context;
	int error = atomic_load(&copy->error) ? 0 : send_piece(copy, from, to);

	if (error)
		atomic_store(&copy->error, error);
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
	struct copy copy = {.stream = job->stream, .d_to = d_to, .from = from};

	if (size < WORTH || !take_staging(job->o)) {
		pfs_lazy_touch(from, size);
		return PFS_CUDA(
			cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice, job->stream));
	}
	copy.staging = job->o->staging;
	pfs_pool_run(copy.staging->pool, size, PIECE, send_pieces, &copy);
	(void)pthread_mutex_unlock(&job->o->staging_lock);
	return atomic_load(&copy.error);
}
