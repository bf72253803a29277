/* SPDX-License-Identifier: MIT */
/* fs/query/edits.h - makes a new text of a statement in which parts are replaced. Threads: one at a
 * time. */
#ifndef PFS_FS_QUERY_EDITS_H
#define PFS_FS_QUERY_EDITS_H

#include <stddef.h>

#include "base/err.h"

struct pfs_edits {
	char *text; /* the new text; not NUL-ended */
	size_t len, capacity;
	size_t copied; /* bytes of the old text that have been copied or replaced */
	size_t n;      /* how many replacements there were */
};

void pfs_edits_finish(struct pfs_edits *edits);

/* replace copies the old text up to old_at, and puts n bytes in place of old_len of it. end copies
 * what is left. -ENOMEM. */
PFS_MUST_CHECK int pfs_edits_replace(struct pfs_edits *edits, const char *old, size_t old_at,
				     size_t old_len, const char *bytes, size_t n);
PFS_MUST_CHECK int pfs_edits_end(struct pfs_edits *edits, const char *old, size_t len);

#endif
