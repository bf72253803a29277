/* SPDX-License-Identifier: MIT */
/* Ranges of paths, along the keys of the path index. */
#include "fs/nodes/index_paths_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"

/* A directory, and the key in it that is next. */
struct level {
	struct pfs_prefix_entry entry;
	bool is_over;
	uint32_t directory;
	size_t path_len; /* of the directory's, without a slash at its end */
};

struct pfs_path_index_walk {
	struct pfs_path_entries *entries;
	const struct pfs_path_range *range;
	uint32_t root;
	bool descending;
	bool root_is_due; /* it comes first, or last */
	struct level *levels;
	size_t n, capacity;
	char *path;
	size_t path_capacity;
};

/* ---- ranges ---- */

/* How many bytes all that matches begins with: letters that may be of either case are not known. */
static size_t known(const struct pfs_scan_text *text)
{
	size_t n = 0;

	if (!text->fold)
		return text->prefix_len;
	while (n < text->prefix_len && !(text->prefix[n] >= 'a' && text->prefix[n] <= 'z'))
		n++;
	return n;
}

/* The least text above all that begin with the bytes; false: there is none. */
static bool raise_last(struct pfs_path_range *out, const uint8_t *bytes, size_t len)
{
	while (len && bytes[len - 1] == 0xff)
		len--;
	if (!len)
		return false;
	memcpy(out->room, bytes, len);
	out->room[len - 1] = (char)(bytes[len - 1] + 1);
	out->high_len = len;
	return true;
}

bool pfs_path_range_of(struct pfs_path_range *out, bool *exact, const struct pfs_scan_text *text)
{
	size_t len;

	*exact = true;
	out->high = NULL;
	if (text->verify == PFS_TEST_BETWEEN) {
		out->low = text->text;
		out->low_len = text->text_len;
		out->high = text->high_text;
		out->high_len = text->high_len;
		return true;
	}
	len = PFS_MIN(known(text), sizeof(out->room));
	if (len < 2) /* a slash says nothing */
		return false;
	out->low = (const char *)text->prefix;
	out->low_len = len;
	if (raise_last(out, text->prefix, len))
		out->high = out->room;
	*exact = len == text->prefix_len && text->verify == PFS_TEST_NONE && !text->suffix_len &&
		 !text->needle.len && text->max_len >= SIZE_MAX / 2;
	return true;
}

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t len = PFS_MIN(a_len, b_len);
	int order = len ? memcmp(a, b, len) : 0;

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static bool is_low_enough(const struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	return !walk->range->high || compare(path, len, walk->range->high, walk->range->high_len) < 0;
}

static bool is_high_enough(const struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	return !walk->range->low || compare(path, len, walk->range->low, walk->range->low_len) >= 0;
}

/* ---- levels ---- */

static bool is_in(const struct level *level)
{
	uint8_t head[PFS_PATH_KEY_SIZE];

	(void)pfs_path_key(head, level->directory, "", 0);
	return memcmp(level->entry.key, head, 4) == 0;
}

/* found: as pfs_prefix_seek and the like have it. */
static int set_entry(struct level *level, int found)
{
	if (found < 0)
		return found == -ESTALE ? -EAGAIN : found;
	level->is_over = found == 0 || !is_in(level);
	return 0;
}

/* To the first key of the directory that is not less than the bytes; or, downwards, to the last one that is less. */
static int seek(const struct pfs_path_index_walk *walk, struct level *level, uint32_t directory,
		const char *bytes, size_t len)
{
	struct pfs_prefix *prefix = walk->entries->prefix;
	uint8_t key[PFS_PATH_KEY_SIZE];
	const uint64_t at[2] = {0, pfs_path_key(key, directory, bytes, len)};
	const struct pfs_prefix_keys one = {key, at, 1};
	int found = pfs_prefix_seek(prefix, &level->entry, &one);

	if (walk->descending && found >= 0)
		found = found ? pfs_prefix_previous(prefix, &level->entry)
			      : pfs_prefix_last(prefix, &level->entry);
	return set_entry(level, found);
}

static int step(const struct pfs_path_index_walk *walk, struct level *level)
{
	struct pfs_prefix *prefix = walk->entries->prefix;

	return set_entry(level, walk->descending ? pfs_prefix_previous(prefix, &level->entry)
						 : pfs_prefix_next(prefix, &level->entry));
}

static int add_level(struct pfs_path_index_walk *walk, struct level **out, uint32_t directory,
		     size_t path_len)
{
	PFS_TRY(pfs_grow(&walk->levels, &walk->capacity, walk->n + 1, sizeof(*walk->levels)));
	*out = &walk->levels[walk->n++];
	**out = (struct level){.directory = directory, .path_len = path_len, .is_over = true};
	return 0;
}

/* All of a directory. */
static int enter(struct pfs_path_index_walk *walk, uint32_t directory, size_t path_len)
{
	struct level *level;

	PFS_TRY(add_level(walk, &level, directory, path_len));
	return seek(walk, level, walk->descending ? directory + 1 : directory, "", 0);
}

/* The name of the level's entry to the end of the path: *is_inside: what lies in it. */
static int spell(struct pfs_path_index_walk *walk, const struct level *level, size_t *len,
		 bool *is_inside)
{
	size_t n = level->entry.len - 4;
	const char *name = (const char *)level->entry.key + 4;

	*is_inside = n && name[n - 1] == '/';
	*len = level->path_len + 1 + n;
	PFS_TRY(pfs_grow(&walk->path, &walk->path_capacity, *len + 1, 1));
	walk->path[level->path_len] = '/';
	memcpy(walk->path + level->path_len + 1, name, n);
	return 0;
}

/* A directory on the way to where the walk begins, the bytes with their slash: it is entered at `directory`, and
 * behind it the level above goes on. */
static int descend(struct pfs_path_index_walk *walk, struct level *level, uint32_t *directory,
		   const char *bytes, size_t len)
{
	uint8_t key[PFS_PATH_KEY_SIZE];
	const uint64_t at[2] = {0, pfs_path_key(key, level->directory, bytes, len)};
	const struct pfs_prefix_keys one = {key, at, 1};
	struct pfs_prefix_entry entry;
	int found = pfs_prefix_seek(walk->entries->prefix, &entry, &one);
	bool is_inside;
	size_t path_len;

	*directory = PFS_NO_SLOT;
	PFS_TRY(PFS_MIN(found, 0));
	if (!found || at[1] != len + 4 || entry.len != at[1] || memcmp(entry.key, key, at[1]) != 0)
		return seek(walk, level, level->directory, bytes, len);
	level->entry = entry;
	PFS_TRY(spell(walk, level, &path_len, &is_inside));
	*directory = (uint32_t)entry.payload;
	return step(walk, level);
}

/* To where a path is, or would be. */
static int begin_at(struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	uint32_t directory = walk->root;
	const char *end = path + len;
	size_t path_len = 0;

	path++;
	for (;;) {
		const char *slash = path < end ? memchr(path, '/', (size_t)(end - path)) : NULL;
		struct level *level;
		size_t n;

		PFS_TRY(add_level(walk, &level, directory, path_len));
		if (!slash)
			return seek(walk, level, directory, path, (size_t)(end - path));
		n = (size_t)(slash - path) + 1;
		PFS_TRY(descend(walk, level, &directory, path, n));
		if (directory == PFS_NO_SLOT)
			return 0;
		path_len += n;
		path = slash + 1;
	}
}

/* ---- walks ---- */

static int begin(struct pfs_path_index_walk *walk)
{
	const struct pfs_path_range *range = walk->range;
	const char *path = walk->descending ? range->high : range->low;
	size_t len = walk->descending ? range->high_len : range->low_len;
	int order = path ? compare(path, len, "/", 1) : 0;

	walk->root_is_due = is_high_enough(walk, "/", 1) && is_low_enough(walk, "/", 1);
	if (path && order > 0 && *path == '/')
		return begin_at(walk, path, len);
	/* Below the root, or above everything: all that there is, or nothing. */
	if (!path || (walk->descending ? order > 0 : order <= 0))
		return enter(walk, walk->root, 0);
	return 0;
}

int pfs_path_index_walk_open(struct pfs_path_index_walk **out, struct pfs_tree *tree,
			     const struct pfs_path_range *range, bool descending)
{
	struct pfs_path_entries *entries;
	struct pfs_path_index_walk *walk;
	int error;

	*out = NULL;
	PFS_TRY(pfs_path_entries_take(tree, &entries));
	walk = calloc(1, sizeof(*walk));
	if (!walk) {
		pfs_path_entries_unref(entries);
		return -ENOMEM;
	}
	*walk = (struct pfs_path_index_walk){
		.entries = entries,
		.range = range,
		.root = tree->image.root,
		.descending = descending,
	};
	error = begin(walk);
	if (error)
		pfs_path_index_walk_close(walk);
	else
		*out = walk;
	return error;
}

void pfs_path_index_walk_close(struct pfs_path_index_walk *walk)
{
	if (!walk)
		return;
	pfs_path_entries_unref(walk->entries);
	free(walk->levels);
	free(walk->path);
	free(walk);
}

/* The next key: a node's slot, or PFS_NO_SLOT where there was another one; the end if nothing is left. */
static int next_key(struct pfs_path_index_walk *walk, uint32_t *slot)
{
	struct level *level = &walk->levels[walk->n - 1];
	uint32_t found = (uint32_t)level->entry.payload;
	bool is_inside;
	size_t len;

	*slot = PFS_NO_SLOT;
	if (level->is_over) {
		walk->n--;
		return 0;
	}
	PFS_TRY(spell(walk, level, &len, &is_inside));
	if (walk->descending ? !is_inside && !is_high_enough(walk, walk->path, len)
			     : !is_low_enough(walk, walk->path, len)) {
		walk->n = 0;
		return 0;
	}
	PFS_TRY(step(walk, level));
	if (is_inside)
		return enter(walk, found, len - 1);
	*slot = found;
	return 0;
}

int pfs_path_index_walk_next(struct pfs_path_index_walk *walk, uint32_t *slots, size_t *n)
{
	size_t room = *n;

	*n = 0;
	if (room && walk->root_is_due && !walk->descending) {
		slots[(*n)++] = walk->root;
		walk->root_is_due = false;
	}
	while (*n < room && walk->n) {
		uint32_t slot;

		PFS_TRY(next_key(walk, &slot));
		if (slot != PFS_NO_SLOT)
			slots[(*n)++] = slot;
	}
	if (*n < room && walk->root_is_due) {
		slots[(*n)++] = walk->root;
		walk->root_is_due = false;
	}
	return 0;
}

int pfs_path_index_list(uint32_t *slots, size_t *n, struct pfs_tree *tree,
			const struct pfs_path_range *range)
{
	struct pfs_path_index_walk *walk;
	size_t room = *n;
	int error;

	*n = 0;
	PFS_TRY(pfs_path_index_walk_open(&walk, tree, range, false));
	*n = room;
	error = pfs_path_index_walk_next(walk, slots, n);
	pfs_path_index_walk_close(walk);
	if (!error && *n == room)
		error = -E2BIG;
	return error ? error : pfs_radix_sort_u32(slots, *n);
}
