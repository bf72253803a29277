/* SPDX-License-Identifier: MIT */
/* tools/import/import_source.h - what directories know of what they were imported from: attributes
 * that only this program sets. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_SOURCE_H
#define PFS_TOOLS_IMPORT_IMPORT_SOURCE_H

#include "tools/import/import.h"

/* What the import leaves out, so that a refresh does, too.  -ECANCELED: there is too much of it,
 * which was said. */
PFS_MUST_CHECK int pfs_import_put_left_out(struct pfs_import *import, uint64_t prime);

/* When the source began to be read (compared.h), so that people can see how old the copy is: of
 * each directory that is added to one that was there before, unless they are too many; and that it
 * came with a folder whose files are not linked. All nodes are marked before they are written. */
void pfs_import_mark_compared(struct pfs_import *import);
PFS_MUST_CHECK int pfs_import_put_compared(struct pfs_import *import, uint32_t node,
					   uint64_t prime);
/* What is not such a folder and comes to a directory that is empty takes the place of one that came
 * to it: the directory no longer says that, so that a newer list can be compared with what it
 * holds. Called when all is written. */
PFS_MUST_CHECK int pfs_import_forget_copied(struct pfs_import *import);

#endif
