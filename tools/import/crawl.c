/* SPDX-License-Identifier: MIT */
/* Threads, the directories that wait for them, and the queue of what they found. */
#include "tools/import/crawl.h"

#include <fcntl.h>
#include <libgen.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "fs/mount/kernel.h"
#include "tools/client/holder.h"
#include "tools/import/crawl_impl.h"

#define THREADS_MIN 2 /* one may wait for the disk */
#define THREADS_MAX 8
#define DONE_BYTES  ((size_t)1 << 20) /* of paths, kept with a batch */

/* ---- messages ---- */

static void free_message(struct pfs_crawl_message *message)
{
	if (message->kind == PFS_CRAWL_END)
		pfs_crawl_free_batch(message->batch);
	free(message);
}

/* ---- threads ---- */

static void stop_with(struct pfs_crawl *crawl, int error)
{
	(void)pthread_mutex_lock(&crawl->mutex);
	if (!crawl->error)
		crawl->error = error;
	crawl->stop = true;
	(void)pthread_cond_broadcast(&crawl->work);
	(void)pthread_cond_broadcast(&crawl->room);
	(void)pthread_cond_broadcast(&crawl->ready);
	(void)pthread_mutex_unlock(&crawl->mutex);
}

/* The thread has nothing left to do: waits for a directory; NULL when there will be no more. */
static struct pfs_crawl_dir *wait_for_dir(struct pfs_crawl_thread *thread)
{
	struct pfs_crawl *crawl = thread->crawl;
	struct pfs_crawl_dir *dir = NULL;

	(void)pthread_mutex_lock(&crawl->mutex);
	crawl->busy -= thread->busy;
	thread->busy = false;
	if (crawl->busy == 0 && !crawl->stack) {
		(void)pthread_cond_broadcast(&crawl->work);
		(void)pthread_cond_broadcast(&crawl->ready);
	}
	crawl->hungry++;
	while (!crawl->stack && crawl->busy && !crawl->stop)
		(void)pthread_cond_wait(&crawl->work, &crawl->mutex);
	crawl->hungry--;
	if (crawl->stack && !crawl->stop) {
		dir = crawl->stack;
		crawl->stack = dir->next;
		crawl->busy++;
		thread->busy = true;
	}
	(void)pthread_mutex_unlock(&crawl->mutex);
	return dir;
}

/* The next directory to read: one of the thread's own, unless others have nothing to do. */
static int next_dir(struct pfs_crawl_thread *thread)
{
	thread->dir = NULL;
	if (!thread->own || thread->crawl->hungry || thread->done_bytes > DONE_BYTES)
		PFS_TRY(pfs_crawl_flush(thread));
	if (thread->own) {
		thread->dir = thread->own;
		thread->own = thread->dir->next;
	} else {
		thread->dir = wait_for_dir(thread);
	}
	return 0;
}

/* What is unread is asked for at the end; all else goes with the next batch. */
static void put_away(struct pfs_crawl_thread *thread, struct pfs_crawl_dir *dir)
{
	if (dir->unread) {
		PFS_LOCKED(&thread->crawl->mutex);

		dir->next = thread->crawl->unread;
		thread->crawl->unread = dir;
		return;
	}
	dir->next = thread->done;
	thread->done = dir;
	thread->done_bytes += dir->path_len;
}

static void *run(void *arg)
{
	struct pfs_crawl *crawl = arg;
	struct pfs_crawl_thread *thread = calloc(1, sizeof(*thread));
	int error = 0;

	if (!thread) {
		stop_with(crawl, -ENOMEM);
		return NULL;
	}
	thread->crawl = crawl;
	thread->deep.fd = -1;
	thread->own_cwd = unshare(CLONE_FS) == 0;
	while (!error) {
		error = next_dir(thread);
		if (error || !thread->dir)
			break;
		error = pfs_crawl_directory(thread);
		put_away(thread, thread->dir);
	}
	if (error)
		stop_with(crawl, error);
	pfs_crawl_drop(thread);
	if (thread->deep.fd >= 0)
		(void)close(thread->deep.fd);
	free(thread->deep.path);
	free(thread);
	return NULL;
}

static int start_threads(struct pfs_crawl *crawl)
{
	static const struct pfs_thread_kind kind = {"pfs-crawl", 0, 0};
	long online = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = crawl->options.threads;

	if (!n)
		n = (unsigned)PFS_MIN(PFS_MAX(online, THREADS_MIN), THREADS_MAX);
	crawl->threads = calloc(n, sizeof(*crawl->threads));
	if (!crawl->threads)
		return -ENOMEM;
	for (crawl->n_threads = 0; crawl->n_threads < n; crawl->n_threads++)
		if (pfs_thread_start(&crawl->threads[crawl->n_threads], &kind, run, crawl) != 0)
			break;
	return crawl->n_threads ? 0 : -EAGAIN;
}

/* ---- the reader's side ---- */

/* What a daemon reads of its own mount it has to answer itself, and keeps itself mounted. */
static dev_t mounted_as(const char *store)
{
	char *path PFS_FREE = realpath(store, NULL);
	struct pfs_kernel_mount found;
	uint64_t device = 0;

	if (path && pfs_kernel_find(&found, NULL, path) == 0)
		device = pfs_holder_device(found.mountpoint);
	return makedev((unsigned)(device >> 32), (unsigned)device);
}

int pfs_crawl_know_store(struct pfs_crawl *crawl)
{
	const char *store = crawl->options.store, *slash = store ? strrchr(store, '/') : NULL;
	char folder[PATH_MAX];
	struct stat attr;

	if (!store)
		return 0;
	if (strlen(store) >= sizeof(folder))
		return -ENAMETOOLONG;
	(void)memcpy(folder, store, strlen(store) + 1);
	if (stat(dirname(folder), &attr) < 0)
		return -errno;
	crawl->own = crawl->options.cross_mounts ? mounted_as(store) : 0;
	crawl->store_dev = attr.st_dev;
	crawl->store_ino = attr.st_ino;
	crawl->store_name = slash ? slash + 1 : store;
	return 0;
}

int pfs_crawl_open(struct pfs_crawl **out, const struct pfs_crawl_options *options)
{
	struct pfs_crawl *crawl = calloc(1, sizeof(*crawl));
	int error;

	*out = NULL;
	if (!crawl)
		return -ENOMEM;
	crawl->options = *options;
	crawl->last = &crawl->first;
	(void)pthread_mutex_init(&crawl->mutex, NULL);
	(void)pthread_cond_init(&crawl->work, NULL);
	(void)pthread_cond_init(&crawl->room, NULL);
	(void)pthread_cond_init(&crawl->ready, NULL);
	crawl->root = open(options->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = crawl->root < 0 ? -errno : pfs_crawl_know_store(crawl);
	if (!error)
		error = pfs_crawl_root(crawl);
	if (!error)
		error = start_threads(crawl);
	if (error)
		pfs_crawl_close(crawl);
	else
		*out = crawl;
	return error;
}

struct pfs_crawl_message *pfs_crawl_next(struct pfs_crawl *crawl)
{
	struct pfs_crawl_message *message;

	if (crawl->current)
		free_message(crawl->current);
	(void)pthread_mutex_lock(&crawl->mutex);
	while (!crawl->first && !crawl->stop && (crawl->busy || crawl->stack))
		(void)pthread_cond_wait(&crawl->ready, &crawl->mutex);
	message = crawl->first;
	if (message) {
		crawl->first = message->next;
		if (!crawl->first)
			crawl->last = &crawl->first;
		crawl->queued_bytes -= pfs_crawl_weight(message);
		(void)pthread_cond_signal(&crawl->room);
	}
	(void)pthread_mutex_unlock(&crawl->mutex);
	crawl->current = message;
	return message;
}

int pfs_crawl_error(struct pfs_crawl *crawl)
{
	int error;

	(void)pthread_mutex_lock(&crawl->mutex);
	error = crawl->error;
	(void)pthread_mutex_unlock(&crawl->mutex);
	return error;
}

const struct pfs_crawl_dir *pfs_crawl_unread(const struct pfs_crawl *crawl)
{
	return crawl->unread;
}

void pfs_crawl_attr(const struct pfs_crawl_batch *batch, struct pfs_crawl_attr *out, size_t *at)
{
	const char *bytes = batch->bytes + *at;

	(void)memcpy(&out->name_len, bytes, sizeof(out->name_len));
	(void)memcpy(&out->value_len, bytes + sizeof(out->name_len), sizeof(out->value_len));
	out->name = bytes + 2 * sizeof(size_t);
	out->value = out->name + out->name_len;
	*at += 2 * sizeof(size_t) + out->name_len + out->value_len;
}

void pfs_crawl_mark(const struct pfs_crawl_batch *batch, struct pfs_birthmark *out,
		    const struct pfs_crawl_entry *entry)
{
	*out = (struct pfs_birthmark){.has_birth = entry->has_birth,
				      .birth = entry->birth,
				      .handle_len = entry->handle_len};
	(void)memcpy(out->handle, batch->bytes + entry->handle, entry->handle_len);
}

void pfs_crawl_close(struct pfs_crawl *crawl)
{
	if (!crawl)
		return;
	stop_with(crawl, 0);
	while (crawl->n_threads)
		(void)pthread_join(crawl->threads[--crawl->n_threads], NULL);
	while (pfs_crawl_next(crawl))
		;
	pfs_crawl_free_dirs(crawl->stack);
	pfs_crawl_free_dirs(crawl->done);
	pfs_crawl_free_dirs(crawl->unread);
	pfs_crawl_free_rules(crawl);
	if (crawl->root >= 0)
		(void)close(crawl->root);
	(void)pthread_mutex_destroy(&crawl->mutex);
	(void)pthread_cond_destroy(&crawl->work);
	(void)pthread_cond_destroy(&crawl->room);
	(void)pthread_cond_destroy(&crawl->ready);
	free(crawl->threads);
	free(crawl);
}
