/* SPDX-License-Identifier: MIT */
/* Linked nodes: the records of their originals (fs/content/original.h), and what happens to a node
 * when its original changes. */
#include "fs/content/link.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/content/content_impl.h"
#include "fs/content/fdcache.h"
#include "fs/content/follow.h"
#include "fs/content/original.h"
#include "fs/image/image.h"
#include "fs/journal/journal.h"
#include "fs/tree/listen.h"
#include "fs/tree/tree_impl.h"

#define OPEN_LIMIT     256		 /* descriptors that are kept open */
#define CACHED_SOURCES ((size_t)8 << 20) /* bytes of source records kept in memory */
#define ATTEMPTS       16		 /* tries to read an original that changes meanwhile */

#define ROOTS_SHOWN 3

struct refused {
	char roots[1000]; /* the first of them, for a message */
	unsigned n_roots;
};

struct pfs_links {
	enum pfs_store_trust trust; /* whether the store's records of originals can be trusted */
	/* no original is looked at, and reading content fails with -ENODATA */
	bool refused;
	struct pfs_originals *originals;
	struct pfs_records *sources;
	struct pfs_fdcache *open;
	struct pfs_follow_known known;
};

/* ---- the records ---- */

struct pfs_records *pfs_links_sources(struct pfs_tree *tree)
{
	return tree->links->sources;
}

/* The path and the record's pointer to it lie behind the record, in the same memory. */
const struct pfs_source_record *pfs_links_record(const struct pfs_value *value)
{
	return (const void *)value->data;
}

struct pfs_value *pfs_links_value(const struct pfs_source_record *record)
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
	*out = pfs_links_value(&record);
	return *out ? 0 : -ENOMEM;
}

static int write_source(struct pfs_tree *tree, uint64_t prime, const struct pfs_value *value)
{
	if (!value)
		return pfs_store_remove_source(tree->store, prime);
	return pfs_store_put_source(tree->store, pfs_links_record(value));
}

void pfs_links_forget(struct pfs_tree *tree, uint64_t ino)
{
	pfs_fdcache_drop(tree->links->open, ino);
}

void pfs_links_forget_ways(struct pfs_tree *tree)
{
	pfs_originals_shrink(tree->links->originals);
}

struct pfs_follow_known *pfs_links_follow_known(const struct pfs_tree *tree)
{
	return &tree->links->known;
}

bool pfs_links_refused(const struct pfs_tree *tree)
{
	return tree->links->refused;
}

struct pfs_originals *pfs_links_originals(const struct pfs_tree *tree)
{
	return tree->links->originals;
}

/* ---- a part of commits ---- */

static void cut(struct pfs_tree *tree)
{
	pfs_records_cut(tree->links->sources);
}

static bool cut_some(struct pfs_tree *tree, unsigned n)
{
	return pfs_records_cut_some(tree->links->sources, n);
}

static int write_sources(struct pfs_tree *tree)
{
	return pfs_records_write(tree->links->sources, write_source);
}

static void done(struct pfs_tree *tree)
{
	pfs_records_done(tree->links->sources);
}

static int keep(struct pfs_tree *tree, uint64_t ino, uint64_t *former PFS_UNUSED)
{
	struct pfs_value *value PFS_UNREF = NULL;

	return pfs_records_get(tree->links->sources, &value, ino, PFS_RECORDS_KEEP);
}

static void drop(struct pfs_tree *tree, uint64_t ino)
{
	pfs_records_drop(tree->links->sources, ino);
	pfs_fdcache_drop(tree->links->open, ino);
}

const struct pfs_part pfs_sources_part = {
	.name = "sources",
	.cut = cut,
	.cut_some = cut_some,
	.write = write_sources,
	.done = done,
	.keep = keep,
	.flags = PFS_NODE_LINKED,
	.drop = drop,
};

int pfs_links_source(struct pfs_tree *tree, struct pfs_value **out, uint64_t ino)
{
	struct pfs_file_node node;
	int error;

	error = pfs_records_get(tree->links->sources, out, ino, PFS_RECORDS_LOOK);
	if (error || *out)
		return error;
	error = pfs_file_node(tree, &node, ino);
	if (error)
		return error;
	return node.flags & PFS_NODE_LINKED ? -ESTALE : -ENOENT;
}

bool pfs_tree_has_links(const struct pfs_tree *tree)
{
	return pfs_originals_roots(tree->links->originals) > 0;
}

/* ---- opening and closing ---- */

/* Decides whether originals are followed at all. */
static int decide(struct pfs_tree *tree)
{
	struct pfs_links *links = tree->links;

	PFS_TRY(pfs_store_trust(tree->store, &links->trust));
	links->refused = tree->options.links == PFS_LINKS_NO ||
			 (tree->options.links == PFS_LINKS_AUTO && links->trust != PFS_TRUST_OWN);
	return 0;
}

int pfs_links_create(struct pfs_tree *tree)
{
	struct pfs_links *links = calloc(1, sizeof(*links));
	int error;

	if (!links)
		return -ENOMEM;
	tree->links = links;
	(void)pthread_mutex_init(&links->known.lock, NULL);
	error = pfs_records_create(&links->sources, tree, CACHED_SOURCES, load_source);
	if (!error)
		error = pfs_fdcache_create(&links->open, OPEN_LIMIT);
	if (!error)
		error = decide(tree);
	if (!error)
		error = pfs_originals_create(&links->originals, tree->store);
	if (error)
		pfs_links_destroy(tree);
	else
		pfs_take_part(tree, &pfs_sources_part);
	return error;
}

void pfs_links_destroy(struct pfs_tree *tree)
{
	struct pfs_links *links = tree->links;

	if (!links)
		return;
	pfs_originals_destroy(links->originals);
	pfs_records_destroy(links->sources);
	pfs_fdcache_destroy(links->open);
	(void)pthread_mutex_destroy(&links->known.lock);
	free(links);
	tree->links = NULL;
}

/* ---- the original ---- */

static void shrink(const struct pfs_links *links)
{
	pfs_fdcache_shrink(links->open);
	pfs_originals_shrink(links->originals);
}

/* Opens the way, with descriptors of ours given back if there are too many. */
static int open_way(const struct pfs_links *links, struct pfs_way *way,
		    const struct pfs_source_record *record)
{
	int attempt, error = -EMFILE;

	for (attempt = 0; (error == -EMFILE || error == -ENFILE) && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			shrink(links);
		error = pfs_way_open(links->originals, way, record);
	}
	return error;
}

static int look(const struct pfs_links *links, struct pfs_original *out,
		const struct pfs_source_record *record)
{
	struct pfs_way way;
	int error = open_way(links, &way, record);

	if (error)
		return error;
	error = pfs_original_look(links->originals, &way, out, record);
	pfs_way_close(links->originals, &way);
	return error;
}

static bool same_rights(const struct pfs_source_record *record, const struct stat *st)
{
	return record->mode == st->st_mode && record->uid == st->st_uid &&
	       record->gid == st->st_gid;
}

/* Returns true if another file has taken the original's place. A file of another owner counts as
 * another one, even if only its owner has changed. */
static bool is_another(const struct pfs_links *links, const struct pfs_source_record *record,
		       const struct pfs_original *now)
{
	return record->uid != now->st.st_uid || record->gid != now->st.st_gid ||
	       !pfs_original_is(links->originals, now, record);
}

/* Returns true if it is the file that the record says, and the same users may open it. */
static bool same_access(const struct pfs_links *links, const struct pfs_source_record *record,
			const struct pfs_original *now)
{
	return same_rights(record, &now->st) &&
	       record->dev == pfs_original_number(links->originals, now, record) &&
	       record->ino == now->st.st_ino && record->mark.handle_len == now->mark.handle_len &&
	       record->mark.has_birth == now->mark.has_birth && !is_another(links, record, now);
}

bool pfs_links_same(const struct pfs_source_record *record, const struct stat *st)
{
	return record->ino == st->st_ino && record->size == st->st_size &&
	       pfs_is_time(record->mtime, st->st_mtim) && pfs_is_time(record->ctime, st->st_ctim);
}

/* ---- refreshing ---- */

static struct pfs_value *source_now(const struct pfs_links *links, const struct pfs_value *before,
				    const struct pfs_original *now)
{
	struct pfs_source_record record = *pfs_links_record(before);
	const struct stat *st = &now->st;

	record.dev = pfs_original_number(links->originals, now, &record);
	record.ino = st->st_ino;
	record.mark = now->mark;
	record.size = st->st_size;
	record.mtime = pfs_time_of(st->st_mtim);
	record.ctime = pfs_time_of(st->st_ctim);
	record.mode = st->st_mode;
	record.uid = st->st_uid;
	record.gid = st->st_gid;
	return pfs_links_value(&record);
}

static bool is_before(struct pfs_time a, struct timespec b)
{
	return a.sec != b.tv_sec ? a.sec < b.tv_sec : a.nsec < (uint32_t)b.tv_nsec;
}

/* Gives a node the size of its original and, of mode, owner and times, only what the original has
 * changed: the node may have been given others meanwhile. Such a change was meant for the former
 * file, so if another one is in its place everything is taken. tree->lock is held. */
static int take_over_row(struct pfs_tree *tree, uint32_t slot,
			 const struct pfs_source_record *record, const struct stat *st,
			 bool another)
{
	struct pfs_image *image = &tree->image;
	const struct pfs_times times = {pfs_time_of(st->st_atim), pfs_time_of(st->st_mtim),
					pfs_time_of(st->st_ctim)};
	unsigned columns = another ? PFS_COLUMN_ATIME : 0;
	uid_t uid;
	gid_t gid;

	if (another || !pfs_is_time(record->mtime, st->st_mtim))
		columns |= PFS_COLUMN_MTIME;
	if (another || is_before(pfs_image_time(tree, image->ctime, slot), st->st_ctim))
		columns |= PFS_COLUMN_CTIME;
	PFS_TRY(pfs_image_set_times(tree, slot, columns, &times));
	if (another || record->mode != st->st_mode)
		pfs_image_set_mode(tree, slot, st->st_mode);
	uid = another || record->uid != st->st_uid ? st->st_uid : image->uid[slot];
	gid = another || record->gid != st->st_gid ? st->st_gid : image->gid[slot];
	if (uid != image->uid[slot] || gid != image->gid[slot])
		pfs_image_set_owner(tree, slot, uid, gid);
	pfs_image_set_size(tree, slot, st->st_size, st->st_blocks);
	return 0;
}

/* Makes the node what its original is now. -EAGAIN: somebody has done so, or changed the node,
 * meanwhile. */
static int take_over(struct pfs_tree *tree, uint64_t ino, const struct pfs_value *before,
		     const struct pfs_original *original)
{
	struct pfs_records *sources = tree->links->sources;
	bool another = is_another(tree->links, pfs_links_record(before), original);
	struct pfs_value *now PFS_UNREF = source_now(tree->links, before, original);
	/* A tree that cannot store the change must show it all the same. */
	bool store = !pfs_journal_reserve(tree, 1, now ? now->size : 0, false);
	struct pfs_record *record;
	uint32_t slot;
	int error = -EAGAIN;

	if (!now)
		return -ENOMEM;
	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	record = pfs_records_find(sources, ino);
	slot = pfs_image_slot(tree, ino);
	if (record && record->value == before && slot != PFS_NO_SLOT) {
		error = take_over_row(tree, slot, pfs_links_record(before), &original->st, another);
		if (!error) {
			pfs_records_set(sources, record, PFS_TAKE(now), store);
			if (store)
				pfs_journal_touch(tree, slot);
		}
	}
	pfs_hold_end(tree);
	pfs_parts_unlock(tree);
	return error;
}

/* Returns true if the original's content may have changed: if more has changed than its mode or
 * owner (which also move the ctime), or than what a record of version 1 lacks. */
static bool content_may_differ(const struct pfs_links *links,
			       const struct pfs_source_record *record,
			       const struct pfs_original *now)
{
	bool touched = !pfs_is_time(record->ctime, now->st.st_ctim);

	return (touched && same_rights(record, &now->st)) ||
	       !pfs_original_is(links->originals, now, record) || record->size != now->st.st_size ||
	       !pfs_is_time(record->mtime, now->st.st_mtim);
}

static int refresh_once(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_links *links = tree->links;
	const struct pfs_source_record *record;
	struct pfs_value *source PFS_UNREF = NULL;
	struct pfs_original now;
	int error;

	error = pfs_links_source(tree, &source, ino);
	if (error)
		return error == -ENOENT ? 0 : error;
	record = pfs_links_record(source);
	error = look(links, &now, record);
	if (!error && same_access(links, record, &now) && pfs_links_same(record, &now.st))
		return 0;
	if (error) {
		pfs_fdcache_drop(links->open, ino);
		return error;
	}
	if (!same_rights(record, &now.st) || is_another(links, record, &now))
		pfs_tell_rights_change(tree, ino);
	error = take_over(tree, ino, source, &now);
	if (error)
		return error;
	pfs_fdcache_drop(links->open, ino);
	if (content_may_differ(links, record, &now))
		pfs_tell_changed(tree, ino, NULL);
	return 0;
}

int pfs_links_refresh(struct pfs_tree *tree, uint64_t ino)
{
	struct pfs_file_node node;
	int attempt, error;

	error = pfs_file_node(tree, &node, ino);
	if (error || !(node.flags & PFS_NODE_LINKED) || tree->links->refused)
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

/* -EAGAIN: it is another file than the record says, or other users may open it. */
static int open_at(const struct pfs_links *links, const struct pfs_way *way,
		   const struct pfs_source_record *record, int *out)
{
	const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
	struct pfs_original now;
	/* looked at before it is opened, since opening a device has effects */
	int error = pfs_original_look(links->originals, way, &now, record), fd;

	if (error)
		return error;
	if (!same_access(links, record, &now))
		return -EAGAIN;
	fd = openat(way->fd, way->name, flags | O_NOATIME);
	if (fd < 0 && errno == EPERM)
		fd = openat(way->fd, way->name, flags);
	if (fd < 0) /* EMFILE, ENFILE: open_original tries again */
		return errno == ENOENT || errno == ELOOP ? -ESTALE : -errno;
	error = pfs_original_see(links->originals, way, &now, record, fd);
	if (!error && !same_access(links, record, &now))
		error = -EAGAIN;
	if (error)
		(void)close(fd);
	else
		*out = fd;
	return error;
}

static int open_original(const struct pfs_links *links, const struct pfs_source_record *record,
			 int *out)
{
	struct pfs_way way;
	int attempt, error = -EMFILE;

	for (attempt = 0; (error == -EMFILE || error == -ENFILE) && attempt < ATTEMPTS; attempt++) {
		if (attempt)
			shrink(links);
		error = open_way(links, &way, record);
		if (error)
			break;
		error = open_at(links, &way, record, out);
		pfs_way_close(links->originals, &way);
	}
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

	*out = NULL;
	if (tree->links->refused)
		return -ENODATA;
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

/* ---- what is not followed ---- */

static int note_root(void *arg, const struct pfs_source_root *root)
{
	struct refused *refused = arg;
	size_t len = strlen(refused->roots);

	if (refused->n_roots++ < ROOTS_SHOWN)
		(void)snprintf(refused->roots + len, sizeof(refused->roots) - len, "%s%s",
			       len ? ", " : "", root->path);
	return 0;
}

static const char *why_refused(enum pfs_store_trust trust)
{
	switch (trust) {
	case PFS_TRUST_NOT_OWN:
		return "the store belongs to another user; if you trust it, mount it with "
		       "-o links=yes, as its owner or root";
	case PFS_TRUST_SHARED:
		return "others than its owner may write the store; run chmod go-w on it, or, if "
		       "you trust them, mount it with -o links=yes";
	default:
		return "the store is not the very file that import wrote, but a copy or an old "
		       "one; if you trust it, run primefs import --trust on it";
	}
}

bool pfs_tree_links_refused(struct pfs_tree *tree, char *out, size_t size)
{
	const struct pfs_image *image = &tree->image;
	struct refused refused = {.n_roots = 0};
	uint64_t files = 0;
	uint32_t slot;

	if (!tree->links->refused || tree->options.links == PFS_LINKS_NO)
		return false;
	if (pfs_store_scan_source_roots(tree->store, note_root, &refused) || !refused.n_roots)
		return false; /* nodes need not be looked at */
	pfs_hold_read(tree, __func__);
	for (slot = 0; slot < image->end; slot++)
		files += (image->flags[slot] & PFS_NODE_LINKED) != 0;
	pfs_hold_end(tree);
	if (!files)
		return false;
	(void)snprintf(out, size,
		       "%s: %llu files that are linked to originals below %s%s have no data: %s",
		       pfs_store_path(tree->store), (unsigned long long)files, refused.roots,
		       refused.n_roots > ROOTS_SHOWN ? " and more" : "",
		       why_refused(tree->links->trust));
	return true;
}
