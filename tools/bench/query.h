/* SPDX-License-Identifier: MIT */
/* tools/bench/query.h - what the two halves of bench query share: statements over the tree beside
 * SQLite and DuckDB (query.c with query_statements.c and, for a store made up, query_made.c), and
 * commands and files of a mount beside other programs (query_mount.c); and what bench mounted
 * shares with them. */
#ifndef PFS_TOOLS_BENCH_QUERY_H
#define PFS_TOOLS_BENCH_QUERY_H

#include "tools/bench/bench.h"
#include "tools/bench/server.h"

#define PFS_BENCH_QUERY "query"

struct pfs_queries;
struct pfs_query;
struct pfs_query_scope;

struct pfs_bench_query {
	struct pfs_bench_server server; /* its folder and mountpoint; its store, if one was made */
	const char *store, *beside;	/* beside: what the store is of, as a directory, or NULL */
	uint64_t runs;
	const char *only; /* part of the titles of what is asked; NULL: all */
	const char *prefix, *part; /* of names, to look for */
	bool without_sqlite, without_duckdb;
	struct pfs_json *json;	   /* or NULL */
	struct pfs_bench_goal {
		double ratio, wanted;
		bool otherwise; /* the other of two limits holds, which is enough */
		char what[256];
	} *goals; /* of what has been printed and has one */
	size_t n_goals, capacity;
};

/* A statement, in which words that begin with $ are replaced (query_statements.c). */
struct pfs_bench_question {
	const char *what, *ours;
	const char *theirs; /* NULL: the same */
	double wanted;	    /* of the speed beside SQLite's; 0: nothing */
	const char *duckdb; /* NULL: as SQLite's; "": it has none such */
};

extern const struct pfs_bench_question pfs_bench_questions[];
extern const size_t pfs_bench_n_questions;

/* Writes a statement in whose text words that begin with $ are replaced: each of `words` is such a
 * word and what stands in its place. -E2BIG. */
PFS_MUST_CHECK int pfs_bench_fill_in(char *out, size_t size, const char *sql,
				     const char *const (*words)[2], size_t n);

/* Prints the figures, and keeps what their ratio was to be for pfs_bench_query_sum_up, which prints
 * a table of all and frees it. */
PFS_MUST_CHECK int pfs_bench_query_print(struct pfs_bench_query *bench,
					 struct pfs_figures *figures);
void pfs_bench_query_sum_up(struct pfs_bench_query *bench);

/* Prints, in place of a figure, that a statement has none: whose it is, and what was wrong. */
void pfs_bench_query_failed(const struct pfs_bench_query *bench, const char *what,
			    const char *whose, const char *error);

/* Prints that a yardstick is missing. */
void pfs_bench_query_lacks(const struct pfs_bench_query *bench, const char *program);

/* Runs a statement over a tree; row, if not NULL, is called for each, else values are looked at. */
PFS_MUST_CHECK int pfs_bench_ask(struct pfs_queries *queries, uint64_t *rows, const char *sql,
				 int (*row)(void *arg, const struct pfs_query *query), void *arg);

/* Runs a statement to its end, which may begin again on the way, without looking at values. What
 * pfs_query_start returns, or the last pfs_query_next. */
PFS_MUST_CHECK int pfs_bench_run_through(struct pfs_queries *queries,
					 const struct pfs_query_scope *scope, const char *sql);

/* Makes the store: a generated tree whose files have sizes. */
PFS_MUST_CHECK int pfs_bench_query_make(struct pfs_bench_query *bench, uint64_t nodes);

/* Calls run with *seconds, as often as there are runs, but not on after four seconds. */
PFS_MUST_CHECK int pfs_bench_repeat(const struct pfs_bench_query *bench,
				    struct pfs_figures *figures,
				    void (*add)(struct pfs_figures *figures, double value),
				    int (*run)(void *arg, double *seconds), void *arg);

/* The second half; bare_ms: what SELECT 1 takes without a mount. */
PFS_MUST_CHECK int pfs_bench_query_mount(struct pfs_bench_query *bench, double bare_ms);

#endif
