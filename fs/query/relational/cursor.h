/* SPDX-License-Identifier: MIT */
/* fs/query/relational/cursor.h - the rows of a SELECT of rows as they are (struct pfs_row_plan), as
 * they are asked for: a piece of the rows is selected, or comes in its order, then some of those
 * are gathered.
 *
 * The tree is held for a piece, or for some rows of it; one that changes in between ends the
 * statement with -EAGAIN.  Threads: one at a time. */
#ifndef PFS_FS_QUERY_RELATIONAL_CURSOR_H
#define PFS_FS_QUERY_RELATIONAL_CURSOR_H

#include "fs/query/relational/run.h"

struct pfs_row_cursor;

/* Makes a cursor, which reads nothing yet. The block has `rows`; it, the context and the walk
 * outlive the cursor, which fills the walk's portion. -ENOMEM. */
PFS_MUST_CHECK int pfs_row_cursor_open(struct pfs_row_cursor **out, const struct pfs_block *block,
				   struct pfs_run_context *context, struct pfs_portion_walk *walk);
void pfs_row_cursor_close(struct pfs_row_cursor *cursor); /* NULL is allowed */

/* Reads the next rows, once the walk has gone through those that there are: they are its portion,
 * and it is at the first. 1: there are some; 0: the end; -EAGAIN, -EINTR; before the first row also
 * what the operators return. */
PFS_MUST_CHECK int pfs_row_cursor_next(struct pfs_row_cursor *cursor);
bool pfs_row_cursor_has_begun(const struct pfs_row_cursor *cursor); /* there was a row */
/* Prepares for the statement's tree to become another one with the same nodes: what the cursor has
 * of the old one, it has as slots from then on. -EAGAIN: the tree changed; -EOPNOTSUPP: there are
 * rows of it; -ENOMEM. In any case it can go on as before. */
PFS_MUST_CHECK int pfs_row_cursor_part(struct pfs_row_cursor *cursor);
/* False: the walk has not gone through all rows that were read; going on now would lose them. */
bool pfs_row_cursor_is_between(const struct pfs_row_cursor *cursor);
/* Goes on afterwards, over the other tree. After an error the cursor is of no more use. */
PFS_MUST_CHECK int pfs_row_cursor_go_on(struct pfs_row_cursor *cursor);
/* As pfs_query_parts; only once pfs_row_cursor_has_begun. */
PFS_MUST_CHECK int pfs_row_cursor_parts(struct pfs_row_cursor *cursor, size_t *n_parts,
					pfs_portion_fn fn, void *arg);

#endif
