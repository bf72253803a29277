/* SPDX-License-Identifier: MIT */
#include "fs/tree/original.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/acl.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "meta/birthmark.h"

#define FOLDERS_MAX 4096 /* checked ones that are remembered */

struct root {
	struct pfs_source_root stored; /* without the path */
	int fd;			       /* O_PATH; -1: gone or replaced */
	dev_t dev;		       /* today's */
};

/* A folder that has been checked. */
struct folder {
	uint32_t root;
	size_t path_len; /* 0: the root itself */
	char *path;	 /* NULL: an empty place in the table */
	dev_t dev;
	ino_t ino;
	struct timespec ctime;
	bool recorded;
	struct pfs_rights then, now;
};

struct pfs_originals {
	struct pfs_store *store;
	struct root *roots;
	size_t n_roots, capacity;
	pthread_mutex_t mutex;
	struct folder folders[FOLDERS_MAX]; /* protected by mutex; by the hash of root and path */
};

/* ---- roots ---- */

/* The folder's path leads there without a symlink. */
static bool leads_straight(const char *path, const struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd PFS_CLOSE = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct stat found;

	return fd >= 0 && !fstat(fd, &found) && found.st_dev == st->st_dev &&
	       found.st_ino == st->st_ino;
}

/* The folder that was imported.  The number of its device may be another one when the machine has
 * started again: most filesystems without a device of their own take the next that is free.  Then
 * it has to lie where it lay and to be root's mount: nobody else can have put it there. */
static bool is_root(int fd, dev_t *dev, const struct pfs_source_root *stored)
{
	struct pfs_birthmark mark;
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*dev = st.st_dev;
	pfs_birthmark_of(&mark, fd);
	if (!pfs_birthmark_same(&mark, &stored->mark) ||
	    (st.st_ino != stored->ino && !(mark.handle_len && stored->mark.handle_len)))
		return false;
	return st.st_dev == stored->dev || (!fstatfs(fd, &fs) && fs.f_type != FUSE_SUPER_MAGIC &&
					    leads_straight(stored->path, &st));
}

static int add_root(void *arg, const struct pfs_source_root *stored)
{
	struct pfs_originals *originals = arg;
	struct root root = {.stored = *stored};
	int error;

	error = pfs_grow(&originals->roots, &originals->capacity, originals->n_roots + 1,
			 sizeof(root));
	if (error)
		return error;
	root.stored.path = NULL; /* lasts only as long as this call */
	root.fd = open(stored->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root.fd >= 0 && !is_root(root.fd, &root.dev, stored)) {
		(void)close(root.fd);
		root.fd = -1;
	}
	if (root.fd < 0)
		pfs_warning("%s: no longer the folder that was imported; files that are linked to "
			    "it cannot be read: bring it back and mount again",
			    stored->path);
	originals->roots[originals->n_roots++] = root;
	return 0;
}

static const struct root *find_root(const struct pfs_originals *originals, uint32_t id)
{
	size_t i;

	for (i = 0; i < originals->n_roots; i++)
		if (originals->roots[i].stored.id == id)
			return &originals->roots[i];
	return NULL;
}

size_t pfs_originals_roots(const struct pfs_originals *originals)
{
	return originals->n_roots;
}

int pfs_originals_create(struct pfs_originals **out, struct pfs_store *store)
{
	struct pfs_originals *originals = calloc(1, sizeof(*originals));
	int error;

	*out = NULL;
	if (!originals)
		return -ENOMEM;
	originals->store = store;
	(void)pthread_mutex_init(&originals->mutex, NULL);
	error = pfs_store_scan_source_roots(store, add_root, originals);
	if (error)
		pfs_originals_destroy(originals);
	else
		*out = originals;
	return error;
}

void pfs_originals_destroy(struct pfs_originals *originals)
{
	size_t i;

	if (!originals)
		return;
	for (i = 0; i < originals->n_roots; i++)
		if (originals->roots[i].fd >= 0)
			(void)close(originals->roots[i].fd);
	for (i = 0; i < FOLDERS_MAX; i++)
		free(originals->folders[i].path);
	(void)pthread_mutex_destroy(&originals->mutex);
	free(originals->roots);
	free(originals);
}

/* ---- what is known of a file, and what it is ---- */

/* The number of a device as it would be had the root's stayed as it was: the two change places. */
static dev_t lasting_dev(const struct root *root, dev_t dev)
{
	if (dev == root->dev)
		return root->stored.dev;
	return dev == root->stored.dev ? root->dev : dev;
}

struct known {
	uint64_t dev, ino;
	const struct pfs_birthmark *mark;
};

/* On the root's device or both on others; there a handle decides, else the number and the birth.  A
 * store of version 1 has no more than numbers. */
static bool same_file(const struct root *root, const struct known *a, const struct known *b)
{
	bool on_roots = a->dev == root->stored.dev;
	bool empty = pfs_birthmark_is_empty(a->mark) || pfs_birthmark_is_empty(b->mark);

	if (on_roots != (b->dev == root->stored.dev) || !pfs_birthmark_same(a->mark, b->mark))
		return false;
	if (a->mark->handle_len && b->mark->handle_len)
		return true;
	return a->ino == b->ino && (on_roots || !empty || a->dev == b->dev);
}

bool pfs_original_is(const struct pfs_originals *originals, const struct pfs_original *original,
		     const struct pfs_source_record *record)
{
	const struct root *root = find_root(originals, record->root);
	const struct known now = {original->st.st_dev, original->st.st_ino, &original->mark};
	const struct known then = {record->dev, record->ino, &record->mark};

	return root && same_file(root, &now, &then);
}

/* A descriptor that is O_PATH has no attributes but by its name. */
static mode_t granted_mode(int fd, mode_t mode)
{
	char name[40], acl[1024];
	ssize_t size;

	if (!(mode & S_IRWXG))
		return mode; /* an ACL's mask, if there is one, lets nobody in */
	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	size = getxattr(name, PFS_ACL_XATTR, acl, sizeof(acl));
	if (size >= 0)
		return pfs_acl_mode(mode, acl, (size_t)size);
	/* of an ACL that is longer, or that cannot be read, nobody gets anything */
	return errno == ENODATA || errno == EOPNOTSUPP ? mode : pfs_acl_mode(mode, NULL, 0);
}

/* ---- folders on the way ---- */

static struct folder *place_of(struct pfs_originals *originals, uint32_t root, const char *path,
			       size_t len)
{
	uint64_t hash = root * UINT64_C(0x9e3779b97f4a7c15);
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	return &originals->folders[(hash ^ hash >> 32) % FOLDERS_MAX];
}

static bool same_state(const struct folder *folder, const struct stat *st)
{
	return folder->dev == st->st_dev && folder->ino == st->st_ino &&
	       folder->ctime.tv_sec == st->st_ctim.tv_sec &&
	       folder->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

/* Whether the folder has been checked as it is; then *out is what was found, without the path. */
static bool recall(struct pfs_originals *originals, struct folder *out, const struct stat *st,
		   const char *path)
{
	PFS_LOCKED(&originals->mutex);
	const struct folder *place = place_of(originals, out->root, path, out->path_len);

	if (!place->path || place->root != out->root || place->path_len != out->path_len ||
	    memcmp(place->path, path, out->path_len) != 0 || !same_state(place, st))
		return false;
	*out = *place;
	return true;
}

static void remember(struct pfs_originals *originals, const struct folder *folder, const char *path)
{
	char *copy = malloc(folder->path_len + 1);
	struct folder *place;

	if (!copy)
		return;
	(void)memcpy(copy, path, folder->path_len);
	PFS_LOCKED(&originals->mutex);
	place = place_of(originals, folder->root, path, folder->path_len);
	free(place->path);
	*place = *folder;
	place->path = copy;
}

/* What the store says of the folder; -ENOENT: nothing. */
static int get_record(struct pfs_originals *originals, struct pfs_source_dir *out,
		      const struct root *root, const char *path, size_t len)
{
	const struct pfs_source_root *stored = &root->stored;

	if (len)
		return pfs_store_get_source_dir(originals->store, out, stored->id, path, len);
	if (!stored->has_rights)
		return -ENOENT;
	*out = (struct pfs_source_dir){.dev = stored->dev,
				       .ino = stored->ino,
				       .mark = stored->mark,
				       .mode = stored->mode,
				       .uid = stored->uid,
				       .gid = stored->gid};
	return 0;
}

/* -ESTALE: not the folder that import saw, and another's or wider open. */
static int compare_folder(const struct root *root, struct folder *folder,
			  const struct pfs_source_dir *record, int fd)
{
	struct pfs_birthmark mark;
	const struct known now = {lasting_dev(root, folder->dev), folder->ino, &mark};
	const struct known then = {record->dev, record->ino, &record->mark};

	pfs_birthmark_of(&mark, fd);
	folder->recorded = true;
	folder->then = (struct pfs_rights){record->mode, record->uid, record->gid};
	if (same_file(root, &now, &then))
		return 0;
	return folder->now.uid == record->uid && !(folder->now.mode & ~record->mode & ACCESSPERMS)
		       ? 0
		       : -ESTALE;
}

static int check_folder(struct pfs_originals *originals, struct folder *folder,
			const struct root *root, const char *path, int fd)
{
	struct pfs_source_dir record;
	struct stat st;
	int error;

	if (fstat(fd, &st))
		return -errno;
	if (recall(originals, folder, &st, path))
		return 0;
	folder->dev = st.st_dev;
	folder->ino = st.st_ino;
	folder->ctime = st.st_ctim;
	folder->now = (struct pfs_rights){granted_mode(fd, st.st_mode), st.st_uid, st.st_gid};
	error = get_record(originals, &record, root, path, folder->path_len);
	if (!error) {
		error = compare_folder(root, folder, &record, fd);
	} else if (error == -ENOENT) {
		error = st.st_uid == geteuid() ? 0 : -ESTALE;
		folder->recorded = false;
		folder->then = folder->now;
	}
	if (!error)
		remember(originals, folder, path);
	return error;
}

/* The bits of a file's mode whose holders may pass the folder. */
static mode_t passing(const struct pfs_rights *folder, const struct stat *file)
{
	mode_t all = 0;

	if (folder->mode & S_IXOTH)
		return ACCESSPERMS;
	if (folder->mode & S_IXGRP && folder->gid == file->st_gid)
		all |= S_IRWXU | S_IRWXG;
	if (folder->mode & S_IXUSR && folder->uid == file->st_uid)
		all |= S_IRWXU;
	return all;
}

/* What the folders on the way have taken from the file since the import. */
static mode_t lost_on(const struct pfs_way *way, const struct stat *file)
{
	mode_t lost = 0;
	unsigned i;

	for (i = 0; i < way->n_lost && i < PFS_COUNT(way->lost); i++)
		lost |= passing(&way->lost[i].then, file) & ~passing(&way->lost[i].now, file);
	return way->n_lost > PFS_COUNT(way->lost) ? ACCESSPERMS : lost;
}

static bool same_rights(const struct pfs_rights *a, const struct pfs_rights *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

static int pass_folder(struct pfs_originals *originals, struct pfs_way *way,
		       const struct root *root, const char *path, size_t len)
{
	struct folder folder = {.root = root->stored.id, .path_len = len};
	int error = check_folder(originals, &folder, root, path, way->fd);

	if (error)
		return error;
	way->recorded &= folder.recorded;
	if (same_rights(&folder.then, &folder.now))
		return 0;
	if (way->n_lost < PFS_COUNT(way->lost))
		way->lost[way->n_lost] = (struct pfs_lost){folder.then, folder.now};
	way->n_lost++;
	return 0;
}

/* ---- the way ---- */

static int way_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP: /* a symlink where there was none */
	case ENAMETOOLONG:
		return -ESTALE;
	default:
		return -error;
	}
}

/* A step down; no symlink is followed, and no name leads up. */
static int step(int dir, const char *name, size_t len)
{
	char part[NAME_MAX + 1];
	int fd;

	if (len == 0 || len > NAME_MAX || (len == 1 && name[0] == '.') ||
	    (len == 2 && name[0] == '.' && name[1] == '.'))
		return -ESTALE;
	(void)memcpy(part, name, len);
	part[len] = '\0';
	fd = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? way_error(errno) : fd;
}

int pfs_way_open(struct pfs_originals *originals, struct pfs_way *way,
		 const struct pfs_source_record *record)
{
	const struct root *root = find_root(originals, record->root);
	const char *path = record->path, *at = path, *slash;
	int error, next;

	*way = (struct pfs_way){.fd = -1, .recorded = true};
	if (!root || root->fd < 0)
		return -ESTALE;
	way->fd = root->fd;
	error = pass_folder(originals, way, root, path, 0);
	for (; !error && (slash = strchr(at, '/')) != NULL; at = slash + 1) {
		next = step(way->fd, at, (size_t)(slash - at));
		error = next < 0 ? next : 0;
		if (error)
			break;
		if (way->fd != root->fd)
			(void)close(way->fd);
		way->fd = next;
		error = pass_folder(originals, way, root, path, (size_t)(slash - path));
	}
	way->name = at;
	if (way->fd == root->fd) {
		way->fd = error ? -1 : fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
		if (!error && way->fd < 0)
			error = -errno;
	}
	if (error)
		pfs_way_close(way);
	return error;
}

void pfs_way_close(struct pfs_way *way)
{
	if (way->fd >= 0)
		(void)close(way->fd);
	way->fd = -1;
}

/* ---- the original ---- */

static struct timespec time_of(struct statx_timestamp time)
{
	return (struct timespec){.tv_sec = time.tv_sec, .tv_nsec = time.tv_nsec};
}

static int stat_original(struct pfs_original *out, int fd)
{
	struct statx from;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &from))
		return -errno;
	*out = (struct pfs_original){
		.st = {.st_dev = makedev(from.stx_dev_major, from.stx_dev_minor),
		       .st_ino = from.stx_ino,
		       .st_mode = from.stx_mode,
		       .st_uid = from.stx_uid,
		       .st_gid = from.stx_gid,
		       .st_size = (off_t)from.stx_size,
		       .st_blocks = (blkcnt_t)from.stx_blocks,
		       .st_atim = time_of(from.stx_atime),
		       .st_mtim = time_of(from.stx_mtime),
		       .st_ctim = time_of(from.stx_ctime)},
		.mark = {.has_birth = from.stx_mask & STATX_BTIME,
			 .birth = {from.stx_btime.tv_sec, from.stx_btime.tv_nsec}},
	};
	return S_ISREG(from.stx_mode) ? 0 : -ESTALE;
}

/* Nothing has happened to the file since the record was made, not even to its ACL: ctime tells. */
static bool is_untouched(const struct pfs_original *original,
			 const struct pfs_source_record *record)
{
	const struct pfs_birthmark *now = &original->mark, *then = &record->mark;

	return !pfs_birthmark_is_empty(then) && then->has_birth == now->has_birth &&
	       then->birth.sec == now->birth.sec && then->birth.nsec == now->birth.nsec &&
	       record->ino == original->st.st_ino && record->mode == original->st.st_mode &&
	       record->uid == original->st.st_uid && record->gid == original->st.st_gid &&
	       record->ctime.sec == original->st.st_ctim.tv_sec &&
	       record->ctime.nsec == (uint32_t)original->st.st_ctim.tv_nsec;
}

int pfs_original_see(struct pfs_originals *originals, const struct pfs_way *way,
		     struct pfs_original *out, const struct pfs_source_record *record, int fd)
{
	const struct root *root = find_root(originals, record->root);
	int error = root ? stat_original(out, fd) : -ESTALE;

	if (error)
		return error;
	if (!way->recorded && out->st.st_uid != geteuid())
		return -ESTALE;
	out->st.st_dev = lasting_dev(root, out->st.st_dev);
	if (is_untouched(out, record)) {
		out->mark = record->mark;
	} else {
		pfs_birthmark_handle(&out->mark, fd, "");
		out->st.st_mode = granted_mode(fd, out->st.st_mode);
	}
	out->st.st_mode &= ~lost_on(way, &out->st);
	return 0;
}

int pfs_original_look(struct pfs_originals *originals, const struct pfs_way *way,
		      struct pfs_original *out, const struct pfs_source_record *record)
{
	int fd PFS_CLOSE = openat(way->fd, way->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? way_error(errno) : pfs_original_see(originals, way, out, record, fd);
}
