/* SPDX-License-Identifier: MIT */
/* primefs-bench s2 - the experiment of the paper on relational operators, by shares of a table's
 * rows: a side table of a store beside the same table in SQLite, in memory and indexed, and in
 * DuckDB.
 *
 * A statement is timed from its text to the last value of its last row, or to the answer that it
 * has changed its rows. */
#include "tools/bench/bench.h"

#include "base/checked.h"
#include "fs/query/query.h"
#include "fs/tree/tree.h"
#include "tools/bench/duckdb.h"
#include "tools/bench/peer.h"
#include "tools/bench/query.h"

#define SQL_MAX	  512
#define RUNS	  5
#define SLACK	  1.10 /* slower by more than this factor of SQLite's time */
#define SLACK_MS  0.05

enum { ROWS, ENGINE, FOLDER };

static const struct pfs_cmd_option options[] = {
	[ROWS] = {"rows", 'r', "N", "of the table (500000)"},
	[ENGINE] = {"engine", 'e', "NAME", "auto, host or cuda (auto)"},
	[FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd command = {
	"s2",
	"",
	"Times statements over shares of a table's rows beside SQLite in memory, indexed, and DuckDB.",
	options,
	"prepared: SQLite without preparing the statement.  A ! marks what is slower than SQLite by more\n"
	"than 10 % and 50 us.\n",
};

/* Whose turn it is, in the order in which they are printed. */
enum peer { OURS, SQLITE, PREPARED, DUCKDB, PEERS };

struct bench {
	struct pfs_bench_folder folder;
	uint64_t rows;
	enum pfs_engine_kind engine;
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	struct pfs_peer *sqlite;
	struct pfs_duckdb *duckdb; /* NULL: it is not installed */
	unsigned figures, slow;
	double worst; /* the worst ratio of those that are slow */
};

static const double shares[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};

/* The number of rows is put between the two halves, and at the end of what undoes the statement. */
static const struct operation {
	const char *what, *sql, *rest;
	const char *undo; /* NULL: nothing has to be undone */
} operations[] = {
	{"selection", "SELECT num, grp, val FROM t WHERE num <= ", "", NULL},
	{"selection, sorted", "SELECT num, grp, val FROM t WHERE num <= ", " ORDER BY val, num",
	 NULL},
	{"selection, grouped",
	 "SELECT grp, sum(val), max(val), min(val), count(*), avg(val) FROM t WHERE num <= ",
	 " GROUP BY grp", NULL},
	{"insert of a selection", "INSERT INTO u SELECT num, grp, val FROM t WHERE num <= ", "",
	 "DELETE FROM u WHERE num <= "},
	{"update", "UPDATE t SET val = val + 1 WHERE num <= ", "", NULL},
	{"delete", "DELETE FROM t WHERE num <= ", "",
	 "INSERT INTO t SELECT num, grp, val FROM kept WHERE num <= "},
};

/* ---- the table ---- */

#define VALUES "1 + i * 100000007 %% %llu, 1 + i * 48271 %% 65521 %% 100, 1 + i * 2654435761 %% 4294967296 %% 65535"

static const char *const declared[] = {"CREATE TABLE t (num INTEGER, grp INTEGER, val INTEGER)",
				       "CREATE TABLE u (num INTEGER, grp INTEGER, val INTEGER)",
				       "CREATE TABLE kept (num INTEGER, grp INTEGER, val INTEGER)"};
static const char filled[] =
	"INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	"LIMIT %llu) SELECT " VALUES " FROM n";
static const char filled_duckdb[] =
	"INSERT INTO t SELECT " VALUES " FROM range(1, 1 + %llu) AS n(i)";
static const char *const ended[] = {"INSERT INTO kept SELECT num, grp, val FROM t",
				    "CREATE INDEX t_num ON t (num)",
				    "CREATE INDEX kept_num ON kept (num)"};

static int run(const struct bench *bench, enum peer peer, const char *sql)
{
	switch (peer) {
	case SQLITE:
		return pfs_peer_run(bench->sqlite, NULL, sql);
	case PREPARED:
		return pfs_peer_run_kept(bench->sqlite, NULL, sql);
	case DUCKDB:
		return bench->duckdb ? pfs_duckdb_run(bench->duckdb, NULL, sql) : 0;
	default:
		return pfs_bench_ask(bench->queries, NULL, sql, NULL, NULL);
	}
}

static int fill(const struct bench *bench, enum peer peer)
{
	unsigned long long n = bench->rows;
	char sql[SQL_MAX];

	for (size_t i = 0; i < PFS_COUNT(declared); i++)
		PFS_TRY(run(bench, peer, declared[i]));
	if (peer == DUCKDB)
		(void)snprintf(sql, sizeof(sql), filled_duckdb, n, n);
	else
		(void)snprintf(sql, sizeof(sql), filled, n, n);
	PFS_TRY(run(bench, peer, sql));
	/* DuckDB's indexes are for single values and keys; it reads ranges faster without. */
	for (size_t i = 0; i < (peer == DUCKDB ? 1 : PFS_COUNT(ended)); i++)
		PFS_TRY(run(bench, peer, ended[i]));
	return peer == SQLITE ? run(bench, peer, "ANALYZE") : 0;
}

/* ---- figures ---- */

static int run_once(const struct bench *bench, enum peer peer, const char *sql, const char *undo,
		    double *ms)
{
	double started = pfs_bench_now();

	PFS_TRY(run(bench, peer, sql));
	*ms = (pfs_bench_now() - started) * 1e3;
	return undo ? run(bench, peer == PREPARED ? SQLITE : peer, undo) : 0;
}

/* Sets ms to the medians of all peers, measured in turns. The first time, in which plans and
 * indexes are made, does not count. */
static int measure(const struct bench *bench, double *ms, const struct operation *operation,
		   unsigned long long asked)
{
	double all[PEERS][RUNS + 1];
	char sql[SQL_MAX], undo[SQL_MAX];

	(void)snprintf(sql, sizeof(sql), "%s%llu%s", operation->sql, asked, operation->rest);
	(void)snprintf(undo, sizeof(undo), "%s%llu", operation->undo ? operation->undo : "", asked);
	for (unsigned i = 0; i <= RUNS; i++)
		for (enum peer peer = 0; peer < PEERS; peer++)
			PFS_TRY(run_once(bench, peer, sql, operation->undo ? undo : NULL,
					 &all[peer][i]));
	for (enum peer peer = 0; peer < PEERS; peer++)
		ms[peer] = pfs_bench_median(all[peer] + 1, RUNS);
	return 0;
}

static void print(const struct bench *bench, double share, const double *ms, bool slow)
{
	(void)printf("%8g %% %10.3f%c %10.3f %10.3f ", share, ms[OURS], slow ? '!' : ' ',
		     ms[SQLITE], ms[PREPARED]);
	if (bench->duckdb)
		(void)printf("%10.3f\n", ms[DUCKDB]);
	else
		(void)printf("%10s\n", "-");
}

/* Measures all shares of one operation, and finds the share from which on it is faster than SQLite.
 */
static int run_operation(struct bench *bench, const struct operation *operation)
{
	double turning = -1;

	(void)printf("\n%s, ms\n%10s %10s  %10s %10s %10s\n", operation->what, "rows", "primefs",
		     "SQLite", "prepared", "DuckDB");
	for (size_t i = 0; i < PFS_COUNT(shares); i++) {
		double ms[PEERS];
		bool slow;

		PFS_TRY(measure(bench, ms, operation,
				(unsigned long long)((double)bench->rows * shares[i] / 100)));
		slow = ms[OURS] > ms[SQLITE] * SLACK && ms[OURS] > ms[SQLITE] + SLACK_MS;
		bench->figures++;
		bench->slow += slow;
		if (slow)
			bench->worst = PFS_MAX(bench->worst, ms[OURS] / ms[SQLITE]);
		if (ms[OURS] >= ms[SQLITE])
			turning = -1;
		else if (turning < 0)
			turning = shares[i];
		print(bench, shares[i], ms, slow);
	}
	if (turning < 0)
		(void)printf("not faster than SQLite at all rows\n");
	else
		(void)printf("faster than SQLite from %g %% on\n", turning);
	return 0;
}

static int begin(struct bench *bench)
{
	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	PFS_TRY(pfs_tree_open(&bench->tree, bench->folder.store,
			      &(struct pfs_tree_options){.engine = bench->engine}));
	PFS_TRY(pfs_tree_start(bench->tree));
	PFS_TRY(pfs_queries_open(&bench->queries, bench->tree));
	PFS_TRY(pfs_peer_open(&bench->sqlite));
	if (pfs_duckdb_open(&bench->duckdb))
		(void)printf("DuckDB: not installed\n");
	PFS_TRY(fill(bench, OURS));
	PFS_TRY(fill(bench, SQLITE));
	return fill(bench, DUCKDB);
}

static int run_all(struct bench *bench)
{
	uint64_t host = 0, device = 0;

	PFS_TRY(begin(bench));
	(void)printf("%llu rows, num: 1 to that in no order, grp: 1 to 100, val: 1 to 65535\n",
		     (unsigned long long)bench->rows);
	for (size_t i = 0; i < PFS_COUNT(operations); i++)
		PFS_TRY(run_operation(bench, &operations[i]));
	(void)printf("\n%u of %u slower than SQLite by more than 10 %% and 50 us", bench->slow,
		     bench->figures);
	(void)printf(bench->slow ? ", the worst %.1f times\n" : "\n", bench->worst);
	if (pfs_queries_count(bench->queries, &host, &device))
		(void)printf("operators: %llu on the host, %llu on the device\n",
			     (unsigned long long)host, (unsigned long long)device);
	return 0;
}

int pfs_bench_s2(int argc, char **argv)
{
	struct bench bench = {.folder = {.verb = "s2", .nodes = 100}, .rows = 500000};
	const char *parent = NULL;
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == ROWS)
			pfs_cmd_number(&args, &bench.rows, ROWS, 1, 100000000);
		else if (option == ENGINE)
			pfs_cmd_engine(&args, &bench.engine);
		else
			parent = args.value;
	}
	if (pfs_cmd_end(&args, 0, 0))
		return args.status;
	if (pfs_bench_folder_make(&bench.folder, parent))
		return PFS_EXIT_FAILURE;
	error = run_all(&bench);
	pfs_duckdb_close(bench.duckdb);
	pfs_peer_close(bench.sqlite);
	pfs_queries_close(bench.queries);
	if (bench.tree && pfs_tree_close(bench.tree) && !error)
		error = -EIO;
	return pfs_bench_folder_end(&bench.folder, error);
}
