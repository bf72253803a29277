/* SPDX-License-Identifier: MIT */
/* Whether an image file says what the rows say. */
#include <string.h>

#include "base/checked.h"
#include "fs/image/children.h"
#include "fs/image/imagefile_impl.h"
#include "fs/tree/tree_impl.h"

static bool same_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	return a_len == b_len && (!a_len || memcmp(a, b, a_len) == 0);
}

static bool same_time(struct pfs_time a, struct pfs_time b)
{
	return a.sec == b.sec && a.nsec == b.nsec;
}

static bool same_numbers(const struct pfs_node_record *a, const struct pfs_node_record *b)
{
	bool same = a->prime == b->prime && a->parent == b->parent && a->mode == b->mode &&
		    a->flags == b->flags && a->rdev == b->rdev;

#define NUMBER(id, name, type, since) same &= a->name == b->name;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
	return same;
}

/* Found by its prime and by its name, too. */
static bool is_found(const struct pfs_tree *tree, const struct pfs_node_record *node, uint32_t slot)
{
	return pfs_image_slot(tree, node->prime) == slot &&
	       (slot == tree->image.root ||
		pfs_image_child(tree, tree->image.parent[slot], node->name, node->name_len) == slot);
}

static bool is_same(const struct pfs_tree *tree, const struct pfs_tree *rows, uint32_t slot)
{
	struct pfs_node_record a, b;

	if (pfs_image_is_live(&tree->image, slot) != pfs_image_is_live(&rows->image, slot))
		return false;
	if (!pfs_image_is_live(&tree->image, slot))
		return true;
	pfs_image_record(tree, &a, slot);
	pfs_image_record(rows, &b, slot);
	return same_numbers(&a, &b) && same_bytes(a.name, a.name_len, b.name, b.name_len) &&
	       same_bytes(a.target, a.target_len, b.target, b.target_len) && same_time(a.atime, b.atime) &&
	       same_time(a.mtime, b.mtime) && same_time(a.ctime, b.ctime) &&
	       tree->image.links[slot] == rows->image.links[slot] && is_found(tree, &a, slot);
}

int pfs_imagefile_compare(const struct pfs_tree *tree, const struct pfs_tree *rows, uint64_t *different)
{
	const struct pfs_image *image = &tree->image;
	uint32_t most = PFS_MAX(image->end, rows->image.end), end = PFS_MIN(image->end, rows->image.end);
	uint64_t n = most - end;

	if (!image->file)
		return -ENOENT;
	for (uint32_t slot = 0; slot < end; slot++)
		n += !is_same(tree, rows, slot);
	if (atomic_load(&image->file->bad))
		return -EUCLEAN;
	*different = n;
	return 0;
}
