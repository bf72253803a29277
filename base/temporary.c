/* SPDX-License-Identifier: MIT */
#include "base/temporary.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"

#define LEFT_PART 32 /* this part of the filesystem is left to others, but no more than the next */
#define LEFT_MOST ((uint64_t)256 << 20)
/* bytes that are granted at once: as many as the file has, within these limits */
#define STEP_MIN  ((uint64_t)64 << 10)
#define STEP_MAX  ((uint64_t)16 << 20)

static _Atomic uint64_t all_owed; /* the sum of every file's `owed` */

int pfs_temporary_descriptor(void)
{
	const char *folder = getenv("TMPDIR");
	char path[PATH_MAX];
	int fd, n;

	if (!folder || !*folder)
		folder = "/tmp";
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
		return -errno;
	/* Not all filesystems have files without a name. */
	n = snprintf(path, sizeof(path), "%s/primefs-XXXXXX", folder);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	return fd;
}

int pfs_temporary_open(struct pfs_temporary *file)
{
	*file = (struct pfs_temporary){.fd = pfs_temporary_descriptor()};
	if (file->fd < 0) {
		int error = file->fd;

		file->fd = -1;
		return error;
	}
	return 0;
}

static void owe(struct pfs_temporary *file, uint64_t bytes)
{
	(void)atomic_fetch_add(&all_owed, bytes - file->owed); /* modulo 2^64 */
	file->owed = bytes;
}

void pfs_temporary_close(struct pfs_temporary *file)
{
	if (file->fd < 0)
		return;
	(void)close(file->fd);
	owe(file, 0);
	*file = (struct pfs_temporary){.fd = -1};
}

uint64_t pfs_temporary_owed(void)
{
	return atomic_load(&all_owed);
}

/* Grants the size to the file, and returns true, if the filesystem has room for it, for all that is
 * granted to other files, and for the part that is left to others. */
static bool grant(struct pfs_temporary *file, uint64_t size)
{
	uint64_t left, before = file->owed, taken;
	struct statvfs fs;
	struct stat st;

	if (fstatvfs(file->fd, &fs) != 0 || fstat(file->fd, &st) != 0 || !fs.f_blocks) {
		file->granted = size; /* a filesystem that does not tell */
		return true;
	}
	left = PFS_MIN((uint64_t)fs.f_blocks * fs.f_frsize / LEFT_PART, LEFT_MOST);
	taken = (uint64_t)st.st_blocks * 512;
	owe(file, size - PFS_MIN(size, taken));
	if ((uint64_t)fs.f_bavail * fs.f_frsize < left + pfs_temporary_owed()) {
		owe(file, before);
		return false;
	}
	file->granted = size;
	return true;
}

int pfs_temporary_grow(struct pfs_temporary *file, uint64_t size)
{
	uint64_t step;

	if (size <= file->granted)
		return 0;
	step = PFS_MAX(STEP_MIN, PFS_MIN(file->granted, STEP_MAX));
	return grant(file, PFS_MAX(size, file->granted + step)) || grant(file, size) ? 0 : -ENOSPC;
}

int pfs_temporary_truncate(struct pfs_temporary *file, uint64_t size)
{
	if (ftruncate(file->fd, (off_t)size) != 0)
		return -errno;
	file->granted = PFS_MIN(file->granted, size);
	owe(file, PFS_MIN(file->owed, size));
	return 0;
}
