/* SPDX-License-Identifier: MIT */
#include "meta/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/temporary.h"
#include "meta/account.h"

#define NAME "primefs"

static sqlite3_vfs *lower;
static sqlite3_vfs vfs;
static bool is_registered;

/* ---- temporary files ---- */

struct file {
	sqlite3_file base;
	struct pfs_temporary temporary;
};

static struct pfs_temporary *temporary_of(sqlite3_file *file)
{
	return &((struct file *)file)->temporary;
}

static int close_file(sqlite3_file *file)
{
	pfs_temporary_close(temporary_of(file));
	return SQLITE_OK;
}

static int read_file(sqlite3_file *file, void *data, int size, sqlite3_int64 offset)
{
	char *to = data;

	if (!pfs_account_has_time((uint64_t)size))
		return SQLITE_IOERR_NOMEM;
	while (size > 0) {
		ssize_t n = pread(temporary_of(file)->fd, to, (size_t)size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return SQLITE_IOERR_READ;
		if (!n) {
			memset(to, 0, (size_t)size); /* SQLite requires it */
			return SQLITE_IOERR_SHORT_READ;
		}
		to += n;
		size -= (int)n;
		offset += n;
	}
	return SQLITE_OK;
}

static int write_result(int error)
{
	return error == -ENOSPC || error == -EDQUOT ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int write_file(sqlite3_file *file, const void *data, int size, sqlite3_int64 offset)
{
	struct pfs_temporary *temporary = temporary_of(file);
	const char *from = data;
	int error;

	if (!pfs_account_has_time((uint64_t)size))
		return SQLITE_IOERR_NOMEM;
	error = pfs_temporary_grow(temporary, (uint64_t)offset + (uint64_t)size);
	while (!error && size > 0) {
		ssize_t n = pwrite(temporary->fd, from, (size_t)size, offset);

		if (n < 0) {
			error = errno == EINTR ? 0 : -errno;
			continue;
		}
		from += n;
		size -= (int)n;
		offset += n;
	}
	return error ? write_result(error) : SQLITE_OK;
}

static int truncate_file(sqlite3_file *file, sqlite3_int64 size)
{
	return pfs_temporary_truncate(temporary_of(file), (uint64_t)size) ? SQLITE_IOERR_TRUNCATE
									  : SQLITE_OK;
}

static int sync_file(sqlite3_file *file PFS_UNUSED, int flags PFS_UNUSED)
{
	return SQLITE_OK;
}

static int size_of_file(sqlite3_file *file, sqlite3_int64 *size)
{
	struct stat st;

	if (fstat(temporary_of(file)->fd, &st) != 0)
		return SQLITE_IOERR_FSTAT;
	*size = st.st_size;
	return SQLITE_OK;
}

static int lock_file(sqlite3_file *file PFS_UNUSED, int level PFS_UNUSED)
{
	return SQLITE_OK;
}

static int is_file_locked(sqlite3_file *file PFS_UNUSED, int *out)
{
	*out = 0;
	return SQLITE_OK;
}

static int control_file(sqlite3_file *file PFS_UNUSED, int op PFS_UNUSED, void *arg PFS_UNUSED)
{
	return SQLITE_NOTFOUND;
}

static int sector_size(sqlite3_file *file PFS_UNUSED)
{
	return 4096;
}

static int characteristics(sqlite3_file *file PFS_UNUSED)
{
	return 0;
}

/* Version 1 has no shared memory, so SQLite reads the file instead of mapping it. */
static const sqlite3_io_methods temporary_methods = {
	.iVersion = 1,
	.xClose = close_file,
	.xRead = read_file,
	.xWrite = write_file,
	.xTruncate = truncate_file,
	.xSync = sync_file,
	.xFileSize = size_of_file,
	.xLock = lock_file,
	.xUnlock = lock_file,
	.xCheckReservedLock = is_file_locked,
	.xFileControl = control_file,
	.xSectorSize = sector_size,
	.xDeviceCharacteristics = characteristics,
};

static int open_temporary(sqlite3_file *out, int flags, int *out_flags)
{
	struct file *file = (struct file *)out;

	out->pMethods = NULL; /* so that SQLite does not close the file on failure */
	if (pfs_temporary_open(&file->temporary))
		return SQLITE_CANTOPEN;
	out->pMethods = &temporary_methods;
	if (out_flags)
		*out_flags = flags;
	return SQLITE_OK;
}

/* ---- files beside a store ---- */

static const char *const suffixes[] = {"-wal", "-shm", "-journal"};

typedef int open_fn(const char *path, int flags, int mode);
static open_fn *open_unchecked;
/* the file that is opened is a store, whatever its name ends with */
static _Thread_local bool opens_main;

/* Gets the path of the store to which the file belongs. Returns false if the name has none of the
 * suffixes. */
static bool store_of(char store[PATH_MAX], const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		size_t n = strlen(suffixes[i]);

		if (len > n && len - n < PATH_MAX && strcmp(path + len - n, suffixes[i]) == 0) {
			memcpy(store, path, len - n);
			store[len - n] = '\0';
			return true;
		}
	}
	return false;
}

/* Returns true for a regular file with one name whose owner is the store's owner, root or this
 * user. (When root runs SQLite, that gives a file that it has made to the store's owner only a
 * moment later.) */
static bool is_own(const struct stat *file, const struct stat *store)
{
	return S_ISREG(file->st_mode) && file->st_nlink <= 1 &&
	       (file->st_uid == store->st_uid || file->st_uid == geteuid() || file->st_uid == 0);
}

/* Checks the file that was opened, not its name, which may belong to another file by now. Opening a
 * fifo must not wait. */
static int open_checked(const char *path, int flags, int mode)
{
	struct stat file, store;
	char name[PATH_MAX];
	int fd;

	if (opens_main || !store_of(name, path) || stat(name, &store) != 0)
		return open_unchecked(path, flags, mode);
	fd = open_unchecked(path, flags | O_NONBLOCK, mode);
	if (fd < 0 || (fstat(fd, &file) == 0 && is_own(&file, &store)))
		return fd;
	(void)close(fd);
	errno = EPERM;
	return -1;
}

/* SQLite opens a -shm without any VFS's xOpen, but opens all files by this one call. */
static void check_files(void)
{
	sqlite3_vfs *unix_vfs = sqlite3_vfs_find("unix");
	sqlite3_syscall_ptr before = NULL;

	if (unix_vfs && unix_vfs->iVersion >= 3)
		before = unix_vfs->xGetSystemCall(unix_vfs, "open");
	if (!before)
		return;
	open_unchecked = (open_fn *)before;
	(void)unix_vfs->xSetSystemCall(unix_vfs, "open", (sqlite3_syscall_ptr)open_checked);
}

bool pfs_vfs_explain(char *out, size_t size, const char *path)
{
	struct stat store, file;
	char name[PATH_MAX];

	for (size_t i = 0; i < PFS_COUNT(suffixes); i++) {
		if (snprintf(name, sizeof(name), "%s%s", path, suffixes[i]) >= (int)sizeof(name) ||
		    stat(path, &store) != 0 || lstat(name, &file) != 0 || is_own(&file, &store))
			continue;
		if (S_ISREG(file.st_mode) && file.st_nlink <= 1)
			(void)snprintf(
				out, size,
				"%s: belongs to user %u and the store to %u, so it is not used; remove it, or "
				"chown it if it is the log of a store that was not closed",
				name, file.st_uid, store.st_uid);
		else
			(void)snprintf(
				out, size,
				"%s: is no file of the store's, so it is not used; move it away",
				name);
		return true;
	}
	return false;
}

/* ---- the VFS ---- */

static int open_file(sqlite3_vfs *self PFS_UNUSED, const char *path, sqlite3_file *file, int flags,
		     int *out_flags)
{
	int result;

	if (!path)
		return open_temporary(file, flags, out_flags);
	opens_main = flags & SQLITE_OPEN_MAIN_DB;
	result = lower->xOpen(lower, path, file, flags, out_flags);
	opens_main = false;
	return result;
}

static void make(void)
{
	lower = sqlite3_vfs_find(NULL);
	if (!lower)
		return;
	/* All functions except xOpen are the lower VFS's, which finds its own data in a copy of its
	 * struct, too. */
	vfs = *lower;
	vfs.pNext = NULL;
	vfs.zName = NAME;
	vfs.szOsFile = PFS_MAX(lower->szOsFile, (int)sizeof(struct file));
	vfs.xOpen = open_file;
	check_files();
	is_registered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

const char *pfs_vfs_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make);
	return is_registered ? NAME : NULL;
}
