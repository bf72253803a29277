/* SPDX-License-Identifier: MIT */
/* tests/unit/twin_util.h - the twin of a model: a tree in a store of its own that has nothing but
 * what one viewer sees of the model's.
 *
 * There is one model, which has been looked at (model_look) before make_twin; there is one twin at
 * a time, with its queries, from make_twin to remove_twin.  Its nodes have the names, targets,
 * modes, owners, sizes and times of the model's, and numbers of their own. */
#ifndef PFS_TESTS_UNIT_TWIN_UTIL_H
#define PFS_TESTS_UNIT_TWIN_UTIL_H

#include "scan_util.h"

#include "fs/query/query.h"

static struct model model;
static struct temp_store twin_temp;
static struct pfs_tree *twin;
static struct pfs_queries *twin_queries;
static const struct pfs_tree_options options = {.no_atime = true};
static unsigned in_part; /* viewers who saw some nodes, and not others */

/* Whether the viewer, who is not root, sees the node at that place of the model. */
static bool sees(size_t i, const struct pfs_viewer *viewer)
{
	while (i) {
		i = model.seen[i].parent;
		if (!lets_in(&model.seen[i].attr, viewer))
			return false;
	}
	return true;
}

static uint64_t copy_node(uint64_t parent, const struct seen *seen)
{
	struct pfs_entry entry;
	int error;

	if (seen->target)
		error = pfs_tree_symlink(twin, &entry, parent, seen->name, seen->target,
					 &temp_root);
	else
		error = pfs_tree_make(twin, &entry, parent, seen->name, seen->attr.st_mode,
				      seen->attr.st_rdev, &temp_root);
	assert_int_equal(error, 0);
	pfs_tree_forget(twin, entry.attr.st_ino, 1);
	return entry.attr.st_ino;
}

static void copy_attributes(uint64_t ino, const struct seen *seen)
{
	struct pfs_entry entry;
	unsigned set = PFS_SET_MODE | PFS_SET_UID | PFS_SET_GID | PFS_SET_ATIME | PFS_SET_MTIME;

	if (S_ISREG(seen->attr.st_mode))
		set |= PFS_SET_SIZE;
	assert_int_equal(pfs_tree_setattr(twin, &entry, ino, &seen->attr, set, &temp_root), 0);
}

static void make_twin(const struct pfs_viewer *viewer)
{
	uint64_t *inos = calloc(model.n, sizeof(*inos));
	size_t count = 0;

	assert_non_null(inos);
	temp_store_create(&twin_temp);
	twin = temp_tree_open_with(&twin_temp, &options);
	assert_int_equal(pfs_queries_open(&twin_queries, twin), 0);
	inos[0] = PFS_ROOT_PRIME;
	for (size_t i = 1; i < model.n; i++) {
		if (!sees(i, viewer))
			continue;
		inos[i] = copy_node(inos[model.seen[i].parent], &model.seen[i]);
		count++;
	}
	for (size_t i = 0; i < model.n; i++)
		if (inos[i])
			copy_attributes(inos[i], &model.seen[i]);
	in_part += count > 0 && count + 1 < model.n;
	free(inos);
}

static void remove_twin(void)
{
	pfs_queries_close(twin_queries);
	temp_tree_close(twin);
	temp_store_remove(&twin_temp);
}

#endif
