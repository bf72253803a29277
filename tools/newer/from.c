/* SPDX-License-Identifier: MIT */
/* Finds which node of the newer tree is which of the store's, and where it is to be. */
#include "tools/newer/from.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "meta/store.h"
#include "tools/newer/from_impl.h"

/* ---- lists ---- */

struct listing {
	struct pfs_from_list *list;
	uint32_t *above; /* by depth */
	size_t capacity;
};

static int add_node(void *arg, const struct pfs_walk_node *walked)
{
	struct listing *listing = arg;
	struct pfs_from_list *list = listing->list;
	struct pfs_from_node *node;

	PFS_VERIFY_CHECK(list->n < PFS_FROM_NONE); /* as there are slots */
	PFS_TRY(pfs_grow(&list->nodes, &list->capacity, list->n + 1, sizeof(*list->nodes)));
	PFS_TRY(pfs_grow(&listing->above, &listing->capacity, (size_t)walked->depth + 1,
			 sizeof(*listing->above)));
	node = &list->nodes[list->n];
	*node = (struct pfs_from_node){
		.path = strndup(walked->path, walked->path_len),
		.attr = walked->entry.attr,
		.ino = walked->entry.attr.st_ino,
		.parent = walked->depth ? listing->above[walked->depth - 1] : PFS_FROM_NONE,
		.other = PFS_FROM_NONE,
		.row = walked->entry.row,
	};
	if (!node->path)
		return -ENOMEM;
	listing->above[walked->depth] = (uint32_t)list->n++;
	return 0;
}

static int find_key(const struct pfs_from_options *options, struct pfs_tree *tree,
		    struct pfs_from_node *node)
{
	char *name PFS_FREE = NULL;
	ssize_t len;

	if (options->primes) {
		if (asprintf(&node->key, "%llu", (unsigned long long)node->ino) >= 0)
			return 0;
		node->key = NULL;
		return -ENOMEM;
	}
	if (!options->id) {
		node->key = strdup(node->path);
		return node->key ? 0 : -ENOMEM;
	}
	if (!S_ISREG(node->attr.st_mode) && !S_ISDIR(node->attr.st_mode))
		return 0;
	if (asprintf(&name, "user.%s", options->id) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	len = pfs_tree_getxattr(tree, NULL, 0, node->ino, name);
	if (len < 0)
		return len == -ENODATA ? 0 : (int)len;
	node->key = calloc(1, (size_t)len + 1);
	if (!node->key)
		return -ENOMEM;
	len = pfs_tree_getxattr(tree, node->key, (size_t)len, node->ino, name);
	return len < 0 ? (int)len : 0;
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct pfs_from_list *list = arg;
	const uint32_t *x = a, *y = b;

	return strcmp(list->nodes[*x].key, list->nodes[*y].key);
}

static int read_list(const struct pfs_from_options *options, struct pfs_tree *tree, uint64_t root,
		     struct pfs_from_list *list, char *why, size_t why_size)
{
	struct listing listing = {.list = list};
	int error = pfs_tree_walk(tree, root, add_node, &listing);

	free(listing.above);
	if (error)
		return error;
	list->by_key = calloc(list->n, sizeof(*list->by_key));
	if (!list->by_key)
		return -ENOMEM;
	for (size_t i = 1; i < list->n; i++) {
		PFS_TRY(find_key(options, tree, &list->nodes[i]));
		if (list->nodes[i].key)
			list->by_key[list->n_keys++] = (uint32_t)i;
	}
	qsort_r(list->by_key, list->n_keys, sizeof(*list->by_key), compare_keys, list);
	for (size_t i = 1; i < list->n_keys; i++)
		if (compare_keys(&list->by_key[i - 1], &list->by_key[i], list) == 0) {
			(void)snprintf(why, why_size, "%s", list->nodes[list->by_key[i]].key);
			return -EBADMSG;
		}
	return 0;
}

static void free_list(struct pfs_from_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->nodes[i].path);
		free(list->nodes[i].key);
	}
	free(list->nodes);
	free(list->by_key);
	free(list->own);
}

/* ---- which is which ---- */

static bool may_be(const struct pfs_from_node *old, const struct pfs_from_node *newer)
{
	return (old->attr.st_mode & S_IFMT) == (newer->attr.st_mode & S_IFMT) ||
	       (S_ISDIR(old->attr.st_mode) && S_ISREG(newer->attr.st_mode) && newer->row);
}

/* Pairs two nodes. A file that has other nodes below it in the newer tree is made anew as a
 * directory, and its `place` is 0. */
static void pair(struct pfs_from_lists *from, uint32_t o, uint32_t n)
{
	struct pfs_from_node *old = &from->old.nodes[o], *newer = &from->newer.nodes[n];

	newer->other = o;
	if (!may_be(old, newer))
		return;
	newer->place = old->ino;
	old->other = n;
}

static void match(struct pfs_from_lists *from)
{
	const struct pfs_from_list *old = &from->old, *newer = &from->newer;
	size_t i = 0, j = 0;

	while (i < old->n_keys && j < newer->n_keys) {
		uint32_t o = old->by_key[i], n = newer->by_key[j];
		int order = strcmp(old->nodes[o].key, newer->nodes[n].key);

		if (!order)
			pair(from, o, n);
		i += order <= 0;
		j += order >= 0;
	}
	old->nodes[0].other = newer->nodes[0].other = 0;
	newer->nodes[0].place = old->nodes[0].ino;
}

/* ---- what goes ---- */

/* Returns true if no list has brought the node: the files of lists are empty. */
static bool is_more_than_listed(const struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	return from->options.listed && !from->options.archive && !S_ISDIR(node->attr.st_mode) &&
	       (!S_ISREG(node->attr.st_mode) || node->attr.st_size > 0);
}

static bool is_own(const struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	return !node->key || (from->options.listed && node->row) ||
	       is_more_than_listed(from, node) ||
	       (from->options.rows && !node->row && !S_ISDIR(node->attr.st_mode));
}

static int list_own(struct pfs_from_lists *from)
{
	struct pfs_from_list *old = &from->old;

	for (size_t i = 1; i < old->n; i++) {
		if (old->nodes[i].other != PFS_FROM_NONE || !is_own(from, &old->nodes[i]))
			continue;
		PFS_TRY(pfs_grow(&old->own, &old->own_capacity, old->n_own + 1, sizeof(*old->own)));
		old->own[old->n_own++] = (uint32_t)i;
	}
	return 0;
}

/* Marks the directories that stay because they contain something of the store's own. */
static void find_staying(struct pfs_from_lists *from)
{
	struct pfs_from_node *nodes = from->old.nodes;

	for (size_t i = from->old.n; i-- > 1;) {
		const struct pfs_from_node *node = &nodes[i];

		if (node->other == PFS_FROM_NONE ? node->stays || is_own(from, node)
						 : from->newer.nodes[node->other].blocked) {
			nodes[i].stays = true;
			nodes[node->parent].stays = true;
		}
	}
}

/* Returns the node to which all children of this one have moved that still exist, or NULL. */
static const struct pfs_from_node *merged_into(const struct pfs_from_lists *from, uint32_t gone)
{
	const struct pfs_from_list *old = &from->old;
	uint32_t into = PFS_FROM_NONE;

	for (size_t i = gone + 1; i < old->n && old->nodes[i].parent >= gone; i++) {
		const struct pfs_from_node *child = &old->nodes[i];
		uint32_t above;

		if (child->parent != gone || child->other == PFS_FROM_NONE)
			continue;
		above = from->newer.nodes[child->other].parent;
		if (into != PFS_FROM_NONE && into != above)
			return NULL;
		into = above;
	}
	return into == PFS_FROM_NONE || !into ? NULL : &from->newer.nodes[into];
}

static int absolute(const struct pfs_from_lists *from, char **out, const char *path)
{
	char *root PFS_FREE = NULL;

	PFS_TRY(pfs_tree_path(from->options.tree, &root, from->options.root));
	if (asprintf(out, "%s%s%s", root[1] || !*path ? root : "", *path ? "/" : "", path) >= 0)
		return 0;
	*out = NULL;
	return -ENOMEM;
}

int pfs_from_note(struct pfs_from_lists *from, struct pfs_from_note **out, enum pfs_from_what what,
		  uint32_t old, uint32_t newer)
{
	struct pfs_from_note *note;

	PFS_TRY(pfs_grow(&from->notes, &from->notes_capacity, from->n_notes + 1,
			 sizeof(*from->notes)));
	note = &from->notes[from->n_notes];
	*note = (struct pfs_from_note){.what = what, .old = old, .newer = newer};
	PFS_TRY(absolute(from, &note->path,
			 newer != PFS_FROM_NONE ? from->newer.nodes[newer].path
						: from->old.nodes[old].path));
	from->n_notes++;
	from->count[what]++;
	if (out)
		*out = note;
	return 0;
}

static int note_gone(struct pfs_from_lists *from, uint32_t i)
{
	const struct pfs_from_node *node = &from->old.nodes[i], *into;
	struct pfs_from_note *note;

	if (node->other != PFS_FROM_NONE || is_own(from, node))
		return 0;
	if (node->stays)
		return S_ISDIR(node->attr.st_mode) && from->options.rows && !node->row
			       ? 0
			       : pfs_from_note(from, NULL, PFS_FROM_KEPT, i, PFS_FROM_NONE);
	into = from->options.id ? merged_into(from, i) : NULL;
	PFS_TRY(pfs_from_note(from, &note, into ? PFS_FROM_MERGED : PFS_FROM_REMOVED, i,
			      PFS_FROM_NONE));
	return into ? absolute(from, &note->from, into->path) : 0;
}

/* ---- what comes ---- */

/* Returns true if a node that stays has this node's name, or that of a directory above. */
static bool is_blocked(const struct pfs_from_lists *from, const struct pfs_from_node *node)
{
	const struct pfs_from_node *above = &from->newer.nodes[node->parent];
	const struct pfs_from_list *old = &from->old;

	if (above->blocked && !above->place)
		return true;
	if (above->other == PFS_FROM_NONE || !old->nodes || !old->own)
		return false;
	for (size_t i = 0; i < old->n_own; i++) {
		const struct pfs_from_node *there = &old->nodes[old->own[i]];

		if (there->parent == above->other &&
		    strcmp(pfs_from_name(there->path), pfs_from_name(node->path)) == 0)
			return true;
	}
	return false;
}

static int place_one(struct pfs_from_lists *from, uint32_t i)
{
	struct pfs_from_node *node = &from->newer.nodes[i];
	const struct pfs_from_node *old = node->place ? &from->old.nodes[node->other] : NULL;
	bool elsewhere = old && from->newer.nodes[node->parent].other != old->parent;

	elsewhere |= old && !from->newer.nodes[node->parent].place;
	node->moves = elsewhere ||
		      (old && strcmp(pfs_from_name(old->path), pfs_from_name(node->path)) != 0);
	node->blocked = (!old || node->moves) && is_blocked(from, node);
	return node->blocked ? pfs_from_note(from, NULL, PFS_FROM_KEPT,
					     old ? node->other : PFS_FROM_NONE, i)
			     : 0;
}

static int note_come(struct pfs_from_lists *from, uint32_t i)
{
	const struct pfs_from_node *node = &from->newer.nodes[i];
	const struct pfs_from_node *old = node->place ? &from->old.nodes[node->other] : NULL;
	struct pfs_from_note *note;

	if (!old)
		return node->blocked ? 0
				     : pfs_from_note(from, NULL, PFS_FROM_ADDED, PFS_FROM_NONE, i);
	if (node->moves && !node->blocked) {
		bool renamed =
			from->newer.nodes[node->parent].place == from->old.nodes[old->parent].ino;

		PFS_TRY(pfs_from_note(from, &note, renamed ? PFS_FROM_RENAMED : PFS_FROM_MOVED,
				      node->other, i));
		PFS_TRY(absolute(from, &note->from, old->path));
	}
	return pfs_from_compare_values(from, i);
}

static int note_all(struct pfs_from_lists *from)
{
	for (size_t i = 1; i < from->newer.n; i++)
		PFS_TRY(place_one(from, (uint32_t)i));
	find_staying(from);
	for (size_t i = 1; i < from->old.n; i++)
		PFS_TRY(note_gone(from, (uint32_t)i));
	for (size_t i = 1; i < from->newer.n; i++)
		PFS_TRY(note_come(from, (uint32_t)i));
	return 0;
}

static int compare(struct pfs_from_lists *from, char *why, size_t why_size)
{
	const struct pfs_from_options *options = &from->options;

	PFS_TRY(read_list(options, options->tree, options->root, &from->old, why, why_size));
	PFS_TRY(read_list(options, options->newer, PFS_ROOT_PRIME, &from->newer, why, why_size));
	match(from);
	PFS_TRY(list_own(from));
	return note_all(from);
}

int pfs_from_compare(struct pfs_from_lists **out, const struct pfs_from_options *options, char *why,
		     size_t why_size)
{
	struct pfs_from_lists *from = calloc(1, sizeof(*from));
	int error;

	*out = NULL;
	if (!from)
		return -ENOMEM;
	from->options = *options;
	error = compare(from, why, why_size);
	if (error)
		pfs_from_close(from);
	else
		*out = from;
	return error;
}

void pfs_from_close(struct pfs_from_lists *from)
{
	if (!from)
		return;
	for (size_t i = 0; i < from->n_notes; i++) {
		const struct pfs_from_note *note = &from->notes[i];

		free(note->path);
		free(note->from);
		free(note->column);
		free(note->before);
		free(note->after);
	}
	free(from->notes);
	free_list(&from->old);
	free_list(&from->newer);
	free(from);
}

int pfs_from_tell(const struct pfs_from_lists *from,
		  int (*fn)(void *arg, const struct pfs_from_event *event), void *arg)
{
	for (size_t i = 0; i < from->n_notes; i++) {
		const struct pfs_from_note *note = &from->notes[i];
		const struct pfs_from_node *newer =
			note->newer == PFS_FROM_NONE ? NULL : &from->newer.nodes[note->newer];
		const struct pfs_from_node *old =
			note->old == PFS_FROM_NONE ? NULL : &from->old.nodes[note->old];
		const struct pfs_from_event event = {
			.what = note->what,
			.ino = newer ? newer->place : old ? old->ino : 0,
			.key = newer ? newer->key : old ? old->key : "",
			.path = note->path,
			.from = note->from,
			.column = note->column,
			.before = note->before,
			.after = note->after,
		};

		PFS_TRY(fn(arg, &event));
	}
	return 0;
}

uint64_t pfs_from_count(const struct pfs_from_lists *from, enum pfs_from_what what)
{
	return from->count[what];
}
