/* SPDX-License-Identifier: MIT */
/* fs/attr/attrnotes.h - inside of fs/attr/attrcolumn.h: the nodes whose attributes have changed since columns were
 * read, each with the set that it has now, and with those that it had while snapshots were taken.
 *
 * A set that a snapshot reads is kept until the snapshot has ended, and freed by later changes; it counts among what is
 * kept for snapshots.
 *
 * Locks: tree->lock, for writing where something is put. */
#ifndef PFS_FS_ATTR_ATTRNOTES_H
#define PFS_FS_ATTR_ATTRNOTES_H

#include "fs/tree/tree.h"

struct pfs_attr_notes;
struct pfs_value;

#define PFS_NOTES_NOW UINT64_MAX /* newer than any snapshot */

PFS_MUST_CHECK int pfs_attr_notes_create(struct pfs_attr_notes **out, struct pfs_tree *tree);
struct pfs_attr_notes *pfs_attr_notes_ref(struct pfs_attr_notes *notes);
void pfs_attr_notes_unref(struct pfs_attr_notes *notes); /* NULL is allowed; no lock: there may be many */

/* The node has this set now (NULL: none). -ENOMEM, also when there are too many: the notes are of no use for what
 * comes, and hold for the snapshots before. */
PFS_MUST_CHECK int pfs_attr_notes_put(struct pfs_attr_notes *notes, uint64_t prime, struct pfs_value *set);
/* What the snapshot of that number, taken since the notes began, has of the node. False: what was read. */
bool pfs_attr_notes_find(const struct pfs_attr_notes *notes, struct pfs_value **set, uint64_t prime,
			 uint64_t number);

#endif
