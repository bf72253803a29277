/* SPDX-License-Identifier: MIT */
/* base/temporary.h - files without a name in the folder for temporary files ($TMPDIR, or /tmp), which
 * leave a part of its filesystem to others: a 32nd of it, or 256 MiB if that is less.  What all files
 * were granted and have not used yet counts as used, so that many together leave it, too.
 * Threads: a file is one thread's at a time, different ones are any number's. */
#ifndef PFS_BASE_TEMPORARY_H
#define PFS_BASE_TEMPORARY_H

#include <stdint.h>

#include "base/err.h"

struct pfs_temporary {
	int fd;		  /* -1: not open */
	uint64_t granted; /* bytes that it may have without another look at the filesystem */
	uint64_t owed;	  /* bytes of these that it did not take up at the last look */
};

/* A descriptor, the caller's, of a new file without a name, that no reserve holds for; or a negative
 * errno. */
PFS_MUST_CHECK int pfs_temporary_descriptor(void);

/* A new file of no bytes.  An errno of open(2), and the file is not open. */
PFS_MUST_CHECK int pfs_temporary_open(struct pfs_temporary *file);
void pfs_temporary_close(struct pfs_temporary *file); /* one that is not open is left alone */

/* Asked before a write that ends at `size` bytes.  -ENOSPC: it would take what is left to others. */
PFS_MUST_CHECK int pfs_temporary_grow(struct pfs_temporary *file, uint64_t size);

/* Makes the file shorter: `size` bytes.  An errno of ftruncate(2). */
PFS_MUST_CHECK int pfs_temporary_truncate(struct pfs_temporary *file, uint64_t size);

uint64_t pfs_temporary_owed(void); /* bytes, of all files (tests) */

#endif
