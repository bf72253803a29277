/* SPDX-License-Identifier: MIT */
#include "tools/client/pathpipe.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/pool.h"

/* Bytes of paths that stay, with their answers, in a processor's cache. */
#define BATCH ((size_t)384 << 10)
/* Where few threads at a time ask a daemon or a device: so many bytes of paths are worth asking
 * for, and more threads would mostly wait. */
#define BATCH_ASKED   ((size_t)2 << 20)
#define THREADS_ASKED 12u
#define TAIL	      4096u /* bytes in which the last line of a file's batch ends */
#define LOOK_MS	      100   /* how often who waits for paths looks if they are wanted */
#define ENDED	      1	    /* the list ends before this batch, or has failed before it */

/* The batch that a thread has. */
struct batch {
	size_t number; /* of the batches of the list, from 0 on */
	char *text;
	size_t capacity; /* bytes, with one behind the lines, which may be written */
	size_t size;	 /* bytes of whole lines */
	off_t unread;	 /* where in the file they are still to be read; -1: they have been */
	size_t at;	 /* how many bytes are those of lines that have been answered */
	size_t used;	 /* how many bytes are those of `lines`, which come next */
	struct pfs_resolve_lines lines;
	struct pfs_resolve_text answers;
	uint64_t busy_ns[PFS_PATHPIPE_STAGES], waited_ns;
};

struct work {
	struct pfs_pathpipe *pipe;
	unsigned n_threads;
	size_t batch;	/* bytes of a batch */
	bool in_pieces; /* several threads may read the file at once */
	pthread_mutex_t reading;
	/* protected by reading */
	size_t n_taken; /* batches that threads have taken */
	char *rest;	/* bytes that were read, of a line whose end was not */
	size_t n_rest, rest_capacity;
	bool is_all;	 /* there is nothing more to be read */
	sem_t resolving; /* how many more threads may resolve */
	pthread_mutex_t lock;
	/* protected by lock */
	size_t end;  /* the number of the first batch that is not answered */
	size_t turn; /* of the batch that is written next */
	/* The thread that has batch k waits for its turn at turns[k % n_threads]. No two wait at
	 * the same, since the batches that threads have follow each other. */
	pthread_cond_t *turns;
};

static void alone(void *arg PFS_UNUSED, size_t n, size_t grain,
		  void (*work)(void *context, size_t from, size_t to), void *context)
{
	pfs_pool_run(NULL, n, grain, work, context);
}

static const struct pfs_resolve_threads no_others = {alone, NULL};

/* ---- the end of the list, and turns ---- */

static bool is_over(struct work *work, size_t number)
{
	PFS_LOCKED(&work->lock);
	return number >= work->end;
}

/* Ends the list before the batch, unless it ends sooner. error: why; 0: the list has no more. */
static void end_before(struct work *work, size_t number, enum pfs_pathpipe_stage stage, int error)
{
	PFS_LOCKED(&work->lock);
	if (number >= work->end)
		return;
	work->end = number;
	memset(work->pipe->errors, 0, sizeof(work->pipe->errors));
	work->pipe->errors[stage] = error;
}

static void wait_for_turn(struct work *work, struct batch *batch)
{
	const uint64_t began = pfs_now_ns();
	PFS_LOCKED(&work->lock);

	while (work->turn < batch->number)
		(void)pthread_cond_wait(&work->turns[batch->number % work->n_threads], &work->lock);
	batch->waited_ns += pfs_now_ns() - began;
}

/* Gives the turn to the next batch, unless this one has done so before. */
static void pass_turn(struct work *work, const struct batch *batch)
{
	PFS_LOCKED(&work->lock);
	if (work->turn != batch->number)
		return;
	work->turn++;
	(void)pthread_cond_signal(&work->turns[work->turn % work->n_threads]);
}

/* ---- reading in turn; work->reading is held ---- */

/* Reads some bytes. *got is 0 at the end. Returns ENDED if answers are not wanted any more. */
static int read_some(struct work *work, const struct batch *batch, size_t *got, char *to,
		     size_t size)
{
	struct pollfd event = {.fd = work->pipe->in, .events = POLLIN};
	ssize_t n = -1;

	errno = EINTR;
	while (n < 0 && errno == EINTR) {
		while (poll(&event, 1, LOOK_MS) == 0)
			if (is_over(work, batch->number))
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
 * the byte that makes it too long, and the byte behind. One batch at a time is larger than others:
 * its thread waits for its turn, to which all earlier batches come, since they have been read. */
static int reserve(struct work *work, struct batch *batch, size_t size)
{
	const size_t capacity = PFS_MIN(PFS_MAX(work->batch, size), work->pipe->path_max) + 2;
	char *text;

	if (batch->text && capacity <= batch->capacity)
		return 0;
	if (size > work->batch)
		wait_for_turn(work, batch);
	text = realloc(batch->text, capacity);
	if (!text)
		return -ENOMEM;
	batch->text = text;
	batch->capacity = capacity;
	return 0;
}

/* Makes room for a path of more than `size` bytes. */
static int make_room(struct work *work, struct batch *batch, size_t size)
{
	return size > work->pipe->path_max ? -ENAMETOOLONG : reserve(work, batch, 2 * size);
}

/* Keeps bytes that belong to the next batch. */
static int keep_rest(struct work *work, const char *bytes, size_t size)
{
	PFS_TRY(pfs_grow(&work->rest, &work->rest_capacity, size, 1));
	if (size)
		memcpy(work->rest, bytes, size);
	work->n_rest = size;
	return 0;
}

static size_t whole_lines(const char *text, size_t size, char delimiter)
{
	const char *last = memrchr(text, delimiter, size);

	return last ? (size_t)(last + 1 - text) : 0;
}

/* Reads at least one whole line, and more as far as it is ready, behind the *size bytes that are
 * there, which have none. Sets *size and batch->size. */
static int read_lines(struct work *work, struct batch *batch, size_t *size)
{
	const struct pfs_pathpipe *pipe = work->pipe;
	size_t n = *size, whole = 0, got, lines;
	int error;

	while (!work->is_all && (!whole || (n + 1 < batch->capacity && more_is_ready(pipe->in)))) {
		if (n + 1 == batch->capacity)
			PFS_TRY(make_room(work, batch, n));
		error = read_some(work, batch, &got, batch->text + n, batch->capacity - 1 - n);
		if (error && whole) /* whole lines are answered before the error counts */
			break;
		PFS_TRY(error);
		work->is_all = got == 0;
		lines = whole_lines(batch->text + n, got, pipe->delimiter);
		whole = lines ? n + lines : whole;
		n += got;
	}
	*size = n;
	batch->size = work->is_all ? n : whole;
	return 0;
}

static int read_batch(struct work *work, struct batch *batch)
{
	size_t size = work->n_rest, rest;

	PFS_TRY(reserve(work, batch, size));
	if (size)
		memcpy(batch->text, work->rest, size);
	PFS_TRY(read_lines(work, batch, &size));
	rest = size - batch->size;
	if (work->in_pieces && !work->is_all && lseek(work->pipe->in, -(off_t)rest, SEEK_CUR) >= 0)
		rest = 0; /* it begins the next piece */
	PFS_TRY(keep_rest(work, batch->text + batch->size, rest));
	batch->unread = -1;
	return batch->size ? 0 : ENDED;
}

/* Looks where the last whole line ends among the next bytes of a file, as many as a batch has, and
 * moves the file's offset there. Returns false if the batch has to be read in turn. */
static bool find_piece(struct work *work, struct batch *batch)
{
	const struct pfs_pathpipe *pipe = work->pipe;
	char tail[TAIL];
	struct stat status;
	size_t size, tail_size, lines;

	if (!work->in_pieces || work->is_all || work->n_rest)
		return false;
	batch->unread = lseek(pipe->in, 0, SEEK_CUR);
	if (batch->unread < 0 || fstat(pipe->in, &status) || status.st_size <= batch->unread)
		return false;
	size = PFS_MIN(work->batch, (size_t)(status.st_size - batch->unread));
	tail_size = PFS_MIN(size, TAIL);
	if (reserve(work, batch, size) ||
	    pread(pipe->in, tail, tail_size, batch->unread + (off_t)(size - tail_size)) !=
		    (ssize_t)tail_size)
		return false;
	lines = whole_lines(tail, tail_size, pipe->delimiter);
	batch->size = size - tail_size + lines;
	return lines && lseek(pipe->in, batch->unread + (off_t)batch->size, SEEK_SET) >= 0;
}

/* Takes the next batch. Returns false if there is none. */
static bool take_batch(struct work *work, struct batch *batch)
{
	const uint64_t came = pfs_now_ns(), waited = batch->waited_ns;
	int result;
	PFS_LOCKED(&work->reading);

	batch->waited_ns += pfs_now_ns() - came;
	batch->number = work->n_taken++;
	if (is_over(work, batch->number))
		return false;
	result = find_piece(work, batch) ? 0 : read_batch(work, batch);
	if (result)
		end_before(work, batch->number, PFS_PATHPIPE_READ, result == ENDED ? 0 : result);
	batch->busy_ns[PFS_PATHPIPE_READ] += pfs_now_ns() - came - (batch->waited_ns - waited);
	return !result;
}

/* ---- the stages of a batch, each for as many lines as are found at once ---- */

/* Reads a file's batch. If the file has become shorter or cannot be read, the list ends with what
 * was read, as it would if one byte after the other were. */
static void read_piece(struct work *work, struct batch *batch)
{
	ssize_t got = 1;
	size_t n = 0;

	while (n < batch->size && got) {
		got = pread(work->pipe->in, batch->text + n, batch->size - n,
			    batch->unread + (off_t)n);
		if (got < 0 && errno != EINTR)
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	batch->unread = -1;
	if (n == batch->size)
		return;
	if (got < 0)
		n = whole_lines(batch->text, n, work->pipe->delimiter);
	batch->size = n;
	end_before(work, batch->number + (n > 0), PFS_PATHPIPE_READ, got < 0 ? -errno : 0);
}

static int find_lines(struct work *work, struct batch *batch)
{
	if (batch->unread >= 0)
		read_piece(work, batch);
	if (batch->size == 0)
		return ENDED;
	return pfs_resolve_lines_find(&batch->lines, &batch->used, batch->text + batch->at,
				      batch->size - batch->at, work->pipe->delimiter, &no_others);
}

static int resolve_lines(struct work *work, struct batch *batch)
{
	const struct pfs_pathpipe *pipe = work->pipe;
	const struct pfs_resolve_lines *lines = &batch->lines;
	const uint64_t began = pfs_now_ns();
	int error = ENDED;

	while (sem_wait(&work->resolving) && errno == EINTR)
		continue;
	batch->waited_ns += pfs_now_ns() - began;
	if (!is_over(work, batch->number))
		error = pipe->resolve(pipe->arg, lines->inos, lines->paths, lines->n);
	(void)sem_post(&work->resolving);
	return error;
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

/* Reserves the next bytes for the answers, and lets others have their turn before these are there.
 */
static int put_lines(struct work *work, struct batch *batch)
{
	struct pfs_pathpipe *pipe = work->pipe;
	const uint64_t offset = pipe->put_bytes;

	for (size_t i = 0; i < batch->answers.n_parts; i++)
		pipe->put_bytes += batch->answers.parts[i].iov_len;
	if (batch->at + batch->used == batch->size)
		pass_turn(work, batch);
	return pipe->put(pipe->arg, &batch->answers, offset);
}

static int write_lines(struct work *work, struct batch *batch)
{
	struct pfs_pathpipe *pipe = work->pipe;
	const struct pfs_resolve_lines *lines = &batch->lines;
	size_t found = 0;

	while (found < lines->n && lines->inos[found])
		found++;
	if (!pipe->show)
		PFS_TRY(pfs_resolve_lines_print(lines, &batch->answers, true, pipe->delimiter,
						&no_others));
	wait_for_turn(work, batch);
	if (is_over(work, batch->number))
		return ENDED;
	pipe->missing |= found < lines->n;
	if (pipe->show)
		return pipe->show(pipe->arg, lines->inos, lines->paths, lines->n);
	if (pipe->put)
		return put_lines(work, batch);
	return write_all(pipe->out, batch->answers.parts, batch->answers.n_parts);
}

static int (*const steps[])(struct work *work, struct batch *batch) = {
	[PFS_PATHPIPE_READ] = find_lines,
	[PFS_PATHPIPE_RESOLVE] = resolve_lines,
	[PFS_PATHPIPE_WRITE] = write_lines,
};

/* Returns false if the batch is not answered to its end. */
static bool take_steps(struct work *work, struct batch *batch)
{
	for (unsigned stage = 0; stage < PFS_PATHPIPE_STAGES; stage++) {
		const uint64_t began = pfs_now_ns(), waited = batch->waited_ns;
		int error = steps[stage](work, batch);

		batch->busy_ns[stage] += pfs_now_ns() - began - (batch->waited_ns - waited);
		if (error) {
			end_before(work, batch->number, stage, error);
			return false;
		}
	}
	return true;
}

/* Frees the memory of a batch that was larger than others. */
static void release(const struct work *work, struct batch *batch)
{
	if (batch->capacity <= work->batch + 2)
		return;
	free(batch->text);
	batch->text = NULL;
	batch->capacity = 0;
	pfs_resolve_text_free(&batch->answers);
}

static void answer_batch(struct work *work, struct batch *batch)
{
	for (batch->at = 0; batch->at < batch->size; batch->at += batch->used)
		if (!take_steps(work, batch))
			break;
	wait_for_turn(work, batch);
	release(work, batch);
	pass_turn(work, batch);
}

/* ---- threads ---- */

static void work_as_thread(void *arg, size_t from PFS_UNUSED, size_t to PFS_UNUSED)
{
	struct work *work = arg;
	struct batch batch = {0};

	while (take_batch(work, &batch))
		answer_batch(work, &batch);
	pfs_resolve_lines_free(&batch.lines);
	pfs_resolve_text_free(&batch.answers);
	free(batch.text);
	PFS_LOCKED(&work->lock);
	for (unsigned stage = 0; stage < PFS_PATHPIPE_STAGES; stage++)
		work->pipe->busy_ns[stage] += batch.busy_ns[stage];
}

/* Some threads are more than processors, so that these have work while threads wait for their turn
 * or for a disk. */
static unsigned threads_for(const struct pfs_pathpipe *pipe)
{
	const unsigned processors = (unsigned)PFS_MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L);
	const unsigned threads = processors + processors / 4 + 1;

	if (pipe->threads)
		return pipe->threads;
	return pipe->at_once ? PFS_MIN(threads, THREADS_ASKED) : threads;
}

/* Returns true if threads may read `in` at several places at once. A file whose size is said to be
 * 0 may be one of /proc, which is made anew where it is read again. */
static bool is_read_in_pieces(const struct pfs_pathpipe *pipe)
{
	struct stat in;

	return !fstat(pipe->in, &in) && S_ISREG(in.st_mode) && in.st_size > 0;
}

static int run_threads(struct work *work, struct pfs_pool *pool)
{
	const unsigned n = work->n_threads = pfs_pool_threads(pool);

	work->turns = calloc(n, sizeof(*work->turns));
	if (!work->turns)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		(void)pthread_cond_init(&work->turns[i], NULL);
	pfs_pool_run(pool, n, 1, work_as_thread, work);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_cond_destroy(&work->turns[i]);
	free(work->turns);
	return 0;
}

int pfs_pathpipe_run(struct pfs_pathpipe *pipe)
{
	struct work work = {.pipe = pipe,
			    .batch = pipe->at_once ? BATCH_ASKED : BATCH,
			    .in_pieces = is_read_in_pieces(pipe),
			    .end = SIZE_MAX};
	struct pfs_pool *pool;
	int error;

	PFS_TRY(pfs_pool_open(&pool, threads_for(pipe), 0));
	if (pipe->batch)
		work.batch = pipe->batch;
	pipe->missing = false;
	pipe->put_bytes = 0;
	memset(pipe->errors, 0, sizeof(pipe->errors));
	(void)pthread_mutex_init(&work.reading, NULL);
	(void)sem_init(&work.resolving, 0, pipe->at_once ? pipe->at_once : SEM_VALUE_MAX);
	(void)pthread_mutex_init(&work.lock, NULL);
	error = run_threads(&work, pool);
	for (unsigned stage = 0; stage < PFS_PATHPIPE_STAGES && !error; stage++)
		error = pipe->errors[stage] ? -ECANCELED : 0;
	pfs_pool_close(pool);
	free(work.rest);
	(void)pthread_mutex_destroy(&work.lock);
	(void)sem_destroy(&work.resolving);
	(void)pthread_mutex_destroy(&work.reading);
	return error;
}
