/* SPDX-License-Identifier: MIT */
/* primefs-bench holds - measures how long the tree's lock is held without a break, and by whom,
 * while something is asked for the first time of a tree in which files are created all the time. 

 *
 * It tells the time by the clock, and the processor time of the holding thread, which other work
 * of the machine does not lengthen. */
#include "tools/bench/bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fs/nodes/paths.h"
#include "fs/query/query.h"
#include "fs/image/hold.h"
#include "meta/store.h"
#include "tools/bench/query.h"

#define CREATE_US 10000
#define OTHER	  4711 /* a user who does not see all */
#define STALE	  60000u /* files that are made after an index */
#define BEARERS	  20000u /* files with an attribute, */
#define RARE	  777u	 /* of which one in so many has another one, too */
#define UNITED	  64u	 /* the most directories of a union */

enum { LIMIT, ONLY, ENGINE };

static const struct pfs_cmd_option options[] = {
	[LIMIT] = {"limit", 'l', "MS", "say which holds are longer (5)"},
	[ONLY] = {"only", 'o', "TEXT", "ask only what has this in it"},
	[ENGINE] = {"engine", 'e', "NAME", "auto, host or cuda (auto)"},
	{0},
};

static const struct pfs_cmd command = {
	"holds",
	"STORE",
	"Tells how long the tree's lock is held, and by whom.",
	options,
	"Files are created in the store's root meanwhile, and removed at the end. Only "
	"--only=commit\n"
	"changes the mtime of all files, and that for good.\n",
};

static const struct pfs_caller owner = {.umask = 022};

struct bench {
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	_Atomic bool stop;
	unsigned files; /* files that were created */
	unsigned longer, limit_ms;
	const char *only; /* NULL: everything is measured */
	enum pfs_engine_kind engine;
	uint64_t inos[UNITED]; /* of what is listed */
	size_t n_inos;
};

/* ---- what is asked ---- */

static const char *const statements[] = {
	"SELECT count(*) FROM nodes WHERE size > 100000",
	"SELECT path FROM nodes WHERE name GLOB '*x*y*'",
	"SELECT sum(subtree_size) FROM nodes",
	"SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY size) AS n FROM nodes)",
	"SELECT ext, count(*), sum(size) FROM nodes GROUP BY 1 ORDER BY 2 DESC LIMIT 10",
	"SELECT depth, count(*) FROM nodes GROUP BY 1",
	"SELECT count(DISTINCT name) FROM nodes",
	"SELECT count(*) FROM nodes a JOIN nodes b ON a.parent = b.ino WHERE b.size > 0",
	"SELECT path FROM nodes ORDER BY path DESC LIMIT 10",
	"SELECT path FROM nodes ORDER BY preorder LIMIT 1000000",
	"SELECT path FROM nodes ORDER BY size DESC LIMIT 10",
	"SELECT count(*) FROM nodes WHERE under(ino, (SELECT path FROM nodes WHERE type = 'd' AND depth = 2 LIMIT 1))",
	"SELECT common_ancestor(ino) FROM nodes WHERE size > 100000",
	"SELECT * FROM nodes WHERE size = 4711",
	"SELECT ino FROM nodes WHERE links > 1",
	"SELECT ino FROM nodes ORDER BY type, depth, path DESC LIMIT 10",
};

static int ask(struct bench *bench, const char *sql, bool sees_all)
{
	const struct pfs_query_scope scope = {.ino = PFS_ROOT_PRIME,
					      .sees_all = sees_all,
					      .uid = OTHER,
					      .gid = OTHER,
					      .may_change = sees_all};

	return pfs_bench_run_through(bench->queries, &scope, sql);
}

static const char in_order[] = "SELECT path FROM nodes ORDER BY size DESC LIMIT 10";

static int drop(void *arg PFS_UNUSED, const char *bytes PFS_UNUSED, size_t size PFS_UNUSED)
{
	return 0;
}

static int list_paths(struct bench *bench)
{
	struct pfs_paths *paths;
	uint64_t row = 0;
	int got;

	PFS_TRY(pfs_paths_open(&paths, bench->tree, PFS_ROOT_PRIME, 0));
	while ((got = pfs_paths_next(paths, &row, drop, NULL)) == 1)
		;
	pfs_paths_close(paths);
	return got;
}

static int list_tree(struct bench *bench)
{
	static const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question question = {.relation = PFS_SUBTREE, .inos = &root, .n = 1};

	return pfs_tree_list(bench->tree, &question, 0, drop, NULL);
}

static int list_children(struct bench *bench)
{
	const struct pfs_question question = {
		.relation = PFS_CHILDREN, .inos = bench->inos, .n = bench->n_inos};

	return pfs_tree_list(bench->tree, &question, 0, drop, NULL);
}

static int list_union(struct bench *bench)
{
	const struct pfs_question question = {
		.relation = PFS_SUBTREE, .inos = bench->inos, .n = bench->n_inos};

	return pfs_tree_list(bench->tree, &question, 0, drop, NULL);
}

static int ask_limited(struct bench *bench)
{
	return ask(bench, "SELECT count(held_often), count(held_rare) FROM nodes", false);
}

static int ask_index(struct bench *bench)
{
	return ask(bench, in_order, true);
}

static int count_tree(struct bench *bench)
{
	static const uint64_t root = PFS_ROOT_PRIME;
	const struct pfs_question question = {.relation = PFS_SUBTREE, .inos = &root, .n = 1};
	uint64_t count;

	return pfs_tree_count(bench->tree, &count, &question);
}

static int total(struct bench *bench)
{
	struct pfs_totals totals;

	return pfs_tree_totals(bench->tree, &totals, PFS_ROOT_PRIME);
}

static int tell_info(struct bench *bench)
{
	struct pfs_tree_info info;

	return pfs_tree_info(bench->tree, &info);
}

/* Only the committer's holds count: the hold of the statement itself is as long as what it changes
 * is much. */
static int commit_all(struct bench *bench)
{
	PFS_TRY(ask(bench, "UPDATE nodes SET mtime = mtime + 1 WHERE type = 'f'", true));
	(void)pfs_hold_longest(bench->tree, false, true);
	(void)pfs_hold_longest(bench->tree, true, true);
	return pfs_tree_sync(bench->tree);
}

/* ---- what is made ready before, while nobody else does anything ---- */

static int keep_ino(void *arg, const struct pfs_query *query)
{
	struct bench *bench = arg;

	if (bench->n_inos < UNITED)
		bench->inos[bench->n_inos++] = (uint64_t)pfs_query_integer(query, 0);
	return 0;
}

static int find(struct bench *bench, const char *sql)
{
	uint64_t rows;

	bench->n_inos = 0;
	PFS_TRY(pfs_bench_ask(bench->queries, &rows, sql, keep_ino, bench));
	return bench->n_inos ? 0 : -ENOENT;
}

static int find_largest(struct bench *bench)
{
	return find(
		bench,
		"SELECT parent FROM nodes WHERE parent > 0 GROUP BY parent ORDER BY count(*) DESC LIMIT 1");
}

static int find_tops(struct bench *bench)
{
	return find(bench, "SELECT ino FROM nodes WHERE type = 'd' AND depth = 2 LIMIT 64");
}

static int make_file(struct bench *bench, uint64_t *ino)
{
	struct pfs_entry entry;
	char name[40];

	(void)snprintf(name, sizeof(name), "held %u", bench->files++);
	PFS_TRY(pfs_tree_make(bench->tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0,
			      &owner));
	*ino = entry.attr.st_ino;
	pfs_tree_forget(bench->tree, *ino, 1);
	return 0;
}

static int make_bearers(struct bench *bench)
{
	for (unsigned i = 0; i < BEARERS; i++) {
		uint64_t ino;

		PFS_TRY(make_file(bench, &ino));
		PFS_TRY(pfs_tree_setxattr(bench->tree, ino, "user.held_often", "1", 1, 0));
		if (i == RARE)
			PFS_TRY(pfs_tree_setxattr(bench->tree, ino, "user.held_rare", "1", 1, 0));
	}
	return 0;
}

/* An index is made for the third question that would use it. */
static int make_stale(struct bench *bench)
{
	for (unsigned i = 0; i < 3; i++)
		PFS_TRY(ask(bench, in_order, true));
	for (unsigned i = 0; i < STALE; i++) {
		uint64_t ino;

		PFS_TRY(make_file(bench, &ino));
	}
	return 0;
}

static const struct other {
	const char *what;
	int (*fn)(struct bench *bench);
	int (*make_ready)(struct bench *bench); /* NULL: it needs nothing */
} others[] = {
	{"all paths, as .query/paths", list_paths, NULL},
	{"all paths, as primefs tree", list_tree, NULL},
	{"children of the largest directory", list_children, find_largest},
	{"a union of subtrees", list_union, find_tops},
	{"the engine's first count", count_tree, NULL},
	{"totals of the root", total, NULL},
	{"figures of the store", tell_info, NULL},
	{"attributes, for a user who does not see all", ask_limited, make_bearers},
	{"an index with 60000 stale slots", ask_index, make_stale},
	{"a commit of all files, changed", commit_all, NULL},
};

/* ---- measured ---- */

static void *create_all_the_time(void *arg)
{
	struct bench *bench = arg;
	struct pfs_entry entry;
	char name[40];

	while (!atomic_load(&bench->stop)) {
		(void)snprintf(name, sizeof(name), "held %u", bench->files++);
		if (!pfs_tree_make(bench->tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0,
				   &owner))
			pfs_tree_forget(bench->tree, entry.attr.st_ino, 1);
		(void)usleep(CREATE_US);
	}
	return NULL;
}

static void print_longest(struct bench *bench, bool is_write)
{
	struct pfs_hold longest = pfs_hold_longest(bench->tree, is_write, true);
	double ms = (double)longest.cpu_ns * 1e-6;

	if (!is_write && ms > bench->limit_ms)
		bench->longer++;
	printf("%s%8.2f %8.2f %-22s", !is_write && ms > bench->limit_ms ? "!" : " ", ms,
	       (double)longest.ns * 1e-6, longest.cpu_by ? longest.cpu_by : "");
}

/* If there is no fn, `what` is a statement. */
static int measure(struct bench *bench, const char *what, int (*fn)(struct bench *bench),
		   bool sees_all)
{
	double started, seconds;
	pthread_t creating;
	int error;

	(void)pfs_hold_longest(bench->tree, false, true);
	(void)pfs_hold_longest(bench->tree, true, true);
	atomic_store(&bench->stop, false);
	if (pthread_create(&creating, NULL, create_all_the_time, bench))
		return -EAGAIN;
	started = pfs_bench_now();
	error = fn ? fn(bench) : ask(bench, what, sees_all);
	seconds = pfs_bench_now() - started;
	atomic_store(&bench->stop, true);
	(void)pthread_join(creating, NULL);
	print_longest(bench, false);
	print_longest(bench, true);
	printf("%7.2f  %s%s\n", seconds, sees_all ? "" : "(limited) ", what);
	(void)fflush(stdout);
	return error;
}

/* Measures each question on a tree of which nothing has been asked but what makes it ready. */
static int measure_fresh(struct bench *bench, const char *store, const struct other *other,
			 bool sees_all)
{
	const struct pfs_tree_options opened = {.engine = bench->engine};
	char name[40];
	int error;

	if (bench->only && !strstr(other->what, bench->only))
		return 0;
	PFS_TRY(pfs_tree_open(&bench->tree, store, &opened));
	bench->files = 0;
	error = pfs_tree_start(bench->tree);
	if (!error)
		error = pfs_queries_open(&bench->queries, bench->tree);
	if (!error && other->make_ready)
		error = other->make_ready(bench);
	if (!error)
		error = measure(bench, other->what, other->fn, sees_all);
	pfs_queries_close(bench->queries);
	bench->queries = NULL;
	for (unsigned i = 0; i < bench->files; i++) {
		(void)snprintf(name, sizeof(name), "held %u", i);
		if (pfs_tree_unlink(bench->tree, PFS_ROOT_PRIME, name) && !error)
			error = -EIO;
	}
	if (pfs_tree_close(bench->tree) && !error)
		error = -EIO;
	return error;
}

static int run(struct bench *bench, const char *store)
{
	pfs_hold_count_cpu();
	printf("read: cpu ms,  ms, by                    write: cpu ms,  ms, by                        s\n");
	for (size_t i = 0; i < PFS_COUNT(others); i++)
		if (others[i].fn != commit_all || bench->only)
			PFS_TRY(measure_fresh(bench, store, &others[i], true));
	for (size_t i = 0; i < 2 * PFS_COUNT(statements); i++)
		PFS_TRY(measure_fresh(bench, store, &(struct other){.what = statements[i / 2]},
				      i % 2 == 0));
	return 0;
}

int pfs_bench_holds(int argc, char **argv)
{
	struct bench bench = {.limit_ms = 5};
	struct pfs_cmd_args args;
	uint64_t limit = 5;
	int error;

	pfs_cmd_begin(&args, &command, argc, argv);
	for (int option; (option = pfs_cmd_next(&args)) >= 0;) {
		if (option == LIMIT)
			pfs_cmd_number(&args, &limit, LIMIT, 1, 1000000);
		else if (option == ONLY)
			bench.only = args.value;
		else if (pfs_engine_by_name(&bench.engine, args.value))
			return pfs_cmd_usage("holds", "'%s': no engine", args.value);
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	bench.limit_ms = (unsigned)limit;
	error = run(&bench, args.operands[0]);
	printf("%u longer than %u ms\n", bench.longer, bench.limit_ms);
	if (error)
		return pfs_cmd_fail("holds", "ended early: %s", strerror(-error));
	return pfs_cmd_flush("holds", PFS_EXIT_OK);
}
