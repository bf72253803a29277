/* SPDX-License-Identifier: MIT */
/* fs/query/relational/ownernames.h - the names of users and groups as a column of nodes.
 * Threads: one at a time. */
#ifndef PFS_FS_QUERY_RELATIONAL_OWNERNAMES_H
#define PFS_FS_QUERY_RELATIONAL_OWNERNAMES_H

#include "fs/query/relational/bound.h"
#include "fs/nodes/dictionary.h"

struct pfs_owner_names { /* all zero at first; arrays are the arena's */
	uint32_t *codes; /* by number; NULL: they are to be found */
	uint64_t *nulls;
	uint32_t end;				  /* numbers are below it */
	struct pfs_dictionary_builder dictionary; /* to be finished */
};

/* Makes of the column, which is uid or gid of all nodes, that of their names; it points into
 * `names`, which another column of the same may share. -EOPNOTSUPP: there are large numbers;
 * -ENOMEM, and what the operators say. */
PFS_MUST_CHECK int pfs_owner_names_get(struct pfs_owner_names *names,
				       struct pfs_table_column *column,
				       const struct pfs_table *nodes, struct pfs_owners *owners,
				       const struct pfs_run *run, struct pfs_arena *arena,
				       bool groups);

#endif
