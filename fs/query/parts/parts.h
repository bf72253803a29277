/* SPDX-License-Identifier: MIT */
/* fs/query/parts/parts.h - parts of a statement that the relational operators run, where SQLite
 * runs the whole: sub-selects, CTEs, SELECTs of a compound, and a FROM with its WHERE and GROUP BY;
 * of one that changes something also the SELECT whose rows it inserts or makes a table of, and the
 * numbers of the nodes that it updates or deletes.
 *
 * A part is a SELECT that stands alone. In the text of the statement it is replaced by a table of
 * its rows, whose columns have the affinities and collations that SQLite derives for the part's
 * columns; if a table cannot have these, the part is not taken. Titles and errors are those of the
 * statement before parts were replaced. All parts run before the statement's first step, and the
 * statement reads the tree of the same moment. If one of the parts fails, SQLite runs the statement
 * without parts. If the statement changes side tables, its parts are planned and run while no other
 * statement can change these. */
#ifndef PFS_FS_QUERY_PARTS_PARTS_H
#define PFS_FS_QUERY_PARTS_PARTS_H

#include <stdio.h>

#include "fs/query/internal.h"

struct pfs_parts;

/* Looks for parts in a prepared statement. `whole` says that the operators cannot run all of it. If
 * there are parts, the statement is prepared anew with them; else *out is NULL. -ENOMEM; the errors
 * of pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_parts_plan(struct pfs_parts **out, struct pfs_query *query,
				  const struct pfs_relational *whole);
/* Frees the parts. The statement that names them has been finished before. NULL is allowed. */
void pfs_parts_free(struct pfs_parts *parts);

/* Runs the parts, unless they have run. To be called before each step and each run by SQLite.
 * -EINTR; the errors of pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_parts_run(struct pfs_parts *parts, struct pfs_sql_problem *problem);
/* Makes the next pfs_parts_run run them again, since the statement begins anew. NULL is allowed. */
void pfs_parts_forget(struct pfs_parts *parts);

/* Returns the statement's text as SQLite runs it: with the parts replaced, unless there are none
 * (NULL is allowed) or one failed. If the viewer does not see every node, the text does not tell
 * that a part failed: nodes that he does not see may be the reason. */
const struct pfs_edits *pfs_parts_text(const struct pfs_parts *parts,
				       const struct pfs_query *query);
/* Prints some lines about the parts, for pfs_query_plan. NULL is allowed. */
void pfs_parts_describe(const struct pfs_parts *parts, FILE *out);

#endif
