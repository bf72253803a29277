/* SPDX-License-Identifier: MIT */
/* The values of columns that are made: of some slots, as they change, and of many that follow each
 * other, by all threads. */
#include "fs/nodes/columns_impl.h"

#include <stdatomic.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/tree/tree_impl.h"

#define GRAIN	8192u /* slots that a thread takes at a time; whole words of bits */
#define OWN	8u    /* pieces of these that who holds the tree takes in one hold, and */
#define NEW_MOST   16384u /* texts that he adds to a dictionary, and */
#define ATTRS_MOST 4096u  /* attributes that he reads, to the end of a block */
#define UNKNOWN UINT32_MAX /* the code of a text that is not in the dictionary yet; a depth */

/* ---- one by one ---- */

static void set_bit(uint64_t *bits, uint32_t slot, bool value)
{
	uint64_t bit = UINT64_C(1) << slot % 64;

	bits[slot / 64] = value ? bits[slot / 64] | bit : bits[slot / 64] & ~bit;
}

static int fill_extensions(const struct pfs_image *image, struct pfs_derived *column,
			   const uint32_t *slots, size_t n)
{
	uint32_t *codes = column->data.base;

	for (size_t i = 0; i < n; i++) {
		uint32_t slot = slots[i];
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);
		const char *text = pfs_scan_extension(name, &len);

		set_bit(column->nulls.base, slot, !text);
		codes[slot] = 0;
		if (text)
			PFS_TRY(pfs_dictionary_add(&column->dictionary, &codes[slot], text, len));
	}
	return 0;
}

/* is_known: what the column has of the parent is its depth. */
static uint32_t depth_of(const struct pfs_tree *tree, const struct pfs_derived *column,
			 uint32_t slot, bool is_known)
{
	const struct pfs_image *image = &tree->image;
	const uint32_t *depths = column->data.base;

	if (!pfs_image_is_live(image, slot))
		return 0;
	if (is_known && S_ISDIR(image->mode[image->parent[slot]])) /* as import lays nodes out */
		return depths[image->parent[slot]] + 1;
	return (uint32_t)pfs_scan_integer(tree, PFS_FIELD_DEPTH, slot);
}

static void fill_depths(const struct pfs_tree *tree, struct pfs_derived *column,
			const uint32_t *slots, size_t n)
{
	uint32_t *depths = column->data.base;

	for (size_t i = 0; i < n; i++)
		depths[slots[i]] = depth_of(tree, column, slots[i],
					    !column->ready &&
						    tree->image.parent[slots[i]] < slots[i]);
}

/* The code of a text; each that the reader has a number for is looked up once. */
static int put_text(struct pfs_derived *column, uint32_t *code, const struct pfs_attr_value *value)
{
	const size_t before = column->n_known;

	if (value->same && value->same < before && column->known[value->same]) {
		*code = column->known[value->same] - 1;
		return 0;
	}
	PFS_TRY(pfs_dictionary_add(&column->dictionary, code, value->text, value->text_len));
	if (!value->same)
		return 0;
	if (value->same >= before) {
		PFS_TRY(pfs_grow(&column->known, &column->known_capacity, (size_t)value->same + 1,
				 sizeof(*column->known)));
		memset(column->known + before, 0,
		       (column->known_capacity - before) * sizeof(*column->known));
		column->n_known = column->known_capacity;
	}
	column->known[value->same] = *code + 1;
	return 0;
}

static int put_attr(struct pfs_derived *column, uint32_t slot, const struct pfs_attr_value *value)
{
	uint32_t *codes = column->data.base;
	int64_t *integers = column->data.base;
	double *reals = column->data.base;

	set_bit(column->nulls.base, slot, !value->is_set);
	if (!value->is_set)
		return 0;
	switch (column->type) {
	case PFS_ATTR_INTEGER:
		column->is_mixed |= value->type != PFS_ATTR_INTEGER;
		integers[slot] = value->type == PFS_ATTR_INTEGER ? value->integer : 0;
		return 0;
	case PFS_ATTR_REAL: /* an integer is a real in such a column */
		column->is_mixed |= value->type == PFS_ATTR_TEXT;
		if (value->type != PFS_ATTR_TEXT)
			reals[slot] =
				value->type == PFS_ATTR_REAL ? value->real : (double)value->integer;
		return 0;
	case PFS_ATTR_TEXT:
		column->is_mixed |= value->type != PFS_ATTR_TEXT;
		if (value->type != PFS_ATTR_TEXT)
			return 0;
		return put_text(column, &codes[slot], value);
	}
	return 0;
}

static int fill_attrs(struct pfs_derived *column, const uint32_t *slots, size_t n)
{
	struct pfs_attr_value values[256];

	for (size_t from = 0; from < n; from += PFS_COUNT(values)) {
		size_t count = PFS_MIN(n - from, PFS_COUNT(values));

		PFS_TRY(pfs_attr_read(column->reader, values, slots + from, count));
		for (size_t i = 0; i < count; i++)
			PFS_TRY(put_attr(column, slots[from + i], &values[i]));
	}
	return 0;
}

int pfs_derived_reach(struct pfs_derived *column, uint32_t end)
{
	size_t words = (end + 63) / 64 * sizeof(uint64_t);

	if (end <= column->end)
		return 0;
	PFS_TRY(pfs_reserve_grow(&column->data, end * pfs_derived_width(column)));
	PFS_TRY(pfs_reserve_grow(&column->nulls, words));
	column->end = end;
	return 0;
}

int pfs_derived_fill(const struct pfs_tree *tree, struct pfs_derived *column,
		     const uint32_t *slots, size_t n)
{
	const struct pfs_image *image = &tree->image;

	PFS_TRY(pfs_derived_reach(column, image->end));
	switch (column->kind) {
	case PFS_DERIVED_EXT:
		return fill_extensions(image, column, slots, n);
	case PFS_DERIVED_DEPTH:
		fill_depths(tree, column, slots, n);
		return 0;
	case PFS_DERIVED_ATTR:
		return fill_attrs(column, slots, n);
	}
	return 0;
}

/* ---- by all threads ---- */

struct filling {
	const struct pfs_tree *tree;
	struct pfs_derived *column;
	uint32_t from; /* what comes before it has its values */
	atomic_bool has_unknown;
};

/* The dictionary is only read: texts that are not in it are left for later. */
static void look_up_extensions(void *context, size_t from, size_t to)
{
	struct filling *filling = context;
	const struct pfs_image *image = &filling->tree->image;
	struct pfs_derived *column = filling->column;
	uint32_t *codes = column->data.base;
	bool has_unknown = false;

	for (uint32_t slot = filling->from + (uint32_t)from; slot < filling->from + to; slot++) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);
		const char *text = pfs_scan_extension(name, &len);

		set_bit(column->nulls.base, slot, !text);
		codes[slot] = 0;
		if (!text || pfs_dictionary_find(&column->dictionary, &codes[slot], text, len))
			continue;
		codes[slot] = UNKNOWN;
		has_unknown = true;
	}
	if (has_unknown)
		atomic_store(&filling->has_unknown, true);
}

/* Fills in what is unknown of slots before *to. If that is much, it ends at a block, and *to is its
 * first slot. */
static int add_unknown(const struct filling *filling, uint32_t *to)
{
	const uint32_t *codes = filling->column->data.base;
	uint32_t n = 0;

	for (uint32_t slot = filling->from; slot < *to; slot++) {
		if (n >= NEW_MOST && slot % PFS_BLOCK_ROWS == 0) {
			*to = slot;
			break;
		}
		if (codes[slot] != UNKNOWN)
			continue;
		PFS_TRY(fill_extensions(&filling->tree->image, filling->column, &slot, 1));
		n++;
	}
	return 0;
}

/* A parent's depth is there if it came before this run, or before the slot in the thread's own.
 * Else it is left for later, when it is there for all: the way up may be very long. */
static void fill_depth_range(void *context, size_t from, size_t to)
{
	struct filling *filling = context;
	const struct pfs_image *image = &filling->tree->image;
	uint32_t first = filling->from + (uint32_t)from, *depths = filling->column->data.base;
	bool has_unknown = false;

	for (uint32_t slot = first; slot < filling->from + to; slot++) {
		uint32_t parent = image->parent[slot];
		bool is_known = parent < slot && (parent < filling->from || parent >= first) &&
				depths[parent] != UNKNOWN;

		if (is_known || !pfs_image_is_live(image, slot)) {
			depths[slot] = depth_of(filling->tree, filling->column, slot, is_known);
			continue;
		}
		depths[slot] = UNKNOWN;
		has_unknown = true;
	}
	if (has_unknown)
		atomic_store(&filling->has_unknown, true);
}

static void fill_unknown_depths(const struct filling *filling, uint32_t to)
{
	const uint32_t *depths = filling->column->data.base;

	for (uint32_t slot = filling->from; slot < to; slot++) {
		if (depths[slot] == UNKNOWN)
			fill_depths(filling->tree, filling->column, &slot, 1);
	}
}

/* Called by one thread, whose the reader is. */
static int fill_attr_range(const struct pfs_tree *tree, struct pfs_derived *column, uint32_t from,
			   uint32_t *to)
{
	const struct pfs_image *image = &tree->image;
	uint32_t slots[1024], n_bearers = 0;

	while (from < *to) {
		size_t n = 0;

		for (; n < PFS_COUNT(slots) && from < *to; from++) {
			n_bearers += (image->flags[from] & PFS_NODE_ATTRS) != 0;
			slots[n++] = from;
		}
		PFS_TRY(pfs_derived_fill(tree, column, slots, n));
		if (n_bearers >= ATTRS_MOST && from % PFS_BLOCK_ROWS == 0)
			*to = from;
	}
	return 0;
}

int pfs_derived_fill_range(struct pfs_tree *tree, struct pfs_derived *column, uint32_t from,
			   uint32_t *to)
{
	struct filling filling = {.tree = tree, .column = column, .from = from};
	size_t n = *to - from;

	PFS_TRY(pfs_derived_reach(column, tree->image.end));
	switch (column->kind) {
	case PFS_DERIVED_EXT:
		*to = from + (uint32_t)pfs_scan_run_some(tree, n, GRAIN, OWN, look_up_extensions,
							 &filling);
		return atomic_load(&filling.has_unknown) ? add_unknown(&filling, to) : 0;
	case PFS_DERIVED_DEPTH:
		*to = from +
		      (uint32_t)pfs_scan_run_some(tree, n, GRAIN, OWN, fill_depth_range, &filling);
		if (atomic_load(&filling.has_unknown))
			fill_unknown_depths(&filling, *to);
		return 0;
	case PFS_DERIVED_ATTR:
		break;
	}
	return fill_attr_range(tree, column, from, to);
}
