/* SPDX-License-Identifier: MIT */
/* What an image file says of the inner nodes of the index of names. The first entries of leaves,
 * which these are made of and leaves are compared with, are read by inner nodes when one is first
 * needed. */
#include "fs/image/imagefile_impl.h"

#include <string.h>

#include "fs/image/image.h"

#define WORDS (sizeof(struct pfs_btree_entry) / sizeof(uint64_t))

static bool is_sound(const struct pfs_image_file *file, struct pfs_btree_entry entry)
{
	const struct pfs_image_header *header = &file->header;

	return entry.slot < header->end && entry.slot != header->root &&
	       entry.key >> PFS_NAME_HASH_BITS < header->end;
}

/* Where somebody may be led to. The tree sees to their order. */
bool pfs_imagefile_tops_are_sound(const struct pfs_image_file *file)
{
	for (size_t i = 0; i < file->layout.n_inners; i++)
		if (!is_sound(file, file->tops[i]))
			return false;
	return true;
}

static size_t first_leaf(const struct pfs_image_file *file, size_t inner)
{
	return pfs_btree_first_leaf(file->layout.n_leaves, inner);
}

bool pfs_imagefile_take_firsts(const struct pfs_image_file *file, size_t inner,
			       const struct pfs_btree_entry *firsts, size_t n)
{
	const struct pfs_btree_entry *top = &file->tops[inner];
	uint64_t words[PFS_BTREE_INNER_COUNT * WORDS];

	if (firsts[0].key != top->key || firsts[0].slot != top->slot)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!is_sound(file, firsts[i]) ||
		    (i && !pfs_btree_is_less(firsts[i - 1], firsts[i])))
			return false;
		words[i * WORDS] = firsts[i].key;
		words[i * WORDS + 1] = firsts[i].slot;
	}
	if (inner + 1 < file->layout.n_inners && !pfs_btree_is_less(firsts[n - 1], top[1]))
		return false;
	pfs_imagefile_put_known(&file->firsts, inner, first_leaf(file, inner) * WORDS, words,
				n * WORDS);
	return true;
}

bool pfs_imagefile_know_firsts(const struct pfs_image_file *file, size_t inner)
{
	struct pfs_btree_entry firsts[PFS_BTREE_INNER_COUNT];

	if (atomic_load_explicit(&file->firsts.pieces[inner], memory_order_acquire))
		return true;
	return pfs_imagefile_read(file, firsts, PFS_SECTION_FIRSTS, inner, 1) &&
	       pfs_imagefile_take_firsts(file, inner, firsts,
					 first_leaf(file, inner + 1) - first_leaf(file, inner));
}

struct pfs_btree_entry pfs_imagefile_first(const struct pfs_image_file *file, size_t leaf)
{
	_Atomic uint64_t *words = &file->firsts.words[leaf * WORDS];

	return (struct pfs_btree_entry){
		.key = atomic_load_explicit(&words[0], memory_order_relaxed),
		.slot = (pfs_btree_value)atomic_load_explicit(&words[1], memory_order_relaxed),
	};
}

bool pfs_imagefile_leaf_is_between(const struct pfs_image_file *file, size_t leaf,
				   struct pfs_btree_entry first, struct pfs_btree_entry last)
{
	size_t inner = pfs_btree_inner_of(file->layout.n_leaves, leaf);
	struct pfs_btree_entry its;

	if (!pfs_imagefile_know_firsts(file, inner))
		return false;
	its = pfs_imagefile_first(file, leaf);
	if (first.key != its.key || first.slot != its.slot)
		return false;
	if (leaf + 1 < first_leaf(file, inner + 1))
		return pfs_btree_is_less(last, pfs_imagefile_first(file, leaf + 1));
	return inner + 1 == file->layout.n_inners || pfs_btree_is_less(last, file->tops[inner + 1]);
}

void pfs_imagefile_make_inner(const struct pfs_image_file *file, void *to, size_t inner)
{
	size_t leaf = first_leaf(file, inner), n = first_leaf(file, inner + 1) - leaf;
	struct pfs_btree_entry firsts[PFS_BTREE_INNER_COUNT];

	for (size_t i = 0; i < n; i++)
		firsts[i] = pfs_imagefile_first(file, leaf + i);
	pfs_btree_make_inner(to, file->leaves.base, leaf, firsts, (unsigned)n);
}

/* The first entry of each leaf below the inner node, where the cursor is; zeros between their
 * members. */
static void read_firsts(struct pfs_btree_entry firsts[PFS_BTREE_INNER_COUNT],
			const struct pfs_btree *index, struct pfs_btree_cursor *cursor, size_t n)
{
	struct pfs_btree_entry entry;

	memset(firsts, 0, PFS_BTREE_INNER_COUNT * sizeof(*firsts));
	for (size_t i = 0; i < n * PFS_BTREE_LEAF_COUNT && pfs_btree_next(index, cursor, &entry);
	     i++) {
		struct pfs_btree_entry *first = &firsts[i / PFS_BTREE_LEAF_COUNT];

		if (i % PFS_BTREE_LEAF_COUNT)
			continue;
		first->key = entry.key;
		first->slot = entry.slot;
	}
}

int pfs_imagefile_write_firsts(const struct pfs_image_out *out, const struct pfs_btree *index,
			       const struct pfs_image_layout *layout, unsigned section)
{
	struct pfs_btree_entry firsts[PFS_BTREE_INNER_COUNT];
	struct pfs_btree_cursor cursor;

	pfs_btree_seek(index, &cursor, 0, 0);
	for (size_t i = 0; i < layout->n_inners; i++) {
		read_firsts(firsts, index, &cursor,
			    pfs_btree_first_leaf(layout->n_leaves, i + 1) -
				    pfs_btree_first_leaf(layout->n_leaves, i));
		PFS_TRY(out->put(out->writer, firsts,
				 section == PFS_SECTION_FIRSTS ? sizeof(firsts)
							       : sizeof(firsts[0])));
	}
	return 0;
}

bool pfs_imagefile_fill_inners(const struct pfs_image_file *file, void *to, uint64_t first,
			       size_t size)
{
	size_t inner = first * PFS_IMAGE_INNERS, n = size / PFS_BTREE_INNER_SIZE;
	char *at = to;

	for (size_t i = 0; i < n; i++, at += PFS_BTREE_INNER_SIZE) {
		if (!pfs_imagefile_know_firsts(file, inner + i))
			return false;
		pfs_imagefile_make_inner(file, at, inner + i);
	}
	return true;
}
