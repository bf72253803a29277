/* SPDX-License-Identifier: MIT */
/* fs/attr/attrnotes.h - for the files of fs/attr/attrcolumn.h: the nodes whose attributes have
 * changed since columns were read, each with the set that it has now and with the sets that open
 * snapshots read.
 *
 * A set that a snapshot reads is kept until the snapshot has ended, and is freed by a later change;
 * it counts among what is kept for snapshots.
 *
 * Locks: tree->lock, for writing where something is put. Notes are counted by reference. */
#ifndef PFS_FS_ATTR_ATTRNOTES_H
#define PFS_FS_ATTR_ATTRNOTES_H

#include "fs/tree/tree.h"

struct pfs_attr_notes;
struct pfs_value;

#define PFS_NOTES_NOW UINT64_MAX /* greater than any snapshot's number */

/* Begins notes, with one reference. -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_notes_create(struct pfs_attr_notes **out, struct pfs_tree *tree);
/* Adds a reference, and returns the notes. */
struct pfs_attr_notes *pfs_attr_notes_ref(struct pfs_attr_notes *notes);
/* NULL is allowed. No lock is held: freeing many takes its time. */
void pfs_attr_notes_unref(struct pfs_attr_notes *notes);

/* Notes that the node has this set now (NULL: none). -ENOMEM, also when there are too many notes:
 * they are of no use for what comes, but still right for the snapshots before. */
PFS_MUST_CHECK int pfs_attr_notes_put(struct pfs_attr_notes *notes, uint64_t prime,
				      struct pfs_value *set);
/* Returns true if nothing has been noted: no node needs to be looked for. */
bool pfs_attr_notes_empty(const struct pfs_attr_notes *notes);
/* Finds the set that the snapshot of that number, taken since the notes began, has of the node.
 * False: the node has what was read of the store. */
bool pfs_attr_notes_find(const struct pfs_attr_notes *notes, struct pfs_value **set, uint64_t prime,
			 uint64_t number);

#endif
