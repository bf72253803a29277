/* SPDX-License-Identifier: MIT */
/* fs/image/load.h - from the store to the image: load.c (the records), load_index.c (the index of
 * names).  Nobody else sees the tree meanwhile, so that nothing here takes its lock. */
#ifndef PFS_FS_IMAGE_LOAD_H
#define PFS_FS_IMAGE_LOAD_H

#include "base/pool.h"
#include "fs/tree/tree.h"

/* Fills an empty image from the image file, if there is one to be used, or from the store.  -EUCLEAN, with a line in the log that names the node, for
 * records that are no tree. */
PFS_MUST_CHECK int pfs_load(struct pfs_tree *tree);

/* ---- what the two parts share ---- */

/* Logs what is wrong with the node; -EUCLEAN. */
int pfs_load_damaged(const struct pfs_tree *tree, uint64_t prime, const char *what);

/* Runs both, at the same time if a thread is to be had. */
void pfs_load_both(void *(*fn)(void *), void *arg, void *(*other_fn)(void *), void *other_arg);

struct pfs_load_index {
	const struct pfs_tree *tree;
	struct pfs_pool *pool;
	struct pfs_btree *index; /* out; empty */
	const uint32_t *hashes; /* by slot: pfs_image_hash of the name */
	int error;
};

/* Fills the index of names from the columns.  -ENOMEM, -EUCLEAN when siblings have one name. */
PFS_MUST_CHECK int pfs_load_index(const struct pfs_load_index *index);

#endif
