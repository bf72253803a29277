/* SPDX-License-Identifier: MIT */
#include "tools/import/crawl_look.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/content/filesystem.h"
#include "tools/import/crawl_impl.h"
#include "tools/import/ignore.h"

struct pfs_crawl_look {
	struct pfs_crawl crawl;
	struct pfs_crawl_thread thread;
	bool store_here; /* in the entered directory */
	struct level *levels; /* of directories above the one entered last, the lowest first */
};

/* A directory on the way down, and what .gitignore files say of its entries. */
struct level {
	struct level *above;
	const struct pfs_ignore *ignore;
	size_t path_len;
	char path[];
};

int pfs_crawl_look_open(struct pfs_crawl_look **out, const struct pfs_crawl_options *options)
{
	struct pfs_crawl_look *look = calloc(1, sizeof(*look));
	struct statx from;
	int error;

	*out = NULL;
	if (!look)
		return -ENOMEM;
	(void)pthread_mutex_init(&look->crawl.mutex, NULL);
	look->crawl.options = *options;
	look->thread.crawl = &look->crawl;
	look->thread.fd = look->thread.deep.fd = -1;
	look->crawl.root = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = look->crawl.root < 0 ? -errno : pfs_crawl_know_root(&look->crawl, &from);
	if (!error)
		error = pfs_crawl_know_store(&look->crawl);
	if (error)
		pfs_crawl_look_close(look);
	else
		*out = look;
	return error;
}

static void leave_level(struct pfs_crawl_look *look)
{
	struct level *level = look->levels;

	look->levels = level->above;
	free(level);
}

void pfs_crawl_look_close(struct pfs_crawl_look *look)
{
	if (!look)
		return;
	while (look->levels)
		leave_level(look);
	pfs_crawl_free_rules(&look->crawl);
	(void)pthread_mutex_destroy(&look->crawl.mutex);
	if (look->thread.deep.fd >= 0)
		(void)close(look->thread.deep.fd);
	if (look->crawl.root >= 0)
		(void)close(look->crawl.root);
	free(look->thread.deep.path);
	free(look);
}

/* ---- what .gitignore files say ---- */

static bool is_above(const struct level *level, const struct pfs_crawl_dir *dir)
{
	return level->path_len < dir->path_len &&
	       memcmp(level->path, dir->path, level->path_len) == 0 &&
	       (!level->path_len || dir->path[level->path_len] == '/');
}

static int enter_level(struct pfs_crawl_look *look, const struct pfs_crawl_dir *dir)
{
	struct level *level = malloc(sizeof(*level) + dir->path_len + 1);

	if (!level)
		return -ENOMEM;
	level->above = look->levels;
	level->ignore = look->thread.ignore;
	level->path_len = dir->path_len;
	(void)memcpy(level->path, dir->path, dir->path_len + 1);
	look->levels = level;
	return 0;
}

/* The rules of a directory between those that are known and the one entered. */
static int read_level(struct pfs_crawl_look *look, const struct pfs_crawl_dir *dir, size_t len)
{
	struct pfs_crawl_thread *thread = &look->thread;
	struct pfs_crawl_dir *above = calloc(1, sizeof(*above) + len + 1);
	int fd = thread->fd, error;

	if (!above)
		return -ENOMEM;
	above->path_len = len;
	(void)memcpy(above->path, dir->path, len);
	thread->fd = pfs_crawl_open_dir(thread, above);
	thread->dir = above;
	thread->ignore = look->levels ? look->levels->ignore : NULL;
	if (thread->fd >= 0)
		error = pfs_crawl_read_rules(thread, thread->ignore);
	else
		error = pfs_crawl_is_own(thread->fd) ? thread->fd : 0; /* else it has gone */
	if (thread->fd >= 0)
		(void)close(thread->fd);
	if (!error)
		error = enter_level(look, above);
	thread->fd = fd;
	thread->dir = NULL;
	free(above);
	return error;
}

/* Reads the rules of the directories above it, down to the one that has been opened. */
static int read_rules(struct pfs_crawl_look *look, struct pfs_crawl_dir *dir)
{
	const struct pfs_leaving_out *leaving_out = look->crawl.options.leaving_out;
	size_t len;

	if (!leaving_out || !leaving_out->gitignore) {
		look->thread.dir = dir;
		return pfs_crawl_read_rules(&look->thread, NULL);
	}
	while (look->levels && !is_above(look->levels, dir))
		leave_level(look);
	if (!look->levels && dir->path_len)
		PFS_TRY(read_level(look, dir, 0));
	for (len = look->levels ? look->levels->path_len : 0; dir->path_len;) {
		len += len > 0;
		len += strcspn(dir->path + len, "/");
		if (len >= dir->path_len)
			break;
		PFS_TRY(read_level(look, dir, len));
	}
	look->thread.dir = dir;
	PFS_TRY(pfs_crawl_read_rules(&look->thread, look->levels ? look->levels->ignore : NULL));
	return enter_level(look, dir);
}

int pfs_crawl_look_enter(struct pfs_crawl_look *look, int *fd, struct pfs_crawl_dir *dir)
{
	struct pfs_crawl_thread *thread = &look->thread;
	struct stat attr;
	int error;

	*fd = pfs_crawl_open_dir(thread, dir);
	if (*fd < 0)
		return *fd;
	thread->fd = *fd;
	error = fstat(*fd, &attr) ? -errno : read_rules(look, dir);
	if (error) {
		pfs_crawl_look_leave(look);
		return error;
	}
	thread->at_cwd = false;
	thread->without_attrs = 0;
	dir->dev = attr.st_dev;
	dir->ino = attr.st_ino;
	look->store_here = look->crawl.store_name && attr.st_dev == look->crawl.store_dev &&
			   attr.st_ino == look->crawl.store_ino;
	return 0;
}

void pfs_crawl_look_leave(struct pfs_crawl_look *look)
{
	(void)close(look->thread.fd);
	look->thread.fd = -1;
	look->thread.dir = NULL;
}

bool pfs_crawl_look_passes(const struct pfs_crawl_look *look, const char *name, bool directory)
{
	return (look->store_here && pfs_crawl_is_store(&look->crawl, name)) ||
	       pfs_crawl_leaves_out(&look->thread, name, directory);
}

bool pfs_crawl_look_stays_out(const struct pfs_crawl_look *look, dev_t mounted)
{
	const struct pfs_crawl *crawl = &look->crawl;

	return !crawl->options.cross_mounts || (crawl->own && mounted == crawl->own);
}

/* What a directory of the batch is called later belongs to the batch. */
static int look_at(struct pfs_crawl_look *look, const char *name)
{
	struct pfs_crawl_thread *thread = &look->thread;
	struct pfs_crawl_dir *dir = thread->dir;
	struct statx from;
	int error;

	if (statx(thread->fd, name, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  PFS_CRAWL_STATX, &from) < 0)
		return errno == ENOENT ? 0 : pfs_crawl_unreadable(thread, name, -errno);
	PFS_TRY(pfs_crawl_need_batch(thread));
	if (!*name)
		thread->dir = NULL; /* its own name is not part of its path */
	error = pfs_crawl_keep(thread, name, &from);
	thread->dir = dir;
	if (!*name && dir->path_len && thread->batch->n_entries &&
	    pfs_crawl_is_mounted_at(&from, thread->fd, look->crawl.dev)) {
		thread->batch->entries[0].mounted = true;
		thread->batch->entries[0].filesystem = pfs_filesystem_of(thread->fd);
	}
	thread->batch->done = thread->own;
	thread->own = NULL;
	return error;
}

int pfs_crawl_look_at(struct pfs_crawl_look *look, struct pfs_crawl_batch **out, const char *name)
{
	int error = look_at(look, name ? name : "");

	*out = look->thread.batch;
	look->thread.batch = NULL;
	if (*out && (error || !(*out)->n_entries)) {
		pfs_crawl_free_batch(*out);
		*out = NULL;
	}
	return error;
}

void pfs_crawl_look_free(struct pfs_crawl_batch *batch)
{
	pfs_crawl_free_batch(batch);
}
