/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_search.h - a search below one place, shared by its two ways to go: rows as they
 * come (cmd_find.c), and rows in the order in which find(1) walks (find_walk.c). */
#ifndef PFS_TOOLS_GNU_FIND_SEARCH_H
#define PFS_TOOLS_GNU_FIND_SEARCH_H

#include "tools/client/ask.h"
#include "tools/gnu/find_expr.h"

struct pfs_search {
	const struct pfs_place *place;
	struct pfs_find_run run;
	struct pfs_found start;
	char *start_target;   /* its */
	unsigned start_depth; /* in the store */
	bool found_start, start_pruned;
	bool prints_all; /* only that, whatever it is */
	char *path;	 /* of what is being decided, NUL-terminated; begins with the start's */
	size_t path_len, start_len, capacity;
	size_t *lens, lens_n, lens_capacity; /* of the paths above it, by depth */
};

/* The columns that the expression needs, ", ...", to be taken from a row by pfs_search_fill. */
#define PFS_FIND_COLUMNS 256
void pfs_search_columns(const struct pfs_search *search, char list[PFS_FIND_COLUMNS]);
void pfs_search_fill(const struct pfs_search *search, struct pfs_found *found, char type,
		     struct pfs_row *row);

/* Writes what -maxdepth adds to a condition. */
#define PFS_FIND_LIMIT 64
void pfs_search_limit(const struct pfs_search *search, char limit[PFS_FIND_LIMIT]);

/* Makes the path that of the node with this absolute path in the store, as the place shows it.
 * Returns false if there is no memory. */
bool pfs_search_show(struct pfs_search *search, const char *path, size_t size);

/* Makes the path that of the name in the directory whose path its first `above` bytes are. Returns
 * false if there is no memory. */
bool pfs_search_enter(struct pfs_search *search, size_t above, const char *name, size_t size);

/* Decides about what has the path, within the limits of depth; true if what is below is to be left
 * out. */
bool pfs_search_decide(struct pfs_search *search, struct pfs_found *found);

/* Decides for all below the start, in order: each directory before what is in it, or after it with
 * -depth.  An exit status. */
PFS_MUST_CHECK int pfs_search_walk(struct pfs_search *search);

#endif
