/* SPDX-License-Identifier: MIT */
/* Originals: the roots, and the files at the end of a way. */
#include "fs/content/original_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- roots ---- */

/* Returns true if the path leads to the folder without a symlink. */
static bool leads_straight(const char *path, const struct stat *st)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd PFS_CLOSE = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct stat found;

	return fd >= 0 && !fstat(fd, &found) && found.st_dev == st->st_dev &&
	       found.st_ino == st->st_ino;
}

/* Returns true if this is the folder that was imported, from the path. The number of its device may
 * differ after the machine has started again, since most filesystems without a device of their own
 * get the next free number. Then the folder must be at its former path, on a mount that root has
 * made: nobody else can have put it there. */
static bool is_root(int fd, dev_t *dev, const struct pfs_source_root *stored, const char *path)
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
	return st.st_dev == stored->dev ||
	       (!fstatfs(fd, &fs) && fs.f_type != FUSE_SUPER_MAGIC && leads_straight(path, &st));
}

/* Opens the folder at the path, which is the root's; -ESTALE: it is another one. */
static int open_root(int *fd, dev_t *dev, const struct pfs_source_root *stored, const char *path)
{
	*fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? -ESTALE : -errno;
	if (is_root(*fd, dev, stored, path))
		return 0;
	(void)close(*fd);
	*fd = -1;
	return -ESTALE;
}

static int add_root(void *arg, const struct pfs_source_root *stored)
{
	struct pfs_originals *originals = arg;
	struct pfs_origin_root *root;
	dev_t dev = 0;
	int fd;

	PFS_TRY(pfs_grow(&originals->roots, &originals->capacity, originals->n_roots + 1,
			 sizeof(*originals->roots)));
	root = &originals->roots[originals->n_roots++];
	root->stored = *stored;
	root->stored.path = NULL; /* it lasts only as long as this call */
	root->away = open_root(&fd, &dev, stored, stored->path) != 0;
	if (root->away)
		pfs_warning("%s: no longer the folder that was imported; files that are linked to "
			    "it cannot be read: bring it back, then refresh, or mount again",
			    stored->path);
	root->dev = dev;
	root->fd = fd;
	return 0;
}

/* Takes the folder over that has been opened: it was gone, or its filesystem is mounted anew. The
 * number of the descriptor stays: others may be about to use it. */
static int take_folder(struct pfs_originals *originals, struct pfs_origin_root *root, int *fd,
		       dev_t dev)
{
	PFS_LOCKED(&originals->mutex);

	if (root->fd >= 0 && dev != root->dev && dup3(*fd, root->fd, O_CLOEXEC) < 0)
		return -errno;
	root->dev = dev;
	if (root->fd < 0) {
		root->fd = *fd;
		*fd = -1;
	}
	return 0;
}

int pfs_originals_find_root(struct pfs_originals *originals, uint32_t id, const char *path)
{
	struct pfs_origin_root *root = (struct pfs_origin_root *)pfs_origin_find(originals, id);
	int fd PFS_CLOSE = -1;
	dev_t dev = 0, before;
	int error;

	if (!root)
		return -ENOENT;
	before = root->dev;
	error = open_root(&fd, &dev, &root->stored, path);
	if (!error)
		error = take_folder(originals, root, &fd, dev);
	if (error)
		root->away = true;
	else if (dev != before)
		pfs_originals_shrink(originals);
	return error;
}

void pfs_originals_set_followed(struct pfs_originals *originals, uint32_t id)
{
	struct pfs_origin_root *root = (struct pfs_origin_root *)pfs_origin_find(originals, id);

	if (root)
		root->away = false;
}

bool pfs_originals_is_away(const struct pfs_originals *originals, uint32_t id)
{
	const struct pfs_origin_root *root = pfs_origin_find(originals, id);

	return root && root->away;
}

const struct pfs_origin_root *pfs_origin_find(const struct pfs_originals *originals, uint32_t id)
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

void pfs_originals_root(const struct pfs_originals *originals, struct pfs_original_root *out,
			size_t i)
{
	const struct pfs_origin_root *root = &originals->roots[i];

	*out = (struct pfs_original_root){
		.id = root->stored.id,
		.stored_dev = root->stored.dev,
		.dev = root->dev,
		.fd = root->fd,
		.away = root->away,
		.has_rights = root->stored.has_rights,
	};
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
	pfs_originals_shrink(originals);
	(void)pthread_mutex_destroy(&originals->mutex);
	free(originals->roots);
	free(originals);
}

/* ---- what is known of a file, and what it is ---- */

dev_t pfs_lasting_dev(const struct pfs_origin_root *root, dev_t dev)
{
	if (dev == root->dev)
		return root->stored.dev;
	return dev == root->stored.dev ? root->dev : dev;
}

bool pfs_same_file(const struct pfs_origin_root *root, const struct pfs_file_identity *a,
		   const struct pfs_file_identity *b)
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
	const struct pfs_origin_root *root = pfs_origin_find(originals, record->root);
	const struct pfs_file_identity now = {original->st.st_dev, original->st.st_ino,
					      &original->mark};
	const struct pfs_file_identity then = {record->dev, record->ino, &record->mark};

	return root && pfs_same_file(root, &now, &then);
}

uint64_t pfs_original_number(const struct pfs_originals *originals,
			     const struct pfs_original *original,
			     const struct pfs_source_record *record)
{
	const struct pfs_origin_root *root = pfs_origin_find(originals, record->root);
	bool stays = root && record->dev != root->stored.dev &&
		     original->st.st_dev != root->stored.dev &&
		     !pfs_birthmark_is_empty(&original->mark);

	return stays ? record->dev : original->st.st_dev;
}

/* A descriptor that is O_PATH gives its attributes only by its name in /proc. */
mode_t pfs_granted_mode(int fd, mode_t mode)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return pfs_acl_file_mode(mode, name);
}

/* ---- the original ---- */

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
		       .st_atim = pfs_timespec_of_statx(from.stx_atime),
		       .st_mtim = pfs_timespec_of_statx(from.stx_mtime),
		       .st_ctim = pfs_timespec_of_statx(from.stx_ctime)},
		.mark = {.has_birth = from.stx_mask & STATX_BTIME,
			 .birth = {from.stx_btime.tv_sec, from.stx_btime.tv_nsec}},
	};
	return S_ISREG(from.stx_mode) ? 0 : -ESTALE;
}

/* Returns true if nothing has happened to the file since the record was made, not even to its ACL:
 * its ctime tells. */
static bool is_untouched(const struct pfs_original *original,
			 const struct pfs_source_record *record)
{
	const struct pfs_birthmark *now = &original->mark, *then = &record->mark;

	return !pfs_birthmark_is_empty(then) && then->has_birth == now->has_birth &&
	       then->birth.sec == now->birth.sec && then->birth.nsec == now->birth.nsec &&
	       record->ino == original->st.st_ino && record->mode == original->st.st_mode &&
	       record->uid == original->st.st_uid && record->gid == original->st.st_gid &&
	       pfs_is_time(record->ctime, original->st.st_ctim);
}

int pfs_original_see(struct pfs_originals *originals, const struct pfs_way *way,
		     struct pfs_original *out, const struct pfs_source_record *record, int fd)
{
	const struct pfs_origin_root *root = pfs_origin_find(originals, record->root);
	int error = root ? stat_original(out, fd) : -ESTALE;

	if (error)
		return error;
	if (!way->folder->recorded && out->st.st_uid != geteuid())
		return -ESTALE;
	out->st.st_dev = pfs_lasting_dev(root, out->st.st_dev);
	if (is_untouched(out, record)) {
		out->mark = record->mark;
	} else {
		pfs_birthmark_handle(&out->mark, fd, "");
		out->st.st_mode = pfs_granted_mode(fd, out->st.st_mode);
	}
	out->st.st_mode &= ~pfs_lost_on(way->folder, &out->st);
	return 0;
}

int pfs_original_look(struct pfs_originals *originals, const struct pfs_way *way,
		      struct pfs_original *out, const struct pfs_source_record *record)
{
	int fd PFS_CLOSE = openat(way->fd, way->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? pfs_way_error(errno) : pfs_original_see(originals, way, out, record, fd);
}
