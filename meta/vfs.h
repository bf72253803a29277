/* SPDX-License-Identifier: MIT */
/* meta/vfs.h - the VFS of SQLite's that every connection of primefs uses, above the one that is SQLite's
 * default when it is first asked for.
 *
 * Files with a name (a store, its -wal, -journal and -shm) are the lower VFS's own: their xOpen is passed
 * on, and the sqlite3_file is that VFS's.  Files without one (what SQLite sorts, materializes and keeps
 * to undo a statement) are base/temporary.h's: in the same folder as answers, within the same reserve.
 * Where that refuses, SQLite's result is SQLITE_FULL.  Nothing is ever synced or locked in them.  Reading and
 * writing them looks at the clock as allocating does (meta/account.h), and is SQLITE_IOERR_NOMEM once the
 * statement is to end.
 *
 * A -wal, -shm or -journal is looked at once it is open: unless it is a regular file without another name,
 * and the store's owner's, root's or this user's, it is not used: EPERM.  In a folder that others may
 * write to, as /tmp, they could put one there. */
#ifndef PFS_META_VFS_H
#define PFS_META_VFS_H

#include <stdbool.h>
#include <stddef.h>

/* Its name, for sqlite3_open_v2; registered with the first call, by any thread.  It initializes
 * SQLite: sqlite3_config comes before.  NULL (SQLite's default) if there is no memory for it. */
const char *pfs_vfs_name(void);

/* True, and a line for people in out: beside the store at path lies a file that is refused so. */
bool pfs_vfs_explain(char *out, size_t size, const char *path);

#endif
