/* SPDX-License-Identifier: MIT */
/* tools/import/import_source.h - what a directory that came with a folder knows of it: attributes that only this
 * program sets. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_SOURCE_H
#define PFS_TOOLS_IMPORT_IMPORT_SOURCE_H

#include <time.h>

#include "tools/import/import.h"

/* What the import leaves out, so that a refresh does, too.  -ECANCELED: there is too much of it, which was said. */
PFS_MUST_CHECK int pfs_import_put_left_out(struct pfs_import *import, uint64_t prime);

/* When the folder began to be read, in seconds since 1970, so that people can see how old the copy is. */
PFS_MUST_CHECK int pfs_import_put_compared(struct pfs_import *import, uint64_t prime, time_t begun_s);

#endif
