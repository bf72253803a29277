/* SPDX-License-Identifier: MIT */
/* tests/ref/version1.h - makes stores of version 1 of the format, as primefs once wrote them. */
#ifndef PFS_TESTS_VERSION1_H
#define PFS_TESTS_VERSION1_H

#include "base/err.h"

/* Writes the closed store at `path` anew as one of version 1, without what that version lacks; vfs
 * as in struct pfs_store_options.  -EIO. */
PFS_MUST_CHECK int version1_make(const char *path, const char *vfs);

/* The format's version of the file at path, by its header alone; -EIO. */
PFS_MUST_CHECK int version_of(const char *path);

#endif
