/* SPDX-License-Identifier: MIT */
#include "fs/nodes/relation.h"

#include <string.h>

#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/path.h"
#include "fs/tree/tree_impl.h"

static uint32_t step(const struct pfs_tree *tree, uint32_t slot, const char *name, size_t len)
{
	const struct pfs_image *image = &tree->image;

	if (!S_ISDIR(image->mode[slot]) || len > PFS_NAME_MAX)
		return PFS_NO_SLOT;
	if (len == 2 && memcmp(name, "..", 2) == 0)
		return slot == image->root ? slot : image->parent[slot];
	if (len == 1 && *name == '.')
		return slot;
	return pfs_image_child(tree, slot, name, len);
}

uint32_t pfs_relation_resolve(const struct pfs_tree *tree, const struct pfs_visible *visible,
			      const char *path, size_t len)
{
	const char *end = path + len;
	uint32_t slot = len ? tree->image.root : PFS_NO_SLOT;

	while (path < end && slot != PFS_NO_SLOT) {
		const char *slash = memchr(path, '/', (size_t)(end - path));
		const char *stop = slash ? slash : end;

		if (stop > path)
			slot = step(tree, slot, path, (size_t)(stop - path));
		/* "closed/x/.." must not tell whether there is an x */
		if (slot != PFS_NO_SLOT && !pfs_visible_has(visible, tree, slot))
			slot = PFS_NO_SLOT;
		path = slash ? slash + 1 : end;
	}
	if (slot != PFS_NO_SLOT && end[-1] == '/' && !S_ISDIR(tree->image.mode[slot]))
		return PFS_NO_SLOT;
	return slot;
}

bool pfs_relation_is_child(const struct pfs_tree *tree, uint32_t slot, uint32_t parent)
{
	bool child;

	if (pfs_device_lookup_is_child(tree, &child, slot, parent))
		return child;
	pfs_device_lookup_count(tree, PFS_QUESTION_CHILD, false, 0);
	return tree->image.parent[slot] == parent;
}

uint32_t pfs_relation_parent(const struct pfs_tree *tree, uint32_t slot)
{
	return tree->image.parent[slot];
}

bool pfs_relation_is_under(const struct pfs_tree *tree, uint32_t slot, uint32_t top)
{
	bool under;

	if (pfs_device_lookup_is_under(tree, &under, PFS_QUESTION_ANCESTOR, slot, top))
		return under;
	pfs_device_lookup_count(tree, PFS_QUESTION_ANCESTOR, false, 0);
	return pfs_image_is_under(tree, slot, top);
}

uint32_t pfs_relation_common(const struct pfs_tree *tree, uint32_t a, uint32_t b)
{
	const struct pfs_image *image = &tree->image;
	uint32_t depth_a, depth_b, common;

	if (pfs_device_lookup_common(tree, &common, a, b))
		return common;
	pfs_device_lookup_count(tree, PFS_QUESTION_COMMON, false, 0);
	depth_a = pfs_image_depth(image, a);
	depth_b = pfs_image_depth(image, b);
	for (; depth_a > depth_b; depth_a--)
		a = image->parent[a];
	for (; depth_b > depth_a; depth_b--)
		b = image->parent[b];
	while (a != b) {
		a = image->parent[a];
		b = image->parent[b];
	}
	return a;
}

uint64_t pfs_relation_ino(const struct pfs_tree *tree, uint32_t slot)
{
	return tree->image.prime[slot];
}

uint64_t pfs_relation_nodes(const struct pfs_tree *tree)
{
	return tree->image.nodes;
}
