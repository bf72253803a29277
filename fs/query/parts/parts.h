/* SPDX-License-Identifier: MIT */
/* fs/query/parts/parts.h - parts of a statement that the relational operators run, where SQLite runs the
 * whole: sub-selects, CTEs, SELECTs of a compound, and a FROM with its WHERE and GROUP BY.
 *
 * A part is a SELECT that stands alone.  In the text of the statement a table of its rows stands in its
 * place, whose columns have the affinities and collations that SQLite derives for the part's; where
 * these cannot be had, the part is not taken.  Titles and errors are those of the statement as it was
 * prepared before.  All parts run before the statement's first step, over the tree at one moment, which
 * the statement goes on with; if one of them has no answer, SQLite runs the statement without parts.
 * Not handled here: statements that change something. */
#ifndef PFS_FS_QUERY_PARTS_PARTS_H
#define PFS_FS_QUERY_PARTS_PARTS_H

#include <stdio.h>

#include "fs/query/internal.h"

struct pfs_parts;

/* Looks for parts of a statement that is prepared, and that `whole` says cannot be run by operators.  *out
 * NULL: there are none.  Else the statement with its parts is the prepared one.  -ENOMEM, or what
 * pfs_sql_prepare has. */
PFS_MUST_CHECK int pfs_parts_plan(struct pfs_parts **out, struct pfs_query *query,
				  const struct pfs_relational *whole);
/* NULL is allowed; no statement that names the parts is prepared any more. */
void pfs_parts_free(struct pfs_parts *parts);

/* Before a step of SQLite's: runs them, unless they have run.  -EINTR, or what pfs_sql_prepare has. */
PFS_MUST_CHECK int pfs_parts_run(struct pfs_parts *parts, struct pfs_sql_problem *problem);
/* The statement begins anew, and so do they; NULL is allowed. */
void pfs_parts_forget(struct pfs_parts *parts);

/* The text of the statement as SQLite runs it: with the parts, if there are any (NULL is allowed), but
 * where they had no answer.  Who does not see all is not told so, since it may be for what he does not
 * see. */
const struct pfs_edits *pfs_parts_text(const struct pfs_parts *parts, const struct pfs_query *query);
/* Some lines for the reader of a plan; NULL is allowed. */
void pfs_parts_describe(const struct pfs_parts *parts, FILE *out);

#endif
