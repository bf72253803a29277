/* SPDX-License-Identifier: MIT */
/* tools/gnu/du_links.h - files with several names, which du counts once a call. */
#ifndef PFS_TOOLS_GNU_DU_LINKS_H
#define PFS_TOOLS_GNU_DU_LINKS_H

#include "tools/gnu/subtree.h"

/* Remembers the files with several names that were seen so far, of all places; zeros at first. */
struct pfs_du_links {
	struct pfs_du_seen {
		uint64_t link; /* 0: free */
		dev_t device;
	} *seen;
	size_t n, size;
};
void pfs_du_links_finish(struct pfs_du_links *links);

/* Tells if there are such names at the place. Returns an exit status, having said what was
 * wrong. */
PFS_MUST_CHECK int pfs_du_has_names(const struct pfs_place *place, bool *any);

/* A name of a file that was seen under another one. */
struct pfs_du_name {
	uint64_t size, blocks;
	uint32_t node;	    /* its own, or the nearest directory's that has a row */
	bool is_own;
	const uint32_t *up; /* by node: the directory above; 0 is the top */
};

/* Sees the names at the place, in pre-order, and calls again for those of files that were seen
 * already.  The rows of subtree are keyed.  An exit status, as above. */
PFS_MUST_CHECK int pfs_du_see_names(struct pfs_du_links *links, const struct pfs_subtree *subtree,
				    void (*again)(void *arg, const struct pfs_du_name *name),
				    void *arg);

#endif
