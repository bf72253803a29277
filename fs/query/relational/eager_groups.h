/* SPDX-License-Identifier: MIT */
/* fs/query/relational/eager_groups.h - groups that are made before a join: of the largest input,
 * one for each combination of the values that the rest of the statement asks about, with what the
 * aggregates make of it.  What is joined then are these groups, and their aggregates are merged
 * afterwards; no pair of rows is ever written down. */
#ifndef PFS_FS_QUERY_RELATIONAL_EAGER_GROUPS_H
#define PFS_FS_QUERY_RELATIONAL_EAGER_GROUPS_H

#include "fs/query/relational/partial_groups.h"

#define PFS_EARLY_COLUMNS 16

struct pfs_eager_plan {
	unsigned input;
	const struct pfs_term *columns[PFS_EARLY_COLUMNS]; /* of that input, that others than its
							      aggregates name */
	size_t n_columns;
	uint64_t n_rows; /* of the input's table */
};

/* The groups of one input, while the block runs. */
struct pfs_eager {
	struct pfs_partial partial;
	struct pfs_tuples *tuples;
};

/* Returns true if groups can be made of an input before it is joined, and such columns have few
 * values; n_nodes: in the tree. */
bool pfs_eager_find(struct pfs_eager_plan *plan, const struct pfs_block *block, uint64_t n_nodes);

/* Makes them of the source, which is the plan's input, and the source them; running->early is set
 * then.  It stays NULL, and the source as it is, if a part of its rows has many groups. */
PFS_MUST_CHECK int pfs_eager_group(struct pfs_running *running, struct pfs_source *source,
				   const struct pfs_eager_plan *plan);
void pfs_eager_free(struct pfs_running *running);

#endif
