/* SPDX-License-Identifier: MIT */
#include "fs/mount/kernel.h"

#include <fcntl.h>
#include <mntent.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fs/mount/options.h"

#define HELPER "fusermount3"

extern char **environ;

/* ---- mount(2) ---- */

static int mount_directly(int *out, const char *source, const char *mountpoint,
			  const struct pfs_mount_options *options)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct stat stat;
	char data[256];
	int error;

	if (fd < 0)
		return -errno;
	if (lstat(mountpoint, &stat) == 0) {
		(void)snprintf(data, sizeof(data),
			       "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions%s", fd,
			       stat.st_mode & S_IFMT, geteuid(), getegid(),
			       options->allow_other ? ",allow_other" : "");
		if (mount(source, mountpoint, PFS_MOUNT_TYPE, options->flags, data) == 0) {
			*out = fd;
			return 0;
		}
	}
	error = -errno;
	(void)close(fd);
	return error;
}

/* ---- fusermount3 ---- */

/* Runs fusermount3, which returns the descriptor on the socket `comm` (-1: none). -EPERM: it failed
 * and, unless silent, has said why; -ENOENT: it is not there, or not to be run. */
static int run_helper(char *const argv[], int comm, bool silent)
{
	char variable[32];
	posix_spawn_file_actions_t actions;
	int status, error;
	pid_t pid;

	(void)snprintf(variable, sizeof(variable), "%d", comm);
	if (comm >= 0 && setenv("_FUSE_COMMFD", variable, 1) != 0)
		return -errno;
	error = posix_spawn_file_actions_init(&actions);
	if (error)
		return -error;
	if (silent)
		error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
							 O_WRONLY, 0);
	if (!error)
		error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (comm >= 0)
		(void)unsetenv("_FUSE_COMMFD");
	if (error) /* EACCES: it, or a folder of $PATH, is closed to this user, and it is in no
		      other */
		return error == EACCES ? -ENOENT : -error;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int receive_fd(int *out, int comm)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec data = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head;
	ssize_t n;

	do
		n = recvmsg(comm, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	head = CMSG_FIRSTHDR(&message);
	if (n == 0 || !head || head->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(out, CMSG_DATA(head), sizeof(*out));
	return 0;
}

/* Prints a value of a list of options, in which commas and backslashes are escaped. */
static void print_escaped(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == ',' || *text == '\\')
			(void)fputc('\\', out);
		(void)fputc(*text, out);
	}
}

static char *helper_options(const char *source, const struct pfs_mount_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	(void)fprintf(out, "%s%s%s%s%s%s%s%s", options->flags & MS_RDONLY ? "ro" : "rw",
		      options->flags & MS_NOSUID ? ",nosuid" : "",
		      options->flags & MS_NODEV ? ",nodev" : "",
		      options->flags & MS_NOEXEC ? ",noexec" : "",
		      options->flags & MS_SYNCHRONOUS ? ",sync" : "",
		      options->flags & MS_DIRSYNC ? ",dirsync" : "",
		      options->flags & MS_NOATIME ? ",noatime" : "",
		      options->allow_other ? ",allow_other" : "");
	(void)fputs(",default_permissions,subtype=primefs,fsname=", out);
	print_escaped(out, source);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int mount_by_helper(int *fd, const char *source, const char *mountpoint,
			   const struct pfs_mount_options *options)
{
	char *text PFS_FREE = helper_options(source, options);
	char *point PFS_FREE = strdup(mountpoint);
	char helper[] = HELPER, dash_o[] = "-o", dashes[] = "--";
	char *argv[] = {helper, dash_o, text, dashes, point, NULL};
	int ours PFS_CLOSE = -1, theirs PFS_CLOSE = -1;
	int pair[2];

	if (!text || !point)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	if (fcntl(ours, F_SETFD, FD_CLOEXEC) != 0)
		return -errno;
	PFS_TRY(run_helper(argv, theirs, false));
	return receive_fd(fd, ours);
}

/* ---- */

/* Fails if /dev/fuse does not exist. If this user may not open it, fusermount3 still may. */
static int check_device(void)
{
	int fd PFS_CLOSE = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0 || (errno != ENOENT && errno != ENODEV && errno != ENXIO))
		return 0;
	pfs_error("/dev/fuse: not there; load the module (modprobe fuse), or give the container "
		  "the device");
	return -ENODEV;
}

int pfs_kernel_mount(int *fd, const char *source, const char *mountpoint,
		     const struct pfs_mount_options *options)
{
	int error = -EPERM;

	PFS_TRY(check_device());
	if (geteuid() == 0)
		error = mount_directly(fd, source, mountpoint, options);
	if (error != -EPERM) { /* root of a user namespace may need the helper, too */
		if (error)
			pfs_error("%s: cannot mount here: %s", mountpoint, strerror(-error));
		return error;
	}
	error = mount_by_helper(fd, source, mountpoint, options);
	if (error == -ENOENT)
		pfs_error("%s: cannot mount: " HELPER
			  " is not installed (package fuse3), or may not be "
			  "run by you; users other than root need it",
			  mountpoint);
	else if (error && error != -EPERM) /* EPERM: the helper has said why */
		pfs_error("%s: cannot mount: " HELPER ": %s", mountpoint, strerror(-error));
	return error;
}

int pfs_kernel_unmount(const char *mountpoint, bool lazy)
{
	char *point PFS_FREE = strdup(mountpoint);
	char helper[] = HELPER, how[] = "-uz", dashes[] = "--";
	char *argv[] = {helper, how, dashes, point, NULL};

	if (!point)
		return -ENOMEM;
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno != EPERM)
		return -errno;
	if (!lazy)
		how[2] = '\0';
	return run_helper(argv, -1, lazy);
}

/* Returns true if this user, root or the owner of the store has mounted it. */
static bool is_trusted(const struct mntent *entry, uid_t owner)
{
	static const char name[] = "user_id=";
	const char *option = hasmntopt(entry, "user_id");
	unsigned long uid;

	if (!option || strncmp(option, name, sizeof(name) - 1) != 0)
		return false;
	uid = strtoul(option + sizeof(name) - 1, NULL, 10);
	return uid == geteuid() || uid == 0 || uid == owner;
}

int pfs_kernel_find(struct pfs_kernel_mount *out, const char *mountpoint, const char *source)
{
	char line[3 * PATH_MAX];
	struct mntent entry;
	struct stat attr = {.st_uid = 0};
	int found = -ENOENT;
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	if (!mounts)
		return errno == ENOENT ? -ENOSYS : -errno;
	if (source)
		(void)stat(source, &attr);
	while (getmntent_r(mounts, &entry, line, sizeof(line))) {
		if (strcmp(entry.mnt_type, PFS_MOUNT_TYPE) != 0 ||
		    (mountpoint && strcmp(entry.mnt_dir, mountpoint) != 0) ||
		    (source && (strcmp(entry.mnt_fsname, source) != 0 ||
				!is_trusted(&entry, attr.st_uid))))
			continue;
		(void)snprintf(out->source, sizeof(out->source), "%s", entry.mnt_fsname);
		(void)snprintf(out->mountpoint, sizeof(out->mountpoint), "%s", entry.mnt_dir);
		out->flags = pfs_mount_flags_of(entry.mnt_opts);
		out->read_only = out->flags & MS_RDONLY;
		found = 0;
	}
	(void)endmntent(mounts);
	return found;
}

int pfs_kernel_daemon(struct pfs_kernel_daemon *out, const char *mountpoint)
{
	char value[64], mode[4];
	ssize_t n = getxattr(mountpoint, PFS_DAEMON_XATTR, value, sizeof(value) - 1);
	char *rest;
	long pid;

	if (n < 0)
		return -errno;
	value[n] = '\0';
	pid = strtol(value, &rest, 10);
	if (pid <= 0 || pid > INT_MAX)
		return -EPROTO;
	out->pid = (pid_t)pid;
	*out->control = '\0';
	if (sscanf(rest, " %3s %31s", mode, out->control) < 1)
		return -EPROTO;
	out->read_only = strcmp(mode, "ro") == 0;
	return 0;
}
