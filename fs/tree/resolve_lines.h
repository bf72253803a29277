/* SPDX-License-Identifier: MIT */
/* fs/tree/resolve_lines.h - lists of paths as text, from text: all threads find the lines, and all threads
 * write the answers, each piece of lines into a place of its own.
 *
 * Whoever has such a text finds its lines, has their paths resolved into lines->inos (fs/tree/resolve.h), and
 * prints them; then the next lines of the text. */
#ifndef PFS_FS_TREE_RESOLVE_LINES_H
#define PFS_FS_TREE_RESOLVE_LINES_H

#include <sys/uio.h>

#include "fs/tree/resolve.h"

/* The lines that are found at once, at most. */
#define PFS_RESOLVE_LINES_MAX ((size_t)1 << 19)

/* Calls work(context, from, to) for pieces of 0..n, each of `grain` but the last, as pfs_scan_run does. */
struct pfs_resolve_threads {
	void (*run)(void *arg, size_t n, size_t grain, void (*work)(void *context, size_t from, size_t to),
		    void *context);
	void *arg;
};

struct pfs_resolve_lines {
	struct pfs_path_text *paths; /* in the text that was given */
	uint64_t *inos;		     /* room for as many; the caller sets them */
	size_t n;
	/* Private. */
	size_t paths_capacity, inos_capacity, before_capacity;
	size_t *before; /* how many lines end before each piece of the text */
};

/* The answers as text: `parts`, which follow one another. */
struct pfs_resolve_text {
	struct iovec *parts;
	size_t n_parts;
	/* Private. */
	char *bytes;
	size_t capacity, parts_capacity;
};

/* Finds the first lines of a text of `size` bytes, which is not empty: paths, each ended by the delimiter, which the last
 * one may lack. There are PFS_RESOLVE_LINES_MAX at most. *used: the bytes that they have. -ENOMEM. */
PFS_MUST_CHECK int pfs_resolve_lines_find(struct pfs_resolve_lines *lines, size_t *used, const char *text, size_t size,
					  char delimiter, const struct pfs_resolve_threads *threads);

/* Prints a line for each path, in their order: its inode number, or - for 0; with_paths: a tab and the path; and
 * the delimiter. -ENOMEM. */
PFS_MUST_CHECK int pfs_resolve_lines_print(const struct pfs_resolve_lines *lines, struct pfs_resolve_text *out,
					   bool with_paths, char delimiter, const struct pfs_resolve_threads *threads);

/* Free what these have; they are all zeros at first. */
void pfs_resolve_lines_free(struct pfs_resolve_lines *lines);
void pfs_resolve_text_free(struct pfs_resolve_text *text);

#endif
