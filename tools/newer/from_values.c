/* SPDX-License-Identifier: MIT */
/* Attributes, content, mode, owner and times of one node. */
#include "tools/newer/from_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/content/follow.h"

#define PIECE ((size_t)256 << 10)
#define RIGHTS (PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID)

/* ---- attributes ---- */

/* Gets the value with a NUL behind it; the caller frees *out, which is NULL if there is none. */
static int get_attribute(struct pfs_tree *tree, char **out, size_t *len, uint64_t ino,
			 const char *name)
{
	ssize_t size = pfs_tree_getxattr(tree, NULL, 0, ino, name);

	*out = NULL;
	*len = 0;
	if (size < 0)
		return size == -ENODATA ? 0 : (int)size;
	*out = calloc(1, (size_t)size + 1);
	if (!*out)
		return -ENOMEM;
	size = size ? pfs_tree_getxattr(tree, *out, (size_t)size, ino, name) : 0;
	*len = size < 0 ? 0 : (size_t)size;
	return size < 0 ? (int)size : 0;
}

static int list_attributes(struct pfs_tree *tree, char **out, size_t *len, uint64_t ino)
{
	ssize_t size = pfs_tree_listxattr(tree, NULL, 0, ino);

	*out = NULL;
	*len = 0;
	if (size <= 0)
		return size == -EPERM || size == -EOPNOTSUPP ? 0 : (int)size;
	*out = malloc((size_t)size);
	if (!*out)
		return -ENOMEM;
	size = pfs_tree_listxattr(tree, *out, (size_t)size, ino);
	*len = size < 0 ? 0 : (size_t)size;
	return size < 0 ? (int)size : 0;
}

static bool is_virtual(const char *name)
{
	return strncmp(name, "user.primefs.", 13) == 0;
}

static int note_value(struct pfs_from_lists *from, uint32_t newer, const char *column,
		      char **before, char **after)
{
	struct pfs_from_node *node = &from->newer.nodes[newer];
	struct pfs_from_note *note;

	node->changes = true;
	PFS_TRY(pfs_from_note(from, &note, PFS_FROM_CHANGED, node->other, newer));
	note->column = strdup(column);
	if (before)
		note->before = PFS_TAKE(*before);
	if (after)
		note->after = PFS_TAKE(*after);
	return note->column ? 0 : -ENOMEM;
}

static int compare_attribute(struct pfs_from_lists *from, uint32_t newer, const char *name)
{
	const struct pfs_from_node *node = &from->newer.nodes[newer];
	char *before PFS_FREE = NULL, *after PFS_FREE = NULL;
	size_t before_len, after_len;

	PFS_TRY(get_attribute(from->options.tree, &before, &before_len, node->place, name));
	PFS_TRY(get_attribute(from->options.newer, &after, &after_len, node->ino, name));
	if (!before == !after && before_len == after_len &&
	    (!before || memcmp(before, after, before_len) == 0))
		return 0;
	return note_value(from, newer, name + sizeof("user.") - 1, &before, &after);
}

/* Tells whether the newer tree has a column of this name. */
struct column {
	const char *name;
	bool found;
};

static int find_column(void *arg, const void *name, size_t len)
{
	struct column *column = arg;

	column->found |= strlen(column->name) == len && memcmp(column->name, name, len) == 0;
	return 0;
}

static int is_column(const struct pfs_from_lists *from, bool *out, const char *name)
{
	struct column column = {.name = name + sizeof("user.") - 1};
	int error = pfs_tree_imported_columns(from->options.newer, find_column, &column);

	*out = column.found;
	return error;
}

static bool is_listed(const char *list, size_t len, const char *name)
{
	for (size_t at = 0; at < len; at += strlen(list + at) + 1)
		if (strcmp(list + at, name) == 0)
			return true;
	return false;
}

static int compare_attributes(struct pfs_from_lists *from, uint32_t newer)
{
	const struct pfs_from_node *node = &from->newer.nodes[newer];
	char *now PFS_FREE = NULL, *then PFS_FREE = NULL;
	size_t now_len, then_len;

	PFS_TRY(list_attributes(from->options.newer, &now, &now_len, node->ino));
	PFS_TRY(list_attributes(from->options.tree, &then, &then_len, node->place));
	for (size_t at = 0; at < now_len; at += strlen(now + at) + 1)
		if (!is_virtual(now + at))
			PFS_TRY(compare_attribute(from, newer, now + at));
	for (size_t at = 0; at < then_len; at += strlen(then + at) + 1) {
		bool ours = false;

		if (!is_virtual(then + at) && !is_listed(now, now_len, then + at))
			PFS_TRY(is_column(from, &ours, then + at));
		if (ours)
			PFS_TRY(compare_attribute(from, newer, then + at));
	}
	return 0;
}

/* ---- what archives say ---- */

static int compare_number(struct pfs_from_lists *from, uint32_t newer, const char *column,
			  long long before, long long after)
{
	char *old PFS_FREE = NULL, *now PFS_FREE = NULL;

	if (before == after)
		return 0;
	if (asprintf(&old, "%lld", before) < 0 || asprintf(&now, "%lld", after) < 0)
		return -ENOMEM;
	return note_value(from, newer, column, &old, &now);
}

/* Modes are told as chmod(1) takes them. */
static int compare_mode(struct pfs_from_lists *from, uint32_t newer, mode_t before, mode_t after)
{
	char *old PFS_FREE = NULL, *now PFS_FREE = NULL;

	before &= 07777;
	after &= 07777;
	if (before == after)
		return 0;
	if (asprintf(&old, "%04o", before) < 0 || asprintf(&now, "%04o", after) < 0)
		return -ENOMEM;
	return note_value(from, newer, "mode", &old, &now);
}

static int compare_target(struct pfs_from_lists *from, uint32_t newer)
{
	const struct pfs_from_node *node = &from->newer.nodes[newer];
	char *before PFS_FREE = calloc(1, PATH_MAX), *after PFS_FREE = calloc(1, PATH_MAX);

	if (!before || !after)
		return -ENOMEM;
	PFS_TRY(pfs_tree_readlink(from->options.tree, before, node->place));
	PFS_TRY(pfs_tree_readlink(from->options.newer, after, node->ino));
	return strcmp(before, after) == 0 ? 0 : note_value(from, newer, "target", &before, &after);
}

static int compare_archived(struct pfs_from_lists *from, uint32_t newer)
{
	const struct pfs_from_node *node = &from->newer.nodes[newer];
	const struct stat *old = &from->old.nodes[node->other].attr, *now = &node->attr;

	PFS_TRY(compare_mode(from, newer, old->st_mode, now->st_mode));
	PFS_TRY(compare_number(from, newer, "uid", old->st_uid, now->st_uid));
	PFS_TRY(compare_number(from, newer, "gid", old->st_gid, now->st_gid));
	if (S_ISLNK(now->st_mode))
		return compare_target(from, newer);
	if (!S_ISREG(now->st_mode))
		return 0;
	PFS_TRY(compare_number(from, newer, "size", old->st_size, now->st_size));
	return old->st_mtim.tv_nsec != now->st_mtim.tv_nsec ||
			       old->st_mtim.tv_sec != now->st_mtim.tv_sec
		       ? compare_number(from, newer, "mtime", old->st_mtim.tv_sec,
					now->st_mtim.tv_sec)
		       : 0;
}

int pfs_from_compare_values(struct pfs_from_lists *from, uint32_t newer)
{
	unsigned mode = from->newer.nodes[newer].attr.st_mode;

	if (S_ISREG(mode) || S_ISDIR(mode))
		PFS_TRY(compare_attributes(from, newer));
	return from->options.archive ? compare_archived(from, newer) : 0;
}

/* ---- taking over ---- */

static int set_attribute(struct pfs_from_lists *from, uint64_t ino, const char *name,
			 const char *value, size_t len)
{
	int error = value ? pfs_tree_setxattr(from->options.tree, ino, name, value, len, 0)
			  : pfs_tree_removexattr(from->options.tree, ino, name);

	return error == -ENODATA ? 0 : error;
}

/* Copies the listed attributes of a node of the tree. */
static int copy_attributes(struct pfs_from_lists *from, uint64_t to, struct pfs_tree *tree,
			   uint64_t of, const char *list, size_t len)
{
	for (size_t at = 0; at < len; at += strlen(list + at) + 1) {
		char *value PFS_FREE = NULL;
		size_t value_len;

		if (is_virtual(list + at))
			continue;
		PFS_TRY(get_attribute(tree, &value, &value_len, of, list + at));
		PFS_TRY(set_attribute(from, to, list + at, value, value_len));
	}
	return 0;
}

/* Columns that have no value any more. */
static int remove_attributes(struct pfs_from_lists *from, uint64_t ino, const char *list,
			     size_t len)
{
	char *old PFS_FREE = NULL;
	size_t old_len;

	PFS_TRY(list_attributes(from->options.tree, &old, &old_len, ino));
	for (size_t at = 0; at < old_len; at += strlen(old + at) + 1) {
		bool ours = false;

		if (!is_virtual(old + at) && !is_listed(list, len, old + at))
			PFS_TRY(is_column(from, &ours, old + at));
		if (ours)
			PFS_TRY(set_attribute(from, ino, old + at, NULL, 0));
	}
	return 0;
}

static int take_attributes(struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	char *list PFS_FREE = NULL;
	size_t len;

	PFS_TRY(list_attributes(from->options.newer, &list, &len, node->ino));
	PFS_TRY(copy_attributes(from, node->place, from->options.newer, node->ino, list, len));
	return remove_attributes(from, node->place, list, len);
}

int pfs_from_take_attributes(struct pfs_from_lists *from, uint64_t to, uint64_t of)
{
	char *list PFS_FREE = NULL;
	size_t len;

	PFS_TRY(list_attributes(from->options.tree, &list, &len, of));
	return copy_attributes(from, to, from->options.tree, of, list, len);
}

static int copy_content(struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	const struct stat empty = {.st_size = 0};
	const struct pfs_caller caller = {.uid = geteuid(), .gid = getegid()};
	char *piece PFS_FREE = malloc(PIECE);
	struct pfs_entry entry;
	int64_t at = 0;
	ssize_t got;

	if (!piece)
		return -ENOMEM;
	PFS_TRY(pfs_tree_setattr(from->options.tree, &entry, node->place, &empty, PFS_SET_SIZE,
				 &caller));
	while ((got = pfs_tree_read(from->options.newer, piece, PIECE, node->ino, at,
				    PFS_READ_NOATIME)) > 0) {
		for (ssize_t done = 0, wrote; done < got; done += wrote) {
			wrote = pfs_tree_write(from->options.tree, node->place, piece + done,
					       (size_t)(got - done), at + done, true, false);
			if (wrote < 0)
				return (int)wrote;
		}
		at += got;
	}
	return (int)got;
}

int pfs_from_take_values(struct pfs_from_lists *from, const struct pfs_from_node *node, bool made)
{
	struct pfs_taking taking = {
		.attr = &node->attr,
		.set = RIGHTS | PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME,
	};
	bool is_file = S_ISREG(node->attr.st_mode);
	struct pfs_follower newer;

	PFS_TRY(pfs_follow_node(from->options.newer, &newer, node->ino));
	if (made) {
		taking.flags_set = newer.flags & (PFS_NODE_ROW | PFS_NODE_NODATA);
		taking.set |= is_file && taking.flags_set ? PFS_SET_SIZE : 0;
	}
	if (is_file && from->options.archive)
		PFS_TRY(copy_content(from, node));
	if (made || from->options.archive)
		PFS_TRY(pfs_follow_take(from->options.tree, node->place, &taking));
	return is_file || S_ISDIR(node->attr.st_mode) ? take_attributes(from, node) : 0;
}
