/* SPDX-License-Identifier: MIT */
/* fs/nodes/list.h - the paths of many nodes as text: all cores write pieces of it while the pieces
 * before are given away. */
#ifndef PFS_FS_NODES_LIST_H
#define PFS_FS_NODES_LIST_H

#include "fs/tree/tree.h"

struct pfs_old_places;

/* Says where the text goes, as in pfs_tree_list; fn is called in the caller's thread. */
struct pfs_list_sink {
	const struct pfs_old_places
		*past;	/* they are listed as they were then; NULL: as they are */
	unsigned flags; /* enum pfs_list_flag */
	int (*fn)(void *arg, const char *bytes, size_t size);
	void *arg;
};

/* Gives the absolute paths of the nodes in *n slots, in their order, until fn returns non-zero,
 * which is returned, or until this has taken a few milliseconds; *n is then how many slots were
 * listed, at least one. A slot without a node has no path. A few megabytes are written ahead.
 * tree->lock is held for reading. -ENOMEM. */
PFS_MUST_CHECK int pfs_list_slots(struct pfs_tree *tree, const uint32_t *slots, size_t *n,
				  const struct pfs_list_sink *sink);

/* Sets *size to how many bytes that text has, without primes; fn is not called. -ENOMEM. */
PFS_MUST_CHECK int pfs_list_measure(struct pfs_tree *tree, uint64_t *size, const uint32_t *slots,
				    size_t n, const struct pfs_old_places *past);

#endif
