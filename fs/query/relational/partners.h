/* SPDX-License-Identifier: MIT */
/* fs/query/relational/partners.h - IN, EXISTS and their contraries without a join. */
#ifndef PFS_FS_QUERY_RELATIONAL_PARTNERS_H
#define PFS_FS_QUERY_RELATIONAL_PARTNERS_H

#include "fs/query/relational/run.h"

/* A sub-select of nodes that a condition only asks for a row. */
struct pfs_partners {
	const struct pfs_term
		*outer; /* the number of a node of the source that ties it to the rows */
	const struct pfs_term *rows; /* what the rows have: numbers of nodes, or of their parents */
	struct pfs_join_key key;     /* of which `right` is known when the rows have been found */
	bool wanted;		     /* nodes that have a row are selected; false: the others */
};

/* Returns true if the block asks the lifted input only whether it has a row, and numbers of nodes
 * tie the two together. Otherwise the input is joined. */
bool pfs_partners_ask(struct pfs_partners *partners, struct pfs_running *running, unsigned input);
/* Selects the rows of the source that the sub-select has a row for, or the others; the sub-select
 * runs as `part` and has found its rows. */
PFS_MUST_CHECK int pfs_partners_select(const struct pfs_partners *partners,
				       struct pfs_running *running, struct pfs_running *part);

#endif
