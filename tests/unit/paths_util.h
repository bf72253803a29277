/* SPDX-License-Identifier: MIT */
/* tests/unit/paths_util.h - the path index beside the paths of all nodes in byte order: ranges with
 * ends below and above a slash, both ways, and random changes. */
#ifndef PFS_TESTS_UNIT_PATHS_UTIL_H
#define PFS_TESTS_UNIT_PATHS_UTIL_H

#include "scan_util.h"

#include "fs/nodes/index_paths.h"

#define RANGE_ROOM 8192u

static uint64_t seed = 20261122;
static struct temp_store temp;
static struct model model;
static const struct pfs_tree_options options = {.no_atime = true};
static size_t *sorted; /* of the model's nodes, by the bytes of their paths */

static int by_path(const void *a, const void *b)
{
	/* of unsigned bytes; none has a NUL */
	return strcmp(model.seen[*(const size_t *)a].path, model.seen[*(const size_t *)b].path);
}

static void look(void)
{
	model_look(&model, model.tree);
	free(sorted);
	sorted = calloc(model.n + 1, sizeof(*sorted));
	assert_non_null(sorted);
	for (size_t i = 0; i < model.n; i++)
		sorted[i] = i;
	qsort(sorted, model.n, sizeof(*sorted), by_path);
}

/* The i-th in their order. */
static const char *path_of(size_t i)
{
	return model.seen[sorted[i]].path;
}

static void open_tree(void)
{
	temp_store_create(&temp);
	model.tree = temp_tree_open_with(&temp, &options);
}

static void close_tree(void)
{
	assert_int_equal(pfs_tree_close(model.tree), 0);
	model_forget(&model);
	temp_store_remove(&temp);
}

static inline uint64_t make(uint64_t parent, const char *name, mode_t mode)
{
	struct pfs_entry entry;

	assert_int_equal(pfs_tree_make(model.tree, &entry, parent, name, mode, 0, &temp_root), 0);
	return entry.attr.st_ino;
}

/* ---- ranges ---- */

static bool is_within(const struct pfs_path_range *range, const char *path)
{
	size_t len = strlen(path);
	struct {
		const char *text;
		size_t len;
	} ends[] = {{range->low, range->low_len}, {range->high, range->high_len}};

	for (unsigned i = 0; i < 2; i++) {
		int order;

		if (!ends[i].text)
			continue;
		order = memcmp(path, ends[i].text, PFS_MIN(len, ends[i].len));
		order = order ? order : (len > ends[i].len) - (len < ends[i].len);
		if (i == 0 ? order < 0 : order >= 0)
			return false;
	}
	return true;
}

/* Walks along the range in the tree, which is the model's or was; between (NULL: nothing) is called
 * between two pieces. */
static void check_walk(struct pfs_tree *tree, const struct pfs_path_range *range, bool descending,
		       void (*between)(void))
{
	struct pfs_path_index_walk *walk;
	uint32_t slots[64];
	size_t at = 0, n;

	(void)pfs_scan_lock(tree, __func__);
	assert_int_equal(pfs_path_index_walk_open(&walk, tree, range, descending), 0);
	do {
		if (between)
			between();
		n = 1 + rnd(PFS_COUNT(slots));
		assert_int_equal(pfs_path_index_walk_next(walk, slots, &n), 0);
		for (size_t i = 0; i < n; i++) {
			const struct seen *seen;

			while (at < model.n &&
			       !is_within(range, path_of(descending ? model.n - 1 - at : at)))
				at++;
			assert_true(at < model.n);
			seen = &model.seen[sorted[descending ? model.n - 1 - at : at]];
			at++;
			if (slots[i] != seen->slot)
				print_message("slot %u for %s\n", slots[i], seen->path);
			assert_int_equal(slots[i], seen->slot);
		}
	} while (n);
	for (; at < model.n; at++)
		assert_false(is_within(range, path_of(descending ? model.n - 1 - at : at)));
	pfs_path_index_walk_close(walk);
	pfs_scan_unlock(tree);
}

/* A path, perhaps cut, or with a byte behind it or in the place of its last one. */
static size_t random_end(char *out, size_t room)
{
	static const char bytes[] = {'/', '-', '!', '\1', '0', 'a', '.', (char)0xff, 0};
	size_t len = (size_t)snprintf(out, room, "%s", path_of(rnd((uint32_t)model.n)));

	len = PFS_MIN(len, room - 1);
	if (rnd(3) == 0)
		len = rnd((uint32_t)len + 1);
	else if (rnd(2))
		out[len++] = bytes[rnd(PFS_COUNT(bytes))];
	else if (len && rnd(3) == 0)
		out[len - 1] = bytes[rnd(PFS_COUNT(bytes))];
	return len;
}

/* One with random ends, which are written to low and high. */
static inline struct pfs_path_range random_range(char low[RANGE_ROOM], char high[RANGE_ROOM])
{
	struct pfs_path_range range = {.low = NULL};

	range.low_len = random_end(low, RANGE_ROOM - 1);
	range.high_len = random_end(high, RANGE_ROOM - 1);
	range.low = rnd(4) ? low : NULL;
	range.high = rnd(4) ? high : NULL;
	return range;
}

/* ---- changes ---- */

static uint64_t random_ino(const struct model *of, bool directory)
{
	const struct seen *seen;

	do
		seen = &of->seen[rnd((uint32_t)of->n)];
	while (directory && !S_ISDIR(seen->attr.st_mode));
	return seen->ino;
}

/* Changes a node that there was when the model looked, or makes another one; often that is
 * impossible. */
static inline void change_one(const struct model *of)
{
	static const char *const names[] = {"a",  "a-b", "a.b", "a!", "a0",
					    "ab", "b",	 "a\1", "-",  "\xff"};
	const struct seen *seen = &of->seen[rnd((uint32_t)of->n)];
	const char *name = names[rnd(PFS_COUNT(names))];
	mode_t mode = rnd(2) ? S_IFDIR | 0755 : S_IFREG | 0644;
	struct pfs_entry entry;
	uint64_t parent = of->seen[seen->parent].ino;
	int error;

	if (rnd(3) == 0)
		error = pfs_tree_make(of->tree, &entry, random_ino(of, true), name, mode, 0,
				      &temp_root);
	else if (rnd(2))
		error = pfs_tree_rename(of->tree, parent, seen->name, random_ino(of, true), name,
					0);
	else if (S_ISDIR(seen->attr.st_mode))
		error = pfs_tree_rmdir(of->tree, parent, seen->name);
	else
		error = pfs_tree_unlink(of->tree, parent, seen->name);
	(void)error;
}

/* PFS_SEED chooses another seed. */
static void begin_tests(void)
{
	const char *chosen = getenv("PFS_SEED");

	if (chosen)
		seed = strtoull(chosen, NULL, 10);
	print_message("PFS_SEED=%llu\n", (unsigned long long)seed);
	random_state = seed;
}

static void end_tests(void)
{
	free(sorted);
}

#endif
