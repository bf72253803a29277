/* SPDX-License-Identifier: MIT */
/* fs/journal/atime.h - the time of the last access, which reading moves by relatime's rules: if it
 * is not later than the last change, or is a day old. */
#ifndef PFS_FS_JOURNAL_ATIME_H
#define PFS_FS_JOURNAL_ATIME_H

#include "fs/tree/tree.h"

bool pfs_atime_is_due(const struct pfs_tree *tree, uint32_t slot); /* any lock */
/* Updates it if it is due. No locks are held, and it does not wait: what cannot be written now is
 * left. */
void pfs_update_atime(struct pfs_tree *tree, uint64_t ino);

#endif
