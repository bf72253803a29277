/* SPDX-License-Identifier: MIT */
/* fs/image/old_places.h - where nodes were and what they were called, for who goes on reading the
 * tree as it was when he began.
 *
 * A past remembers, by slot, the prime, parent and name that each node had before its first change
 * since then; what is not in it is as the image has it. Pasts between which nothing changed are
 * one. What they remember counts among what is kept for snapshots, of which all pasts may have half
 * (snapshot.h): beyond that the oldest that remembers anything is given up, never the change.
 *
 * Locks: tree->lock for reading, for writing where names come and go. Not handled here: any other
 * column. */
#ifndef PFS_FS_IMAGE_OLD_PLACES_H
#define PFS_FS_IMAGE_OLD_PLACES_H

#include "fs/tree/tree.h"

struct pfs_old_places;

PFS_MUST_CHECK int pfs_place_history_create(struct pfs_tree *tree);
void pfs_place_history_destroy(struct pfs_tree *tree); /* none is open */

/* Opens a past that remembers from now on. -ENOMEM. */
PFS_MUST_CHECK int pfs_old_places_open(struct pfs_old_places **out, struct pfs_tree *tree);
void pfs_old_places_close(struct pfs_old_places *past); /* NULL is allowed; the tree is not held */

/* Returns 0 if the past is right. -ENOMEM: it was given up, as more has changed than may be
 * remembered. */
PFS_MUST_CHECK int pfs_old_places_check(const struct pfs_old_places *past);
/* Takes memory for what a change of the places of so many nodes can have pasts remember. To be
 * called before tree->lock is taken. */
void pfs_place_history_reserve(struct pfs_tree *tree, size_t slots);
bool pfs_old_places_is_present(
	const struct pfs_old_places *past); /* true if nothing has changed since */

struct pfs_old_place {
	bool is_live;	 /* it had a name, or was the root */
	uint32_t parent; /* of a node that was live and not the root; */
	uint64_t prime;
	size_t len;
	const char
		*name; /* valid while the tree is held; PFS_NAME_SLACK bytes from it may be read */
};
void pfs_old_places_find(const struct pfs_old_places *past, struct pfs_old_place *out,
			 uint32_t slot);

#endif
