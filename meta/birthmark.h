/* SPDX-License-Identifier: MIT */
/* meta/birthmark.h - what tells a file from a later one that has got its inode number: its handle
 * (name_to_handle_at(2), in which filesystems count an inode's uses) and its time of birth.
 * Threads: any number of callers. */
#ifndef PFS_META_BIRTHMARK_H
#define PFS_META_BIRTHMARK_H

#include "meta/store.h"

/* pfs_birthmark_handle fills in the handle of the directory's entry `name`, of a symlink itself;
 * with name "" of what the descriptor stands for, which may be O_PATH. pfs_birthmark_of fills in
 * handle and birth of a descriptor. What the filesystem does not tell is left out. */
void pfs_birthmark_handle(struct pfs_birthmark *out, int dir, const char *name);
void pfs_birthmark_of(struct pfs_birthmark *out, int fd);

/* Returns true if both can be marks of one file: the handles are equal or, where one is not known,
 * the births. An empty mark fits every other. */
bool pfs_birthmark_same(const struct pfs_birthmark *a, const struct pfs_birthmark *b);

/* Returns true if the mark has neither handle nor birth. */
bool pfs_birthmark_is_empty(const struct pfs_birthmark *mark);

#endif
