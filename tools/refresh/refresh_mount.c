/* SPDX-License-Identifier: MIT */
/* What is mounted below a source, and what was when it was last read.
 *
 * A node says whether its directory was where something was mounted (PFS_NODE_MOUNT), and which
 * filesystem that was, if its disk identifies it (fs/content/filesystem.h). A record says which
 * filesystem its original is in, by a number that means nothing but that in this store: what the
 * machine calls the device changes. Where the same is mounted as before, a refresh learns which
 * device has which number. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "fs/content/filesystem.h"
#include "meta/birthmark.h"

#define DIFFERENT_ENOUGH 16 /* entries of a filesystem that differ, so that it is another one */

/* ---- numbers of filesystems ---- */

/* Returns the device of that number, or NULL. */
static const struct pfs_device *find_number(const struct pfs_refresh *refresh, dev_t stored)
{
	for (size_t i = 0; i < refresh->n_devices; i++)
		if (refresh->devices[i].stored == stored)
			return &refresh->devices[i];
	return NULL;
}

static const struct pfs_device *find_device(const struct pfs_refresh *refresh, dev_t dev)
{
	for (size_t i = 0; i < refresh->n_devices; i++)
		if (refresh->devices[i].dev == dev)
			return &refresh->devices[i];
	return NULL;
}

static int add_device(struct pfs_refresh *refresh, dev_t stored, dev_t dev)
{
	PFS_TRY(pfs_grow(&refresh->devices, &refresh->devices_capacity, refresh->n_devices + 1,
			 sizeof(*refresh->devices)));
	refresh->devices[refresh->n_devices++] = (struct pfs_device){stored, dev};
	return 0;
}

int pfs_refresh_learn(struct pfs_refresh *refresh, dev_t stored, dev_t dev)
{
	bool known = stored == refresh->root.stored_dev || dev == refresh->root.dev ||
		     find_number(refresh, stored);

	return known ? 0 : add_device(refresh, stored, dev);
}

int pfs_refresh_number(struct pfs_refresh *refresh, dev_t *stored, dev_t dev)
{
	const struct pfs_device *device = find_device(refresh, dev);

	if (dev == refresh->root.dev)
		*stored = refresh->root.stored_dev;
	else if (device)
		*stored = device->stored;
	else if (getrandom(stored, sizeof(*stored), 0) != sizeof(*stored))
		return -EIO;
	else
		return add_device(refresh, *stored, dev);
	return 0;
}

bool pfs_refresh_is_on(const struct pfs_refresh *refresh, dev_t stored, dev_t dev)
{
	const struct pfs_device *device = find_number(refresh, stored);

	return dev == refresh->root.dev ? stored == refresh->root.stored_dev
					: device && device->dev == dev;
}

bool pfs_refresh_may_be_on(const struct pfs_refresh *refresh, dev_t stored, dev_t dev)
{
	bool known = stored == refresh->root.stored_dev || dev == refresh->root.dev ||
		     find_number(refresh, stored) || find_device(refresh, dev);

	return !known || pfs_refresh_is_on(refresh, stored, dev);
}

/* ---- whether it is the same filesystem ---- */

static bool is_birth(const struct pfs_birthmark *mark, const struct statx *now)
{
	return !mark->has_birth || !(now->stx_mask & STATX_BTIME) ||
	       (mark->birth.sec == now->stx_btime.tv_sec &&
		mark->birth.nsec == now->stx_btime.tv_nsec);
}

/* Returns true if another filesystem may have the same mark, as what is made with a filesystem has:
 * its birth is in whole seconds. */
static bool is_common(const struct pfs_birthmark *mark)
{
	return mark->has_birth && !mark->birth.nsec;
}

/* Compares the child with the entry of its name in the open directory, if it was there when `above`
 * was recorded. */
static int compare_child(struct pfs_refresh *refresh, bool *same, bool *differs, int fd,
			 const struct pfs_source_record *above, const struct pfs_follower *child)
{
	struct pfs_source_record record;
	struct pfs_birthmark mark;
	struct statx now;
	char path[PATH_MAX];
	const char *name = path + above->path_len + 1;
	int error = pfs_follow_record(refresh->tree, &record, path, child->ino);

	*same = *differs = false;
	if (error || record.root != above->root || record.dev != above->dev ||
	    record.path_len <= above->path_len || name[-1] != '/' || strchr(name, '/') ||
	    memcmp(path, above->path, above->path_len) != 0 || child->flags & PFS_NODE_MOUNT ||
	    is_common(&record.mark))
		return error == -ENOENT ? 0 : error;
	if (statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | STATX_BTIME,
		  &now) < 0) {
		*differs = errno == ENOENT;
		return 0;
	}
	pfs_birthmark_handle(&mark, fd, name);
	*same = record.ino == now.stx_ino && is_birth(&record.mark, &now) &&
		pfs_birthmark_same(&record.mark, &mark);
	*differs = !*same;
	return 0;
}

/* Sets *same if something in the directory is what it was; or, here, if nothing tells. */
static int compare_children(struct pfs_refresh *refresh, bool *same, int fd,
			    const struct pfs_source_record *record, uint64_t ino, bool here)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, ino, false);
	bool any = false, differs;
	size_t n = 0;

	for (size_t i = 0; i < children.n && !error && !any && n < DIFFERENT_ENOUGH; i++) {
		error = compare_child(refresh, &any, &differs, fd, record, &children.list[i]);
		n += differs;
	}
	pfs_followers_finish(&children);
	*same = any || (here && !n);
	return error;
}

int pfs_refresh_same_mounted(struct pfs_refresh *refresh, bool *same, int fd,
			     const struct pfs_source_record *record, uint64_t ino, bool here)
{
	uint64_t was = 0, filesystem;
	struct statx now;
	dev_t dev;

	*same = false;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &now) < 0)
		return -errno;
	if (record->prime)
		PFS_TRY(pfs_filesystem_get(refresh->tree, &was, record->prime));
	filesystem = was ? pfs_filesystem_of(fd) : 0;
	if (filesystem) {
		*same = was == filesystem;
		return 0;
	}
	dev = makedev(now.stx_dev_major, now.stx_dev_minor);
	*same = pfs_refresh_is_on(refresh, record->dev, dev);
	if (*same || !pfs_refresh_may_be_on(refresh, record->dev, dev) ||
	    !is_birth(&record->mark, &now))
		return 0;
	*same = record->mark.has_birth && !is_common(&record->mark);
	return *same ? 0 : compare_children(refresh, same, fd, record, ino, here);
}

/* Returns true if the path is that of an entry of the directory. */
static bool is_entry(const struct pfs_crawl_dir *dir, const struct pfs_source_record *record)
{
	const char *path = record->path;
	size_t len = dir->path_len;

	return record->path_len > len && path[len] == '/' && !strchr(path + len + 1, '/') &&
	       memcmp(path, dir->path, len) == 0;
}

/* Gets the number of the filesystem that the root's nodes in the directory came from: that of the
 * device, if some came from there. Returns 1, or 0 if there are none. */
static int find_stored(struct pfs_refresh *refresh, dev_t *stored, const struct pfs_crawl_dir *dir,
		       uint64_t ino)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, ino, false);
	bool on = false, any = false;

	for (size_t i = 0; i < children.n && !error && !on; i++) {
		struct pfs_source_record record;
		char path[PATH_MAX];
		int none = pfs_follow_record(refresh->tree, &record, path, children.list[i].ino);

		if (none || record.root != refresh->root.id || !is_entry(dir, &record) ||
		    children.list[i].flags & PFS_NODE_MOUNT) {
			error = none == -ENOENT ? 0 : none;
			continue;
		}
		any = true;
		*stored = record.dev;
		on = pfs_refresh_is_on(refresh, record.dev, dir->dev);
	}
	pfs_followers_finish(&children);
	return error ? error : any;
}

int pfs_refresh_is_shared_unseen(struct pfs_refresh *refresh, bool *is, int fd,
				 const struct pfs_crawl_dir *dir, uint64_t ino)
{
	struct pfs_source_record as = {
		.root = refresh->root.id,
		.path = dir->path,
		.path_len = dir->path_len,
	};
	int any = find_stored(refresh, &as.dev, dir, ino);
	bool same;

	*is = false;
	if (any <= 0 || refresh->options->unmounted || !dir->path_len)
		return PFS_MIN(any, 0);
	PFS_TRY(pfs_refresh_same_mounted(refresh, &same, fd, &as, ino, true));
	*is = !same;
	return same ? pfs_refresh_learn(refresh, as.dev, dir->dev) : 0;
}

/* ---- what is where a record says ---- */

static int look_at_open(struct pfs_refresh *refresh, struct pfs_there *there, int fd,
			const struct pfs_crawl_dir *dir, const struct pfs_source_record *record,
			uint64_t ino)
{
	struct pfs_crawl_batch *batch = NULL;
	struct statx now;
	int error = 0;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &now) < 0)
		return -errno;
	there->exists = true;
	there->dev = dir->dev;
	there->mounted = dir->path_len && pfs_crawl_is_mounted_at(&now, fd, refresh->root.dev);
	if (record && (there->was || there->mounted))
		error = pfs_crawl_look_at(refresh->look, &batch, NULL);
	there->same = batch && pfs_refresh_same(refresh, batch, record);
	pfs_crawl_look_free(batch);
	if (!error && there->same && there->mounted)
		error = pfs_refresh_same_mounted(refresh, &there->same, fd, record, ino,
						 !there->elsewhere);
	if (!error && there->same && there->mounted)
		error = pfs_refresh_learn(refresh, record->dev, there->dev);
	return error;
}

int pfs_refresh_look_there(struct pfs_refresh *refresh, struct pfs_there *there, const char *path,
			   const struct pfs_source_record *record, uint64_t ino)
{
	struct pfs_refresh_place *place;
	int error, fd;

	there->exists = there->mounted = there->same = false;
	error = pfs_refresh_visit(refresh, &place, &fd, path);
	if (!error) {
		error = look_at_open(refresh, there, fd, place->dir, record, ino);
		pfs_refresh_leave(refresh, place);
	}
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP ? 0 : error;
}

/* ---- what is not seen ---- */

static int has_children(const struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_followers children = {.n = 0};
	int error = pfs_follow_list(refresh->tree, &children, ino, false);

	if (!error)
		error = children.n > 0;
	pfs_followers_finish(&children);
	return error;
}

/* Returns 1 if the store has changed what is in the directory since it was read. */
static int is_touched(const struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	struct pfs_follower node;

	PFS_TRY(pfs_follow_node(refresh->tree, &node, gone->by_prime.prime));
	return !pfs_is_time(gone->record.mtime, node.attr.st_mtim);
}

int pfs_refresh_unmounted(const struct pfs_refresh *refresh, struct pfs_gone *gone)
{
	int any = S_ISDIR(gone->mode) ? has_children(refresh, gone->by_prime.prime) : 1;

	if (!any)
		any = is_touched(refresh, gone);
	if (any > 0)
		gone->held = gone->unmounted = true;
	return PFS_MIN(any, 0);
}

int pfs_refresh_was_mounted(const struct pfs_refresh *refresh,
			    const struct pfs_source_record *record, unsigned flags, uint64_t above)
{
	struct pfs_source_record there;
	char path[PATH_MAX];
	int error;

	if (flags & PFS_NODE_MOUNT || refresh->source.has_mounts)
		return (flags & PFS_NODE_MOUNT) != 0;
	error = pfs_follow_record(refresh->tree, &there, path, above);
	if (error && error != -ENOENT)
		return error;
	if (!error && there.root == record->root)
		return there.dev != record->dev;
	return above == refresh->root_ino && record->dev != refresh->root.stored_dev;
}

int pfs_refresh_is_unseen(const struct pfs_refresh *refresh, bool *is,
			  const struct pfs_source_record *record, unsigned flags, uint64_t above,
			  const struct pfs_crawl_entry *there)
{
	int was = pfs_refresh_was_mounted(refresh, record, flags, above);
	bool mounted = there && there->mounted;
	uint64_t filesystem = 0;

	if (was > 0 && mounted)
		PFS_TRY(pfs_filesystem_get(refresh->tree, &filesystem, record->prime));
	*is = !refresh->options->unmounted &&
	      (was != mounted || (filesystem && filesystem != there->filesystem));
	return PFS_MIN(was, 0);
}

int pfs_refresh_leave_covered(struct pfs_refresh *refresh, const struct pfs_follower *child,
			      const struct pfs_crawl_batch *batch)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	int error = has_children(refresh, child->ino), was;

	if (error <= 0)
		return error;
	error = pfs_follow_record(refresh->tree, &record, path, child->ino);
	if (error || record.root != refresh->root.id)
		return error == -ENOENT ? 0 : error;
	was = pfs_refresh_same(refresh, batch, &record)
		      ? 1
		      : pfs_refresh_was_mounted(refresh, &record, child->flags,
						pfs_follow_parent(refresh->tree, child->ino));
	refresh->unlooked |= was > 0;
	return was ? PFS_MIN(was, 0)
		   : pfs_refresh_tell(refresh, PFS_REFRESH_UNREAD, child->ino, NULL, NULL,
				      PFS_NOT_MOUNTED);
}

bool pfs_refresh_tells_mounts(const struct pfs_refresh *refresh)
{
	return !refresh->source.has_mounts && !refresh->unlooked && !refresh->otherwise &&
	       refresh->report->count[PFS_REFRESH_UNREAD] == refresh->unread;
}

int pfs_refresh_note_mounts(struct pfs_refresh *refresh)
{
	const struct pfs_follow_folders put = {.root = &refresh->source};

	if (!pfs_refresh_tells_mounts(refresh))
		return 0;
	refresh->source.has_mounts = true;
	return pfs_follow_put_folders(refresh->tree, &put);
}

/* ---- what the store has moved ---- */

/* Gets the node of the source's directory `path` if it is where the source has it: the child of
 * `above`. -ENOENT: it is not. */
static int find_directory(struct pfs_refresh *refresh, struct pfs_follower *node,
			  struct pfs_source_record *record, char recorded[PATH_MAX], uint64_t above,
			  const char *path)
{
	const char *slash = strrchr(path, '/');
	uint64_t ino;
	int error = pfs_follow_child(refresh->tree, &ino, above,
				     pfs_refresh_name(slash ? slash + 1 : path));

	if (!error)
		error = pfs_follow_node(refresh->tree, node, ino);
	if (!error)
		error = pfs_follow_record(refresh->tree, record, recorded, ino);
	if (!error && (record->root != refresh->root.id || strcmp(recorded, path) != 0))
		error = -ENOENT;
	return error == -ESTALE || error == -ENOTDIR ? -ENOENT : error;
}

/* What is known of what the store has moved. */
struct search {
	bool unseen;
	bool gone;    /* with a filesystem that is not mounted, and will not be */
	dev_t stored; /* the number of its filesystem */
	struct pfs_there there;
};

/* Looks at a directory on the way. */
static int look_at_node(struct pfs_refresh *refresh, struct search *search,
			const struct pfs_follower *node, const struct pfs_source_record *record,
			uint64_t above)
{
	struct pfs_there *there = &search->there;
	int was = pfs_refresh_was_mounted(refresh, record, node->flags, above);

	if (was < 0)
		return was;
	there->was = was;
	PFS_TRY(pfs_refresh_look_there(refresh, there, record->path, record, node->ino));
	/* what lay there before that was mounted is of another filesystem */
	was = was && record->dev == search->stored;
	search->gone = was && !there->same && !there->mounted && refresh->options->unmounted;
	search->unseen = !search->gone && !there->same && (was || there->mounted);
	return 0;
}

/* Looks at the directories that the path lies in, as far as they are, and the store has them where
 * the source has. Sets *above to the last one; 0: the store has one elsewhere. */
static int look_down(struct pfs_refresh *refresh, struct search *search, uint64_t *above,
		     char *path)
{
	struct pfs_follower directory = {.ino = refresh->root_ino};
	struct pfs_source_record record;
	char recorded[PATH_MAX];
	int error = 0;

	*above = directory.ino;
	for (char *slash = path; !search->unseen && !search->gone;) {
		slash = strchr(slash, '/');
		if (!slash)
			return 0;
		*slash = 0;
		error = find_directory(refresh, &directory, &record, recorded, *above, path);
		if (!error)
			error = look_at_node(refresh, search, &directory, &record, *above);
		*slash++ = '/';
		*above = error ? 0 : directory.ino;
		if (error)
			return error == -ENOENT ? 0 : error;
	}
	return 0;
}

/* Gets the device of the nearest directory of the path that there is. */
static int nearest_device(struct pfs_refresh *refresh, dev_t *dev, char *path)
{
	struct pfs_there there = {.exists = false};

	for (bool last = false; !there.exists && !last;) {
		char *slash = strrchr(path, '/');

		last = !*path;
		PFS_TRY(pfs_refresh_look_there(refresh, &there, path, NULL, 0));
		*(slash ? slash : path) = 0;
	}
	*dev = there.dev;
	return there.exists ? 0 : -ENOENT;
}

int pfs_refresh_look_for(struct pfs_refresh *refresh, bool *unseen,
			 const struct pfs_source_record *record, const struct pfs_follower *node)
{
	struct search search = {.stored = record->dev};
	char path[PATH_MAX];
	uint64_t above;
	dev_t dev;

	(void)snprintf(path, sizeof(path), "%s", (const char *)record->path);
	PFS_TRY(look_down(refresh, &search, &above, path));
	if (S_ISDIR(node->attr.st_mode) && !search.unseen && !search.gone)
		PFS_TRY(look_at_node(refresh, &search, node, record, above));
	*unseen = search.unseen;
	if (search.unseen || search.gone)
		return 0;
	PFS_TRY(nearest_device(refresh, &dev, path));
	*unseen = !pfs_refresh_is_on(refresh, record->dev, dev);
	return 0;
}
