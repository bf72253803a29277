/* SPDX-License-Identifier: MIT */
/* Makes the changes in each directory: removes nodes that are gone, makes and changes others, and
 * sets the directory's own times last. */
#include "tools/refresh/refresh_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/change/change.h"
#include "fs/content/filesystem.h"
#include "tools/refresh/refresh_compare.h"

/* ---- records ---- */

/* Gets the path of a finding in the source. Returns false if it is too long for a record. */
static bool path_of(char out[PATH_MAX], const struct pfs_finding *found, size_t *len)
{
	const struct pfs_crawl_dir *dir = found->place->dir;
	const char *slash = dir->path_len && *found->name ? "/" : "";
	int size = snprintf(out, PATH_MAX, "%s%s%s", dir->path, slash, found->name);

	*len = (size_t)size;
	return size < PATH_MAX;
}

static int record_of(struct pfs_refresh *refresh, struct pfs_source_record *out,
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

/* A gone node or one below it. Each is listed after the node that it lies in. */
struct below {
	uint64_t ino;
	size_t above; /* index of the node that it lies in; of the first: 0 */
	bool stays;
};

/* Lists the node `top` and all nodes below it. */
static int list_below(struct pfs_refresh *refresh, struct below **out, size_t *n, uint64_t top)
{
	struct pfs_followers children = {.n = 0};
	size_t capacity = 0;
	int error = pfs_grow(out, &capacity, 1, sizeof(**out));

	if (!error)
		(*out)[(*n)++] = (struct below){.ino = top};
	for (size_t i = 0; i < *n && !error; i++) {
		error = pfs_follow_list(refresh->tree, &children, (*out)[i].ino, false);
		if (error == -ENOTDIR) {
			error = 0;
			continue;
		}
		for (size_t j = 0; j < children.n && !error; j++) {
			error = pfs_grow(out, &capacity, *n + 1, sizeof(**out));
			if (!error)
				(*out)[(*n)++] = (struct below){.ino = children.list[j].ino,
								.above = i};
		}
	}
	pfs_followers_finish(&children);
	return error;
}

/* ---- folders whose filesystem is not looked at, and which have moved ---- */

/* Gets the record that the node has once what it lies in, `top`, is where the entry found is.
 * Returns 1, or 0 if it keeps its own. */
static int move_record(struct pfs_refresh *refresh, struct pfs_source_record *record,
		       char path[PATH_MAX], uint64_t ino, const struct pfs_gone *top)
{
	size_t from = top->record.path_len, to;
	char was[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, record, was, ino);

	if (error || record->root != refresh->root.id || record->path_len < from ||
	    memcmp(was, top->path, from) != 0 || !path_of(path, top->stands, &to) ||
	    to + record->path_len - from >= PATH_MAX ||
	    (record->path_len > from && was[from] != '/'))
		return error == -ENOENT ? 0 : error;
	memcpy(path + to, was + from, record->path_len - from);
	record->path = path;
	record->path_len += to - from;
	return 1;
}

/* Calls fn with the records of the node and of all below it, its own last: until that is written,
 * the next refresh finds them to have moved. */
static int each_below(struct pfs_refresh *refresh, const struct pfs_gone *top,
		      int (*fn)(void *arg, uint64_t ino, const struct pfs_source_record *record),
		      void *arg)
{
	struct below *list = NULL;
	size_t n = 0;
	int error = list_below(refresh, &list, &n, top->by_prime.prime);

	while (!error && n) {
		uint64_t ino = list[--n].ino;
		struct pfs_source_record record;
		char path[PATH_MAX];

		error = move_record(refresh, &record, path, ino, top);
		if (error == 1)
			error = fn(arg, ino, &record);
	}
	free(list);
	return error == -ESTALE ? 0 : error;
}

/* Does that for each such folder that is elsewhere in the source than its record says. */
static int each_moved(struct pfs_refresh *refresh,
		      int (*fn)(void *arg, uint64_t ino, const struct pfs_source_record *record),
		      void *arg)
{
	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		const struct pfs_gone *gone =
			found->over ? pfs_refresh_find(refresh, found->over) : NULL;
		char path[PATH_MAX];
		size_t len;

		if (gone && gone->stands == found && !gone->claimed && path_of(path, found, &len) &&
		    strcmp(path, gone->path) != 0)
			PFS_TRY(each_below(refresh, gone, fn, arg));
	}
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

	if (found->kind == PFS_FOUND_LEFT || !path_of(path, found, &len) || !len)
		return 0;
	PFS_TRY(record_of(refresh, &record, found, path, len));
	return add_record(folders, found->ino, &record);
}

/* Writes records of the folders found, before any file below them is linked. */
static int put_folders(struct pfs_refresh *refresh)
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

/* ---- what goes ---- */

/* Marks nodes that stay: those that are not gone, and the directories that these lie in. */
static void find_staying(struct pfs_refresh *refresh, struct below *list, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		const struct pfs_gone *gone = pfs_refresh_find(refresh, list[i].ino);

		if (!gone || gone->present || gone->claimed)
			list[i].stays = true;
		if (list[i].stays)
			list[list[i].above].stays = true;
	}
}

/* Gives the nodes that go the attribute PFS_REFRESH_GONE, which has the time. */
static int mark_gone(struct pfs_refresh *refresh, const struct below *list, size_t n)
{
	time_t now = time(NULL);
	char text[64];
	struct tm utc;

	(void)gmtime_r(&now, &utc);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (size_t i = 0; i < n; i++) {
		int error = list[i].stays ? 0
					  : pfs_tree_setxattr(refresh->tree, list[i].ino,
							      PFS_REFRESH_GONE, text, strlen(text),
							      XATTR_CREATE);

		/* it is marked already; or it is a symlink, which has no attributes */
		if (error && error != -EEXIST && error != -EPERM && error != -ESTALE)
			return error;
	}
	return 0;
}

static int remove_listed(struct pfs_refresh *refresh, const struct below *list, size_t n)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	struct pfs_change_set set = {.kind = PFS_CHANGE_REMOVE};
	char why[512];
	int error = pfs_grow(&set.list, &set.capacity, n, sizeof(*set.list));

	for (size_t i = 0; i < n && !error; i++)
		if (!list[i].stays)
			set.list[set.n++] = (struct pfs_change){.ino = list[i].ino};
	if (!error && set.n)
		error = pfs_tree_change(
			refresh->tree, &set,
			&(struct pfs_change_basis){.epoch = pfs_follow_epoch(refresh->tree)},
			&caller, why, sizeof(why));
	pfs_change_set_finish(&set);
	/* nodes have changed meanwhile: all stay until the next refresh */
	return error == -EAGAIN || error == -ENOTEMPTY ? 0 : error;
}

static bool goes(const struct pfs_gone *gone)
{
	return !gone->present && !gone->claimed;
}

/* Removes a gone node and what goes below it, or marks them if options->keep is set. */
static int remove_one(struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	struct below *list = NULL;
	size_t n = 0;
	int error = list_below(refresh, &list, &n, gone->by_prime.prime);

	if (!error) {
		find_staying(refresh, list, n);
		error = refresh->options->keep ? mark_gone(refresh, list, n)
					       : remove_listed(refresh, list, n);
	}
	free(list);
	return error == -ESTALE ? 0 : error;
}

static int remove_gone(struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	for (; gone; gone = gone->next)
		if (goes(gone))
			PFS_TRY(remove_one(refresh, gone));
	return 0;
}

/* Removes a gone node that has no place. The directory that it lies in takes nothing over, and
 * keeps its times, since others would say that the store has changed it. */
static int remove_loose(struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	uint64_t above = pfs_follow_parent(refresh->tree, gone->by_prime.prime);
	struct pfs_follower before;
	int error;

	PFS_TRY(pfs_refresh_reserve_loose(refresh, gone));
	pfs_follow_hold(refresh->tree);
	error = pfs_follow_node(refresh->tree, &before, above);
	if (!error)
		error = remove_one(refresh, gone);
	if (!error && !refresh->options->keep)
		error = pfs_refresh_restore(refresh, above, &before.attr);
	pfs_follow_let_go(refresh->tree);
	return error == -ESTALE ? 0 : error;
}

static int remove_all_loose(struct pfs_refresh *refresh)
{
	for (const struct pfs_gone *gone = refresh->loose; gone; gone = gone->next)
		if (goes(gone))
			PFS_TRY(remove_loose(refresh, gone));
	return 0;
}

/* ---- what comes ---- */

static int set_attributes(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	size_t at = found->entry->attrs;

	for (uint32_t i = 0; i < found->entry->n_attrs; i++) {
		char name[PFS_ATTR_NAME_MAX + 6];
		struct pfs_crawl_attr attr;
		int error;

		pfs_crawl_attr(found->batch, &attr, &at);
		(void)snprintf(name, sizeof(name), "user.%.*s", (int)attr.name_len, attr.name);
		error = pfs_tree_setxattr(refresh->tree, found->ino, name, attr.value,
					  attr.value_len, 0);
		if (error == -ENOSPC || error == -EROFS || error == -ENOMEM)
			return error;
	}
	return 0;
}

/* Makes a node other than a directory. If its name is taken, the finding is LEFT. */
static int make_node(struct pfs_refresh *refresh, struct pfs_finding *found)
{
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	const struct pfs_crawl_entry *entry = found->entry;
	const char *name = pfs_refresh_name(found->name);
	char target[PATH_MAX];
	struct pfs_entry made;
	int error;

	if (S_ISLNK(entry->attr.st_mode)) {
		memcpy(target, found->batch->bytes + entry->target, entry->target_len);
		target[entry->target_len] = 0;
		error = pfs_tree_symlink(refresh->tree, &made, found->place->ino, name, target,
					 &caller);
	} else {
		error = pfs_tree_make(refresh->tree, &made, found->place->ino, name,
				      entry->attr.st_mode, entry->attr.st_rdev, &caller);
	}
	if (error == -EEXIST || error == -ENOENT || error == -ESTALE) {
		found->kind = PFS_FOUND_LEFT;
		return 0;
	}
	if (error)
		return error;
	found->ino = made.attr.st_ino;
	pfs_tree_forget(refresh->tree, found->ino, 1);
	pfs_follow_tell(refresh->tree, found->place->ino, name);
	return 0;
}

/* Returns true if the node's record is of another file than the one found: that file came to the
 * old path of the original, and the node took its attributes over when somebody looked at the
 * node. */
static bool is_mistaken(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	struct pfs_source_record record;
	char path[PATH_MAX];

	return !pfs_follow_record(refresh->tree, &record, path, found->ino) &&
	       !pfs_refresh_same(refresh, found->batch, &record);
}

/* A directory takes over whether something is mounted there and, if it was read to its end, whether
 * its times tell when it is to be read again. */
static void take_flags(struct pfs_taking *taking, const struct pfs_crawl_entry *entry, bool read)
{
	taking->flags_cleared = PFS_NODE_SETTLED | PFS_NODE_MOUNT;
	if (entry->mounted)
		taking->flags_set |= PFS_NODE_MOUNT;
	if (entry->settled && read)
		taking->flags_set |= PFS_NODE_SETTLED;
}

/* Which filesystem is mounted there and not walked is not known. */
static int take_attributes(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	const struct pfs_crawl_entry *entry = found->entry;
	bool is_new = found->kind == PFS_FOUND_NEW;
	int error = 0;

	if (is_new || found->another)
		PFS_TRY(set_attributes(refresh, found));
	if (S_ISDIR(entry->attr.st_mode) && (entry->dir || !entry->mounted))
		error = pfs_filesystem_set(refresh->tree, found->ino, entry->filesystem);
	if (!error && !is_new)
		error = pfs_tree_removexattr(refresh->tree, found->ino, PFS_REFRESH_GONE);
	return error == -ENODATA || error == -EPERM || error == -ESTALE ? 0 : error;
}

/* Gives the node what it takes over from the entry. unfinished: the next refresh is to read the
 * directory again, so its record gets no times. */
static int take(struct pfs_refresh *refresh, const struct pfs_finding *found, bool unfinished)
{
	const struct stat *attr = &found->entry->attr;
	bool is_new = found->kind == PFS_FOUND_NEW, is_file = S_ISREG(attr->st_mode);
	struct pfs_source_record record;
	struct pfs_taking taking = {.attr = attr, .set = found->set, .another = found->another};
	char path[PATH_MAX];
	size_t len;
	int error;

	if (path_of(path, found, &len)) {
		PFS_TRY(record_of(refresh, &record, found, path, len));
		taking.record = &record;
		taking.flags_set = is_new && is_file ? PFS_NODE_LINKED : 0;
	} else if (is_new && is_file) {
		taking.flags_set = PFS_NODE_NODATA;
	}
	if (S_ISDIR(attr->st_mode))
		take_flags(&taking, found->entry, !unfinished && !refresh->otherwise);
	if (unfinished)
		record.mtime = record.ctime = (struct pfs_time){.sec = 0};
	if (!is_new && is_file && is_mistaken(refresh, found))
		taking.set = PFS_TAKE_ALL;
	PFS_TRY(take_attributes(refresh, found));
	error = pfs_follow_take(refresh->tree, found->ino, &taking);
	return error == -ESTALE ? 0 : error; /* removed meanwhile */
}

/* The record gets no times, so that the next refresh finds a directory that has not been read. */
int pfs_refresh_take_made(struct pfs_refresh *refresh, const struct pfs_finding *found)
{
	struct stat attr = found->entry->attr;
	struct pfs_source_record record;
	struct pfs_taking taking = {
		.attr = &attr,
		.set = found->set & ~(unsigned)PFS_SET_SIZE,
		.flags_set = found->entry->mounted ? PFS_NODE_MOUNT : 0,
	};
	char path[PATH_MAX];
	size_t len;

	attr.st_mtim = attr.st_ctim = (struct timespec){.tv_sec = 0};
	if (path_of(path, found, &len)) {
		PFS_TRY(record_of(refresh, &record, found, path, len));
		record.mtime = record.ctime = (struct pfs_time){.sec = 0};
		taking.record = &record;
	}
	return pfs_follow_take(refresh->tree, found->ino, &taking);
}

static int take_found(struct pfs_refresh *refresh, struct pfs_finding *found)
{
	bool directory = S_ISDIR(found->entry->attr.st_mode);

	if (found->kind == PFS_FOUND_NEW && !directory)
		PFS_TRY(make_node(refresh, found));
	/* take_own does it for a directory that was walked, when all its entries are there */
	if (found->kind == PFS_FOUND_LEFT || (directory && found->as) || !found->ino)
		return 0;
	return take(refresh, found, false);
}

/* Gives the place's node its old times back. They are not the source's, so the next refresh reads
 * the directory again. */
static int restore_times(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	return place->before.st_mode && !place->touched
		       ? pfs_refresh_restore(refresh, place->ino, &place->before)
		       : 0;
}

static int take_own(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	struct pfs_finding *own = place->own;

	if (!own || own->kind == PFS_FOUND_LEFT || !own->ino)
		return restore_times(refresh, place);
	if (place->touched && !own->another)
		own->set &= ~(unsigned)(PFS_SET_MTIME | PFS_SET_CTIME);
	else
		own->set |= PFS_SET_MTIME | PFS_SET_CTIME;
	return take(refresh, own, place->unfinished);
}

static int apply_place(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	PFS_TRY(remove_gone(refresh, place->gone));
	if (!place->ino)
		return 0;
	for (struct pfs_finding *found = place->found; found; found = found->next)
		PFS_TRY(take_found(refresh, found));
	return take_own(refresh, place);
}

/* Fetches primes for all new nodes, so that no group has to end when primes run out. */
static int fetch_primes(struct pfs_refresh *refresh)
{
	bool directories = false, others = false;

	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		bool is_new = found->kind == PFS_FOUND_NEW;
		bool directory = S_ISDIR(found->entry->attr.st_mode);

		directories |= is_new && directory;
		others |= is_new && !directory;
	}
	return pfs_follow_fetch(refresh->tree, directories, others);
}

/* Clears the times in the record of the place, until the place takes over its own. If this refresh
 * ends early, the next one finds a directory that has not been read, not one that the store has
 * changed. */
static int forget_times(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	struct pfs_source_record record;
	const struct pfs_taking taking = {
		.record = &record,
		.attr = &place->before,
		.flags_cleared = PFS_NODE_SETTLED,
	};
	char path[PATH_MAX];
	int error;

	if (!place->ino || !place->own || place->own->kind == PFS_FOUND_LEFT || place->touched)
		return 0;
	error = pfs_follow_record(refresh->tree, &record, path, place->ino);
	if (!error) {
		record.mtime = record.ctime = (struct pfs_time){.sec = 0};
		error = pfs_follow_take(refresh->tree, place->ino, &taking);
	}
	return error == -ENOENT || error == -ESTALE ? 0 : error;
}

int pfs_refresh_apply(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_place *kept;
	int error;

	if (!refresh->kept && !refresh->found && !refresh->loose && !refresh->source_changed &&
	    !pfs_refresh_tells_mounts(refresh))
		return 0; /* nothing has changed, so there is no need to wait for the disk */
	error = put_folders(refresh);
	if (!error)
		error = fetch_primes(refresh);
	for (kept = refresh->kept; kept && !error; kept = kept->next)
		error = forget_times(refresh, kept);
	if (!error)
		error = pfs_refresh_move(refresh);
	if (!error)
		error = each_moved(refresh, take_record, refresh);
	for (struct pfs_refresh_place *place = refresh->kept; place && !error;
	     place = place->next) {
		error = pfs_refresh_reserve_place(refresh, place);
		if (error)
			break;
		pfs_follow_hold(refresh->tree);
		error = apply_place(refresh, place);
		pfs_follow_let_go(refresh->tree);
	}
	if (!error)
		error = remove_all_loose(refresh);
	if (!error)
		error = pfs_follow_end(refresh->tree);
	return error ? error : pfs_refresh_note_mounts(refresh);
}
