/* SPDX-License-Identifier: MIT */
/* tests/ref/version1.h - makes stores of versions 1 and 2 of the format, as primefs once wrote
 * them. */
#ifndef PFS_TESTS_VERSION1_H
#define PFS_TESTS_VERSION1_H

#include "base/err.h"

/* Writes the closed store at `path` anew as one of that version, without what the version lacks;
 * vfs as in struct pfs_store_options.  -EIO. */
PFS_MUST_CHECK int old_version_make(const char *path, int version, const char *vfs);

/* The format's version of the file at path, by its header alone; -EIO. */
PFS_MUST_CHECK int version_of(const char *path);

#endif
