/* SPDX-License-Identifier: MIT */
/* The pieces kept follow one another; the source goes on behind the last.  Marks say where rows
 * begin in the text, as far as it has been seen.
 *
 * The first of the makers asks the source, and alone changes pieces and marks, with `lock` where
 * others may look at the same; a piece that is being made is not among those that they see.  The
 * other makers wait until they are the first, and look meanwhile whether somebody still waits for
 * them.  `gone` is called with the lock. */
#include "fs/query/output/stream.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/search.h"
#include "base/thread.h"

#define PIECES	 64u /* kept at most */
#define THREADS	 16u /* that make what comes next, of all streams */
#define LOOK_MS	 10  /* after which a maker who waits looks whether he is to go on waiting */

struct piece {
	char *bytes;
	size_t size, capacity;
	uint64_t from; /* offset of the first byte */
};

struct mark {
	uint64_t row, offset;
};

/* Who asks the source, or is going to. */
struct maker {
	struct maker *next;
};

struct pfs_stream {
	struct pfs_stream_source source;
	size_t memory;
	pthread_mutex_t lock;
	pthread_cond_t is_first; /* another maker is */
	struct maker *makers, **last_maker; /* in the order in which they came; protected by lock */
	struct piece pieces[PIECES]; /* a ring */
	size_t first, n;
	size_t kept;	  /* bytes in them */
	struct mark next; /* where the source goes on */
	struct mark *marks; /* ascending, of all text seen but for its beginning */
	struct mark last;   /* of them */
	size_t n_marks, marks_capacity;
	uint64_t size;		/* set before */
	_Atomic bool is_known; /* where it ends; set with the lock */
	/* The thread that goes ahead; all protected by lock. */
	pthread_t ahead;
	pthread_cond_t is_wanted;
	bool has_ahead, no_ahead, wants, stops;
	uint64_t read_to; /* by who read last */
};

static atomic_uint n_threads;

int pfs_stream_open(struct pfs_stream **out, const struct pfs_stream_source *source, size_t memory)
{
	struct pfs_stream *stream = calloc(1, sizeof(*stream));
	pthread_condattr_t attr;

	*out = stream;
	if (!stream) {
		source->close(source->arg);
		return -ENOMEM;
	}
	stream->source = *source;
	stream->memory = memory;
	stream->last_maker = &stream->makers;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&stream->is_first, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&stream->lock, NULL);
	(void)pthread_cond_init(&stream->is_wanted, NULL);
	return 0;
}

static void stop_ahead(struct pfs_stream *stream)
{
	if (!stream->has_ahead)
		return;
	(void)pthread_mutex_lock(&stream->lock);
	stream->stops = true;
	(void)pthread_cond_signal(&stream->is_wanted);
	(void)pthread_mutex_unlock(&stream->lock);
	(void)pthread_join(stream->ahead, NULL);
	(void)atomic_fetch_sub(&n_threads, 1);
}

void pfs_stream_close(struct pfs_stream *stream)
{
	if (!stream)
		return;
	stop_ahead(stream);
	stream->source.close(stream->source.arg);
	for (size_t i = 0; i < PIECES; i++)
		free(stream->pieces[i].bytes);
	free(stream->marks);
	(void)pthread_cond_destroy(&stream->is_wanted);
	(void)pthread_cond_destroy(&stream->is_first);
	(void)pthread_mutex_destroy(&stream->lock);
	free(stream);
}

/* ---- makers ---- */

/* The caller holds the lock. */
static void remove_maker(struct pfs_stream *stream, const struct maker *maker)
{
	struct maker **link = &stream->makers;

	while (*link != maker)
		link = &(*link)->next;
	*link = maker->next;
	if (!maker->next)
		stream->last_maker = link;
	(void)pthread_cond_broadcast(&stream->is_first);
}

/* Waits until it is the first maker, which it is until end_making.  -EINTR: nobody waits for it any
 * more. */
static int begin_making(struct pfs_stream *stream, struct maker *maker,
			const struct pfs_stream_wait *wait)
{
	PFS_LOCKED(&stream->lock);

	maker->next = NULL;
	*stream->last_maker = maker;
	stream->last_maker = &maker->next;
	while (stream->makers != maker) {
		const struct timespec end = pfs_clock_in_ms(CLOCK_MONOTONIC, LOOK_MS);

		if (wait && wait->gone(wait->arg)) {
			remove_maker(stream, maker);
			return -EINTR;
		}
		(void)pthread_cond_timedwait(&stream->is_first, &stream->lock, &end);
	}
	return 0;
}

static void end_making(struct pfs_stream *stream, const struct maker *maker)
{
	PFS_LOCKED(&stream->lock);

	remove_maker(stream, maker);
}

/* ---- with the lock ---- */

static struct piece *piece_at(struct pfs_stream *stream, size_t i)
{
	return &stream->pieces[(stream->first + i) % PIECES];
}

static void drop_first(struct pfs_stream *stream)
{
	stream->kept -= piece_at(stream, 0)->size;
	stream->first = (stream->first + 1) % PIECES;
	stream->n--;
}

static int add_bytes(void *arg, const char *bytes, size_t size)
{
	struct piece *piece = arg;

	PFS_TRY(pfs_grow(&piece->bytes, &piece->capacity, piece->size + size, 1));
	memcpy(piece->bytes + piece->size, bytes, size);
	piece->size += size;
	return 0;
}

/* Makes sure that the next add_mark has room. */
static int reserve_mark(struct pfs_stream *stream)
{
	if (pfs_grow(&stream->marks, &stream->marks_capacity, stream->n_marks + 1,
		     sizeof(*stream->marks)))
		return -ENOMEM;
	return stream->marks ? 0 : -ENOMEM;
}

static void add_mark(struct pfs_stream *stream, struct mark mark)
{
	stream->marks[stream->n_marks++] = mark;
	stream->last = mark;
}

static void end_at(struct pfs_stream *stream, uint64_t size)
{
	PFS_VERIFY_CHECK(!stream->is_known || stream->size == size);
	if (stream->is_known)
		return;
	stream->size = size;
	atomic_store(&stream->is_known, true);
}

static bool is_at_end(const struct pfs_stream *stream)
{
	return stream->is_known && stream->next.offset == stream->size;
}

/* Makes ready where the next piece is put. */
static int prepare_piece(struct pfs_stream *stream, struct piece **piece)
{
	PFS_LOCKED(&stream->lock);

	PFS_TRY(reserve_mark(stream));
	if (stream->next.row >= stream->last.row + PFS_STREAM_MARKED)
		add_mark(stream, stream->next);
	if (stream->n == PIECES)
		drop_first(stream);
	*piece = piece_at(stream, stream->n);
	(*piece)->size = 0;
	(*piece)->from = stream->next.offset;
	return 0;
}

static void add_piece(struct pfs_stream *stream, const struct piece *piece, uint64_t row)
{
	PFS_LOCKED(&stream->lock);

	while (stream->n && stream->kept > stream->memory)
		drop_first(stream);
	stream->n++;
	stream->kept += piece->size;
	stream->next = (struct mark){row, piece->from + piece->size};
}

/* One more piece, by the first maker alone; 0: there is none. */
static int make_next(struct pfs_stream *stream)
{
	uint64_t row = stream->next.row;
	struct piece *piece;
	int error;

	if (is_at_end(stream))
		return 0;
	PFS_TRY(prepare_piece(stream, &piece));
	error = stream->source.next(stream->source.arg, &row, add_bytes, piece);
	if (error > 0) {
		add_piece(stream, piece, row);
	} else if (error == 0) {
		PFS_LOCKED(&stream->lock);
		end_at(stream, stream->next.offset);
	}
	return error;
}

/* The last one that is not behind the offset. */
static struct mark mark_before(const struct pfs_stream *stream, uint64_t offset)
{
	uint64_t behind = PFS_SEARCH(i, 0, stream->n_marks, stream->marks[i].offset <= offset);

	return behind ? stream->marks[behind - 1] : (struct mark){0, 0};
}

/* The source goes on at the mark next before the offset, unless that is on its way there. */
static void turn_to(struct pfs_stream *stream, uint64_t offset)
{
	struct mark mark = mark_before(stream, offset);

	PFS_LOCKED(&stream->lock);

	if (offset >= stream->next.offset && mark.offset <= stream->next.offset)
		return;
	while (stream->n)
		drop_first(stream);
	stream->next = mark;
}

/* Copies what is kept from the offset on, with the lock; returns how many bytes. */
static size_t copy_kept(struct pfs_stream *stream, char *to, size_t size, uint64_t offset)
{
	size_t done = 0;

	for (size_t i = 0; i < stream->n && done < size; i++) {
		const struct piece *piece = piece_at(stream, i);
		size_t at = (size_t)(offset - piece->from), some;

		if (offset < piece->from || at >= piece->size)
			continue;
		some = PFS_MIN(size - done, piece->size - at);
		memcpy(to + done, piece->bytes + at, some);
		done += some;
		offset += some;
	}
	return done;
}

/* The pieces up to the offset, or some of them: others who read get their turn at each mark.  1: it
 * is kept, or behind the end. */
static int approach(struct pfs_stream *stream, uint64_t offset, const struct pfs_stream_wait *wait)
{
	size_t marks = stream->n_marks;
	int error = 1;

	turn_to(stream, offset);
	while (error > 0 && offset >= stream->next.offset && stream->n_marks <= marks + 1) {
		if (wait && wait->gone(wait->arg))
			return -EINTR;
		error = make_next(stream);
	}
	if (error < 0)
		return error;
	return error == 0 || offset < stream->next.offset;
}

/* ---- going ahead ---- */

/* Returns true if the next piece has room beside what is still to be read. The caller holds the
 * lock. */
static bool is_close(const struct pfs_stream *stream)
{
	uint64_t left = stream->next.offset - stream->read_to;

	return stream->read_to <= stream->next.offset && left <= stream->memory / 2 &&
	       !is_at_end(stream);
}

static void *go_ahead(void *arg)
{
	struct pfs_stream *stream = arg;
	struct maker maker;

	(void)pthread_mutex_lock(&stream->lock);
	while (!stream->stops) {
		bool is_wanted = stream->wants && is_close(stream);

		stream->wants = false;
		if (!is_wanted) {
			(void)pthread_cond_wait(&stream->is_wanted, &stream->lock);
			continue;
		}
		(void)pthread_mutex_unlock(&stream->lock);
		(void)begin_making(stream, &maker, NULL);
		(void)make_next(stream); /* what fails is told to who asks for it */
		end_making(stream, &maker);
		(void)pthread_mutex_lock(&stream->lock);
	}
	(void)pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* Notes that somebody has read from there to there, and may go on. The caller holds the lock. */
static void note_read(struct pfs_stream *stream, uint64_t from, uint64_t to)
{
	static const struct pfs_thread_kind kind = {"pfs-ahead", PFS_THREAD_NICE, PFS_THREAD_STACK};
	bool goes_on = from == stream->read_to;

	stream->read_to = to;
	if (!goes_on || to < stream->memory || stream->no_ahead || !is_close(stream))
		return;
	if (!stream->has_ahead) {
		stream->no_ahead = atomic_fetch_add(&n_threads, 1) >= THREADS ||
				   pfs_thread_start(&stream->ahead, &kind, go_ahead, stream) != 0;
		stream->has_ahead = !stream->no_ahead;
		if (stream->no_ahead)
			(void)atomic_fetch_sub(&n_threads, 1);
	}
	stream->wants = true;
	(void)pthread_cond_signal(&stream->is_wanted);
}

/* ---- */

static size_t copy_if_kept(struct pfs_stream *stream, char *data, size_t size, uint64_t offset)
{
	size_t n;
	PFS_LOCKED(&stream->lock);

	n = copy_kept(stream, data, size, offset);
	if (n)
		note_read(stream, offset, offset + n);
	return n;
}

ssize_t pfs_stream_read_kept(struct pfs_stream *stream, void *data, size_t size, uint64_t offset)
{
	size_t n;
	PFS_LOCKED(&stream->lock);

	n = copy_kept(stream, data, size, offset);
	if (n < size && !(stream->is_known && offset + n >= stream->size))
		return -EAGAIN;
	if (n)
		note_read(stream, offset, offset + n);
	return (ssize_t)n;
}

static bool is_kept(struct pfs_stream *stream, uint64_t offset)
{
	char byte;
	PFS_LOCKED(&stream->lock);

	return copy_kept(stream, &byte, 1, offset);
}

static ssize_t read_some(struct pfs_stream *stream, char *data, size_t size, uint64_t offset,
			 const struct pfs_stream_wait *wait, bool *is_there)
{
	size_t n = copy_if_kept(stream, data, size, offset);
	struct maker maker;
	int error;

	*is_there = true;
	if (n)
		return (ssize_t)n;
	PFS_TRY(begin_making(stream, &maker, wait));
	error = is_kept(stream, offset) ? 1 : approach(stream, offset, wait);
	if (error >= 0)
		n = copy_if_kept(stream, data, size, offset); /* before others drop it */
	end_making(stream, &maker);
	*is_there = error > 0;
	return error < 0 ? error : (ssize_t)n;
}

ssize_t pfs_stream_read(struct pfs_stream *stream, void *data, size_t size, uint64_t offset,
			const struct pfs_stream_wait *wait)
{
	size_t done = 0;

	while (done < size) {
		bool is_there;
		ssize_t n = read_some(stream, (char *)data + done, size - done, offset + done, wait,
				      &is_there);

		if (n == -EINTR && done)
			break;
		if (n < 0)
			return n;
		if (n == 0 && is_there) /* the end */
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* The next rows from the last mark on; 0: these were the last. */
static int measure_next(struct pfs_stream *stream)
{
	struct mark mark = stream->last;
	uint64_t size, before = mark.row;
	int error;

	PFS_TRY(reserve_mark(stream));
	error = stream->source.measure(stream->source.arg, &mark.row, &size, PFS_STREAM_MARKED);
	if (error > 0) {
		mark.offset += size;
		add_mark(stream, mark);
	}
	if (error == 0 || (error > 0 && mark.row - before < PFS_STREAM_MARKED))
		end_at(stream, mark.offset);
	return error;
}

/* 1: the size is not known yet. */
static int measure_some(struct pfs_stream *stream, const struct pfs_stream_wait *wait)
{
	struct maker maker;
	int error = 0;

	PFS_TRY(begin_making(stream, &maker, wait));
	if (!stream->is_known)
		error = wait && wait->gone(wait->arg) ? -EINTR : measure_next(stream);
	end_making(stream, &maker);
	return error;
}

int pfs_stream_measure(struct pfs_stream *stream, const struct pfs_stream_wait *wait)
{
	int error;

	do
		error = measure_some(stream, wait);
	while (error > 0);
	return error;
}

static bool is_gone(void *arg PFS_UNUSED)
{
	return true;
}

void pfs_stream_measure_some(struct pfs_stream *stream)
{
	static const struct pfs_stream_wait never = {is_gone, NULL};
	struct maker maker;

	if (begin_making(stream, &maker, &never))
		return;
	if (!stream->is_known)
		(void)measure_next(stream); /* what fails is told to who asks for it */
	end_making(stream, &maker);
}

int pfs_stream_begin(struct pfs_stream *stream, const struct pfs_stream_wait *wait)
{
	int error = 1;

	while (error > 0 && stream->next.offset < stream->memory) {
		if (wait && wait->gone(wait->arg))
			return -EINTR;
		error = make_next(stream);
	}
	return error < 0 ? error : 0;
}

bool pfs_stream_size(struct pfs_stream *stream, uint64_t *size)
{
	bool is_known = atomic_load(&stream->is_known);

	*size = is_known ? stream->size : 0;
	return is_known;
}
