/* SPDX-License-Identifier: MIT */
/* An image file of an earlier group of the store: the nodes that later groups changed are taken out
 * of the image, and those of them that there still are go in as the store has them now.  What the
 * store says is verified as far as it meets with the rest; whatever does not fit ends in loading
 * all from the rows. */
#include "fs/image/imagefile_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/btree.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/children.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/image/slotmap.h"
#include "fs/tree/tree_impl.h"

#define VALUES	 (PFS_COLUMNS_ALL & ~(PFS_COLUMN_PRIME | PFS_COLUMNS_PLACE))
#define PART_MAX 8u /* one of so many nodes changed: reading all rows is not much slower */

/* A changed node, as it is now. */
struct change {
	struct pfs_node_record
		record; /* prime alone if it is gone; name and target are the array's */
	uint32_t slot; /* that it had; PFS_NO_SLOT: it is new */
	bool gone;
	bool stays; /* where it is, under its name */
	bool placed;
	struct change *below; /* that is placed next */
};

struct changes {
	struct pfs_tree *tree;
	struct change *all;
	size_t n, capacity, most;
	size_t n_new; /* that have a slot by now */
};

/* ---- reading them ---- */

static int copy_bytes(const void **bytes, size_t len)
{
	void *copy;

	if (!*bytes)
		return 0;
	copy = malloc(len + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, *bytes, len);
	*bytes = copy;
	return 0;
}

static int note(void *arg, uint64_t seq PFS_UNUSED, uint64_t prime,
		const struct pfs_node_record *node)
{
	struct changes *changes = arg;
	struct change *change;

	if (changes->n == changes->most)
		return -ENOENT;
	PFS_TRY(pfs_grow(&changes->all, &changes->capacity, changes->n + 1, sizeof(*changes->all)));
	change = &changes->all[changes->n];
	*change = (struct change){.record.prime = prime, .gone = !node};
	change->slot = pfs_image_slot(changes->tree, prime);
	if (node) {
		change->record = *node;
		change->record.name = change->record.target = NULL;
	}
	changes->n++; /* from here on the bytes are freed with it */
	if (!node)
		return 0;
	change->record.name = node->name;
	if (copy_bytes(&change->record.name, node->name_len)) {
		change->record.name = NULL;
		return -ENOMEM;
	}
	change->record.target = node->target;
	if (copy_bytes(&change->record.target, node->target_len)) {
		change->record.target = NULL;
		return -ENOMEM;
	}
	return 0;
}

static void release(struct change *change)
{
	free((void *)change->record.name);
	free((void *)change->record.target);
}

static int by_prime(const void *a, const void *b)
{
	uint64_t x = ((const struct change *)a)->record.prime;
	uint64_t y = ((const struct change *)b)->record.prime;

	return (x > y) - (x < y);
}

/* Several groups may have changed a node; all of them tell what it is now. */
static void leave_one_of_each(struct changes *changes)
{
	size_t n = 0;

	qsort(changes->all, changes->n, sizeof(*changes->all), by_prime);
	for (size_t i = 0; i < changes->n; i++) {
		if (n && changes->all[n - 1].record.prime == changes->all[i].record.prime)
			release(&changes->all[i]);
		else
			changes->all[n++] = changes->all[i];
	}
	changes->n = n;
}

/* ---- what goes ---- */

static bool stays(const struct pfs_tree *tree, const struct change *change)
{
	const struct pfs_image *image = &tree->image;
	uint32_t parent = image->parent[change->slot];
	size_t len;
	const char *name;

	if (change->slot == image->root)
		return true;
	if (change->gone || image->prime[parent] != change->record.parent)
		return false;
	name = pfs_names_get(image->names, image->name[change->slot], &len);
	return len == change->record.name_len && memcmp(name, change->record.name, len) == 0;
}

/* Counts the directories that are still in the directory, whatever was counted of those that went.
 */
static uint32_t count_directories(const struct pfs_image *image, uint32_t directory)
{
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;
	uint32_t n = 0;

	pfs_btree_seek(image->by_name, &cursor, pfs_image_key(directory, 0), 0);
	while (pfs_btree_next(image->by_name, &cursor, &entry) &&
	       entry.key >> PFS_NAME_HASH_BITS == directory)
		n += S_ISDIR(image->mode[entry.slot]);
	return n;
}

static bool has_children(const struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_btree_cursor cursor;
	struct pfs_btree_entry entry;

	pfs_btree_seek(tree->image.by_name, &cursor, pfs_image_key(slot, 0), 0);
	return pfs_btree_next(tree->image.by_name, &cursor, &entry) &&
	       entry.key >> PFS_NAME_HASH_BITS == slot;
}

/* All that goes away or elsewhere leaves its place before anything takes one, or a slot. */
static int take_out(struct changes *changes)
{
	struct pfs_tree *tree = changes->tree;
	struct pfs_image *image = &tree->image;

	for (size_t i = 0; i < changes->n; i++) {
		struct change *change = &changes->all[i];

		if (change->slot == PFS_NO_SLOT)
			continue;
		change->stays = stays(tree, change);
		if (!change->stays)
			pfs_image_detach(tree, change->slot, pfs_image_hash_of(tree, change->slot),
					 NULL);
	}
	for (size_t i = 0; i < changes->n; i++) {
		const struct change *change = &changes->all[i];

		if (change->slot == PFS_NO_SLOT || change->stays)
			continue;
		if (change->gone && has_children(tree, change->slot))
			return -ENOENT;
		if (change->gone)
			pfs_image_free(tree, change->slot);
		else
			image->links[change->slot] =
				S_ISDIR(image->mode[change->slot])
					? 2 + count_directories(image, change->slot)
					: 1;
	}
	return 0;
}

/* ---- what there is ---- */

static int set_values(struct pfs_tree *tree, uint32_t slot, const struct pfs_node_record *node)
{
	struct pfs_image *image = &tree->image;
	struct pfs_rare_values *values;

	image->mode[slot] = (uint16_t)node->mode;
	image->flags[slot] = (uint8_t)node->flags;
	pfs_image_load_numbers(image, slot, node);
	if (image->state[slot] & PFS_SLOT_RARE)
		pfs_rare_drop(image->rare, slot);
	image->state[slot] = PFS_SLOT_STORED;
	PFS_TRY(pfs_image_load_time(tree, image->atime, slot, node->atime));
	PFS_TRY(pfs_image_load_time(tree, image->mtime, slot, node->mtime));
	PFS_TRY(pfs_image_load_time(tree, image->ctime, slot, node->ctime));
	if (!node->target && !node->rdev)
		return 0;
	PFS_TRY(pfs_rare_get(image->rare, &values, slot));
	image->state[slot] |= PFS_SLOT_RARE;
	values->rdev = node->rdev;
	if (!node->target)
		return 0;
	pfs_rare_set_target(image->rare, values, strndup(node->target, node->target_len),
			    (uint32_t)node->target_len);
	return values->target ? 0 : -ENOMEM;
}

/* A new node gets the slot that its record has, which must be free. */
static int take_slot(struct changes *changes, const struct change *change)
{
	struct pfs_image *image = &changes->tree->image;
	uint32_t slot = change->record.slot;

	if (slot >= image->end || image->prime[slot])
		return -ENOENT;
	PFS_TRY(pfs_slot_map_reserve(image->by_prime, (uint64_t)image->nodes + ++changes->n_new));
	image->prime[slot] = change->record.prime;
	image->parent[slot] = PFS_NO_SLOT;
	image->links[slot] = S_ISDIR(change->record.mode) ? 2 : 1;
	pfs_slot_map_insert(image->by_prime, image->prime, slot);
	return 0;
}

/* A node that is there already; whoever follows the image hears of it. */
static int renew(struct pfs_tree *tree, const struct change *change)
{
	const struct pfs_node_record *record = &change->record;
	int error;

	if (change->slot != record->slot ||
	    (tree->image.mode[record->slot] & S_IFMT) != (record->mode & S_IFMT))
		return -ENOENT;
	pfs_watch_changing(tree, record->slot, VALUES);
	error = set_values(tree, record->slot, record);
	pfs_watch_changed(tree, record->slot, VALUES);
	return error;
}

static int renew_all(const struct changes *changes)
{
	for (size_t i = 0; i < changes->n; i++)
		if (changes->all[i].slot != PFS_NO_SLOT && !changes->all[i].gone)
			PFS_TRY(renew(changes->tree, &changes->all[i]));
	return 0;
}

/* One that is not, and has no place yet. */
static int fill(struct changes *changes, const struct change *change)
{
	if (change->slot != PFS_NO_SLOT || change->gone)
		return 0;
	PFS_TRY(take_slot(changes, change));
	return set_values(changes->tree, change->record.slot, &change->record);
}

static int place_one(struct pfs_tree *tree, const struct change *change)
{
	const struct pfs_node_record *record = &change->record;
	struct pfs_image *image = &tree->image;
	const uint32_t hash = pfs_image_hash(tree, record->name, record->name_len);
	uint32_t parent, name;

	parent = pfs_image_slot(tree, record->parent);
	if (parent == PFS_NO_SLOT || !S_ISDIR(image->mode[parent]) ||
	    pfs_image_child_of_hash(tree, parent, record->name, record->name_len, hash) !=
		    PFS_NO_SLOT)
		return -ENOENT;
	PFS_TRY(pfs_names_add(image->names, &name, record->name, record->name_len));
	pfs_image_attach(tree, record->slot, parent, name, hash);
	return 0;
}

/* The change of that node, if it has no place yet and is to get one. */
static struct change *find_unplaced(const struct changes *changes, uint64_t prime)
{
	const struct change key = {.record.prime = prime};
	struct change *found =
		changes->n ? bsearch(&key, changes->all, changes->n, sizeof(key), by_prime) : NULL;

	return found && !found->gone && !found->stays && !found->placed ? found : NULL;
}

/* The directories that it lies in get their places before. */
static int place(const struct changes *changes, uint64_t prime)
{
	struct change *top = NULL, *change;

	while ((change = find_unplaced(changes, prime)) != NULL) {
		change->placed = true;
		change->below = top;
		top = change;
		prime = change->record.parent;
	}
	for (; top; top = top->below)
		PFS_TRY(place_one(changes->tree, top));
	return 0;
}

static bool leads_to_root(const struct pfs_image *image, uint32_t slot)
{
	for (uint32_t steps = 0; steps <= image->directories; steps++) {
		if (slot == image->root)
			return true;
		slot = image->parent[slot];
		if (slot == PFS_NO_SLOT)
			return false;
	}
	return false;
}

/* ---- all of it ---- */

/* What is free is chained anew, as loading from the rows does. */
static void chain_free(struct pfs_tree *tree)
{
	struct pfs_image *image = &tree->image;

	image->free_head = PFS_NO_SLOT;
	image->free_count = 0;
	for (uint32_t slot = image->end;
	     slot-- > 0 && image->free_count < image->end - image->nodes;)
		if (!image->prime[slot])
			pfs_image_chain_free(tree, slot);
}

static int put_in(struct changes *changes)
{
	struct pfs_tree *tree = changes->tree;

	PFS_TRY(pfs_btree_reserve(tree->image.by_name, changes->n));
	for (size_t i = 0; i < changes->n; i++)
		PFS_TRY(fill(changes, &changes->all[i]));
	for (size_t i = 0; i < changes->n; i++)
		PFS_TRY(place(changes, changes->all[i].record.prime));
	return 0;
}

static int check_directories(const struct changes *changes)
{
	const struct pfs_image *image = &changes->tree->image;

	for (size_t i = 0; i < changes->n; i++) {
		const struct change *change = &changes->all[i];

		if (!change->gone && S_ISDIR(change->record.mode) &&
		    !leads_to_root(image, change->record.slot))
			return -ENOENT;
	}
	return 0;
}

static int follow(struct changes *changes, const struct pfs_store_totals *totals)
{
	struct pfs_tree *tree = changes->tree;
	struct pfs_image *image = &tree->image;
	uint32_t end = (uint32_t)PFS_MIN(totals->end_slot, (uint64_t)PFS_SLOT_MAX);

	if (end > image->end) {
		PFS_TRY(pfs_image_grow(tree, end));
		image->end = end;
	}
	PFS_TRY(renew_all(changes));
	PFS_TRY(take_out(changes));
	PFS_TRY(put_in(changes));
	PFS_TRY(check_directories(changes));
	if (image->nodes != totals->nodes)
		return -ENOENT;
	chain_free(tree);
	return 0;
}

int pfs_imagefile_follow(struct pfs_tree *tree)
{
	struct changes changes = {.tree = tree, .most = tree->image.nodes / PART_MAX + 1024};
	struct pfs_store_totals totals;
	int error = pfs_store_totals(tree->store, &totals);

	if (!error)
		error = pfs_store_scan_changes(tree->store, tree->image.file_state.seq, note,
					       &changes);
	if (!error) {
		leave_one_of_each(&changes);
		tree->image.n_behind = changes.n;
		error = follow(&changes, &totals);
	}
	for (size_t i = 0; i < changes.n; i++)
		release(&changes.all[i]);
	free(changes.all);
	return error == 0 || error == -ENOMEM ? error : -ENOENT;
}
