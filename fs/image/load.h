/* SPDX-License-Identifier: MIT */
/* fs/image/load.h - fills the image from the store: load.c (the records) and load_index.c (the
 * index of names). No other thread sees the tree meanwhile, so nothing here takes its lock. */
#ifndef PFS_FS_IMAGE_LOAD_H
#define PFS_FS_IMAGE_LOAD_H

#include "base/pool.h"
#include "fs/tree/tree.h"

/* Fills an empty image from the image file, if there is one that may be used, or else from the
 * store. -EUCLEAN: the records are no tree, and a line in the log names the node. */
PFS_MUST_CHECK int pfs_load(struct pfs_tree *tree);

/* ---- what the two parts share ---- */

/* Logs what is wrong with the node; returns -EUCLEAN. */
int pfs_load_damaged(const struct pfs_tree *tree, uint64_t prime, const char *what);


struct pfs_load_index {
	const struct pfs_tree *tree;
	struct pfs_pool *pool;
	struct pfs_btree *index; /* out; empty */
	const uint32_t *hashes;	 /* by slot: pfs_image_hash of the name */
};

/* Fills the index of names from the columns. -ENOMEM; -EUCLEAN: two siblings have one name. */
PFS_MUST_CHECK int pfs_load_index(const struct pfs_load_index *index);

#endif
