/* SPDX-License-Identifier: MIT */
/* GNU's find and du read directories with gnulib's fts(3): as many entries at a time as a batch may
 * have, and a batch that is larger than a limit is sorted by inode numbers. */
#include "tools/below.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

#define UNSORTED 10000 /* entries at most that stay as they were read */
#define BATCH	 100000

/* ---- rows ---- */

/* Room for another node. */
static bool make_room(struct pfs_below *below, size_t depth)
{
	if (below->n >= UINT32_MAX ||
	    pfs_grow(&below->nodes, &below->capacity, below->n + 1, sizeof(*below->nodes)) ||
	    pfs_grow(&below->above, &below->above_capacity, depth + 1, sizeof(*below->above)))
		return false;
	return !below->keyed ||
	       pfs_grow(&below->keys, &below->key_capacity, below->n + 1, sizeof(*below->keys)) == 0;
}

/* Links the next node to those below the last one that is above it. */
static uint32_t link_node(struct pfs_below *below, size_t depth)
{
	uint32_t node = (uint32_t)below->n++;

	if (depth > below->depth)
		below->nodes[below->above[depth - 1]].first = node;
	else if (node)
		below->nodes[below->above[depth]].next = node;
	below->above[depth] = node;
	below->depth = depth;
	return node;
}

static bool take(void *arg, struct pfs_row *row)
{
	struct pfs_below *below = arg;
	uint64_t depth = pfs_row_number(row);
	char type = pfs_row_letter(row);
	const char *name;
	uint32_t node;
	size_t len;

	if (!below->n) {
		below->top_depth = depth - below->beheaded;
		below->no_memory = !make_room(below, 1);
		if (!below->no_memory && below->beheaded)
			below->nodes[link_node(below, 0)] = (struct pfs_below_node){.type = 'd'};
	}
	/* what comes without its directory lies in what is there */
	depth = below->n ? PFS_MAX(PFS_MIN(depth - below->top_depth, below->depth + 1), 1) : 0;
	if (below->no_memory || !make_room(below, depth)) {
		below->no_memory = true;
		return false;
	}
	node = link_node(below, depth);
	if (below->keyed) {
		below->keys[node].order = pfs_row_number(row);
		below->keys[node].ino = pfs_row_number(row);
	}
	if (below->take)
		below->take(below->arg, node, type, row);
	name = pfs_row_text(row, &len);
	below->nodes[node] = (struct pfs_below_node){
		.name = (size_t)(name - below->kept.text), .len = (uint16_t)len, .type = type};
	return true;
}

int pfs_below_ask(struct pfs_below *below, const char *before, const char *after, const char *where)
{
	char *sql PFS_FREE = NULL;
	int status;

	if (asprintf(&sql, "SELECT depth, type, %s%sname%s FROM nodes WHERE %s%s",
		     below->keyed ? "readdir, ino, " : "", before, after, where,
		     below->beheaded ? "" : " ORDER BY preorder") < 0)
		return pfs_cmd_fail(below->place->verb, "no memory");
	status = pfs_place_keep(below->place, &below->kept, sql, take, below);
	return !status && below->no_memory ? pfs_cmd_fail(below->place->verb, "no memory") : status;
}

void pfs_below_close(struct pfs_below *below)
{
	free(below->kept.text);
	free(below->nodes);
	free(below->keys);
	free(below->above);
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

/* The children of a directory, linked anew. */
static void sort_family(const struct pfs_below *below, struct pfs_below_node *above,
			const struct family *family)
{
	uint32_t *link = &above->first;

	qsort(family->siblings, family->n, sizeof(*family->siblings), by_order);
	for (size_t i = 0; i < family->n; i++) {
		*link = family->siblings[i].node;
		link = &below->nodes[*link].next;
	}
	*link = 0;
}

static int gather_family(const struct pfs_below *below, const struct pfs_below_node *above,
			 struct family *family)
{
	family->n = 0;
	for (uint32_t at = above->first; at; at = below->nodes[at].next) {
		PFS_TRY(pfs_grow(&family->siblings, &family->capacity, family->n + 1,
				 sizeof(*family->siblings)));
		family->siblings[family->n++] = (struct sibling){below->keys[at].order, at};
	}
	return 0;
}

int pfs_below_sort(const struct pfs_below *below)
{
	struct family family = {0};
	int error = 0;

	for (size_t i = 0; i < below->n && !error; i++) {
		error = gather_family(below, &below->nodes[i], &family);
		if (!error && family.n > 1)
			sort_family(below, &below->nodes[i], &family);
	}
	free(family.siblings);
	return error;
}

/* ---- wide directories ---- */

struct wide {
	const struct pfs_below *below;
	struct pfs_below_key *keys; /* directories, and how many are in each as order; or children */
	size_t n, capacity;
	bool no_memory;
};

static int by_ino(const void *a, const void *b)
{
	const struct pfs_below_key *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

static int by_key_order(const void *a, const void *b)
{
	const struct pfs_below_key *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

static bool take_key(void *arg, struct pfs_row *row)
{
	struct wide *wide = arg;
	struct pfs_below_key *key;

	if (pfs_grow(&wide->keys, &wide->capacity, wide->n + 1, sizeof(*key))) {
		wide->no_memory = true;
		return false;
	}
	key = &wide->keys[wide->n++];
	key->ino = pfs_row_number(row);
	key->order = pfs_row_number(row);
	return true;
}

static int ask(struct wide *wide, const char *sql)
{
	const struct pfs_place *place = wide->below->place;
	int status = pfs_place_ask(place, sql, take_key, wide);

	if (!status && wide->no_memory)
		return pfs_cmd_fail(place->verb, "no memory");
	if (wide->n)
		qsort(wide->keys, wide->n, sizeof(*wide->keys), by_ino);
	return status;
}

/* The order of something, or what is given. */
static uint64_t order_of(const struct wide *wide, uint64_t ino, uint64_t missing)
{
	const struct pfs_below_key key = {.ino = ino};
	const struct pfs_below_key *found =
		wide->n ? bsearch(&key, wide->keys, wide->n, sizeof(key), by_ino) : NULL;

	return found ? found->order : missing;
}

/* The children's places in the order in which they are met. */
static int rank_children(struct wide *children, uint64_t parent)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT ino, readdir FROM nodes WHERE parent = %" PRIu64, parent);
	PFS_TRY(ask(children, sql));
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

static int order_wide(const struct pfs_below *below, const struct family *family, uint64_t parent,
		      uint64_t n_children)
{
	struct wide children = {.below = below};
	int status = n_children > BATCH ? rank_children(&children, parent) : PFS_EXIT_OK;

	for (size_t i = 0; i < family->n; i++) {
		uint64_t ino = below->keys[family->siblings[i].node].ino;

		family->siblings[i].order = order_of(&children, ino, ino);
	}
	free(children.keys);
	return status;
}

static int sort_families(const struct pfs_below *below, const struct wide *wide, struct family *family)
{
	for (size_t i = 0; i < below->n; i++) {
		uint64_t n_children;

		if (!below->nodes[i].first)
			continue;
		if (gather_family(below, &below->nodes[i], family))
			return pfs_cmd_fail(below->place->verb, "no memory");
		n_children = below->whole ? family->n : order_of(wide, below->keys[i].ino, 0);
		if (n_children > UNSORTED)
			PFS_TRY(order_wide(below, family, below->keys[i].ino, n_children));
		if (family->n > 1)
			sort_family(below, &below->nodes[i], family);
	}
	return PFS_EXIT_OK;
}

int pfs_below_sort_as_fts(const struct pfs_below *below)
{
	struct wide wide = {.below = below};
	struct family family = {0};
	char *path PFS_FREE = pfs_sql_quote(below->place->path), *sql PFS_FREE = NULL;
	int status = PFS_EXIT_OK;

	if (below->n < 2)
		return PFS_EXIT_OK;
	if (!path ||
	    asprintf(&sql,
		     "SELECT parent, count(*) FROM nodes WHERE parent IN (SELECT ino FROM nodes "
		     "WHERE under(ino, %s) AND type = 'd' AND subtree_count > %d) GROUP BY parent "
		     "HAVING count(*) > %d",
		     path, UNSORTED, UNSORTED) < 0)
		return pfs_cmd_fail(below->place->verb, "no memory");
	if (!below->whole)
		status = ask(&wide, sql);
	status = status ? status : sort_families(below, &wide, &family);
	free(wide.keys);
	free(family.siblings);
	return status;
}
