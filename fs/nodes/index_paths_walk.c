/* SPDX-License-Identifier: MIT */
/* Ranges of paths, along the keys of the path index. */
#include "fs/nodes/index_paths_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "base/radix.h"

#define SOURCES 2u   /* prefix trees: a live tree's index; of a frozen tree, that and its own */
#define PIECE	256u /* keys that a frozen tree looks at while nobody changes the index */

/* Where in a directory the walk begins or goes on. */
enum position {
	AT_ALL,	 /* with the first key; downwards, the last one */
	AT_NAME, /* with the first key not less than the name; downwards, the last that is */
	BEHIND,	 /* behind the name's key, which the walk has passed; downwards, before it */
};

/* A directory in which the walk is. */
struct level {
	uint64_t piece; /* in which what follows was looked up */
	struct pfs_prefix_entry next[SOURCES];
	bool is_over[SOURCES];
	enum position position;
	uint32_t directory;
	size_t path_len; /* of the directory's, without a slash at its end */
	size_t name_len; /* of what the walk's path has behind that and a slash */
};

struct pfs_path_index_walk {
	struct pfs_path_entries *entries;    /* NULL: of a frozen tree */
	struct pfs_path_frozen *frozen;	     /* NULL: of a live one */
	struct pfs_prefix *sources[SOURCES]; /* NULL: nothing there */
	uint64_t piece; /* counted from 1: between two, the sources may change */
	const struct pfs_path_range *range;
	uint32_t root;
	bool descending;
	bool root_is_due; /* it comes first, or last */
	bool is_list;	  /* until its end, another way can give the answer */
	struct level *levels;
	size_t n, capacity;
	char *path;
	size_t path_capacity;
};

/* ---- ranges ---- */

/* Returns with how many known bytes all that matches begins: letters that may be of either case are
 * not known. */
static size_t known(const struct pfs_text_match *text)
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

bool pfs_path_range_of(struct pfs_path_range *out, bool *exact, const struct pfs_text_match *text)
{
	size_t len;

	*exact = true;
	out->high = NULL;
	if (text->rest == PFS_REST_RANGE) {
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
	*exact = len == text->prefix_len && text->rest == PFS_REST_NONE && !text->suffix_len &&
		 !text->needle.len && text->max_len >= SIZE_MAX / 2;
	return true;
}

static bool is_low_enough(const struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	return !walk->range->high ||
	       pfs_compare_bytes(path, len, walk->range->high, walk->range->high_len) < 0;
}

static bool is_high_enough(const struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	return !walk->range->low ||
	       pfs_compare_bytes(path, len, walk->range->low, walk->range->low_len) >= 0;
}

/* ---- keys ---- */

/* found: as pfs_prefix_seek and the like have it. */
static int set_next(struct level *level, unsigned source, int found)
{
	uint8_t head[PFS_PATH_KEY_SIZE];

	if (found < 0)
		return found == -ESTALE ? -EAGAIN : found;
	(void)pfs_path_key(head, level->directory, "", 0);
	level->is_over[source] = !found || memcmp(level->next[source].key, head, 4) != 0;
	return 0;
}

static int step(const struct pfs_path_index_walk *walk, struct level *level, unsigned source)
{
	struct pfs_prefix *prefix = walk->sources[source];
	struct pfs_prefix_entry *next = &level->next[source];

	return set_next(level, source,
			walk->descending ? pfs_prefix_previous(prefix, next)
					 : pfs_prefix_next(prefix, next));
}

static int seek(const struct pfs_path_index_walk *walk, struct level *level, unsigned source)
{
	const char *name = walk->path + level->path_len + 1;
	const bool is_behind = level->position == BEHIND && !walk->descending;
	struct pfs_prefix_entry *next = &level->next[source];
	struct pfs_prefix *prefix = walk->sources[source];
	uint8_t key[PFS_PATH_KEY_SIZE + 1];
	uint64_t at[2] = {0};
	const struct pfs_prefix_keys one = {key, at, 1};
	int found;

	level->is_over[source] = true;
	if (!prefix)
		return 0;
	if (level->position == AT_ALL)
		at[1] = pfs_path_key(key, level->directory + walk->descending, "", 0);
	else
		at[1] = pfs_path_key(key, level->directory, name, level->name_len);
	if (is_behind)
		key[at[1]++] = 0;
	found = pfs_prefix_seek(prefix, next, &one);
	if (walk->descending && found >= 0)
		found = found ? pfs_prefix_previous(prefix, next) : pfs_prefix_last(prefix, next);
	return set_next(level, source, found);
}

/* Has the next key of each source at hand. */
static int look_up(const struct pfs_path_index_walk *walk, struct level *level)
{
	if (level->piece == walk->piece)
		return 0;
	for (unsigned i = 0; i < SOURCES; i++)
		PFS_TRY(seek(walk, level, i));
	level->piece = walk->piece;
	return 0;
}

/* The key that comes first; NULL: there is none. */
static const struct pfs_prefix_entry *first_key(const struct pfs_path_index_walk *walk,
						const struct level *level)
{
	const struct pfs_prefix_entry *a = level->is_over[0] ? NULL : &level->next[0];
	const struct pfs_prefix_entry *b = level->is_over[1] ? NULL : &level->next[1];

	if (!a || !b)
		return a ? a : b;
	return (pfs_compare_bytes(a->key, a->len, b->key, b->len) <= 0) != walk->descending ? a : b;
}

/* Returns true if the entry is that of the level's name, in the level's directory. */
static bool has_name(const struct pfs_path_index_walk *walk, const struct level *level,
		     const struct pfs_prefix_entry *entry)
{
	return entry->len == level->name_len + 4 &&
	       memcmp(entry->key + 4, walk->path + level->path_len + 1, level->name_len) == 0;
}

static bool counts(const struct pfs_path_index_walk *walk, unsigned source, uint64_t slot)
{
	return source != 0 || !walk->frozen || !pfs_path_frozen_has_changed(walk->frozen, slot);
}

/* Goes behind all that has the name's key.  *slot: the node that has it, or PFS_NO_SLOT. */
static int pass(const struct pfs_path_index_walk *walk, struct level *level, uint32_t *slot)
{
	*slot = PFS_NO_SLOT;
	level->position = BEHIND;
	for (unsigned i = 0; i < SOURCES; i++) {
		while (!level->is_over[i] && has_name(walk, level, &level->next[i])) {
			uint64_t found = level->next[i].payload;

			if (counts(walk, i, found))
				*slot = (uint32_t)found;
			PFS_TRY(step(walk, level, i));
			if (!walk->frozen)
				return 0; /* it follows: no key has two nodes */
		}
	}
	return 0;
}

/* ---- levels ---- */

/* Puts a directory on the path, all of it; it is the last level then. */
static int enter(struct pfs_path_index_walk *walk, uint32_t directory, size_t path_len)
{
	PFS_TRY(pfs_grow(&walk->levels, &walk->capacity, walk->n + 1, sizeof(*walk->levels)));
	walk->levels[walk->n++] = (struct level){.directory = directory, .path_len = path_len};
	return 0;
}

/* Puts a name behind the path of the level's directory. */
static int spell(struct pfs_path_index_walk *walk, struct level *level, const void *name,
		 size_t len)
{
	PFS_TRY(pfs_grow(&walk->path, &walk->path_capacity, level->path_len + len + 1, 1));
	walk->path[level->path_len] = '/';
	memcpy(walk->path + level->path_len + 1, name, len);
	level->name_len = len;
	return 0;
}

/* Goes behind the key of a directory on the way, a name with a slash at its end.  *directory:
 * PFS_NO_SLOT if there is none. */
static int pass_directory(const struct pfs_path_index_walk *walk, struct level *level,
			  uint32_t *directory)
{
	struct pfs_path_index_walk up = *walk;

	up.descending = false; /* so that the key itself comes first */
	PFS_TRY(look_up(&up, level));
	PFS_TRY(pass(&up, level, directory));
	level->piece = 0;
	return 0;
}

/* Leads the walk to where a path is, or would be. */
static int begin_at(struct pfs_path_index_walk *walk, const char *path, size_t len)
{
	uint32_t directory = walk->root;
	const char *end = path + len;
	size_t path_len = 0;

	path++;
	while (directory != PFS_NO_SLOT) {
		const char *slash = path < end ? memchr(path, '/', (size_t)(end - path)) : NULL;
		size_t n = (size_t)((slash ? slash + 1 : end) - path);
		struct level *level;

		PFS_TRY(enter(walk, directory, path_len));
		level = &walk->levels[walk->n - 1];
		level->position = AT_NAME;
		PFS_TRY(spell(walk, level, path, n));
		if (!slash)
			return 0;
		PFS_TRY(pass_directory(walk, level, &directory));
		path_len += n;
		path += n;
	}
	return 0;
}

/* ---- walks ---- */

static int begin(struct pfs_path_index_walk *walk)
{
	const struct pfs_path_range *range = walk->range;
	const char *path = walk->descending ? range->high : range->low;
	size_t len = walk->descending ? range->high_len : range->low_len;
	int order = path ? pfs_compare_bytes(path, len, "/", 1) : 0;

	walk->root_is_due = is_high_enough(walk, "/", 1) && is_low_enough(walk, "/", 1);
	if (path && order > 0 && *path == '/')
		return begin_at(walk, path, len);
	/* Below the root, or above everything: all that there is, or nothing. */
	if (!path || (walk->descending ? order > 0 : order <= 0))
		return enter(walk, walk->root, 0);
	return 0;
}

/* Begins a piece of the walk, to be ended by end_piece. */
static int begin_piece(struct pfs_path_index_walk *walk)
{
	const bool opens = walk->piece == 0;

	if (walk->frozen) {
		PFS_TRY(pfs_path_frozen_begin(walk->frozen, opens || walk->is_list));
		walk->sources[0] = walk->frozen->entries->prefix;
		walk->sources[1] = walk->frozen->own;
	}
	if (walk->frozen || opens)
		walk->piece++;
	return 0;
}

static void end_piece(const struct pfs_path_index_walk *walk)
{
	if (walk->frozen)
		pfs_path_frozen_end(walk->frozen);
}

int pfs_path_index_walk_open(struct pfs_path_index_walk **out, struct pfs_tree *tree,
			     const struct pfs_path_range *range, bool descending)
{
	struct pfs_path_entries *entries = NULL;
	struct pfs_path_index_walk *walk;
	int error;

	*out = NULL;
	if (!tree->path_frozen)
		PFS_TRY(pfs_path_entries_take(tree, &entries));
	walk = calloc(1, sizeof(*walk));
	if (!walk) {
		pfs_path_entries_unref(entries);
		return -ENOMEM;
	}
	*walk = (struct pfs_path_index_walk){
		.entries = entries,
		.frozen = tree->path_frozen,
		.sources = {entries ? entries->prefix : NULL},
		.range = range,
		.root = tree->image.root,
		.descending = descending,
	};
	error = begin_piece(walk);
	if (!error) {
		error = begin(walk);
		end_piece(walk);
	}
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

/* The next key: a node's slot, or PFS_NO_SLOT where there was another one; the end if nothing is
 * left. */
static int next_key(struct pfs_path_index_walk *walk, uint32_t *slot)
{
	struct level *level = &walk->levels[walk->n - 1];
	const struct pfs_prefix_entry *key;
	uint32_t found;
	bool is_inside;
	size_t len;

	*slot = PFS_NO_SLOT;
	PFS_TRY(look_up(walk, level));
	key = first_key(walk, level);
	if (!key) {
		walk->n--;
		return 0;
	}
	PFS_TRY(spell(walk, level, key->key + 4, key->len - 4));
	len = level->path_len + 1 + level->name_len;
	is_inside = walk->path[len - 1] == '/';
	if (walk->descending ? !is_inside && !is_high_enough(walk, walk->path, len)
			     : !is_low_enough(walk, walk->path, len)) {
		walk->n = 0;
		return 0;
	}
	PFS_TRY(pass(walk, level, &found));
	if (found != PFS_NO_SLOT && is_inside)
		return enter(walk, found, len - 1);
	*slot = found;
	return 0;
}

/* Walks over so many keys that nobody who changes the index waits for long. */
static int walk_piece(struct pfs_path_index_walk *walk, uint32_t *slots, size_t *n, size_t room)
{
	for (unsigned i = 0; i < PIECE && *n < room && walk->n; i++) {
		uint32_t slot;

		PFS_TRY(next_key(walk, &slot));
		if (slot != PFS_NO_SLOT)
			slots[(*n)++] = slot;
	}
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
		int error;

		PFS_TRY(begin_piece(walk));
		error = walk_piece(walk, slots, n, room);
		end_piece(walk);
		PFS_TRY(error);
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
	walk->is_list = true;
	*n = room;
	error = pfs_path_index_walk_next(walk, slots, n);
	pfs_path_index_walk_close(walk);
	if (!error && *n == room)
		error = -E2BIG;
	return error ? error : pfs_radix_sort_u32(slots, *n);
}

int pfs_path_index_find(struct pfs_tree *tree, uint32_t *slot, const char *path, size_t len)
{
	struct pfs_path_range range = {.low = path, .low_len = len, .high_len = len + 1};
	uint32_t found[2];
	size_t n = PFS_COUNT(found);

	if (!tree->path_frozen || len >= sizeof(range.room))
		return -ENOENT;
	memcpy(range.room, path, len);
	range.room[len] = 0; /* the least path above */
	range.high = range.room;
	PFS_TRY(pfs_path_index_list(found, &n, tree, &range));
	*slot = n ? found[0] : PFS_NO_SLOT;
	return 0;
}
