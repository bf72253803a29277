/* SPDX-License-Identifier: MIT */
/* Pieces are written into a ring of buffers, by whoever is free, and leave it in order.  The
 * caller's thread gives them away, and writes, too, while the next one to go is not ready. */
#include "fs/nodes/list.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "fs/image/names.h"
#include "fs/image/old_places.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define PIECE_SLOTS 4096u /* some 300 KB, which stay in a core's cache; less where there are few */
#define PIECE_LEAST 512u
#define RING	    16u
#define THREADS	    256u /* at most */
#define PRIME_BYTES 22u	 /* 20 digits and a tab */
#define COPIED	    32u	 /* bytes at a time */
#define LISTED_NS   UINT64_C(2000000) /* after which no thread takes another piece */

struct text {
	char *bytes;
	size_t size, capacity;
};

struct listing {
	const struct pfs_image *image;
	const struct pfs_old_places *past; /* NULL: the present is as it was */
	const struct pfs_list_sink *sink;
	const uint32_t *slots;
	size_t n_slots, piece_slots;
	uint64_t until_ns;
	pthread_t caller;
	pthread_mutex_t lock;
	pthread_cond_t is_ready, has_room; /* for the caller; for the others */
	/* protected by lock */
	size_t n, taken, sent; /* pieces */
	bool ready[RING];
	int error;
	struct text ring[RING]; /* each one's who has taken its piece, or the caller's once it is
				   ready */
};

/* ---- a piece ---- */

/* A thread's: the path of the directory that the last node lay in, with a slash at its end. */
struct writer {
	const struct pfs_image *image;
	const struct pfs_old_places *past; /* NULL: nothing has changed since */
	struct pfs_trail trail;
	uint32_t *way; /* in the past, from a directory up */
	size_t way_capacity;
	struct text above;
	uint32_t directory;
};

static void writer_finish(struct writer *writer)
{
	pfs_trail_finish(&writer->trail);
	free(writer->way);
	free(writer->above.bytes);
}

/* Copies n bytes and up to COPIED more, whatever they are. */
static void copy_short(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += COPIED)
		memcpy(to + i, from + i, COPIED);
}

static int add_above(struct text *above, const char *name, size_t len)
{
	PFS_TRY(pfs_grow(&above->bytes, &above->capacity, above->size + len + 1 + COPIED, 1));
	memcpy(above->bytes + above->size, name, len);
	above->bytes[above->size + len] = '/';
	above->size += len + 1;
	return 0;
}

/* In the past a directory may have lain elsewhere, and so may those above it. */
static int go_back_to(struct writer *writer, uint32_t directory)
{
	struct pfs_old_place place;
	uint32_t slot = directory;
	size_t n = 0;

	for (; slot != writer->image->root; slot = place.parent) {
		PFS_TRY(pfs_grow(&writer->way, &writer->way_capacity, n + 1, sizeof(*writer->way)));
		writer->way[n++] = slot;
		pfs_old_places_find(writer->past, &place, slot);
	}
	writer->above.size = 0;
	PFS_TRY(add_above(&writer->above, "", 0));
	while (n > 0) {
		pfs_old_places_find(writer->past, &place, writer->way[--n]);
		PFS_TRY(add_above(&writer->above, place.name, place.len));
	}
	writer->directory = directory;
	return 0;
}

static int go_to(struct writer *writer, uint32_t directory)
{
	struct text *above = &writer->above;
	size_t len;

	PFS_TRY(pfs_trail_to(&writer->trail, writer->image, directory, true));
	len = writer->trail.end[writer->trail.n - 1];
	above->size = 0;
	PFS_TRY(add_above(above, writer->trail.bytes ? writer->trail.bytes : "", len));
	writer->directory = directory;
	return 0;
}

static void find_place(const struct writer *writer, struct pfs_old_place *place, uint32_t slot)
{
	const struct pfs_image *image = writer->image;

	if (writer->past) {
		pfs_old_places_find(writer->past, place, slot);
		return;
	}
	place->is_live = pfs_image_is_live(image, slot);
	place->parent = image->parent[slot];
	place->prime = image->prime[slot];
	place->name = pfs_names_get(image->names, image->name[slot], &place->len);
}

static int add_path(struct writer *writer, const struct listing *l, struct text *text,
		    uint32_t slot)
{
	const struct pfs_image *image = writer->image;
	struct pfs_old_place place;
	uint32_t directory;

	find_place(writer, &place, slot);
	if (!place.is_live)
		return 0;
	directory = slot == image->root ? slot : place.parent;
	if (directory != writer->directory)
		PFS_TRY(writer->past ? go_back_to(writer, directory) : go_to(writer, directory));
	PFS_TRY(pfs_grow(&text->bytes, &text->capacity,
			 text->size + PRIME_BYTES + writer->above.size + PFS_NAME_MAX + COPIED + 1,
			 1));
	if (l->sink->flags & PFS_LIST_INO)
		text->size += (size_t)snprintf(text->bytes + text->size, PRIME_BYTES + 1,
					       "%" PRIu64 "\t", place.prime);
	copy_short(text->bytes + text->size, writer->above.bytes, writer->above.size);
	text->size += writer->above.size;
	if (slot != image->root) {
		copy_short(text->bytes + text->size, place.name, place.len);
		text->size += place.len;
	}
	text->bytes[text->size++] = l->sink->flags & PFS_LIST_ZERO ? '\0' : '\n';
	return 0;
}

static int write_piece(struct writer *writer, struct listing *l, size_t piece)
{
	struct text *text = &l->ring[piece % RING];
	size_t from = piece * l->piece_slots, to = PFS_MIN(from + l->piece_slots, l->n_slots);

	text->size = 0;
	for (size_t i = from; i < to; i++)
		PFS_TRY(add_path(writer, l, text, l->slots[i]));
	return 0;
}

/* ---- all of them; l->lock is held, but not while a piece is written or given away ---- */

static void fail(struct listing *l, int error)
{
	l->error = error;
	(void)pthread_cond_broadcast(&l->has_room);
	(void)pthread_cond_signal(&l->is_ready);
}

static void write_next(struct writer *writer, struct listing *l)
{
	size_t piece = l->taken++;
	int error;

	(void)pthread_mutex_unlock(&l->lock);
	error = write_piece(writer, l, piece);
	(void)pthread_mutex_lock(&l->lock);
	l->ready[piece % RING] = true;
	if (error)
		fail(l, error);
	else if (piece == l->sent)
		(void)pthread_cond_signal(&l->is_ready);
}

static void send_next(struct listing *l)
{
	const struct text *text = &l->ring[l->sent % RING];
	int error = 0;

	(void)pthread_mutex_unlock(&l->lock);
	if (text->size)
		error = l->sink->fn(l->sink->arg, text->bytes, text->size);
	(void)pthread_mutex_lock(&l->lock);
	l->ready[l->sent++ % RING] = false;
	if (error)
		fail(l, error);
	else if (l->taken < l->n)
		(void)pthread_cond_signal(&l->has_room);
}

/* Called by the thread that asked: when its time is over, what nobody has taken is left. */
static void look_at_clock(struct listing *l)
{
	if (!l->taken || l->taken == l->n || pfs_now_ns() < l->until_ns)
		return;
	l->n = l->taken;
	(void)pthread_cond_broadcast(&l->has_room);
}

/* One thread's part, whatever the numbers of it. */
static void work(void *context, size_t from PFS_UNUSED, size_t to PFS_UNUSED)
{
	struct listing *l = context;
	struct writer writer = {.image = l->image, .past = l->past, .directory = PFS_NO_SLOT};
	bool sends = pthread_equal(pthread_self(), l->caller);

	(void)pthread_mutex_lock(&l->lock);
	while (!l->error && (sends ? l->sent : l->taken) < l->n) {
		if (sends && l->ready[l->sent % RING])
			send_next(l);
		else if (l->taken < l->n && l->taken - l->sent < RING)
			write_next(&writer, l);
		else
			(void)pthread_cond_wait(sends ? &l->is_ready : &l->has_room, &l->lock);
		if (sends)
			look_at_clock(l);
	}
	if (l->taken == l->n) /* nobody waits for room any more */
		(void)pthread_cond_broadcast(&l->has_room);
	(void)pthread_mutex_unlock(&l->lock);
	writer_finish(&writer);
}

static int list(struct pfs_tree *tree, struct listing *l)
{
	l->image = &tree->image;
	l->past = l->sink->past && !pfs_old_places_is_present(l->sink->past) ? l->sink->past : NULL;
	l->caller = pthread_self();
	l->until_ns = pfs_now_ns() + LISTED_NS;
	l->piece_slots = PFS_MIN(PFS_MAX(l->n_slots / RING, PIECE_LEAST), PIECE_SLOTS);
	l->n = pfs_div_round_up(l->n_slots, l->piece_slots);
	(void)pthread_mutex_init(&l->lock, NULL);
	(void)pthread_cond_init(&l->is_ready, NULL);
	(void)pthread_cond_init(&l->has_room, NULL);
	pfs_scan_run(tree, l->n > 1 ? THREADS : 1, 1, work, l);
	work(l, 0, 0); /* the others may have left the last ones to be sent */
	for (size_t i = 0; i < RING; i++)
		free(l->ring[i].bytes);
	(void)pthread_cond_destroy(&l->has_room);
	(void)pthread_cond_destroy(&l->is_ready);
	(void)pthread_mutex_destroy(&l->lock);
	return l->error;
}

int pfs_list_slots(struct pfs_tree *tree, const uint32_t *slots, size_t *n,
		   const struct pfs_list_sink *sink)
{
	struct listing listing = {.sink = sink, .slots = slots, .n_slots = *n};
	int error = list(tree, &listing);

	*n = PFS_MIN(*n, listing.n * listing.piece_slots);
	return error;
}

/* ---- how long they are ---- */

struct measuring {
	const struct pfs_image *image;
	const struct pfs_old_places *past;
	const uint32_t *slots;
	_Atomic uint64_t size;
	_Atomic int error;
};

/* *len = of the directory's path, with a slash at its end. */
static int length_of(struct writer *writer, size_t *len, uint32_t directory)
{
	struct pfs_old_place place;

	*len = 1;
	if (!writer->past) {
		PFS_TRY(pfs_trail_to(&writer->trail, writer->image, directory, false));
		*len += writer->trail.end[writer->trail.n - 1];
		return 0;
	}
	for (uint32_t slot = directory; slot != writer->image->root; slot = place.parent) {
		pfs_old_places_find(writer->past, &place, slot);
		*len += place.len + 1;
	}
	return 0;
}

static int measure_some(struct writer *writer, struct measuring *m, size_t from, size_t to)
{
	uint64_t size = 0;
	size_t above = 0;

	for (size_t i = from; i < to; i++) {
		uint32_t slot = m->slots[i];
		struct pfs_old_place place;

		find_place(writer, &place, slot);
		if (!place.is_live)
			continue;
		if (slot == m->image->root) {
			size += 2;
			continue;
		}
		if (place.parent != writer->directory)
			PFS_TRY(length_of(writer, &above, place.parent));
		writer->directory = place.parent;
		size += above + place.len + 1;
	}
	(void)atomic_fetch_add_explicit(&m->size, size, memory_order_relaxed);
	return 0;
}

static void measure_piece(void *context, size_t from, size_t to)
{
	struct measuring *m = context;
	struct writer writer = {.image = m->image, .past = m->past, .directory = PFS_NO_SLOT};
	int error = measure_some(&writer, m, from, to);

	if (error)
		atomic_store(&m->error, error);
	writer_finish(&writer);
}

int pfs_list_measure(struct pfs_tree *tree, uint64_t *size, const uint32_t *slots, size_t n,
		     const struct pfs_old_places *past)
{
	struct measuring m = {.image = &tree->image, .slots = slots};

	m.past = past && !pfs_old_places_is_present(past) ? past : NULL;
	pfs_scan_run(tree, n, PIECE_SLOTS, measure_piece, &m);
	*size = m.size;
	return m.error;
}
