/* SPDX-License-Identifier: MIT */
/* Records of originals: of those found, of what has moved without being looked at, and of folders
 * on the way to them. */
#include "tools/refresh/refresh_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* ---- records ---- */

unsigned pfs_what_to_take(const struct pfs_source_record *record, const struct stat *node,
			  const struct stat *now)
{
	unsigned set = 0;

	set |= record->mode != now->st_mode ? PFS_SET_MODE : 0;
	set |= record->uid != now->st_uid ? PFS_SET_UID : 0;
	set |= record->gid != now->st_gid ? PFS_SET_GID : 0;
	set |= S_ISREG(now->st_mode) ? PFS_SET_SIZE : 0;
	set |= !pfs_is_time(record->mtime, now->st_mtim) ? PFS_SET_MTIME : 0;
	set |= !pfs_is_later(node->st_ctim, now->st_ctim) ? PFS_SET_CTIME : 0;
	return set;
}

bool pfs_is_as_recorded(const struct pfs_source_record *record, const struct stat *now)
{
	return record->mode == now->st_mode && record->uid == now->st_uid &&
	       record->gid == now->st_gid && pfs_is_time(record->mtime, now->st_mtim) &&
	       pfs_is_time(record->ctime, now->st_ctim) &&
	       (!S_ISREG(now->st_mode) || record->size == now->st_size);
}

int pfs_refresh_record_of(struct pfs_refresh *refresh, struct pfs_source_record *out,
			  const struct pfs_finding *found, const char *path, size_t len)
{
	const struct stat *attr = &found->entry->attr;

	*out = (struct pfs_source_record){
		.prime = found->ino,
		.root = refresh->root.id,
		.path = path,
		.path_len = len,
		.ino = attr->st_ino,
		.size = attr->st_size,
		.mtime = pfs_time_of(attr->st_mtim),
		.ctime = pfs_time_of(attr->st_ctim),
		.mode = attr->st_mode,
		.uid = attr->st_uid,
		.gid = attr->st_gid,
	};

	pfs_crawl_mark(found->batch, &out->mark, found->entry);
	return pfs_refresh_number(refresh, &out->dev, attr->st_dev);
}

/* ---- what lies below a node ---- */

int pfs_refresh_list_below(struct pfs_refresh *refresh, struct pfs_below **out, size_t *n,
			   uint64_t top)
{
	struct pfs_followers children = {.n = 0};
	size_t capacity = 0;
	int error = pfs_grow(out, &capacity, 1, sizeof(**out));

	if (!error)
		(*out)[(*n)++] = (struct pfs_below){.ino = top};
	for (size_t i = 0; i < *n && !error; i++) {
		error = pfs_follow_list(refresh->tree, &children, (*out)[i].ino, false);
		if (error == -ENOTDIR) {
			error = 0;
			continue;
		}
		for (size_t j = 0; j < children.n && !error; j++) {
			error = pfs_grow(out, &capacity, *n + 1, sizeof(**out));
			if (!error)
				(*out)[(*n)++] =
					(struct pfs_below){.ino = children.list[j].ino, .above = i};
		}
	}
	pfs_followers_finish(&children);
	return error;
}

/* ---- what has moved with a directory, and is not looked at ---- */

/* A node of which all originals below the path `from` are below `to` now. */
struct moved {
	uint64_t ino;
	const char *from, *to;
};

/* Gets the record that a node has then. Returns 1, or 0 if it keeps its own. */
static int move_record(struct pfs_refresh *refresh, struct pfs_source_record *record,
		       char path[PATH_MAX], uint64_t ino, const struct moved *moved)
{
	size_t from = strlen(moved->from), to = strlen(moved->to);
	char was[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, record, was, ino);

	if (error || record->root != refresh->root.id || record->path_len < from ||
	    memcmp(was, moved->from, from) != 0 || to + record->path_len - from >= PATH_MAX ||
	    (record->path_len > from && was[from] != '/'))
		return error == -ENOENT ? 0 : error;
	memcpy(path, moved->to, to);
	memcpy(path + to, was + from, record->path_len - from);
	record->path_len += to - from;
	path[record->path_len] = 0;
	record->path = path;
	return 1;
}

/* Calls fn with the records of the node and of all below it, its own last: until that is written,
 * the next refresh finds them to have moved. */
static int each_below(struct pfs_refresh *refresh, const struct moved *moved,
		      int (*fn)(void *arg, uint64_t ino, const struct pfs_source_record *record),
		      void *arg)
{
	struct pfs_below *list = NULL;
	size_t n = 0;
	int error = pfs_refresh_list_below(refresh, &list, &n, moved->ino);

	while (!error && n) {
		uint64_t ino = list[--n].ino;
		struct pfs_source_record record;
		char path[PATH_MAX];

		error = move_record(refresh, &record, path, ino, moved);
		if (error == 1)
			error = fn(arg, ino, &record);
	}
	free(list);
	return error == -ESTALE ? 0 : error;
}

/* Does that for each folder whose filesystem is not looked at, or that cannot be, and that is
 * elsewhere in the source than its record says; and for what the store has moved likewise. */
static int each_moved(struct pfs_refresh *refresh,
		      int (*fn)(void *arg, uint64_t ino, const struct pfs_source_record *record),
		      void *arg)
{
	const struct pfs_displaced *displaced = refresh->displaced;

	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		const struct pfs_gone *gone =
			found->over ? pfs_refresh_find(refresh, found->over) : NULL;
		char path[PATH_MAX];
		size_t len;

		if (gone && gone->stands == found && !gone->claimed &&
		    pfs_refresh_path_of(path, found, &len) && strcmp(path, gone->path) != 0)
			PFS_TRY(each_below(refresh, &(struct moved){found->over, gone->path, path},
					   fn, arg));
	}
	for (; displaced; displaced = displaced->next)
		if (displaced->unread)
			PFS_TRY(each_below(refresh,
					   &(struct moved){displaced->by_prime.prime,
							   displaced->path, displaced->now},
					   fn, arg));
	return 0;
}

static int take_record(void *arg, uint64_t ino, const struct pfs_source_record *record)
{
	const struct pfs_refresh *refresh = arg;
	struct pfs_follower node;

	PFS_TRY(pfs_follow_node(refresh->tree, &node, ino));
	return pfs_follow_take(refresh->tree, ino,
			       &(struct pfs_taking){.record = record, .attr = &node.attr});
}

int pfs_refresh_move_records(struct pfs_refresh *refresh)
{
	return each_moved(refresh, take_record, refresh);
}

int pfs_refresh_move_record(struct pfs_refresh *refresh, uint64_t ino, const char *from,
			    const char *to)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	int error = move_record(refresh, &record, path, ino, &(struct moved){ino, from, to});

	if (error == 1)
		error = take_record(refresh, ino, &record);
	return error == -ESTALE ? 0 : error;
}

/* ---- folders on the way to originals ---- */

struct folders {
	struct pfs_source_dir *list;
	size_t n, capacity;
};

static int add_record(void *arg, uint64_t ino PFS_UNUSED, const struct pfs_source_record *record)
{
	struct folders *folders = arg;
	char *copy;

	if (!S_ISDIR(record->mode))
		return 0;
	PFS_TRY(pfs_grow(&folders->list, &folders->capacity, folders->n + 1,
			 sizeof(*folders->list)));
	copy = strndup(record->path, record->path_len);
	if (!copy)
		return -ENOMEM;
	folders->list[folders->n++] = (struct pfs_source_dir){
		.root = record->root,
		.path = copy,
		.path_len = record->path_len,
		.dev = record->dev,
		.ino = record->ino,
		.mark = record->mark,
		.mode = record->mode,
		.uid = record->uid,
		.gid = record->gid,
	};
	return 0;
}

/* Lists the finding if it is a folder that needs a record. */
static int add_folder(struct pfs_refresh *refresh, struct folders *folders,
		      const struct pfs_finding *found)
{
	struct pfs_source_record record;
	char path[PATH_MAX];
	size_t len;

	if (found->kind == PFS_FOUND_LEFT || !pfs_refresh_path_of(path, found, &len) || !len)
		return 0;
	PFS_TRY(pfs_refresh_record_of(refresh, &record, found, path, len));
	return add_record(folders, found->ino, &record);
}

int pfs_refresh_put_folders(struct pfs_refresh *refresh)
{
	struct folders folders = {.n = 0};
	const struct pfs_finding *found;
	int error = 0;

	for (found = refresh->found; found && !error; found = found->following)
		error = add_folder(refresh, &folders, found);
	if (!error)
		error = each_moved(refresh, add_record, &folders);
	if (!error) {
		const struct pfs_follow_folders put = {
			folders.list, folders.n, refresh->source_changed ? &refresh->source : NULL};

		error = pfs_follow_put_folders(refresh->tree, &put);
	}
	while (folders.n)
		free((void *)folders.list[--folders.n].path);
	free(folders.list);
	return error;
}
