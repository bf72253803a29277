/* SPDX-License-Identifier: MIT */
/* tools/gnu/subtree.h - the rows of a subtree as a tree, put together while they come: each
 * directory before what lies in it, siblings by the bytes of their names.  Siblings may then be
 * brought into the order in which GNU's find and du meet them: that of readdir, but for wide
 * directories. */
#ifndef PFS_TOOLS_GNU_SUBTREE_H
#define PFS_TOOLS_GNU_SUBTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "tools/client/ask.h"

struct pfs_subtree_node {
	size_t name; /* where it begins in the kept text, NUL-terminated */
	uint32_t first, next; /* the first child, the next sibling; 0: none */
	uint32_t n_children; /* of a node that has a key: all there are, rows or not */
	uint16_t len; /* of the name */
	char type; /* find's letter */
};

struct pfs_subtree_key {
	uint64_t order,
		ino; /* order: among its siblings: the column readdir, or what else sorts them */
};

struct pfs_subtree {
	const struct pfs_place *place;
	bool keyed; /* has keys: is to be sorted */
	bool beheaded; /* no row is the top's, all are its children's, as they are found */
	/* Called for each node, if not NULL, to take the columns before the name. */
	void (*take)(void *arg, uint32_t node, char type, struct pfs_row *row);
	void *arg;

	struct pfs_place_text kept;
	struct pfs_subtree_node *nodes; /* the first is the top */
	struct pfs_subtree_key *keys;
	uint32_t *above; /* the node that was added last, at `depth`, and those above it, from the
			    top */
	size_t n, depth, capacity, key_capacity, above_capacity;
	uint64_t top_depth;
	bool no_memory;
};

/* Asks for what fulfils the condition, with columns before the name, "..., ", and after it, ",
 * ...": a top, and below it whatever lies below what is no leaf, all directories that are not
 * deeper than a limit if there are keys.  An exit status, having said what was wrong.  Close it in
 * any case. */
PFS_MUST_CHECK int pfs_subtree_ask(struct pfs_subtree *subtree, const char *before,
				   const char *after, const char *where);
void pfs_subtree_close(struct pfs_subtree *subtree);

static inline char *pfs_subtree_name(const struct pfs_subtree *subtree, uint32_t node, size_t *len)
{
	*len = subtree->nodes[node].len;
	return subtree->kept.text + subtree->nodes[node].name;
}

/* The columns after the name, which are to be taken once: texts are changed where they lie. */
static inline struct pfs_row pfs_subtree_row(const struct pfs_subtree *subtree, uint32_t node)
{
	size_t len;
	char *name = pfs_subtree_name(subtree, node, &len);

	return (struct pfs_row){.at = name + len + 1};
}

/* Siblings by their keys' order, -ENOMEM; the same in the order of a walk, which asks what the
 * widest directories hold: an exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_subtree_sort(const struct pfs_subtree *subtree);
PFS_MUST_CHECK int pfs_subtree_sort_as_fts(const struct pfs_subtree *subtree);

#endif
