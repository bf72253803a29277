/* SPDX-License-Identifier: MIT */
/* Makes the changes in each directory: removes nodes that are gone, makes and changes others, and
 * sets the directory's own times last. */
#include "tools/refresh/refresh_impl.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"
#include "fs/change/change.h"
#include "fs/content/filesystem.h"
#include "tools/refresh/refresh_compare.h"

/* ---- what goes ---- */

static bool goes(const struct pfs_gone *gone)
{
	return !gone->present && !gone->claimed;
}

/* Returns true if the node is to lie elsewhere, or does already. */
static bool leaves(const struct pfs_gone *gone)
{
	return gone && gone->claimed && gone->found && gone->found->kind == PFS_FOUND_MOVED;
}

/* Marks nodes that stay: those that are not gone, and the directories that these lie in, unless
 * they leave. */
static void find_staying(struct pfs_refresh *refresh, struct pfs_below *list, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		const struct pfs_gone *gone = pfs_refresh_find(refresh, list[i].ino);

		if (!gone || !goes(gone))
			list[i].stays = true;
		if (list[i].stays && !leaves(gone))
			list[list[i].above].stays = true;
	}
}

/* Notes which directories stay with a gone node, and tells that it does if what stays is the
 * store's own, or was moved there. */
static int note_staying(struct pfs_refresh *refresh, struct pfs_gone *top)
{
	struct pfs_below *list = NULL;
	size_t n = 0;
	int error = pfs_refresh_list_below(refresh, &list, &n, top->by_prime.prime);
	bool own = false;

	if (!error)
		find_staying(refresh, list, n);
	for (size_t i = 0; i < n && !error; i++) {
		struct pfs_gone *gone = pfs_refresh_find(refresh, list[i].ino);

		own |= !gone;
		if (gone && goes(gone))
			gone->stays = list[i].stays;
	}
	free(list);
	if (!error && top->stays && own)
		error = pfs_refresh_tell(refresh, PFS_REFRESH_KEPT, top->by_prime.prime, NULL, NULL,
					 "something in it is not gone");
	return error == -ESTALE ? 0 : error;
}

static int note_all_staying(struct pfs_refresh *refresh, struct pfs_gone *gone)
{
	for (; gone; gone = gone->next)
		if (goes(gone) && S_ISDIR(gone->mode))
			PFS_TRY(note_staying(refresh, gone));
	return 0;
}

int pfs_refresh_note_staying(struct pfs_refresh *refresh)
{
	for (const struct pfs_refresh_place *place = refresh->kept; place; place = place->next)
		PFS_TRY(note_all_staying(refresh, place->gone));
	return note_all_staying(refresh, refresh->loose);
}

bool pfs_refresh_is_marked(const struct pfs_refresh *refresh, uint64_t ino)
{
	return pfs_tree_getxattr(refresh->tree, NULL, 0, ino, "user." PFS_REFRESH_GONE) >= 0;
}

/* Sets the attribute PFS_REFRESH_GONE, or removes it (text NULL). */
static int mark(struct pfs_refresh *refresh, uint64_t ino, const char *text)
{
	const struct pfs_attr attr = {
		.name = PFS_REFRESH_GONE,
		.name_len = sizeof(PFS_REFRESH_GONE) - 1,
		.text = text,
		.text_len = text ? (uint32_t)strlen(text) : 0,
		.type = PFS_ATTR_TEXT,
	};
	int error = pfs_refresh_is_marked(refresh, ino) == !text
			    ? pfs_attr_change_ours(refresh->tree, ino, &attr)
			    : 0;

	return error == -ESTALE ? 0 : error; /* removed meanwhile */
}

#define MARK_SIZE 64 /* bytes of the time in a mark */

/* Gives the nodes that go the attribute PFS_REFRESH_GONE, which has the time. If the directory that
 * they are missed in has moved, so do their records, or the next refresh would find that the store
 * has moved them. */
static int mark_gone(struct pfs_refresh *refresh, const struct pfs_refresh_place *place,
		     const struct pfs_below *list, size_t n)
{
	time_t now = time(NULL);
	char text[MARK_SIZE];
	struct tm utc;

	(void)gmtime_r(&now, &utc);
	(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (size_t i = 0; i < n; i++) {
		if (list[i].stays)
			continue;
		PFS_TRY(mark(refresh, list[i].ino, text));
		if (place && place->old_path)
			PFS_TRY(pfs_refresh_move_record(refresh, list[i].ino, place->old_path,
							place->dir->path));
	}
	return 0;
}

/* Gets the length of the node's mark; 0: it has none. */
static size_t mark_of(const struct pfs_refresh *refresh, char text[MARK_SIZE], uint64_t ino)
{
	ssize_t len = pfs_tree_getxattr(refresh->tree, text, MARK_SIZE, ino,
					"user." PFS_REFRESH_GONE);

	return len < 0 ? 0 : (size_t)len;
}

/* Removes the mark of a directory, and of what lies below it, got the mark with it, and is not
 * gone: nothing in a directory that has only been away shows that it is back. */
static int unmark_directory(struct pfs_refresh *refresh, uint64_t ino)
{
	struct pfs_below *list = NULL;
	size_t n = 0, len;
	char text[MARK_SIZE], other[MARK_SIZE];
	int error = 0;

	len = mark_of(refresh, text, ino);
	if (len)
		error = pfs_refresh_list_below(refresh, &list, &n, ino);
	for (size_t i = 1; i < n && !error; i++) {
		const struct pfs_gone *gone = pfs_refresh_find(refresh, list[i].ino);

		if ((!gone || !goes(gone)) && mark_of(refresh, other, list[i].ino) == len &&
		    memcmp(text, other, len) == 0)
			error = mark(refresh, list[i].ino, NULL);
	}
	free(list);
	return error ? error : mark(refresh, ino, NULL);
}

/* Sets *left if nodes have changed meanwhile: all stay until the next refresh. */
static int remove_listed(struct pfs_refresh *refresh, bool *left, const struct pfs_below *list,
			 size_t n)
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
	*left = error == -EAGAIN || error == -ENOTEMPTY;
	return *left ? 0 : error;
}

/* Clears the times in the directory's record: it has not been read. */
static int forget_times(struct pfs_refresh *refresh, uint64_t ino, const struct stat *node)
{
	struct pfs_source_record record;
	const struct pfs_taking taking = {
		.record = &record,
		.attr = node,
		.flags_cleared = PFS_NODE_SETTLED,
	};
	char path[PATH_MAX];
	int error = pfs_follow_record(refresh->tree, &record, path, ino);

	if (!error && (record.ctime.sec || record.ctime.nsec)) {
		record.mtime = record.ctime = (struct pfs_time){.sec = 0};
		error = pfs_follow_take(refresh->tree, ino, &taking);
	}
	return error == -ENOENT || error == -ESTALE ? 0 : error;
}

/* What a refresh has removed from a directory that stays, the store has not: if that directory is
 * found after all, all in it is new. */
static int forget_staying(struct pfs_refresh *refresh, const struct pfs_below *list, size_t n)
{
	struct pfs_follower node;

	for (size_t i = 0; i < n; i++) {
		const struct pfs_gone *gone = pfs_refresh_find(refresh, list[i].ino);

		if (list[i].stays && gone && goes(gone) && S_ISDIR(gone->mode) &&
		    !pfs_follow_node(refresh->tree, &node, list[i].ino))
			PFS_TRY(forget_times(refresh, list[i].ino, &node.attr));
	}
	return 0;
}

/* Removes a gone node and what goes below it, or marks them if options->keep is set. Sets *left if
 * that is left to the next refresh. place: where it is missed, or NULL. */
static int remove_one(struct pfs_refresh *refresh, bool *left, const struct pfs_gone *gone,
		      const struct pfs_refresh_place *place)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	struct pfs_below *list = NULL;
	size_t n = 0;
	int error = pfs_refresh_list_below(refresh, &list, &n, gone->by_prime.prime);

	if (!error) {
		find_staying(refresh, list, n);
		error = refresh->options->keep ? mark_gone(refresh, place, list, n)
					       : remove_listed(refresh, left, list, n);
	}
	if (!error && !*left && !refresh->options->keep)
		error = forget_staying(refresh, list, n);
	free(list);
	if (*left && watcher)
		watcher->left(watcher->arg, 0);
	return error == -ESTALE ? 0 : error;
}

static int remove_gone(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	for (const struct pfs_gone *gone = place->gone; gone; gone = gone->next) {
		bool left = false;

		if (goes(gone))
			PFS_TRY(remove_one(refresh, &left, gone, place));
		place->unfinished |= left;
	}
	return 0;
}

/* Gives the directory that such a node lay in the times back that it had. The next refresh reads
 * its listing again: if the source changed meanwhile, it may have the original. */
static int restore_above(struct pfs_refresh *refresh, uint64_t above, const struct stat *before)
{
	const struct pfs_refresh_watcher *watcher = refresh->options->watcher;
	const struct pfs_taking taking = {
		.attr = before,
		.set = PFS_SET_MTIME | PFS_SET_CTIME,
		.flags_cleared = PFS_NODE_SETTLED,
	};

	if (watcher)
		watcher->left(watcher->arg, 0);
	return pfs_follow_take(refresh->tree, above, &taking);
}

/* Removes a gone node that has no place. The directory that it lies in takes nothing over, and
 * keeps its times, since others would say that the store has changed it. */
static int remove_loose(struct pfs_refresh *refresh, const struct pfs_gone *gone)
{
	uint64_t above = pfs_follow_parent(refresh->tree, gone->by_prime.prime);
	struct pfs_follower before;
	bool left = false;
	int error;

	PFS_TRY(pfs_refresh_hold_loose(refresh, gone));
	error = pfs_follow_node(refresh->tree, &before, above);
	if (!error)
		error = remove_one(refresh, &left, gone, NULL);
	if (!error && !refresh->options->keep)
		error = restore_above(refresh, above, &before.attr);
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
		found->place->dir->unread = true;
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
		error = S_ISDIR(entry->attr.st_mode) ? unmark_directory(refresh, found->ino)
						     : mark(refresh, found->ino, NULL);
	return error == -ESTALE ? 0 : error;
}

/* Gives the node what it takes over from the entry. unfinished: the next refresh is to read the
 * directory again, so its record gets no times. partly: it was read, but not each of its entries;
 * the next refresh reads its listing again, and what the store has removed stays away. */
static int take(struct pfs_refresh *refresh, const struct pfs_finding *found, bool unfinished,
		bool partly)
{
	const struct stat *attr = &found->entry->attr;
	bool is_new = found->kind == PFS_FOUND_NEW, is_file = S_ISREG(attr->st_mode);
	struct pfs_source_record record;
	struct pfs_taking taking = {.attr = attr, .set = found->set, .another = found->another};
	char path[PATH_MAX];
	size_t len;
	int error;

	if (pfs_refresh_path_of(path, found, &len)) {
		PFS_TRY(pfs_refresh_record_of(refresh, &record, found, path, len));
		taking.record = &record;
		taking.flags_set = is_new && is_file ? PFS_NODE_LINKED : 0;
	} else if (is_new && is_file) {
		taking.flags_set = PFS_NODE_NODATA;
	}
	if (S_ISDIR(attr->st_mode))
		take_flags(&taking, found->entry, !unfinished && !partly && !refresh->otherwise);
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
	if (pfs_refresh_path_of(path, found, &len)) {
		PFS_TRY(pfs_refresh_record_of(refresh, &record, found, path, len));
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
	return take(refresh, found, false, false);
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
	return take(refresh, own, place->unfinished || place->unread, place->dir->unread);
}

static int apply_place(struct pfs_refresh *refresh, struct pfs_refresh_place *place)
{
	PFS_TRY(remove_gone(refresh, place));
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

/* If this refresh ends early, the next one finds a place that has not been read, not one that the
 * store has changed, until the place takes its own times over. */
static int forget_place(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	return !place->ino || !place->own || place->own->kind == PFS_FOUND_LEFT || place->touched
		       ? 0
		       : forget_times(refresh, place->ino, &place->before);
}

int pfs_refresh_apply(struct pfs_refresh *refresh)
{
	const struct pfs_refresh_place *kept;
	int error;

	if (!refresh->kept && !refresh->found && !refresh->loose && !refresh->source_changed &&
	    !pfs_refresh_tells_mounts(refresh))
		return 0; /* nothing has changed, so there is no need to wait for the disk */
	error = pfs_refresh_put_folders(refresh);
	if (!error)
		error = fetch_primes(refresh);
	for (kept = refresh->kept; kept && !error; kept = kept->next)
		error = forget_place(refresh, kept);
	if (!error)
		error = pfs_refresh_move(refresh);
	if (!error)
		error = pfs_refresh_move_records(refresh);
	for (struct pfs_refresh_place *place = refresh->kept; place && !error;
	     place = place->next) {
		error = pfs_refresh_hold_place(refresh, place);
		if (error)
			break;
		error = apply_place(refresh, place);
		pfs_follow_let_go(refresh->tree);
	}
	if (!error)
		error = remove_all_loose(refresh);
	if (!error)
		error = pfs_follow_end(refresh->tree);
	return error ? error : pfs_refresh_note_mounts(refresh);
}
