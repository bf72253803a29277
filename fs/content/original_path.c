/* SPDX-License-Identifier: MIT */
/* The way to an original: each folder on it is checked once, and compared at every use. */
#include "fs/content/original_impl.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "meta/birthmark.h"

#define FOLDERS_OPEN 512		/* including those above the remembered ones */
/* after this time a later change certainly has another ctime */
#define SETTLED_NS   INT64_C(100000000)

/* ---- folders on the way ---- */

static void folder_unref(struct pfs_originals *originals, struct pfs_folder *folder)
{
	while (folder && atomic_fetch_sub(&folder->references, 1) == 1) {
		struct pfs_folder *parent = folder->parent;

		if (folder->fd >= 0)
			(void)close(folder->fd);
		free(folder);
		(void)atomic_fetch_sub(&originals->n_open, 1);
		folder = parent;
	}
}

static struct pfs_folder *folder_ref(struct pfs_folder *folder)
{
	(void)atomic_fetch_add(&folder->references, 1);
	return folder;
}

static struct pfs_folder **place_of(struct pfs_originals *originals, uint32_t root,
				    const char *path, size_t len)
{
	uint64_t hash = root * UINT64_C(0x9e3779b97f4a7c15);
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	return &originals->kept[(hash ^ hash >> 32) % PFS_FOLDERS_KEPT];
}

/* Returns a folder that was checked before, with a reference; NULL: there is none. */
static struct pfs_folder *recall(struct pfs_originals *originals, uint32_t root, const char *path,
				 size_t len)
{
	PFS_LOCKED(&originals->mutex);
	struct pfs_folder *kept = *place_of(originals, root, path, len);

	if (!kept || kept->root != root || kept->path_len != len ||
	    memcmp(kept->path, path, len) != 0)
		return NULL;
	return folder_ref(kept);
}

static void keep(struct pfs_originals *originals, struct pfs_folder *folder)
{
	struct pfs_folder **place, *before;

	if (!folder->settled)
		return;
	if (atomic_load(&originals->n_open) > FOLDERS_OPEN)
		pfs_originals_shrink(originals);
	(void)pthread_mutex_lock(&originals->mutex);
	place = place_of(originals, folder->root, folder->path, folder->path_len);
	before = *place;
	*place = folder_ref(folder);
	(void)pthread_mutex_unlock(&originals->mutex);
	folder_unref(originals, before);
}

void pfs_originals_shrink(struct pfs_originals *originals)
{
	struct pfs_folder *before;
	size_t i;

	for (i = 0; i < PFS_FOLDERS_KEPT; i++) {
		(void)pthread_mutex_lock(&originals->mutex);
		before = originals->kept[i];
		originals->kept[i] = NULL;
		(void)pthread_mutex_unlock(&originals->mutex);
		folder_unref(originals, before);
	}
}

/* Returns true if nothing has happened to the folder since it was checked. */
static bool is_current(const struct pfs_folder *folder)
{
	struct stat st;

	return folder->settled && !fstat(folder->fd, &st) &&
	       st.st_ctim.tv_sec == folder->ctime.tv_sec &&
	       st.st_ctim.tv_nsec == folder->ctime.tv_nsec;
}

/* Returns true if that is so for the folder and all above it. */
static bool is_all_current(const struct pfs_folder *folder)
{
	while (folder && is_current(folder))
		folder = folder->parent;
	return !folder;
}

/* Timestamps are as coarse as the clock that the kernel looks at for them, some milliseconds. */
static bool is_settled(const struct timespec *ctime)
{
	return pfs_clock_ns(CLOCK_REALTIME) - pfs_timespec_ns(*ctime) > SETTLED_NS;
}

/* Gets the store's record of the folder. -ENOENT: there is none. */
static int get_record(struct pfs_originals *originals, struct pfs_source_dir *out,
		      const struct pfs_origin_root *root, const char *path, size_t len)
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

static bool same_rights(const struct pfs_rights *a, const struct pfs_rights *b)
{
	return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

/* -ESTALE: it is not the folder that import saw, and it is another user's or gives more rights. */
static int compare_folder(const struct pfs_origin_root *root, struct pfs_folder *folder,
			  const struct pfs_source_dir *record, const struct stat *st)
{
	struct pfs_birthmark mark;
	const struct pfs_file_identity is = {pfs_lasting_dev(root, st->st_dev), st->st_ino, &mark};
	const struct pfs_file_identity was = {record->dev, record->ino, &record->mark};
	const struct pfs_rights then = {record->mode, record->uid, record->gid};
	const struct pfs_rights now = {pfs_granted_mode(folder->fd, st->st_mode), st->st_uid,
				       st->st_gid};

	pfs_birthmark_of(&mark, folder->fd);
	if (!pfs_same_file(root, &is, &was) &&
	    (now.uid != then.uid || now.mode & ~then.mode & ACCESSPERMS))
		return -ESTALE;
	if (same_rights(&then, &now))
		return 0;
	if (folder->n_lost < PFS_COUNT(folder->lost))
		folder->lost[folder->n_lost] = (struct pfs_lost){then, now};
	folder->n_lost++;
	return 0;
}

/* Checks the folder and fills in what is known of it. Those above it have been checked. */
static int check_folder(struct pfs_originals *originals, struct pfs_folder *folder,
			const struct pfs_origin_root *root)
{
	struct pfs_source_dir record;
	struct stat st;
	int error;

	if (fstat(folder->fd, &st))
		return -errno;
	folder->ctime = st.st_ctim;
	folder->settled = folder->settled && is_settled(&st.st_ctim);
	error = get_record(originals, &record, root, folder->path, folder->path_len);
	if (!error)
		return compare_folder(root, folder, &record, &st);
	folder->recorded = false;
	if (error != -ENOENT)
		return error;
	return st.st_uid == geteuid() ? 0 : -ESTALE;
}

/* Takes over the reference to the parent (NULL: the root) and the descriptor, on failure too. */
static int make_folder(struct pfs_originals *originals, struct pfs_folder **out,
		       const struct pfs_origin_root *root, struct pfs_folder *parent,
		       const char *path, size_t len, int fd)
{
	struct pfs_folder *folder = malloc(sizeof(*folder) + len + 1);
	int error;

	*out = NULL;
	if (!folder) {
		(void)close(fd);
		folder_unref(originals, parent);
		return -ENOMEM;
	}
	*folder = (struct pfs_folder){.settled = true, .recorded = true};
	if (parent) {
		folder->settled = parent->settled;
		folder->recorded = parent->recorded;
		folder->n_lost = parent->n_lost;
		(void)memcpy(folder->lost, parent->lost, sizeof(folder->lost));
	}
	atomic_init(&folder->references, 1);
	(void)atomic_fetch_add(&originals->n_open, 1);
	folder->parent = parent;
	folder->fd = fd;
	folder->root = root->stored.id;
	folder->path_len = len;
	(void)memcpy(folder->path, path, len);
	folder->path[len] = '\0';
	error = check_folder(originals, folder, root);
	if (error) {
		folder_unref(originals, folder);
		return error;
	}
	keep(originals, folder);
	*out = folder;
	return 0;
}

/* Returns the bits of a file's mode that belong to users who may pass the folder. */
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

mode_t pfs_lost_on(const struct pfs_folder *folder, const struct stat *file)
{
	mode_t lost = 0;
	unsigned i;

	for (i = 0; i < folder->n_lost && i < PFS_COUNT(folder->lost); i++)
		lost |= passing(&folder->lost[i].then, file) & ~passing(&folder->lost[i].now, file);
	return folder->n_lost > PFS_COUNT(folder->lost) ? ACCESSPERMS : lost;
}

/* ---- the way ---- */

int pfs_way_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP: /* a symlink that was not there before */
	case ENAMETOOLONG:
		return -ESTALE;
	default:
		return -error;
	}
}

/* Opens a folder's entry. It follows no symlink, and refuses names that lead up. */
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
	return fd < 0 ? pfs_way_error(errno) : fd;
}

/* Goes from the parent to the folder of that path; parent NULL: to the root folder. The reference
 * to the parent is taken over. */
static int go_down(struct pfs_originals *originals, struct pfs_folder **out,
		   const struct pfs_origin_root *root, struct pfs_folder *parent, const char *path,
		   size_t len)
{
	struct pfs_folder *kept = recall(originals, root->stored.id, path, len);
	const char *slash = memrchr(path, '/', len), *name = slash ? slash + 1 : path;
	int fd;

	if (kept && kept->parent == parent && is_current(kept)) {
		folder_unref(originals, parent); /* kept has one of its own */
		*out = kept;
		return 0;
	}
	folder_unref(originals, kept);
	fd = parent ? step(parent->fd, name, (size_t)(path + len - name))
		    : fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		fd = parent ? fd : -errno;
		folder_unref(originals, parent);
		*out = NULL;
		return fd;
	}
	return make_folder(originals, out, root, parent, path, len, fd);
}

/* Goes from the root folder down to the folder of that path. */
static int walk(struct pfs_originals *originals, struct pfs_folder **out,
		const struct pfs_origin_root *root, const char *path, size_t len)
{
	size_t at = 0;
	int error = go_down(originals, out, root, NULL, path, 0);

	while (!error && at < len) {
		at += 1 + strcspn(path + at + 1, "/");
		error = go_down(originals, out, root, *out, path, PFS_MIN(at, len));
	}
	return error;
}

int pfs_way_open(struct pfs_originals *originals, struct pfs_way *way,
		 const struct pfs_source_record *record)
{
	const struct pfs_origin_root *root = pfs_origin_find(originals, record->root);
	const char *path = record->path, *last = strrchr(path, '/');
	size_t len = last ? (size_t)(last - path) : 0;
	struct pfs_folder *folder;

	*way = (struct pfs_way){.fd = -1};
	if (!root || root->fd < 0 || (last && !len))
		return -ESTALE;
	folder = recall(originals, record->root, path, len);
	if (!folder || !is_all_current(folder)) {
		folder_unref(originals, folder);
		PFS_TRY(walk(originals, &folder, root, path, len));
	}
	assert(folder);
	way->folder = folder;
	way->fd = folder->fd;
	way->name = last ? last + 1 : path;
	return 0;
}

void pfs_way_close(struct pfs_originals *originals, struct pfs_way *way)
{
	folder_unref(originals, way->folder);
	*way = (struct pfs_way){.fd = -1};
}
