/* SPDX-License-Identifier: MIT */
#include "meta/vfs.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/temporary.h"

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

	while (size > 0) {
		ssize_t n = pread(temporary_of(file)->fd, to, (size_t)size, offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return SQLITE_IOERR_READ;
		if (!n) {
			memset(to, 0, (size_t)size); /* SQLite wants it so */
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
	int error = pfs_temporary_grow(temporary, (uint64_t)offset + (uint64_t)size);
	const char *from = data;

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

/* Version 1: it has no shared memory, and SQLite reads it instead of mapping it. */
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

	out->pMethods = NULL; /* so that SQLite does not close it on failure */
	if (pfs_temporary_open(&file->temporary))
		return SQLITE_CANTOPEN;
	out->pMethods = &temporary_methods;
	if (out_flags)
		*out_flags = flags;
	return SQLITE_OK;
}

/* ---- the VFS ---- */

static int open_file(sqlite3_vfs *self PFS_UNUSED, const char *path, sqlite3_file *file, int flags,
		     int *out_flags)
{
	if (!path)
		return open_temporary(file, flags, out_flags);
	return lower->xOpen(lower, path, file, flags, out_flags);
}

static void make(void)
{
	lower = sqlite3_vfs_find(NULL);
	if (!lower)
		return;
	/* All but xOpen is the lower one's, which finds its own data in a copy of itself, too. */
	vfs = *lower;
	vfs.pNext = NULL;
	vfs.zName = NAME;
	vfs.szOsFile = PFS_MAX(lower->szOsFile, (int)sizeof(struct file));
	vfs.xOpen = open_file;
	is_registered = sqlite3_vfs_register(&vfs, 0) == SQLITE_OK;
}

const char *pfs_vfs_name(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make);
	return is_registered ? NAME : NULL;
}
