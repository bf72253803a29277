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

/* Mounts. *fd is the connection to the kernel, which the caller closes. source is what mount(8) and
 * df show: the store's path. Errors are logged: -ENODEV: /dev/fuse cannot be used; -EPERM:
 * fusermount3 refuses, and has said why; others are mount(2)'s. */
PFS_MUST_CHECK int pfs_kernel_mount(int *fd, const char *source, const char *mountpoint,
				    const struct pfs_mount_options *options);

/* Unmounts; lazy: at once, even if it is in use. -EBUSY: it is in use; -EINVAL: it is not mounted;
 * -ENOENT; -EPERM: fusermount3 refuses and, unless lazy, has said why. */
PFS_MUST_CHECK int pfs_kernel_unmount(const char *mountpoint, bool lazy);

/* Finds the newest primefs mount, either on `mountpoint` or of the store `source`; the other of the
 * two arguments is NULL. Paths are absolute and resolved. With source, only mounts count that this
 * user, root or the owner of the source has made, since any user's mount may claim to be of it.
 * -ENOENT: there is none; -ENOSYS: there is no /proc. */
struct pfs_kernel_mount {
	char source[PATH_MAX];
	char mountpoint[PATH_MAX];
	bool read_only;
	unsigned long flags; /* mount(2)'s MS_* */
};
PFS_MUST_CHECK int pfs_kernel_find(struct pfs_kernel_mount *out, const char *mountpoint,
				   const char *source);

/* Gets what the daemon of a mount says of itself. -ENOTCONN: the daemon is gone. */
struct pfs_kernel_daemon {
	pid_t pid;
	bool read_only; /* the store is open for reading only */
	/* The name of its socket (control.h), if that is not beside the store; else "". */
	char control[PFS_CONTROL_NAME_SIZE];
};
PFS_MUST_CHECK int pfs_kernel_daemon(struct pfs_kernel_daemon *out, const char *mountpoint);

/* The extended attribute that says so: "PID rw" or "PID ro", and `control` if it is not "". */
#define PFS_DAEMON_XATTR "user.primefs.daemon"

#endif
