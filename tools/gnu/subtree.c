/* SPDX-License-Identifier: MIT */
/* GNU's find and du read directories with gnulib's fts(3): in batches of so many entries, and a
 * batch that is larger than a limit is sorted by inode numbers. */
#include "tools/gnu/subtree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

#define UNSORTED 10000 /* a batch with no more entries stays as it was read */
#define BATCH	 100000
#define INSERTION_MAX	 16 /* up to so many siblings are sorted by insertion */

/* ---- rows ---- */

/* Makes room for another node. */
static bool make_room(struct pfs_subtree *subtree, size_t depth)
{
	if (subtree->n >= UINT32_MAX ||
	    pfs_grow(&subtree->nodes, &subtree->capacity, subtree->n + 1,
		     sizeof(*subtree->nodes)) ||
	    pfs_grow(&subtree->above, &subtree->above_capacity, depth + 1, sizeof(*subtree->above)))
		return false;
	return !subtree->keyed || pfs_grow(&subtree->keys, &subtree->key_capacity, subtree->n + 1,
					   sizeof(*subtree->keys)) == 0;
}

/* Links the next node to those below the last one that is above it. */
static uint32_t link_node(struct pfs_subtree *subtree, size_t depth)
{
	uint32_t node = (uint32_t)subtree->n++;

	if (depth > subtree->depth)
		subtree->nodes[subtree->above[depth - 1]].first = node;
	else if (node)
		subtree->nodes[subtree->above[depth]].next = node;
	subtree->above[depth] = node;
	subtree->depth = depth;
	return node;
}

static bool take(void *arg, struct pfs_row *row)
{
	struct pfs_subtree *subtree = arg;
	uint64_t depth = pfs_row_number(row);
	char type = pfs_row_letter(row);
	uint64_t n_below = 0;
	const char *name;
	uint32_t node;
	size_t len;

	if (!subtree->n) {
		subtree->top_depth = depth - subtree->beheaded;
		subtree->no_memory = !make_room(subtree, 1);
		if (!subtree->no_memory && subtree->beheaded)
			subtree->nodes[link_node(subtree, 0)] =
				(struct pfs_subtree_node){.type = 'd'};
	}
	/* A node without its directory belongs to the deepest one that there is. */
	depth = subtree->n ? PFS_MAX(PFS_MIN(depth - subtree->top_depth, subtree->depth + 1), 1)
			   : 0;
	if (subtree->no_memory || !make_room(subtree, depth)) {
		subtree->no_memory = true;
		return false;
	}
	node = link_node(subtree, depth);
	if (subtree->keyed) {
		subtree->keys[node].order = pfs_row_digits(row, true);
		subtree->keys[node].ino = pfs_row_number(row);
		n_below = pfs_row_number(row) - 1;
		if (depth)
			subtree->nodes[subtree->above[depth - 1]].n_children -= (uint32_t)n_below;
	}
	if (subtree->take)
		subtree->take(subtree->arg, node, type, row);
	name = pfs_row_text(row, &len);
	subtree->nodes[node] =
		(struct pfs_subtree_node){.name = (size_t)(name - subtree->kept.text),
					  .n_children = (uint32_t)n_below,
					  .len = (uint16_t)len,
					  .type = type};
	return true;
}

int pfs_subtree_ask(struct pfs_subtree *subtree, const char *before, const char *after,
		    const char *where)
{
	char *sql PFS_FREE = NULL;
	int status;

	if (asprintf(&sql, "SELECT depth, type, %s%sname%s FROM nodes WHERE %s%s",
		     subtree->keyed ? "readdir, ino, subtree_count, " : "", before, after, where,
		     subtree->beheaded ? "" : " ORDER BY preorder") < 0)
		return pfs_cmd_fail(subtree->place->verb, "no memory");
	status = pfs_place_keep(subtree->place, &subtree->kept, sql, take, subtree);
	return !status && subtree->no_memory ? pfs_cmd_fail(subtree->place->verb, "no memory")
					     : status;
}

void pfs_subtree_close(struct pfs_subtree *subtree)
{
	free(subtree->kept.text);
	free(subtree->nodes);
	free(subtree->keys);
	free(subtree->above);
}

/* ---- order ---- */

struct sibling {
	uint64_t order;
	uint32_t node;
};

struct family {
	struct sibling *siblings;
	size_t n, capacity;
};

static int by_order(const void *a, const void *b)
{
	const struct sibling *x = a, *y = b;

	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Sorts the children of a directory, and links them anew. */
static void sort_family(const struct pfs_subtree *subtree, struct pfs_subtree_node *above,
			const struct family *family)
{
	struct sibling *siblings = family->siblings;
	uint32_t *link = &above->first;

	if (family->n > INSERTION_MAX)
		qsort(siblings, family->n, sizeof(*siblings), by_order);
	for (size_t i = 1; i < family->n && family->n <= INSERTION_MAX; i++) {
		struct sibling moved = siblings[i];
		size_t at = i;

		for (; at && by_order(&siblings[at - 1], &moved) > 0; at--)
			siblings[at] = siblings[at - 1];
		siblings[at] = moved;
	}
	for (size_t i = 0; i < family->n; i++) {
		*link = family->siblings[i].node;
		link = &subtree->nodes[*link].next;
	}
	*link = 0;
}

static int gather_family(const struct pfs_subtree *subtree, const struct pfs_subtree_node *above,
			 struct family *family)
{
	family->n = 0;
	for (uint32_t at = above->first; at; at = subtree->nodes[at].next) {
		PFS_TRY(pfs_grow(&family->siblings, &family->capacity, family->n + 1,
				 sizeof(*family->siblings)));
		family->siblings[family->n++] = (struct sibling){subtree->keys[at].order, at};
	}
	return 0;
}

int pfs_subtree_sort(const struct pfs_subtree *subtree)
{
	struct family family = {0};
	int error = 0;

	for (size_t i = 0; i < subtree->n && !error; i++) {
		error = gather_family(subtree, &subtree->nodes[i], &family);
		if (!error)
			sort_family(subtree, &subtree->nodes[i], &family);
	}
	free(family.siblings);
	return error;
}

/* ---- wide directories ---- */

struct children {
	struct pfs_subtree_key *keys;
	size_t n, capacity;
	bool no_memory;
};

static int by_ino(const void *a, const void *b)
{
	const struct pfs_subtree_key *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

static int by_key_order(const void *a, const void *b)
{
	const struct pfs_subtree_key *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

static bool take_child(void *arg, struct pfs_row *row)
{
	struct children *children = arg;
	struct pfs_subtree_key *key;

	if (pfs_grow(&children->keys, &children->capacity, children->n + 1, sizeof(*key))) {
		children->no_memory = true;
		return false;
	}
	key = &children->keys[children->n++];
	key->ino = pfs_row_number(row);
	key->order = pfs_row_number(row);
	return true;
}

/* Gets the children, sorted by inode number; the order of each is its place in the order in which
 * fts(3) would visit them. */
static int rank_children(struct children *children, const struct pfs_place *place, uint64_t parent)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT ino, readdir FROM nodes WHERE parent = %" PRIu64,
		       parent);
	PFS_TRY(pfs_place_ask(place, sql, take_child, children));
	if (children->no_memory)
		return pfs_cmd_fail(place->verb, "no memory");
	if (!children->n)
		return PFS_EXIT_OK;
	qsort(children->keys, children->n, sizeof(*children->keys), by_key_order);
	for (size_t at = 0; at < children->n; at += BATCH) {
		size_t n = PFS_MIN(children->n - at, (size_t)BATCH);

		if (n > UNSORTED)
			qsort(children->keys + at, n, sizeof(*children->keys), by_ino);
	}
	for (size_t i = 0; i < children->n; i++)
		children->keys[i].order = i;
	qsort(children->keys, children->n, sizeof(*children->keys), by_ino);
	return PFS_EXIT_OK;
}

/* Orders those of the family that are children of the wide directory. */
static int order_wide(const struct pfs_subtree *subtree, const struct family *family,
		      uint32_t parent)
{
	struct children children = {0};
	int status = subtree->nodes[parent].n_children <= BATCH
			     ? PFS_EXIT_OK
			     : rank_children(&children, subtree->place, subtree->keys[parent].ino);

	for (size_t i = 0; i < family->n; i++) {
		const struct pfs_subtree_key *key = &subtree->keys[family->siblings[i].node];
		const struct pfs_subtree_key *child =
			children.n ? bsearch(key, children.keys, children.n, sizeof(*key), by_ino)
				   : NULL;

		family->siblings[i].order = child ? child->order : key->ino;
	}
	free(children.keys);
	return status;
}

static int sort_families(const struct pfs_subtree *subtree, struct family *family)
{
	for (uint32_t i = 0; i < subtree->n; i++) {
		if (!subtree->nodes[i].first)
			continue;
		if (gather_family(subtree, &subtree->nodes[i], family))
			return pfs_cmd_fail(subtree->place->verb, "no memory");
		if (subtree->nodes[i].n_children > UNSORTED)
			PFS_TRY(order_wide(subtree, family, i));
		sort_family(subtree, &subtree->nodes[i], family);
	}
	return PFS_EXIT_OK;
}

int pfs_subtree_sort_as_fts(const struct pfs_subtree *subtree)
{
	struct family family = {0};
	int status = sort_families(subtree, &family);

	free(family.siblings);
	return status;
}
