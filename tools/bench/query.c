/* SPDX-License-Identifier: MIT */
/* primefs-bench query - measures statements over a store beside SQLite over the same rows in a
 * table of its own, in memory, with the indexes that a user would make; then commands and files of
 * a mount.
 *
 * On both sides a statement is timed from its text to the last value of its last row. */
#include "tools/bench/query.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fs/query/query.h"
#include "tools/bench/duckdb.h"
#include "tools/bench/peer.h"
#include "tools/client/ask.h"
#include "tools/client/ready.h"

#define STATEMENT_MAX 4096
#define COLUMNS	      "ino, parent, depth, name, ext, path, type, size, blocks, mtime, uid"
#define N_COLUMNS     11

enum { NODES, BESIDE, RUNS, ONLY, PREFIX, PART, PEERS, LIST, FOLDER, JSON };

static const struct pfs_cmd_option options[] = {
	[NODES] = {"nodes", 'n', "N", "of the tree made if no STORE is given (1000000)"},
	[BESIDE] = {"beside", 'b', "DIR", "what STORE is of: other programs run on it, too"},
	[RUNS] = {"runs", 'r', "N", "of which the median is taken (9)"},
	[ONLY] = {"only", 'o', "TEXT",
		  "statements alone, and of these those with TEXT in their titles"},
	[PREFIX] = {"prefix", 'p', "TEXT", "that names begin with, to look for (lib; bar)"},
	[PART] = {"part", 's', "TEXT", "that names have somewhere (json; rama)"},
	[PEERS] = {"peers", 0, "WHICH", "beside statements: all, sqlite, duckdb or none (all)"},
	[LIST] = {"list", 0, NULL, "print the statements alone, one a line, and ask none"},
	[FOLDER] = {"folder", 'd', "DIR", "for the store and the mountpoint ($TMPDIR or /tmp)"},
	[JSON] = {"json", 0, NULL, "print an array of objects"},
	{0},
};

static const struct pfs_cmd command = {
	PFS_BENCH_QUERY,
	"[STORE]",
	"Times statements and commands over a store beside their yardsticks.",
	options,
	"plocate, fd and DuckDB (tools/setup bench) are yardsticks where they are installed.\n"
	"A ratio is speed beside the yardstick's.\n",
};

struct side {
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	struct pfs_peer *peer;	   /* NULL: it is not wanted */
	struct pfs_duckdb *duckdb; /* NULL: it is not installed, or not wanted */
	char ino[32], deep[32], wide[32], rare[32];
	char *path; /* quoted */
};

/* ---- one run ---- */

static const struct pfs_query_scope everything = {.ino = 2, .sees_all = true, .may_change = true};

/* As pfs_bench_ask, but does not print *error. */
static int ask(struct pfs_queries *queries, uint64_t *rows, const char *sql,
	       struct pfs_query_error *error, int (*row)(void *arg, const struct pfs_query *query),
	       void *arg)
{
	struct pfs_query *query;
	struct pfs_sql_value value;
	uint64_t n = 0;
	int got, failure = 0;

	*error = (struct pfs_query_error){.error = 0};
	PFS_TRY(pfs_query_start(&query, queries, &everything, sql, strlen(sql), error));
	while (!failure && (got = pfs_query_next(query, error)) == 1) {
		for (size_t i = 0; !row && i < pfs_query_columns(query); i++)
			pfs_query_value(query, i, &value);
		failure = row ? row(arg, query) : 0;
		n++;
	}
	pfs_query_finish(query);
	if (rows)
		*rows = n;
	return failure ? failure : got;
}

int pfs_bench_ask(struct pfs_queries *queries, uint64_t *rows, const char *sql,
		  int (*row)(void *arg, const struct pfs_query *query), void *arg)
{
	struct pfs_query_error error;
	int failure = ask(queries, rows, sql, &error, row, arg);

	if (error.error)
		(void)pfs_cmd_fail(PFS_BENCH_QUERY, "%s: %s", sql, error.text);
	return failure;
}

int pfs_bench_run_through(struct pfs_queries *queries, const struct pfs_query_scope *scope,
			  const char *sql)
{
	struct pfs_query_error problem = {.error = 0};
	struct pfs_query *query;
	int got;

	PFS_TRY(pfs_query_start(&query, queries, scope, sql, strlen(sql), &problem));
	while ((got = pfs_query_next(query, &problem)) == 1 || got == -EAGAIN)
		;
	pfs_query_finish(query);
	return got;
}

struct asked {
	const struct side *side;
	const char *sql;
	uint64_t rows;
};

static int time_ours(void *arg, double *seconds)
{
	struct asked *asked = arg;
	double started = pfs_bench_now();

	PFS_TRY(pfs_bench_ask(asked->side->queries, &asked->rows, asked->sql, NULL, NULL));
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int time_theirs(void *arg, double *seconds)
{
	struct asked *asked = arg;
	double started = pfs_bench_now();

	PFS_TRY(pfs_peer_run(asked->side->peer, &asked->rows, asked->sql));
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int time_duckdb(void *arg, double *seconds)
{
	struct asked *asked = arg;
	double started = pfs_bench_now();

	PFS_TRY(pfs_duckdb_run(asked->side->duckdb, &asked->rows, asked->sql));
	*seconds = pfs_bench_now() - started;
	return 0;
}

/* ---- the same rows for SQLite ---- */

static int copy_row(void *arg, const struct pfs_query *query)
{
	struct pfs_sql_value values[N_COLUMNS];

	for (size_t i = 0; i < N_COLUMNS; i++)
		pfs_query_value(query, i, &values[i]);
	return pfs_peer_insert(arg,
			       "INSERT INTO nodes (" COLUMNS ") "
			       "VALUES (?,?,?,?,?,?,?,?,?,?,?)",
			       values, N_COLUMNS);
}

static int fill_peer(struct side *side)
{
	static const char *const after[] = {
		"CREATE INDEX nodes_name ON nodes (name)",
		"CREATE INDEX nodes_size ON nodes (size)",
		"CREATE INDEX nodes_parent ON nodes (parent)",
		"CREATE INDEX nodes_ext ON nodes (ext)",
		"CREATE UNIQUE INDEX nodes_path ON nodes (path)",
		"CREATE TABLE owners (uid INTEGER PRIMARY KEY, team TEXT)",
		("WITH RECURSIVE ids(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM ids LIMIT 1000) "
		 "INSERT INTO owners SELECT id, 'team ' || id % 7 FROM ids"),
		"ANALYZE"};

	PFS_TRY(pfs_peer_open(&side->peer));
	PFS_TRY(pfs_peer_run(side->peer, NULL,
			     "CREATE TABLE nodes (ino INTEGER PRIMARY KEY, parent INTEGER, depth "
			     "INTEGER, name TEXT, ext TEXT, path TEXT, type TEXT, size INTEGER, "
			     "blocks INTEGER, mtime INTEGER, uid INTEGER)"));
	PFS_TRY(pfs_peer_run(side->peer, NULL, "BEGIN"));
	PFS_TRY(pfs_bench_ask(side->queries, NULL, "SELECT " COLUMNS " FROM nodes ORDER BY ino",
			      copy_row,
		    side->peer));
	PFS_TRY(pfs_peer_insert(side->peer, NULL, NULL, 0));
	PFS_TRY(pfs_peer_run(side->peer, NULL, "COMMIT"));
	for (size_t i = 0; i < PFS_COUNT(after); i++)
		PFS_TRY(pfs_peer_run(side->peer, NULL, after[i]));
	return 0;
}

/* ---- and for DuckDB ---- */

static int export_row(void *arg, const struct pfs_query *query)
{
	for (size_t i = 0; i < N_COLUMNS; i++) {
		struct pfs_sql_value value;
		bool last = i + 1 == N_COLUMNS;

		pfs_query_value(query, i, &value);
		if (value.type == PFS_SQL_INTEGER)
			pfs_duckdb_put_number(arg, value.integer, last);
		else if (value.type == PFS_SQL_TEXT)
			pfs_duckdb_put_text(arg, value.bytes, value.size, last);
		else
			pfs_duckdb_put_null(arg, last);
	}
	return ferror(arg) ? -EIO : 0;
}

static int export_rows(const struct side *side, const char *path)
{
	FILE *csv = fopen(path, "we");
	int error;

	if (!csv)
		return -errno;
	error = pfs_bench_ask(side->queries, NULL, "SELECT " COLUMNS " FROM nodes ORDER BY ino",
			      export_row, csv);
	return fclose(csv) != 0 && !error ? -EIO : error;
}

/* ---- what is asked about ---- */

static int take_number(void *arg, const struct pfs_query *query)
{
	(void)snprintf(arg, 32, "%lld", (long long)pfs_query_integer(query, 0));
	return 0;
}

static int take_text(void *arg, const struct pfs_query *query)
{
	struct pfs_sql_value value;

	pfs_query_value(query, 0, &value);
	free(*(char **)arg);
	*(char **)arg = strndup(value.bytes ? value.bytes : "", value.size);
	return *(char **)arg ? 0 : -ENOMEM;
}

static int choose(struct side *side)
{
	char sql[256];

	PFS_TRY(pfs_bench_ask(side->queries, NULL,
		    "SELECT ino FROM nodes WHERE type = 'd' ORDER BY CASE WHEN subtree_count <= "
		    "(SELECT count(*) FROM nodes) / 10 THEN subtree_count ELSE -subtree_count END "
		    "DESC, ino LIMIT 1",
		    take_number, side->ino));
	(void)snprintf(sql, sizeof(sql), "SELECT quote(path) FROM nodes WHERE ino = %s", side->ino);
	PFS_TRY(pfs_bench_ask(side->queries, NULL, sql, take_text, &side->path));
	PFS_TRY(pfs_bench_ask(side->queries, NULL,
			      "SELECT ino FROM nodes ORDER BY depth DESC, ino LIMIT 1", take_number,
			      side->deep));
	PFS_TRY(pfs_bench_ask(
		side->queries, NULL,
		"SELECT ifnull(parent, ino) FROM nodes GROUP BY parent ORDER BY count(*) DESC LIMIT 1",
		take_number, side->wide));
	return pfs_bench_ask(side->queries, NULL,
			     "SELECT size FROM nodes ORDER BY size DESC LIMIT 1 OFFSET "
			     "(SELECT min(10, count(*) - 1) FROM nodes)",
			     take_number, side->rare);
}

static int fill_in(char *out, const struct pfs_bench_query *bench, const struct side *side,
		   const char *sql)
{
	const char *const words[][2] = {
		{"$ino", side->ino},   {"$path", side->path},	   {"$deep", side->deep},
		{"$wide", side->wide}, {"$rare", side->rare},	   {"$prefix", bench->prefix},
		{"$part", bench->part},
	};

	return pfs_bench_fill_in(out, STATEMENT_MAX, sql, words, PFS_COUNT(words));
}

/* ---- figures ---- */

/* As SQLite's tables, without indexes that DuckDB's planner does not use. */
static const char setup_duckdb[] =
	"CREATE TABLE nodes (ino BIGINT, parent BIGINT, depth INTEGER, name TEXT, ext TEXT, "
	"path TEXT, type TEXT, size BIGINT, blocks BIGINT, mtime BIGINT, uid BIGINT);\n"
	"COPY nodes FROM %s (FORMAT csv, HEADER false);\n"
	"CREATE INDEX nodes_ino ON nodes (ino);\n"
	"CREATE INDEX nodes_parent ON nodes (parent);\n"
	"CREATE TABLE owners AS SELECT range AS uid, 'team ' || range %% 7 AS team FROM range(1000);";

static int fill_duckdb(const struct pfs_bench_query *bench, const struct side *side)
{
	char csv[PATH_MAX + 16], *setup PFS_FREE = NULL, *quoted PFS_FREE = NULL;
	int error;

	(void)snprintf(csv, sizeof(csv), "%s/nodes.csv", bench->server.folder);
	quoted = pfs_sql_quote(csv);
	if (!quoted || asprintf(&setup, setup_duckdb, quoted) < 0)
		return -ENOMEM;
	error = export_rows(side, csv);
	error = error ? error : pfs_duckdb_run(side->duckdb, NULL, setup);
	(void)unlink(csv);
	return error;
}

/* Asks until what is made once has been made, such as an index, which two questions have to want.
 */
static int warm_up(const struct side *side, const char *sql, struct pfs_query_error *error)
{
	uint64_t rows;

	for (unsigned i = 0; i < 3; i++)
		PFS_TRY(ask(side->queries, &rows, sql, error, NULL, NULL));
	return 0;
}

/* Measures the peer in the same way as ours. */
static int run_peer(struct pfs_bench_query *bench, struct pfs_figures *figures,
		    const struct pfs_bench_question *statement, const struct asked *ours,
		    const char *text, const char *peer, int (*time)(void *arg, double *seconds))
{
	char sql[STATEMENT_MAX];
	struct asked theirs = {.side = ours->side, .sql = sql};
	int error;

	figures->yardstick = peer;
	figures->n_yardstick = 0;
	PFS_TRY(fill_in(sql, bench, ours->side, text));
	error = pfs_bench_repeat(bench, figures, pfs_figures_add_yardstick, time, &theirs);
	if (error == -EINVAL) { /* the peer has said why; others may take the statement */
		pfs_bench_query_failed(bench, figures->what, peer, "the statement fails");
		return 0;
	}
	PFS_TRY(error);
	if (!statement->theirs && ours->rows != theirs.rows)
		(void)pfs_cmd_fail(PFS_BENCH_QUERY, "%s: %s has %llu rows", figures->what, peer,
				   (unsigned long long)theirs.rows);
	return pfs_bench_query_print(bench, figures);
}

static int run_one(struct pfs_bench_query *bench, const struct side *side,
		   const struct pfs_bench_question *statement, double *median)
{
	char sql[STATEMENT_MAX], what[128];
	const char *theirs = statement->theirs ? statement->theirs : statement->ours;
	bool has_duckdb = !statement->duckdb || *statement->duckdb;
	struct asked ours = {.side = side, .sql = sql};
	struct pfs_figures figures = {
		.what = what,
		.unit = "ms",
		.less_is_better = true,
		.wanted_ratio = statement->wanted,
	};
	struct pfs_query_error error;

	PFS_TRY(fill_in(sql, bench, side, statement->ours));
	if (warm_up(side, sql, &error)) {
		pfs_bench_query_failed(bench, statement->what, "primefs", error.text);
		return 0;
	}
	PFS_TRY(pfs_bench_repeat(bench, &figures, pfs_figures_add, time_ours, &ours));
	(void)snprintf(what, sizeof(what), "%s (%llu)", statement->what,
		       (unsigned long long)ours.rows);
	if (side->peer)
		PFS_TRY(run_peer(bench, &figures, statement, &ours, theirs, "SQLite", time_theirs));
	else if (!side->duckdb || !has_duckdb)
		PFS_TRY(pfs_bench_query_print(bench, &figures));
	*median = figures.ours[figures.n / 2];
	figures.wanted_ratio = 0;
	if (!side->duckdb || !has_duckdb)
		return 0;
	return run_peer(bench, &figures, statement, &ours,
			statement->duckdb ? statement->duckdb : theirs, "DuckDB", time_duckdb);
}

static int run_all(struct pfs_bench_query *bench, struct side *side, double *bare)
{
	double median = 0;

	PFS_TRY(choose(side));
	if (!bench->without_duckdb && pfs_duckdb_open(&side->duckdb))
		pfs_bench_query_lacks(bench, "DuckDB");
	if (side->duckdb)
		PFS_TRY(fill_duckdb(bench, side));
	if (!bench->without_sqlite)
		PFS_TRY(fill_peer(side));
	for (size_t i = 0; i < pfs_bench_n_questions; i++) {
		const struct pfs_bench_question *statement = &pfs_bench_questions[i];

		if (bench->only && !strstr(statement->what, bench->only))
			continue;
		PFS_TRY(run_one(bench, side, statement, &median));
		*bare = i ? *bare : median;
	}
	return 0;
}

static int run_statements(struct pfs_bench_query *bench, double *bare)
{
	struct side side = {.tree = NULL};
	int error;

	if (pfs_ready_tree(&side.tree, PFS_BENCH_QUERY, bench->store))
		return -EIO;
	error = pfs_queries_open(&side.queries, side.tree);
	error = error ? error : run_all(bench, &side, bare);
	pfs_peer_close(side.peer);
	pfs_duckdb_close(side.duckdb);
	pfs_queries_close(side.queries);
	free(side.path);
	return pfs_tree_close(side.tree) && !error ? -EIO : error;
}

/* ---- */

static int run(struct pfs_bench_query *bench, uint64_t nodes)
{
	double bare = 0;

	if (!bench->store)
		PFS_TRY(pfs_bench_query_make(bench, nodes));
	PFS_TRY(run_statements(bench, &bare));
	return bench->only ? 0 : pfs_bench_query_mount(bench, bare);
}

static void choose_peers(struct pfs_bench_query *bench, struct pfs_cmd_args *args)
{
	bench->without_sqlite =
		strcmp(args->value, "duckdb") == 0 || strcmp(args->value, "none") == 0;
	bench->without_duckdb =
		strcmp(args->value, "sqlite") == 0 || strcmp(args->value, "none") == 0;
	if (!bench->without_sqlite && !bench->without_duckdb && strcmp(args->value, "all") != 0)
		pfs_cmd_reject(args, "--peers=%s: not all, sqlite, duckdb or none", args->value);
}

/* What the command is asked for, beside what its two halves need. */
struct wishes {
	uint64_t nodes;
	const char *folder;
	bool lists;
};

static void take_option(struct pfs_bench_query *bench, struct wishes *wishes,
			struct pfs_cmd_args *args, int option)
{
	switch (option) {
	case NODES:
		pfs_cmd_number(args, &wishes->nodes, NODES, 100, UINT32_MAX - 1);
		break;
	case RUNS:
		pfs_cmd_number(args, &bench->runs, RUNS, 1, PFS_BENCH_RUNS_MAX);
		break;
	case BESIDE:
		bench->beside = args->value;
		break;
	case ONLY:
		bench->only = args->value;
		break;
	case PREFIX:
		bench->prefix = args->value;
		break;
	case PART:
		bench->part = args->value;
		break;
	case PEERS:
		choose_peers(bench, args);
		break;
	case FOLDER:
		wishes->folder = args->value;
		break;
	default:
		wishes->lists = true;
	}
}

int pfs_bench_query(int argc, char **argv)
{
	struct pfs_bench_query bench = {
		.server = {.verb = PFS_BENCH_QUERY, .threads = 2},
		.runs = 9,
	};
	struct wishes wishes = {.nodes = 1000000, .folder = getenv("TMPDIR")};
	struct pfs_json json = {.out = stdout};
	struct pfs_cmd_args args;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == JSON)
			bench.json = &json;
		else
			take_option(&bench, &wishes, &args, option);
	}
	if (pfs_cmd_end(&args, 0, 1))
		return args.status;
	for (size_t i = 0; wishes.lists && i < pfs_bench_n_questions; i++)
		(void)puts(pfs_bench_questions[i].ours);
	if (wishes.lists)
		return pfs_cmd_flush(PFS_BENCH_QUERY, PFS_EXIT_OK);
	bench.store = args.n_operands ? args.operands[0] : NULL;
	bench.prefix = bench.prefix ? bench.prefix : bench.store ? "lib" : "bar";
	bench.part = bench.part ? bench.part : bench.store ? "json" : "rama";
	if (pfs_bench_server_open(&bench.server,
				  wishes.folder && *wishes.folder ? wishes.folder : "/tmp") != 0)
		return PFS_EXIT_FAILURE;
	if (bench.json)
		pfs_json_open(&json, NULL, '[');
	error = run(&bench, wishes.nodes);
	pfs_bench_query_sum_up(&bench);
	if (bench.json)
		pfs_json_close(&json, ']');
	pfs_bench_server_close(&bench.server);
	return pfs_cmd_flush(PFS_BENCH_QUERY, error ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
