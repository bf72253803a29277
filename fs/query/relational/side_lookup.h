/* SPDX-License-Identifier: MIT */
/* fs/query/relational/side_lookup.h - SELECTs of one side table that want few of its rows: found by
 * an index of the operators' columns if they are numbers, else by SQLite in its copy, where that is
 * sooner. */
#ifndef PFS_FS_QUERY_RELATIONAL_SIDE_LOOKUP_H
#define PFS_FS_QUERY_RELATIONAL_SIDE_LOOKUP_H

#include "fs/query/relational/run.h"

/* Nanoseconds that SQLite takes for a statement, beyond what any takes, and for a row that an index
 * has found: to read it, or to change it in a copy of its own, from which the change is taken
 * over. */
struct pfs_side_sqlite {
	double statement, row;
};
#define PFS_SQLITE_READS   ((struct pfs_side_sqlite){0, 300})
#define PFS_SQLITE_CHANGES ((struct pfs_side_sqlite){50000, 700})

/* An index of SQLite's copy beside the operators. */
struct pfs_side_weighed {
	bool is_index; /* one finds less than all rows */
	uint64_t index_ns, operators_ns;
};

/* Estimates them for a block about one side table alone; false: it is about something else.  Rows
 * are estimated by a sample of the table's. */
bool pfs_side_weigh(const struct pfs_block *block, struct pfs_side_sqlite sqlite,
		    struct pfs_side_weighed *out);

/* Returns true if the block is about one side table alone, and SQLite's copy finds what it wants of
 * it by an index, or after a few rows, sooner than the operators would.  A copy that does not have
 * all rows as they are now is brought up to date only when that has been missed for as long as it
 * would take. */
bool pfs_side_finds_few(const struct pfs_block *block, const struct pfs_query *query,
			struct pfs_side_sqlite sqlite);

/* Sets *rows, which is NULL, to rows of the block's only input among which all are that WHERE
 * leaves, if they are few and an index finds them.  A column that the table has an index of gets
 * one here when few of its values are first asked for. */
PFS_MUST_CHECK int pfs_side_find(struct pfs_running *running, struct pfs_rows **rows);

#endif
