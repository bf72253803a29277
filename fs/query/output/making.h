/* SPDX-License-Identifier: MIT */
/* fs/query/output/making.h - makes an answer of a statement's rows, some rows at a time.
 *
 * Threads: one at a time. */
#ifndef PFS_FS_QUERY_OUTPUT_MAKING_H
#define PFS_FS_QUERY_OUTPUT_MAKING_H

#include "fs/query/output/answer.h"

struct pfs_making;

struct pfs_asked {
	const char *sql;
	size_t len;
	enum pfs_format format;
};

/* Starts the statement, as pfs_query_start does. The answer is empty, and gets one reference more.
 * The statement's text and the scope are copied, except what scope->gone_arg points to. *out is
 * NULL on failure. */
PFS_MUST_CHECK int pfs_making_open(struct pfs_making **out, struct pfs_answer *answer,
				   struct pfs_queries *queries, const struct pfs_query_scope *scope,
				   const struct pfs_asked *asked, struct pfs_query_error *error);
/* Ends the statement; rows that have been made stay in the answer. NULL is allowed. */
void pfs_making_close(struct pfs_making *making);

/* Makes the next rows. Returns 1 if there may be more, 0 if the answer is complete. An error ends
 * the statement, and empties the answer unless it is growing. */
PFS_MUST_CHECK int pfs_making_step(struct pfs_making *making, struct pfs_query_error *error);

struct pfs_query *pfs_making_query(struct pfs_making *making);
/* Returns the statement's text and its length. */
const char *pfs_making_sql(const struct pfs_making *making, size_t *len);

/* Returns true if the rows that have been made may be read: they will not be thrown away, and the
 * next step may come at any time. */
bool pfs_making_is_settled(const struct pfs_making *making);
/* Settles an answer that has not been read yet. Returns 1 if it is settled; 0 if it is settled from
 * now on, but was emptied, and the statement begins anew (pfs_query_begin_anew). -EOPNOTSUPP: it
 * cannot be settled, and goes on as before; other errors end the statement. */
PFS_MUST_CHECK int pfs_making_settle(struct pfs_making *making, struct pfs_query_error *error);

#endif
