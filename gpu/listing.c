/* SPDX-License-Identifier: MIT */
/* Which names the back end has to be sent, and what it lists of which nodes; the lines are its own. */
#include "gpu/engine_impl.h"

#include "base/checked.h"
#include "base/cleanup.h"

#define ROOM(n) ((n) + (n) / 8 + 4096) /* for as many, and some more */

/* ---- names ---- */

static int add_piece(struct pfs_names_piece **pieces, size_t *capacity, size_t *n, size_t from, size_t to)
{
	if (*n && (*pieces)[*n - 1].to == from) {
		(*pieces)[*n - 1].to = to;
		return 0;
	}
	PFS_TRY(pfs_grow(pieces, capacity, *n + 1, sizeof(**pieces)));
	(*pieces)[(*n)++] = (struct pfs_names_piece){from, to};
	return 0;
}

/* Lists what was sent and has changed since, blocks whose stamp is newer, and then what comes behind it,
 * up to `to`. */
static int find_pieces(struct pfs_names_piece **pieces, size_t *n, const struct pfs_engine *e,
		       const struct pfs_names_view *view, size_t to)
{
	size_t block = (size_t)PFS_BLOCK_ROWS << view->place_shift, capacity = 0;

	*n = 0;
	for (size_t from = 0; view->stamps && from < e->names_size; from += block)
		if (pfs_stamps_of(view->stamps, (uint32_t)(from / block)) > e->names_clock)
			PFS_TRY(add_piece(pieces, &capacity, n, from, PFS_MIN(from + block, e->names_size)));
	return e->names_size < to ? add_piece(pieces, &capacity, n, e->names_size, to) : 0;
}

static int begin_names(struct pfs_engine *e, const struct pfs_names_view *view)
{
	size_t heap = ROOM(view->heap_size), places = ROOM(view->n_slots);

	e->names_anew = true; /* until there is room */
	PFS_TRY(e->backend->ops->names_reserve(e->backend, heap, places));
	e->names_anew = false;
	e->names_generation = view->generation;
	e->names_clock = view->clock;
	e->names_room = heap;
	e->places_room = places;
	e->names_size = e->places_sent = e->n_renamed = 0;
	return 0;
}

static int send_names(struct pfs_engine *e, const struct pfs_names_view *view, size_t most)
{
	struct pfs_names_piece *pieces PFS_FREE = NULL;
	struct pfs_names_update update = {.view = view, .renamed = e->renamed};
	size_t to;

	if (e->names_anew || e->names_generation != view->generation ||
	    view->heap_size > e->names_room || view->n_slots > e->places_room)
		PFS_TRY(begin_names(e, view));
	to = e->names_size + PFS_MIN(most, view->heap_size - e->names_size);
	PFS_TRY(find_pieces(&pieces, &update.n_pieces, e, view, to));
	update.pieces = pieces;
	update.n_renamed = e->n_renamed;
	update.from = e->places_sent;
	update.to = update.from + PFS_MIN(most / sizeof(*view->place), view->n_slots - update.from);
	PFS_TRY(e->backend->ops->names_update(e->backend, &update));
	e->names_clock = view->clock;
	e->names_size = to;
	e->places_sent = update.to;
	e->n_renamed = 0;
	return e->names_size < view->heap_size || e->places_sent < view->n_slots;
}

int pfs_engine_send_names(struct pfs_engine *e, const struct pfs_names_view *view, size_t most)
{
	PFS_LOCKED(&e->lock);
	int more;

	if (view->n_slots < e->columns.n_slots)
		return -EINVAL;
	do
		more = send_names(e, view, most);
	while (more < 0 && pfs_engine_leave_device(e, more));
	return more;
}

/* ---- lines ---- */

struct giving {
	const struct pfs_listing *listing;
	struct pfs_paths_request request;
	uint64_t given; /* bytes: where to go on if the device fails */
	int status;	/* what fn returned */
};

/* Pieces are cut differently by another back end, so what was given is passed over by its size. */
static int give(const struct pfs_engine *e, struct pfs_path_listing *paths, struct giving *g)
{
	uint64_t skip = g->given;
	const char *bytes;
	size_t size;
	int error;

	while (!g->status && (error = e->backend->ops->paths_next(e->backend, paths, &bytes, &size)) != 0) {
		size_t known;

		if (error < 0)
			return error;
		known = PFS_MIN(skip, size);
		skip -= known;
		if (known == size)
			continue;
		g->given += size - known;
		g->status = g->listing->fn(g->listing->arg, bytes + known, size - known);
	}
	return 0;
}

static int list(struct pfs_engine *e, struct giving *g)
{
	const struct pfs_names_view *view = g->listing->view;
	struct pfs_path_listing *paths;
	int error;

	PFS_TRY(pfs_engine_update(e));
	error = send_names(e, view, view->heap_size + view->n_slots * sizeof(*view->place));
	if (error < 0)
		return error;
	PFS_TRY(e->backend->ops->paths_open(e->backend, &paths, &g->request));
	error = give(e, paths, g);
	e->backend->ops->paths_close(e->backend, paths);
	return error;
}

int pfs_engine_list(struct pfs_engine *e, const struct pfs_listing *l)
{
	uint32_t *slots PFS_FREE = malloc((l->n + 1) * sizeof(*slots));
	struct giving giving = {
		.listing = l,
		.request = {.columns = &e->columns, .view = l->view, .slots = slots, .flags = l->flags},
	};
	PFS_LOCKED(&e->lock);
	int error;

	if (!slots)
		return -ENOMEM;
	if (l->view->n_slots < e->columns.n_slots)
		return -EINVAL;
	for (size_t i = 0; i < l->n; i++)
		if (pfs_slot_live(&e->columns, l->slots[i]))
			slots[giving.request.n++] = l->slots[i];
	do
		error = list(e, &giving);
	while (pfs_engine_leave_device(e, error));
	return error ? error : giving.status;
}
