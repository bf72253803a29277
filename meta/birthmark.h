/* SPDX-License-Identifier: MIT */
/* meta/birthmark.h - what tells a file from a later one that has taken its inode number: its handle
 * (name_to_handle_at(2), in which filesystems count an inode's uses), and the time of its birth. */
#ifndef PFS_META_BIRTHMARK_H
#define PFS_META_BIRTHMARK_H

#include "meta/store.h"

/* Of the entry `name` of the directory, a symlink itself; name "": of what the descriptor, which
 * may be O_PATH, stands for.  What the filesystem does not tell is left out.  The birth is the
 * caller's to fill in, if it has asked statx(2) for it already: pfs_birthmark_of asks. */
void pfs_birthmark_handle(struct pfs_birthmark *out, int dir, const char *name);
void pfs_birthmark_of(struct pfs_birthmark *out, int fd);

/* Whether both can be one file's, beyond its numbers: the handles are equal, or where one is not
 * known the births; an empty one fits every other. */
bool pfs_birthmark_same(const struct pfs_birthmark *a, const struct pfs_birthmark *b);

/* Neither handle nor birth. */
bool pfs_birthmark_is_empty(const struct pfs_birthmark *mark);

#endif
