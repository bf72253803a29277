/* SPDX-License-Identifier: MIT */
/* fs/query/query.h - statements over a tree: text in, plan, cursor out.
 *
 * The dialect is SQLite's.  Tables: `nodes` (docs/man/primefs-query.1 lists its columns),
 * attributes being columns of it, and the store's side tables.  What the image and the engine
 * answer best is pushed down to them; the rest runs on SQLite over virtual tables of the same
 * image.
 *
 * A statement sees one epoch of the tree, whole, and one that changes nodes changes all that it
 * names or none.  No lock is held between two calls.
 *
 * Threads: any number of callers; one query belongs to one thread at a time, but for
 * pfs_query_interrupt.
 * Not handled here: how results are written (answer.h); which users may ask at all. */
#ifndef PFS_FS_QUERY_QUERY_H
#define PFS_FS_QUERY_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "fs/tree/tree.h"
#include "meta/sql/sqlquery.h"

#define PFS_STATEMENT_MAX ((size_t)64 << 10) /* bytes */

struct pfs_queries; /* what the queries of one tree share */
struct pfs_query;   /* one statement being run */

/* Makes what the queries of a tree share; the tree must outlive it. *out is NULL on failure.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_queries_open(struct pfs_queries **out, struct pfs_tree *tree);
/* Estimates of how long statements take go by fixed rates, unless this is called, once: then the
 * host is measured in the background, delay_ms from now, and a device when it is first started
 * (relational/kept_rates.h). */
void pfs_queries_measure(struct pfs_queries *queries, unsigned delay_ms);
struct pfs_rates; /* relational/rates.h */
/* Copies the rates that estimates go by now. */
void pfs_queries_rates(struct pfs_queries *queries, struct pfs_rates *rates);
/* Interrupts every query that runs, and each one that starts from now on. From any thread; NULL is
 * allowed. */
void pfs_queries_stop(struct pfs_queries *queries);
/* No query may be open.  NULL is allowed. */
void pfs_queries_close(struct pfs_queries *queries);

/* Gets how many operators the host and the device have run for statements. Returns false, and sets
 * nothing, if there is no device or it has not been started. */
bool pfs_queries_count(struct pfs_queries *queries, uint64_t *host, uint64_t *device);

/* Returns for how many nanoseconds operators have run statements, or parts of them, from what they
 * read to rows of values; rows that are read one after the other do not count. */
uint64_t pfs_queries_operators_ns(const struct pfs_queries *queries);

/* Counts of the plan cache. */
struct pfs_plan_counts {
	uint64_t made, found; /* statements that were prepared; that were found in the cache */
	uint64_t kept, bytes; /* statements in it now; about how much memory they take */
};
void pfs_queries_plans(struct pfs_queries *queries, struct pfs_plan_counts *counts);

/* Returns false if the statement's words show that it only reads; true if it may change
 * something. */
bool pfs_statement_may_change(const char *sql, size_t len);

/* On whose behalf a statement runs, and where. */
struct pfs_query_scope {
	uint64_t ino; /* `nodes` are this directory and everything under it; 2: all */
	bool sees_all; /* else the statement sees the nodes to which this user could walk: */
	uid_t uid; /* also the owner of nodes that the statement makes */
	gid_t gid;
	const gid_t *groups; /* supplementary; the caller's until finish */
	size_t n_groups;
	bool may_change;       /* else a statement that changes anything fails with -EACCES */
	bool explains;	       /* pfs_query_plan will be called: notes are taken while it runs */
	uint64_t memory_limit; /* bytes that it may need at once, else -ENOMEM; 0: no limit */
	uint64_t value_limit;  /* bytes of a value, else -ENOMEM; 0: that of meta/sql/sqlquery.h */
	unsigned time_limit_ms; /* time that it may take, else -ETIMEDOUT; 0: no limit */
	/* Called from time to time while the statement runs; NULL: never. Returns true if the
	 * client is gone: the statement then ends with -EINTR. */
	bool (*gone)(void *arg);
	void *gone_arg;
};

struct pfs_query_error {
	int error;    /* negative errno */
	long offset;  /* where in the statement the fault is; -1: at no single place */
	char text[512]; /* one line: what is wrong and what to do */
};

/* Returns the error as a text for people, which the caller frees: the line and, if there is an
 * offset, the statement's line with a caret below it. NULL: no memory. */
char *pfs_query_error_text(const struct pfs_query_error *error, const char *sql, size_t len);

/* Prepares one statement. It runs while its rows are fetched; but a statement that changes anything
 * has been run to its end when this returns. On failure *out is NULL and *error says why (-EINVAL:
 * no such statement, table, column or function, two statements, or a row that cannot be changed so;
 * -EACCES; -EROFS; -ENOENT: scope.ino is gone; -E2BIG; what the tree says of a change). */
PFS_MUST_CHECK int pfs_query_start(struct pfs_query **out, struct pfs_queries *queries,
				   const struct pfs_query_scope *scope, const char *sql, size_t len,
				   struct pfs_query_error *error);

/* NULL is allowed. */
void pfs_query_finish(struct pfs_query *query);

/* Makes the running, or next, pfs_query_next return -EINTR.  From any thread, until finish. */
void pfs_query_interrupt(struct pfs_query *query);

/* Returns how many columns the rows have; 0: the statement has no rows. */
size_t pfs_query_columns(const struct pfs_query *query);
/* Returns the column's title, which the query owns until finish. */
const char *pfs_query_column_name(const struct pfs_query *query, size_t column);

/* Goes to the next row. Returns 1 for a row, 0 at the end; or an error with *error filled in:
 * -EINTR, -ETIMEDOUT, -ENOMEM, -EIO, -EINVAL (a function's argument). */
PFS_MUST_CHECK int pfs_query_next(struct pfs_query *query, struct pfs_query_error *error);

/* Restarts. If the tree changes while a statement runs, the statement may begin anew:
 * pfs_query_next then returns -EAGAIN, once, and the caller throws away the rows that it has read.
 * It begins anew at most once, since it then reads a frozen tree. A statement that changes nodes is
 * run by pfs_query_start; when it makes its changes, it checks that the nodes are as it found
 * them. */

/* Returns true if no restart follows: the rows read so far are valid, and the tree's lock is not
 * held between two calls, which may be any time apart and come from any thread. */
bool pfs_query_is_settled(const struct pfs_query *query);
/* Settles the query if that is possible: further rows are read from the live tree until it changes,
 * and then from a frozen one. Returns pfs_query_is_settled. */
bool pfs_query_settle(struct pfs_query *query);
/* Settles a query that cannot be settled as it is: it begins anew over a frozen tree, and the
 * caller throws away the rows that it has read. -EOPNOTSUPP: no tree can be frozen for it, and it
 * goes on as before; other errors, with *error filled in, end it. */
PFS_MUST_CHECK int pfs_query_begin_anew(struct pfs_query *query, struct pfs_query_error *error);
/* Says that no row may be fetched for a long time: what the query reads is copied now, so that
 * changes of the tree meanwhile need not keep it. */
void pfs_query_rests(struct pfs_query *query);
/* Says for how many nanoseconds no row was fetched: they do not count for the time limit. */
void pfs_query_rested(struct pfs_query *query, uint64_t ns);

/* Gets a value of the current row, whose bytes stay until the next row. A text is not always UTF-8.
 */
void pfs_query_value(const struct pfs_query *query, size_t column, struct pfs_sql_value *out);
/* Returns the integer that a value of the current row is; 0: it is something else. */
static inline int64_t pfs_query_integer(const struct pfs_query *query, size_t column)
{
	struct pfs_sql_value value;

	pfs_query_value(query, column, &value);
	return value.type == PFS_SQL_INTEGER ? value.integer : 0;
}

/* ---- many rows at once ---- */

#define PFS_PARTS_MAX 64

struct pfs_portion; /* some rows that follow one another (internal.h) */
/* Takes the first rows of a portion; returns how many, at least one, or a negative errno. */
typedef int (*pfs_portion_fn)(void *arg, size_t number, const struct pfs_portion *part);

/* If the statement's rows are columns of nodes, unchanged, and many rows follow, calls fn with the
 * next ones in portions, from several threads at once. Portions are numbered from 0 to
 * PFS_PARTS_MAX - 1 in the order of their rows. Returns 1 if the first *n_parts portions are done;
 * the last of them only as far as fn returned. What fn did with later portions is to be thrown
 * away: their rows come again. Returns 0 if the next row has to come from pfs_query_next. Errors
 * are those of pfs_query_next and of fn. */
PFS_MUST_CHECK int pfs_query_parts(struct pfs_query *query, size_t *n_parts, pfs_portion_fn fn,
				   void *arg, struct pfs_query_error *error);

/* Returns how many nodes and rows the statement has changed. */
uint64_t pfs_query_changes(const struct pfs_query *query);
/* Returns the tree's epoch that the rows belong to. */
uint64_t pfs_query_epoch(const struct pfs_query *query);

/* Gets a text, which the caller frees, that says how the statement runs, a line a step: which
 * conditions the image or the operators answer, the rows estimated, and the rows seen so far.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_query_plan(const struct pfs_query *query, char **text);

/* Returns true if `nodes` has a built-in column of this name; an attribute of that name is
 * "user.NAME". */
bool pfs_nodes_has_column(const char *name);

#endif
