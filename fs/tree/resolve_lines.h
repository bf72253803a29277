/* SPDX-License-Identifier: MIT */
/* fs/tree/resolve_lines.h - lists of paths as text, from text: all cores find the lines, and all cores
 * write what fs/tree/resolve.h finds for them. */
#ifndef PFS_FS_TREE_RESOLVE_LINES_H
#define PFS_FS_TREE_RESOLVE_LINES_H

#include "fs/tree/resolve.h"

struct pfs_resolve_lines {
	const char *text; /* paths, each ended by the delimiter, which the last one may lack */
	size_t size;
	char delimiter;
	bool with_paths; /* each number is followed by a tab and the path */
	/* Returns memory for the next `size` bytes of the answer; NULL: there is none. Called several
	 * times: what was returned before has been filled then. */
	char *(*room)(void *arg, size_t size);
	void *arg;
	/* Nanoseconds that each stage took; added to. */
	uint64_t split_ns, resolve_ns, print_ns;
};

/* Writes a line for each path, in their order: its inode number, or - where there is no such node; the
 * lines end as the paths do. As pfs_tree_resolve_many; -ENOMEM: also if there was no room. */
PFS_MUST_CHECK int pfs_tree_resolve_lines(struct pfs_tree *tree, struct pfs_resolve_lines *lines,
					  const struct pfs_resolve_from *from);

#endif
