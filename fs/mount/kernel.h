/* SPDX-License-Identifier: MIT */
/* fs/mount/kernel.h - attaching to and detaching from the kernel: mount(2) where that is allowed,
 * else fusermount3, which lets users mount on folders of theirs. */
#ifndef PFS_FS_MOUNT_KERNEL_H
#define PFS_FS_MOUNT_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "fs/mount/options.h"

#define PFS_MOUNT_TYPE "fuse.primefs"
#define PFS_CONTROL_NAME_SIZE 32

/* Mounts; *fd talks to the kernel.  source is what mount and df show: the store's path.  Errors are
 * logged: -ENODEV concerns /dev/fuse, others are mount(2)'s; -EPERM when fusermount3 refuses, which
 * has said why. */
PFS_MUST_CHECK int pfs_kernel_mount(int *fd, const char *source, const char *mountpoint,
				    const struct pfs_mount_options *options);

/* lazy: now, even if it is in use.  -EBUSY, -EINVAL (not mounted), -ENOENT; -EPERM: fusermount3
 * refuses and, unless lazy, has said why. */
PFS_MUST_CHECK int pfs_kernel_unmount(const char *mountpoint, bool lazy);

/* The mount of this kind that was made last on mountpoint or from source (the other NULL; both
 * absolute and resolved): -ENOENT when there is none.  From source: made by this user, root or the
 * source's owner, since anybody's mount may claim to be of it. */
struct pfs_kernel_mount {
	char source[PATH_MAX];
	char mountpoint[PATH_MAX];
	bool read_only;
	unsigned long flags; /* mount(2)'s MS_* */
};
PFS_MUST_CHECK int pfs_kernel_find(struct pfs_kernel_mount *out, const char *mountpoint,
				   const char *source);

/* What the daemon behind a mount says of itself.  -ENOTCONN: it is gone. */
struct pfs_kernel_daemon {
	pid_t pid;
	bool read_only; /* the store is open for reading only */
	char control[PFS_CONTROL_NAME_SIZE]; /* where it listens (control.h) if not beside the store; "" */
};
PFS_MUST_CHECK int pfs_kernel_daemon(struct pfs_kernel_daemon *out, const char *mountpoint);

/* The attribute that it says so in: "PID rw" or "PID ro", and a name if it listens there. */
#define PFS_DAEMON_XATTR "user.primefs.daemon"

#endif
