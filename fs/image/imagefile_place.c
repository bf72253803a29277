/* SPDX-License-Identifier: MIT */
/* The names that an image file has, when it is whole and while it is written: nobody loses what
 * only happens to have one of them. */
#include "fs/image/imagefile.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/image/imagefile_impl.h"

#define TAKEN(suffix)                                                                              \
	"cannot have an image file: what has its name and " suffix " is something else; move "     \
	"that away"

/* Nobody loses a file that only happens to have the name: it is empty, an image file, or one that
 * was never finished, which has no header. */
static bool is_ours(int fd)
{
	static const char unfinished[sizeof(((struct pfs_image_header *)0)->magic)];
	char magic[sizeof(unfinished)];
	ssize_t n = pread(fd, magic, sizeof(magic), 0);

	return n == 0 || (n == sizeof(magic) &&
			  (!memcmp(magic, PFS_IMAGE_FILE_BEGIN, sizeof(PFS_IMAGE_FILE_BEGIN) - 1) ||
			   !memcmp(magic, unfinished, sizeof(magic))));
}

bool pfs_imagefile_may_replace(const char *name)
{
	int fd PFS_CLOSE = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat attr;

	if (fd < 0)
		return errno == ENOENT;
	return !fstat(fd, &attr) && S_ISREG(attr.st_mode) && is_ours(fd);
}

/* The lock is ours alone and nobody can have prepared the file; nor has it become the image file,
 * by whoever had the lock before. */
static int check_part(int fd, const char *name)
{
	struct stat opened, named;

	if (fstat(fd, &opened))
		return -errno;
	if (!S_ISREG(opened.st_mode) || opened.st_nlink != 1 || opened.st_uid != geteuid() ||
	    !is_ours(fd))
		return -EPERM;
	if (flock(fd, LOCK_EX | LOCK_NB) || lstat(name, &named) || named.st_ino != opened.st_ino ||
	    named.st_dev != opened.st_dev)
		return -EBUSY;
	return fchmod(fd, S_IRUSR | S_IWUSR) || ftruncate(fd, 0) ? -errno : 0;
}

#define NAME_MAX_BYTES (PATH_MAX + sizeof(PFS_IMAGE_FILE_SUFFIX PFS_IMAGE_PART_SUFFIX))

static void name_part(char *out, const char *store)
{
	(void)snprintf(out, NAME_MAX_BYTES, "%s" PFS_IMAGE_FILE_SUFFIX PFS_IMAGE_PART_SUFFIX,
		       store);
}

int pfs_imagefile_begin(const char *store)
{
	char name[NAME_MAX_BYTES];
	int fd, error;

	name_part(name, store);
	fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -errno;
	error = check_part(fd, name);
	if (!error)
		return fd;
	(void)close(fd);
	return error;
}

void pfs_imagefile_give_up(const char *store)
{
	char name[NAME_MAX_BYTES];

	name_part(name, store);
	(void)unlink(name);
}

bool pfs_imagefile_is_written(int fd)
{
	return flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
}

static int open_written(const char *name)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || pfs_imagefile_is_written(fd))
		return fd;
	(void)close(fd);
	return -1;
}

/* A process that ends may still have the file locked when that has its name. */
int pfs_imagefile_open_written(const char *store)
{
	char name[NAME_MAX_BYTES];
	int fd;

	name_part(name, store);
	fd = open_written(name);
	if (fd >= 0)
		return fd;
	(void)snprintf(name, sizeof(name), "%s" PFS_IMAGE_FILE_SUFFIX, store);
	return open_written(name);
}

/* Returns true if whoever writes the image file, this process or the store's owner, could not write
 * it under that name. A file of the owner's that only he may read is taken for what he has begun.
 */
static bool is_part_taken(const char *name, uid_t owner)
{
	struct stat attr;

	if (lstat(name, &attr))
		return false;
	if (!S_ISREG(attr.st_mode) || attr.st_nlink != 1 ||
	    (attr.st_uid != owner && attr.st_uid != geteuid()))
		return true;
	return !access(name, R_OK) && !pfs_imagefile_may_replace(name);
}

const char *pfs_imagefile_taken(const char *store)
{
	char name[NAME_MAX_BYTES];
	struct stat attr;

	(void)snprintf(name, sizeof(name), "%s" PFS_IMAGE_FILE_SUFFIX, store);
	if (!pfs_imagefile_may_replace(name))
		return TAKEN(PFS_IMAGE_FILE_SUFFIX);
	name_part(name, store);
	if (!stat(store, &attr) && is_part_taken(name, attr.st_uid))
		return TAKEN(PFS_IMAGE_FILE_SUFFIX PFS_IMAGE_PART_SUFFIX);
	return NULL;
}
