/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_paths.c - listings: while one piece crosses the bus, the next is written. */
#include "gpu/cuda/cuda_engine.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define PIECE_SIZE ((size_t)16 << 20)

struct pfs_path_listing {
	struct pfs_device_buffer slots, ends;
	uint64_t *cuts; /* piece k is lines cuts[k]..cuts[k + 1] */
	uint64_t *sizes;
	size_t n_pieces, started, done;
	unsigned flags;
	cudaEvent_t written[2], copied[2];
};

static struct pfs_cuda_names names_of(const struct pfs_cuda *g, unsigned shift, unsigned flags)
{
	return (struct pfs_cuda_names){
		.d_heap = g->heap.d_memory,
		.d_place = g->place.d_memory,
		.shift = shift,
		.root = g->root,
		.d_directory_place = g->directory_place.d_memory,
		.d_directory_length = g->directory_length.d_memory,
		.flags = flags,
	};
}

/* ---- names ---- */

int pfs_cuda_names_reserve(struct pfs_codes_job *base, size_t heap, size_t places)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;

	PFS_TRY(pfs_device_reserve(job, &g->heap, heap));
	return pfs_device_reserve(job, &g->place, places * sizeof(uint32_t));
}

static int write_renamed(struct pfs_cuda_job *job, const struct pfs_names_update *u)
{
	struct pfs_cuda *g = job->g;
	size_t n = u->n_renamed;
	uint32_t *places PFS_FREE = malloc((n + 1) * sizeof(*places));

	if (!places)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		places[i] = u->view->place[u->renamed[i]];
	PFS_TRY(pfs_device_reserve(job, &job->list, n * sizeof(*places)));
	PFS_TRY(pfs_device_reserve(job, &job->values, n * sizeof(*places)));
	PFS_TRY(pfs_device_write(job, job->list.d_memory, u->renamed, n * sizeof(*places)));
	PFS_TRY(pfs_device_write(job, job->values.d_memory, places, n * sizeof(*places)));
	return pfs_cuda_scatter32(g->place.d_memory, job->list.d_memory, job->values.d_memory, n,
				  job->stream);
}

int pfs_cuda_names_update(struct pfs_codes_job *base, const struct pfs_names_update *u)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	struct pfs_cuda *g = job->g;

	g->has_directory_paths =
		g->has_directory_paths && !u->n_pieces && !u->n_renamed && u->from == u->to;
	for (size_t i = 0; i < u->n_pieces; i++) {
		const struct pfs_names_piece *p = &u->pieces[i];

		PFS_TRY(pfs_device_write(job, (char *)g->heap.d_memory + p->from,
					 u->view->heap + p->from, p->to - p->from));
	}
	if (u->from < u->to)
		PFS_TRY(pfs_device_write(job, (uint32_t *)g->place.d_memory + u->from,
					 u->view->place + u->from,
					 (u->to - u->from) * sizeof(uint32_t)));
	return u->n_renamed ? write_renamed(job, u) : 0;
}

/* Makes the directories' paths, if they are not there. Whoever comes meanwhile waits for them. */
static int find_directory_paths(struct pfs_cuda_job *job, const struct pfs_paths_request *r)
{
	struct pfs_cuda *g = job->g;
	PFS_LOCKED(&g->paths_lock);
	size_t size = (size_t)g->n_directories * sizeof(uint32_t);
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	struct pfs_cuda_names names;

	if (g->has_directory_paths)
		return 0;
	PFS_TRY(pfs_device_reserve(job, &g->directory_place, size));
	PFS_TRY(pfs_device_reserve(job, &g->directory_length, size));
	names = names_of(g, r->view->place_shift, r->flags);
	PFS_TRY(pfs_cuda_directory_paths(&t, &names, job->stream));
	PFS_TRY(PFS_CUDA(cudaStreamSynchronize(job->stream)));
	g->has_directory_paths = true;
	return 0;
}

/* ---- the listing ---- */

void pfs_text_free(struct pfs_cuda_job *job)
{
	struct pfs_text *text = &job->text;

	for (unsigned i = 0; i < 2; i++) {
		pfs_pinned_free(text->bytes[i]);
		pfs_device_free(job->g, &text->d_bytes[i], job->stream);
	}
	*text = (struct pfs_text){0};
}

/* The last listing's buffers, if they are large enough; or larger ones. */
static int reserve_text(struct pfs_cuda_job *job, size_t size)
{
	struct pfs_text *text = &job->text;
	int error = 0;

	if (text->size >= size)
		return 0;
	pfs_text_free(job);
	for (unsigned i = 0; i < 2 && error == 0; i++) {
		void *bytes = NULL;

		error = pfs_pinned_alloc(&bytes, size);
		text->bytes[i] = error ? NULL : bytes;
		error = error ? error : pfs_device_reserve(job, &text->d_bytes[i], size);
	}
	text->size = error ? 0 : size;
	return error;
}

void pfs_cuda_paths_close(struct pfs_codes_job *base, struct pfs_path_listing *paths)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);

	(void)cudaStreamSynchronize(job->copy_stream);
	pfs_device_free(job->g, &paths->slots, job->stream);
	pfs_device_free(job->g, &paths->ends, job->stream);
	for (unsigned i = 0; i < 2; i++) {
		if (paths->written[i])
			(void)cudaEventDestroy(paths->written[i]);
		if (paths->copied[i])
			(void)cudaEventDestroy(paths->copied[i]);
	}
	free(paths->cuts);
	free(paths->sizes);
	free(paths);
}

/* Line ends, then where to cut; and the sizes of the pieces. */
static int cut(struct pfs_cuda_job *job, struct pfs_path_listing *paths, size_t n,
	       const struct pfs_cuda_names *names)
{
	struct pfs_cuda_tree t = pfs_cuda_tree_of(job->g);
	size_t scratch = pfs_cuda_path_scratch(n), most;
	uint64_t total, longest, *d_cuts;
	int error = pfs_device_reserve(job, &paths->ends, n * sizeof(uint64_t));

	error = error ? error : pfs_device_reserve(job, &job->work, scratch);
	error = error ? error
		      : pfs_cuda_path_ends(&t, names, paths->ends.d_memory, pfs_count_at(job),
					   paths->slots.d_memory, n, job->work.d_memory, scratch,
					   job->stream);
	error = error ? error : pfs_device_read(job, &longest, pfs_count_at(job), sizeof(longest));
	error = error ? error
		      : pfs_device_read(job, &total, (uint64_t *)paths->ends.d_memory + n - 1,
					sizeof(total));
	if (error)
		return error;
	/* Every piece but the last has more than its size less the longest line. */
	longest = PFS_MAX(longest, PIECE_SIZE / 4);
	error = reserve_text(job, PFS_MAX(PIECE_SIZE, longest * 2));
	if (error)
		return error;
	most = total / (job->text.size - longest) + 2;
	paths->cuts = malloc((most + 2) * sizeof(*paths->cuts));
	paths->sizes = malloc((most + 2) * sizeof(*paths->sizes));
	if (!paths->cuts || !paths->sizes)
		return -ENOMEM;
	error = pfs_device_reserve(job, &job->values, (most + 2) * sizeof(uint64_t));
	d_cuts = job->values.d_memory;
	error = error ? error
		      : pfs_cuda_path_cuts(d_cuts, pfs_count_at(job), most, paths->ends.d_memory, n,
					   job->text.size, job->stream);
	error = error ? error : pfs_counters_read(job);
	if (error)
		return error;
	paths->n_pieces = job->host_counters->count;
	return pfs_device_read(job, paths->cuts, d_cuts, (paths->n_pieces + 1) * sizeof(uint64_t));
}

static int read_sizes(struct pfs_cuda_job *job, struct pfs_path_listing *paths)
{
	uint64_t before = 0, end;
	int error = 0;

	for (size_t k = 0; k < paths->n_pieces && error == 0; k++) {
		error = pfs_device_read(job, &end,
					(uint64_t *)paths->ends.d_memory + paths->cuts[k + 1] - 1,
					sizeof(end));
		paths->sizes[k] = end - before;
		before = end;
	}
	return error;
}

static int create_events(struct pfs_path_listing *paths)
{
	for (unsigned i = 0; i < 2; i++) {
		PFS_TRY(PFS_CUDA(
			cudaEventCreateWithFlags(&paths->written[i], cudaEventDisableTiming)));
		PFS_TRY(PFS_CUDA(
			cudaEventCreateWithFlags(&paths->copied[i], cudaEventDisableTiming)));
	}
	return 0;
}

static int open_listing(struct pfs_cuda_job *job, struct pfs_path_listing *paths,
			const struct pfs_paths_request *r)
{
	struct pfs_cuda_names names;

	PFS_TRY(create_events(paths));
	PFS_TRY(find_directory_paths(job, r));
	if (!r->n)
		return 0;
	names = names_of(job->g, r->view->place_shift, r->flags);
	PFS_TRY(pfs_device_reserve(job, &paths->slots, r->n * sizeof(*r->slots)));
	PFS_TRY(pfs_device_write(job, paths->slots.d_memory, r->slots, r->n * sizeof(*r->slots)));
	PFS_TRY(cut(job, paths, r->n, &names));
	return read_sizes(job, paths);
}

int pfs_cuda_paths_open(struct pfs_codes_job *base, struct pfs_path_listing **out,
			const struct pfs_paths_request *request)
{
	struct pfs_path_listing *paths = calloc(1, sizeof(*paths));
	int error;

	if (!paths)
		return -ENOMEM;
	paths->flags = request->flags | request->view->place_shift << 8;
	error = open_listing(pfs_cuda_job_of(base), paths, request);
	if (error) {
		pfs_cuda_paths_close(base, paths);
		return error;
	}
	*out = paths;
	return 0;
}

static int start_piece(struct pfs_cuda_job *job, struct pfs_path_listing *paths)
{
	struct pfs_cuda *g = job->g;
	size_t k = paths->started++;
	unsigned i = k % 2;
	struct pfs_cuda_tree t = pfs_cuda_tree_of(g);
	struct pfs_cuda_names names = names_of(g, paths->flags >> 8, paths->flags & 0xff);
	int error = pfs_cuda_path_text(&t, &names, job->text.d_bytes[i].d_memory,
				       paths->ends.d_memory, paths->slots.d_memory, paths->cuts[k],
				       paths->cuts[k + 1] - paths->cuts[k], job->stream);

	error = error ? error : PFS_CUDA(cudaEventRecord(paths->written[i], job->stream));
	error = error ? error
		      : PFS_CUDA(cudaStreamWaitEvent(job->copy_stream, paths->written[i], 0));
	error = error ? error
		      : PFS_CUDA(cudaMemcpyAsync(job->text.bytes[i],
						 job->text.d_bytes[i].d_memory, paths->sizes[k],
						 cudaMemcpyDeviceToHost, job->copy_stream));
	return error ? error : PFS_CUDA(cudaEventRecord(paths->copied[i], job->copy_stream));
}

int pfs_cuda_paths_next(struct pfs_codes_job *base, struct pfs_path_listing *paths,
			const char **bytes, size_t *size)
{
	struct pfs_cuda_job *job = pfs_cuda_job_of(base);
	size_t k = paths->done;
	int error = 0;

	if (k == paths->n_pieces)
		return 0;
	/* The other buffer's piece has been read: the caller has come back. */
	while (paths->started < PFS_MIN(k + 2, paths->n_pieces) && error == 0)
		error = start_piece(job, paths);
	error = error ? error : PFS_CUDA(cudaEventSynchronize(paths->copied[k % 2]));
	if (error)
		return error;
	*bytes = job->text.bytes[k % 2];
	*size = paths->sizes[k];
	paths->done++;
	return 1;
}
