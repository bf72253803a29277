/* SPDX-License-Identifier: MIT */
/* fs/query/relational/verify.h - in builds with PFS_VERIFY, each answer beside SQLite's.  Elsewhere
 * it costs nothing. */
#ifndef PFS_FS_QUERY_RELATIONAL_VERIFY_H
#define PFS_FS_QUERY_RELATIONAL_VERIFY_H

#include "fs/query/relational/run.h"

/* Runs the statement by SQLite, too, and fails an assertion if it has other rows; where a LIMIT may
 * leave any of several rows, they are only counted.  `values` writes row number `row` of the answer.
 * The tree is not held, and may change: then nothing is compared. */
#ifdef PFS_VERIFY
void pfs_relational_verify(struct pfs_query *query, const struct pfs_block *block, uint64_t n,
			   void (*value)(const void *arg, uint64_t row, size_t column,
					 struct pfs_sql_value *out),
			   const void *arg);
/* As above, for plain-row answers; to be called before the first row. */
void pfs_relational_verify_rows(struct pfs_query *query, const struct pfs_block *block,
				struct pfs_run_context *context);
/* As above, for a statement with parts, whose text is `with`; it is prepared again, as it will be
 * afterwards. As pfs_sql_prepare. */
PFS_MUST_CHECK int pfs_parts_verify(struct pfs_query *query, const struct pfs_edits *with,
				    bool is_cut, struct pfs_sql_problem *problem);
/* The same of one that changes something: what it asks of nodes and leaves in side tables, each
 * time rolled back. */
PFS_MUST_CHECK int pfs_parts_verify_change(struct pfs_query *query, const struct pfs_edits *with,
					   struct pfs_sql_problem *problem);
#else
static inline void pfs_relational_verify(struct pfs_query *query PFS_UNUSED,
					 const struct pfs_block *block PFS_UNUSED,
					 uint64_t n PFS_UNUSED,
					 void (*value)(const void *arg, uint64_t row, size_t column,
						       struct pfs_sql_value *out) PFS_UNUSED,
					 const void *arg PFS_UNUSED)
{
}

static inline void pfs_relational_verify_rows(struct pfs_query *query PFS_UNUSED,
					      const struct pfs_block *block PFS_UNUSED,
					      struct pfs_run_context *context PFS_UNUSED)
{
}

static inline int pfs_parts_verify(struct pfs_query *query PFS_UNUSED,
				   const struct pfs_edits *with PFS_UNUSED, bool is_cut PFS_UNUSED,
				   struct pfs_sql_problem *problem PFS_UNUSED)
{
	return 0;
}

static inline int pfs_parts_verify_change(struct pfs_query *query PFS_UNUSED,
					  const struct pfs_edits *with PFS_UNUSED,
					  struct pfs_sql_problem *problem PFS_UNUSED)
{
	return 0;
}
#endif

#endif
