/* SPDX-License-Identifier: MIT */
/* fs/query/relational/partial_groups.h - groups of parts of a table, which are then grouped once
 * more. */
#ifndef PFS_FS_QUERY_RELATIONAL_PARTIAL_GROUPS_H
#define PFS_FS_QUERY_RELATIONAL_PARTIAL_GROUPS_H

#include "fs/query/relational/run.h"

struct pfs_partial {
	struct pfs_running *running;
	struct pfs_group_key *keys;
	size_t n_keys;
	struct pfs_aggregate
		*aggregates;	       /* as they are of the whole: the block's, in their order; */
	struct pfs_aggregate *partial; /* of a part, AVG being two; */
	struct pfs_aggregate *merged;  /* of these, once more */
	uint16_t *partial_of;	       /* by aggregate */
	size_t n_partial;
	uint16_t at; /* the first vector of merged aggregates in what pfs_partial_run has made */
	/* Rows of the first part, 1 or more, which say whether the rest is worth it: if it has many
	 * groups, none is made. */
	uint64_t sample;
};

/* Returns true if the block's aggregates follow exactly from those of parts. */
bool pfs_partial_is_exact(const struct pfs_block *block);
/* Sets partial, merged and partial_of. -ENOMEM. */
PFS_MUST_CHECK int pfs_partial_plan(struct pfs_partial *partial);
/* Groups the source, which is a table's.  The caller frees *out.  As pfs_group; -ERANGE: the sample
 * has many groups. */
PFS_MUST_CHECK int pfs_partial_run(struct pfs_partial *partial, struct pfs_tuples **out,
				   const struct pfs_source *source);

#endif
