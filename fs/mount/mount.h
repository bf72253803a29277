/* SPDX-License-Identifier: MIT */
/* fs/mount/mount.h - a tree as a filesystem of this machine, through FUSE.
 *
 * It decodes requests, calls fs/tree and replies; the kernel decides on access
 * (default_permissions). The kernel keeps names and attributes for as long as the options say,
 * since all changes pass through it; what the tree changes on its own is told to it by notices. */
#ifndef PFS_FS_MOUNT_MOUNT_H
#define PFS_FS_MOUNT_MOUNT_H

#include "base/err.h"
#include "fs/mount/options.h"
#include "fs/tree/tree.h"

struct pfs_mount;

/* Mounts the tree, which has been started, and serves it. `queries` is what its statements share.
 * Tree and queries stay the caller's. Both paths are absolute. Signals should be blocked, since
 * this starts threads. From its return on, requests are answered. Errors are logged. *out is NULL
 * on failure. */
struct pfs_queries;
PFS_MUST_CHECK int pfs_mount_open(struct pfs_mount **out, struct pfs_tree *tree,
				  struct pfs_queries *queries, const char *store,
				  const char *mountpoint, const struct pfs_mount_options *options);

/* Sets the name of the daemon's socket for commands that find no socket beside the store
 * (control.h). To be called once. */
void pfs_mount_answers_at(struct pfs_mount *mount, const char *name);

/* Returns the turns that statements take (query/turns.h), for the caller to close; NULL: they take
 * none. */
struct pfs_turns;
struct pfs_turns *pfs_mount_turns(struct pfs_mount *mount);

/* Returns a descriptor that becomes readable when the filesystem has been unmounted. It stays the
 * mount's. */
int pfs_mount_event(const struct pfs_mount *mount);

/* Unmounts, even if the mount is in use, finishes the requests that are being served, and frees the
 * mount. NULL is allowed. */
void pfs_mount_close(struct pfs_mount *mount);

#endif
