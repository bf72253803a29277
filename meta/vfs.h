/* SPDX-License-Identifier: MIT */
/* meta/vfs.h - the VFS of SQLite that every connection of primefs uses. It lies above the VFS that
 * is SQLite's default when it is first asked for.
 *
 * Files with a name (a store, its -wal, -journal and -shm) are the lower VFS's own: their xOpen is
 * passed on, and the sqlite3_file is that VFS's. Files without one (what SQLite sorts, materializes
 * and keeps to undo a statement) are base/temporary.h's: in the same folder as answers, within the
 * same reserve. Where that refuses, SQLite's result is SQLITE_FULL. They are never synced or
 * locked. Reading and writing them looks at the clock as allocating does (meta/account.h), and is
 * SQLITE_IOERR_NOMEM once the statement has to end.
 *
 * A -wal, -shm or -journal is examined once it is open. Unless it is a regular file that has no
 * other name and belongs to the store's owner, root or this user, it is not used: EPERM. In a
 * folder that others may write to, as /tmp, they could put one there.
 * Threads: any number of callers. */
#ifndef PFS_META_VFS_H
#define PFS_META_VFS_H

#include <stdbool.h>
#include <stddef.h>

/* Returns its name, for sqlite3_open_v2, and registers it with the first call. That initializes
 * SQLite: sqlite3_config has to come before. NULL, which stands for SQLite's default, if there is
 * no memory for it. */
const char *pfs_vfs_name(void);

/* Returns true, and a line for people in out, if beside the store at path lies a file that is
 * refused so. */
bool pfs_vfs_explain(char *out, size_t size, const char *path);

#endif
