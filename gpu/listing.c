/* SPDX-License-Identifier: MIT */
/* Decides which names the back end has to be sent, and which of a listing's nodes it lists; the
 * back end makes the lines. */
#include "gpu/engine_impl.h"

#include "base/checked.h"
#include "base/cleanup.h"

#define ROOM(n) ((n) + (n) / 8 + 4096) /* room for so many, and some more */

/* ---- names ---- */

static int add_piece(struct pfs_names_piece **pieces, size_t *capacity, size_t *n, size_t from,
		     size_t to)
{
	if (*n && (*pieces)[*n - 1].to == from) {
		(*pieces)[*n - 1].to = to;
		return 0;
	}
	PFS_TRY(pfs_grow(pieces, capacity, *n + 1, sizeof(**pieces)));
	(*pieces)[(*n)++] = (struct pfs_names_piece){from, to};
	return 0;
}

/* Lists what was sent and has changed since, blocks whose stamp is newer, and then what comes
 * behind it, up to `to`. */
static int find_pieces(struct pfs_names_piece **pieces, size_t *n, const struct pfs_engine *e,
		       const struct pfs_names_view *view, size_t to)
{
	size_t block = (size_t)PFS_BLOCK_ROWS << view->place_shift, capacity = 0;

	*n = 0;
	for (size_t from = 0; view->stamps && from < e->names_size; from += block)
		if (pfs_stamps_of(view->stamps, (uint32_t)(from / block)) > e->names_clock)
			PFS_TRY(add_piece(pieces, &capacity, n, from,
					  PFS_MIN(from + block, e->names_size)));
	return e->names_size < to ? add_piece(pieces, &capacity, n, e->names_size, to) : 0;
}

static int begin_names(struct pfs_engine *e, struct pfs_codes_job *job,
		       const struct pfs_names_view *view)
{
	size_t heap = ROOM(view->heap_size), places = ROOM(view->n_slots);

	e->names_anew = true; /* until there is room */
	PFS_TRY(job->ops->names_reserve(job, heap, places));
	e->names_anew = false;
	e->names_generation = view->generation;
	e->names_clock = view->clock;
	e->names_room = heap;
	e->places_room = places;
	e->names_size = e->places_sent = e->n_renamed = 0;
	return 0;
}

static bool has_room(const struct pfs_engine *e, const struct pfs_names_view *view)
{
	return !e->names_anew && e->names_generation == view->generation &&
	       view->heap_size >= e->names_size && view->heap_size <= e->names_room &&
	       view->n_slots >= e->places_sent && view->n_slots <= e->places_room;
}

static int send_names(struct pfs_engine *e, struct pfs_codes_job *job,
		      const struct pfs_names_view *view, size_t most)
{
	struct pfs_names_piece *pieces PFS_FREE = NULL;
	struct pfs_names_update update = {.view = view, .renamed = e->renamed};
	size_t to;

	if (!has_room(e, view))
		PFS_TRY(begin_names(e, job, view));
	to = e->names_size + PFS_MIN(most, view->heap_size - e->names_size);
	PFS_TRY(find_pieces(&pieces, &update.n_pieces, e, view, to));
	update.pieces = pieces;
	update.n_renamed = e->n_renamed;
	update.from = e->places_sent;
	update.to = update.from + PFS_MIN(most / sizeof(*view->place), view->n_slots - update.from);
	PFS_TRY(job->ops->names_update(job, &update));
	e->names_clock = view->clock;
	e->names_size = to;
	e->places_sent = update.to;
	e->n_renamed = 0;
	return 0;
}

bool pfs_engine_knows_names(const struct pfs_engine *e, const struct pfs_names_view *view)
{
	return has_room(e, view) && e->names_size == view->heap_size &&
	       e->places_sent == view->n_slots && !e->n_renamed &&
	       (!view->stamps || e->names_clock == view->clock);
}

int pfs_engine_send_some(struct pfs_engine *e, const struct pfs_names_view *view, size_t most)
{
	struct pfs_codes_job *job;
	int error;

	if (view->n_slots < e->columns.n_slots)
		return -EINVAL;
	do {
		error = e->backend->ops->begin(e->backend, &job);
		if (!error)
			error = pfs_codes_job_end(job, send_names(e, job, view, most));
		e->names_anew = e->names_anew || error; /* some of them may have been sent */
	} while (error && pfs_engine_leave_device(e, error));
	return error ? error : e->names_size < view->heap_size || e->places_sent < view->n_slots;
}

int pfs_engine_send_names(struct pfs_engine *e, const struct pfs_names_view *view, size_t most)
{
	{
		PFS_READING(&e->lock);

		if (view->n_slots >= e->columns.n_slots && pfs_engine_knows_names(e, view))
			return 0;
	}
	PFS_WRITING(&e->lock);

	return pfs_engine_send_some(e, view, most);
}

/* ---- lines ---- */

struct giving {
	const struct pfs_listing *listing;
	uint32_t *slots; /* has room for the slots that have a node */
	/* bytes given to fn: if the device fails the listing goes on behind them, unless the epoch
	 * has changed */
	uint64_t given;
	uint64_t epoch;	 /* of the engine */
	int status;	 /* what fn returned */
};

/* Pieces are cut differently by another back end, so what was given is passed over by its size. */
static int give(struct pfs_codes_job *job, struct pfs_path_listing *paths, struct giving *g)
{
	uint64_t skip = g->given;
	const char *bytes;
	size_t size;
	int error;

	while (!g->status && (error = job->ops->paths_next(job, paths, &bytes, &size)) != 0) {
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

static int list(const struct pfs_asking *asking, struct giving *g)
{
	const struct pfs_engine *e = asking->engine;
	const struct pfs_listing *l = g->listing;
	struct pfs_paths_request request = {
		.columns = &e->columns, .view = l->view, .slots = g->slots, .flags = l->flags};
	struct pfs_path_listing *paths;
	int error;

	if (l->view->n_slots < e->columns.n_slots)
		return -EINVAL;
	if (g->given && g->epoch != e->epoch)
		return -ESTALE;
	g->epoch = e->epoch;
	for (size_t i = 0; i < l->n; i++)
		if (pfs_slot_live(&e->columns, l->slots[i]))
			g->slots[request.n++] = l->slots[i];
	PFS_TRY(asking->job->ops->paths_open(asking->job, &paths, &request));
	error = give(asking->job, paths, g);
	asking->job->ops->paths_close(asking->job, paths);
	return error;
}

int pfs_engine_list(struct pfs_engine *e, const struct pfs_listing *l)
{
	uint32_t *slots PFS_FREE = malloc((l->n + 1) * sizeof(*slots));
	struct giving giving = {.listing = l, .slots = slots};
	struct pfs_asking asking = {.engine = e, .names = l->view};
	int error;

	if (!slots)
		return -ENOMEM;
	do {
		error = pfs_asking_begin(&asking);
		error = error ? error : list(&asking, &giving);
	} while (!pfs_asking_end(&asking, &error));
	return error ? error : giving.status;
}
