/* SPDX-License-Identifier: MIT */
/* fs/query/output/making.h - a statement on its way into an answer, some rows at a time.
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

/* Starts the statement, as pfs_query_start does. The answer, which is empty, is held, and so are
 * what is asked and by whom, except scope->gone_arg. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_making_open(struct pfs_making **out, struct pfs_answer *answer,
				   struct pfs_queries *queries, const struct pfs_query_scope *scope,
				   const struct pfs_asked *asked, struct pfs_query_error *error);
/* Ends it; what has been made stays.  NULL is allowed. */
void pfs_making_close(struct pfs_making *making);

/* Makes the next rows. 1: there may be more; 0: the answer is complete; an error ends it, and after
 * that the answer is empty unless it was growing. */
PFS_MUST_CHECK int pfs_making_step(struct pfs_making *making, struct pfs_query_error *error);

struct pfs_query *pfs_making_query(struct pfs_making *making);
/* Returns the statement and its length, as they were asked. */
const char *pfs_making_sql(const struct pfs_making *making, size_t *len);

/* Returns true if what has been made may be read: it is not going to be thrown away, and the next
 * step may wait. */
bool pfs_making_is_settled(const struct pfs_making *making);
/* Has that be so, of an answer that nobody has read yet. Returns 1 if it is; 0: the answer is empty, and the statement begins anew so that
 * it will be from now on (pfs_query_begin_anew). -EOPNOTSUPP: it goes on as before; other errors end it. */
PFS_MUST_CHECK int pfs_making_settle(struct pfs_making *making, struct pfs_query_error *error);

#endif
