/* SPDX-License-Identifier: MIT */
/* primefs-bench snapshots - what changes cost beside a snapshot, and lookups beside a long statement.
 *
 * Everything is asked of the tree itself, without a mount: beside a request's way through the kernel the
 * differences would not be seen. */
#include "fs/image/snapshot.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/nodes/scan.h"
#include "meta/store.h"
#include "fs/query/query.h"
#include "fs/tree/frozen.h"
#include "fs/image/hold.h"
#include "tools/bench/bench.h"

#define ROUNDS	3
#define CHANGES 20000u
#define LOOKUPS 4000000u /* at most, while one statement runs */
#define CREATE_US 10000

static const struct pfs_cmd_option options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (1000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd command = {
	"snapshots",
	"",
	"Times changes beside a snapshot, and lookups beside a long statement.",
	options,
	"While the statement runs a file is created every 10 ms; the control is a busy loop at nice 10 in its "
	"place.\n",
};

static const struct pfs_caller owner = {.umask = 022};

struct bench {
	struct pfs_bench_folder folder;
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	_Atomic bool stop;
	double statement; /* seconds it took */
	float *lookups;	  /* seconds each */
	size_t n_lookups;
	unsigned files; /* created */
};

enum { UNSEEN, FIRST, SECOND, TAKEN, FROZEN, P999, MOST, LASTED, HELD, FIGURES };

/* ---- changes ---- */

/* Sets the time of slots that lie `stride` apart; *seconds each. */
static int time_changes(double *seconds, const struct bench *bench, const uint64_t *inos, unsigned n,
			unsigned stride)
{
	const struct stat attr = {.st_mtim.tv_sec = 1000000000};
	struct pfs_entry entry;
	double started = pfs_bench_now();
	unsigned done = 0;

	for (unsigned i = 0; i < n; i += stride, done++)
		PFS_TRY(pfs_tree_setattr(bench->tree, &entry, inos[i], &attr, PFS_SET_MTIME, &owner));
	*seconds = (pfs_bench_now() - started) / PFS_MAX(done, 1u);
	return 0;
}

static int find_nodes(const struct bench *bench, uint64_t *inos, unsigned n)
{
	int64_t *values PFS_FREE = malloc(n * sizeof(*values));
	const struct pfs_predicate none = {0};
	struct pfs_slots slots = {0};
	int error = values ? 0 : -ENOMEM;

	(void)pfs_scan_lock(bench->tree, __func__);
	if (!error)
		error = pfs_scan_select(bench->tree, &slots, &none, 0, NULL, NULL);
	if (!error && slots.n < n)
		error = -EINVAL;
	for (unsigned i = 0; i < n && !error; i++)
		slots.slot[i] = slots.slot[(size_t)i * (slots.n / n)];
	if (!error)
		error = pfs_scan_integers(bench->tree, values, PFS_FIELD_INO, slots.slot, n);
	pfs_scan_unlock(bench->tree);
	for (unsigned i = 0; i < n && !error; i++)
		inos[i] = (uint64_t)values[i];
	pfs_slots_finish(&slots);
	return error;
}

static int run_unseen(const struct bench *bench, const uint64_t *inos, unsigned n,
		      struct pfs_figures *figures)
{
	double seconds;

	PFS_TRY(time_changes(&seconds, bench, inos, n, 1));
	PFS_TRY(time_changes(&seconds, bench, inos, n, 1));
	pfs_figures_add(&figures[UNSEEN], seconds * 1e6);
	pfs_figures_add_yardstick(&figures[FIRST], seconds * 1e6);
	pfs_figures_add_yardstick(&figures[SECOND], seconds * 1e6);
	return 0;
}

static int run_seen(const struct bench *bench, const uint64_t *inos, unsigned n, struct pfs_figures *figures)
{
	/* so that each is the first in its block */
	unsigned stride = (unsigned)(n * PFS_SNAPSHOT_BLOCK / bench->folder.nodes) + 1;
	struct pfs_snapshot *snapshot;
	double seconds = 0, started;
	int error;

	(void)pfs_scan_lock(bench->tree, __func__);
	started = pfs_bench_now();
	error = pfs_snapshot_take(&snapshot, bench->tree, PFS_COLUMNS_ALL);
	pfs_figures_add(&figures[TAKEN], (pfs_bench_now() - started) * 1e6);
	pfs_scan_unlock(bench->tree);
	PFS_TRY(error);
	error = time_changes(&seconds, bench, inos, n, stride);
	pfs_figures_add(&figures[FIRST], seconds * 1e6);
	if (!error)
		error = time_changes(&seconds, bench, inos, n, 1);
	pfs_figures_add(&figures[SECOND], seconds * 1e6);
	pfs_snapshot_end(snapshot);
	return error;
}

static int run_changes(const struct bench *bench, struct pfs_figures *figures)
{
	unsigned n = (unsigned)PFS_MIN(CHANGES, bench->folder.nodes);
	uint64_t *inos PFS_FREE = malloc(n * sizeof(*inos));
	const struct pfs_frozen_wish wish = {.columns = PFS_COLUMNS_ALL, .most = UINT64_MAX};
	struct pfs_tree *frozen;
	double started;

	if (!inos)
		return -ENOMEM;
	PFS_TRY(find_nodes(bench, inos, n));
	PFS_TRY(run_unseen(bench, inos, n, figures));
	PFS_TRY(run_seen(bench, inos, n, figures));
	started = pfs_bench_now();
	PFS_TRY(pfs_frozen_open(&frozen, bench->tree, &wish));
	pfs_figures_add(&figures[FROZEN], (pfs_bench_now() - started) * 1e3);
	pfs_frozen_close(frozen);
	return 0;
}

/* ---- lookups ---- */

static void *create_all_the_time(void *arg)
{
	struct bench *bench = arg;
	struct pfs_entry entry;
	char name[32];

	while (!atomic_load(&bench->stop)) {
		(void)snprintf(name, sizeof(name), "created %u", bench->files++);
		if (!pfs_tree_make(bench->tree, &entry, PFS_ROOT_PRIME, name, S_IFREG | 0644, 0, &owner))
			pfs_tree_forget(bench->tree, entry.attr.st_ino, 1);
		(void)usleep(CREATE_US);
	}
	return NULL;
}

static void *look_up_all_the_time(void *arg)
{
	struct bench *bench = arg;
	struct pfs_entry entry;

	bench->n_lookups = 0;
	while (!atomic_load(&bench->stop) && bench->n_lookups < LOOKUPS) {
		double started = pfs_bench_now();

		if (pfs_tree_lookup(bench->tree, &entry, PFS_ROOT_PRIME, "nothing") == 0)
			break;
		bench->lookups[bench->n_lookups++] = (float)(pfs_bench_now() - started);
		(void)usleep(50);
	}
	return NULL;
}

static void *run_statement(void *arg)
{
	static const char sql[] = "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY size) "
				  "AS n FROM nodes)";
	struct bench *bench = arg;
	struct pfs_query_scope scope = {.ino = PFS_ROOT_PRIME, .sees_all = true};
	struct pfs_query_error problem;
	struct pfs_query *query;
	double started = pfs_bench_now();
	int got;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* of this thread */
	if (pfs_query_start(&query, bench->queries, &scope, sql, sizeof(sql) - 1, &problem))
		return NULL;
	while ((got = pfs_query_next(query, &problem)) == 1 || got == -EAGAIN)
		;
	pfs_query_finish(query);
	bench->statement = pfs_bench_now() - started;
	return got ? NULL : arg;
}

/* As long as the statement took. */
static void *run_loop(void *arg)
{
	struct bench *bench = arg;
	double started = pfs_bench_now();

	(void)setpriority(PRIO_PROCESS, 0, 10);
	while (pfs_bench_now() - started < bench->statement)
		;
	return arg;
}

static int by_length(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/* What lookups take beside it: *p999, *most in seconds. */
static int time_lookups(struct bench *bench, double *p999, double *most, void *(*work)(void *arg))
{
	pthread_t creating, looking, working;
	void *done = NULL;

	atomic_store(&bench->stop, false);
	if (pthread_create(&creating, NULL, create_all_the_time, bench))
		return -EAGAIN;
	if (pthread_create(&looking, NULL, look_up_all_the_time, bench))
		abort(); /* a benchmark's process has no more to lose */
	if (!pthread_create(&working, NULL, work, bench))
		(void)pthread_join(working, &done);
	atomic_store(&bench->stop, true);
	(void)pthread_join(creating, NULL);
	(void)pthread_join(looking, NULL);
	if (!done || !bench->n_lookups)
		return -EIO;
	qsort(bench->lookups, bench->n_lookups, sizeof(*bench->lookups), by_length);
	*p999 = bench->lookups[bench->n_lookups - 1 - bench->n_lookups / 1000];
	*most = bench->lookups[bench->n_lookups - 1];
	return 0;
}

static int run_lookups(struct bench *bench, struct pfs_figures *figures)
{
	double p999, most;

	PFS_TRY(time_lookups(bench, &p999, &most, run_statement));
	pfs_figures_add(&figures[P999], p999 * 1e3);
	pfs_figures_add(&figures[MOST], most * 1e3);
	pfs_figures_add(&figures[LASTED], bench->statement);
	pfs_figures_add(&figures[HELD], (double)pfs_hold_longest(bench->tree, false, true).ns * 1e-6);
	PFS_TRY(time_lookups(bench, &p999, &most, run_loop));
	pfs_figures_add_yardstick(&figures[P999], p999 * 1e3);
	pfs_figures_add_yardstick(&figures[MOST], most * 1e3);
	return 0;
}

/* ---- all of it ---- */

static int run_round(struct bench *bench, struct pfs_figures *figures)
{
	int error = pfs_tree_start(bench->tree);

	if (!error)
		error = run_changes(bench, figures);
	if (!error)
		error = pfs_queries_open(&bench->queries, bench->tree);
	if (error)
		return error;
	error = run_lookups(bench, figures);
	pfs_queries_close(bench->queries);
	return error;
}

static int run(struct bench *bench, struct pfs_figures *figures)
{
	int error;

	bench->lookups = malloc(LOOKUPS * sizeof(*bench->lookups));
	if (!bench->lookups)
		return -ENOMEM;
	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	for (int round = 0; round < ROUNDS; round++) {
		PFS_TRY(pfs_tree_open(&bench->tree, bench->folder.store, &(struct pfs_tree_options){0}));
		error = run_round(bench, figures);
		if (pfs_tree_close(bench->tree) && !error)
			error = -EIO;
		PFS_TRY(error);
	}
	return 0;
}

#define BESIDE "beside a busy loop at nice 10"

static const struct pfs_figures described[FIGURES] = {
	[UNSEEN] = {.what = "a change, no snapshot being open", .unit = "us", .less_is_better = true},
	[FIRST] = {.what = "the first change of a block after a snapshot",
		   .unit = "us",
		   .yardstick = "without",
		   .less_is_better = true},
	[SECOND] = {.what = "a second one", .unit = "us", .yardstick = "without", .less_is_better = true},
	[TAKEN] = {.what = "a snapshot of all columns, taken", .unit = "us", .less_is_better = true},
	[FROZEN] = {.what = "a tree frozen, all columns", .unit = "ms", .less_is_better = true},
	[P999] = {.what = "a lookup beside a window statement, p99.9",
		  .unit = "ms",
		  .yardstick = BESIDE,
		  .less_is_better = true},
	[MOST] = {.what = "the longest of them", .unit = "ms", .yardstick = BESIDE, .less_is_better = true},
	[LASTED] = {.what = "the statement", .unit = "s", .less_is_better = true},
	[HELD] = {.what = "the longest that it kept the tree's lock", .unit = "ms", .less_is_better = true},
};

int pfs_bench_snapshots(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 1000000};
	struct pfs_figures figures[FIGURES];
	int error, status;

	status = pfs_bench_folder_begin(&bench.folder, &command, 10000, argc, argv);
	if (status >= 0)
		return status;
	memcpy(figures, described, sizeof(figures));
	error = run(&bench, figures);
	for (size_t i = 0; i < FIGURES; i++)
		pfs_figures_print(&figures[i], NULL);
	free(bench.lookups);
	return pfs_bench_folder_end(&bench.folder, error);
}
