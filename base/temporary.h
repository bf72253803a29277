/* SPDX-License-Identifier: MIT */
/* base/temporary.h - files without a name, in the folder for temporary files ($TMPDIR, or /tmp).
 *
 * Together they leave a part of that filesystem to others: a 32nd of it, or 256 MiB if that is
 * less. Bytes that a file was granted and has not taken up yet count as used, so that many files at
 * once leave that part, too.
 * Threads: a file is one thread's at a time; different files are any number of threads'. */
#ifndef PFS_BASE_TEMPORARY_H
#define PFS_BASE_TEMPORARY_H

#include <stdint.h>

#include "base/err.h"

struct pfs_temporary {
	int fd;		  /* -1: the file is not open */
	uint64_t granted; /* bytes that it may have before the filesystem is looked at again */
	uint64_t owed;	  /* bytes of these that it had not taken up at the last look */
};

/* Returns the descriptor, the caller's to close, of a new file without a name, for which nothing is
 * reserved or counted; or a negative errno of open(2). */
PFS_MUST_CHECK int pfs_temporary_descriptor(void);

/* Opens a new, empty file. A negative errno of open(2); the file is not open then. */
PFS_MUST_CHECK int pfs_temporary_open(struct pfs_temporary *file);
void pfs_temporary_close(struct pfs_temporary *file); /* does nothing if the file is not open */

/* Asks for room, before a write that ends at `size` bytes. -ENOSPC: the write would take what is
 * left to others. */
PFS_MUST_CHECK int pfs_temporary_grow(struct pfs_temporary *file, uint64_t size);

/* Makes the file `size` bytes long, which is less than it was. A negative errno of ftruncate(2). */
PFS_MUST_CHECK int pfs_temporary_truncate(struct pfs_temporary *file, uint64_t size);

uint64_t pfs_temporary_owed(void); /* bytes that all files were granted and have not taken up (tests) */

#endif
