/* SPDX-License-Identifier: MIT */
/* tools/find_search.h - a search below one place, shared by its two ways to go: rows as they come
 * (cmd_find.c), and rows in the order in which find(1) walks (find_walk.c). */
#ifndef PFS_TOOLS_FIND_SEARCH_H
#define PFS_TOOLS_FIND_SEARCH_H

#include "tools/ask.h"
#include "tools/find_expr.h"

struct pfs_search {
	const struct pfs_place *place;
	struct pfs_find_run run;
	struct pfs_found start; /* its path is owned */
	unsigned start_depth;	/* in the store */
	bool found_start, start_pruned;
	char *path; /* of what is being decided */
	size_t capacity;
};

/* Runs `SELECT key, columns that the expression needs FROM nodes WHERE where`, calling row for each.
 * An exit status, having said what was wrong. */
PFS_MUST_CHECK int pfs_search_ask(struct pfs_search *search, const char *key, const char *where,
				  bool (*row)(void *arg, const struct pfs_row *row), void *arg);

/* What these columns say; n of them.  Path, name and depth stay the caller's. */
void pfs_search_fill(const struct pfs_search *search, struct pfs_found *found, char **field, size_t n);

/* The found node's path and name are those in search->path. */
void pfs_search_name(const struct pfs_search *search, struct pfs_found *found);

/* Decides, within the limits of depth; true if what is below is to be left out. */
bool pfs_search_decide(struct pfs_search *search, const struct pfs_found *found);

/* Decides for all below the start, in order: each directory before what is in it, or after it with
 * -depth.  An exit status. */
PFS_MUST_CHECK int pfs_search_walk(struct pfs_search *search);

#endif
