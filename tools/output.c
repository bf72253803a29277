/* SPDX-License-Identifier: MIT */
#include "tools/output.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"
#include "meta/store.h"
#include "tools/cmd.h"

#define BESIDE	       ".primefs-output-" /* followed by pfs_random_digits */
#define PROC_PATH_SIZE 32 /* a descriptor's symlink in /proc, by which its file is given a name */

static void print_proc_path(char proc_path[PROC_PATH_SIZE], int fd)
{
	(void)snprintf(proc_path, PROC_PATH_SIZE, "/proc/self/fd/%d", fd);
}

/* True if somebody has the file open for writing, be it this process as its standard output: what
 * is written to it would be lost if another file took its name. Only if nobody has, a lease for
 * reading is granted. It ends when the descriptor is closed, and who opens the file for writing
 * waits for that. */
static bool is_written(int fd)
{
	return fcntl(fd, F_SETSIG, SIGURG) || /* which is ignored; SIGIO ends a process */
	       fcntl(fd, F_SETLEASE, F_RDLCK);
}

static bool has_attributes(int fd)
{
	return flistxattr(fd, NULL, 0) > 0; /* ACLs are some */
}

/* True if the file is mounted there itself, must not be removed (chattr +a, +i), or the kernel does
 * not tell. */
static bool is_fixed(int fd)
{
	const uint64_t fixed = STATX_ATTR_MOUNT_ROOT | STATX_ATTR_APPEND | STATX_ATTR_IMMUTABLE;
	struct statx st;

	return statx(fd, "", AT_EMPTY_PATH, 0, &st) || (st.stx_attributes & fixed) ||
	       !(st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT);
}

/* True if another file may take the name of out->replaced, which is to be the file of *old. */
static bool is_replaceable(const struct pfs_output *out, const struct stat *old)
{
	int fd PFS_CLOSE = -1;
	struct stat now;

	if (!S_ISREG(old->st_mode) || old->st_nlink != 1 ||
	    faccessat(AT_FDCWD, out->replaced, W_OK, AT_EACCESS) != 0)
		return false;
	fd = open(out->replaced, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == old->st_dev &&
	       now.st_ino == old->st_ino && !has_attributes(fd) && !is_fixed(fd) && !is_written(fd);
}

/* Finds the file whose name is to be taken, and how it is; old->st_nlink 0: it is not there.
 * Returns false if it has to be written in place. */
static bool find_replaced(struct pfs_output *out, struct stat *old)
{
	size_t len = strlen(out->name);

	*old = (struct stat){.st_nlink = 0};
	if (lstat(out->name, old) == 0)
		return stat(out->name, old) == 0 && realpath(out->name, out->replaced) &&
		       is_replaceable(out, old);
	if (errno != ENOENT || !len || out->name[len - 1] == '/' || len >= sizeof(out->replaced))
		return false;
	(void)memcpy(out->replaced, out->name, len + 1);
	return true;
}

/* Writes the path of a name in the folder of the file that is replaced. False: it is too long. */
static bool print_beside(char path[PATH_MAX], const struct pfs_output *out, const char *name)
{
	const char *slash = strrchr(out->replaced, '/');
	int folder_len = slash ? (int)(slash - out->replaced) + 1 : 0;

	return snprintf(path, PATH_MAX, "%.*s%s", folder_len, out->replaced, name) < PATH_MAX;
}

/* True if no process is going to give the file, which has a name of link_beside, that of its output
 * any more: who is keeps it open for writing. */
static bool is_stale(int folder, const char *name)
{
	int fd PFS_CLOSE = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	       st.st_uid == geteuid() && !is_written(fd);
}

/* Removes what this user's processes left in the folder that were killed before their outputs took
 * their names. Names are random, so that none can become another file's meanwhile. */
static void remove_stale(const char *folder)
{
	DIR *dir PFS_CLOSEDIR = opendir(folder);
	const size_t len = sizeof(BESIDE) - 1;
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_REG && strncmp(entry->d_name, BESIDE, len) == 0 &&
		    strlen(entry->d_name) == len + PFS_RANDOM_SIZE - 1 &&
		    strspn(entry->d_name + len, "0123456789abcdef") == PFS_RANDOM_SIZE - 1 &&
		    is_stale(dirfd(dir), entry->d_name))
			(void)unlinkat(dirfd(dir), entry->d_name, 0);
}

/* Returns a descriptor, or -1 if the file has to be written in place. */
static int open_nameless(struct pfs_output *out)
{
	char folder[PATH_MAX], proc_path[PROC_PATH_SIZE];
	struct stat old, made;
	int fd;

	if (!find_replaced(out, &old) || !print_beside(folder, out, "."))
		return -1;
	fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		return -1;
	print_proc_path(proc_path, fd);
	if (stat(proc_path, &made) == 0 &&
	    (!old.st_nlink || (old.st_uid == made.st_uid && old.st_gid == made.st_gid &&
			       !has_attributes(fd) && /* which its folder gives it */
			       fchmod(fd, old.st_mode & 07777) == 0))) {
		remove_stale(folder);
		return fd;
	}
	(void)close(fd);
	return -1;
}

int pfs_output_open(struct pfs_output *out, const char *verb, const char *name)
{
	int fd;

	*out = (struct pfs_output){.file = stdout, .verb = verb, .name = name};
	if (!name) {
		out->name = "standard output";
		return PFS_EXIT_OK;
	}
	if (pfs_store_is_marked(name))
		return pfs_cmd_fail(verb, "%s: is a store; name another file, or remove it first",
				    name);
	if (pfs_cmd_is_beside_store(name))
		return pfs_cmd_fail(verb, "%s: " PFS_CMD_BESIDE_STORE, name);
	fd = open_nameless(out);
	if (fd < 0)
		*out->replaced = 0;
	out->file = fd < 0 ? fopen(name, "we") : fdopen(fd, "w");
	return out->file ? PFS_EXIT_OK : pfs_cmd_fail(verb, "%s: %s", name, strerror(errno));
}

/* Gives the file a name that nobody else has, in the folder of the one that is replaced. */
static int link_beside(char beside[PATH_MAX], const struct pfs_output *out)
{
	char digits[PFS_RANDOM_SIZE], name[sizeof(BESIDE) + PFS_RANDOM_SIZE],
		proc_path[PROC_PATH_SIZE];

	print_proc_path(proc_path, fileno(out->file));
	do {
		PFS_TRY(pfs_random_digits(digits));
		(void)snprintf(name, sizeof(name), BESIDE "%s", digits);
		if (!print_beside(beside, out, name))
			return -ENAMETOOLONG;
		if (linkat(AT_FDCWD, proc_path, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0)
			return 0;
	} while (errno == EEXIST);
	return -errno;
}

static int take_name(const struct pfs_output *out)
{
	char beside[PATH_MAX];
	int error;

	if (fsync(fileno(out->file))) /* else a crash could leave the name without the content */
		return -errno;
	PFS_TRY(link_beside(beside, out));
	if (rename(beside, out->replaced) == 0)
		return 0;
	error = -errno;
	(void)unlink(beside);
	return error;
}

int pfs_output_close(struct pfs_output *out, int status, int error)
{
	bool fails = status == PFS_EXIT_FAILURE || status == PFS_EXIT_USAGE;

	if (fflush(out->file) && !error)
		error = errno;
	if (!fails && !error && *out->replaced)
		error = -take_name(out);
	if (out->file != stdout && fclose(out->file) && !error)
		error = errno;
	return fails || !error ? status
			       : pfs_cmd_fail(out->verb, "%s: %s", out->name, strerror(error));
}
