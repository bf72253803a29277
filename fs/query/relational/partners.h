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
	bool wanted;		     /* nodes that have a row are selected; false: the others */
};

/* Returns true if the block asks the lifted input only whether it has a row, and numbers of nodes
 * of the source, which is the table of an input, tie the two together. Otherwise the input is
 * joined. */
bool pfs_partners_ask(struct pfs_partners *partners, const struct pfs_running *running,
		      const struct pfs_source *source, unsigned input);
/* Marks the nodes of the source that the sub-select has a row for; it runs as `part`, and has found
 * its rows. The caller frees *marked. */
PFS_MUST_CHECK int pfs_partners_mark(const struct pfs_partners *partners, struct pfs_rows **marked,
				     const struct pfs_running *running,
				     const struct pfs_source *source, struct pfs_running *part);
/* Selects the rows of the source that are marked, or the others. The lifted input needs no table
 * then, and is not joined (pfs_running_joined). */
PFS_MUST_CHECK int pfs_partners_select(const struct pfs_partners *partners,
				       struct pfs_running *running, struct pfs_source *source,
				       struct pfs_rows *marked);

#endif
