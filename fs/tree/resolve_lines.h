/* SPDX-License-Identifier: MIT */
/* fs/tree/resolve_lines.h - finds paths in a text, one a line, and prints the answers as text. All
 * threads find lines, and all print pieces of the answer, each into a place of its own.
 *
 * The caller finds the first lines of a text, resolves their paths into lines->inos
 * (fs/tree/resolve.h), prints the answers, and goes on with the rest of the text. */
#ifndef PFS_FS_TREE_RESOLVE_LINES_H
#define PFS_FS_TREE_RESOLVE_LINES_H

#include <sys/uio.h>

#include "fs/tree/resolve.h"

/* The most lines that are found at once. */
#define PFS_RESOLVE_LINES_MAX ((size_t)1 << 17)

/* `run` calls work(context, from, to) for pieces of 0..n, as pfs_scan_run does. All but the last
 * have `grain` elements. */
struct pfs_resolve_threads {
	void (*run)(void *arg, size_t n, size_t grain,
		    void (*work)(void *context, size_t from, size_t to), void *context);
	void *arg;
};

struct pfs_resolve_lines {
	struct pfs_path_text *paths; /* they point into the caller's text */
	uint64_t *inos;		     /* n elements, which the caller sets */
	size_t n;
	/* Private. */
	size_t paths_capacity, inos_capacity, before_capacity;
	size_t *before; /* how many lines end before each piece of the text */
};

/* The answers as text: the parts, one after the other. */
struct pfs_resolve_text {
	struct iovec *parts;
	size_t n_parts;
	/* Private. */
	char *bytes;
	size_t capacity, parts_capacity;
};

/* Finds the first lines of a text that is not empty, at most PFS_RESOLVE_LINES_MAX. Each is a path
 * and the delimiter, which the last one may lack. *used: how many bytes they have. -ENOMEM. */
PFS_MUST_CHECK int pfs_resolve_lines_find(struct pfs_resolve_lines *lines, size_t *used,
					  const char *text, size_t size, char delimiter,
					  const struct pfs_resolve_threads *threads);

/* Prints a line for each path, in order: its inode number, or - for 0; a tab and the path, if
 * with_paths is true; and the delimiter. -ENOMEM. */
PFS_MUST_CHECK int pfs_resolve_lines_print(const struct pfs_resolve_lines *lines,
					   struct pfs_resolve_text *out, bool with_paths,
					   char delimiter,
					   const struct pfs_resolve_threads *threads);

/* Free the memory of these. They are all zeros at first. */
void pfs_resolve_lines_free(struct pfs_resolve_lines *lines);
void pfs_resolve_text_free(struct pfs_resolve_text *text);

#endif
