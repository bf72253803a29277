/* SPDX-License-Identifier: MIT */
/* fs/nodes/paths_impl.h - what paths.c and paths_set.c share: a text of paths, and how it lists a
 * set.
 *
 * A set belongs to one moment, a hold in which its past is opened and the order of slots is copied.
 * The set itself, and the order of its nodes, are found afterwards in many short holds, as the past
 * has them. */
#ifndef PFS_FS_NODES_PATHS_IMPL_H
#define PFS_FS_NODES_PATHS_IMPL_H

#include "fs/image/old_places.h"
#include "fs/nodes/list.h"
#include "fs/nodes/paths.h"

struct pfs_paths {
	struct pfs_tree *tree;
	struct pfs_old_places *past;
	unsigned flags;
	uint32_t from, to;
	uint64_t *set; /* bits by slot: only these; NULL: all */
	const struct pfs_paths_source
		*source; /* of the set, while that is opened; NULL: a subtree */
	bool on_device;
	bool is_ordered; /* of a set: slots had the order of the tree, but for the strays */
	struct pfs_slots slots; /* n 0: all from..to, but for the strays */
	/* Of a set: slots that were not where pre-order would have them, ascending; and those of
	 * them that are in the set, in pre-order, with the position in from..to before which each
	 * comes: theirs are rows more. */
	struct pfs_slots strays, placed;
	uint32_t *before;
};

/* Holds the tree at the moment that is listed, in place of an earlier one; the caller ends the
 * hold. `arg` is the struct pfs_paths. If it does not return 0, nothing is held. */
PFS_MUST_CHECK int pfs_paths_hold(void *arg);
/* Forgets the moment, and the set. The tree is not held. */
void pfs_paths_forget(struct pfs_paths *paths);

/* Gets the set as it was at the moment, and in from..to the slots that have it. *n is how many
 * nodes it has. */
PFS_MUST_CHECK int pfs_paths_find_set(struct pfs_paths *paths, uint64_t *n);
/* Makes an ascending list of the set's n slots, in place of bits. */
PFS_MUST_CHECK int pfs_paths_list_set(struct pfs_paths *paths, uint64_t n);
/* Finds the set and its order. -EFBIG: it has to be sorted, and is large. */
PFS_MUST_CHECK int pfs_paths_order_set(struct pfs_paths *paths);

/* Lists the *n slots that stand in rows row..end of slots that are in pre-order: no strays where
 * they are. */
PFS_MUST_CHECK int pfs_paths_placed(const struct pfs_paths *paths, uint32_t **out, size_t *n,
				    uint64_t row, uint64_t end);

/* Gives the paths of the slots, as they were, to the sink, in as many holds as it takes. */
PFS_MUST_CHECK int pfs_paths_list(const struct pfs_paths *paths, const struct pfs_slots *slots,
				  const struct pfs_list_sink *sink);

#endif
