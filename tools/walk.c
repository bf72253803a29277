/* SPDX-License-Identifier: MIT */
/* GNU's find and du read directories with gnulib's fts(3): as many entries at a time as a batch may
 * have, and a batch that is larger than a limit is sorted by inode numbers. */
#include "tools/walk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

#define UNSORTED 10000 /* entries at most that stay as they were read */
#define BATCH	 100000

static struct pfs_walk_key *key_at(const struct pfs_walk *walk, size_t i)
{
	void *key = (char *)walk->entries + i * walk->size;

	return key;
}

/* ---- order ---- */

static int by_order(const void *a, const void *b)
{
	const struct pfs_walk_key *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

static int by_parent(const void *a, const void *b)
{
	const struct pfs_walk_key *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	return by_order(a, b);
}

static int by_ino(const void *a, const void *b)
{
	const struct pfs_walk_key *x = a, *y = b;

	return (x->ino > y->ino) - (x->ino < y->ino);
}

void pfs_walk_sort(const struct pfs_walk *walk)
{
	if (walk->n)
		qsort(walk->entries, walk->n, walk->size, by_parent);
}

size_t pfs_walk_first_child(const struct pfs_walk *walk, uint64_t parent)
{
	size_t low = 0, high = walk->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (key_at(walk, middle)->parent < parent)
			low = middle + 1;
		else
			high = middle;
	}
	return low < walk->n && key_at(walk, low)->parent == parent ? low : walk->n;
}

/* ---- wide directories ---- */

struct wide {
	const struct pfs_walk *walk;
	const struct pfs_place *place;
	struct pfs_walk_key *keys; /* directories: parent, and how many are in it as order; or one's children */
	size_t n, capacity;
	bool no_memory;
};

static bool take(void *arg, const struct pfs_row *row)
{
	struct wide *wide = arg;

	if (row->n < 2 || pfs_grow(&wide->keys, &wide->capacity, wide->n + 1, sizeof(*wide->keys))) {
		wide->no_memory = true;
		return false;
	}
	wide->keys[wide->n++] = (struct pfs_walk_key){.ino = strtoull(row->field[0], NULL, 10),
						      .order = strtoull(row->field[1], NULL, 10)};
	return true;
}

static int ask(struct wide *wide, const char *sql)
{
	int status = pfs_place_ask(wide->place, sql, take, wide);

	return !status && wide->no_memory ? pfs_cmd_fail(wide->place->verb, "no memory") : status;
}

/* The children's places in the order in which they are met. */
static int rank_children(struct wide *children, uint64_t parent)
{
	char sql[128];

	(void)snprintf(sql, sizeof(sql), "SELECT ino, readdir FROM nodes WHERE parent = %" PRIu64, parent);
	PFS_TRY(ask(children, sql));
	if (!children->n)
		return PFS_EXIT_OK;
	qsort(children->keys, children->n, sizeof(*children->keys), by_order);
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

static int order_family(const struct wide *wide, uint64_t parent, uint64_t n_children)
{
	size_t first = pfs_walk_first_child(wide->walk, parent), end = first;
	struct wide children = {.place = wide->place};
	int status = n_children > BATCH ? rank_children(&children, parent) : PFS_EXIT_OK;

	for (; end < wide->walk->n && key_at(wide->walk, end)->parent == parent; end++) {
		struct pfs_walk_key *key = key_at(wide->walk, end);
		const struct pfs_walk_key *child =
			children.n ? bsearch(key, children.keys, children.n, sizeof(*key), by_ino)
				   : NULL;

		key->order = child ? child->order : key->ino;
	}
	if (end > first)
		qsort(key_at(wide->walk, first), end - first, wide->walk->size, by_order);
	free(children.keys);
	return status;
}

int pfs_walk_sort_as_fts(const struct pfs_walk *walk, const struct pfs_place *place)
{
	struct wide wide = {.walk = walk, .place = place};
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;
	int status;

	pfs_walk_sort(walk);
	if (walk->n < 2)
		return PFS_EXIT_OK;
	if (!path ||
	    asprintf(&sql,
		     "SELECT parent, count(*) FROM nodes WHERE parent IN (SELECT ino FROM nodes "
		     "WHERE under(ino, %s) AND type = 'd' AND subtree_count > %d) GROUP BY parent "
		     "HAVING count(*) > %d",
		     path, UNSORTED, UNSORTED) < 0)
		return pfs_cmd_fail(place->verb, "no memory");
	status = ask(&wide, sql);
	for (size_t i = 0; i < wide.n && !status; i++)
		status = order_family(&wide, wide.keys[i].ino, wide.keys[i].order);
	free(wide.keys);
	return status;
}
