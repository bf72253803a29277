/* SPDX-License-Identifier: MIT */
/* primefs-bench statements - measures a statement's way through .query/run: opened, written, read
 * to the end, closed.
 *
 * $PRIMEFS names another program to be measured in the same way. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define TIMES 201 /* runs of a short statement, whose median is one figure */

static const struct pfs_cmd command = {
	"statements",
	"",
	"Times statements through .query/run, from open to close.",
	pfs_bench_folder_options,
	NULL,
};

static const struct asked {
	const char *sql;
	unsigned times;
	unsigned figures;
	size_t piece; /* bytes that are read at a time */
} asked[] = {
	{"SELECT 1", TIMES, 32, 4096},
	{"SELECT upper('a') || 1 + 2", TIMES, 32, 4096},
	{"SELECT ino, name FROM nodes LIMIT 1", TIMES, 32, 4096},
	{"SELECT ino, size FROM nodes", 1, 9, (size_t)1 << 20},
	{"SELECT ino, printf('%d', size) FROM nodes", 1, 5, (size_t)1 << 20},
	{"WITH RECURSIVE i(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM i WHERE v < 1000000) SELECT v FROM i",
	 1, 5, (size_t)1 << 20},
};

static int ask(const char *path, const struct asked *what, char *piece, double *seconds)
{
	double started = pfs_bench_now();
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -errno;
	got = write(fd, what->sql, strlen(what->sql));
	while (got > 0)
		got = read(fd, piece, what->piece);
	if (got < 0)
		got = -errno;
	(void)close(fd);
	*seconds = pfs_bench_now() - started;
	return (int)got;
}

static int measure(const char *path, const struct asked *what, char *piece)
{
	struct pfs_figures figures = {.what = what->sql, .unit = "ms", .less_is_better = true};
	double seconds[TIMES];

	for (unsigned n = 0; n < what->figures; n++) {
		for (unsigned i = 0; i < what->times; i++)
			PFS_TRY(ask(path, what, piece, &seconds[i]));
		pfs_figures_add(&figures, pfs_bench_median(seconds, what->times) * 1e3);
	}
	pfs_figures_print(&figures, NULL);
	return 0;
}

static int measure_all(const struct pfs_bench_folder *folder)
{
	char path[PATH_MAX + 32];
	char *piece PFS_FREE = malloc((size_t)1 << 20);

	if (!piece)
		return -ENOMEM;
	(void)snprintf(path, sizeof(path), "%s/.query/run", folder->mountpoint);
	for (size_t i = 0; i < PFS_COUNT(asked); i++)
		PFS_TRY(measure(path, &asked[i], piece));
	return 0;
}

static int run(const struct pfs_bench_folder *folder)
{
	const char *mount[] = {pfs_bench_primefs(), "mount", folder->store, folder->mountpoint,
			       NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", folder->mountpoint, NULL};
	int error, ended;

	PFS_TRY(pfs_bench_folder_import(folder));
	PFS_TRY(pfs_bench_run(command.verb, NULL, mount));
	error = measure_all(folder);
	ended = pfs_bench_run(command.verb, NULL, umount);
	return error ? error : ended;
}

int pfs_bench_statements(int argc, char **argv)
{
	struct pfs_bench_folder folder = {.nodes = 1000000};
	int status = pfs_bench_folder_begin(&folder, &command, 2, argc, argv);

	if (status >= 0)
		return status;
	return pfs_bench_folder_end(&folder, run(&folder));
}
