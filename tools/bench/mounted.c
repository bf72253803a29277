/* SPDX-License-Identifier: MIT */
/* primefs-bench mounted - measures statements end to end beside DuckDB: a process of its own mounts
 * a store, each statement is written to .query/run, and its answer is read to the end.
 *
 * DuckDB has the same rows in a table in memory, without paths, and runs on all processors; its
 * answers are not made text. */
#include "tools/bench/query.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/bench/duckdb.h"
#include "tools/bench/shares.h"
#include "tools/client/ask.h"

#define VERB	      "mounted"
#define PIECE	      ((size_t)1 << 20)
#define STATEMENT_MAX 1024
#define TEXTS	      "primefs_bench_texts" /* the side table: 1,000 texts, each in one of 7 teams */

enum { NODES, ENGINE, PEERS, ONLY, RUNS, PART, FOLDER, JSON };

static const struct pfs_cmd_option options[] = {
	[NODES] = {"nodes", 'n', "N", "of the tree made if no STORE is given (1000000)"},
	[ENGINE] = {"engine", 'e', "NAME", "of the mount: auto, host or cuda (auto)"},
	[PEERS] = {"peers", 0, "WHICH", "beside statements: duckdb or none (duckdb)"},
	[ONLY] = {"only", 'o', "TEXT", "only statements with TEXT in their titles"},
	[RUNS] = {"runs", 'r', "N", "after the first, of which the median is taken (5)"},
	[PART] = {"part", 's', "TEXT", "that names have somewhere, to look for (zapu)"},
	[FOLDER] = {"folder", 'd', "DIR",
		    "for the store, the mountpoint and a file of all rows ($TMPDIR or /tmp)"},
	[JSON] = {"json", 0, NULL, "print an array of objects"},
	{0},
};

static const struct pfs_cmd command = {
	VERB,
	"[STORE]",
	"Times statements through a mount, from open to close, beside DuckDB.",
	options,
	"The table " TEXTS " is made in STORE, and dropped at the end.\n"
	"DuckDB (tools/setup bench) has no paths. A ratio is speed beside DuckDB's.\n"
	"A figure \"at first\" may find columns there, made by the copy for DuckDB or earlier.\n",
};

/* $ino is the directory of the first level with most below it, $part the option. */
static const struct pfs_bench_question questions[] = {
	{"grouped by type", "SELECT type, count(*), sum(size) FROM nodes GROUP BY type", NULL, 0,
	 NULL},
	{"grouped by ext", "SELECT ext, count(*), sum(size) FROM nodes GROUP BY ext", NULL, 0,
	 NULL},
	{"ten most frequent ext",
	 "SELECT ext, count(*) AS n FROM nodes GROUP BY ext ORDER BY n DESC, ext LIMIT 10", NULL, 0,
	 NULL},
	{"grouped by depth and type",
	 "SELECT depth, type, count(*), sum(size) FROM nodes GROUP BY depth, type", NULL, 0, NULL},
	{"size range, counted and summed",
	 "SELECT count(*), sum(size) FROM nodes WHERE size BETWEEN 1000 AND 100000", NULL, 0, NULL},
	{"sum of sizes", "SELECT sum(size) FROM nodes", NULL, 0, NULL},
	{"sum of sizes, latest mtime", "SELECT sum(size), max(mtime) FROM nodes", NULL, 0, NULL},
	{"ten parents with most children, sizes summed",
	 "SELECT parent, count(*), sum(size) FROM nodes GROUP BY parent ORDER BY 2 DESC, 1 LIMIT "
	 "10",
	 NULL, 0, NULL},
	{"joined with parents, one ext, grouped",
	 "SELECT p.depth, count(*), sum(n.size) FROM nodes n JOIN nodes p ON n.parent = p.ino "
	 "WHERE n.ext = 'py' GROUP BY p.depth",
	 NULL, 0, NULL},
	{"joined with 1,000 texts, grouped",
	 "SELECT team, count(*), sum(size) FROM nodes JOIN " TEXTS " ON ext = text GROUP BY team",
	 NULL, 0, NULL},
	{"part of a name, LIKE, counted", "SELECT count(*) FROM nodes WHERE name LIKE '%$part%'",
	 NULL, 0, "SELECT count(*) FROM nodes WHERE name ILIKE '%$part%'"},
	{"part of a name, GLOB, grouped by type",
	 "SELECT type, count(*), sum(size) FROM nodes WHERE name GLOB '*$part*' GROUP BY type",
	 NULL, 0, NULL},
	{"large files by a CTE, grouped by ext",
	 "WITH b AS (SELECT ext, size FROM nodes WHERE size > 100000) "
	 "SELECT ext, count(*), sum(size) FROM b GROUP BY ext",
	 NULL, 0, NULL},
	{"distinct ext counted", "SELECT count(DISTINCT ext) FROM nodes", NULL, 0, NULL},
	{"sum of an expression, grouped by type",
	 "SELECT type, sum(size / 1024 * 2 + 1) FROM nodes GROUP BY type", NULL, 0,
	 "SELECT type, sum(size // 1024 * 2 + 1) FROM nodes GROUP BY type"},
	{"distinct ext below depth 3", "SELECT DISTINCT ext FROM nodes WHERE depth > 3", NULL, 0,
	 NULL},
	{"directories with a large file, EXISTS",
	 "SELECT count(*) FROM nodes d WHERE type = 'd' AND EXISTS (SELECT 1 FROM nodes f WHERE "
	 "f.parent = d.ino AND f.size > 1000000)",
	 NULL, 0, NULL},
	{"nodes without children, NOT IN",
	 "SELECT count(*) FROM nodes WHERE ino NOT IN (SELECT parent FROM nodes WHERE parent IS "
	 "NOT "
	 "NULL)",
	 NULL, 0, NULL},
	{"five most frequent names",
	 "SELECT name, count(*) AS n FROM nodes GROUP BY name ORDER BY n DESC, name LIMIT 5", NULL,
	 0, NULL},
	{"distinct names counted", "SELECT count(DISTINCT name) FROM nodes", NULL, 0, NULL},
	{"a subtree counted", "SELECT count(*) FROM nodes WHERE under(ino, $ino)", NULL, 0,
	 "WITH RECURSIVE t(ino) AS (SELECT CAST($ino AS BIGINT) UNION ALL SELECT n.ino FROM nodes "
	 "n "
	 "JOIN t ON n.parent = t.ino) SELECT count(*) FROM t"},
};

struct mounted {
	struct pfs_bench_query bench;
	struct pfs_duckdb *duckdb; /* NULL: it is not installed, or not wanted */
	const char *engine;
	char query[PATH_MAX + 8]; /* the mount's folder .query */
	char ino[32];
	char *piece; /* PIECE bytes */
};

/* ---- one statement ---- */

struct answer {
	FILE *csv; /* to write all of it to, or NULL */
	uint64_t lines;
	size_t len;
	char text[16384]; /* its beginning, as far as there is room */
};

/* Writes each byte from 128 on as the UTF-8 of the character with that number: DuckDB takes UTF-8
 * only, names have any bytes, and names that differ must go on differing. */
static int write_utf8(FILE *csv, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 128) {
			(void)putc_unlocked(0xc0 | c >> 6, csv);
			c = 0x80 | (c & 0x3f);
		}
		(void)putc_unlocked(c, csv);
	}
	return ferror(csv) ? -EIO : 0;
}

static int take(struct answer *answer, const char *piece, size_t size)
{
	size_t room = PFS_MIN(sizeof(answer->text) - 1 - answer->len, size);

	memcpy(answer->text + answer->len, piece, room);
	answer->len += room;
	for (const char *at = piece; (at = memchr(at, '\n', (size_t)(piece + size - at))); at++)
		answer->lines++;
	return answer->csv ? write_utf8(answer->csv, piece, size) : 0;
}

/* Writes sql, unless it is NULL, to a file of .query and reads the file. */
static int ask(const struct mounted *mounted, struct answer *answer, const char *file,
	       const char *sql)
{
	char path[PATH_MAX + 32];
	int fd PFS_CLOSE = -1;
	ssize_t got = 0;

	*answer = (struct answer){.csv = answer->csv};
	(void)snprintf(path, sizeof(path), "%s/%s", mounted->query, file);
	fd = open(path, (sql ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (sql)
		got = write(fd, sql, strlen(sql));
	while (got >= 0 && (got = read(fd, mounted->piece, PIECE)) > 0)
		PFS_TRY(take(answer, mounted->piece, (size_t)got));
	return got < 0 ? -errno : 0;
}

/* Gets the values of an answer's first row. */
static void get_row(char *row, size_t size, const struct answer *answer)
{
	const char *title_end = strchr(answer->text, '\n');
	const char *from = title_end ? title_end + 1 : "";

	(void)snprintf(row, size, "%.*s", (int)strcspn(from, "\n"), from);
}

/* Gets why the last statement failed, in one line. */
static void get_reason(char *reason, size_t size, const struct mounted *mounted, int error)
{
	struct answer answer = {.csv = NULL};

	if (ask(mounted, &answer, "error", NULL) || !answer.len)
		(void)snprintf(answer.text, sizeof(answer.text), "%s", strerror(-error));
	(void)snprintf(reason, size, "%.*s", (int)strcspn(answer.text, "\n"), answer.text);
}

/* As ask, and says what is wrong. */
static int must(const struct mounted *mounted, struct answer *answer, const char *file,
		const char *sql)
{
	int error = ask(mounted, answer, file, sql);
	char reason[256];

	if (!error)
		return 0;
	get_reason(reason, sizeof(reason), mounted, error);
	(void)pfs_cmd_fail(VERB, "%s: %s", sql ? sql : file, reason);
	return error;
}

/* ---- figures ---- */

struct asked {
	const struct mounted *mounted;
	const char *sql;
	struct pfs_bench_shares shares; /* of the runs since it was cleared */
	uint64_t rows;
	char row[256]; /* the values, if there is one row */
};

static int time_ours(void *arg, double *seconds)
{
	struct asked *asked = arg;
	struct answer answer = {.csv = NULL};
	double started = pfs_bench_now();

	PFS_TRY(ask(asked->mounted, &answer, "run", asked->sql));
	*seconds = pfs_bench_now() - started;
	asked->shares.runs++;
	asked->shares.seconds += *seconds;
	asked->rows = answer.lines ? answer.lines - 1 : 0;
	*asked->row = '\0';
	if (asked->rows == 1)
		get_row(asked->row, sizeof(asked->row), &answer);
	return 0;
}

static int time_duckdb(void *arg, double *seconds)
{
	struct asked *asked = arg;
	double started = pfs_bench_now();

	PFS_TRY(pfs_duckdb_ask(asked->mounted->duckdb, &asked->rows, asked->row, sizeof(asked->row),
			       asked->sql));
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int fill_in(char *sql, const struct mounted *mounted, const char *text)
{
	const char *const words[][2] = {{"$ino", mounted->ino}, {"$part", mounted->bench.part}};

	return pfs_bench_fill_in(sql, STATEMENT_MAX, text, words, PFS_COUNT(words));
}

static int run_duckdb(const struct mounted *mounted, struct pfs_figures *figures,
		      const struct pfs_bench_question *question, const struct asked *ours)
{
	char sql[STATEMENT_MAX];
	struct asked theirs = {.mounted = mounted, .sql = sql};
	int error;

	PFS_TRY(fill_in(sql, mounted, question->duckdb ? question->duckdb : question->ours));
	error = pfs_bench_repeat(&mounted->bench, figures, pfs_figures_add_yardstick, time_duckdb,
				 &theirs);
	if (error == -EINVAL) { /* which has been said */
		pfs_bench_query_failed(&mounted->bench, figures->what, "DuckDB",
				       "the statement fails");
		return 0;
	}
	PFS_TRY(error);
	figures->yardstick = "DuckDB";
	if (theirs.rows != ours->rows)
		(void)pfs_cmd_fail(VERB, "%s: DuckDB has %llu rows", figures->what,
				   (unsigned long long)theirs.rows);
	else if (strcmp(theirs.row, ours->row) != 0)
		(void)pfs_cmd_fail(VERB, "%s: DuckDB answers '%s' in place of '%s'", figures->what,
				   theirs.row, ours->row);
	return 0;
}

static int look_at_daemon(const struct mounted *mounted, struct pfs_bench_daemon *out)
{
	struct answer answer = {.csv = NULL};

	PFS_TRY(must(mounted, &answer, "stats", NULL));
	pfs_bench_daemon_read(out, answer.text);
	return 0;
}

/* Times all runs but the first, and finds what of them took how long. */
static int run_ours(struct pfs_figures *figures, struct asked *ours, struct pfs_bench_daemon *now)
{
	const struct mounted *mounted = ours->mounted;
	struct pfs_bench_daemon before;

	PFS_TRY(look_at_daemon(mounted, &before));
	ours->shares = (struct pfs_bench_shares){.runs = 0};
	PFS_TRY(pfs_bench_repeat(&mounted->bench, figures, pfs_figures_add, time_ours, ours));
	PFS_TRY(look_at_daemon(mounted, now));
	pfs_bench_shares_take(&ours->shares, &before, now);
	return 0;
}

static int run_one(struct mounted *mounted, const struct pfs_bench_question *question)
{
	char sql[STATEMENT_MAX], what[128], reason[256];
	struct asked ours = {.mounted = mounted, .sql = sql};
	struct pfs_figures figures = {.what = what, .unit = "ms", .less_is_better = true};
	struct pfs_bench_daemon before, now;
	int error;

	PFS_TRY(fill_in(sql, mounted, question->ours));
	PFS_TRY(look_at_daemon(mounted, &before));
	error = time_ours(&ours, &figures.first);
	figures.first *= 1e3;
	if (!error)
		error = run_ours(&figures, &ours, &now);
	if (error) {
		get_reason(reason, sizeof(reason), mounted, error);
		pfs_bench_query_failed(&mounted->bench, question->what, "primefs", reason);
		return 0;
	}
	(void)snprintf(what, sizeof(what), "%s (%llu)", question->what,
		       (unsigned long long)ours.rows);
	if (mounted->duckdb)
		PFS_TRY(run_duckdb(mounted, &figures, question, &ours));
	PFS_TRY(pfs_bench_query_print(&mounted->bench, &figures));
	pfs_bench_shares_print(&ours.shares, what, mounted->bench.json);
	pfs_bench_operators_print(&before, &now, what, mounted->bench.json);
	return 0;
}

/* ---- what is asked about ---- */

/* Some of the texts are the nodes' own. */
static int make_texts(const struct mounted *mounted)
{
	static const char *const statements[] = {
		"DROP TABLE IF EXISTS " TEXTS,
		"CREATE TABLE " TEXTS " (text TEXT, team INTEGER)",
		"INSERT INTO " TEXTS " SELECT ext, count(*) % 7 FROM nodes WHERE ext IS NOT NULL "
		"GROUP BY ext ORDER BY ext LIMIT 1000",
		"WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i) "
		"INSERT INTO " TEXTS " SELECT 'text ' || v, v % 7 FROM i "
		"LIMIT 1000 - (SELECT count(*) FROM " TEXTS ")",
	};
	struct answer answer = {.csv = NULL};

	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		PFS_TRY(must(mounted, &answer, "run", statements[i]));
	return 0;
}

static int say(const char *path)
{
	int error = -errno;

	(void)pfs_cmd_fail(VERB, "%s: %s", path, strerror(-error));
	return error;
}

/* Copies the rows of a statement, by its file, into a table of DuckDB. */
static int copy_rows(const struct mounted *mounted, const char *file, const char *table,
		     const char *columns)
{
	char csv[PATH_MAX], *quoted PFS_FREE = NULL, *setup PFS_FREE = NULL;
	struct answer answer;
	int error;

	(void)snprintf(csv, sizeof(csv), "%s/rows.csv", mounted->bench.server.folder);
	quoted = pfs_sql_quote(csv);
	if (!quoted || asprintf(&setup,
				"CREATE TABLE %s (%s);\n"
				"COPY %s FROM %s (FORMAT csv, HEADER true, DELIMITER ',', "
				"QUOTE '\"', ESCAPE '\"', ALLOW_QUOTED_NULLS false);",
				table, columns, table, quoted) < 0)
		return -ENOMEM;
	answer.csv = fopen(csv, "we");
	if (!answer.csv)
		return say(csv);
	error = must(mounted, &answer, file, NULL);
	if (fclose(answer.csv) != 0 && !error)
		error = say(csv);
	error = error ? error : pfs_duckdb_run(mounted->duckdb, NULL, setup);
	(void)unlink(csv);
	return error;
}

static int fill_duckdb(const struct mounted *mounted)
{
	PFS_TRY(pfs_duckdb_run(mounted->duckdb, NULL, "SET preserve_insertion_order = false"));
	PFS_TRY(copy_rows(mounted, "sql/SELECT text, team FROM " TEXTS ".csv", TEXTS,
			  "text TEXT, team INTEGER"));
	return copy_rows(
		mounted,
		"sql/SELECT ino, parent, depth, name, ext, type, size, mtime FROM nodes.csv",
		"nodes",
		"ino BIGINT, parent BIGINT, depth INTEGER, name TEXT, ext TEXT, type TEXT, "
		"size BIGINT, mtime BIGINT");
}

static void print_step(const struct mounted *mounted, const char *what, double started)
{
	struct pfs_figures figures = {.what = what, .unit = "s", .less_is_better = true};

	pfs_figures_add(&figures, pfs_bench_now() - started);
	pfs_figures_print(&figures, mounted->bench.json);
}

static int run_questions(struct mounted *mounted)
{
	struct answer answer = {.csv = NULL};
	double started = pfs_bench_now();

	PFS_TRY(make_texts(mounted));
	PFS_TRY(must(mounted, &answer, "run",
		     "SELECT ifnull((SELECT ino FROM nodes WHERE depth = 1 AND type = 'd' "
		     "ORDER BY subtree_count DESC, ino LIMIT 1), 2)"));
	get_row(mounted->ino, sizeof(mounted->ino), &answer);
	if (mounted->duckdb) {
		PFS_TRY(fill_duckdb(mounted));
		print_step(mounted, "rows copied to DuckDB", started);
	}
	for (size_t i = 0; i < PFS_COUNT(questions); i++)
		if (!mounted->bench.only || strstr(questions[i].what, mounted->bench.only))
			PFS_TRY(run_one(mounted, &questions[i]));
	return 0;
}

static int run(struct mounted *mounted, uint64_t nodes)
{
	struct pfs_bench_query *bench = &mounted->bench;
	struct answer answer = {.csv = NULL};
	double started = pfs_bench_now();
	int error, ended;

	if (!bench->without_duckdb && pfs_duckdb_open(&mounted->duckdb))
		pfs_bench_query_lacks(bench, "DuckDB");
	if (!bench->store) {
		bench->server.without_image = true; /* it would be made while statements run */
		PFS_TRY(pfs_bench_query_make(bench, nodes));
		print_step(mounted, "store made", started);
	}
	bench->server.other = bench->store;
	started = pfs_bench_now();
	PFS_TRY(pfs_bench_server_mount(&bench->server, "86400", mounted->engine));
	print_step(mounted, "store mounted", started);
	(void)snprintf(mounted->query, sizeof(mounted->query), "%s/.query",
		       bench->server.mountpoint);
	error = run_questions(mounted);
	ended = must(mounted, &answer, "run", "DROP TABLE IF EXISTS " TEXTS);
	return error ? error : ended;
}

/* ---- */

static void choose_peers(struct pfs_bench_query *bench, struct pfs_cmd_args *args)
{
	bench->without_duckdb = strcmp(args->value, "none") == 0;
	if (!bench->without_duckdb && strcmp(args->value, "duckdb") != 0)
		pfs_cmd_reject(args, "--peers=%s: not duckdb or none", args->value);
}

/* Options whose values are kept elsewhere than in `mounted` are the caller's. */
static void take_option(struct mounted *mounted, struct pfs_cmd_args *args, int option)
{
	enum pfs_engine_kind kind;

	switch (option) {
	case ENGINE:
		pfs_cmd_engine(args, &kind);
		mounted->engine = args->value;
		break;
	case PEERS:
		choose_peers(&mounted->bench, args);
		break;
	case ONLY:
		mounted->bench.only = args->value;
		break;
	case RUNS:
		pfs_cmd_number(args, &mounted->bench.runs, RUNS, 1, PFS_BENCH_RUNS_MAX);
		break;
	default:
		mounted->bench.part = args->value;
	}
}

int pfs_bench_mounted(int argc, char **argv)
{
	struct mounted mounted = {
		.bench = {.server = {.verb = VERB, .threads = 2}, .runs = 5, .part = "zapu"},
		.engine = "auto",
	};
	const char *folder = getenv("TMPDIR");
	struct pfs_json json = {.out = stdout};
	struct pfs_cmd_args args;
	uint64_t nodes = 1000000;
	int option, error;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == NODES)
			pfs_cmd_number(&args, &nodes, NODES, 100, UINT32_MAX - 1);
		else if (option == FOLDER)
			folder = args.value;
		else if (option == JSON)
			mounted.bench.json = &json;
		else
			take_option(&mounted, &args, option);
	}
	if (pfs_cmd_end(&args, 0, 1))
		return args.status;
	mounted.bench.store = args.n_operands ? args.operands[0] : NULL;
	if (pfs_bench_server_open(&mounted.bench.server, folder && *folder ? folder : "/tmp") != 0)
		return PFS_EXIT_FAILURE;
	mounted.piece = malloc(PIECE);
	if (mounted.bench.json)
		pfs_json_open(&json, NULL, '[');
	error = mounted.piece ? run(&mounted, nodes) : -ENOMEM;
	if (mounted.bench.json)
		pfs_json_close(&json, ']');
	free(mounted.piece);
	pfs_duckdb_close(mounted.duckdb);
	pfs_bench_server_close(&mounted.bench.server);
	return pfs_cmd_flush(VERB, error ? PFS_EXIT_FAILURE : PFS_EXIT_OK);
}
