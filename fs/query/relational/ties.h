/* SPDX-License-Identifier: MIT */
/* fs/query/relational/ties.h - equalities that tie nodes to the values of another input: their
 * number, parent or name is one of these. */
#ifndef PFS_FS_QUERY_RELATIONAL_TIES_H
#define PFS_FS_QUERY_RELATIONAL_TIES_H

#include "fs/query/relational/bound.h"

#define PFS_TIES_MAX 4 /* of one input that are considered */

/* An equality that every row of an input of nodes has to satisfy. */
struct pfs_tie {
	enum pfs_field field;	   /* INO, PARENT or NAME */
	const struct pfs_term *by; /* a column of another input, which is none of nodes */
};

/* Finds such equalities in WHERE, ON, USING and NATURAL; returns how many. */
size_t pfs_ties_find(struct pfs_tie ties[static PFS_TIES_MAX], const struct pfs_block *block,
		     unsigned input);
/* Makes inner joins of those LEFT JOINs of which WHERE leaves only what they have found a row
 * for. */
void pfs_block_join_inner(struct pfs_block *block);

#endif
