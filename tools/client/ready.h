/* SPDX-License-Identifier: MIT */
/* tools/client/ready.h - opens a store in the command itself, not through its daemon. Each function
 * returns an exit status; if it is not PFS_EXIT_OK, the reason has been printed in one line. */
#ifndef PFS_TOOLS_CLIENT_READY_H
#define PFS_TOOLS_CLIENT_READY_H

#include <limits.h>

#include "base/err.h"
#include "fs/tree/tree.h"

/* Milliseconds to wait for a store's lock: after a plain umount the daemon may still commit. */
#define PFS_READY_WAIT_MS 10000

/* Finds the store that an operand names. If the operand is the mountpoint of a store, `folder` is
 * the mountpoint, else "". PFS_EXIT_FAILURE: the operand is another directory. */
PFS_MUST_CHECK int pfs_ready_name(char store[PATH_MAX], char folder[PATH_MAX], const char *verb,
				  const char *operand);

/* Checks that the store is not mounted. If it is, it may stay so for long, so this does not wait
 * for its lock: PFS_EXIT_FAILURE, and the line has the daemon's pid. */
PFS_MUST_CHECK int pfs_ready_unmounted(const char *verb, const char *store);

/* Opens a store for reading; it must not be mounted for writing. */
PFS_MUST_CHECK int pfs_ready_tree(struct pfs_tree **tree, const char *verb, const char *store);

/* As pfs_ready_tree, but a store that is mounted for writing is read beside its daemon, as one
 * committed group has left it. Changes made before the call are in it, if this user may enter the
 * mountpoint. */
PFS_MUST_CHECK int pfs_ready_group(struct pfs_tree **tree, const char *verb, const char *store);

/* Opens the tree as it was at that time, in nanoseconds since 1970 (meta/history.h), if the store's
 * history has that time. */
PFS_MUST_CHECK int pfs_ready_past(struct pfs_tree **tree, const char *verb, const char *store,
				  int64_t at);

/* For pfs_imagefile_make_behind: opens a store as one committed group has left it, without a lock;
 * NULL: it cannot be opened. */
struct pfs_tree *pfs_ready_beside(const char *store);

/* Opens a store for writing; it must not be mounted. */
PFS_MUST_CHECK int pfs_ready_changing(struct pfs_tree **tree, const char *verb, const char *store);

/* Opens a store for writing if it can be, else for reading (pfs_tree_is_read_only); it must not be
 * mounted for writing. */
PFS_MUST_CHECK int pfs_ready_either(struct pfs_tree **tree, const char *verb, const char *store);

#endif
