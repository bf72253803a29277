/* SPDX-License-Identifier: MIT */
/* fs/query/parts/parts.h - parts of a statement that the relational operators run, where SQLite runs the
 * whole: sub-selects, CTEs, SELECTs of a compound, and a FROM with its WHERE and GROUP BY; of one that
 * changes something also the SELECT whose rows it inserts or makes a table of, and the numbers of the
 * nodes that it updates or deletes.
 *
 * A part is a SELECT that stands alone.  In the text of the statement a table of its rows stands in its
 * place, whose columns have the affinities and collations that SQLite derives for the part's; where
 * these cannot be had, the part is not taken.  Titles and errors are those of the statement as it was
 * prepared before.  All parts run before the statement's first step, over the tree at one moment, which
 * the statement goes on with; if one of them has no answer, SQLite runs the statement without parts.
 * Of a statement that changes side tables they are planned and run while those stand still. */
#ifndef PFS_FS_QUERY_PARTS_PARTS_H
#define PFS_FS_QUERY_PARTS_PARTS_H

#include <stdio.h>

#include "fs/query/internal.h"

struct pfs_parts;

/* Looks for parts in a prepared statement that the operators cannot run as a whole, as `whole` says.  If there are any, the statement
 * is prepared anew with its parts; else *out is NULL.  -ENOMEM; the errors of pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_parts_plan(struct pfs_parts **out, struct pfs_query *query,
				  const struct pfs_relational *whole);
/* Frees the parts; no statement that names them is prepared any more.  NULL is allowed. */
void pfs_parts_free(struct pfs_parts *parts);

/* Runs the parts, unless they have run; to be called before each step or run of SQLite's.  -EINTR; the errors of pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_parts_run(struct pfs_parts *parts, struct pfs_sql_problem *problem);
/* Has the parts run again, because the statement begins anew.  NULL is allowed. */
void pfs_parts_forget(struct pfs_parts *parts);

/* Returns the statement's text as SQLite runs it: with the parts, unless there are none (NULL is allowed) or they had no answer.  A
 * viewer who does not see every node is not told that they had none: it may be for nodes that he does not see. */
const struct pfs_edits *pfs_parts_text(const struct pfs_parts *parts, const struct pfs_query *query);
/* Prints some lines about the parts for the reader of a plan.  NULL is allowed. */
void pfs_parts_describe(const struct pfs_parts *parts, FILE *out);

#endif
