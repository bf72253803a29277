/* SPDX-License-Identifier: MIT */
/* tools/import/import_source.h - what directories know of what they were imported from: attributes
 * that only this program sets. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_SOURCE_H
#define PFS_TOOLS_IMPORT_IMPORT_SOURCE_H

#include "tools/import/import.h"

/* What the import leaves out, so that a refresh does, too.  -ECANCELED: there is too much of it,
 * which was said. */
PFS_MUST_CHECK int pfs_import_put_left_out(struct pfs_import *import, uint64_t prime);

/* Of the highest directories below which all is new, unless they are too many, when the source
 * began to be read (compared.h), so that people can see how old the copy is. If the source is a
 * folder whose files are not linked, these and all that were there before and have got something
 * from it say that, too; what else comes to an empty directory takes the place of such a folder,
 * and the directory no longer says so. All nodes are marked before they are written. */
void pfs_import_mark_compared(struct pfs_import *import);
PFS_MUST_CHECK int pfs_import_put_compared(struct pfs_import *import, uint32_t node,
					   uint64_t prime);

#endif
