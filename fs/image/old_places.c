/* SPDX-License-Identifier: MIT */
/* What is remembered lies in chunks that never move, found by pages of slots: nothing is built anew
 * while the tree is held for writing. */
#include "fs/image/old_places.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/snapshot.h"
#include "fs/image/watch.h"
#include "fs/tree/tree_impl.h"

#define PAGE_SLOTS 128u
#define UNIT	   8u /* bytes that what is remembered is a multiple of */
#define CHUNK	   ((size_t)32 << 10)
#define REMEMBERED 64u /* bytes that a slot takes, about */

struct remembered {
	uint64_t prime;
	uint32_t parent;
	uint8_t is_live, len;
	char name[];
};

struct page {
	struct remembered *at[PAGE_SLOTS]; /* NULL: the slot has not changed */
};

struct chunk {
	struct chunk *next;
	char bytes[CHUNK - sizeof(struct chunk *)];
	char slack[PFS_NAME_SLACK]; /* behind a name */
};

struct pfs_old_places {
	struct pfs_tree *tree;
	struct pfs_old_places *next; /* an older one; protected by the pasts' lock, as refs are */
	unsigned refs;
	uint32_t end;
	int error;
	struct page **pages;
	struct chunk *chunks; /* the one being filled first */
	size_t used;	      /* of that one */
};

struct pfs_place_history {
	pthread_mutex_t lock; /* of readers who open and close; those who change have the tree to
				 themselves */
	struct pfs_old_places *newest;
	_Atomic unsigned open; /* how many there are */
	struct chunk
		*spare; /* protected by the lock, as n_spare is: there are changes yet to come */
	size_t n_spare;
};

/* ---- opening and closing ---- */

static size_t n_pages(const struct pfs_old_places *past)
{
	return past->end / PAGE_SLOTS + 1;
}

static void count(struct pfs_tree *tree, size_t bytes, bool more)
{
	pfs_snapshots_keep(tree, PFS_KEPT_PASTS, more ? (int64_t)bytes : -(int64_t)bytes);
}

static void free_chunks(struct pfs_tree *tree, struct chunk *chunk)
{
	while (chunk) {
		struct chunk *next = chunk->next;

		free(chunk);
		count(tree, sizeof(*chunk), false);
		chunk = next;
	}
}

static void destroy(struct pfs_old_places *past)
{
	free_chunks(past->tree, past->chunks);
	count(past->tree, n_pages(past) * sizeof(struct page *), false);
	free(past->pages);
	free(past);
}

int pfs_old_places_open(struct pfs_old_places **out, struct pfs_tree *tree)
{
	struct pfs_place_history *pasts = tree->pasts;
	struct pfs_old_places *past;
	PFS_LOCKED(&pasts->lock);

	past = pasts->newest;
	if (past && pfs_old_places_is_present(past) && past->end == tree->image.end) {
		past->refs++;
		*out = past;
		return 0;
	}
	*out = NULL;
	past = calloc(1, sizeof(*past));
	if (!past)
		return -ENOMEM;
	past->tree = tree;
	past->refs = 1;
	past->end = tree->image.end;
	past->pages = calloc(n_pages(past), sizeof(struct page *));
	if (!past->pages) {
		free(past);
		return -ENOMEM;
	}
	count(tree, n_pages(past) * sizeof(struct page *), true);
	pfs_snapshots_measure(tree);
	past->next = pasts->newest;
	pasts->newest = past;
	atomic_fetch_add(&pasts->open, 1);
	*out = past;
	return 0;
}

/* Gives a reference back. True: it was the last, the tree has forgotten `past`, and the caller
 * frees *spare. */
static bool drop(struct pfs_old_places *past, struct chunk **spare)
{
	struct pfs_place_history *pasts = past->tree->pasts;
	struct pfs_old_places **link = &pasts->newest;
	PFS_LOCKED(&pasts->lock);

	if (--past->refs)
		return false;
	while (*link != past)
		link = &(*link)->next;
	*link = past->next;
	atomic_fetch_sub(&pasts->open, 1);
	*spare = PFS_TAKE(pasts->spare);
	pasts->n_spare = 0;
	return true;
}

void pfs_old_places_close(struct pfs_old_places *past)
{
	struct chunk *spare = NULL;
	struct pfs_tree *tree;
	bool is_last;

	if (!past)
		return;
	tree = past->tree;
	pfs_hold_read(tree, __func__);
	is_last = drop(past, &spare); /* if not, the past may be gone from here on */
	pfs_hold_end(tree);
	free_chunks(tree, spare);
	if (is_last)
		destroy(past);
}

/* ---- looking ---- */

int pfs_old_places_check(const struct pfs_old_places *past)
{
	return past->error;
}

bool pfs_old_places_is_present(const struct pfs_old_places *past)
{
	return !past->chunks && !past->error;
}

/* What the past remembers of the slot; NULL: it has not changed, or the past was given up. */
static const struct remembered *find(const struct pfs_old_places *past, uint32_t slot)
{
	const struct page *page = past->error ? NULL : past->pages[slot / PAGE_SLOTS];

	return page ? page->at[slot % PAGE_SLOTS] : NULL;
}

static void find_now(const struct pfs_image *image, struct pfs_old_place *out, uint32_t slot)
{
	*out = (struct pfs_old_place){
		.is_live = pfs_image_is_live(image, slot),
		.parent = image->parent[slot],
		.prime = image->prime[slot],
	};
	out->name = pfs_names_get(image->names, image->name[slot], &out->len);
}

void pfs_old_places_find(const struct pfs_old_places *past, struct pfs_old_place *out,
			 uint32_t slot)
{
	const struct remembered *was = find(past, slot);

	if (was)
		*out = (struct pfs_old_place){was->is_live, was->parent, was->prime, was->len,
					      was->name};
	else
		find_now(&past->tree->image, out, slot);
}

bool pfs_old_places_has_changed(const struct pfs_old_places *past, uint32_t slot)
{
	return slot >= past->end || find(past, slot);
}

bool pfs_old_places_next(const struct pfs_old_places *past, uint32_t *slot)
{
	uint32_t at = *slot;

	while (at < past->end && !find(past, at))
		at = past->pages[at / PAGE_SLOTS] ? at + 1 : (at / PAGE_SLOTS + 1) * PAGE_SLOTS;
	*slot = at;
	return at < past->end;
}

static uint32_t parent_of(const struct pfs_old_places *past, uint32_t slot)
{
	const struct remembered *was = find(past, slot);

	return was ? was->parent : past->tree->image.parent[slot];
}

static size_t depth_of(const struct pfs_old_places *past, uint32_t slot)
{
	size_t depth = 0;

	for (; slot != past->tree->image.root; slot = parent_of(past, slot))
		depth++;
	return depth;
}

static bool name_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b)
{
	struct pfs_old_place x, y;

	pfs_old_places_find(past, &x, a);
	pfs_old_places_find(past, &y, b);
	return pfs_compare_bytes(x.name, x.len, y.name, y.len) < 0;
}

/* Climbs to where the ways to them part. */
bool pfs_old_places_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b)
{
	const size_t a_depth = depth_of(past, a), b_depth = depth_of(past, b);

	for (size_t n = a_depth; n > b_depth; n--)
		a = parent_of(past, a);
	for (size_t n = b_depth; n > a_depth; n--)
		b = parent_of(past, b);
	if (a == b) /* one lay under the other */
		return a_depth < b_depth;
	while (parent_of(past, a) != parent_of(past, b)) {
		a = parent_of(past, a);
		b = parent_of(past, b);
	}
	return name_is_before(past, a, b);
}

/* ---- memory ---- */

static struct chunk *make_chunk(struct pfs_tree *tree)
{
	struct chunk *chunk = NULL;

	if (pfs_snapshots_has_room(tree, PFS_KEPT_PASTS, sizeof(*chunk)))
		chunk = malloc(sizeof(*chunk));
	if (chunk)
		count(tree, sizeof(*chunk), true);
	return chunk;
}

/* The lock is held, as for the next. */
static void put_spare(struct pfs_place_history *pasts, struct chunk *chunk)
{
	chunk->next = pasts->spare;
	pasts->spare = chunk;
	pasts->n_spare++;
}

static struct chunk *pop_spare(struct pfs_place_history *pasts)
{
	struct chunk *chunk = pasts->spare;

	if (chunk) {
		pasts->spare = chunk->next;
		pasts->n_spare--;
	}
	return chunk;
}

/* False: there are as many, or may not be more. */
static bool reserve_chunk(struct pfs_tree *tree, size_t wanted)
{
	struct pfs_place_history *pasts = tree->pasts;
	struct chunk *chunk;
	PFS_LOCKED(&pasts->lock);

	chunk = pasts->n_spare < wanted ? make_chunk(tree) : NULL;
	if (chunk)
		put_spare(pasts, chunk);
	return chunk;
}

PFS_SELDOM static void reserve(struct pfs_tree *tree, size_t slots, unsigned open)
{
	const size_t wanted = slots ? open * (slots * REMEMBERED / CHUNK + 1) : 0;

	for (size_t i = 0; i < wanted && reserve_chunk(tree, wanted); i++)
		;
}

void pfs_place_history_reserve(struct pfs_tree *tree, size_t slots)
{
	const unsigned open = tree->pasts ? atomic_load(&tree->pasts->open) : 0;

	if (open)
		reserve(tree, slots, open);
}

/* ---- remembering, with the write lock ---- */

/* The oldest that remembers anything loses it to the others. False: there is none. */
static bool give_up_oldest(struct pfs_place_history *pasts)
{
	struct pfs_old_places *oldest = NULL;

	for (struct pfs_old_places *past = pasts->newest; past; past = past->next)
		if (past->chunks)
			oldest = past;
	if (!oldest)
		return false;
	oldest->error = -ENOMEM;
	while (oldest->chunks) {
		struct chunk *chunk = oldest->chunks;

		oldest->chunks = chunk->next;
		put_spare(pasts, chunk);
	}
	return true;
}

/* What was reserved; others may have been faster. */
static int add_chunk(struct pfs_old_places *past)
{
	struct pfs_place_history *pasts = past->tree->pasts;
	struct chunk *chunk;
	PFS_LOCKED(&pasts->lock);

	do {
		chunk = pop_spare(pasts);
		if (!chunk)
			chunk = make_chunk(past->tree);
	} while (!chunk && give_up_oldest(pasts) && !past->error);
	if (!chunk)
		return -ENOMEM;
	chunk->next = past->chunks;
	past->chunks = chunk;
	past->used = 0;
	return 0;
}

static void *take(struct pfs_old_places *past, size_t size)
{
	char *bytes;

	size = pfs_div_round_up(size, UNIT) * UNIT;
	if ((!past->chunks || past->used + size > sizeof(past->chunks->bytes)) && add_chunk(past))
		return NULL;
	bytes = past->chunks->bytes + past->used;
	past->used += size;
	return bytes;
}

static int add(struct pfs_old_places *past, uint32_t slot, const struct pfs_old_place *place)
{
	struct page **page = &past->pages[slot / PAGE_SLOTS];
	struct remembered *now;

	if (!*page) {
		*page = take(past, sizeof(**page));
		if (!*page)
			return -ENOMEM;
		memset(*page, 0, sizeof(**page));
	}
	now = take(past, sizeof(*now) + place->len);
	if (!now)
		return -ENOMEM;
	*now = (struct remembered){place->prime, place->parent, place->is_live,
				   (uint8_t)place->len};
	memcpy(now->name, place->name, place->len);
	(*page)->at[slot % PAGE_SLOTS] = now;
	return 0;
}

static bool knows(const struct pfs_old_places *past, uint32_t slot)
{
	return past->error || slot >= past->end || find(past, slot);
}

/* What becomes free had no place any more. */
static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_old_place place;

	if (!tree->pasts->newest || columns & PFS_COLUMN_PRIME)
		return;
	find_now(&tree->image, &place, slot);
	for (struct pfs_old_places *past = tree->pasts->newest; past; past = past->next)
		if (!knows(past, slot))
			past->error = add(past, slot, &place);
}

/* A node that was live must have had a live directory as parent, or be the root. */
static bool is_sound(const struct pfs_old_places *past, uint32_t slot)
{
	struct pfs_old_place place, above;

	if (!knows(past, slot))
		return true;
	pfs_old_places_find(past, &place, slot);
	if (!place.is_live || slot == past->tree->image.root)
		return true;
	if (place.parent >= past->end)
		return false;
	pfs_old_places_find(past, &above, place.parent);
	return above.is_live;
}

static bool check(struct pfs_tree *tree)
{
	for (const struct pfs_old_places *past = tree->pasts->newest; past; past = past->next)
		for (uint32_t slot = 0; slot < past->end && !past->error; slot++)
			if (!is_sound(past, slot))
				return false;
	return true;
}

static const struct pfs_watcher watcher = {
	.name = "pasts",
	.columns = PFS_COLUMNS_PLACE,
	.changing = changing,
	.check = check,
};

int pfs_place_history_create(struct pfs_tree *tree)
{
	tree->pasts = calloc(1, sizeof(*tree->pasts));
	if (!tree->pasts)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->pasts->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_place_history_destroy(struct pfs_tree *tree)
{
	if (!tree->pasts)
		return;
	PFS_VERIFY_CHECK(!tree->pasts->newest);
	free_chunks(tree, tree->pasts->spare);
	(void)pthread_mutex_destroy(&tree->pasts->lock);
	free(tree->pasts);
	tree->pasts = NULL;
}
