/* SPDX-License-Identifier: MIT */
/* The content of regular files, chunk by chunk, holes left out. */
#include "tools/import/crawl_impl.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/acl.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "meta/store.h"

/* Reads up to `size` bytes from offset on; fewer only at the end of the file. */
static ssize_t read_at(int fd, char *to, size_t size, uint64_t offset)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = pread(fd, to + len, size - len, (off_t)(offset + len));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

struct copy {
	struct pfs_crawl_thread *thread;
	struct pfs_crawl_batch *batch;
	struct pfs_crawl_entry *entry;
	int fd;
	uint64_t size; /* as it was when the copy began */
	uint64_t end;  /* where the file was found to end, if before that */
	bool failed;   /* and said so */
};

static int copy_chunk(struct copy *copy, uint64_t n)
{
	uint64_t offset = n * PFS_CHUNK_SIZE;
	/* what grows while it is copied is cut off where it ended */
	size_t size = PFS_MIN(copy->size - offset, PFS_CHUNK_SIZE);
	struct pfs_crawl_message *message =
		pfs_crawl_message_create(PFS_CRAWL_CHUNK, copy->batch, size);
	ssize_t len;

	if (!message)
		return -ENOMEM;
	len = read_at(copy->fd, message->data, size, offset);
	if (len <= 0) {
		free(message);
		copy->end = PFS_MIN(copy->end, offset);
		copy->failed = len < 0;
		return len < 0 ? pfs_crawl_unreadable(copy->thread,
						      copy->batch->bytes + copy->entry->name,
						      (int)len)
			       : 0;
	}
	message->len = (size_t)len;
	if (message->len < size)
		copy->end = PFS_MIN(copy->end, offset + message->len);
	message->entry = copy->entry;
	message->n = n;
	return pfs_crawl_send(copy->thread->crawl, message);
}

/* The chunks that hold data, by what the filesystem says of holes. */
static int copy_data(struct copy *copy)
{
	uint64_t at = 0, n;

	while (at < copy->end && !copy->failed) {
		off_t data = lseek(copy->fd, (off_t)at, SEEK_DATA), hole;

		if (data < 0 && errno == ENXIO)
			break; /* a hole up to the end */
		if (data < 0)
			data = (off_t)at;
		hole = lseek(copy->fd, data, SEEK_HOLE);
		if (hole < 0)
			hole = (off_t)copy->size;
		hole = PFS_MIN(hole, (off_t)copy->size);
		for (n = (uint64_t)data / PFS_CHUNK_SIZE;
		     n * PFS_CHUNK_SIZE < (uint64_t)hole && n * PFS_CHUNK_SIZE < copy->end &&
		     !copy->failed;
		     n++)
			PFS_TRY(copy_chunk(copy, n));
		at = PFS_MAX(n * PFS_CHUNK_SIZE, at + 1);
	}
	return 0;
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Copies an open file; *attr is how it was, its size what was copied. */
static int copy_file(struct copy *copy, struct stat *attr, bool *changed)
{
	struct stat after;

	if (fstat(copy->fd, attr) < 0)
		return -errno;
	if (!S_ISREG(attr->st_mode))
		return -ESTALE;
	copy->size = copy->end = (uint64_t)attr->st_size;
	if (copy->size > PFS_CHUNK_SIZE || attr->st_blocks == 0)
		PFS_TRY(copy_data(copy));
	else if (copy->size)
		PFS_TRY(copy_chunk(copy, 0));
	*changed = fstat(copy->fd, &after) < 0 || !same(attr, &after) || copy->end < copy->size;
	attr->st_size = (off_t)copy->end;
	return 0;
}

/* An open file's mode, as an ACL really grants it. */
static void narrow(struct stat *attr, int fd)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	attr->st_mode = pfs_acl_file_mode(attr->st_mode, path);
}

static int crawl_file(struct pfs_crawl_thread *thread, struct pfs_crawl_batch *batch,
		      struct pfs_crawl_entry *entry)
{
	char name[PFS_NAME_MAX + 1];
	struct copy copy = {.thread = thread, .batch = batch, .entry = entry};
	struct pfs_crawl_message *message = pfs_crawl_message_create(PFS_CRAWL_CONTENT, batch, 0);
	int fd PFS_CLOSE = -1, error = 0;

	if (!message)
		return -ENOMEM;
	(void)memcpy(name, batch->bytes + entry->name, entry->name_len);
	name[entry->name_len] = 0;
	message->entry = entry;
	message->attr = entry->attr;
	fd = copy.fd = pfs_crawl_openat(thread->fd, name, 0);
	if (fd >= 0)
		error = copy_file(&copy, &message->attr, &message->changed);
	if (fd >= 0)
		narrow(&message->attr, fd);
	message->readable = fd >= 0 && !error && !copy.failed;
	if (error == -ECANCELED) {
		free(message);
		return error;
	}
	if (!message->readable && !copy.failed)
		error = pfs_crawl_unreadable(thread, name, fd < 0 ? fd : error);
	if (error) {
		free(message);
		return error;
	}
	return pfs_crawl_send(thread->crawl, message);
}

int pfs_crawl_files(struct pfs_crawl_thread *thread, struct pfs_crawl_batch *batch)
{
	size_t i;

	for (i = 0; i < batch->n_entries; i++)
		if (S_ISREG(batch->entries[i].attr.st_mode) && batch->entries[i].attr.st_size > 0)
			PFS_TRY(crawl_file(thread, batch, &batch->entries[i]));
	return 0;
}
