/* SPDX-License-Identifier: MIT */
/* fs/image/old_places.h - where nodes were and what they were called, for readers that go on
 * reading the tree as it was when they began.
 *
 * A past (struct pfs_old_places) remembers, by slot, the prime, parent and name that a node had
 * before its first change since the past was opened; what is not in it is as the image has it. A
 * past that is opened when nothing has changed since the newest one shares it. The memory of all
 * pasts counts among what is kept for snapshots, and may be half of that (snapshot.h). Before it is
 * more, the oldest past that remembers anything is given up; a change never fails for it.
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
/* Takes memory for what open pasts will remember when the places of so many nodes change. To be
 * called before tree->lock is taken. */
void pfs_place_history_reserve(struct pfs_tree *tree, size_t slots);
bool pfs_old_places_is_present(
	const struct pfs_old_places *past); /* true if nothing has changed since */

struct pfs_old_place {
	bool is_live;	 /* it had a name, or was the root */
	uint32_t parent; /* slot, if the node was live and not the root; else undefined */
	uint64_t prime;
	size_t len;
	const char
		*name; /* valid while the tree is held; PFS_NAME_SLACK bytes from it may be read */
};
void pfs_old_places_find(const struct pfs_old_places *past, struct pfs_old_place *out,
			 uint32_t slot);
/* Returns true if the slot has another place than it had, or had none: it came later. */
bool pfs_old_places_has_changed(const struct pfs_old_places *past, uint32_t slot);
/* Moves *slot to the first one from there on whose place the past remembers; false: there is
 * none. */
bool pfs_old_places_next(const struct pfs_old_places *past, uint32_t *slot);
/* Returns true if a came before b in pre-order, siblings by the bytes of their names. Both were
 * live. */
bool pfs_old_places_is_before(const struct pfs_old_places *past, uint32_t a, uint32_t b);

#endif
