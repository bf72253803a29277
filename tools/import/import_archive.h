/* SPDX-License-Identifier: MIT */
/* tools/import/import_archive.h - opens what libarchive reads. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_ARCHIVE_H
#define PFS_TOOLS_IMPORT_IMPORT_ARCHIVE_H

#include "base/err.h"
#include "tools/import/import.h"

struct archive;

/* Opens import's input.  *opened, also after an error, is for archive_read_free() unless NULL. */
PFS_MUST_CHECK int pfs_archive_open(struct archive **opened, struct pfs_import *import);

#endif
