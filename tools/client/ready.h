/* SPDX-License-Identifier: MIT */
/* tools/client/ready.h - opening stores for commands that need them for themselves. */
#ifndef PFS_TOOLS_CLIENT_READY_H
#define PFS_TOOLS_CLIENT_READY_H

#include <limits.h>

#include "base/err.h"
#include "fs/tree/tree.h"

/* Milliseconds to wait for a lock: after a plain umount the daemon may still be committing. */
#define PFS_READY_WAIT_MS 10000

/* Finds the store that an operand names: itself, or what is mounted there; folder is then the
 * mountpoint, else "". PFS_EXIT_FAILURE and a line if it is another directory. */
PFS_MUST_CHECK int pfs_ready_name(char store[PATH_MAX], char folder[PATH_MAX], const char *verb,
				  const char *operand);

/* Returns PFS_EXIT_OK; or PFS_EXIT_FAILURE, and a line with the daemon's pid, if the store is
 * mounted, which may be for long: there is no use in waiting for its lock. */
PFS_MUST_CHECK int pfs_ready_unmounted(const char *verb, const char *store);

/* Opens a store for reading that is not mounted for writing; an exit status, and a line when it is
 * not PFS_EXIT_OK.  changing: for writing, a store that is not mounted at all. */
PFS_MUST_CHECK int pfs_ready_tree(struct pfs_tree **tree, const char *verb, const char *store);

/* As pfs_ready_tree, but a store that is mounted for writing is read beside its daemon, as of one committed group;
 * what was changed before the call is in it, if this user may enter the mountpoint. */
PFS_MUST_CHECK int pfs_ready_group(struct pfs_tree **tree, const char *verb, const char *store);

/* Opens the tree as it was at that time, in nanoseconds since 1970 (meta/history.h); prints a line
 * when the store does not know. */
PFS_MUST_CHECK int pfs_ready_past(struct pfs_tree **tree, const char *verb, const char *store, int64_t at);

/* Opens a store as of one committed group, without a lock, for pfs_imagefile_make_behind; NULL: it cannot be. */
struct pfs_tree *pfs_ready_beside(const char *store);

PFS_MUST_CHECK int pfs_ready_changing(struct pfs_tree **tree, const char *verb, const char *store);

#endif
