/* SPDX-License-Identifier: MIT */
/* fs/image/children.h - the entries of a directory, by name or in the order of the index. A device
 * answers, if there is one for single questions (device_lookup.h), else the image.
 *
 * Locks: any lock on the tree, held as long as a listing lasts. */
#ifndef PFS_FS_IMAGE_CHILDREN_H
#define PFS_FS_IMAGE_CHILDREN_H

#include "base/btree.h"
#include "fs/image/device_lookup.h"

/* Return the slot of the child of that name, or PFS_NO_SLOT; hash: the name's (pfs_image_hash). */
uint32_t pfs_image_child(const struct pfs_tree *tree, uint32_t parent, const char *name,
			 size_t len);
uint32_t pfs_image_child_of_hash(const struct pfs_tree *tree, uint32_t parent, const char *name,
				 size_t len, uint32_t hash);

/* Sets *slot to the node with that absolute path, whose last name follows the '/' at `last`, or to
 * PFS_NO_SLOT. Returns false if no device knows of the path or of the directory before that. */
bool pfs_image_at_path(const struct pfs_tree *tree, uint32_t *slot, const char *path, size_t last,
		       size_t len);

/* Returns true if the directory has no entries. */
bool pfs_image_is_empty(const struct pfs_tree *tree, uint32_t slot);

struct pfs_children {
	const struct pfs_tree *tree;
	uint64_t last; /* the greatest key that an entry can have */
	bool by_device;
	struct pfs_btree_cursor cursor; /* if not by_device: of the image's index of names */
	struct pfs_btree_entry next;	/* if by_device: where the device goes on */
	struct pfs_btree_entry some[PFS_MAILBOX_ENTRIES];
	unsigned n, at;
};

/* Begins before the first entry that is not less than (hash, slot). */
void pfs_children_begin(struct pfs_children *children, const struct pfs_tree *tree,
			uint32_t directory, uint32_t hash, uint32_t slot);
/* Gets the next entry; returns false if there is none. */
bool pfs_children_next(struct pfs_children *children, struct pfs_btree_entry *entry);

#endif
