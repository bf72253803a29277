/* SPDX-License-Identifier: MIT */
/* meta/explain.c - tells people why a store could not be opened. */
#include "meta/store.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "meta/vfs.h"

/* Writes "1234 (primefs mount a.pfs /mnt)" from /proc; a long command line is cut. */
static void describe_process(char *out, size_t size, pid_t pid)
{
	char path[64], words[128];
	int fd PFS_CLOSE = -1;
	ssize_t len, i;

	(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, words, sizeof(words) - 1);
	if (len <= 1) {
		(void)snprintf(out, size, "process %d", (int)pid);
		return;
	}
	words[len] = 0;
	for (i = 0; i < len - 1; i++) {
		if ((unsigned char)words[i] < ' ')
			words[i] = ' ';
	}
	(void)snprintf(out, size, "process %d (%s)", (int)pid, words);
}

static void explain_busy(char *out, size_t size, const char *path)
{
	pid_t pid = pfs_store_holder(path);
	char process[192] = "another process";

	if (pid)
		describe_process(process, sizeof(process), pid);
	(void)snprintf(out, size,
		       "%s: in use by %s; wait for it, or if it is a mount, unmount it with "
		       "`primefs umount`",
		       path, process);
}

#define ONLY_READ                                                                                  \
	"; what changes something needs one that may be written; a mount that only reads takes "   \
	"-o ro"

static void explain_access(char *out, size_t size, const char *path, int error)
{
	const char *reason = error == -EROFS ? "is on a read-only filesystem"
					     : "may not be written by this user";

	if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS))
		(void)snprintf(out, size, "%s: %s; check its permissions and its folder's", path,
			       strerror(errno));
	else if (faccessat(AT_FDCWD, path, W_OK, AT_EACCESS))
		(void)snprintf(out, size, "%s: the store %s" ONLY_READ, path, reason);
	else
		(void)snprintf(out, size,
			       "%s: the folder of the store %s, and its log is kept there" ONLY_READ,
			       path, reason);
}

static bool has_log(const char *path)
{
	char name[PATH_MAX];
	struct stat st;

	return snprintf(name, sizeof(name), "%s-wal", path) < (int)sizeof(name) &&
	       !stat(name, &st) && st.st_size > 0;
}

/* Decides by the header of the file alone (docs/FORMAT.md). */
static bool is_older(const char *path)
{
	uint8_t version[4];
	int fd PFS_CLOSE = open(path, O_RDONLY | O_CLOEXEC);

	return fd >= 0 && pread(fd, version, 4, 60) == 4 && version[3] < PFS_STORE_SCHEMA;
}

/* Returns the text for an error that needs no look at the store; NULL: it is another error. */
static const char *text_of(int error)
{
	switch (error) {
	case -ENOENT:
		return "no such store; make one with `primefs import`";
	case -EEXIST:
		return "exists already; choose another name or remove it";
	case -EUCLEAN:
		return "is damaged; see `primefs check`";
	case -ENOLCK:
		return "its filesystem has no file locks or no shared mappings; open it read-only or copy it to a "
		       "local disk";
	case -EXDEV:
		return "its log (-wal) was left by another store of this name, or by other changes of this one, as when a "
		       "backup is restored after a crash, or is damaged; copy both, then move the file that ends with -wal "
		       "elsewhere";
	case -ENOMEM:
		return "there is not enough memory; where address space is limited (ulimit -v), allow it 2 GiB or more";
	case -EMFILE:
		return "this process may open no more files; raise the limit of descriptors (ulimit -n)";
	case -EFBIG:
		return "it, or a file beside it, may not become larger here; raise the limit of "
		       "file sizes (ulimit -f), or use a filesystem that has larger files";
	case -ENAMETOOLONG:
		return "the path is longer than the 500 bytes that SQLite takes; move the store or reach it by a "
		       "shorter path";
	default:
		return NULL;
	}
}

static void explain_unreadable(char *out, size_t size, const char *path, int error)
{
	if (has_log(path) && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) == 0)
		(void)snprintf(
			out, size,
			"%s: was not closed cleanly and its log (-wal) cannot be read without writing "
			"beside it; open it once as a user who may write there",
			path);
	else
		explain_access(out, size, path, error);
}

static void explain_full(char *out, size_t size, const char *path)
{
	if (is_older(path))
		(void)snprintf(
			out, size,
			"%s: no room on its disk to bring it up to version %d of the format; free 2 MiB, "
			"or open it read-only (primefs mount -o ro)",
			path, PFS_STORE_SCHEMA);
	else
		(void)snprintf(out, size, "%s: no room on its disk", path);
}

void pfs_store_explain(char *out, size_t size, const char *path, int error)
{
	const char *text = text_of(error);
	struct stat attr;

	if (error != -ENOENT && error != -EEXIST && error != -EBUSY &&
	    pfs_vfs_explain(out, size, path))
		return;
	switch (error) {
	case -EBUSY:
		explain_busy(out, size, path);
		break;
	case -EACCES:
	case -EPERM:
	case -EROFS:
		explain_unreadable(out, size, path, error);
		break;
	case -EMEDIUMTYPE:
		(void)snprintf(
			out, size, "%s: %s", path,
			stat(path, &attr) == 0 && S_ISDIR(attr.st_mode)
				? "is a directory; make a store of it with `primefs import`"
				: "is no primefs store, or damaged beyond opening; restore it from a copy "
				  "or import again");
		break;
	case -EPROTONOSUPPORT:
		(void)snprintf(
			out, size,
			"%s: was written by a newer primefs (this one knows stores up to version %d); "
			"update primefs",
			path, PFS_STORE_SCHEMA);
		break;
	case -ENOSPC:
		explain_full(out, size, path);
		break;
	default:
		(void)snprintf(out, size, text ? "%s: %s" : "%s: cannot open the store: %s", path,
			       text ? text : strerror(-error));
		break;
	}
}
