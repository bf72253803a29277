/* SPDX-License-Identifier: MIT */
#include "tools/client/pathpipe.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"
#include "base/thread.h"

#define BATCHES 4u  /* in memory: one for each stage, and one between two stages */
#define SHARE	((size_t)512 << 10) /* bytes that a batch has for each processor */
#define LOOK_MS 100 /* how often the reading stage looks if it is still wanted */
#define ENDED	1   /* what a stage returns if there are no more batches */

/* Batches form a ring: the k-th that is read lies in batches[k % BATCHES]. */
struct batch {
	char *text;
	size_t capacity; /* bytes, with one behind what is read, which may be written */
	struct pfs_resolve_lines lines;
};

struct work {
	struct pfs_pathpipe *pipe;
	size_t batch; /* bytes of a batch */
	struct pfs_pool *pool;
	pthread_mutex_t pool_lock; /* held by the stage that uses the pool, for a part of a batch */
	struct pfs_resolve_threads threads;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	/* protected by lock */
	size_t done[PFS_PATHPIPE_STAGES]; /* how many batches the stage has passed on */
	bool ended[PFS_PATHPIPE_STAGES];  /* the stage passes on no more */
	struct batch batches[BATCHES];
	/* only the reading stage uses these: */
	const char *rest; /* bytes that were read, but belong to no batch yet */
	size_t n_rest;
	bool is_all; /* there is nothing more to be read */
	/* only the writing stage uses this: */
	struct pfs_resolve_text text;
};

static void share(void *arg, size_t n, size_t grain,
		  void (*piece)(void *context, size_t from, size_t to), void *context)
{
	struct work *work = arg;
	PFS_LOCKED(&work->pool_lock);

	pfs_pool_run(work->pool, n, grain, piece, context);
}

/* ---- whose turn it is ---- */

/* Returns true if a later stage has ended, so that it takes no more batches. */
static bool is_unwanted(const struct work *work, enum pfs_pathpipe_stage stage)
{
	for (unsigned later = stage + 1u; later < PFS_PATHPIPE_STAGES; later++)
		if (work->ended[later])
			return true;
	return false;
}

/* Returns true if the stage can take batch k: its place in the ring is free for reading, or the
 * stage before has passed it on. */
static bool is_there(const struct work *work, enum pfs_pathpipe_stage stage, size_t k)
{
	return stage == PFS_PATHPIPE_READ ? k < work->done[PFS_PATHPIPE_WRITE] + BATCHES
					  : k < work->done[stage - 1];
}

/* Waits for batch k. Returns false if the stage has nothing more to do. */
static bool wait_for(struct work *work, enum pfs_pathpipe_stage stage, size_t k)
{
	PFS_LOCKED(&work->lock);
	while (!is_unwanted(work, stage) && !is_there(work, stage, k) &&
	       !(stage != PFS_PATHPIPE_READ && work->ended[stage - 1]))
		(void)pthread_cond_wait(&work->turn, &work->lock);
	return !is_unwanted(work, stage) && is_there(work, stage, k);
}

static void pass_on(struct work *work, enum pfs_pathpipe_stage stage, bool has_ended)
{
	PFS_LOCKED(&work->lock);
	work->ended[stage] = has_ended;
	work->done[stage] += !has_ended;
	(void)pthread_cond_broadcast(&work->turn);
}

static bool is_over(struct work *work)
{
	PFS_LOCKED(&work->lock);
	return is_unwanted(work, PFS_PATHPIPE_READ);
}

/* ---- reading ---- */

/* Reads some bytes. *got is 0 at the end. Returns ENDED if answers are not wanted any more. */
static int read_some(struct work *work, size_t *got, char *to, size_t size)
{
	struct pollfd event = {.fd = work->pipe->in, .events = POLLIN};
	ssize_t n = -1;

	errno = EINTR;
	while (n < 0 && errno == EINTR) {
		while (poll(&event, 1, LOOK_MS) == 0)
			if (is_over(work))
				return ENDED;
		n = read(work->pipe->in, to, size);
	}
	*got = (size_t)n;
	return n < 0 ? -errno : 0;
}

static bool more_is_ready(int fd)
{
	struct pollfd event = {.fd = fd, .events = POLLIN};

	return poll(&event, 1, 0) > 0;
}

/* Makes room for `size` bytes, or path_max if that is less, and for two more: a path's delimiter or
 * the byte that makes it too long, and the byte behind. */
static int reserve(const struct work *work, struct batch *batch, size_t size)
{
	const size_t capacity = PFS_MIN(PFS_MAX(work->batch, size), work->pipe->path_max) + 2;
	char *text;

	if (capacity <= batch->capacity)
		return 0;
	text = realloc(batch->text, capacity);
	if (!text)
		return -ENOMEM;
	batch->text = text;
	batch->capacity = capacity;
	return 0;
}

/* Makes room for a path of more than `size` bytes. */
static int make_room(const struct work *work, struct batch *batch, size_t size)
{
	return size > work->pipe->path_max ? -ENAMETOOLONG : reserve(work, batch, 2 * size);
}

/* Reads at least one whole line, and more as far as it is ready. *whole: how many bytes whole lines
 * have; *size: how many bytes there are. */
static int read_lines(struct work *work, struct batch *batch, size_t *whole, size_t *size)
{
	const struct pfs_pathpipe *pipe = work->pipe;
	size_t n = work->n_rest, got;
	const char *last;
	int error;

	PFS_TRY(reserve(work, batch, n));
	if (n)
		memmove(batch->text, work->rest, n);
	last = memrchr(batch->text, pipe->delimiter, n);
	*whole = last ? (size_t)(last + 1 - batch->text) : 0;
	while (!work->is_all && (!*whole || (n + 1 < batch->capacity && more_is_ready(pipe->in)))) {
		if (n + 1 == batch->capacity)
			PFS_TRY(make_room(work, batch, n));
		error = read_some(work, &got, batch->text + n, batch->capacity - 1 - n);
		if (error && *whole) /* whole lines are answered before the error counts */
			break;
		PFS_TRY(error);
		work->is_all = got == 0;
		last = memrchr(batch->text + n, pipe->delimiter, got);
		*whole = last ? (size_t)(last + 1 - batch->text) : *whole;
		n += got;
	}
	*size = n;
	if (work->is_all)
		*whole = n;
	return 0;
}

static int read_batch(struct work *work, struct batch *batch)
{
	size_t whole, used, size;

	PFS_TRY(read_lines(work, batch, &whole, &size));
	if (whole == 0)
		return ENDED;
	PFS_TRY(pfs_resolve_lines_find(&batch->lines, &used, batch->text, whole,
				       work->pipe->delimiter, &work->threads));
	work->rest = batch->text + used;
	work->n_rest = size - used;
	return 0;
}

/* ---- resolving and writing ---- */

static int resolve_batch(struct work *work, struct batch *batch)
{
	const struct pfs_resolve_lines *lines = &batch->lines;

	PFS_TRY(work->pipe->resolve(work->pipe->arg, lines->inos, lines->paths, lines->n));
	for (size_t i = 0; i < lines->n && !work->pipe->missing; i++)
		work->pipe->missing = !lines->inos[i];
	return 0;
}

static int write_all(int fd, struct iovec *parts, size_t n)
{
	while (n) {
		ssize_t written = writev(fd, parts, (int)PFS_MIN(n, (size_t)IOV_MAX));

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		for (; n && (size_t)written >= parts->iov_len; parts++, n--)
			written -= (ssize_t)parts->iov_len;
		if (n) {
			parts->iov_base = (char *)parts->iov_base + written;
			parts->iov_len -= (size_t)written;
		}
	}
	return 0;
}

static int write_batch(struct work *work, struct batch *batch)
{
	const struct pfs_pathpipe *pipe = work->pipe;
	const struct pfs_resolve_lines *lines = &batch->lines;

	if (pipe->show)
		return pipe->show(pipe->arg, lines->inos, lines->paths, lines->n);
	PFS_TRY(pfs_resolve_lines_print(lines, &work->text, true, pipe->delimiter, &work->threads));
	if (pipe->put)
		return pipe->put(pipe->arg, &work->text, &work->threads);
	return write_all(pipe->out, work->text.parts, work->text.n_parts);
}

/* ---- the stages ---- */

static int (*const steps[])(struct work *work, struct batch *batch) = {
	[PFS_PATHPIPE_READ] = read_batch,
	[PFS_PATHPIPE_RESOLVE] = resolve_batch,
	[PFS_PATHPIPE_WRITE] = write_batch,
};

static void run_stage(struct work *work, enum pfs_pathpipe_stage stage)
{
	int result = 0;

	for (size_t k = 0; !result && wait_for(work, stage, k); k++) {
		uint64_t began = pfs_now_ns();

		result = steps[stage](work, &work->batches[k % BATCHES]);
		work->pipe->busy_ns[stage] += pfs_now_ns() - began;
		if (!result)
			pass_on(work, stage, false);
	}
	pass_on(work, stage, true);
	work->pipe->errors[stage] = result == ENDED && stage == PFS_PATHPIPE_READ ? 0 : result;
}

static void *resolve_main(void *work)
{
	run_stage(work, PFS_PATHPIPE_RESOLVE);
	return NULL;
}

static void *write_main(void *work)
{
	run_stage(work, PFS_PATHPIPE_WRITE);
	return NULL;
}

static int run_stages(struct work *work)
{
	static const struct pfs_thread_kind resolving = {"pfs-resolve", 0, 0},
					    writing = {"pfs-write", 0, 0};
	pthread_t resolver = 0, writer = 0;
	int error = pfs_thread_start(&resolver, &resolving, resolve_main, work);

	if (error)
		return error;
	error = pfs_thread_start(&writer, &writing, write_main, work);
	if (!error)
		run_stage(work, PFS_PATHPIPE_READ);
	else
		pass_on(work, PFS_PATHPIPE_READ, true); /* ends the resolving stage */
	(void)pthread_join(resolver, NULL);
	if (!error)
		(void)pthread_join(writer, NULL);
	return error;
}

static int prepare(struct work *work)
{
	PFS_TRY(pfs_pool_open(&work->pool, 0, 0));
	work->threads = (struct pfs_resolve_threads){share, work};
	work->batch = work->pipe->batch ? work->pipe->batch : SHARE * pfs_pool_threads(work->pool);
	return 0;
}

int pfs_pathpipe_run(struct pfs_pathpipe *pipe)
{
	struct work work = {.pipe = pipe};
	int error;

	pipe->missing = false;
	memset(pipe->errors, 0, sizeof(pipe->errors));
	(void)pthread_mutex_init(&work.lock, NULL);
	(void)pthread_mutex_init(&work.pool_lock, NULL);
	(void)pthread_cond_init(&work.turn, NULL);
	error = prepare(&work);
	if (!error)
		error = run_stages(&work);
	for (unsigned stage = 0; stage < PFS_PATHPIPE_STAGES && !error; stage++)
		error = pipe->errors[stage] ? -ECANCELED : 0;
	pfs_pool_close(work.pool);
	pfs_resolve_text_free(&work.text);
	for (size_t i = 0; i < BATCHES; i++) {
		pfs_resolve_lines_free(&work.batches[i].lines);
		free(work.batches[i].text);
	}
	(void)pthread_cond_destroy(&work.turn);
	(void)pthread_mutex_destroy(&work.pool_lock);
	(void)pthread_mutex_destroy(&work.lock);
	return error;
}
