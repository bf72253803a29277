/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_resident.c - what the kernel that answers single questions reads: a B+-tree of
 * names and each slot's parent; its start; and many paths, which another kernel resolves by the
 * same.  Memory comes from the operators' stream-ordered pool, since whatever waits for all of the
 * device would wait for the kernel. */
#include "gpu/resident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/lazy.h"
#include "gpu/cuda/cuda_engine.h"
#include "gpu/cuda/cuda_index.h"
#include "gpu/cuda/cuda_path_table.h"
#include "gpu/cuda/resident_kernels.h"

#define PATIENCE_NS	    UINT64_C(10000000)
#define PATIENCE_WATCHED_NS UINT64_C(5000000000) /* by a tool, under which kernels take a hundred times as long */

#define MANY 16384u /* paths that take so long that a thread which waits leaves the processor */

/* Moments of a batch of paths. */
enum { BEGUN, SENT, RESOLVED, FETCHED, MARKS };

/* What a list has. */
struct list {
	struct pfs_resident_paths paths;
	void *memory; /* pinned; NULL: the paths' is the callers' */
	cudaEvent_t marks[MARKS];
	cudaEvent_t end; /* is after the last of them; who waits for it does not spin */
};

struct cuda_resident {
	struct pfs_resident_backend base;
	struct pfs_mailbox *d_mailbox;		/* the same memory as the device sees it */
	struct pfs_operator_backend *operators; /* streams and memory */
	struct pfs_run run;
	struct pfs_index_tree *index;
	uint32_t *d_parent;
	size_t n_parents;
	cudaStream_t stream; /* the kernel's */
	char name[64];
	struct list lists[PFS_RESIDENT_LISTS + 1];
	struct pfs_cuda_path_table table;
	uint64_t bus_ns, kernel_ns; /* read by any thread */
};

static struct cuda_resident *resident_of(struct pfs_resident_backend *b)
{
	return (struct cuda_resident *)b; /* its first member */
}

static const struct pfs_index_family *index_of(const struct cuda_resident *r)
{
	return r->operators->families->index;
}

static void drop_table(struct cuda_resident *r)
{
	pfs_cuda_path_table_drop(&r->table, pfs_cuda_operators_of(r->operators));
}

static void free_parents(struct cuda_resident *r)
{
	pfs_device_give(pfs_cuda_operators_of(r->operators), r->d_parent);
	r->d_parent = NULL;
	r->n_parents = 0;
}

static void free_list(struct list *list)
{
	for (size_t i = 0; i < MARKS; i++)
		if (list->marks[i])
			(void)cudaEventDestroy(list->marks[i]);
	if (list->end)
		(void)cudaEventDestroy(list->end);
	pfs_pinned_free(list->memory);
}

static void close_resident(struct pfs_resident_backend *b)
{
	struct cuda_resident *r = resident_of(b);

	if (r->stream)
		(void)cudaStreamSynchronize(r->stream); /* the kernel has left */
	if (r->index)
		index_of(r)->close(r->operators, &r->run, r->index);
	if (r->operators) {
		free_parents(r);
		drop_table(r);
		r->operators->families->close(r->operators);
	}
	if (r->stream)
		(void)cudaStreamDestroy(r->stream);
	for (size_t i = 0; i <= PFS_RESIDENT_LISTS; i++)
		free_list(&r->lists[i]);
	(void)pthread_mutex_destroy(&r->table.lock);
	(void)cudaFreeHost(r->base.mailbox);
	free(r);
}

static void describe(struct pfs_resident_backend *b, struct pfs_resident_info *info)
{
	const struct cuda_resident *r = resident_of(b);
	struct pfs_index_info index = {0};

	(void)snprintf(info->device, sizeof(info->device), "%s", r->name);
	if (r->index)
		index_of(r)->describe(r->index, &index);
	info->bytes =
		index.bytes + r->n_parents * sizeof(*r->d_parent) + atomic_load(&r->table.bytes);
	info->bus_ns = __atomic_load_n(&r->bus_ns, __ATOMIC_RELAXED);
	info->kernel_ns = __atomic_load_n(&r->kernel_ns, __ATOMIC_RELAXED);
}

/* ---- what it reads ---- */

/* Room for `end` parents, what was there kept.  A slot that is given no parent has none. */
static int grow_parents(struct pfs_job *job, struct cuda_resident *r, size_t end)
{
	size_t n = end + end / 4 + 1024;
	uint32_t *d_larger;

	if (end <= r->n_parents)
		return 0;
	PFS_TRY(pfs_job_alloc(job, &d_larger, n * sizeof(*d_larger)));
	PFS_TRY(PFS_CUDA(cudaMemsetAsync(d_larger, 0xff, n * sizeof(*d_larger), job->stream)));
	if (r->n_parents)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_larger, r->d_parent,
						 r->n_parents * sizeof(*d_larger),
						 cudaMemcpyDeviceToDevice, job->stream)));
	pfs_job_adopt(job, r->d_parent);
	pfs_job_keep(job, d_larger);
	r->d_parent = d_larger;
	r->n_parents = n;
	return 0;
}

static int write_parents(struct pfs_job *job, struct cuda_resident *r,
			 const struct pfs_resident_changes *c)
{
	struct pfs_path_table table;
	uint32_t *d_slots, *d_values;

	PFS_TRY(grow_parents(job, r, c->end));
	PFS_TRY(pfs_job_upload(job, &d_slots, c->slots, c->n_slots * sizeof(*d_slots)));
	PFS_TRY(pfs_job_upload(job, &d_values, c->parents, c->n_slots * sizeof(*d_values)));
	table = pfs_cuda_path_table_get(&r->table);
	return pfs_cuda_resident_parents(r->d_parent, &table, d_slots, d_values, c->n_slots,
					 job->stream);
}

static int load_parents(struct pfs_job *job, struct cuda_resident *r,
			const struct pfs_resident_load *load)
{
	PFS_TRY(grow_parents(job, r, load->n_slots));
	pfs_lazy_touch(load->parent, load->n_slots * sizeof(*load->parent));
	return PFS_CUDA(cudaMemcpyAsync(r->d_parent, load->parent,
					load->n_slots * sizeof(*load->parent),
					cudaMemcpyHostToDevice, job->stream));
}

static int load(struct pfs_resident_backend *b, const struct pfs_resident_load *load)
{
	static const struct pfs_index_shape shape = {.kind = PFS_INDEX_DUPLICATES};
	struct cuda_resident *r = resident_of(b);
	struct pfs_job job;
	int error;

	if (r->index)
		index_of(r)->close(r->operators, &r->run, r->index);
	r->index = NULL;
	free_parents(r);
	drop_table(r);
	PFS_TRY(index_of(r)->build(r->operators, &r->run, &r->index, &shape, load->keys,
				   load->values, load->n));
	error = pfs_job_begin(&job, r->operators, &r->run);
	error = error ? error : load_parents(&job, r, load);
	return pfs_job_end(&job, error);
}

static int change_index(struct cuda_resident *r, const struct pfs_resident_changes *c)
{
	const struct pfs_index_change gone = {
		.keys = c->gone_keys, .values = c->gone_values, .n = c->n_gone};
	const struct pfs_index_change come = {.keys = c->new_keys,
					      .values = c->new_values,
					      .n = c->n_new,
					      .policy = PFS_INDEX_REFUSE};
	uint64_t n;

	if (c->n_gone)
		PFS_TRY(index_of(r)->remove(r->operators, &r->run, r->index, &n, &gone));
	return c->n_new ? index_of(r)->insert(r->operators, &r->run, r->index, &n, &come) : 0;
}

static int apply(struct pfs_resident_backend *b, const struct pfs_resident_changes *changes)
{
	struct cuda_resident *r = resident_of(b);
	struct pfs_job job;
	int error;

	if (changes->moves_directories)
		drop_table(r);
	PFS_TRY(change_index(r, changes));
	if (!changes->n_slots)
		return 0;
	error = pfs_job_begin(&job, r->operators, &r->run);
	error = error ? error : write_parents(&job, r, changes);
	return pfs_job_end(&job, error);
}

static void edited(struct pfs_resident_backend *b, uint64_t key, bool is_new)
{
	struct pfs_index_tree *index = resident_of(b)->index;

	index->n += is_new ? 1 : UINT64_MAX;
	if (is_new)
		index->greatest = PFS_MAX(index->greatest, key);
}

static int start(struct pfs_resident_backend *b, const struct pfs_mailbox_run *run)
{
	struct cuda_resident *r = resident_of(b);
	const struct pfs_device_names names = {
		.index = r->index->d,
		.d_parent = r->d_parent,
		.n_parents = (uint32_t)PFS_MIN(r->n_parents, (size_t)UINT32_MAX),
		.table = pfs_cuda_path_table_get(&r->table),
	};

	return pfs_cuda_resident_serve(r->d_mailbox, &names, run, r->stream);
}

/* ---- many paths ---- */

static int make_marks(struct list *list)
{
	for (size_t i = 0; i < MARKS; i++)
		if (!list->marks[i])
			PFS_TRY(PFS_CUDA(cudaEventCreate(&list->marks[i])));
	if (!list->end)
		PFS_TRY(PFS_CUDA(cudaEventCreateWithFlags(
			&list->end, cudaEventDisableTiming | cudaEventBlockingSync)));
	return 0;
}

static int make_paths(struct pfs_resident_backend *b, struct pfs_resident_paths **out,
		      unsigned number)
{
	struct list *list = &resident_of(b)->lists[number];
	struct pfs_resident_paths *paths = &list->paths;
	const size_t n = PFS_RESIDENT_PATHS;

	PFS_TRY(make_marks(list));
	PFS_TRY(pfs_pinned_alloc(&list->memory, n * (sizeof(*paths->primes) +
						     sizeof(*paths->slots) + sizeof(*paths->ends)) +
							PFS_RESIDENT_TEXT));
	paths->primes = list->memory;
	paths->slots = (uint32_t *)(paths->primes + n);
	paths->ends = paths->slots + n;
	paths->text = (char *)(paths->ends + n);
	*out = paths;
	return 0;
}

enum { PLACES, HEAP, PRIMES, COLUMNS };

static struct pfs_array array_of(const void *data, uint64_t n, unsigned bits,
				 const struct pfs_stamps *stamps)
{
	return (struct pfs_array){
		.id = stamps->id, .data = data, .n = n, .element_bits = bits, .stamps = stamps};
}

/* Sends `most` bytes of what has changed of the arrays, or all, and then has them on the device
 * until the job ends. -EAGAIN: that was not all. -EOPNOTSUPP: another job sends some of them: the
 * tree is held, so the host has found the paths before that ends. */
static int lease_columns(struct pfs_job *job, const void *d_columns[COLUMNS],
			 const struct pfs_resident_columns *c, size_t most)
{
	const struct pfs_names_view *names = c->names;
	const struct pfs_array arrays[COLUMNS] = {
		[PLACES] = array_of(names->place, names->n_slots, 32, c->place_stamps),
		[HEAP] = array_of(names->heap, names->heap_size >> names->place_shift,
				  8u << names->place_shift, names->stamps),
		[PRIMES] = array_of(c->prime, names->n_slots, 64, c->prime_stamps),
	};

	job->left = most;
	job->is_hurried = true;
	for (size_t i = 0; i < COLUMNS; i++)
		PFS_TRY(pfs_job_array(job, &d_columns[i], NULL, &arrays[i]));
	return 0;
}

static int mark(const struct pfs_job *job, const struct list *list, unsigned moment)
{
	return PFS_CUDA(cudaEventRecord(list->marks[moment], job->stream));
}

static int send_paths(struct pfs_job *job, struct pfs_device_paths *out,
		      const struct pfs_resident_paths *paths, const struct list *list)
{
	const size_t n = paths->n, size = paths->ends[n - 1];
	char *d_text;
	uint32_t *d_ends;

	PFS_TRY(pfs_job_alloc(job, &d_text, size));
	PFS_TRY(pfs_job_alloc(job, &d_ends, n * sizeof(*d_ends)));
	if (paths->slots)
		PFS_TRY(pfs_job_alloc(job, &out->d_slots, n * sizeof(*out->d_slots)));
	if (paths->primes)
		PFS_TRY(pfs_job_alloc(job, &out->d_primes, n * sizeof(*out->d_primes)));
	PFS_TRY(mark(job, list, BEGUN));
	PFS_TRY(PFS_CUDA(
		cudaMemcpyAsync(d_text, paths->text, size, cudaMemcpyHostToDevice, job->stream)));
	PFS_TRY(PFS_CUDA(cudaMemcpyAsync(d_ends, paths->ends, n * sizeof(*d_ends),
					 cudaMemcpyHostToDevice, job->stream)));
	out->d_text = d_text;
	out->d_ends = d_ends;
	out->n = n;
	return mark(job, list, SENT);
}

static int fetch_paths(struct pfs_job *job, const struct pfs_resident_paths *out,
		       const struct pfs_device_paths *from, const struct list *list)
{
	PFS_TRY(mark(job, list, RESOLVED));
	if (out->slots)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(out->slots, from->d_slots,
						 from->n * sizeof(*out->slots),
						 cudaMemcpyDeviceToHost, job->stream)));
	if (out->primes)
		PFS_TRY(PFS_CUDA(cudaMemcpyAsync(out->primes, from->d_primes,
						 from->n * sizeof(*out->primes),
						 cudaMemcpyDeviceToHost, job->stream)));
	PFS_TRY(mark(job, list, FETCHED));
	if (from->n < MANY)
		return PFS_CUDA(cudaEventSynchronize(list->marks[FETCHED]));
	PFS_TRY(PFS_CUDA(cudaEventRecord(list->end, job->stream)));
	return PFS_CUDA(cudaEventSynchronize(list->end));
}

static int measure(struct cuda_resident *r, const struct list *list)
{
	float ms[MARKS];

	for (size_t i = 1; i < MARKS; i++)
		PFS_TRY(PFS_CUDA(cudaEventElapsedTime(&ms[i], list->marks[i - 1], list->marks[i])));
	(void)__atomic_add_fetch(&r->bus_ns, (uint64_t)((ms[SENT] + ms[FETCHED]) * 1e6f),
				 __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&r->kernel_ns, (uint64_t)(ms[RESOLVED] * 1e6f), __ATOMIC_RELAXED);
	return 0;
}

static int resolve_in(struct pfs_job *job, struct cuda_resident *r,
		      const struct pfs_resident_paths *paths, const struct pfs_resident_columns *c,
		      size_t most, bool is_false)
{
	struct list *list = &r->lists[paths->list];
	const void *d_columns[COLUMNS];
	struct pfs_path_columns columns;
	struct pfs_path_table table;
	struct pfs_device_paths device = {.is_false = is_false};

	PFS_TRY(lease_columns(job, d_columns, c, most));
	columns = (struct pfs_path_columns){
		.heap = d_columns[HEAP],
		.place = d_columns[PLACES],
		.prime = d_columns[PRIMES],
		.parent = r->d_parent,
		.seed = c->seed,
		.hash_bits = c->hash_bits,
		.place_shift = c->names->place_shift,
		.n_slots = (uint32_t)PFS_MIN(c->names->n_slots, r->n_parents),
		.root = c->root,
		.top = c->top,
	};
	PFS_TRY(pfs_cuda_path_table_use(&r->table, job, &table, &columns, paths->n));
	PFS_TRY(make_marks(list));
	PFS_TRY(send_paths(job, &device, paths, list));
	PFS_TRY(pfs_cuda_resolve(&r->index->d, &columns, &table, &device, job->stream));
	PFS_TRY(fetch_paths(job, paths, &device, list));
	return measure(r, list);
}

static int resolve(struct pfs_resident_backend *b, struct pfs_resident_paths *paths,
		   const struct pfs_resident_columns *columns, size_t most, bool is_false)
{
	struct cuda_resident *r = resident_of(b);
	struct pfs_job job;
	int error;

	if (!r->index || !paths->n)
		return -EOPNOTSUPP;
	error = pfs_job_begin(&job, r->operators, &r->run);
	error = error ? error : resolve_in(&job, r, paths, columns, most, is_false);
	return pfs_job_end(&job, error);
}

/* ---- opening ---- */

static const struct pfs_resident_ops ops = {
	.close = close_resident,
	.describe = describe,
	.load = load,
	.apply = apply,
	.edited = edited,
	.start = start,
	.paths = make_paths,
	.resolve = resolve,
};

/* Debuggers and profilers run one kernel at a time, and wait for its end. */
static bool is_watched(void)
{
	return getenv("PRIMEFS_RESIDENT_SLICES") || getenv("CUDA_INJECTION64_PATH") ||
	       getenv("NV_SANITIZER_INJECTION_TRANSPORT_TYPE") ||
	       getenv("NV_COMPUTE_PROFILER_PERFWORKS_DIR") ||
	       getenv("NV_NSIGHT_INJECTION_TRANSPORT_TYPE");
}

static int open_device(struct cuda_resident *r)
{
	struct cudaDeviceProp properties;
	int lowest, highest, timeout = 0;
	void *mailbox, *d_mailbox;

	PFS_TRY(PFS_CUDA(cudaGetDeviceProperties(&properties, 0)));
	(void)snprintf(r->name, sizeof(r->name), "%.63s", properties.name);
	PFS_TRY(PFS_CUDA(cudaDeviceGetAttribute(&timeout, cudaDevAttrKernelExecTimeout, 0)));
	r->base.in_slices = timeout || is_watched();
	PFS_TRY(PFS_CUDA(cudaDeviceGetStreamPriorityRange(&lowest, &highest)));
	PFS_TRY(PFS_CUDA(cudaStreamCreateWithPriority(&r->stream, cudaStreamNonBlocking, highest)));
	PFS_TRY(PFS_CUDA(cudaHostAlloc(&mailbox, sizeof(*r->base.mailbox), cudaHostAllocMapped)));
	memset(mailbox, 0, sizeof(*r->base.mailbox));
	r->base.mailbox = mailbox;
	PFS_TRY(PFS_CUDA(cudaHostGetDevicePointer(&d_mailbox, mailbox, 0)));
	r->d_mailbox = d_mailbox;
	return pfs_cuda_operators_open(&r->operators);
}

int pfs_cuda_resident_open(struct pfs_resident_backend **out)
{
	struct cuda_resident *r;
	int n = 0, error;

	*out = NULL;
	/* Kernels that are loaded at their first launch may wait for the one that stays. */
	(void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
	if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
		(void)cudaGetLastError();
		return -ENODEV;
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	(void)pthread_mutex_init(&r->table.lock, NULL);
	r->table.state = &r->base.paths;
	r->base.ops = &ops;
	r->base.patience_ns = is_watched() ? PATIENCE_WATCHED_NS : PATIENCE_NS;
	error = open_device(r);
	if (error) {
		close_resident(&r->base);
		return error == -EIO ? -ENODEV : error; /* said why in the log */
	}
	r->run = (struct pfs_run){.on = PFS_ENGINE_CUDA};
	pfs_cuda_read_fail_at();
	*out = &r->base;
	return 0;
}
