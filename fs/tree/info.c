/* SPDX-License-Identifier: MIT */
/* Totals of the image. */
#include "fs/tree/internal.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

struct totals {
	uint32_t *depth; /* by slot, directories; UINT32_MAX: not known yet */
	double *bits;    /* log2 of the code */
};

/* Fills in what is unknown from the root down to slot, a directory. */
static void measure(const struct pfs_image *image, struct totals *totals, uint32_t slot)
{
	uint32_t top = slot, unknown = 0;

	for (; totals->depth[top] == UINT32_MAX; top = image->parent[top])
		unknown++;
	while (unknown > 0) {
		uint32_t s = slot;

		/* climb again to each: chains are short, and every directory is filled in once */
		for (uint32_t i = 1; i < unknown; i++)
			s = image->parent[s];
		totals->depth[s] = totals->depth[image->parent[s]] + 1;
		totals->bits[s] = totals->bits[image->parent[s]] + log2((double)image->prime[s]);
		unknown--;
	}
}

static int sum_up(struct pfs_tree *tree, struct pfs_tree_info *out, struct totals *totals)
{
	const struct pfs_image *image = &tree->image;
	uint32_t longest = image->root;
	double most_bits = 0;

	for (uint32_t slot = 0; slot < image->end; slot++)
		totals->depth[slot] = UINT32_MAX;
	totals->depth[image->root] = 0;
	totals->bits[image->root] = 1;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		bool directory = S_ISDIR(image->mode[slot]);
		uint32_t parent = image->parent[slot], depth;
		double bits;

		if (!image->prime[slot] || image->state[slot] & PFS_SLOT_UNLINKED)
			continue;
		if (!directory)
			out->bytes += (uint64_t)image->size[slot];
		measure(image, totals, directory ? slot : parent);
		depth = directory ? totals->depth[slot] : totals->depth[parent] + 1;
		bits = directory ? totals->bits[slot]
				 : totals->bits[parent] + log2((double)image->prime[slot]);
		out->max_depth = PFS_MAX(out->max_depth, depth);
		if (bits > most_bits) {
			most_bits = bits;
			longest = slot;
		}
	}
	return pfs_image_code_bits(tree, &out->max_code_bits, longest);
}

static uint64_t memory(const struct pfs_image *image)
{
	uint64_t bytes = pfs_slot_map_memory(image->by_prime) + pfs_btree_memory(image->by_name) +
			 pfs_names_bytes(image->names);

	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		bytes += image->memory[i].committed;
	return bytes;
}

int pfs_tree_info(struct pfs_tree *tree, struct pfs_tree_info *out)
{
	const struct pfs_image *image = &tree->image;
	uint32_t *depth PFS_FREE = NULL;
	double *bits PFS_FREE = NULL;
	int error = -ENOMEM;

	*out = (struct pfs_tree_info){0};
	(void)pthread_rwlock_rdlock(&tree->lock);
	depth = malloc(image->end * sizeof(*depth));
	bits = malloc(image->end * sizeof(*bits));
	if (depth && bits)
		error = sum_up(tree, out, &(struct totals){.depth = depth, .bits = bits});
	out->nodes = image->nodes;
	out->directories = image->directories;
	out->files = out->nodes - out->directories;
	out->epoch = image->epoch;
	out->memory_bytes = memory(image);
	out->name_bytes = pfs_names_bytes(image->names);
	(void)pthread_rwlock_unlock(&tree->lock);
	return error;
}
