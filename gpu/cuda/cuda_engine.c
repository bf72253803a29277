/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_engine.c - the CUDA back end: memory, copies, and every operation that is one or
 * two launches. */
#include "gpu/cuda/cuda_engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "gpu/resident.h"

#define PAD  4096u	      /* kernels may read whole tiles */
#define KEPT ((size_t)1 << 20) /* bytes of a buffer that an idle job keeps */

/* ---- memory: the host's, for which all of the device is waited for; and the pool's, in the order
 * of the job's stream ---- */

int pfs_pinned_alloc(void **memory, size_t size)
{
	int error;

	pfs_resident_keep_away();
	error = PFS_CUDA(cudaMallocHost(memory, size));
	pfs_resident_come_back();
	return error;
}

void pfs_pinned_free(void *memory)
{
	if (!memory)
		return;
	pfs_resident_keep_away();
	(void)cudaFreeHost(memory);
	pfs_resident_come_back();
}

/* What was freed lies in the pool, perhaps in pieces that are too small. */
static void trim_pool(struct pfs_cuda_job *job)
{
	pfs_resident_keep_away();
	(void)cudaStreamSynchronize(job->stream);
	(void)cudaMemPoolTrimTo(job->g->memory, 0);
	pfs_resident_come_back();
}

static int device_alloc(struct pfs_cuda_job *job, void **d_memory, size_t size)
{
	struct pfs_cuda *g = job->g;
	int error = PFS_CUDA(cudaMallocFromPoolAsync(d_memory, size, g->memory, job->stream));

	if (error == -ENOMEM) {
		trim_pool(job);
		error = PFS_CUDA(cudaMallocFromPoolAsync(d_memory, size, g->memory, job->stream));
	}
	if (error == 0)
		(void)__atomic_fetch_add(&g->allocated, size, __ATOMIC_RELAXED);
	return error;
}

static void free_memory(struct pfs_cuda *g, void *d_memory, size_t size, cudaStream_t stream)
{
	(void)cudaFreeAsync(d_memory, stream);
	(void)__atomic_fetch_sub(&g->allocated, size, __ATOMIC_RELAXED);
}

void pfs_device_free(struct pfs_cuda *g, struct pfs_device_buffer *buffer, cudaStream_t stream)
{
	if (buffer->d_memory)
		free_memory(g, buffer->d_memory, buffer->size, stream);
	*buffer = (struct pfs_device_buffer){0};
}

int pfs_device_reserve(struct pfs_cuda_job *job, struct pfs_device_buffer *buffer, size_t size)
{
	size_t wanted = (size + PAD - 1) / PAD * PAD + PAD;
	int error;

	if (size + PAD <= buffer->size)
		return 0;
	pfs_device_free(job->g, buffer, job->stream);
	error = device_alloc(job, &buffer->d_memory, wanted);
	if (error) {
		buffer->d_memory = NULL;
		return error;
	}
	buffer->size = wanted;
	return 0;
}

int pfs_device_write(struct pfs_cuda_job *job, void *d_to, const void *from, size_t size)
{
	pfs_lazy_touch(from, size);
	return size ? PFS_CUDA(cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice,
					       job->stream))
		    : 0;
}

int pfs_device_read(struct pfs_cuda_job *job, void *to, const void *d_from, size_t size)
{
	int error = 0;

	if (size)
		error = PFS_CUDA(cudaMemcpyAsync(to, d_from, size, cudaMemcpyDeviceToHost,
						 job->stream));
	return error ? error : PFS_CUDA(cudaStreamSynchronize(job->stream));
}

int pfs_device_clear(struct pfs_cuda_job *job, void *d_memory, size_t size)
{
	return size ? PFS_CUDA(cudaMemsetAsync(d_memory, 0, size, job->stream)) : 0;
}

int pfs_counters_clear(struct pfs_cuda_job *job)
{
	return pfs_device_clear(job, job->counters.d_memory, sizeof(struct pfs_cuda_counters));
}

int pfs_counters_read(struct pfs_cuda_job *job)
{
	return pfs_device_read(job, job->host_counters, job->counters.d_memory,
			       sizeof(*job->host_counters));
}

struct pfs_cuda_tree pfs_cuda_tree_of(const struct pfs_cuda *g)
{
	return (struct pfs_cuda_tree){
		.d_home = g->home.d_memory,
		.d_prime = g->prime.d_memory,
		.n_slots = g->n_slots,
		.d_directories = g->directories.d_memory,
		.d_directory_slot = g->directory_slot.d_memory,
		.n_directories = g->n_directories,
	};
}

/* ---- jobs ---- */

/* Frees scratch memory of more than so many bytes. */
static void free_scratch(struct pfs_cuda_job *job, size_t above)
{
	struct pfs_device_buffer *scratch[] = {
		&job->row_bits, &job->directory_bits, &job->row_masks, &job->directory_masks,
		&job->list,	&job->values,	      &job->work,
	};

	for (size_t i = 0; i < PFS_COUNT(scratch); i++)
		if (scratch[i]->size > above)
			pfs_device_free(job->g, scratch[i], job->stream);
}

static void destroy_job(struct pfs_cuda_job *job)
{
	if (job->stream) {
		free_scratch(job, 0);
		pfs_device_free(job->g, &job->counters, job->stream);
		pfs_text_free(job);
		(void)cudaStreamSynchronize(job->stream);
		(void)cudaStreamDestroy(job->stream);
	}
	if (job->copy_stream)
		(void)cudaStreamDestroy(job->copy_stream);
	pfs_pinned_free(job->host_counters);
	free(job);
}

static int fill_job(struct pfs_cuda_job *job)
{
	void *counters = NULL;

	PFS_TRY(PFS_CUDA(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking)));
	PFS_TRY(PFS_CUDA(cudaStreamCreateWithFlags(&job->copy_stream, cudaStreamNonBlocking)));
	PFS_TRY(pfs_pinned_alloc(&counters, sizeof(*job->host_counters)));
	job->host_counters = counters;
	return pfs_device_reserve(job, &job->counters, sizeof(*job->host_counters));
}

static int create_job(struct pfs_cuda *g, struct pfs_cuda_job **out)
{
	struct pfs_cuda_job *job = calloc(1, sizeof(*job));
	int error;

	if (!job)
		return -ENOMEM;
	job->base = (struct pfs_codes_job){g->base.ops, &g->base};
	job->g = g;
	error = fill_job(job);
	if (error)
		destroy_job(job);
	else
		*out = job;
	return error;
}

static int cuda_begin(struct pfs_backend *b, struct pfs_codes_job **out)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_cuda_job *job;

	{
		PFS_LOCKED(&g->lock);

		job = g->idle;
		if (job)
			g->idle = job->next;
	}
	if (!job)
		PFS_TRY(create_job(g, &job));
	*out = &job->base;
	return 0;
}

static int cuda_sync(struct pfs_codes_job *base)
{
	return PFS_CUDA(cudaStreamSynchronize(pfs_cuda_job_of(base)->stream));
}

/* Small memory stays the job's; large memory goes to whoever wants it next, but for the buffers of
 * one listing. */
static void cuda_end(struct pfs_codes_job *base)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;
	bool is_spare = false;

	free_scratch(job, KEPT);
	{
		PFS_LOCKED(&g->lock);

		for (const struct pfs_cuda_job *idle = g->idle; idle; idle = idle->next)
			is_spare |= idle->text.size > 0;
	}
	if (is_spare)
		pfs_text_free(job);
	PFS_LOCKED(&g->lock);
	job->next = g->idle;
	g->idle = job;
}

static int cuda_alloc(struct pfs_codes_job *base, void **memory, size_t size)
{
	return device_alloc(pfs_cuda_job_of(base), memory, size);
}

static void cuda_release(struct pfs_backend *b, void *memory, size_t size)
{
	free_memory(pfs_cuda_of(b), memory, size, pfs_cuda_of(b)->stream);
}

static int cuda_read(struct pfs_codes_job *base, void *out, const void *memory, size_t offset,
		     size_t size)
{
	return pfs_device_read(pfs_cuda_job_of(base), out, (const char *)memory + offset, size);
}

static int cuda_write(struct pfs_codes_job *base, void *memory, size_t offset, const void *in,
		      size_t size)
{
	return pfs_device_write(pfs_cuda_job_of(base), (char *)memory + offset, in, size);
}

/* ---- sets ---- */

static int cuda_fill(struct pfs_codes_job *base, uint32_t *bits, size_t words, uint64_t from,
		     uint64_t to)
{
	return pfs_cuda_fill(bits, words, from, to, pfs_cuda_job_of(base)->stream);
}

static int upload_list(struct pfs_cuda_job *job, const uint32_t *list, size_t n)
{
	int error = pfs_device_reserve(job, &job->list, n * sizeof(*list));

	return error ? error : pfs_device_write(job, job->list.d_memory, list, n * sizeof(*list));
}

static int cuda_set(struct pfs_codes_job *base, uint32_t *bits, size_t words, const uint32_t *slots,
		    size_t n)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	int error = pfs_device_clear(job, bits, words * sizeof(*bits));

	error = error ? error : upload_list(job, slots, n);
	return error ? error : pfs_cuda_set_bits(bits, job->list.d_memory, n, job->stream);
}

static int cuda_combine(struct pfs_codes_job *base, uint32_t *bits, size_t words,
			const uint32_t *other, size_t other_words, enum pfs_bitmap_op op)
{
	return pfs_cuda_combine(bits, words, other, other_words, (int)op,
				pfs_cuda_job_of(base)->stream);
}

static int cuda_count(struct pfs_codes_job *base, uint64_t *count, const uint32_t *bits,
		      size_t words)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	int error = pfs_counters_clear(job);

	error = error ? error : pfs_cuda_count(bits, words, pfs_count_at(job), job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error == 0)
		*count = job->host_counters->count;
	return error;
}

/* ---- questions ---- */

static int cuda_parents(struct pfs_codes_job *base, uint32_t *bits, size_t words, uint32_t slot)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(job->g);
	int error = pfs_device_clear(job, bits, words * sizeof(*bits));

	return error ? error : pfs_cuda_parents(&t, bits, slot, job->stream);
}

static int cuda_dividing(struct pfs_codes_job *base, uint32_t *directories, size_t *n,
			 size_t capacity, const uint32_t *limbs, size_t n_limbs)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(job->g);
	int error = pfs_counters_clear(job);

	error = error ? error : upload_list(job, limbs, n_limbs);
	error = error ? error
		      : pfs_device_reserve(job, &job->values, capacity * sizeof(*directories));
	error = error ? error
		      : pfs_cuda_dividing(&t, job->values.d_memory, capacity, pfs_count_at(job),
					  job->list.d_memory, n_limbs, job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error)
		return error;
	*n = job->host_counters->count;
	return pfs_device_read(job, directories, job->values.d_memory,
			       PFS_MIN(*n, capacity) * sizeof(*directories));
}

static int cuda_find_prime(struct pfs_codes_job *base, uint32_t *slot, uint64_t prime)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(job->g);
	int error = pfs_counters_clear(job);

	error = error ? error : pfs_cuda_find_prime(&t, prime, pfs_count_at(job), job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error)
		return error;
	if (job->host_counters->count == 0)
		return -ENOENT;
	*slot = (uint32_t)(job->host_counters->count - 1);
	return 0;
}

static int cuda_codes(struct pfs_codes_job *base, uint32_t *limbs, uint32_t *n_limbs,
		      uint32_t first, size_t n)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda_codes c = pfs_cuda_codes_of(job);
	size_t size = n * PFS_LIMBS_MAX * sizeof(*limbs);
	int error = pfs_device_reserve(job, &job->values, size);

	error = error ? error : pfs_device_reserve(job, &job->list, n * sizeof(*n_limbs));
	error = error ? error
		      : pfs_cuda_codes_read(&c, job->values.d_memory, job->list.d_memory, first,
					    (uint32_t)n, job->stream);
	error = error ? error : pfs_device_read(job, limbs, job->values.d_memory, size);
	return error ? error
		     : pfs_device_read(job, n_limbs, job->list.d_memory, n * sizeof(*n_limbs));
}

/* ---- opening and closing ---- */

static void cuda_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	const struct pfs_cuda *g = pfs_cuda_of(b);

	(void)snprintf(info->device, sizeof(info->device), "%s", g->name);
	info->device_bytes = __atomic_load_n(&g->allocated, __ATOMIC_RELAXED);
	info->deep = g->n_deep;
	info->code_limbs = g->n_limbs;
}

static void cuda_close(struct pfs_backend *b)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_device_buffer *buffers[] = {
		&g->home,
		&g->prime,
		&g->directories,
		&g->directory_slot,
		&g->row_of,
		&g->width,
		&g->tiles,
		&g->pool,
		&g->deep,
		&g->heap,
		&g->place,
		&g->probe[0],
		&g->probe[1],
		&g->directory_place,
		&g->directory_length,
	};

	while (g->idle) {
		struct pfs_cuda_job *job = g->idle;

		g->idle = job->next;
		destroy_job(job);
	}
	for (size_t i = 0; i < PFS_COUNT(buffers); i++)
		pfs_device_free(g, buffers[i], g->stream);
	if (g->stream) {
		(void)cudaStreamSynchronize(g->stream); /* all of it is free now */
		(void)cudaStreamDestroy(g->stream);
	}
	pfs_resident_keep_away();
	if (g->memory)
		(void)cudaMemPoolDestroy(g->memory);
	pfs_resident_come_back();
	(void)pthread_mutex_destroy(&g->lock);
	(void)pthread_mutex_destroy(&g->paths_lock);
	free(g);
}

static const struct pfs_engine_ops cuda_ops = {
	.name = "cuda",
	.close = cuda_close,
	.describe = cuda_describe,
	.begin = cuda_begin,
	.sync = cuda_sync,
	.end = cuda_end,
	.load = pfs_cuda_load,
	.apply = pfs_cuda_apply,
	.alloc = cuda_alloc,
	.release = cuda_release,
	.read = cuda_read,
	.write = cuda_write,
	.fill = cuda_fill,
	.set = cuda_set,
	.combine = cuda_combine,
	.count = cuda_count,
	.subtrees = pfs_cuda_subtrees,
	.parents = cuda_parents,
	.dividing = cuda_dividing,
	.find_prime = cuda_find_prime,
	.codes = cuda_codes,
	.names_reserve = pfs_cuda_names_reserve,
	.names_update = pfs_cuda_names_update,
	.paths_open = pfs_cuda_paths_open,
	.paths_next = pfs_cuda_paths_next,
	.paths_close = pfs_cuda_paths_close,
};

static int open_pool(struct pfs_cuda *g)
{
	struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
					 .location = {.type = cudaMemLocationTypeDevice}};
	uint64_t keep = UINT64_MAX; /* freed memory stays in the pool */
	int error = PFS_CUDA(cudaMemPoolCreate(&g->memory, &props));

	return error ? error
		     : PFS_CUDA(cudaMemPoolSetAttribute(g->memory, cudaMemPoolAttrReleaseThreshold,
							&keep));
}

static int open_device(struct pfs_cuda *g)
{
	struct cudaDeviceProp properties;
	struct pfs_codes_job *job;

	PFS_TRY(PFS_CUDA(cudaGetDeviceProperties(&properties, 0)));
	(void)snprintf(g->name, sizeof(g->name), "%.63s", properties.name);
	PFS_TRY(PFS_CUDA(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking)));
	PFS_TRY(open_pool(g));
	PFS_TRY(cuda_begin(&g->base, &job)); /* for the first question */
	cuda_end(job);
	return 0;
}

int pfs_cuda_open(struct pfs_backend **out)
{
	struct pfs_cuda *g;
	int count = 0, error;

	if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
		(void)cudaGetLastError();
		return -ENODEV;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->base.ops = &cuda_ops;
	(void)pthread_mutex_init(&g->lock, NULL);
	(void)pthread_mutex_init(&g->paths_lock, NULL);
	error = open_device(g);
	if (error) {
		cuda_close(&g->base);
		return error; /* said why in the log */
	}
	pfs_cuda_read_fail_at();
	*out = &g->base;
	return 0;
}
