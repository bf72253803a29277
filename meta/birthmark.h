/* SPDX-License-Identifier: MIT */
/* meta/birthmark.h - the birthmark of a file, which tells it from a later file with the same inode
 * number: its handle (name_to_handle_at(2), which has a generation number) and its time of birth.
 * Threads: any number of callers. */
#ifndef PFS_META_BIRTHMARK_H
#define PFS_META_BIRTHMARK_H

#include "meta/store.h"

/* pfs_birthmark_handle sets the handle of the entry `name` in the directory, without following a
 * symlink; with the name "" it sets that of the descriptor itself, which may be O_PATH.
 * pfs_birthmark_of sets handle and birth of a descriptor. A member that the filesystem does not
 * tell is left unset. */
void pfs_birthmark_handle(struct pfs_birthmark *out, int dir, const char *name);
void pfs_birthmark_of(struct pfs_birthmark *out, int fd);

/* Returns true if both can be marks of one file: their handles are equal or, if one has no handle,
 * their births. An empty mark is the same as any other. */
bool pfs_birthmark_same(const struct pfs_birthmark *a, const struct pfs_birthmark *b);

/* Returns true if the mark has neither handle nor birth. */
bool pfs_birthmark_is_empty(const struct pfs_birthmark *mark);

#endif
