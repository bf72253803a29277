/* SPDX-License-Identifier: MIT */
/* tests/unit/resolve_util.h - lists of paths over random trees, each path compared with what it
 * leads to if it is asked for alone. */
#ifndef PFS_TESTS_UNIT_RESOLVE_UTIL_H
#define PFS_TESTS_UNIT_RESOLVE_UTIL_H

#include "scan_util.h"

#include "fs/nodes/relation.h"
#include "fs/tree/resolve.h"

static struct model model;
static struct temp_store temp;

static void close_tree(void)
{
	model_forget(&model);
	temp_tree_close(model.tree);
	temp_store_remove(&temp);
}

/* A node's path, or something like one. */
static char *random_path(size_t *len)
{
	static const char *const tails[] = {"/", "//", "/.", "/..", "/../..", "/nope", "/./", "/a"};
	const char *whole = model.seen[rnd((uint32_t)model.n)].path;
	char *path, *slash;

	switch (rnd(8)) {
	case 0: /* relative */
		assert_true(asprintf(&path, "%s", whole + 1) >= 0);
		break;
	case 1:
		assert_true(asprintf(&path, "%s%s", whole, tails[rnd(PFS_COUNT(tails))]) >= 0);
		break;
	case 2: /* more slashes, and a way up and down again */
		slash = strrchr(whole, '/');
		assert_true(asprintf(&path, "//%.*s/./../%s", (int)(slash - whole), whole, whole) >=
			    0);
		break;
	case 3: /* another name */
		assert_true(asprintf(&path, "%s", whole) >= 0);
		path[rnd((uint32_t)strlen(path))] = "ax/."[rnd(4)];
		break;
	default:
		assert_true(asprintf(&path, "%s", whole) >= 0);
	}
	*len = strlen(path);
	if (*len && rnd(40) == 0)
		*len = rnd((uint32_t)*len); /* "" as well */
	if (*len && rnd(100) == 0)
		path[rnd((uint32_t)*len)] = 0;
	return path;
}

static uint64_t expected_of(const struct pfs_visible *visible, const struct pfs_path_text *path)
{
	uint32_t slot = pfs_relation_resolve(model.tree, visible, path->bytes, path->len);

	return slot == PFS_NO_SLOT ? 0 : pfs_relation_ino(model.tree, slot);
}

static inline void check_paths(const struct pfs_viewer *viewer, size_t n)
{
	struct pfs_path_text *paths = calloc(n + 1, sizeof(*paths));
	uint64_t *inos = calloc(n + 1, sizeof(*inos));
	const struct pfs_resolve_from from = {.viewer = viewer, .alone = rnd(2)};
	struct pfs_visible *visible = NULL;

	for (size_t i = 0; i < n; i++)
		paths[i].bytes = random_path(&paths[i].len);
	assert_int_equal(pfs_tree_resolve_many(model.tree, inos, paths, n, &from), 0);
	if (viewer)
		assert_int_equal(pfs_visible_make(model.tree, viewer), 0);
	(void)pfs_scan_lock(model.tree, __func__);
	if (viewer)
		assert_int_equal(pfs_visible_get(&visible, model.tree, viewer), 0);
	for (size_t i = 0; i < n; i++)
		if (inos[i] != expected_of(visible, &paths[i]))
			fail_msg("%.*s: %llu", (int)paths[i].len, paths[i].bytes,
				 (unsigned long long)inos[i]);
	pfs_scan_unlock(model.tree);
	pfs_visible_unref(visible);
	for (size_t i = 0; i < n; i++)
		free((char *)paths[i].bytes);
	free(paths);
	free(inos);
}

/* From each directory, one of its children by its name alone. */
static inline void check_relative(void)
{
	for (size_t i = 1; i < model.n; i++) {
		const struct seen *parent = &model.seen[model.seen[i].parent];
		const struct pfs_path_text paths[] = {
			{model.seen[i].name, strlen(model.seen[i].name)},
			{".", 1},
			{"", 0},
			{"/", 1}};
		const struct pfs_resolve_from from = {.ino = parent->ino};
		uint64_t inos[PFS_COUNT(paths)];

		assert_int_equal(
			pfs_tree_resolve_many(model.tree, inos, paths, PFS_COUNT(paths), &from), 0);
		assert_int_equal(inos[0], model.seen[i].ino);
		assert_int_equal(inos[1], parent->ino);
		assert_int_equal(inos[2], 0);
		assert_int_equal(inos[3], PFS_ROOT_PRIME);
	}
}

#endif
