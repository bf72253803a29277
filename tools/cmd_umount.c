/* SPDX-License-Identifier: MIT */
/* primefs umount - unmounts a store and waits until its daemon has committed and exited. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/mount/kernel.h"
#include "meta/store.h"
#include "tools/cmd.h"

enum { LAZY };

static const struct pfs_cmd_option options[] = {
	[LAZY] = {"lazy", 'l', NULL,
		  "detach now, finish when nobody uses it any more; do not wait"},
	{0},
};

static const struct pfs_cmd command = {
	"umount",
	"MOUNTPOINT",
	"Unmounts a store; returns when all is committed and the daemon has exited.",
	options,
	NULL,
};

/* The absolute path of a mountpoint, also of one whose daemon is gone. */
static int resolve(char *out, const char *path)
{
	char parent[PATH_MAX], *slash;
	size_t len = strlen(path);

	if (realpath(path, out))
		return 0;
	if (errno != ENOTCONN && errno != EACCES)
		return -errno;
	if (len >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, len + 1);
	while (len > 1 && parent[len - 1] == '/')
		parent[--len] = '\0';
	slash = strrchr(parent, '/');
	if (slash)
		*slash = '\0';
	if (!realpath(!slash ? "." : *parent ? parent : "/", out))
		return -errno;
	len = strlen(out);
	if ((size_t)snprintf(out + len, PATH_MAX - len, "/%s", slash ? slash + 1 : parent) >=
	    PATH_MAX - len)
		return -ENAMETOOLONG;
	return 0;
}

/* What is uncommitted when the daemon exits can no longer be reported: so before. */
static int commit(const char *mountpoint)
{
	int fd PFS_CLOSE = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && fsync(fd) != 0 ? -errno : 0;
}

/* A descriptor that becomes readable when the daemon of the mount exits; -1 if it cannot be told
 * who it is. */
static int watch_daemon(const struct pfs_kernel_mount *mount)
{
	struct pfs_kernel_daemon daemon = {0};
	int error = pfs_kernel_daemon(&daemon, mount->mountpoint);

	if (error && error != -ENOTCONN) /* root may not look into another user's mount */
		daemon.pid = pfs_store_holder(mount->source);
	return daemon.pid > 0 ? (int)syscall(SYS_pidfd_open, daemon.pid, 0) : -1;
}

static void await_exit(int daemon, const char *mountpoint)
{
	struct pollfd event = {.fd = daemon, .events = POLLIN};
	struct pfs_progress progress = {0};
	int n;

	do {
		pfs_progress_show(&progress, "%s: waiting for the commit", mountpoint);
		n = poll(&event, 1, 500);
	} while (n == 0 || (n < 0 && errno == EINTR));
	pfs_progress_clear(&progress);
}

static int unmount(const char *operand, const struct pfs_kernel_mount *mount, bool lazy)
{
	int daemon PFS_CLOSE = lazy ? -1 : watch_daemon(mount);
	int error = lazy ? 0 : commit(mount->mountpoint);

	if (error && error != -ENOTCONN)
		return pfs_cmd_fail("umount",
				    "%s: cannot commit: %s; not unmounted (umount -l gives the "
				    "changes up)",
				    operand, strerror(-error));
	error = pfs_kernel_unmount(mount->mountpoint, lazy);
	if (error == -EBUSY)
		return pfs_cmd_fail("umount",
				    "%s: busy; close what uses it (fuser -m lists it) or detach it "
				    "with -l",
				    operand);
	if (error)
		return pfs_cmd_fail("umount", "%s: cannot unmount: %s", operand, strerror(-error));
	if (daemon >= 0)
		await_exit(daemon, operand);
	return PFS_EXIT_OK;
}

int pfs_cmd_umount(int argc, char **argv)
{
	struct pfs_kernel_mount mount;
	struct pfs_cmd_args args;
	char mountpoint[PATH_MAX];
	bool lazy = false;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		lazy |= option == LAZY;
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	error = resolve(mountpoint, args.operands[0]);
	if (error)
		return pfs_cmd_fail("umount", "%s: %s", args.operands[0], strerror(-error));
	if (pfs_kernel_find(&mount, mountpoint, NULL) != 0)
		return pfs_cmd_fail("umount", "%s: no store is mounted here", args.operands[0]);
	return unmount(args.operands[0], &mount, lazy);
}
