/* SPDX-License-Identifier: MIT */
/* Pieces are written into a ring of buffers, by whoever is free, and leave it in order.  The caller's
 * thread gives them away, and writes, too, while the next one to go is not ready. */
#include "fs/nodes/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/names.h"
#include "fs/nodes/scan_impl.h"
#include "fs/tree/tree_impl.h"

#define PIECE_SLOTS 4096u /* some 300 KB, which stay in a core's cache */
#define RING	    16u
#define THREADS	    256u /* at most */
#define PRIME_BYTES 22u	 /* 20 digits and a tab */
#define COPIED	    32u	 /* bytes at a time */

struct text {
	char *bytes;
	size_t size, capacity;
};

struct listing {
	const struct pfs_image *image;
	const struct pfs_list_sink *sink;
	const uint32_t *slots; /* NULL: all from the first on that have a node */
	uint32_t first;
	size_t n_slots;
	pthread_t caller;
	pthread_mutex_t lock;
	pthread_cond_t is_ready, has_room; /* for the caller; for the others */
	/* protected by lock */
	size_t n, taken, sent; /* pieces */
	bool ready[RING];
	int error;
	struct text ring[RING]; /* each one's who has taken its piece, or the caller's once it is ready */
};

/* ---- a piece ---- */

/* A thread's: the path of the directory that the last node lay in, with a slash at its end. */
struct writer {
	struct pfs_trail trail;
	struct text above;
	uint32_t directory;
};

static void writer_finish(struct writer *writer)
{
	pfs_trail_finish(&writer->trail);
	free(writer->above.bytes);
}

/* Copies n bytes and up to COPIED more, whatever they are. */
static void copy_short(char *to, const char *from, size_t n)
{
	for (size_t i = 0; i < n; i += COPIED)
		memcpy(to + i, from + i, COPIED);
}

static int go_to(struct writer *writer, const struct pfs_image *image, uint32_t directory)
{
	struct text *above = &writer->above;
	size_t len;

	PFS_TRY(pfs_trail_to(&writer->trail, image, directory, true));
	len = writer->trail.end[writer->trail.n - 1];
	PFS_TRY(pfs_grow(&above->bytes, &above->capacity, len + 1 + COPIED, 1));
	if (len)
		memcpy(above->bytes, writer->trail.bytes, len);
	above->bytes[len] = '/';
	above->size = len + 1;
	writer->directory = directory;
	return 0;
}

static int add_path(struct writer *writer, const struct listing *l, struct text *text, uint32_t slot)
{
	const struct pfs_image *image = l->image;
	uint32_t directory = slot == image->root ? slot : image->parent[slot];
	const char *name;
	size_t len;

	if (directory != writer->directory)
		PFS_TRY(go_to(writer, image, directory));
	PFS_TRY(pfs_grow(&text->bytes, &text->capacity,
			 text->size + PRIME_BYTES + writer->above.size + PFS_NAME_MAX + COPIED + 1,
			 1));
	if (l->sink->flags & PFS_LIST_INO)
		text->size += (size_t)snprintf(text->bytes + text->size, PRIME_BYTES + 1,
					       "%" PRIu64 "\t", image->prime[slot]);
	copy_short(text->bytes + text->size, writer->above.bytes, writer->above.size);
	text->size += writer->above.size;
	if (slot != image->root) {
		name = pfs_names_get(image->names, image->name[slot], &len);
		copy_short(text->bytes + text->size, name, len);
		text->size += len;
	}
	text->bytes[text->size++] = l->sink->flags & PFS_LIST_ZERO ? '\0' : '\n';
	return 0;
}

static int write_piece(struct writer *writer, struct listing *l, size_t piece)
{
	struct text *text = &l->ring[piece % RING];
	size_t from = piece * PIECE_SLOTS, to = PFS_MIN(from + PIECE_SLOTS, l->n_slots);

	text->size = 0;
	for (size_t i = from; i < to; i++) {
		uint32_t slot = l->slots ? l->slots[i] : l->first + (uint32_t)i;

		if (l->slots || pfs_image_is_live(l->image, slot))
			PFS_TRY(add_path(writer, l, text, slot));
	}
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

/* One thread's part, whatever the numbers of it. */
static void work(void *context, size_t from PFS_UNUSED, size_t to PFS_UNUSED)
{
	struct listing *l = context;
	struct writer writer = {.directory = PFS_NO_SLOT};
	bool sends = pthread_equal(pthread_self(), l->caller);

	(void)pthread_mutex_lock(&l->lock);
	while (!l->error && (sends ? l->sent : l->taken) < l->n) {
		if (sends && l->ready[l->sent % RING])
			send_next(l);
		else if (l->taken < l->n && l->taken - l->sent < RING)
			write_next(&writer, l);
		else
			(void)pthread_cond_wait(sends ? &l->is_ready : &l->has_room, &l->lock);
	}
	if (l->taken == l->n) /* nobody waits for room any more */
		(void)pthread_cond_broadcast(&l->has_room);
	(void)pthread_mutex_unlock(&l->lock);
	writer_finish(&writer);
}

static int list(struct pfs_tree *tree, struct listing *l)
{
	l->image = &tree->image;
	l->caller = pthread_self();
	l->n = pfs_div_round_up(l->n_slots, PIECE_SLOTS);
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

int pfs_list_range(struct pfs_tree *tree, uint32_t from, uint32_t to,
		   const struct pfs_list_sink *sink)
{
	return list(tree, &(struct listing){.sink = sink, .first = from, .n_slots = to - from});
}

int pfs_list_slots(struct pfs_tree *tree, const uint32_t *slots, size_t n,
		   const struct pfs_list_sink *sink)
{
	return list(tree, &(struct listing){.sink = sink, .slots = slots, .n_slots = n});
}
