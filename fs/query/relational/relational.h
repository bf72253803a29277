/* SPDX-License-Identifier: MIT */
/* fs/query/relational/relational.h - statements that the relational operators (gpu/relation.h) run
 * instead of SQLite, over the image's columns.
 *
 * SQLite has prepared the statement, so that titles, errors and leave are its own.  It is run here
 * if the parser takes it, every name and operator is bound, and the names are those that SQLite
 * read (bound.h); and if the operators then have an answer: whatever they have not, SQLite has. */
#ifndef PFS_FS_QUERY_RELATIONAL_RELATIONAL_H
#define PFS_FS_QUERY_RELATIONAL_RELATIONAL_H

#include <stdio.h>

#include "fs/query/internal.h"

struct pfs_relational;
struct pfs_bind_part;
struct pfs_block;
struct pfs_parsed;

/* Plans the statement, which SQLite has prepared, for the operators. *out, which is NULL only on
 * -ENOMEM, knows why not where it cannot be run here. */
PFS_MUST_CHECK int pfs_relational_plan(struct pfs_relational **out, struct pfs_query *query);
/* Plans one of its parts, a SELECT that stands alone, if SQLite has only prepared the statement.
 * *part is the caller's, and says what SQLite was asked. */
PFS_MUST_CHECK int pfs_relational_plan_part(struct pfs_relational **out, struct pfs_query *query,
					    struct pfs_bind_part *part);
void pfs_relational_free(struct pfs_relational *relational); /* NULL is allowed */
/* Lets go of the query, and of what its run has left: only the plan stays. */
void pfs_relational_rest(struct pfs_relational *relational);
/* Takes the plan up for another query of the same text, connection and scope, of which SQLite was
 * asked the same. Returns false if it does not hold any more; it rests then. */
bool pfs_relational_resume(struct pfs_relational *relational, struct pfs_query *query);
/* Returns true if the statement is bound: its plan survives changed rows of side tables. That it
 * was not bound is true only while these are the same. */
bool pfs_relational_is_bound(const struct pfs_relational *relational);
size_t pfs_relational_memory(const struct pfs_relational *relational); /* bytes, at rest */

/* Returns the parsed statement if it reads and cannot be run here; NULL: it can, or it was not
 * parsed. */
const struct pfs_parsed *pfs_relational_not_bound(const struct pfs_relational *relational);
/* Returns what is run here; NULL: nothing. */
const struct pfs_block *pfs_relational_block(const struct pfs_relational *relational);

/* Returns true if it is to be asked for rows: it may be run here, and did not fail to. False:
 * SQLite is. */
bool pfs_relational_has_rows(const struct pfs_relational *relational);

/* Returns true if its rows are rows as they are, which come as they are asked for (cursor.h);
 * false: they are all computed first, or it has none. */
bool pfs_relational_gives_rows(const struct pfs_relational *relational);
/* Begins again, as the statement does over another tree: forgets how far rows as they are were
 * read. NULL is allowed. */
void pfs_relational_restart(struct pfs_relational *relational);
/* As pfs_query_parts, but an error is only returned: nobody puts it into words. */
PFS_MUST_CHECK int pfs_relational_parts(struct pfs_relational *relational, size_t *n_parts,
					pfs_portion_fn fn, void *arg);

/* Has rows as they are come from query->still once the tree has changed; tried once a statement.
 * -EAGAIN: it has changed already, and the statement begins again; -EOPNOTSUPP and other errors:
 * they come as before. NULL is allowed. */
PFS_MUST_CHECK int pfs_relational_settle(struct pfs_relational *relational);
/* Goes on over that frozen tree, now that the tree has changed. After an error there are no more
 * rows. */
PFS_MUST_CHECK int pfs_relational_go_on(struct pfs_relational *relational);
bool pfs_relational_is_between(
	const struct pfs_relational *relational); /* as pfs_row_cursor_is_between */

/* Returns true if all its rows are there, so that nothing of the tree is needed for them any more;
 * never of rows as they are. */
bool pfs_relational_is_answered(const struct pfs_relational *relational);

/* Returns true if its plan is the statement's; false: SQLite's is. To a viewer who does not see all
 * it stays true even when the operators had no answer, for the reason may be something that he does
 * not see. */
bool pfs_relational_is_planned(const struct pfs_relational *relational);

/* As pfs_sql_step; the first call runs the statement. -EOPNOTSUPP: SQLite has to run it, from its
 * first row on. */
PFS_MUST_CHECK int pfs_relational_next(struct pfs_relational *relational);
void pfs_relational_value(const struct pfs_relational *relational, size_t column,
			  struct pfs_sql_value *out);

/* Runs several, n > 0, over the tree at one moment; the query's statement goes on from there.
 * -EINTR; any other error says that they have no answer. */
PFS_MUST_CHECK int pfs_relational_run(struct pfs_relational *const *list, size_t n);
void pfs_relational_forget(struct pfs_relational *relational); /* its rows */
uint64_t pfs_relational_rows(const struct pfs_relational *relational);
void pfs_relational_value_at(const struct pfs_relational *relational, uint64_t row, size_t column,
			     struct pfs_sql_value *out);

/* Says, for the plan, why SQLite has changed the rows of a side table: a constant. NULL is
 * allowed. */
void pfs_relational_not_changed(struct pfs_relational *relational, const char *why);

/* Writes one line for the reader of a plan: how it runs, or why SQLite runs it. */
void pfs_relational_describe(const struct pfs_relational *relational, FILE *out);

#endif
