/* SPDX-License-Identifier: MIT */
#include "tools/import/crawl_look.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "tools/import/crawl_impl.h"

struct pfs_crawl_look {
	struct pfs_crawl crawl;
	struct pfs_crawl_thread thread;
	bool store_here; /* in the entered directory */
};

int pfs_crawl_look_open(struct pfs_crawl_look **out, const struct pfs_crawl_options *options)
{
	struct pfs_crawl_look *look = calloc(1, sizeof(*look));
	struct statx from;
	int error;

	*out = NULL;
	if (!look)
		return -ENOMEM;
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

void pfs_crawl_look_close(struct pfs_crawl_look *look)
{
	if (!look)
		return;
	if (look->thread.deep.fd >= 0)
		(void)close(look->thread.deep.fd);
	if (look->crawl.root >= 0)
		(void)close(look->crawl.root);
	free(look->thread.deep.path);
	free(look);
}

int pfs_crawl_look_enter(struct pfs_crawl_look *look, int *fd, struct pfs_crawl_dir *dir)
{
	struct pfs_crawl_thread *thread = &look->thread;
	struct stat attr;

	*fd = pfs_crawl_open_dir(thread, dir);
	if (*fd < 0)
		return *fd;
	thread->fd = *fd;
	thread->dir = dir;
	thread->at_cwd = thread->no_attrs = false;
	look->store_here = look->crawl.store_name && !fstat(*fd, &attr) &&
			   attr.st_dev == look->crawl.store_dev &&
			   attr.st_ino == look->crawl.store_ino;
	return 0;
}

void pfs_crawl_look_leave(struct pfs_crawl_look *look)
{
	(void)close(look->thread.fd);
	look->thread.fd = -1;
	look->thread.dir = NULL;
}

bool pfs_crawl_look_passes(const struct pfs_crawl_look *look, const char *name)
{
	return look->store_here && pfs_crawl_is_store(&look->crawl, name);
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
		return errno == ENOENT ? 0 : pfs_crawl_problem(thread, name, strerror(errno));
	PFS_TRY(pfs_crawl_need_batch(thread));
	if (!*name)
		thread->dir = NULL; /* its own name is not part of its path */
	error = pfs_crawl_keep(thread, name, &from);
	thread->dir = dir;
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
