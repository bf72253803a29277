/* SPDX-License-Identifier: MIT */
/* fs/query/relational/partners.h - IN, EXISTS and their contraries without a join. */
#ifndef PFS_FS_QUERY_RELATIONAL_PARTNERS_H
#define PFS_FS_QUERY_RELATIONAL_PARTNERS_H

#include "fs/query/relational/run.h"

/* Selects the rows of the source that the lifted input has a row for, or those that it has none
 * for. *done stays false if the block asks the input for more, or numbers of nodes do not tie the
 * two together: then it is joined. */
PFS_MUST_CHECK int pfs_partners_select(struct pfs_running *running, bool *done, unsigned input);

#endif
