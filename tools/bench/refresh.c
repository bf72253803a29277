/* SPDX-License-Identifier: MIT */
/* primefs-bench refresh and watch - measure how long it takes to bring a store up to date with its
 * folder, beside find on that folder in the same run, and until a change shows in a mount that
 * follows the folder. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define ROUNDS	       5
#define FILES_A_FOLDER 32
#define FOLDERS_A_FOLDER 16
#define SHOWS_WITHIN   30.0 /* seconds */

enum { FILES, FOLDER, HOW };

static const struct pfs_cmd_option options[] = {
	[FILES] = {"files", 'n', "N", "in the folder (100000)"},
	[FOLDER] = {"folder", 'd', "DIR", "for the folder and the store ($TMPDIR or /tmp)"},
	{0},
};

static const struct pfs_cmd_option watch_options[] = {
	[FILES] = {"files", 'n', "N", "in the folder (100000)"},
	[FOLDER] = {"folder", 'd', "DIR", "for the folder and the store ($TMPDIR or /tmp)"},
	[HOW] = {"how", 0, "HOW", "of -o watch=HOW (auto)"},
	{0},
};

static const struct pfs_cmd refresh_command = {
	"refresh",
	"",
	"Times refreshing a store from a folder, beside find on the folder.",
	options,
	NULL,
};

static const struct pfs_cmd watch_command = {
	"watch",
	"",
	"Times how soon changes of a folder show in a mount that watches it.",
	watch_options,
	NULL,
};

struct bench {
	const struct pfs_cmd *command;
	uint64_t files;
	const char *how;
	char folder[PATH_MAX], source[PATH_MAX + 16], store[PATH_MAX + 16],
		mountpoint[PATH_MAX + 16];
};

/* ---- the folder ---- */

/* Folder i is in folder (i - 1) / FOLDERS_A_FOLDER; folder 0 is the source. */
static void name_folder(char *out, size_t size, const struct bench *bench, uint64_t i)
{
	uint64_t way[64];
	int n = 0, len = snprintf(out, size, "%s", bench->source);

	for (; i; i = (i - 1) / FOLDERS_A_FOLDER)
		way[n++] = i;
	while (n)
		len += snprintf(out + len, size - (size_t)len, "/d%llu",
				(unsigned long long)way[--n]);
}

static int write_file(const char *path, const char *text)
{
	FILE *out = fopen(path, "ae");
	bool failed;

	if (!out)
		return -errno;
	failed = fputs(text, out) < 0;
	failed |= fclose(out) != 0;
	return failed ? -EIO : 0;
}

static int make_folder(const struct bench *bench, uint64_t i, uint64_t files)
{
	char path[2 * PATH_MAX];
	size_t len;

	name_folder(path, sizeof(path), bench, i);
	if (mkdir(path, 0700) < 0)
		return -errno;
	len = strlen(path);
	for (uint64_t j = 0; j < files; j++) {
		(void)snprintf(path + len, sizeof(path) - len, "/f%llu", (unsigned long long)j);
		PFS_TRY(write_file(path, "x\n"));
	}
	return 0;
}

static uint64_t count_folders(const struct bench *bench)
{
	return (bench->files + FILES_A_FOLDER - 1) / FILES_A_FOLDER;
}

static int make_source(const struct bench *bench)
{
	const struct timespec settled = {.tv_sec = 2, .tv_nsec = 200000000};
	const char *import[] = {pfs_bench_primefs(), "import",	   "-q",
				bench->source,	     bench->store, NULL};

	for (uint64_t i = 0; i < count_folders(bench); i++)
		PFS_TRY(make_folder(bench, i,
				    PFS_MIN(bench->files - i * FILES_A_FOLDER, FILES_A_FOLDER)));
	(void)nanosleep(&settled, NULL); /* older listings are not read again */
	return pfs_bench_run(bench->command->verb, NULL, import);
}

/* ---- refresh ---- */

enum { ALL, QUICK, ALONE, REFRESH_FIGURES };

static int stat_folders(const struct bench *bench, double *seconds)
{
	double started = pfs_bench_now();
	char path[2 * PATH_MAX];
	struct stat attr;

	for (uint64_t i = 0; i < count_folders(bench); i++) {
		name_folder(path, sizeof(path), bench, i);
		if (lstat(path, &attr) < 0)
			return -errno;
	}
	*seconds = pfs_bench_now() - started;
	return 0;
}

static int refresh_round(const struct bench *bench, struct pfs_figures *figures)
{
	const char *verb = bench->command->verb;
	const char *find[] = {"find", bench->source, "-printf", "%s\\n", NULL};
	const char *all[] = {pfs_bench_primefs(), "refresh", bench->mountpoint, NULL};
	const char *quick[] = {pfs_bench_primefs(), "refresh", "--quick", bench->mountpoint, NULL};
	double ours, theirs;

	PFS_TRY(pfs_bench_run(verb, &theirs, find));
	PFS_TRY(pfs_bench_run(verb, &ours, all));
	pfs_figures_add(&figures[ALL], ours * 1e3);
	pfs_figures_add_yardstick(&figures[ALL], theirs * 1e3);
	PFS_TRY(stat_folders(bench, &theirs));
	PFS_TRY(pfs_bench_run(verb, &ours, quick));
	pfs_figures_add(&figures[QUICK], ours * 1e3);
	pfs_figures_add_yardstick(&figures[QUICK], theirs * 1e3);
	return 0;
}

/* Runs other programs that bring their index of the folder up to date. */
static void index_anew(const struct bench *bench)
{
	const char *verb = bench->command->verb;
	char names[sizeof(bench->store) + 8];

	(void)snprintf(names, sizeof(names), "%s.names", bench->store);
	pfs_bench_index_names(verb, "updatedb of the folder", bench->source, names);
	pfs_bench_index_names(verb, "updatedb of the folder, again", bench->source, names);
	(void)unlink(names);
	pfs_bench_index_sizes(verb, "duc index of the folder", bench->source, bench->store);
}

static int run_refresh(const struct bench *bench, struct pfs_figures *figures)
{
	const char *alone[] = {pfs_bench_primefs(), "refresh", bench->store, NULL};
	const char *mount[] = {pfs_bench_primefs(), "mount", bench->store, bench->mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->mountpoint, NULL};
	double seconds;
	int error = 0;

	for (int round = 0; round < ROUNDS; round++) {
		PFS_TRY(pfs_bench_run(bench->command->verb, &seconds, alone));
		pfs_figures_add(&figures[ALONE], seconds * 1e3);
	}
	PFS_TRY(pfs_bench_run(bench->command->verb, NULL, mount));
	for (int round = 0; round < ROUNDS && !error; round++)
		error = refresh_round(bench, figures);
	PFS_TRY(pfs_bench_run(bench->command->verb, NULL, umount));
	if (!error)
		index_anew(bench);
	return error;
}

/* ---- watch ---- */

enum { CHANGED, CREATED, MOVED, REFRESHED, WATCH_FIGURES };

/* Waits until the path of the mount has that size; *seconds counts from `started`. */
static int wait_for_size(double *seconds, const char *path, off_t size, double started)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct stat attr;

	do {
		if (lstat(path, &attr) == 0 && attr.st_size == size) {
			*seconds = pfs_bench_now() - started;
			return 0;
		}
		(void)nanosleep(&pause, NULL);
	} while (pfs_bench_now() - started < SHOWS_WITHIN);
	return -ETIMEDOUT;
}

static int watch_round(const struct bench *bench, struct pfs_figures *figures, int round)
{
	char here[2 * PATH_MAX], there[2 * PATH_MAX], to[2 * PATH_MAX];
	double started = pfs_bench_now(), seconds;

	(void)snprintf(here, sizeof(here), "%s/new%d", bench->source, round);
	(void)snprintf(there, sizeof(there), "%s/new%d", bench->mountpoint, round);
	PFS_TRY(write_file(here, "new\n"));
	PFS_TRY(wait_for_size(&seconds, there, 4, started));
	pfs_figures_add(&figures[CREATED], seconds * 1e3);
	started = pfs_bench_now();
	PFS_TRY(write_file(here, "more\n"));
	PFS_TRY(wait_for_size(&seconds, there, 9, started));
	pfs_figures_add(&figures[CHANGED], seconds * 1e3);
	(void)snprintf(to, sizeof(to), "%s/moved%d", bench->source, round);
	(void)snprintf(there, sizeof(there), "%s/moved%d", bench->mountpoint, round);
	started = pfs_bench_now();
	if (rename(here, to) < 0)
		return -errno;
	PFS_TRY(wait_for_size(&seconds, there, 9, started));
	pfs_figures_add(&figures[MOVED], seconds * 1e3);
	return 0;
}

static int run_watch(const struct bench *bench, struct pfs_figures *figures)
{
	char how[64];
	const char *mount[] = {pfs_bench_primefs(), "mount",	     "-o", how,
			       bench->store,	    bench->mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->mountpoint, NULL};
	const char *refresh[] = {pfs_bench_primefs(), "refresh", bench->mountpoint, NULL};
	double seconds;
	int error;

	(void)snprintf(how, sizeof(how), "watch=%s", bench->how);
	PFS_TRY(pfs_bench_run(bench->command->verb, NULL, mount));
	/* this waits for the first refresh of the mount */
	error = pfs_bench_run(bench->command->verb, &seconds, refresh);
	if (!error)
		pfs_figures_add(&figures[REFRESHED], seconds * 1e3);
	for (int round = 0; round < ROUNDS && !error; round++)
		error = watch_round(bench, figures, round);
	PFS_TRY(pfs_bench_run(bench->command->verb, NULL, umount));
	return error;
}

/* ---- both ---- */

static int remove_one(const char *path, const struct stat *attr PFS_UNUSED, int kind PFS_UNUSED,
		      struct FTW *ftw PFS_UNUSED)
{
	(void)remove(path);
	return 0;
}

static int run(struct bench *bench, struct pfs_figures *figures, size_t n,
	       int (*measure)(const struct bench *, struct pfs_figures *))
{
	const char *verb = bench->command->verb;
	int error;

	if (!mkdtemp(bench->folder))
		return pfs_cmd_fail(verb, "%s: %s", bench->folder, strerror(errno));
	(void)snprintf(bench->source, sizeof(bench->source), "%s/source", bench->folder);
	(void)snprintf(bench->store, sizeof(bench->store), "%s/a.pfs", bench->folder);
	(void)snprintf(bench->mountpoint, sizeof(bench->mountpoint), "%s/mnt", bench->folder);
	error = mkdir(bench->mountpoint, 0700) ? -errno : make_source(bench);
	if (!error)
		error = measure(bench, figures);
	for (size_t i = 0; i < n; i++)
		pfs_figures_print(&figures[i], NULL);
	(void)nftw(bench->folder, remove_one, 64, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
	if (error)
		return pfs_cmd_fail(verb, "ended early: %s", strerror(-error));
	return pfs_cmd_flush(verb, PFS_EXIT_OK);
}

/* Returns false if the command must end with args->status. */
static bool parse(struct bench *bench, struct pfs_cmd_args *args, int argc, char **argv)
{
	const char *folder = getenv("TMPDIR");
	int option;

	pfs_cmd_begin(args, bench->command, argc, argv);
	while ((option = pfs_cmd_next(args)) >= 0) {
		if (option == FILES)
			pfs_cmd_number(args, &bench->files, FILES, 1, UINT32_MAX - 1);
		else if (option == HOW)
			bench->how = args->value;
		else
			folder = args->value;
	}
	if (pfs_cmd_end(args, 0, 0))
		return false;
	(void)snprintf(bench->folder, sizeof(bench->folder), "%s/primefs-bench-XXXXXX",
		       folder && *folder ? folder : "/tmp");
	return true;
}

int pfs_bench_refresh(int argc, char **argv)
{
	struct bench bench = {.command = &refresh_command, .files = 100000};
	struct pfs_figures figures[REFRESH_FIGURES] = {
		[ALL] = {.what = "refresh of a mounted store, nothing changed",
			 .unit = "ms",
			 .yardstick = "find -printf %s",
			 .less_is_better = true},
		[QUICK] = {.what = "refresh --quick",
			   .unit = "ms",
			   .yardstick = "stat of every directory",
			   .less_is_better = true},
		[ALONE] = {.what = "refresh of a store that is not mounted", .unit = "ms"},
	};
	struct pfs_cmd_args args;

	return parse(&bench, &args, argc, argv)
		       ? run(&bench, figures, REFRESH_FIGURES, run_refresh)
		       : args.status;
}

int pfs_bench_watch(int argc, char **argv)
{
	struct bench bench = {.command = &watch_command, .files = 100000, .how = "auto"};
	struct pfs_figures figures[WATCH_FIGURES] = {
		[CREATED] = {.what = "a file that was made shows", .unit = "ms"},
		[CHANGED] = {.what = "an appended one", .unit = "ms"},
		[MOVED] = {.what = "a renamed one", .unit = "ms"},
		[REFRESHED] = {.what = "the refresh that a mount begins with, and another",
			       .unit = "ms"},
	};
	struct pfs_cmd_args args;

	return parse(&bench, &args, argc, argv) ? run(&bench, figures, WATCH_FIGURES, run_watch)
						: args.status;
}
