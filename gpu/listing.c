/* SPDX-License-Identifier: MIT */
/* gpu/listing.c - recursive listings: which nodes in what order; the bytes come from the back end.
 */
#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/engine_impl.h"

struct pfs_listing {
	struct pfs_engine *engine;
	struct pfs_backend *backend;
	struct pfs_path_listing *paths;
	struct pfs_names_view view;
	uint32_t *slots; /* in path order, or NULL */
	size_t n;
	const struct pfs_bitmap *bitmap;
	unsigned flags;
	uint64_t epoch;
	uint64_t done; /* bytes handed out: where to go on if the device fails */
};

/* Lists what of the heap has changed since the last listing: blocks whose stamp is newer, neighbours
 * together, and what was added at the end. */
static int find_changed_names(struct pfs_names_piece **out, size_t *n, const struct pfs_engine *e,
			      const struct pfs_names_view *view)
{
	size_t block = (size_t)PFS_BLOCK_ROWS << view->place_shift;
	size_t known = PFS_MIN(e->names_size, view->heap_size), capacity = 0;

	*n = 0;
	for (size_t from = 0; from < view->heap_size;) {
		size_t to = PFS_MIN(from + block, known);

		if (from >= known)
			to = view->heap_size;
		else if (!view->stamps ||
			 pfs_stamps_of(view->stamps, (uint32_t)(from / block)) <= e->names_clock) {
			from = to;
			continue;
		}
		if (*n && (*out)[*n - 1].to == from) {
			(*out)[*n - 1].to = to;
		} else {
			if (pfs_grow(out, &capacity, *n + 1, sizeof(**out)))
				return -ENOMEM;
			(*out)[(*n)++] = (struct pfs_names_piece){from, to};
		}
		from = to;
	}
	return 0;
}

/* The engine's lock is held. */
static int open_paths(struct pfs_listing *l)
{
	struct pfs_engine *e = l->engine;
	struct pfs_names_piece *pieces PFS_FREE = NULL;
	size_t n_pieces;
	struct pfs_paths_request request = {
		.columns = &e->columns,
		.view = &l->view,
		.slots = l->slots,
		.n = l->n,
		.n_words = l->bitmap->words,
		.flags = l->flags,
	};
	int error;

	PFS_TRY(find_changed_names(&pieces, &n_pieces, e, &l->view));
	request.pieces = pieces;
	request.n_pieces = n_pieces;
	do {
		error = pfs_engine_update(e);
		error = error ? error : pfs_bitmap_here(l->bitmap);
		if (error)
			continue;
		request.bits = l->bitmap->bits;
		request.names_anew = e->names_anew || e->names_generation != l->view.generation;
		request.renamed = e->renamed;
		request.n_renamed = e->n_renamed;
		error = e->backend->ops->paths_open(e->backend, &l->paths, &request);
	} while (pfs_engine_leave_device(e, error));
	if (error == 0) {
		l->backend = e->backend;
		e->names_generation = l->view.generation;
		e->names_clock = l->view.clock;
		e->names_size = l->view.heap_size;
		e->names_anew = false;
		e->n_renamed = 0;
	}
	return error;
}

static int order_slots(struct pfs_listing *l, uint64_t count)
{
	struct pfs_cursor cursor = {0};
	uint32_t slot;
	int error;

	l->slots = malloc((count + 1) * sizeof(*l->slots));
	if (!l->slots)
		return -ENOMEM;
	while ((error = pfs_cursor_next(&cursor, l->bitmap, &slot)) == 1 && l->n < count)
		if (pfs_slot_live(&l->engine->columns, slot))
			l->slots[l->n++] = slot;
	pfs_cursor_finish(&cursor);
	return error < 0 ? error : pfs_path_order(&l->engine->columns, &l->view, l->slots, l->n);
}

int pfs_listing_open(struct pfs_listing **out, const struct pfs_bitmap *bitmap,
		     const struct pfs_names_view *view, unsigned flags)
{
	struct pfs_engine *e = bitmap->engine;
	struct pfs_listing *l = calloc(1, sizeof(*l));
	uint64_t count = 0;
	int error = 0;

	if (!l)
		return -ENOMEM;
	*l = (struct pfs_listing){.engine = e, .bitmap = bitmap, .view = *view, .flags = flags};
	if (view->n_slots < e->columns.n_slots)
		error = -EINVAL;
	if (error == 0 && flags & PFS_LISTING_PATH_ORDER) {
		error = pfs_bitmap_count(bitmap, &count);
		error = error ? error : order_slots(l, count);
	}
	if (error == 0) {
		PFS_LOCKED(&e->lock);
		l->epoch = e->epoch;
		error = open_paths(l);
	}
	if (error) {
		pfs_listing_close(l);
		return error;
	}
	*out = l;
	return 0;
}

/* On a new back end: pieces are cut differently there, so what was handed out is skipped by size.
 */
static int reopen(struct pfs_listing *l, const char **bytes, size_t *size)
{
	uint64_t skip = l->done;
	int error = open_paths(l);

	if (error)
		return error;
	for (;;) {
		error = l->backend->ops->paths_next(l->backend, l->paths, bytes, size);
		if (error != 1 || skip < *size)
			break;
		skip -= *size;
	}
	if (error == 1) {
		*bytes += skip;
		*size -= skip;
	}
	return error;
}

int pfs_listing_next(struct pfs_listing *l, const char **bytes, size_t *size)
{
	struct pfs_engine *e = l->engine;
	PFS_LOCKED(&e->lock);
	int error = 0;

	if (l->epoch != e->epoch)
		return -ESTALE;
	if (l->backend == e->backend)
		error = l->backend->ops->paths_next(l->backend, l->paths, bytes, size);
	if (l->backend != e->backend || pfs_engine_leave_device(e, error)) {
		l->backend->ops->paths_close(l->backend, l->paths);
		l->paths = NULL;
		error = reopen(l, bytes, size);
	}
	if (error == 1)
		l->done += *size;
	return error;
}

void pfs_listing_close(struct pfs_listing *l)
{
	if (!l)
		return;
	if (l->paths) {
		PFS_LOCKED(&l->engine->lock);
		l->backend->ops->paths_close(l->backend, l->paths);
	}
	free(l->slots);
	free(l);
}
