/* SPDX-License-Identifier: MIT */
/* Component-wise pre-order of a set of nodes: every directory before what lies in it, siblings by
 * the bytes of their names. */
#include "fs/tree/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static int compare_names(const struct pfs_image *image, uint32_t a, uint32_t b)
{
	size_t a_len, b_len;
	const char *x = pfs_names_get(image->names, image->name[a], &a_len);
	const char *y = pfs_names_get(image->names, image->name[b], &b_len);
	int order = memcmp(x, y, PFS_MIN(a_len, b_len));

	return order ? order : (int)a_len - (int)b_len;
}

static uint32_t depth(const struct pfs_image *image, uint32_t slot)
{
	uint32_t n = 0;

	for (; slot != image->root; slot = image->parent[slot])
		n++;
	return n;
}

/* Climbs to where the two paths part, and compares there. */
static int compare_places(const void *x, const void *y, void *arg)
{
	const struct pfs_image *image = arg;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;
	uint32_t a_depth = depth(image, a), b_depth = depth(image, b);

	for (uint32_t n = a_depth; n > b_depth; n--)
		a = image->parent[a];
	for (uint32_t n = b_depth; n > a_depth; n--)
		b = image->parent[b];
	if (a == b) /* one lies under the other */
		return (a_depth > b_depth) - (a_depth < b_depth);
	while (image->parent[a] != image->parent[b]) {
		a = image->parent[a];
		b = image->parent[b];
	}
	return compare_names(image, a, b);
}

int pfs_scan_sort_preorder(struct pfs_tree *tree, struct pfs_slots *slots)
{
	if (slots->n)
		qsort_r(slots->slot, slots->n, sizeof(*slots->slot), compare_places, &tree->image);
	return 0;
}
