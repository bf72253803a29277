/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_engine.c - the CUDA back end: memory, copies, and every operation that is one or
 * two launches. */
#include "gpu/cuda/cuda_engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "base/log.h"
#include "gpu/resident.h"

#define PAD 4096u /* kernels may read whole tiles */

/* ---- memory: the host's, for which all of the device is waited for; and the pool's, in the stream's
 * order ---- */

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
static void trim_pool(struct pfs_cuda *g)
{
	pfs_resident_keep_away();
	(void)cudaStreamSynchronize(g->stream);
	(void)cudaMemPoolTrimTo(g->memory, 0);
	pfs_resident_come_back();
}

static int device_alloc(struct pfs_cuda *g, void **d_memory, size_t size)
{
	int error = PFS_CUDA(cudaMallocFromPoolAsync(d_memory, size, g->memory, g->stream));

	if (error == -ENOMEM) {
		trim_pool(g);
		error = PFS_CUDA(cudaMallocFromPoolAsync(d_memory, size, g->memory, g->stream));
	}
	if (error == 0)
		g->allocated += size;
	return error;
}

static void free_memory(struct pfs_cuda *g, void *d_memory, size_t size)
{
	(void)cudaFreeAsync(d_memory, g->stream); /* after what is queued */
	g->allocated -= size;
}

void pfs_device_free(struct pfs_cuda *g, struct pfs_device_buffer *buffer)
{
	if (buffer->d_memory)
		free_memory(g, buffer->d_memory, buffer->size);
	*buffer = (struct pfs_device_buffer){0};
}

int pfs_device_reserve(struct pfs_cuda *g, struct pfs_device_buffer *buffer, size_t size)
{
	size_t wanted = (size + PAD - 1) / PAD * PAD + PAD;
	int error;

	if (size + PAD <= buffer->size)
		return 0;
	pfs_device_free(g, buffer);
	error = device_alloc(g, &buffer->d_memory, wanted);
	if (error) {
		buffer->d_memory = NULL;
		return error;
	}
	buffer->size = wanted;
	return 0;
}

int pfs_device_write(struct pfs_cuda *g, void *d_to, const void *from, size_t size)
{
	pfs_lazy_touch(from, size);
	return size ? PFS_CUDA(cudaMemcpyAsync(d_to, from, size, cudaMemcpyHostToDevice, g->stream))
		    : 0;
}

int pfs_device_read(struct pfs_cuda *g, void *to, const void *d_from, size_t size)
{
	int error = 0;

	if (size)
		error = PFS_CUDA(
			cudaMemcpyAsync(to, d_from, size, cudaMemcpyDeviceToHost, g->stream));
	return error ? error : PFS_CUDA(cudaStreamSynchronize(g->stream));
}

int pfs_device_clear(struct pfs_cuda *g, void *d_memory, size_t size)
{
	return size ? PFS_CUDA(cudaMemsetAsync(d_memory, 0, size, g->stream)) : 0;
}

int pfs_counters_clear(struct pfs_cuda *g)
{
	return pfs_device_clear(g, g->counters.d_memory, sizeof(struct pfs_cuda_counters));
}

int pfs_counters_read(struct pfs_cuda *g)
{
	return pfs_device_read(g, g->host_counters, g->counters.d_memory,
			       sizeof(*g->host_counters));
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

static int cuda_alloc(struct pfs_backend *b, void **memory, size_t size)
{
	return device_alloc(pfs_cuda_of(b), memory, size);
}

static void cuda_release(struct pfs_backend *b, void *memory, size_t size)
{
	free_memory(pfs_cuda_of(b), memory, size);
}

static int cuda_read(struct pfs_backend *b, void *out, const void *memory, size_t offset,
		     size_t size)
{
	return pfs_device_read(pfs_cuda_of(b), out, (const char *)memory + offset, size);
}

static int cuda_write(struct pfs_backend *b, void *memory, size_t offset, const void *in,
		      size_t size)
{
	return pfs_device_write(pfs_cuda_of(b), (char *)memory + offset, in, size);
}

/* ---- sets ---- */

static int cuda_fill(struct pfs_backend *b, uint32_t *bits, size_t words, uint64_t from,
		     uint64_t to)
{
	return pfs_cuda_fill(bits, words, from, to, pfs_cuda_of(b)->stream);
}

static int upload_list(struct pfs_cuda *g, const uint32_t *list, size_t n)
{
	int error = pfs_device_reserve(g, &g->list, n * sizeof(*list));

	return error ? error : pfs_device_write(g, g->list.d_memory, list, n * sizeof(*list));
}

static int cuda_set(struct pfs_backend *b, uint32_t *bits, size_t words, const uint32_t *slots,
		    size_t n)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	int error = pfs_device_clear(g, bits, words * sizeof(*bits));

	error = error ? error : upload_list(g, slots, n);
	return error ? error : pfs_cuda_set_bits(bits, g->list.d_memory, n, g->stream);
}

static int cuda_combine(struct pfs_backend *b, uint32_t *bits, size_t words, const uint32_t *other,
			size_t other_words, enum pfs_bitmap_op op)
{
	return pfs_cuda_combine(bits, words, other, other_words, (int)op, pfs_cuda_of(b)->stream);
}

static int cuda_count(struct pfs_backend *b, uint64_t *count, const uint32_t *bits, size_t words)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	int error = pfs_counters_clear(g);

	error = error ? error : pfs_cuda_count(bits, words, pfs_count_at(g), g->stream);
	error = error ? error : pfs_counters_read(g);
	if (error == 0)
		*count = g->host_counters->count;
	return error;
}

/* ---- questions ---- */

static int cuda_parents(struct pfs_backend *b, uint32_t *bits, size_t words, uint32_t slot)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	int error = pfs_device_clear(g, bits, words * sizeof(*bits));

	return error ? error : pfs_cuda_parents(&t, bits, slot, g->stream);
}

static int cuda_dividing(struct pfs_backend *b, uint32_t *directories, size_t *n, size_t capacity,
			 const uint32_t *limbs, size_t n_limbs)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	int error = pfs_counters_clear(g);

	error = error ? error : upload_list(g, limbs, n_limbs);
	error = error ? error : pfs_device_reserve(g, &g->values, capacity * sizeof(*directories));
	error = error ? error
		      : pfs_cuda_dividing(&t, g->values.d_memory, capacity, pfs_count_at(g),
					  g->list.d_memory, n_limbs, g->stream);
	error = error ? error : pfs_counters_read(g);
	if (error)
		return error;
	*n = g->host_counters->count;
	return pfs_device_read(g, directories, g->values.d_memory,
			       PFS_MIN(*n, capacity) * sizeof(*directories));
}

static int cuda_find_prime(struct pfs_backend *b, uint32_t *slot, uint64_t prime)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	int error = pfs_counters_clear(g);

	error = error ? error : pfs_cuda_find_prime(&t, prime, pfs_count_at(g), g->stream);
	error = error ? error : pfs_counters_read(g);
	if (error)
		return error;
	if (g->host_counters->count == 0)
		return -ENOENT;
	*slot = (uint32_t)(g->host_counters->count - 1);
	return 0;
}

static int cuda_codes(struct pfs_backend *b, uint32_t *limbs, uint32_t *n_limbs, uint32_t first,
		      size_t n)
{
	struct pfs_cuda *g = pfs_cuda_of(b);
	struct pfs_cuda_codes c = pfs_cuda_codes_of(g);
	size_t size = n * PFS_LIMBS_MAX * sizeof(*limbs);
	int error = pfs_device_reserve(g, &g->values, size);

	error = error ? error : pfs_device_reserve(g, &g->list, n * sizeof(*n_limbs));
	error = error ? error
		      : pfs_cuda_codes_read(&c, g->values.d_memory, g->list.d_memory, first,
					    (uint32_t)n, g->stream);
	error = error ? error : pfs_device_read(g, limbs, g->values.d_memory, size);
	return error ? error : pfs_device_read(g, n_limbs, g->list.d_memory, n * sizeof(*n_limbs));
}

static int cuda_sync(struct pfs_backend *b)
{
	return PFS_CUDA(cudaStreamSynchronize(pfs_cuda_of(b)->stream));
}

/* ---- opening and closing ---- */

static void cuda_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	const struct pfs_cuda *g = pfs_cuda_of(b);

	(void)snprintf(info->device, sizeof(info->device), "%s", g->name);
	info->device_bytes = g->allocated;
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
		&g->counters,
		&g->row_bits,
		&g->directory_bits,
		&g->row_masks,
		&g->directory_masks,
		&g->list,
		&g->values,
		&g->work,
		&g->heap,
		&g->place,
		&g->directory_place,
		&g->directory_length,
		&g->probe[0],
		&g->probe[1],
	};

	if (g->stream)
		(void)cudaStreamSynchronize(g->stream);
	for (size_t i = 0; i < PFS_COUNT(buffers); i++)
		pfs_device_free(g, buffers[i]);
	pfs_text_free(g, &g->text);
	pfs_pinned_free(g->host_counters);
	if (g->stream)
		(void)cudaStreamSynchronize(g->stream); /* all of it is free now */
	pfs_resident_keep_away();
	if (g->memory)
		(void)cudaMemPoolDestroy(g->memory);
	pfs_resident_come_back();
	if (g->copy_stream)
		(void)cudaStreamDestroy(g->copy_stream);
	if (g->stream)
		(void)cudaStreamDestroy(g->stream);
	free(g);
}

static const struct pfs_engine_ops cuda_ops = {
	.name = "cuda",
	.close = cuda_close,
	.describe = cuda_describe,
	.load = pfs_cuda_load,
	.apply = pfs_cuda_apply,
	.sync = cuda_sync,
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
	void *counters = NULL;
	int error = PFS_CUDA(cudaGetDeviceProperties(&properties, 0));

	if (error)
		return error;
	(void)snprintf(g->name, sizeof(g->name), "%.63s", properties.name);
	error = PFS_CUDA(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking));
	error = error ? error
		      : PFS_CUDA(cudaStreamCreateWithFlags(&g->copy_stream, cudaStreamNonBlocking));
	error = error ? error : open_pool(g);
	error = error ? error : pfs_pinned_alloc(&counters, sizeof(*g->host_counters));
	g->host_counters = counters;
	return error ? error : pfs_device_reserve(g, &g->counters, sizeof(*g->host_counters));
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
	error = open_device(g);
	if (error) {
		cuda_close(&g->base);
		return error; /* said why in the log */
	}
	pfs_cuda_read_fail_at();
	*out = &g->base;
	return 0;
}
