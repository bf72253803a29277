/* SPDX-License-Identifier: MIT */
/* gpu/host/paths.c - paths as bytes, in pieces of many nodes, each made by one thread. The path of
 * the last directory is kept, so that in pre-order a node costs little more than its own name. */
#include "gpu/host/sets.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define PIECE_NODES 16384u
#define NAME_BYTES  256u /* a slash and a name */
#define PRIME_BYTES 22u	 /* 20 digits and a tab */
#define COPIED	    32u	 /* bytes that are copied at a time */

struct text {
	char *bytes;
	size_t size, capacity;
};

struct pfs_path_listing {
	struct pfs_paths_request request;
	const uint32_t *slots; /* of the present batch */
	size_t n_slots, next_slot; /* next_slot: where the next batch begins */
	struct text *pieces;
	size_t n_pieces, pieces_max, next_piece;
	atomic_int error;
};

/* A directory's path as text, and the directories on it below the root. The next directory's path
 * differs little. */
struct prefix {
	struct text text;
	uint32_t *directory;
	size_t *end; /* where the directory's name ends in the text */
	size_t n, directories_capacity, ends_capacity;
	uint32_t *missing; /* from the directory that is wanted up to one that is on the path */
	size_t missing_capacity;
};

/* Copies n bytes and up to COPIED more, whatever they are. */
static void copy_short(char *to, const void *from, size_t n)
{
	const char *bytes = from;

	for (size_t i = 0; i < n; i += COPIED)
		memcpy(to + i, bytes + i, COPIED);
}

/* The caller has made room for NAME_BYTES and COPIED. */
static void append_name(struct text *text, const struct pfs_names_view *view, uint32_t slot)
{
	const uint8_t *name = pfs_name_of(view, slot);
	char *to = text->bytes + text->size;

	*to = '/';
	if ((uint64_t)(name - (const uint8_t *)view->heap) + NAME_BYTES + COPIED <= view->heap_size)
		copy_short(to + 1, name + 1, *name);
	else
		memcpy(to + 1, name + 1, *name);
	text->size += 1u + *name;
}

/* Returns how many of the path's directories are also above this one; the missing ones are listed.
 */
static int find_missing(struct prefix *p, const struct pfs_columns *c, uint32_t directory,
			size_t *n_missing)
{
	*n_missing = 0;
	for (; directory != c->root && directory; directory = c->directories[directory].parent) {
		size_t level = p->n;

		while (level && p->directory[level - 1] != directory)
			level--;
		if (level) {
			p->n = level;
			return 0;
		}
		PFS_TRY(pfs_grow(&p->missing, &p->missing_capacity, *n_missing + 1,
				 sizeof(*p->missing)));
		p->missing[(*n_missing)++] = directory;
	}
	p->n = 0;
	return 0;
}

static int set_prefix(struct prefix *p, const struct pfs_paths_request *r, uint32_t directory)
{
	size_t n;

	if (p->n && p->directory[p->n - 1] == directory)
		return 0;
	PFS_TRY(find_missing(p, r->columns, directory, &n));
	p->text.size = p->n ? p->end[p->n - 1] : 0;
	while (n-- > 0) {
		PFS_TRY(pfs_grow(&p->directory, &p->directories_capacity, p->n + 1,
				 sizeof(*p->directory)));
		PFS_TRY(pfs_grow(&p->end, &p->ends_capacity, p->n + 1, sizeof(*p->end)));
		PFS_TRY(pfs_grow(&p->text.bytes, &p->text.capacity,
				 p->text.size + NAME_BYTES + COPIED, 1));
		append_name(&p->text, r->view, r->columns->directory_slot[p->missing[n]]);
		p->directory[p->n] = p->missing[n];
		p->end[p->n++] = p->text.size;
	}
	return 0;
}

static int append_path(struct text *text, struct prefix *p, const struct pfs_paths_request *r,
		       uint32_t slot)
{
	PFS_TRY(set_prefix(p, r, pfs_slot_parent(r->columns, slot)));
	PFS_TRY(pfs_grow(&text->bytes, &text->capacity,
			 text->size + PRIME_BYTES + p->text.size + NAME_BYTES + COPIED + 2, 1));
	if (r->flags & PFS_LISTING_PRIMES)
		text->size += (size_t)snprintf(text->bytes + text->size, PRIME_BYTES + 1,
					       "%" PRIu64 "\t", r->columns->prime[slot]);
	copy_short(text->bytes + text->size, p->text.bytes, p->text.size);
	text->size += p->text.size;
	if (r->columns->home[slot] == r->columns->root && pfs_slot_is_directory(r->columns, slot))
		text->bytes[text->size++] = '/';
	else
		append_name(text, r->view, slot);
	text->bytes[text->size++] = r->flags & PFS_LISTING_ZERO ? '\0' : '\n';
	return 0;
}

static void write_pieces(void *context, size_t from, size_t to)
{
	struct pfs_path_listing *paths = context;
	struct prefix prefix = {0};
	int error = 0;

	for (size_t piece = from; piece < to && error == 0; piece++) {
		size_t end = PFS_MIN((piece + 1) * PIECE_NODES, paths->n_slots);

		paths->pieces[piece].size = 0;
		for (size_t i = piece * PIECE_NODES; i < end && error == 0; i++)
			error = append_path(&paths->pieces[piece], &prefix, &paths->request,
					    paths->slots[i]);
	}
	if (error)
		atomic_store(&paths->error, error);
	free(prefix.text.bytes);
	free(prefix.directory);
	free(prefix.end);
	free(prefix.missing);
}

static void take_slots(struct pfs_path_listing *paths)
{
	const struct pfs_paths_request *r = &paths->request;

	paths->slots = r->slots + paths->next_slot;
	paths->n_slots = PFS_MIN(paths->pieces_max * PIECE_NODES, r->n - paths->next_slot);
	paths->next_slot += paths->n_slots;
}

int pfs_host_names_reserve(struct pfs_codes_job *job PFS_UNUSED, size_t heap PFS_UNUSED,
			   size_t places PFS_UNUSED)
{
	return 0;
}

int pfs_host_names_update(struct pfs_codes_job *job PFS_UNUSED,
			  const struct pfs_names_update *update PFS_UNUSED)
{
	return 0;
}

int pfs_host_paths_open(struct pfs_codes_job *job, struct pfs_path_listing **out,
			const struct pfs_paths_request *request)
{
	struct pfs_path_listing *paths = calloc(1, sizeof(*paths));

	if (!paths)
		return -ENOMEM;
	paths->request = *request;
	paths->pieces_max = (size_t)4 * pfs_pool_threads(pfs_host_of_job(job)->codes.pool);
	paths->pieces = calloc(paths->pieces_max, sizeof(*paths->pieces));
	if (!paths->pieces) {
		pfs_host_paths_close(job, paths);
		return -ENOMEM;
	}
	*out = paths;
	return 0;
}

int pfs_host_paths_next(struct pfs_codes_job *job, struct pfs_path_listing *paths,
			const char **bytes, size_t *size)
{
	if (paths->next_piece == paths->n_pieces) {
		int error;

		take_slots(paths);
		paths->next_piece = 0;
		paths->n_pieces = pfs_div_round_up(paths->n_slots, PIECE_NODES);
		if (paths->n_pieces == 0)
			return 0;
		pfs_pool_run(pfs_host_of_job(job)->codes.pool, paths->n_pieces, 1, write_pieces,
			     paths);
		error = atomic_load(&paths->error);
		if (error)
			return error;
	}
	*bytes = paths->pieces[paths->next_piece].bytes;
	*size = paths->pieces[paths->next_piece++].size;
	return 1;
}

void pfs_host_paths_close(struct pfs_codes_job *job, struct pfs_path_listing *paths)
{
	(void)job;
	for (size_t i = 0; i < paths->pieces_max && paths->pieces; i++)
		free(paths->pieces[i].bytes);
	free(paths->pieces);
	free(paths);
}
