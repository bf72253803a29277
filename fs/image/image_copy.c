/* SPDX-License-Identifier: MIT */
#include "fs/image/image_copy.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/btree.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "fs/image/load.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/image/snapshot.h"
#include "fs/tree/tree_impl.h"

#define ALWAYS (PFS_COLUMN_PRIME | PFS_COLUMNS_PLACE | PFS_COLUMN_MODE)
#define POLL   16u /* blocks copied between two questions */

struct pfs_image_copy {
	struct pfs_tree *live;
	struct pfs_snapshot *snapshot;
	unsigned columns;
	pthread_mutex_t lock; /* of making the index */
	_Atomic(struct pfs_btree *) index;
	struct pfs_btree *empty; /* in its place if there is no memory for it */
	_Atomic bool lacks_memory; /* for the index */
};

static int copy_columns(struct pfs_image *image, unsigned columns, int (*poll)(void *arg),
			void *arg)
{
	struct pfs_snapshot *snapshot = image->copy->snapshot;

	for (uint32_t block = 0; (uint64_t)block * PFS_SNAPSHOT_BLOCK < image->end; block++) {
		for (unsigned left = columns; left; left &= left - 1) {
			unsigned column = left & -left;
			char *to = pfs_snapshot_array(image, column);

			PFS_TRY(pfs_snapshot_fetch(snapshot,
						   to + block * pfs_snapshot_block_size(column),
						   column, block));
		}
		if (block % POLL == 0 && poll && poll(arg))
			return -EINTR;
	}
	return 0;
}

/* What slots have that are not live is undefined so far. */
static void clear_dead(struct pfs_image *image)
{
	for (uint32_t slot = 0; slot < image->end; slot++) {
		if (pfs_image_is_live(image, slot))
			continue;
		image->prime[slot] = 0;
		image->parent[slot] = PFS_NO_SLOT;
		image->name[slot] = PFS_NO_NAME;
		image->mode[slot] = 0;
	}
}

/* Reading what was not declared is an error that shows. */
static void guard(struct pfs_image *image, unsigned columns)
{
#ifdef PFS_VERIFY
	for (unsigned left = PFS_COLUMNS_ALL & ~columns; left; left &= left - 1)
		for (size_t i = 0; i < PFS_IMAGE_COLUMNS; i++)
			if (image->memory[i].base == pfs_snapshot_array(image, left & -left))
				(void)mprotect(image->memory[i].base, image->memory[i].committed,
					       PROT_NONE);
#else
	(void)image;
	(void)columns;
#endif
}

int pfs_image_copy_open(struct pfs_tree *tree, struct pfs_tree *live, unsigned columns)
{
	struct pfs_image *image = &tree->image;
	struct pfs_image_copy *copy = calloc(1, sizeof(*copy));

	*image = (struct pfs_image){.root = PFS_NO_SLOT, .free_head = PFS_NO_SLOT, .copy = copy};
	if (!copy)
		return -ENOMEM;
	copy->live = live;
	copy->columns = columns | ALWAYS;
	(void)pthread_mutex_init(&copy->lock, NULL);
	PFS_TRY(pfs_image_open_columns(image));
	return pfs_btree_create(&copy->empty);
}

int pfs_image_copy_begin(struct pfs_tree *tree, uint64_t *number)
{
	struct pfs_image *image = &tree->image;
	struct pfs_image_copy *copy = image->copy;
	const struct pfs_image *live = &copy->live->image;

	image->end = live->end;
	image->nodes = live->nodes;
	image->directories = live->directories;
	image->root = live->root;
	image->epoch = live->epoch;
	image->access = live->access;
	image->names = live->names;
	image->file = live->file;
	PFS_TRY(pfs_snapshot_take(&copy->snapshot, copy->live, copy->columns));
	*number = pfs_snapshot_number(copy->snapshot);
	return 0;
}

int pfs_image_copy_fill(struct pfs_tree *tree, int (*poll)(void *arg), void *arg)
{
	struct pfs_image *image = &tree->image;
	const unsigned columns = image->copy->columns;

	PFS_TRY(pfs_image_grow(tree, image->end));
	PFS_TRY(copy_columns(image, columns, poll, arg));
	pfs_snapshot_drop_columns(image->copy->snapshot);
	clear_dead(image);
	guard(image, columns);
	return 0;
}

void pfs_image_copy_close(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;
	struct pfs_image_copy *copy = image->copy;

	if (!copy)
		return;
	pfs_snapshot_end(copy->snapshot);
	pfs_btree_destroy(atomic_load(&copy->index));
	pfs_btree_destroy(copy->empty);
	(void)pthread_mutex_destroy(&copy->lock);
	pfs_image_close_columns(image);
	free(copy);
	image->copy = NULL;
}

uint64_t pfs_image_copy_size(unsigned columns, uint32_t slots)
{
	uint64_t bytes = 0;

	for (unsigned left = columns | ALWAYS; left; left &= left - 1)
		bytes += (slots / PFS_SNAPSHOT_BLOCK + 1) * pfs_snapshot_block_size(left & -left);
	return bytes;
}

uint64_t pfs_image_copy_bytes(const struct pfs_tree *tree)
{
	return pfs_image_copy_size(tree->image.copy->columns, tree->image.end);
}

bool pfs_image_copy_is_lost(const struct pfs_tree *tree)
{
	const struct pfs_image_copy *copy = tree->image.copy;

	return pfs_snapshot_is_given_up(copy->snapshot) || atomic_load(&copy->lacks_memory);
}

unsigned pfs_image_copy_changed(const struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	const struct pfs_image_copy *copy = tree->image.copy;
	unsigned changed = 0;

	columns &= copy->columns & ~(unsigned)PFS_COLUMN_LIVE;
	if (slot >= tree->image.end)
		return columns;
	for (unsigned left = columns; left; left &= left - 1) {
		unsigned column = left & -left;
		size_t size = pfs_snapshot_block_size(column) / PFS_SNAPSHOT_BLOCK;
		const char *was = pfs_snapshot_array(&tree->image, column);
		const char *is = pfs_snapshot_array(&copy->live->image, column);

		if (memcmp(was + slot * size, is + slot * size, size) != 0)
			changed |= column;
	}
	return changed;
}

uint32_t pfs_image_copy_slot(const struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_tree *live = tree->image.copy->live;
	uint32_t slot;

	pfs_hold_read(live, __func__);
	slot = pfs_slot_map_find(live->image.by_prime, live->image.prime, ino);
	pfs_hold_end(live);
	if (slot != PFS_NO_SLOT && slot < tree->image.end && tree->image.prime[slot] == ino)
		return slot;
	return PFS_NO_SLOT;
}

bool pfs_image_copy_rare(const struct pfs_image *image, struct pfs_rare_values *out, uint32_t slot)
{
	struct pfs_tree *live = image->copy->live;
	const struct pfs_rare_values *values;

	pfs_hold_read(live, __func__);
	values = pfs_rare_find(live->image.rare, slot);
	if (values)
		*out = *values; /* its target stays where it is as long as the slot is kept */
	pfs_hold_end(live);
	return values;
}

static int make_index(const struct pfs_tree *tree, struct pfs_btree *index)
{
	const struct pfs_image *image = &tree->image;
	uint32_t *hashes PFS_FREE = calloc((size_t)image->end + 1, sizeof(*hashes));
	struct pfs_load_index load = {.tree = tree, .hashes = hashes, .index = index};
	int error;

	if (!hashes)
		return -ENOMEM;
	for (uint32_t slot = 0; slot < image->end; slot++) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);

		if (image->prime[slot])
			hashes[slot] = pfs_image_hash(tree, name, len);
	}
	PFS_TRY(pfs_pool_open(&load.pool, 0, 0));
	error = pfs_load_index(&load);
	pfs_pool_close(load.pool);
	return error;
}

struct pfs_btree *pfs_image_copy_index(const struct pfs_tree *tree)
{
	struct pfs_image_copy *copy = tree->image.copy;
	struct pfs_btree *index = atomic_load_explicit(&copy->index, memory_order_acquire);

	if (index)
		return index;
	PFS_LOCKED(&copy->lock);
	index = atomic_load(&copy->index);
	if (index)
		return index;
	if (pfs_btree_create(&index) || make_index(tree, index)) {
		atomic_store(&copy->lacks_memory, true); /* nobody believes what is found in it */
		pfs_btree_destroy(index);
		return copy->empty;
	}
	atomic_store_explicit(&copy->index, index, memory_order_release);
	return index;
}
