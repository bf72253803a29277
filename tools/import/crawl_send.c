/* SPDX-License-Identifier: MIT */
/* What the threads of a crawl send to whoever reads it, and what they say. */
#include "tools/import/crawl_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_BYTES ((size_t)16 << 20)
#define SHOWN_MAX   1000 /* bytes of a directory's path in a message */

struct pfs_crawl_message *pfs_crawl_message_create(enum pfs_crawl_kind kind,
						   struct pfs_crawl_batch *batch, size_t size)
{
	struct pfs_crawl_message *message = malloc(sizeof(*message) + size);

	if (message)
		*message = (struct pfs_crawl_message){.kind = kind, .batch = batch, .len = size};
	return message;
}

size_t pfs_crawl_weight(const struct pfs_crawl_message *message)
{
	size_t bytes = sizeof(*message) + message->len;

	if (message->kind == PFS_CRAWL_ENTRIES)
		bytes += message->batch->n_entries * sizeof(struct pfs_crawl_entry) +
			 message->batch->n_bytes;
	return bytes;
}

int pfs_crawl_send(struct pfs_crawl *crawl, struct pfs_crawl_message *message)
{
	size_t bytes = pfs_crawl_weight(message);
	bool stop;

	(void)pthread_mutex_lock(&crawl->mutex);
	while (crawl->queued_bytes > QUEUE_BYTES && !crawl->stop)
		(void)pthread_cond_wait(&crawl->room, &crawl->mutex);
	crawl->queued_bytes += bytes;
	if (!crawl->first)
		(void)pthread_cond_signal(&crawl->ready);
	*crawl->last = message;
	crawl->last = &message->next;
	stop = crawl->stop;
	(void)pthread_mutex_unlock(&crawl->mutex);
	return stop ? -ECANCELED : 0;
}

void pfs_crawl_path(char *out, size_t size, const char *root, const struct pfs_crawl_dir *dir,
		    const char *name, size_t name_len)
{
	const char *path = dir ? dir->path : "";
	size_t len = dir ? dir->path_len : 0, from = len > SHOWN_MAX ? len - SHOWN_MAX : 0;

	(void)snprintf(out, size, "%s%s%s%s%s%.*s", strcmp(root, "/") == 0 ? "" : root,
		       len || !name ? "/" : "", from ? "..." : "", path + from,
		       name ? "/" : "", (int)name_len, name ? name : "");
}

int pfs_crawl_problem(struct pfs_crawl_thread *thread, const char *name, const char *what)
{
	const struct pfs_crawl_options *options = &thread->crawl->options;
	char path[2 * PATH_MAX];

	if (thread->dir)
		thread->dir->unread = true;
	pfs_crawl_path(path, sizeof(path), options->root, thread->dir, name,
		       name ? strlen(name) : 0);
	return options->problem(options->arg, path, what);
}

int pfs_crawl_unlisted(struct pfs_crawl_thread *thread, int error)
{
	thread->dir->unlisted = true;
	return pfs_crawl_unreadable(thread, NULL, error);
}

int pfs_crawl_unreadable(struct pfs_crawl_thread *thread, const char *name, int error)
{
	return pfs_crawl_is_own(error) ? error : pfs_crawl_problem(thread, name, strerror(-error));
}
