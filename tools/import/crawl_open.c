/* SPDX-License-Identifier: MIT */
/* Directories are opened by their paths below the root, without following a symlink. */
#include "tools/import/crawl_impl.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/checked.h"

int pfs_crawl_openat(int dir, const char *name, int flags)
{
	int fd;

	flags |= O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	/* only owners may read without a trace */
	fd = openat(dir, name, flags | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(dir, name, flags);
	return fd < 0 ? -errno : fd;
}

/* One component after the other: for kernels without openat2. */
static int open_stepwise(int root, const char *path)
{
	int dir = -1;

	while (*path) {
		char name[PFS_NAME_MAX + 1];
		size_t len = strcspn(path, "/");
		int fd = -ENAMETOOLONG;

		if (len <= PFS_NAME_MAX) {
			(void)memcpy(name, path, len);
			name[len] = 0;
			fd = pfs_crawl_openat(dir < 0 ? root : dir, name, O_DIRECTORY);
		}
		if (dir >= 0)
			(void)close(dir);
		if (fd < 0)
			return fd;
		dir = fd;
		path += len + (path[len] == '/');
	}
	return dir;
}

/* A path of less than PATH_MAX bytes. */
static int open_at_once(int root, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NOATIME,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0 && errno == EPERM) {
		how.flags &= ~(uint64_t)O_NOATIME;
		fd = syscall(SYS_openat2, root, path, &how, sizeof(how));
	}
	if (fd >= 0)
		return (int)fd;
	/* sandboxes that do not know openat2 answer EPERM; EAGAIN: something is being renamed */
	return errno == ENOSYS || errno == EPERM || errno == EAGAIN ? open_stepwise(root, path)
								    : -errno;
}

/* A path of any length, as much of it at once as the kernel takes. */
static int open_beneath(int root, const char *path, size_t len)
{
	char part[PATH_MAX];
	int dir = -1, fd;

	for (;;) {
		const char *slash = len < PATH_MAX ? NULL : memrchr(path, '/', PATH_MAX - 1);
		size_t size = len < PATH_MAX ? len : slash ? (size_t)(slash - path) : 0;

		if (!size)
			fd = -ENAMETOOLONG;
		else {
			(void)memcpy(part, path, size);
			part[size] = 0;
			fd = open_at_once(dir < 0 ? root : dir, part);
		}
		if (dir >= 0)
			(void)close(dir);
		if (fd < 0 || size == len)
			return fd;
		dir = fd;
		path += size + 1;
		len -= size + 1;
	}
}

int pfs_crawl_open_dir(const struct pfs_crawl_thread *thread, const struct pfs_crawl_dir *dir)
{
	const struct pfs_crawl_deep *deep = &thread->deep;
	int root = thread->crawl->root;

	if (!dir->path_len)
		return pfs_crawl_openat(root, ".", O_DIRECTORY);
	if (deep->fd >= 0 && dir->path_len > deep->len && dir->path[deep->len] == '/' &&
	    memcmp(dir->path, deep->path, deep->len) == 0)
		return open_beneath(deep->fd, dir->path + deep->len + 1,
				    dir->path_len - deep->len - 1);
	return open_beneath(root, dir->path, dir->path_len);
}

void pfs_crawl_leave_dir(struct pfs_crawl_thread *thread, const struct pfs_crawl_dir *dir)
{
	struct pfs_crawl_deep *deep = &thread->deep;

	if (dir->path_len < PATH_MAX || !thread->own ||
	    pfs_grow(&deep->path, &deep->capacity, dir->path_len, 1) != 0) {
		(void)close(thread->fd);
		return;
	}
	if (deep->fd >= 0)
		(void)close(deep->fd);
	deep->fd = thread->fd;
	deep->len = dir->path_len;
	(void)memcpy(deep->path, dir->path, dir->path_len);
}
