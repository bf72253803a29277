/* SPDX-License-Identifier: MIT */
/* primefs-bench beside - lookups and creations through a mount, beside statements and beside busy loops.
 *
 * All loads take their turns several times, so that what else the machine does meets each of them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "tools/bench/bench.h"
#include "tools/bench/samples.h"

#define ROUNDS	  3
#define CREATE_US 2000
#define LOOKUP_US 50
#define LOAD_S	  2.0 /* that a turn lasts, at least */
#define LOOPS_MAX 64

static const struct pfs_cmd_option options[] = {
	[PFS_BENCH_NODES] = {"nodes", 'n', "N", "of the tree (3000000)"},
	[PFS_BENCH_FOLDER] = {"folder", 'd', "DIR", "for the store ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd command = {
	"beside",
	"",
	"Times lookups and creations through a mount beside statements.",
	options,
	"A name that is not there is looked up all the time, and a file created every 2 ms; beside nothing, and beside "
	"as many busy loops at nice 10 as there are processors, for comparison.\n",
};

static struct load {
	const char *what; /* a statement, or none */
	double seconds;	  /* that it took in all, `n` times */
	struct pfs_samples lookups, creations;
	unsigned n;
	bool is_loop, is_nothing;
} loads[] = {
	{.what = "nothing", .is_nothing = true},
	{.what = "busy loops at nice 10", .is_loop = true},
	{.what = "SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY uid ORDER BY size) AS n FROM nodes)"},
	{.what = "SELECT ext, count(*), sum(size) FROM nodes GROUP BY 1 ORDER BY 2 DESC"},
	{.what = "SELECT path FROM nodes WHERE name GLOB '*x*y*'"},
	{.what = "SELECT path, size FROM nodes ORDER BY size DESC, path"},
	{.what = "SELECT sum(subtree_size) FROM nodes"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE ino = 2"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE ino IN (SELECT ino FROM nodes WHERE type = 'f' LIMIT 1000)"},
	{.what = "UPDATE nodes SET mtime = mtime + 1 WHERE type = 'f'"},
};

struct bench {
	struct pfs_bench_folder folder;
	struct load *load; /* whose turn it is */
	_Atomic bool stop;
	unsigned files, names; /* that were created, and looked up */
};

/* In a directory of their own: the kernel lets nobody look up names in one in which a creation waits, as it does while
 * more is to be committed than may be. */
static void *create_all_the_time(void *arg)
{
	struct bench *bench = arg;
	char path[PATH_MAX + 64];

	while (!atomic_load(&bench->stop)) {
		double started = pfs_bench_now();

		(void)snprintf(path, sizeof(path), "%s/created/%u", bench->folder.mountpoint, bench->files++);
		if (mknod(path, S_IFREG | 0644, 0))
			return NULL;
		pfs_samples_add(&bench->load->creations, started);
		(void)usleep(CREATE_US);
	}
	return arg;
}

/* Each name is another one: the kernel keeps what is not there, too. */
static void *look_up_all_the_time(void *arg)
{
	struct bench *bench = arg;
	char path[PATH_MAX + 64];
	struct stat attr;

	while (!atomic_load(&bench->stop)) {
		double started;

		(void)snprintf(path, sizeof(path), "%s/nothing %u", bench->folder.mountpoint, bench->names++);
		started = pfs_bench_now();
		if (stat(path, &attr) == 0 || errno != ENOENT)
			return NULL;
		pfs_samples_add(&bench->load->lookups, started);
		(void)usleep(LOOKUP_US);
	}
	return arg;
}

static void *be_busy(void *arg)
{
	struct bench *bench = arg;

	(void)setpriority(PRIO_PROCESS, 0, 10); /* of this thread */
	while (!atomic_load_explicit(&bench->stop, memory_order_relaxed))
		;
	return arg;
}

/* To the last byte of its answer. */
static int run_statement(const struct bench *bench, const char *sql)
{
	static char answer[1 << 20];
	char path[PATH_MAX + 64];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/.query/run", bench->folder.mountpoint);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, sql, strlen(sql)) == (ssize_t)strlen(sql))
		while ((n = read(fd, answer, sizeof(answer))) > 0)
			;
	(void)close(fd);
	return n ? -EIO : 0;
}

static int run_load(const struct bench *bench)
{
	struct load *load = bench->load;
	double started = pfs_bench_now(), now;
	int error = 0;

	do {
		if (load->is_loop || load->is_nothing)
			(void)usleep(1000);
		else
			error = run_statement(bench, load->what);
		load->n++;
		now = pfs_bench_now();
	} while (!error && now - started < LOAD_S);
	load->seconds += now - started;
	return error;
}

static int take_turn(struct bench *bench)
{
	long processors = bench->load->is_loop ? sysconf(_SC_NPROCESSORS_ONLN) : 0;
	pthread_t threads[LOOPS_MAX + 2];
	size_t n = 0;
	int error = 0;

	atomic_store(&bench->stop, false);
	while (n < 2 + (size_t)PFS_MIN(processors, LOOPS_MAX) && !error) {
		error = -pthread_create(&threads[n], NULL,
					n == 0	 ? create_all_the_time
					: n == 1 ? look_up_all_the_time
						 : be_busy,
					bench);
		n += !error;
	}
	if (!error)
		error = run_load(bench);
	atomic_store(&bench->stop, true);
	while (n) {
		void *done;

		(void)pthread_join(threads[--n], &done);
		if (!done && !error)
			error = -EIO;
	}
	return error;
}

static void print(void)
{
	(void)printf("%33s%33s%8s\n%8s%8s%8s%8s %8s%8s%8s%8s %8s\n", "lookups, ms", "creations, ms", "takes", "p50",
		     "p99", "p99.9", "most", "p50", "p99", "p99.9", "most", "s");
	for (size_t i = 0; i < PFS_COUNT(loads); i++) {
		pfs_samples_print(&loads[i].lookups);
		pfs_samples_print(&loads[i].creations);
		(void)printf("%8.3f  %s\n", loads[i].seconds / loads[i].n, loads[i].what);
	}
}

static int run_mounted(struct bench *bench)
{
	char path[PATH_MAX + 64];

	(void)snprintf(path, sizeof(path), "%s/created", bench->folder.mountpoint);
	if (mkdir(path, 0755))
		return -errno;
	for (size_t i = 0; i < PFS_COUNT(loads); i++) {
		loads[i].lookups.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
		loads[i].creations.seconds = malloc(PFS_SAMPLES_MAX * sizeof(float));
		if (!loads[i].lookups.seconds || !loads[i].creations.seconds)
			return -ENOMEM;
	}
	for (unsigned i = 0; i < ROUNDS * PFS_COUNT(loads); i++) {
		bench->load = &loads[i % PFS_COUNT(loads)];
		PFS_TRY(take_turn(bench));
	}
	print();
	return 0;
}

static int run(struct bench *bench)
{
	const char *mount[] = {pfs_bench_primefs(), "mount", bench->folder.store, bench->folder.mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->folder.mountpoint, NULL};
	int error;

	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	PFS_TRY(pfs_bench_run(command.verb, NULL, mount));
	error = run_mounted(bench);
	if (pfs_bench_run(command.verb, NULL, umount) && !error)
		error = -EIO;
	for (size_t i = 0; i < PFS_COUNT(loads); i++) {
		free(loads[i].lookups.seconds);
		free(loads[i].creations.seconds);
	}
	return error;
}

int pfs_bench_beside(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 3000000};
	int status = pfs_bench_folder_begin(&bench.folder, &command, 10000, argc, argv);

	return status >= 0 ? status : pfs_bench_folder_end(&bench.folder, run(&bench));
}
