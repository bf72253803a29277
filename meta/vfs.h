/* SPDX-License-Identifier: MIT */
/* meta/vfs.h - the VFS of SQLite that every connection of primefs uses. It uses the VFS that is
 * SQLite's default at the first call of pfs_vfs_name.
 *
 * Files with a name (a store, its -wal, -journal and -shm) belong to the lower VFS: their xOpen is
 * passed on, and the sqlite3_file is that VFS's. Files without a name (for sorting, materializing
 * and undoing a statement) are files of base/temporary.h: in the same folder as answers, and
 * bounded with them. If there is no room for one, SQLite's result is SQLITE_FULL. They are never
 * synced or locked. Reading and writing them looks at the clock, as allocating does
 * (meta/account.h), and gives SQLITE_IOERR_NOMEM once the statement has to end.
 *
 * A -wal, -shm or -journal is examined when it has been opened. It is refused with EPERM unless it
 * is a regular file with one name that belongs to the store's owner, to root or to this user: in a
 * folder like /tmp, to which others may write, they could have put it there. Threads: any number of
 * callers. */
#ifndef PFS_META_VFS_H
#define PFS_META_VFS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the VFS's name, for sqlite3_open_v2. The first call registers the VFS and thereby
 * initializes SQLite, so sqlite3_config has to be called before. Returns NULL, which means SQLite's
 * default, if there is no memory for it. */
const char *pfs_vfs_name(void);

/* Returns true, and writes a line for people to `out`, if such a file beside the store at path is
 * refused. */
bool pfs_vfs_explain(char *out, size_t size, const char *path);

#endif
