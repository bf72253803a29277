/* SPDX-License-Identifier: MIT */
/* tools/gnu/below.h - the rows of a subtree as a tree, put together while they come: each directory before
 * what lies in it, siblings by the bytes of their names.  Siblings may then be brought into the order
 * in which GNU's find and du meet them: that of readdir, but for wide directories. */
#ifndef PFS_TOOLS_GNU_BELOW_H
#define PFS_TOOLS_GNU_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tools/client/ask.h"

struct pfs_below_node {
	size_t name; /* where it begins in the kept text, NUL-terminated */
	uint32_t first, next; /* the first child, the next sibling; 0: none */
	uint32_t n_children; /* of a node that has a key: all there are, rows or not */
	uint16_t len; /* of the name */
	char type; /* find's letter */
};

struct pfs_below_key {
	uint64_t order, ino; /* order: among its siblings: the column readdir, or what else sorts them */
};

struct pfs_below {
	const struct pfs_place *place;
	bool keyed; /* has keys: is to be sorted */
	bool beheaded; /* no row is the top's, all are its children's, as they are found */
	/* Called for each node, if not NULL, to take the columns before the name. */
	void (*take)(void *arg, uint32_t node, char type, struct pfs_row *row);
	void *arg;

	struct pfs_place_text kept;
	struct pfs_below_node *nodes; /* the first is the top */
	struct pfs_below_key *keys;
	uint32_t *above; /* the node that was added last, at `depth`, and those above it, from the top */
	size_t n, depth, capacity, key_capacity, above_capacity;
	uint64_t top_depth;
	bool no_memory;
};

/* Asks for what fulfils the condition, with columns before the name, "..., ", and after it, ", ...": a top,
 * and below it whatever lies below what is no leaf, all directories that are not deeper than a limit if
 * there are keys.  An exit status, having said what was wrong.  Close it
 * in any case. */
PFS_MUST_CHECK int pfs_below_ask(struct pfs_below *below, const char *before, const char *after,
				 const char *where);
void pfs_below_close(struct pfs_below *below);

static inline char *pfs_below_name(const struct pfs_below *below, uint32_t node, size_t *len)
{
	*len = below->nodes[node].len;
	return below->kept.text + below->nodes[node].name;
}

/* The columns after the name, which are to be taken once: texts are changed where they lie. */
static inline struct pfs_row pfs_below_row(const struct pfs_below *below, uint32_t node)
{
	size_t len;
	char *name = pfs_below_name(below, node, &len);

	return (struct pfs_row){.at = name + len + 1};
}

/* Siblings by their keys' order, -ENOMEM; the same in the order of a walk, which asks what the widest
 * directories hold: an exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_below_sort(const struct pfs_below *below);
PFS_MUST_CHECK int pfs_below_sort_as_fts(const struct pfs_below *below);

#endif
