/* SPDX-License-Identifier: MIT */
/* One directory: its entries with their attributes. */
#include "tools/import/crawl_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/acl.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/content/filesystem.h"
#include "meta/birthmark.h"
#include "tools/cmd.h"

#define BATCH_ENTRIES 1024
#define BATCH_BYTES   ((size_t)256 << 10)
#define USUAL_LIST_SIZE ((size_t)256)
#define SETTLED_SECONDS 2
#define TICKS		3 /* of the clock */
#define NSEC		UINT64_C(1000000000)
#define COARSE_NS	1000000 /* times that are multiples of it may be of a filesystem that keeps no more */
#define XFS_MAGIC	0x58465342
#define F2FS_MAGIC	0xF2F52010
#define ZFS_MAGIC	0x2FC12FC1

/* ---- what is noted of an entry ---- */

static void take_stat(struct stat *out, const struct statx *from)
{
	*out = (struct stat){
		.st_dev = makedev(from->stx_dev_major, from->stx_dev_minor),
		.st_ino = from->stx_ino,
		.st_mode = from->stx_mode,
		.st_nlink = from->stx_nlink,
		.st_uid = from->stx_uid,
		.st_gid = from->stx_gid,
		.st_rdev = makedev(from->stx_rdev_major, from->stx_rdev_minor),
		.st_size = (off_t)from->stx_size,
		.st_blocks = (blkcnt_t)from->stx_blocks,
		.st_atim = {from->stx_atime.tv_sec, from->stx_atime.tv_nsec},
		.st_mtim = {from->stx_mtime.tv_sec, from->stx_mtime.tv_nsec},
		.st_ctim = {from->stx_ctime.tv_sec, from->stx_ctime.tv_nsec},
	};
}

static int keep(struct pfs_crawl_batch *batch, const void *bytes, size_t len)
{
	PFS_TRY(pfs_grow(&batch->bytes, &batch->bytes_capacity, batch->n_bytes + len + 1, 1));
	if (len)
		(void)memcpy(batch->bytes + batch->n_bytes, bytes, len);
	batch->n_bytes += len;
	return 0;
}

static ssize_t get_value(struct pfs_crawl_thread *thread, const char *entry, const char *name)
{
	if (!*entry) /* the directory itself */
		return fgetxattr(thread->fd, name, thread->value, sizeof(thread->value));
	return lgetxattr(entry, name, thread->value, sizeof(thread->value));
}

static ssize_t get_list_of(struct pfs_crawl_thread *thread, const char *entry, size_t size)
{
	if (!*entry)
		return flistxattr(thread->fd, thread->list, size);
	return llistxattr(entry, thread->list, size);
}

/* The kernel takes as much memory as there is room for, each time: most lists are short, and after
 * an empty one only the size of the next is asked for. */
static ssize_t get_list(struct pfs_crawl_thread *thread, const char *entry)
{
	ssize_t size = thread->lists ? 1 : get_list_of(thread, entry, 0);

	if (size > 0)
		size = get_list_of(thread, entry, USUAL_LIST_SIZE);
	if (size < 0 && errno == ERANGE)
		size = get_list_of(thread, entry, sizeof(thread->list));
	thread->lists = size > 0;
	return size;
}

/* Returns the descriptor that the names of entries count from: a working directory is found with
 * less effort than a descriptor that threads share. */
static int entries_from(struct pfs_crawl_thread *thread)
{
	if (thread->own_cwd && !thread->at_cwd)
		thread->at_cwd = fchdir(thread->fd) == 0;
	return thread->at_cwd ? AT_FDCWD : thread->fd;
}

/* The name by which the calls for attributes find an entry, which know no directory descriptor. */
static const char *name_for_attrs(struct pfs_crawl_thread *thread, char *buffer, size_t size,
				  const char *name)
{
	if (entries_from(thread) == AT_FDCWD)
		return name;
	(void)snprintf(buffer, size, "/proc/self/fd/%d/%s", thread->fd, name);
	return buffer;
}

/* Takes the mode that an ACL really grants. */
static void narrow(struct pfs_crawl_entry *entry, const void *acl, ssize_t size)
{
	uint32_t mode = pfs_acl_value_mode(entry->attr.st_mode, acl, size < 0 ? 0 : (size_t)size);

	entry->narrowed = mode != entry->attr.st_mode;
	entry->attr.st_mode = mode;
}

/* Narrows the mode of what may have an ACL but no other attributes, or so many that they are not
 * listed. Where group and others have nothing there is nothing to narrow. */
static void narrow_alone(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
			   const char *name)
{
	char buffer[PFS_NAME_MAX + 64];
	ssize_t size;

	if (!(entry->attr.st_mode & (S_IRWXG | S_IRWXO)))
		return;
	size = get_value(thread, name_for_attrs(thread, buffer, sizeof(buffer), name),
			 PFS_ACL_XATTR);
	if (size >= 0)
		narrow(entry, thread->value, size);
}

/* An attribute user.*, but for those that primefs computes. */
static int keep_attr(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		     const char *path, const char *name)
{
	struct pfs_crawl_batch *batch = thread->batch;
	ssize_t size;
	size_t lens[2];

	if (strncmp(name, "user.", 5) != 0 || strncmp(name, "user.primefs.", 13) == 0 || !name[5])
		return 0;
	size = get_value(thread, path, name);
	if (size < 0)
		return 0; /* it has just gone */
	lens[0] = strlen(name + 5);
	lens[1] = (size_t)size;
	PFS_TRY(keep(batch, lens, sizeof(lens)));
	PFS_TRY(keep(batch, name + 5, lens[0]));
	PFS_TRY(keep(batch, thread->value, lens[1]));
	entry->n_attrs++;
	return 0;
}

/* There is no list of the attributes, for such an error: it may be longer than the kernel gives. */
static int keep_no_list(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
			const char *name, int error)
{
	narrow_alone(thread, entry, name);
	if (error != E2BIG && error != EIO)
		return 0;
	return pfs_crawl_problem(thread, *name ? name : NULL,
				 error == E2BIG ? "its attributes are too many to be listed"
						: strerror(error));
}

/* The attributes, and what an ACL makes of the mode. */
static int keep_attrs(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		      const char *name)
{
	char buffer[PFS_NAME_MAX + 64];
	const char *path, *at;
	ssize_t size;

	if (thread->without_attrs && entry->attr.st_dev == thread->without_attrs)
		return 0;
	path = *name ? name_for_attrs(thread, buffer, sizeof(buffer), name) : name;
	size = get_list(thread, path);
	if (size < 0 && errno == EOPNOTSUPP)
		thread->without_attrs = entry->attr.st_dev;
	else if (size < 0)
		PFS_TRY(keep_no_list(thread, entry, name, errno));
	entry->attrs = (uint32_t)thread->batch->n_bytes;
	for (at = thread->list; size > 0 && at < thread->list + size; at += strlen(at) + 1) {
		if (strcmp(at, PFS_ACL_XATTR) == 0)
			narrow(entry, thread->value, get_value(thread, path, at));
		else
			PFS_TRY(keep_attr(thread, entry, path, at));
	}
	return 0;
}

static int keep_target(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		       const char *name)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(thread->fd, name, target, sizeof(target));

	/* 0: nothing to point to; the kernel's own limit is PFS_TARGET_MAX */
	if (len <= 0 || len > PFS_TARGET_MAX)
		return len < 0 ? -errno : -EINVAL;
	entry->target = (uint32_t)thread->batch->n_bytes;
	entry->target_len = (uint16_t)len;
	return keep(thread->batch, target, (size_t)len);
}

static uint64_t ns_of(struct timespec time)
{
	return (uint64_t)time.tv_sec * NSEC + (uint64_t)time.tv_nsec;
}

/* Returns true if the filesystem stamps changes with this machine's coarse clock, as finely as that
 * goes. */
static bool stamps_by_our_clock(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case F2FS_MAGIC:
	case ZFS_MAGIC:
	case OVERLAYFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

static uint64_t tick_ns(void)
{
	struct timespec tick;

	return clock_getres(CLOCK_REALTIME_COARSE, &tick) ? NSEC : ns_of(tick);
}

/* What happens from now on shows in the directory's times: they are older than the clock's last
 * ticks, or, where they may be coarser than the clock or of another one, than two seconds. */
static bool is_settled(const struct pfs_crawl *crawl, const struct stat *attr)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (crawl->is_exact && attr->st_dev == crawl->dev && attr->st_ctim.tv_nsec % COARSE_NS)
		return ns_of(attr->st_ctim) + tick_ns() < ns_of(now);
	return attr->st_mtim.tv_sec < now.tv_sec - SETTLED_SECONDS &&
	       attr->st_ctim.tv_sec < now.tv_sec - SETTLED_SECONDS;
}

/* A directory that is to be read in its turn. */
static int keep_dir(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		    const char *name)
{
	const struct pfs_crawl_dir *above = thread->dir;
	size_t above_len = above ? above->path_len : 0;
	size_t len = above_len + (above_len > 0) + entry->name_len;
	struct pfs_crawl_dir *dir = malloc(sizeof(*dir) + len + 1);

	if (!dir)
		return -ENOMEM;
	*dir = (struct pfs_crawl_dir){
		.next = thread->own,
		.dev = entry->attr.st_dev,
		.ino = entry->attr.st_ino,
		.ignore = thread->ignore,
		.path_len = len,
	};
	if (above_len) {
		(void)memcpy(dir->path, above->path, above_len);
		dir->path[above_len] = '/';
	}
	(void)memcpy(dir->path + len - entry->name_len, name, entry->name_len + 1u);
	entry->dir = thread->own = dir;
	entry->settled = is_settled(thread->crawl, &entry->attr);
	return 0;
}

/* Called for what is mounted and going to be read; that tells if it cannot be opened. */
static int find_filesystem(const struct pfs_crawl_thread *thread, uint64_t *filesystem,
			   const char *name)
{
	int fd = pfs_crawl_openat(thread->fd, name, O_DIRECTORY);

	if (fd < 0)
		return pfs_crawl_is_own(fd) ? fd : 0;
	*filesystem = pfs_filesystem_of(fd);
	(void)close(fd);
	return 0;
}

static bool stays_out(const struct pfs_crawl *crawl, const struct pfs_crawl_entry *entry,
		      const struct statx *from)
{
	if (crawl->options.cross_mounts)
		return crawl->own && entry->attr.st_dev == crawl->own;
	if (crawl->mount_known && from->stx_mask & STATX_MNT_ID)
		return from->stx_mnt_id != crawl->mount;
	return entry->attr.st_dev != crawl->dev;
}

bool pfs_crawl_is_mounted_at(const struct statx *directory, int fd, dev_t root)
{
	struct stat above;

	if (directory->stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	    !pfs_crawl_is_mounted(directory, root))
		return false;
	return pfs_crawl_is_mounted(directory, fstatat(fd, "..", &above, 0) ? root : above.st_dev);
}

bool pfs_crawl_is_store(const struct pfs_crawl *crawl, const char *name)
{
	size_t len = strlen(crawl->store_name);

	return strncmp(name, crawl->store_name, len) == 0 &&
	       (!name[len] || pfs_cmd_is_store_suffix(name + len));
}

static int keep_mark(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		     const char *name, const struct statx *from)
{
	struct pfs_birthmark mark;

	pfs_birthmark_handle(&mark, thread->fd, name);
	entry->has_birth = from->stx_mask & STATX_BTIME;
	entry->birth = (struct pfs_time){from->stx_btime.tv_sec, from->stx_btime.tv_nsec};
	entry->handle = (uint32_t)thread->batch->n_bytes;
	entry->handle_len = mark.handle_len;
	return keep(thread->batch, mark.handle, mark.handle_len);
}

/* What statx does not tell of the entry. */
static int keep_rest(struct pfs_crawl_thread *thread, struct pfs_crawl_entry *entry,
		     const char *name, const struct statx *from)
{
	if (S_ISREG(from->stx_mode) || S_ISDIR(from->stx_mode))
		PFS_TRY(keep_attrs(thread, entry, name));
	else if (!S_ISLNK(from->stx_mode))
		narrow_alone(thread, entry, name);
	return thread->crawl->options.marks ? keep_mark(thread, entry, name, from) : 0;
}

int pfs_crawl_keep(struct pfs_crawl_thread *thread, const char *name, const struct statx *from)
{
	struct pfs_crawl_batch *batch = thread->batch;
	struct pfs_crawl_entry *entry;
	int error;

	PFS_TRY(pfs_grow(&batch->entries, &batch->entries_capacity, batch->n_entries + 1,
			 sizeof(*batch->entries)));
	entry = &batch->entries[batch->n_entries];
	*entry = (struct pfs_crawl_entry){
		.parent = thread->dir,
		.name = (uint32_t)batch->n_bytes,
		.name_len = (uint8_t)strlen(name),
	};
	PFS_TRY(keep(batch, name, entry->name_len));
	take_stat(&entry->attr, from);
	entry->mounted = S_ISDIR(from->stx_mode) && thread->dir &&
			 pfs_crawl_is_mounted(from, thread->dir->dev);
	if (S_ISLNK(from->stx_mode)) {
		error = keep_target(thread, entry, name);
		if (error)
			return pfs_crawl_unreadable(thread, name, error);
	}
	PFS_TRY(keep_rest(thread, entry, name, from));
	if (S_ISDIR(from->stx_mode) && !stays_out(thread->crawl, entry, from))
		PFS_TRY(keep_dir(thread, entry, name));
	if (entry->mounted && entry->dir && thread->crawl->options.marks)
		PFS_TRY(find_filesystem(thread, &entry->filesystem, name));
	batch->has_files |=
		thread->crawl->options.content && S_ISREG(from->stx_mode) && from->stx_size > 0;
	batch->n_entries++;
	return 0;
}

/* ---- batches ---- */

void pfs_crawl_free_dirs(struct pfs_crawl_dir *list)
{
	while (list) {
		struct pfs_crawl_dir *dir = list;

		list = dir->next;
		free(dir);
	}
}

void pfs_crawl_free_batch(struct pfs_crawl_batch *batch)
{
	if (!batch)
		return;
	pfs_crawl_free_dirs(batch->done);
	free(batch->entries);
	free(batch->bytes);
	free(batch);
}

static void leave_dirs(struct pfs_crawl *crawl, struct pfs_crawl_dir *list)
{
	while (list) {
		struct pfs_crawl_dir *dir = list;

		list = dir->next;
		dir->next = crawl->done;
		crawl->done = dir;
	}
}

void pfs_crawl_drop(struct pfs_crawl_thread *thread)
{
	struct pfs_crawl *crawl = thread->crawl;

	pfs_crawl_free_batch(thread->batch);
	/* the reader may be looking at these: they live as long as the crawl */
	(void)pthread_mutex_lock(&crawl->mutex);
	leave_dirs(crawl, thread->own);
	leave_dirs(crawl, thread->done);
	(void)pthread_mutex_unlock(&crawl->mutex);
}

int pfs_crawl_need_batch(struct pfs_crawl_thread *thread)
{
	if (!thread->batch)
		thread->batch = calloc(1, sizeof(*thread->batch));
	return thread->batch ? 0 : -ENOMEM;
}

static int send_batch(struct pfs_crawl_thread *thread)
{
	struct pfs_crawl_batch *batch = thread->batch;
	struct pfs_crawl_message *entries = pfs_crawl_message_create(PFS_CRAWL_ENTRIES, batch, 0);
	struct pfs_crawl_message *end = pfs_crawl_message_create(PFS_CRAWL_END, batch, 0);
	int error, sent;

	if (!entries || !end) {
		free(entries);
		free(end);
		return -ENOMEM; /* the batch stays the thread's */
	}
	thread->batch = NULL;
	batch->done = thread->done;
	thread->done = NULL;
	thread->done_bytes = 0;
	error = pfs_crawl_send(thread->crawl, entries);
	/* the reader frees the batch when it gets to its end, not before */
	if (!error && batch->has_files)
		error = pfs_crawl_files(thread, batch);
	sent = pfs_crawl_send(thread->crawl, end);
	return error ? error : sent;
}

static void publish(struct pfs_crawl_thread *thread)
{
	struct pfs_crawl *crawl = thread->crawl;
	struct pfs_crawl_dir *last = thread->own;

	if (!last)
		return;
	while (last->next)
		last = last->next;
	(void)pthread_mutex_lock(&crawl->mutex);
	last->next = crawl->stack;
	crawl->stack = thread->own;
	(void)pthread_cond_broadcast(&crawl->work);
	(void)pthread_mutex_unlock(&crawl->mutex);
	thread->own = NULL;
}

int pfs_crawl_flush(struct pfs_crawl_thread *thread)
{
	if (thread->batch)
		PFS_TRY(send_batch(thread));
	publish(thread); /* the reader knows them now */
	return 0;
}

/* ---- reading ---- */

static int take_entry(struct pfs_crawl_thread *thread, const char *name, bool store_here)
{
	struct statx from;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    (store_here && pfs_crawl_is_store(thread->crawl, name)))
		return 0;
	if (strlen(name) > PFS_NAME_MAX) /* some filesystems count characters */
		return pfs_crawl_problem(thread, name, "a name is longer than 255 bytes");
	if (statx(entries_from(thread), name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  PFS_CRAWL_STATX, &from) < 0)
		return errno == ENOENT ? pfs_crawl_problem(thread, name,
							   "vanished while it was imported")
				       : pfs_crawl_unreadable(thread, name, -errno);
	if (pfs_crawl_leaves_out(thread, name, S_ISDIR(from.stx_mode)))
		return 0;
	PFS_TRY(pfs_crawl_need_batch(thread));
	PFS_TRY(pfs_crawl_keep(thread, name, &from));
	if (thread->batch->n_entries < BATCH_ENTRIES && thread->batch->n_bytes < BATCH_BYTES)
		return 0;
	return send_batch(thread);
}

static int read_entries(struct pfs_crawl_thread *thread)
{
	const struct pfs_crawl *crawl = thread->crawl;
	bool store_here = crawl->store_name && thread->dir->dev == crawl->store_dev &&
			  thread->dir->ino == crawl->store_ino;
	ssize_t size, at;

	for (;;) {
		size = getdents64(thread->fd, thread->entries, sizeof(thread->entries));
		if (size < 0)
			return pfs_crawl_unlisted(thread, -errno);
		if (size == 0)
			break;
		for (at = 0; at < size;) {
			const struct dirent64 *entry = (const void *)(thread->entries + at);

			PFS_TRY(take_entry(thread, entry->d_name, store_here));
			at += entry->d_reclen;
		}
	}
	/* files are read while their directory is open */
	return thread->batch && thread->batch->has_files ? send_batch(thread) : 0;
}

int pfs_crawl_directory(struct pfs_crawl_thread *thread)
{
	int error;

	thread->fd = pfs_crawl_open_dir(thread, thread->dir);
	if (thread->fd < 0)
		return pfs_crawl_unlisted(thread, thread->fd);
	thread->at_cwd = false;
	thread->without_attrs = 0;
	error = pfs_crawl_read_rules(thread, thread->dir->ignore);
	if (!error)
		error = read_entries(thread);
	pfs_crawl_leave_dir(thread, thread->dir);
	return error;
}

int pfs_crawl_know_root(struct pfs_crawl *crawl, struct statx *from)
{
	if (statx(crawl->root, "", AT_EMPTY_PATH, PFS_CRAWL_STATX, from) < 0)
		return -errno;
	crawl->dev = makedev(from->stx_dev_major, from->stx_dev_minor);
	crawl->mount_known = from->stx_mask & STATX_MNT_ID;
	crawl->mount = from->stx_mnt_id;
	crawl->is_exact = stamps_by_our_clock(crawl->root);
	return 0;
}

/* Where anybody will ask, what changed before the crawl began is to be told by its times from what
 * changes while it runs. */
static void let_clock_tick(const struct pfs_crawl *crawl)
{
	const struct timespec ticks = {.tv_nsec = (long)(TICKS * tick_ns() % NSEC)};

	if (crawl->is_exact && crawl->options.marks)
		(void)nanosleep(&ticks, NULL);
}

int pfs_crawl_root(struct pfs_crawl *crawl)
{
	struct pfs_crawl_thread *thread PFS_FREE = calloc(1, sizeof(*thread));
	struct statx from;
	int error;

	if (!thread)
		return -ENOMEM;
	PFS_TRY(pfs_crawl_know_root(crawl, &from));
	let_clock_tick(crawl);
	thread->crawl = crawl;
	thread->fd = crawl->root;
	error = pfs_crawl_need_batch(thread);
	if (!error)
		error = pfs_crawl_keep(thread, "", &from);
	if (!error)
		error = pfs_crawl_flush(thread);
	pfs_crawl_drop(thread);
	return error;
}
