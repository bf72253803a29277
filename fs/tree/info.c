/* SPDX-License-Identifier: MIT */
/* Totals of the image. */
#include "fs/image/totals.h"

#include <math.h>
#include <stdlib.h>

#include "base/btree.h"
#include "base/checked.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/path.h"
#include "fs/image/slotmap.h"
#include "fs/image/watch.h"
#include "fs/tree/frozen.h"
#include "fs/tree/tree_impl.h"
#include "meta/history.h"

struct totals {
	uint32_t *depth; /* by slot, directories */
	double *bits;    /* log2 of the code; 0: not known yet, and depth neither */
	uint32_t *chain; /* directories on the way up whose depth is not known yet */
	size_t capacity;
};

/* Fills in what is unknown from the root down to slot, a directory. */
static int measure(const struct pfs_image *image, struct totals *totals, uint32_t slot)
{
	size_t n = 0;

	for (; totals->bits[slot] == 0; slot = image->parent[slot]) {
		PFS_TRY(pfs_grow(&totals->chain, &totals->capacity, n + 1, sizeof(uint32_t)));
		totals->chain[n++] = slot;
	}
	for (; n > 0; slot = totals->chain[n]) {
		uint32_t below = totals->chain[--n];

		totals->depth[below] = totals->depth[slot] + 1;
		totals->bits[below] = totals->bits[slot] + log2((double)image->prime[below]);
	}
	return 0;
}

/* Returns the length of the node's code if it may exceed `most`, else at most that. */
static double code_bits(const struct pfs_image *image, const struct totals *totals, uint32_t slot,
			double most)
{
	double above;

	if (S_ISDIR(image->mode[slot]))
		return totals->bits[slot];
	above = totals->bits[image->parent[slot]];
	return above + 64 - __builtin_clzll(image->prime[slot]) > most
		       ? above + log2((double)image->prime[slot])
		       : 0;
}

static int sum_up(struct pfs_tree *tree, struct pfs_tree_info *out, struct totals *totals)
{
	const struct pfs_image *image = &tree->image;
	uint32_t longest = image->root;
	double most_bits = 0;

	totals->bits[image->root] = 1;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		bool directory = S_ISDIR(image->mode[slot]);
		uint32_t parent = image->parent[slot], depth;
		double bits;

		if (!pfs_image_is_live(image, slot))
			continue;
		if (!directory) {
			out->bytes += (uint64_t)image->size[slot];
			out->rows += (image->flags[slot] & PFS_NODE_ROW) != 0;
			out->written += (image->flags[slot] & PFS_NODE_WRITTEN) != 0;
		}
		PFS_TRY(measure(image, totals, directory ? slot : parent));
		depth = directory ? totals->depth[slot] : totals->depth[parent] + 1;
		bits = code_bits(image, totals, slot, most_bits);
		out->max_depth = PFS_MAX(out->max_depth, depth);
		if (bits > most_bits) {
			most_bits = bits;
			longest = slot;
		}
	}
	return pfs_image_code_bits(tree, &out->max_code_bits, longest);
}

static uint64_t memory(const struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;
	uint64_t bytes = pfs_slot_map_memory(image->by_prime) + pfs_btree_memory(image->by_name) +
			 pfs_names_bytes(image->names) + pfs_totals_memory(tree);

	for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
		bytes += image->memory[i].committed;
	return bytes;
}

/* What takes a pass over all nodes. */
static int sum_up_all(struct pfs_tree *tree, struct pfs_tree_info *out)
{
	struct totals totals = {0};
	int error = -ENOMEM;

	totals.depth = calloc(tree->image.end, sizeof(*totals.depth));
	totals.bits = calloc(tree->image.end, sizeof(*totals.bits));
	if (totals.depth && totals.bits)
		error = sum_up(tree, out, &totals);
	free(totals.depth);
	free(totals.bits);
	free(totals.chain);
	return error;
}

/* What is known. */
static void take_figures(const struct pfs_tree *tree, struct pfs_tree_info *out)
{
	const struct pfs_image *image = &tree->image;

	out->nodes = image->nodes;
	out->directories = image->directories;
	out->files = out->nodes - out->directories;
	out->epoch = image->epoch;
}

/* Sums up a frozen copy, as somebody may wait for the tree. */
static int sum_up_copy(struct pfs_tree *tree, struct pfs_tree_info *out)
{
	const struct pfs_frozen_wish wish = {.columns = PFS_COLUMN_SIZE | PFS_COLUMN_FLAGS,
					     .most = UINT64_MAX};
	struct pfs_tree *frozen;
	int error;

	PFS_TRY(pfs_frozen_open(&frozen, tree, &wish));
	error = sum_up_all(frozen, out);
	take_figures(frozen, out);
	pfs_frozen_close(frozen);
	return error;
}

static uint64_t epoch_now(struct pfs_tree *tree)
{
	uint64_t epoch;

	pfs_hold_read(tree, __func__);
	epoch = tree->image.epoch;
	pfs_hold_end(tree);
	return epoch;
}

/* Returns true if nothing has changed since the totals were told last, which *out then has. */
static bool is_kept(struct pfs_tree *tree, struct pfs_tree_info *out)
{
	(void)pthread_mutex_lock(&tree->info_lock);
	*out = tree->info;
	(void)pthread_mutex_unlock(&tree->info_lock);
	return out->nodes && out->epoch == epoch_now(tree);
}

static void keep(struct pfs_tree *tree, const struct pfs_tree_info *info)
{
	(void)pthread_mutex_lock(&tree->info_lock);
	tree->info = *info;
	(void)pthread_mutex_unlock(&tree->info_lock);
}

int pfs_tree_info(struct pfs_tree *tree, struct pfs_tree_info *out)
{
	int error = 0;

	if (!is_kept(tree, out)) {
		*out = (struct pfs_tree_info){0};
		if (!atomic_load(&tree->read_only)) {
			error = sum_up_copy(tree, out);
		} else {
			pfs_hold_read(tree, __func__);
			error = sum_up_all(tree, out);
			take_figures(tree, out);
			pfs_hold_end(tree);
		}
		if (error)
			return error;
		keep(tree, out);
	}
	pfs_hold_read(tree, __func__);
	out->schema = (unsigned)pfs_store_version(tree->store);
	out->seed = pfs_store_seed(tree->store);
	out->memory_bytes = memory(tree);
	out->name_bytes = pfs_names_bytes(tree->image.names);
	pfs_hold_end(tree);
	return 0;
}

int pfs_tree_history(struct pfs_tree *tree, struct pfs_history *out)
{
	return pfs_history_read(tree->store, out);
}

int pfs_tree_history_open(struct pfs_tree *tree, struct pfs_store **out, int64_t at,
			  int (*tick)(void *arg), void *arg)
{
	return pfs_history_open(out, tree->store, at, tick, arg);
}
