/* SPDX-License-Identifier: MIT */
/* What is remembered lies in chunks that never move, found by pages of slots: nothing is built anew while the
 * tree is held for writing. */
#include "fs/image/past.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/watch.h"
#include "fs/tree/tree_impl.h"

#define PAGE_SLOTS 256u
#define UNIT	   8u /* bytes that a reference to what is remembered counts */
#define CHUNK	   ((size_t)1 << 20)
#define CHUNKS	   (((size_t)UNIT << 32) / CHUNK) /* that references reach */

struct remembered {
	uint64_t prime;
	uint32_t parent;
	uint8_t is_live, len;
	char name[];
};

struct page {
	uint32_t at[PAGE_SLOTS]; /* in units, 0: the slot has not changed */
};

struct pfs_past {
	struct pfs_tree *tree;
	struct pfs_past *next; /* an older one; protected by the pasts' lock, as refs are */
	unsigned refs;
	uint32_t end;
	int error;
	struct page **pages;
	char **chunks;
	size_t n_chunks, chunks_capacity;
	size_t used; /* of the last chunk */
	size_t memory;
};

struct pfs_pasts {
	pthread_mutex_t lock; /* of readers who open and close; those who change have the tree to themselves */
	struct pfs_past *newest;
};

static _Atomic size_t memory_max = PFS_PAST_MEMORY;

void pfs_pasts_set_memory(size_t bytes)
{
	atomic_store(&memory_max, bytes);
}

/* ---- opening and closing ---- */

static size_t n_pages(const struct pfs_past *past)
{
	return past->end / PAGE_SLOTS + 1;
}

static void destroy(struct pfs_past *past)
{
	for (size_t i = 0; past->n_chunks && i < n_pages(past); i++)
		free(past->pages[i]);
	for (size_t i = 0; i < past->n_chunks; i++)
		free(past->chunks[i]);
	free(past->pages);
	free(past->chunks);
	free(past);
}

int pfs_past_open(struct pfs_past **out, struct pfs_tree *tree)
{
	struct pfs_pasts *pasts = tree->pasts;
	struct pfs_past *past;
	PFS_LOCKED(&pasts->lock);

	past = pasts->newest;
	if (past && pfs_past_is_present(past) && past->end == tree->image.end) {
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
	past->next = pasts->newest;
	pasts->newest = past;
	*out = past;
	return 0;
}

/* Whether nobody has it any more; it is none of the tree's then. */
static bool drop(struct pfs_past *past)
{
	struct pfs_pasts *pasts = past->tree->pasts;
	struct pfs_past **link = &pasts->newest;
	PFS_LOCKED(&pasts->lock);

	if (--past->refs)
		return false;
	while (*link != past)
		link = &(*link)->next;
	*link = past->next;
	return true;
}

void pfs_past_close(struct pfs_past *past)
{
	struct pfs_tree *tree;
	bool is_last;

	if (!past)
		return;
	tree = past->tree;
	pfs_hold_read(tree, __func__);
	is_last = drop(past); /* if not, the past may be gone from here on */
	pfs_hold_end(tree);
	if (is_last)
		destroy(past);
}

/* ---- looking ---- */

int pfs_past_check(const struct pfs_past *past)
{
	return past->error;
}

bool pfs_past_is_present(const struct pfs_past *past)
{
	return !past->n_chunks && !past->error;
}

static struct remembered *at(const struct pfs_past *past, uint32_t place)
{
	size_t from = (size_t)place * UNIT;

	return (struct remembered *)(void *)(past->chunks[from / CHUNK] + from % CHUNK);
}

static void find_now(const struct pfs_image *image, struct pfs_past_place *out, uint32_t slot)
{
	*out = (struct pfs_past_place){
		.is_live = pfs_image_is_live(image, slot),
		.parent = image->parent[slot],
		.prime = image->prime[slot],
	};
	out->name = pfs_names_get(image->names, image->name[slot], &out->len);
}

void pfs_past_find(const struct pfs_past *past, struct pfs_past_place *out, uint32_t slot)
{
	const struct page *page = past->pages[slot / PAGE_SLOTS];
	uint32_t place = page ? page->at[slot % PAGE_SLOTS] : 0;
	const struct remembered *was;

	if (!place) {
		find_now(&past->tree->image, out, slot);
		return;
	}
	was = at(past, place);
	*out = (struct pfs_past_place){was->is_live, was->parent, was->prime, was->len, was->name};
}

/* ---- remembering, with the write lock ---- */

static int add_chunk(struct pfs_past *past)
{
	char *chunk;

	if (past->memory + CHUNK > atomic_load(&memory_max) || past->n_chunks == CHUNKS)
		return -ENOMEM;
	PFS_TRY(pfs_grow(&past->chunks, &past->chunks_capacity, past->n_chunks + 1, sizeof(char *)));
	chunk = malloc(CHUNK + PFS_NAME_SLACK);
	if (!chunk)
		return -ENOMEM;
	past->used = past->n_chunks ? 0 : UNIT; /* place 0 is none */
	past->chunks[past->n_chunks++] = chunk;
	past->memory += CHUNK;
	return 0;
}

static int find_page(struct pfs_past *past, struct page **out, uint32_t slot)
{
	struct page **page = &past->pages[slot / PAGE_SLOTS];

	if (!*page) {
		*page = calloc(1, sizeof(**page));
		past->memory += sizeof(**page);
	}
	*out = *page;
	return *page ? 0 : -ENOMEM;
}

static int add(struct pfs_past *past, uint32_t slot, const struct pfs_past_place *place)
{
	size_t size = (sizeof(struct remembered) + place->len + UNIT - 1) / UNIT * UNIT;
	struct remembered *now;
	struct page *page;

	if (!past->n_chunks || past->used + size > CHUNK)
		PFS_TRY(add_chunk(past));
	PFS_TRY(find_page(past, &page, slot));
	page->at[slot % PAGE_SLOTS] = (uint32_t)(((past->n_chunks - 1) * CHUNK + past->used) / UNIT);
	now = at(past, page->at[slot % PAGE_SLOTS]);
	past->used += size;
	*now = (struct remembered){place->prime, place->parent, place->is_live, (uint8_t)place->len};
	memcpy(now->name, place->name, place->len);
	return 0;
}

static bool knows(const struct pfs_past *past, uint32_t slot)
{
	const struct page *page;

	if (past->error || slot >= past->end)
		return true;
	page = past->pages[slot / PAGE_SLOTS];
	return page && page->at[slot % PAGE_SLOTS];
}

/* What becomes free had no place any more. */
static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_past_place place;

	if (!tree->pasts->newest || columns & PFS_COLUMN_PRIME)
		return;
	find_now(&tree->image, &place, slot);
	for (struct pfs_past *past = tree->pasts->newest; past; past = past->next)
		if (!knows(past, slot))
			past->error = add(past, slot, &place);
}

/* A node that was live must have had a live directory as parent, or be the root. */
static bool is_sound(const struct pfs_past *past, uint32_t slot)
{
	struct pfs_past_place place, above;

	if (!knows(past, slot))
		return true;
	pfs_past_find(past, &place, slot);
	if (!place.is_live || slot == past->tree->image.root)
		return true;
	if (place.parent >= past->end)
		return false;
	pfs_past_find(past, &above, place.parent);
	return above.is_live;
}

static bool check(struct pfs_tree *tree)
{
	for (const struct pfs_past *past = tree->pasts->newest; past; past = past->next)
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

int pfs_pasts_create(struct pfs_tree *tree)
{
	tree->pasts = calloc(1, sizeof(*tree->pasts));
	if (!tree->pasts)
		return -ENOMEM;
	(void)pthread_mutex_init(&tree->pasts->lock, NULL);
	pfs_watch(tree, &watcher);
	return 0;
}

void pfs_pasts_destroy(struct pfs_tree *tree)
{
	if (!tree->pasts)
		return;
	PFS_VERIFY_CHECK(!tree->pasts->newest);
	(void)pthread_mutex_destroy(&tree->pasts->lock);
	free(tree->pasts);
	tree->pasts = NULL;
}
