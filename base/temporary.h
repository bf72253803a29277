/* SPDX-License-Identifier: MIT */
/* base/temporary.h - files without a name, in the folder for temporary files ($TMPDIR, or /tmp).
 *
 * All of them together leave a 32nd of that filesystem, or 256 MiB if that is less, to others.
 * Bytes that were granted to a file and are not written yet count as used, so this also holds for
 * many files that grow at once. Threads: one thread at a time uses a file; any number use different
 * files. */
#ifndef PFS_BASE_TEMPORARY_H
#define PFS_BASE_TEMPORARY_H

#include <stdint.h>

#include "base/err.h"

struct pfs_temporary {
	int fd;		  /* -1: the file is not open */
	uint64_t granted; /* bytes that it may have before free space is looked up again */
	uint64_t owed;	  /* bytes of these that were not written at the last look */
};

/* Returns the descriptor of a new file without a name, which the caller closes and whose bytes are
 * not counted; or a negative errno of open(2). */
PFS_MUST_CHECK int pfs_temporary_descriptor(void);

/* Opens a new, empty file. Returns 0, or a negative errno of open(2). */
PFS_MUST_CHECK int pfs_temporary_open(struct pfs_temporary *file);
void pfs_temporary_close(struct pfs_temporary *file); /* does nothing if the file is not open */

/* Asks for room, before a write that ends at `size` bytes. -ENOSPC: the write would use the part
 * that is left to others. */
PFS_MUST_CHECK int pfs_temporary_grow(struct pfs_temporary *file, uint64_t size);

/* Shortens the file to `size` bytes. Returns 0, or a negative errno of ftruncate(2). */
PFS_MUST_CHECK int pfs_temporary_truncate(struct pfs_temporary *file, uint64_t size);

uint64_t pfs_temporary_owed(void); /* bytes that were granted and are not written (tests) */

#endif
