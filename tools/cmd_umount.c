/* SPDX-License-Identifier: MIT */
/* primefs umount - unmounts a store and waits until its daemon has committed and exited. */
#include "tools/cmd.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "fs/image/imagefile.h"
#include "fs/mount/kernel.h"
#include "meta/store.h"
#include "tools/client/holder.h"

enum { LAZY, WAIT };

#define WAIT_MAX   1000000
#define LOOK_MS    500
#define SAY_MS	   1000
#define PHRASE_MAX 160
#define USUAL_SECONDS	120 /* how long the daemon may take to end */
#define ANSWER_SECONDS	20  /* how much longer a daemon may take that has to answer */

static const struct pfs_cmd_option options[] = {
	[LAZY] = {"lazy", 'l', NULL,
		  "detach now, finish when nobody uses it any more; do not wait"},
	[WAIT] = {"wait", 0, "SECONDS",
		  "wait for its image file, too, so long at most; 0: do not wait at all"},
	{0},
};

static const struct pfs_cmd command = {
	"umount",
	"MOUNTPOINT",
	"Unmounts a store; returns when all is committed and the daemon has exited.",
	options,
	NULL,
};

/* Gets the absolute path of a mountpoint, also if its daemon is gone. */
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

/* Commits before the daemon exits, since an error could no longer be reported then. */
static int commit(const char *mountpoint)
{
	int fd PFS_CLOSE = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && fsync(fd) != 0 ? -errno : 0;
}

/* Returns a descriptor that becomes readable when the daemon of the mount exits; -1 if the daemon
 * cannot be found. */
static int watch_daemon(const struct pfs_kernel_mount *mount)
{
	struct pfs_kernel_daemon daemon = {0};
	int error = pfs_kernel_daemon(&daemon, mount->mountpoint);

	if (error && error != -ENOTCONN) /* root may not look into another user's mount */
		daemon.pid = pfs_store_holder(mount->source);
	return daemon.pid > 0 ? (int)syscall(SYS_pidfd_open, daemon.pid, 0) : -1;
}

struct wait {
	const char *operand;
	uint64_t device;
	unsigned seconds;
	bool retries; /* tries again while the mount is busy */
	uint64_t began_ms;
};

static bool is_over(const struct wait *wait)
{
	return pfs_now_ms() - wait->began_ms >= UINT64_C(1000) * wait->seconds;
}

/* Waits until the daemon exits. Says what it is waiting for after a moment, and again when that
 * changes. */
static int await_exit(int daemon, const struct wait *wait)
{
	struct pollfd event = {.fd = daemon, .events = POLLIN};
	char said[PHRASE_MAX] = "", why[PHRASE_MAX];

	while (poll(&event, 1, wait->seconds == 0 ? 0 : LOOK_MS) <= 0) {
		if (!pfs_holder_find(why, sizeof(why), wait->device, false))
			(void)snprintf(why, sizeof(why), "the daemon commits what is pending");
		if (is_over(wait))
			return pfs_cmd_fail(
				"umount",
				"%s: unmounted here, but its daemon still runs: %s; the store "
				"stays in use until then",
				wait->operand, why);
		if (strcmp(why, said) != 0 && pfs_now_ms() - wait->began_ms >= SAY_MS) {
			pfs_cmd_say("umount", "%s: unmounted here; waiting: %s", wait->operand,
				    why);
			(void)snprintf(said, sizeof(said), "%s", why);
		}
	}
	return PFS_EXIT_OK;
}

/* Waits until nobody writes the store's image file any more, if everything is waited for: the
 * filesystem that the store is on is busy until then. */
static int await_image_file(const char *store, const struct wait *wait)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	int fd PFS_CLOSE =
		wait->retries && wait->seconds ? pfs_imagefile_open_written(store) : -1;
	bool said = false;

	while (fd >= 0 && pfs_imagefile_is_written(fd)) {
		if (is_over(wait))
			return pfs_cmd_fail("umount",
					    "%s: unmounted, but %s.img is still being written; "
					    "the filesystem that it is on is busy until then",
					    wait->operand, store);
		if (!said && pfs_now_ms() - wait->began_ms >= SAY_MS) {
			pfs_cmd_say("umount", "%s: unmounted; waiting: %s.img is being written",
				    wait->operand, store);
			said = true;
		}
		(void)nanosleep(&pause, NULL);
	}
	return PFS_EXIT_OK;
}

/* Unmounts; a busy mount is tried again if that was asked for. */
static int detach(const struct wait *wait, const char *mountpoint, bool lazy)
{
	const struct timespec pause = {.tv_nsec = 50000000};
	int error = pfs_kernel_unmount(mountpoint, lazy);

	while (error == -EBUSY && wait->retries && !is_over(wait)) {
		(void)nanosleep(&pause, NULL);
		error = pfs_kernel_unmount(mountpoint, lazy);
	}
	return error;
}

static int unmount(struct wait *wait, const struct pfs_kernel_mount *mount, bool lazy)
{
	const char *operand = wait->operand;
	int daemon PFS_CLOSE = lazy ? -1 : watch_daemon(mount);
	int error = lazy ? 0 : commit(mount->mountpoint);
	char why[PHRASE_MAX];

	wait->device = pfs_holder_device(mount->mountpoint);
	wait->began_ms = pfs_now_ms();

	if (error && error != -ENOTCONN)
		return pfs_cmd_fail("umount",
				    "%s: cannot commit: %s; not unmounted (umount -l gives the "
				    "changes up)",
				    operand, strerror(-error));
	error = detach(wait, mount->mountpoint, lazy);
	if (error == -EBUSY && pfs_holder_find(why, sizeof(why), wait->device, true))
		return pfs_cmd_fail("umount", "%s: busy: %s; end that, or detach it with -l",
				    operand, why);
	if (error == -EBUSY)
		return pfs_cmd_fail("umount",
				    "%s: busy; close what uses it (fuser -m lists it) or detach it "
				    "with -l",
				    operand);
	if (error == -EPERM && access("/etc/mtab", F_OK) != 0)
		return pfs_cmd_fail(
			"umount",
			"%s: fusermount3 unmounts nothing where there is no /etc/mtab; as root: "
			"ln -s /proc/self/mounts /etc/mtab",
			operand);
	if (error)
		return pfs_cmd_fail("umount", "%s: cannot unmount: %s", operand, strerror(-error));
	if (daemon >= 0) {
		int status = await_exit(daemon, wait);

		if (status)
			return status;
	}
	return lazy ? PFS_EXIT_OK : await_image_file(mount->source, wait);
}

static int unmount_operand(struct wait *wait, bool lazy)
{
	struct pfs_kernel_mount mount;
	char mountpoint[PATH_MAX];
	int error = resolve(mountpoint, wait->operand);

	if (error)
		return pfs_cmd_fail("umount", "%s: %s", wait->operand, strerror(-error));
	error = pfs_kernel_find(&mount, mountpoint, NULL);
	if (!error)
		return unmount(wait, &mount, lazy);
	if (error != -ENOENT)
		return pfs_cmd_fail(
			"umount",
			"%s: /proc/self/mounts, which lists mounts, cannot be read; mount /proc",
			wait->operand);
	if (pfs_kernel_find(&mount, NULL, mountpoint) == 0)
		return pfs_cmd_fail("umount", "%s: a store, mounted on %s; name that",
				    wait->operand, mount.mountpoint);
	return pfs_cmd_fail("umount", "%s: no store is mounted here", wait->operand);
}

/* Waits for the process that unmounts, as long as anything may take. */
static int await_child(pid_t child, const struct wait *wait)
{
	int fd PFS_CLOSE = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd event = {.fd = fd, .events = POLLIN};
	uint64_t limit_ms = UINT64_C(1000) * (wait->seconds + ANSWER_SECONDS);
	int n, status = 0;

	do
		n = poll(&event, 1, (int)PFS_MIN(limit_ms, (uint64_t)INT_MAX));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		(void)kill(child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (n == 0)
		return pfs_cmd_fail(
			"umount",
			"%s: its daemon does not answer; end that, or detach the mount with umount -l",
			wait->operand);
	return WIFEXITED(status) ? WEXITSTATUS(status) : PFS_EXIT_FAILURE;
}

/* Runs the wait in another process, since a call that waits for a daemon that does not answer can
 * only be ended by a kill. */
static int supervise(struct wait *wait, bool lazy)
{
	pid_t parent = getpid(), child = fork();
	int status;

	if (child < 0)
		return pfs_cmd_fail("umount", "%s: %s", wait->operand, strerror(errno));
	if (child)
		return await_child(child, wait);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(PFS_EXIT_FAILURE);
	status = unmount_operand(wait, lazy);
	(void)fflush(NULL);
	_exit(status);
}

int pfs_cmd_umount(int argc, char **argv)
{
	struct pfs_cmd_args args;
	struct wait wait = {.seconds = USUAL_SECONDS};
	bool lazy = false;
	uint64_t seconds;
	int option;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		lazy |= option == LAZY;
		seconds = USUAL_SECONDS;
		if (option == WAIT)
			pfs_cmd_number(&args, &seconds, WAIT, 0, WAIT_MAX);
		if (option == WAIT)
			wait.seconds = (unsigned)seconds;
		wait.retries |= option == WAIT;
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	wait.operand = args.operands[0];
	return supervise(&wait, lazy);
}
