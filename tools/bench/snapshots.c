/* SPDX-License-Identifier: MIT */
/* primefs-bench snapshots - measures changes beside a snapshot, and lookups and creations beside
 * statements.
 *
 * Everything is asked of the tree itself, without a mount: a request's way through the kernel
 * would hide the differences. */
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
#include "tools/bench/query.h"
#include "tools/bench/samples.h"

#define ROUNDS	3
#define CHANGES 20000u
#define CREATE_US 2000
#define LOAD_S	  1.0 /* the least time of a load */

static const struct pfs_cmd command = {
	"snapshots",
	"",
	"Times changes beside a snapshot, and lookups and creations beside statements.",
	pfs_bench_folder_options,
	"Beside each kind of statement names are looked up, and a file is created every 2 ms; beside nothing, and "
	"beside a busy loop at nice 10, for comparison.\n",
};

static const struct pfs_caller owner = {.umask = 022};

struct bench {
	struct pfs_bench_folder folder;
	struct pfs_tree *tree;
	struct pfs_queries *queries;
	_Atomic bool stop;
	struct pfs_samples lookups, creations;
	uint64_t created; /* the directory for created files */
	unsigned files;	  /* how many were created */
};

enum { UNSEEN, FIRST, SECOND, TAKEN, FROZEN, FIGURES };

/* ---- changes ---- */

/* Sets the time of slots that lie `stride` apart; *seconds each. */
static int time_changes(double *seconds, const struct bench *bench, const uint64_t *inos,
			unsigned n, unsigned stride)
{
	const struct stat attr = {.st_mtim.tv_sec = 1000000000};
	struct pfs_entry entry;
	double started = pfs_bench_now();
	unsigned done = 0;

	for (unsigned i = 0; i < n; i += stride, done++)
		PFS_TRY(pfs_tree_setattr(bench->tree, &entry, inos[i], &attr, PFS_SET_MTIME,
					 &owner));
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

static int run_seen(const struct bench *bench, const uint64_t *inos, unsigned n,
		    struct pfs_figures *figures)
{
	/* The stride makes each change the first one in its block. */
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

/* ---- lookups and creations ---- */

static void *create_all_the_time(void *arg)
{
	struct bench *bench = arg;
	struct pfs_entry entry;
	char name[32];

	while (!atomic_load(&bench->stop)) {
		double started = pfs_bench_now();

		(void)snprintf(name, sizeof(name), "created %u", bench->files++);
		if (!pfs_tree_make(bench->tree, &entry, bench->created, name, S_IFREG | 0644, 0,
				   &owner))
			pfs_tree_forget(bench->tree, entry.attr.st_ino, 1);
		pfs_samples_add(&bench->creations, started);
		(void)usleep(CREATE_US);
	}
	return NULL;
}

static void *look_up_all_the_time(void *arg)
{
	struct bench *bench = arg;
	struct pfs_entry entry;

	while (!atomic_load(&bench->stop)) {
		double started = pfs_bench_now();

		if (pfs_tree_lookup(bench->tree, &entry, PFS_ROOT_PRIME, "nothing") == 0)
			break;
		pfs_samples_add(&bench->lookups, started);
		(void)usleep(50);
	}
	return NULL;
}

enum { STATEMENT, NOTHING, LOOP };

static const struct load {
	const char *what; /* a statement */
	int kind;
} loads[] = {
	{"nothing", NOTHING},
	{"a busy loop at nice 10", LOOP},
	{"SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY size) AS n FROM nodes)",
	 STATEMENT},
	{"SELECT ext, count(*), sum(size) FROM nodes GROUP BY 1 ORDER BY 2 DESC", STATEMENT},
	{"SELECT path FROM nodes WHERE name GLOB '*x*y*'", STATEMENT},
	{"SELECT path, size FROM nodes ORDER BY size DESC, path", STATEMENT},
	{"SELECT sum(subtree_size) FROM nodes", STATEMENT},
	{"UPDATE nodes SET mtime = mtime + 1 WHERE ino = 2", STATEMENT},
	{"UPDATE nodes SET mtime = mtime + 1 WHERE ino IN (SELECT ino FROM nodes WHERE type = 'f' LIMIT 1000)",
	 STATEMENT},
	{"UPDATE nodes SET mtime = mtime + 1 WHERE type = 'f'", STATEMENT},
};

static int run_statement(struct bench *bench, const char *sql)
{
	const struct pfs_query_scope scope = {
		.ino = PFS_ROOT_PRIME, .sees_all = true, .may_change = true};

	return pfs_bench_run_through(bench->queries, &scope, sql);
}

struct work {
	struct bench *bench;
	const struct load *load;
	double seconds; /* the mean time of the statement */
	int error;
};

static void *run_load(void *arg)
{
	struct work *work = arg;
	double started = pfs_bench_now();
	unsigned n = 0;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* of this thread only */
	for (; !work->error && pfs_bench_now() - started < LOAD_S; n++) {
		if (work->load->kind == STATEMENT)
			work->error = run_statement(work->bench, work->load->what);
		else if (work->load->kind == NOTHING)
			(void)usleep(1000);
	}
	work->seconds = (pfs_bench_now() - started) / PFS_MAX(n, 1u);
	return NULL;
}

static int run_beside(struct bench *bench, const struct load *load)
{
	struct work work = {.bench = bench, .load = load};
	pthread_t creating, looking, working;

	bench->lookups.n = bench->creations.n = 0;
	(void)pfs_hold_longest(bench->tree, false, true);
	(void)pfs_hold_longest(bench->tree, true, true);
	atomic_store(&bench->stop, false);
	if (pthread_create(&creating, NULL, create_all_the_time, bench))
		return -EAGAIN;
	if (pthread_create(&looking, NULL, look_up_all_the_time, bench) ||
	    pthread_create(&working, NULL, run_load, &work))
		abort(); /* a benchmark's process has no more to lose */
	(void)pthread_join(working, NULL);
	atomic_store(&bench->stop, true);
	(void)pthread_join(creating, NULL);
	(void)pthread_join(looking, NULL);
	if (work.error)
		return work.error;
	pfs_samples_print(&bench->lookups);
	pfs_samples_print(&bench->creations);
	printf("%8.2f%8.2f%8.2f  %s\n", work.seconds * (load->kind == STATEMENT),
	       (double)pfs_hold_longest(bench->tree, false, true).cpu_ns * 1e-6,
	       (double)pfs_hold_longest(bench->tree, true, true).cpu_ns * 1e-6, load->what);
	(void)fflush(stdout);
	return 0;
}

static int run_loads(struct bench *bench)
{
	struct pfs_snapshot_stats stats;
	struct pfs_entry entry;

	PFS_TRY(pfs_tree_make(bench->tree, &entry, PFS_ROOT_PRIME, "created", S_IFDIR | 0755, 0,
			      &owner));
	bench->created = entry.attr.st_ino;
	printf("\n%33s%33s%8s%8s%8s\n%8s%8s%8s%8s %8s%8s%8s%8s %8s%8s%8s\n", "lookups, ms",
	       "creations, ms", "takes", "read", "written", "p50", "p99", "p99.9", "most", "p50",
	       "p99", "p99.9", "most", "s", "cpu ms", "cpu ms");
	for (size_t i = 0; i < PFS_COUNT(loads); i++)
		PFS_TRY(run_beside(bench, &loads[i]));
	pfs_snapshots_stats(bench->tree, &stats);
	printf("\nversions of blocks, and memory for them: %.1f MiB at the most, of %.1f; %llu of %llu snapshots given up\n",
	       (double)stats.most_bytes / (1 << 20), (double)stats.limit / (1 << 20),
	       (unsigned long long)stats.given_up, (unsigned long long)stats.taken);
	return 0;
}

/* ---- all of it ---- */

static int run_round(struct bench *bench, struct pfs_figures *figures, bool is_last)
{
	int error = pfs_tree_start(bench->tree);

	if (!error)
		error = run_changes(bench, figures);
	if (!error)
		error = pfs_queries_open(&bench->queries, bench->tree);
	if (error)
		return error;
	error = is_last ? run_loads(bench) : 0;
	pfs_queries_close(bench->queries);
	return error;
}

static int run(struct bench *bench, struct pfs_figures *figures)
{
	int error;

	pfs_hold_count_cpu();
	bench->lookups.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
	bench->creations.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
	if (!bench->lookups.seconds || !bench->creations.seconds)
		return -ENOMEM;
	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	for (int round = 0; round < ROUNDS; round++) {
		PFS_TRY(pfs_tree_open(&bench->tree, bench->folder.store,
				      &(struct pfs_tree_options){0}));
		error = run_round(bench, figures, round == ROUNDS - 1);
		if (pfs_tree_close(bench->tree) && !error)
			error = -EIO;
		PFS_TRY(error);
	}
	return 0;
}

static const struct pfs_figures described[FIGURES] = {
	[UNSEEN] = {.what = "a change, no snapshot being open",
		    .unit = "us",
		    .less_is_better = true},
	[FIRST] = {.what = "the first change of a block after a snapshot",
		   .unit = "us",
		   .yardstick = "without",
		   .less_is_better = true},
	[SECOND] = {.what = "a second one",
		    .unit = "us",
		    .yardstick = "without",
		    .less_is_better = true},
	[TAKEN] = {.what = "a snapshot of all columns, taken",
		   .unit = "us",
		   .less_is_better = true},
	[FROZEN] = {.what = "a tree frozen, all columns", .unit = "ms", .less_is_better = true},
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
	(void)putchar('\n');
	for (size_t i = 0; i < FIGURES; i++)
		pfs_figures_print(&figures[i], NULL);
	free(bench.lookups.seconds);
	free(bench.creations.seconds);
	return pfs_bench_folder_end(&bench.folder, error);
}
