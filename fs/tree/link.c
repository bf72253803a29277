/* SPDX-License-Identifier: MIT */
/* Originals: files outside the store whose bytes its linked nodes show.
 *
 * The daemon may be root, the folder with the originals anybody's: no path below an import's root
 * is followed but with openat2, which stays beneath the root and takes no symlink for anything. */
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fs/tree/content.h"
#include "fs/tree/index.h"

#define OPEN_LIMIT     256		 /* descriptors kept open */
#define CACHED_SOURCES ((size_t)8 << 20) /* bytes of source records kept in memory */
#define ATTEMPTS       16		 /* at something that changes under our hands */

struct root {
	uint32_t id;
	int fd; /* O_PATH; -1: gone or replaced */
};

struct pfs_links {
	struct root *roots;
	size_t n_roots, capacity;
	struct pfs_records *sources;
	struct pfs_fdcache *open;
};

/* ---- the records ---- */

struct pfs_records *pfs_links_sources(struct pfs_tree *tree)
{
	return tree->links->sources;
}

/* The path lies behind the record; so does the record's pointer to it. */
const struct pfs_source_record *pfs_links_record(const struct pfs_value *value)
{
	return (const void *)value->data;
}

static struct pfs_value *make_source(const struct pfs_source_record *record)
{
	struct pfs_value *value = pfs_value_create(sizeof(*record) + record->path_len + 1);
	struct pfs_source_record *copy;
	char *path;

	if (!value)
		return NULL;
	copy = (void *)value->data;
	path = (char *)(copy + 1);
	memcpy(path, record->path, record->path_len);
	path[record->path_len] = '\0';
	*copy = *record;
	copy->path = path;
	return value;
}

static int load_source(struct pfs_tree *tree, struct pfs_value **out, uint64_t prime)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	int error = pfs_store_get_source(tree->store, &record, path, prime);

	*out = NULL;
	if (error)
		return error == -ENOENT ? 0 : error;
	record.path = path;
	*out = make_source(&record);
	return *out ? 0 : -ENOMEM;
}

static int write_source(struct pfs_tree *tree, uint64_t prime, const struct pfs_value *value)
{
	if (!value)
		return pfs_store_remove_source(tree->store, prime);
	return pfs_store_put_source(tree->store, pfs_links_record(value));
}

int pfs_links_write(struct pfs_tree *tree)
{
	return pfs_records_write(tree->links->sources, write_source);
}

void pfs_links_drop(struct pfs_tree *tree, uint64_t ino)
{
	pfs_records_drop(tree->links->sources, ino);
	pfs_fdcache_drop(tree->links->open, ino);
}

int pfs_links_source(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino)
{
	struct pfs_file_node node;
	int error;

	error = pfs_records_get(tree->links->sources, out, ino, false);
	if (error || *out)
		return error;
	error = pfs_file_node(tree, &node, ino);
	if (error)
		return error;
	return node.flags & PFS_NODE_LINKED ? -ESTALE : -ENOENT;
}

bool pfs_tree_has_links(const struct pfs_tree *tree)
{
	return tree->links->n_roots > 0;
}

/* ---- opening and closing ---- */

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
static bool is_root(int fd, const struct pfs_source_root *stored)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || st.st_ino != stored->ino)
		return false;
	return st.st_dev == stored->dev || (!fstatfs(fd, &fs) && fs.f_type != FUSE_SUPER_MAGIC &&
					    leads_straight(stored->path, &st));
}

static int add_root(void *arg, const struct pfs_source_root *stored)
{
	struct pfs_links *links = arg;
	struct root root = {.id = stored->id};
	int error;

	error = pfs_grow(&links->roots, &links->capacity, links->n_roots + 1, sizeof(root));
	if (error)
		return error;
	root.fd = open(stored->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root.fd >= 0 && !is_root(root.fd, stored)) {
		(void)close(root.fd);
		root.fd = -1;
	}
	if (root.fd < 0)
		pfs_warning("%s: no longer the folder that was imported; files that are linked to "
			    "it cannot be read: bring it back and mount again",
			    stored->path);
	links->roots[links->n_roots++] = root;
	return 0;
}

int pfs_links_create(struct pfs_tree *tree)
{
	struct pfs_links *links = calloc(1, sizeof(*links));
	int error;

	if (!links)
		return -ENOMEM;
	tree->links = links;
	error = pfs_records_create(&links->sources, tree, CACHED_SOURCES, load_source);
	if (!error)
		error = pfs_fdcache_create(&links->open, OPEN_LIMIT);
	if (!error)
		error = pfs_store_scan_source_roots(tree->store, add_root, links);
	if (error)
		pfs_links_destroy(tree);
	return error;
}

void pfs_links_destroy(struct pfs_tree *tree)
{
	struct pfs_links *links = tree->links;
	size_t i;

	if (!links)
		return;
	for (i = 0; i < links->n_roots; i++)
		if (links->roots[i].fd >= 0)
			(void)close(links->roots[i].fd);
	free(links->roots);
	pfs_records_destroy(links->sources);
	pfs_fdcache_destroy(links->open);
	free(links);
	tree->links = NULL;
}

/* ---- the original ---- */

static int open_error(int error)
{
	switch (error) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:  /* a symlink where there was none */
	case EXDEV:  /* out of the root */
	case EAGAIN: /* a component that is being renamed all the time */
	case ENAMETOOLONG:
		return -ESTALE;
	default:
		return -error;
	}
}

/* Opens the original beneath its root; a negative errno. */
static int open_beneath(const struct pfs_links *links, const struct pfs_source_record *record,
			uint64_t flags)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};
	int attempt, root = -1;
	long fd = -1;
	size_t i;

	for (i = 0; i < links->n_roots; i++)
		if (links->roots[i].id == record->root)
			root = links->roots[i].fd;
	if (root < 0)
		return -ESTALE;
	for (attempt = 0; fd < 0 && attempt < ATTEMPTS; attempt++) {
		fd = syscall(SYS_openat2, root, record->path, &how, sizeof(how));
		if (fd < 0 && errno == EPERM && how.flags & O_NOATIME)
			how.flags &= ~(uint64_t)O_NOATIME;
		else if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			pfs_fdcache_shrink(links->open);
		else if (fd < 0 && errno != EAGAIN)
			break;
	}
	return fd < 0 ? open_error(errno) : (int)fd;
}

static int stat_original(const struct pfs_links *links, const struct pfs_source_record *record,
			 struct stat *st)
{
	int fd PFS_CLOSE = open_beneath(links, record, O_PATH);

	if (fd < 0)
		return fd;
	if (fstat(fd, st))
		return -errno;
	return S_ISREG(st->st_mode) ? 0 : -ESTALE;
}

static bool same_time(struct pfs_time a, struct timespec b)
{
	return a.sec == b.tv_sec && a.nsec == (uint32_t)b.tv_nsec;
}

static bool same_rights(const struct pfs_source_record *record, const struct stat *st)
{
	return record->mode == st->st_mode && record->uid == st->st_uid &&
	       record->gid == st->st_gid;
}

/* The same file, open to the same users. */
static bool same_access(const struct pfs_source_record *record, const struct stat *st)
{
	return record->dev == st->st_dev && record->ino == st->st_ino && same_rights(record, st);
}

bool pfs_links_same(const struct pfs_source_record *record, const struct stat *st)
{
	return same_access(record, st) && record->size == st->st_size &&
	       same_time(record->mtime, st->st_mtim) && same_time(record->ctime, st->st_ctim);
}

/* ---- refreshing ---- */

static struct pfs_time time_of(struct timespec time)
{
	return (struct pfs_time){.sec = time.tv_sec, .nsec = (uint32_t)time.tv_nsec};
}

static struct pfs_value *source_now(const struct pfs_value *before, const struct stat *st)
{
	struct pfs_source_record record = *pfs_links_record(before);

	record.dev = st->st_dev;
	record.ino = st->st_ino;
	record.size = st->st_size;
	record.mtime = time_of(st->st_mtim);
	record.ctime = time_of(st->st_ctim);
	record.mode = st->st_mode;
	record.uid = st->st_uid;
	record.gid = st->st_gid;
	return make_source(&record);
}

static bool is_before(struct pfs_time a, struct timespec b)
{
	return a.sec != b.tv_sec ? a.sec < b.tv_sec : a.nsec < (uint32_t)b.tv_nsec;
}

/* With tree->lock.  Of mode, owner and mtime only what the original has changed: the node may have
 * been given its own. */
static int take_over_row(struct pfs_tree *tree, uint32_t slot,
			 const struct pfs_source_record *record, const struct stat *st)
{
	struct pfs_image *image = &tree->image;
	int error = 0;

	if (!same_time(record->mtime, st->st_mtim))
		error = pfs_image_set_time(tree, image->mtime, slot, time_of(st->st_mtim));
	if (!error && is_before(pfs_image_time(tree, image->ctime, slot), st->st_ctim))
		error = pfs_image_set_time(tree, image->ctime, slot, time_of(st->st_ctim));
	if (error)
		return error;
	if (record->mode != st->st_mode)
		image->mode[slot] = (uint16_t)st->st_mode;
	if (record->uid != st->st_uid)
		image->uid[slot] = st->st_uid;
	if (record->gid != st->st_gid)
		image->gid[slot] = st->st_gid;
	pfs_image_set_size(tree, slot, st->st_size, st->st_blocks);
	return 0;
}

/* The node becomes what the original is now, unless somebody was faster: -EAGAIN. */
static int take_over(struct pfs_tree *tree, uint64_t ino, const struct pfs_value *before,
		     const struct stat *st)
{
	struct pfs_records *sources = tree->links->sources;
	struct pfs_value *now PFS_UNREF = source_now(before, st);
	/* a tree that cannot keep the change must show it all the same */
	bool store = !pfs_journal_reserve(tree, 1, now ? now->size : 0, false);
	struct pfs_record *record;
	uint32_t slot;
	int error = -EAGAIN;

	if (!now)
		return -ENOMEM;
	pfs_content_lock(tree);
	(void)pthread_rwlock_wrlock(&tree->lock);
	record = pfs_records_find(sources, ino);
	slot = pfs_image_slot(tree, ino);
	if (record && record->value == before && slot != PFS_NO_SLOT) {
		error = take_over_row(tree, slot, pfs_links_record(before), st);
		if (!error) {
			pfs_records_set(sources, record, PFS_TAKE(now), store);
			if (store)
				pfs_journal_touch(tree, slot);
			else
				pfs_indexes_touched(tree, slot);
		}
	}
	(void)pthread_rwlock_unlock(&tree->lock);
	pfs_content_unlock(tree);
	return error;
}

/* Of an original that changed: more than its mode or owner, which move the ctime as well. */
static bool content_may_differ(const struct pfs_source_record *record, const struct stat *st)
{
	return same_rights(record, st) || record->dev != st->st_dev || record->ino != st->st_ino ||
	       record->size != st->st_size || !same_time(record->mtime, st->st_mtim);
}

static int refresh_once(struct pfs_tree *tree, uint64_t ino)
{
	const struct pfs_tree_listener *listener = &tree->listener;
	struct pfs_links *links = tree->links;
	struct pfs_value *source PFS_UNREF = NULL;
	struct stat st;
	int error;

	error = pfs_links_source(tree, &source, ino);
	if (error)
		return error == -ENOENT ? 0 : error;
	error = stat_original(links, pfs_links_record(source), &st);
	if (!error && pfs_links_same(pfs_links_record(source), &st))
		return 0;
	if (error) {
		pfs_fdcache_drop(links->open, ino);
		return error;
	}
	if (listener->rights_change && !same_rights(pfs_links_record(source), &st))
		listener->rights_change(listener->arg, ino);
	error = take_over(tree, ino, source, &st);
	if (error)
		return error;
	pfs_fdcache_drop(links->open, ino);
	if (listener->changed && content_may_differ(pfs_links_record(source), &st))
		listener->changed(listener->arg, ino, NULL);
	return 0;
}

int pfs_links_refresh(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_file_node node;
	int attempt, error;

	error = pfs_file_node(tree, &node, ino);
	if (error || !(node.flags & PFS_NODE_LINKED))
		return error == -ESTALE ? error : 0; /* only regular files are linked */
	error = -EAGAIN;
	for (attempt = 0; error == -EAGAIN && attempt < ATTEMPTS; attempt++)
		error = refresh_once(tree, ino);
	return error == -EAGAIN ? -ESTALE : error;
}

/* ---- descriptors ---- */

struct pfs_fd *pfs_links_opened(struct pfs_tree *tree, uint64_t ino)
{
	return pfs_fdcache_get(tree->links->open, ino);
}

void pfs_links_close(struct pfs_tree *tree, struct pfs_fd *original)
{
	pfs_fdcache_put(tree->links->open, original);
}

/* -EAGAIN: another file, or open to others, than the record says. */
static int open_original(const struct pfs_links *links, const struct pfs_source_record *record,
			 int *out)
{
	struct stat st;
	int error, fd;

	/* looked at before it is opened: opening a device does things */
	error = stat_original(links, record, &st);
	if (error)
		return error;
	if (!same_access(record, &st))
		return -EAGAIN;
	fd = open_beneath(links, record, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOATIME);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		error = -errno;
	else if (!same_access(record, &st))
		error = -EAGAIN;
	if (error)
		(void)close(fd);
	else
		*out = fd;
	return error;
}

static int open_once(struct pfs_tree *tree, struct pfs_fd **out, uint64_t ino)
{
	struct pfs_value *source PFS_UNREF = NULL;
	int error, fd;

	error = pfs_links_source(tree, &source, ino);
	if (!error)
		error = open_original(tree->links, pfs_links_record(source), &fd);
	return error ? error : pfs_fdcache_add(tree->links->open, out, ino, fd);
}

int pfs_links_open(struct pfs_tree *tree, struct pfs_fd **out, uint64_t ino)
{
	int attempt, error;

	*out = pfs_links_opened(tree, ino);
	if (*out)
		return 0;
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		error = open_once(tree, out, ino);
		if (error != -EAGAIN)
			return error;
		error = pfs_links_refresh(tree, ino);
		if (error)
			return error;
	}
	return -ESTALE;
}
