/* SPDX-License-Identifier: MIT */
/* fs/journal/atime.h - the time of the last access. Reading a node sets it by relatime's rules: if
 * it is not later than the last change, or is a day old. */
#ifndef PFS_FS_JOURNAL_ATIME_H
#define PFS_FS_JOURNAL_ATIME_H

#include "fs/tree/tree.h"

/* Returns true if reading the node now sets its time. Any lock on the tree is held. */
bool pfs_atime_is_due(const struct pfs_tree *tree, uint32_t slot);
/* Sets the time if it is due. No locks are held. It never waits: if the change cannot be reserved
 * at once, the time stays as it is. */
void pfs_update_atime(struct pfs_tree *tree, uint64_t ino);

#endif
