/* SPDX-License-Identifier: MIT */
/* tools/dupes/dupes.h - files with the same content.
 *
 * Files of equal size are hashed (XXH3, 128 bits), and those of equal hash compared byte for byte.
 * A hash is kept with its node, and with the size and mtime that it is of; it is used as long as
 * the file has these. */
#ifndef PFS_TOOLS_DUPES_DUPES_H
#define PFS_TOOLS_DUPES_DUPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/tree/tree.h"

struct pfs_dupes_options {
	uint64_t ino;	   /* the directory below which files are compared */
	uint64_t min_size; /* bytes; those smaller, and empty ones, are not */
	/* Called for each group with the files' absolute paths, n of them, each of `size` bytes. A
	 * result that is not 0 ends the search, and is returned. */
	int (*group)(void *arg, uint64_t size, char *const *paths, size_t n);
	/* Called for a file that cannot be read. */
	int (*unread)(void *arg, const char *path, int error);
	bool (*gone)(void *arg); /* nobody waits any more: -ECANCELED */
	void *arg;
};

struct pfs_dupes_report {
	uint64_t groups, files; /* files: of the groups */
	uint64_t spare;		/* bytes of all but one of each group */
	uint64_t hashed;	/* files that were read for it */
	uint64_t unread;
};

/* Finds groups of files with the same content; names of one file (hard links of the source) count
 * as one. -ENOMEM, -ECANCELED, and what walking returns. */
PFS_MUST_CHECK int pfs_find_dupes(struct pfs_tree *tree, const struct pfs_dupes_options *options,
				  struct pfs_dupes_report *report);

#endif
