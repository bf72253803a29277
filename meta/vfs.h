/* SPDX-License-Identifier: MIT */
/* meta/vfs.h - the VFS of SQLite's that every connection of primefs uses, above the one that is SQLite's
 * default when it is first asked for.
 *
 * Files with a name (a store, its -wal, -journal and -shm) are the lower VFS's own: their xOpen is passed
 * on, and the sqlite3_file is that VFS's.  Files without one (what SQLite sorts, materializes and keeps
 * to undo a statement) are base/temporary.h's: in the same folder as answers, within the same reserve.
 * Where that refuses, SQLite's result is SQLITE_FULL.  Nothing is ever synced or locked in them. */
#ifndef PFS_META_VFS_H
#define PFS_META_VFS_H

/* Its name, for sqlite3_open_v2; registered with the first call, by any thread.  It initializes
 * SQLite: sqlite3_config comes before.  NULL (SQLite's default) if there is no memory for it. */
const char *pfs_vfs_name(void);

#endif
