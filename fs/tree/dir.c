/* SPDX-License-Identifier: MIT */
/* Names: lookup and readdir. */
#include "fs/tree/dir.h"

#include <limits.h>
#include <string.h>

#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/journal/atime.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

/* ---- what the operations on names share ---- */

int pfs_name_check(size_t *len, const char *name)
{
	*len = strnlen(name, PFS_NAME_MAX + 1);
	if (*len > PFS_NAME_MAX)
		return -ENAMETOOLONG;
	if (!*len || !strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
		return -EINVAL;
	return 0;
}

bool pfs_name_is_reserved(const char *name)
{
	return !strcmp(name, ".query");
}

int pfs_dir_slot(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino)
{
	uint32_t found = pfs_image_slot(tree, ino);

	if (found == PFS_NO_SLOT)
		return -ESTALE;
	if (!S_ISDIR(tree->image.mode[found]))
		return -ENOTDIR;
	*slot = found;
	return 0;
}

int pfs_dir_slot_alive(const struct pfs_tree *tree, uint32_t *slot, uint64_t ino)
{
	PFS_TRY(pfs_dir_slot(tree, slot, ino));
	return tree->image.state[*slot] & PFS_SLOT_UNLINKED ? -ENOENT : 0;
}

/* ---- references ---- */

void pfs_reference(struct pfs_tree *tree, uint32_t slot)
{
	_Atomic uint32_t *count = &tree->image.references[slot];
	uint32_t seen = atomic_load_explicit(count, memory_order_relaxed);

	while (seen != UINT32_MAX)
		if (atomic_compare_exchange_weak(count, &seen, seen + 1))
			break;
}

/* The number left. */
static uint32_t unreference(struct pfs_tree *tree, uint32_t slot, uint64_t n)
{
	_Atomic uint32_t *count = &tree->image.references[slot];
	uint32_t seen = atomic_load_explicit(count, memory_order_relaxed);
	uint32_t left;

	do {
		if (seen == UINT32_MAX)
			return seen;
		left = seen > n ? seen - (uint32_t)n : 0;
	} while (!atomic_compare_exchange_weak(count, &seen, left));
	return left;
}

void pfs_drop_unused(struct pfs_tree *tree, uint64_t ino)
{
	uint32_t slot;
	uint8_t state;

	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	state = slot == PFS_NO_SLOT ? 0 : tree->image.state[slot];
	if (state & PFS_SLOT_UNLINKED && !(state & PFS_SLOT_DROPPED) &&
	    !atomic_load(&tree->image.references[slot])) {
		pfs_parts_drop(tree, ino);
		pfs_journal_dropped(tree, slot);
	}
	pfs_hold_end(tree);
	pfs_parts_unlock(tree);
}

void pfs_tree_forget(struct pfs_tree *tree, uint64_t ino, uint64_t n)
{
	bool unused = false;
	uint32_t slot;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		unused = !unreference(tree, slot, n) &&
			 tree->image.state[slot] & PFS_SLOT_UNLINKED;
	pfs_hold_end(tree);
	if (unused)
		pfs_drop_unused(tree, ino);
}

/* ---- lookup ---- */

static int find(const struct pfs_tree *tree, uint32_t *slot, uint64_t parent, const char *name,
		size_t len)
{
	uint32_t directory;

	if (!strcmp(name, ".")) { /* also of what is no directory: a handle is resolved so */
		*slot = pfs_image_slot(tree, parent);
		return *slot == PFS_NO_SLOT ? -ESTALE : 0;
	}
	PFS_TRY(pfs_dir_slot(tree, &directory, parent));
	if (!strcmp(name, ".."))
		*slot = tree->image.parent[directory] == PFS_NO_SLOT
				? directory
				: tree->image.parent[directory];
	else
		*slot = pfs_image_child(tree, directory, name, len);
	return *slot == PFS_NO_SLOT ? -ENOENT : 0;
}

int pfs_tree_lookup(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent, const char *name)
{
	size_t len = strnlen(name, PFS_NAME_MAX + 1);
	uint32_t slot;
	int error;

	if (len > PFS_NAME_MAX)
		return -ENAMETOOLONG;
	pfs_hold_read(tree, __func__);
	error = find(tree, &slot, parent, name, len);
	if (!error) {
		pfs_reference(tree, slot);
		pfs_image_stat(tree, out, slot);
	}
	pfs_hold_end(tree);
	return error;
}

/* ---- readdir ----
 * Offset 1 is behind ".", 2 behind "..". The offset behind any other entry is its (hash << 32 |
 * slot) plus PAST_DOTS: its position in the index, which does not depend on other entries. */

#define PAST_DOTS 3

_Static_assert(((UINT64_C(1) << PFS_NAME_HASH_BITS) - 1) << 32 <= INT64_MAX - UINT32_MAX,
	       "offsets are positive");

struct listing {
	struct pfs_tree *tree;
	uint32_t directory;
	bool want_attr;
	int (*fn)(void *arg, const struct pfs_dirent *entry);
	void *arg;
};

/* True when the caller has enough. */
static bool list(const struct listing *listing, const char *name, uint32_t slot, int64_t next)
{
	struct pfs_tree *tree = listing->tree;
	struct pfs_entry attr;
	struct pfs_dirent entry = {.name = name, .next_offset = next};

	if (listing->want_attr) {
		pfs_image_stat(tree, &attr, slot);
		entry.entry = &attr;
		entry.ino = attr.attr.st_ino;
		entry.mode = attr.attr.st_mode & S_IFMT;
	} else {
		entry.ino = pfs_imagefile_get(&tree->image, PFS_COLUMN_NUMBER_PRIME, slot);
		entry.mode = (mode_t)pfs_imagefile_get(&tree->image, PFS_COLUMN_NUMBER_MODE, slot) &
			     S_IFMT;
	}
	if (listing->fn(listing->arg, &entry))
		return true;
	if (listing->want_attr && next >= PAST_DOTS)
		pfs_reference(tree, slot);
	return false;
}

int64_t pfs_dir_offset(const struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	size_t len;
	const char *name = pfs_names_get(image->names, image->name[slot], &len);
	uint64_t place = (uint64_t)pfs_image_hash(tree, name, len) << 32 | slot;

	return (int64_t)place + PAST_DOTS;
}

static void list_children(const struct listing *listing, int64_t offset)
{
	const struct pfs_image *image = &listing->tree->image;
	uint64_t place = offset >= PAST_DOTS ? (uint64_t)(offset - PAST_DOTS) + 1 : 0;
	uint64_t first = (uint64_t)listing->directory << PFS_NAME_HASH_BITS;
	struct pfs_children children;
	struct pfs_btree_entry entry;

	if (place >> 32 >> PFS_NAME_HASH_BITS)
		return;
	pfs_children_begin(&children, listing->tree, listing->directory, (uint32_t)(place >> 32),
			   (uint32_t)place);
	while (pfs_children_next(&children, &entry)) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[entry.slot], &len);

		place = (entry.key - first) << 32 | entry.slot;
		if (list(listing, name, entry.slot, (int64_t)place + PAST_DOTS))
			return;
	}
}

static void list_all(const struct listing *listing, int64_t offset)
{
	uint32_t directory = listing->directory;
	uint32_t parent = listing->tree->image.parent[directory];

	if (offset < 1 && list(listing, ".", directory, 1))
		return;
	if (offset < 2 && list(listing, "..", parent == PFS_NO_SLOT ? directory : parent, 2))
		return;
	list_children(listing, offset);
}

int pfs_tree_readdir(struct pfs_tree *tree, uint64_t ino, int64_t offset, bool want_attr,
		     int (*fn)(void *arg, const struct pfs_dirent *entry), void *arg)
{
	struct listing listing = {.tree = tree, .want_attr = want_attr, .fn = fn, .arg = arg};
	bool atime_due = false;
	int error;

	if (offset < 0)
		return -EINVAL;
	pfs_hold_read(tree, __func__);
	error = pfs_dir_slot(tree, &listing.directory, ino);
	if (!error) {
		list_all(&listing, offset);
		atime_due = pfs_atime_is_due(tree, listing.directory);
	}
	pfs_hold_end(tree);
	if (atime_due)
		pfs_update_atime(tree, ino);
	return error;
}
