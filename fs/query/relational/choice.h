/* SPDX-License-Identifier: MIT */
/* fs/query/relational/choice.h - whether the operators or SQLite run a block that is bound: SQLite
 * where scans and indexes find its rows at once. */
#ifndef PFS_FS_QUERY_RELATIONAL_CHOICE_H
#define PFS_FS_QUERY_RELATIONAL_CHOICE_H

#include "fs/query/relational/bound.h"

/* What a block is of its statement. */
enum pfs_block_use {
	PFS_BLOCK_WHOLE,
	PFS_BLOCK_PART,	       /* of a SELECT, which may want no more than its first rows */
	PFS_BLOCK_CHANGE_PART, /* of what changes something, and wants them all */
};

/* Returns why SQLite runs the block sooner, as a plan has it; NULL: the operators do. */
const char *pfs_block_why_not(const struct pfs_block *block, const struct pfs_query *query,
			      enum pfs_block_use use);

#endif
