/* SPDX-License-Identifier: MIT */
/* tests/unit/scan_util.h - random trees, and what naive loops find in them. */
#ifndef PFS_TESTS_UNIT_SCAN_UTIL_H
#define PFS_TESTS_UNIT_SCAN_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/nodes/scan.h"
#include "fs/nodes/visible.h"
#include "tests/ref/random.h"
#include "tests/ref/temp_store.h"

struct seen {
	uint64_t ino;
	struct stat attr;
	uint32_t slot, depth;
	size_t parent; /* index; its own at the root */
	char *path, *name;
	char *target; /* NULL: none */
	int64_t count, size, blocks; /* of all under it, itself included */
	struct timespec newest;
};

/* The nodes in pre-order, siblings in byte order: as pfs_tree_walk has them. */
struct model {
	struct pfs_tree *tree;
	struct seen *seen;
	size_t n, capacity;
};

static uint64_t random_state;

static uint32_t rnd(uint32_t n)
{
	return random_below(&random_state, n);
}

static int note_node(void *arg, const struct pfs_walk_node *node)
{
	struct model *model = arg;
	struct seen seen = {.ino = node->entry.attr.st_ino, .attr = node->entry.attr};

	assert_true(asprintf(&seen.path, "/%s", node->path) > 0);
	seen.name = strrchr(seen.path, '/') + 1;
	seen.depth = node->depth;
	seen.parent = model->n ? model->n - 1 : 0;
	while (seen.parent && model->seen[seen.parent].depth >= seen.depth)
		seen.parent = model->seen[seen.parent].parent;
	assert_int_equal(pfs_grow(&model->seen, &model->capacity, model->n + 1, sizeof(seen)), 0);
	model->seen[model->n++] = seen;
	return 0;
}

static void model_forget(struct model *model)
{
	for (size_t i = 0; i < model->n; i++) {
		free(model->seen[i].path);
		free(model->seen[i].target);
	}
	free(model->seen);
	*model = (struct model){.tree = model->tree};
}

static bool is_newer(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void add_up(struct model *model)
{
	for (size_t i = 0; i < model->n; i++) {
		struct seen *seen = &model->seen[i];

		seen->count = 1;
		seen->size = S_ISDIR(seen->attr.st_mode) ? 0 : seen->attr.st_size;
		seen->blocks = seen->attr.st_blocks;
		seen->newest = seen->attr.st_mtim;
	}
	for (size_t i = model->n; i-- > 1;) {
		struct seen *seen = &model->seen[i], *parent = &model->seen[seen->parent];

		parent->count += seen->count;
		parent->size += seen->size;
		parent->blocks += seen->blocks;
		if (is_newer(seen->newest, parent->newest))
			parent->newest = seen->newest;
	}
}

/* Looks at the tree anew. */
static void model_look(struct model *model, struct pfs_tree *tree)
{
	char target[PATH_MAX];

	model_forget(model);
	model->tree = tree;
	assert_int_equal(pfs_tree_walk(tree, PFS_ROOT_PRIME, note_node, model), 0);
	for (size_t i = 0; i < model->n; i++) {
		if (!S_ISLNK(model->seen[i].attr.st_mode))
			continue;
		assert_int_equal(pfs_tree_readlink(tree, target, model->seen[i].ino), 0);
		model->seen[i].target = strdup(target);
	}
	add_up(model);
	(void)pfs_scan_lock(tree, __func__);
	for (size_t i = 0; i < model->n; i++)
		model->seen[i].slot = pfs_scan_slot_of(tree, model->seen[i].ino);
	pfs_scan_unlock(tree);
}

static inline bool model_is_under(const struct model *model, size_t i, size_t top)
{
	while (i != top && i)
		i = model->seen[i].parent;
	return i == top;
}

/* ---- random trees ---- */

/* Few letters, so that names share parts; cases, dots, characters of several bytes, broken ones. */
static size_t random_name(char *name)
{
	static const char *const parts[] = {"a",
					    "b",
					    "A",
					    "B",
					    ".",
					    "*",
					    "?",
					    "-",
					    "_",
					    "%",
					    "[",
					    "]",
					    "0",
					    "lib",
					    "so",
					    "\xc3\xa9",
					    "\xe2\x82\xac",
					    "\x80",
					    "\xff",
					    "ab",
					    "\\",
					    " ",
					    "\n",
					    "longer than 8"};
	uint32_t n = 1 + rnd(rnd(10) ? 5 : 40);
	size_t len = 0;

	if (rnd(300) == 0) {
		memset(name, 'x', PFS_NAME_MAX);
		name[rnd(PFS_NAME_MAX)] = 'y';
		name[PFS_NAME_MAX] = 0;
		return PFS_NAME_MAX;
	}
	while (n-- > 0) {
		const char *part = parts[rnd(PFS_COUNT(parts))];

		memcpy(name + len, part, strlen(part));
		len += strlen(part);
	}
	name[len] = 0;
	return len;
}

static void random_attributes(struct pfs_tree *tree, uint64_t ino, mode_t mode)
{
	struct pfs_entry entry;
	struct stat attr = {
		.st_mode = rnd(01000),
		.st_uid = rnd(4),
		.st_gid = rnd(4),
		.st_size = rnd(2) ? rnd(10) : rnd(1000000),
		.st_mtim = {.tv_sec = rnd(1000), .tv_nsec = rnd(1000)},
		.st_atim = {.tv_sec = rnd(2000000000), .tv_nsec = rnd(1000)},
	};
	unsigned set = PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID | PFS_SET_ATIME | PFS_SET_MTIME;

	if (rnd(20) == 0)
		attr.st_mtim.tv_sec = rnd(2) ? -1 - (time_t)rnd(1000) : INT64_MAX / 1000000000 + 10;
	if (rnd(40) == 0)
		attr.st_atim.tv_sec = INT64_MIN / 1000000000 - 5;
	if (S_ISREG(mode))
		set |= PFS_SET_SIZE;
	assert_int_equal(pfs_tree_setattr(tree, &entry, ino, &attr, set, &temp_root), 0);
}

static void random_node(struct pfs_tree *tree, uint64_t *directories, size_t *n, size_t max)
{
	static const mode_t types[] = {S_IFREG, S_IFREG, S_IFREG, S_IFDIR,  S_IFDIR,
				       S_IFIFO, S_IFCHR, S_IFLNK, S_IFSOCK, S_IFBLK};
	uint64_t parent = directories[rnd(2) ? rnd((uint32_t)*n) : (uint32_t)*n - 1];
	mode_t type = types[rnd(PFS_COUNT(types))];
	struct pfs_entry entry;
	char name[600];
	int error;

	(void)random_name(name);
	name[PFS_NAME_MAX] = 0;
	if (type == S_IFLNK)
		error = pfs_tree_symlink(tree, &entry, parent, name, rnd(2) ? "../lib/a" : name,
					 &temp_root);
	else
		error = pfs_tree_make(tree, &entry, parent, name, type | 0644,
				      S_ISCHR(type) || S_ISBLK(type) ? 1 + rnd(3) : 0, &temp_root);
	if (error == -EEXIST || error == -EINVAL || error == -ENOENT ||
	    error == -ESTALE) /* another directory may have taken the place of an empty one, which
				 may be committed */
		return;
	assert_int_equal(error, 0);
	random_attributes(tree, entry.attr.st_ino, type);
	if (S_ISDIR(type) && *n < max)
		directories[(*n)++] = entry.attr.st_ino;
	if (rnd(2))
		pfs_tree_forget(tree, entry.attr.st_ino, 1);
}

/* Random nodes; where none fits, none is made. */
static inline void random_tree(struct pfs_tree *tree, size_t nodes)
{
	uint64_t directories[512] = {PFS_ROOT_PRIME};
	size_t n = 1;

	while (nodes-- > 0)
		random_node(tree, directories, &n, PFS_COUNT(directories));
}

/* Removes, renames and adds: leaves holes, unlinked nodes, and an order that is none. */
static inline void random_changes(struct model *model, size_t changes)
{
	char name[600], other[600];

	while (changes-- > 0) {
		const struct seen *seen = &model->seen[rnd((uint32_t)model->n)];
		const struct seen *to = &model->seen[rnd((uint32_t)model->n)];
		uint64_t parent = model->seen[seen->parent].ino, into[1] = {to->ino};
		size_t n = 1;
		int error;

		memcpy(name, seen->name, strlen(seen->name) + 1);
		(void)random_name(other);
		other[PFS_NAME_MAX] = 0;
		if (rnd(3) == 0 && S_ISDIR(to->attr.st_mode))
			random_node(model->tree, into, &n, 1);
		else if (rnd(2))
			error = pfs_tree_rename(model->tree, parent, name, to->ino, other, 0);
		else if (S_ISDIR(seen->attr.st_mode))
			error = pfs_tree_rmdir(model->tree, parent, name);
		else
			error = pfs_tree_unlink(model->tree, parent, name);
		(void)error; /* often impossible, or gone */
		model_look(model, model->tree);
	}
}

/* Most directories let most in: else nobody sees anything. */
static inline void random_rights(struct model *model)
{
	for (size_t i = 0; i < model->n; i++) {
		struct stat attr = {
			.st_mode = rnd(3) ? 0755 : rnd(01000),
			.st_uid = rnd(4),
			.st_gid = rnd(4),
		};
		struct pfs_entry entry;

		if (S_ISDIR(model->seen[i].attr.st_mode) && (i == 0 || rnd(8)))
			assert_int_equal(
				pfs_tree_setattr(model->tree, &entry, model->seen[i].ino,
						 i ? &attr : &(struct stat){.st_mode = 0755},
						 rnd(4) ? PFS_SET_MODE : PFS_SET_UID | PFS_SET_GID,
						 &temp_root),
				0);
	}
	model_look(model, model->tree);
}

/* What permissions of a directory mean for a viewer who is not root, whatever its ACL. */
static inline bool lets_in(const struct stat *st, const struct pfs_viewer *viewer)
{
	bool member = st->st_gid == viewer->gid;
	mode_t needed = S_IROTH | S_IXOTH;

	for (size_t i = 0; i < viewer->n_groups; i++)
		member = member || viewer->groups[i] == st->st_gid;
	if (st->st_uid == viewer->uid)
		needed = S_IRUSR | S_IXUSR;
	else if (member)
		needed = S_IRGRP | S_IXGRP;
	return (st->st_mode & needed) == needed;
}

#endif
