/* SPDX-License-Identifier: MIT */
/* The layout: the pass over the parents that finds it, and what was found. */
#include "fs/image/span_layout.h"

#include <stdlib.h>

#include "base/checked.h"
#include "fs/image/span.h"

#define OPEN UINT32_C(0x80000000) /* in place of an end: may still grow, and at which level */

void pfs_span_layout_free(struct pfs_span_layout *layout)
{
	if (!layout)
		return;
	free(layout->strays);
	pfs_btree_destroy(layout->attached);
	free(layout->open.slot);
	pfs_reserve_close(&layout->memory);
	free(layout);
}

/* ---- strays ---- */

static size_t words_of(size_t bits)
{
	return bits / 64 + 1;
}

static uint64_t bit_of(uint32_t i)
{
	return UINT64_C(1) << i % 64;
}

/* -E2BIG, -ENOMEM: the layout is of no use any more. */
int pfs_span_layout_stray(struct pfs_span_layout *layout, uint32_t slot, uint32_t parent)
{
	if (slot < layout->n) {
		layout->strays[slot / 64] |= bit_of(slot);
		layout->stray_words[slot / 64 / 64] |= bit_of(slot / 64);
	}
	PFS_TRY(pfs_btree_insert(layout->attached, pfs_span_attached_key(parent, slot), slot));
	return pfs_btree_count(layout->attached) > layout->strays_max ? -E2BIG : 0;
}

void pfs_span_layout_gone(struct pfs_span_layout *layout, uint32_t slot)
{
	if (slot >= layout->n)
		return;
	layout->strays[slot / 64] &= ~bit_of(slot);
	if (!layout->strays[slot / 64])
		layout->stray_words[slot / 64 / 64] &= ~bit_of(slot / 64);
}

bool pfs_span_layout_is_stray(const struct pfs_span_layout *layout, uint32_t slot)
{
	return slot >= layout->n || layout->strays[slot / 64] & bit_of(slot);
}

/* The first bit that is set from `from` on, or one from `to` on. */
static uint32_t next_bit(const uint64_t *words, uint32_t from, uint32_t to)
{
	while (from < to && !(words[from / 64] >> from % 64))
		from = (from / 64 + 1) * 64;
	return from < to ? from + (uint32_t)__builtin_ctzll(words[from / 64] >> from % 64) : to;
}

/* The first stray from `slot` on, and before `to`. */
bool pfs_span_layout_next(const struct pfs_span_layout *layout, uint32_t *stray, uint32_t slot,
			  uint32_t to)
{
	uint32_t word = slot / 64, found;

	to = PFS_MIN(to, layout->n);
	found = next_bit(layout->strays, slot, PFS_MIN(to, (word + 1) * 64));
	if (found >= (word + 1) * 64) {
		word = next_bit(layout->stray_words, word + 1, (uint32_t)words_of(to));
		found = next_bit(layout->strays, word * 64, to);
	}
	if (found >= to)
		return false;
	*stray = found;
	return true;
}

bool pfs_span_layout_attached(const struct pfs_span_layout *layout, uint32_t from, uint32_t to)
{
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(layout->attached, &cursor, pfs_span_attached_key(from, 0), 0);
	return pfs_btree_next(layout->attached, &cursor, &entry) &&
	       entry.key < pfs_span_attached_key(to, 0);
}

/* ---- the pass ---- */

/* One that went meanwhile, and whose slot another node has, is open no more. */
static void close_to(struct pfs_span_layout *layout, size_t level)
{
	struct pfs_span_open *open = &layout->open;

	while (open->n > level) {
		uint32_t *end = &layout->end[open->slot[--open->n]];

		if (*end & OPEN)
			*end = layout->last + 1;
	}
}

/* The slot comes after the last.  If its parent is open, what is open below that ends; else it is a
 * stray among the slots of what is open. */
static int add(const struct pfs_image *image, struct pfs_span_layout *layout, uint32_t slot)
{
	struct pfs_span_open *open = &layout->open;
	uint32_t parent = image->parent[slot], *end = layout->end;

	if (parent == PFS_NO_SLOT)
		close_to(layout, 0);
	else if (parent < layout->n && end[parent] & OPEN)
		close_to(layout, (end[parent] & ~OPEN) + 1);
	else
		PFS_TRY(pfs_span_layout_stray(layout, slot, parent));
	if (!S_ISDIR(image->mode[slot]))
		return 0;
	PFS_TRY(pfs_grow(&open->slot, &open->capacity, open->n + 1, sizeof(*open->slot)));
	end[slot] = OPEN | (uint32_t)open->n;
	open->slot[open->n++] = slot;
	return 0;
}

int pfs_span_layout_pass(const struct pfs_image *image, struct pfs_span_layout *layout,
			 uint32_t n_slots)
{
	uint32_t to = layout->seen + PFS_MIN(layout->n - layout->seen, n_slots);

	for (; layout->seen < to; layout->seen++) {
		if (!pfs_image_is_live(image, layout->seen))
			continue;
		PFS_TRY(add(image, layout, layout->seen));
		layout->last = layout->seen;
	}
	if (layout->seen < layout->n)
		return 0;
	close_to(layout, 0);
	free(layout->open.slot);
	layout->open = (struct pfs_span_open){0};
	layout->is_whole = true;
	return 0;
}

/* Makes the layout of n slots of which nothing is known yet. */
int pfs_span_layout_create(struct pfs_span_layout **out, uint32_t n)
{
	struct pfs_span_layout *layout = calloc(1, sizeof(*layout));
	int error;

	if (!layout)
		return -ENOMEM;
	layout->n = n;
	layout->strays_max = PFS_MAX(PFS_SPAN_STRAYS, n / 8);
	layout->strays = calloc(words_of(n) + words_of(words_of(n)), sizeof(*layout->strays));
	error = layout->strays ? pfs_btree_create(&layout->attached) : -ENOMEM;
	if (error) {
		pfs_span_layout_free(layout);
		return error;
	}
	layout->stray_words = layout->strays + words_of(n);
	*out = layout;
	return 0;
}

int pfs_span_layout_begin(const struct pfs_image *image, struct pfs_span_layout **out)
{
	const size_t size = ((size_t)image->end + 1) * sizeof((*out)->end[0]);
	struct pfs_span_layout *layout;
	int error;

	PFS_TRY(pfs_span_layout_create(&layout, image->end));
	error = pfs_reserve_whole(&layout->memory, size);
	layout->end = layout->memory.base;
	if (error)
		pfs_span_layout_free(layout);
	else
		*out = layout;
	return error;
}

/* ---- what was found ---- */

/* Without its mark; marks are set by several readers at once. */
uint32_t pfs_span_layout_end(const struct pfs_span_layout *layout, uint32_t slot)
{
	uint32_t end = slot < layout->n ? __atomic_load_n(&layout->end[slot], __ATOMIC_RELAXED) : 0;

	return end ? end & ~PFS_SPAN_SORTED : slot + 1;
}

/* Directories that the slot may lie in, each within the one before; -1: one of them does not. */
static int enter(const struct pfs_span_layout *layout, struct pfs_span_open *open, uint32_t slot)
{
	uint32_t end = pfs_span_layout_end(layout, slot);

	if (end == slot + 1)
		return 0;
	if (open->n && end > pfs_span_layout_end(layout, open->slot[open->n - 1]))
		return -1;
	PFS_TRY(pfs_grow(&open->slot, &open->capacity, open->n + 1, sizeof(*open->slot)));
	open->slot[open->n++] = slot;
	return 0;
}

static bool is_in_place(const struct pfs_image *image, const struct pfs_span_layout *layout,
			const struct pfs_span_open *open, uint32_t slot)
{
	uint32_t parent = image->parent[slot];

	if (pfs_span_layout_is_stray(layout, slot))
		return parent != PFS_NO_SLOT &&
		       pfs_span_layout_attached(layout, parent, parent + 1);
	return open->n ? parent == open->slot[open->n - 1] : parent == PFS_NO_SLOT;
}

bool pfs_span_layout_is_sound(const struct pfs_image *image, const struct pfs_span_layout *layout)
{
	struct pfs_span_open open = {0};
	bool sound = true;

	for (uint32_t slot = 0; sound && slot < image->end; slot++) {
		if (!pfs_image_is_live(image, slot))
			continue;
		while (open.n && slot >= pfs_span_layout_end(layout, open.slot[open.n - 1]))
			open.n--;
		sound = is_in_place(image, layout, &open, slot);
		if (sound && S_ISDIR(image->mode[slot]))
			sound = enter(layout, &open, slot) != -1;
	}
	free(open.slot);
	return sound;
}
