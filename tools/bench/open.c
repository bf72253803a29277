/* SPDX-License-Identifier: MIT */
/* primefs-bench open - measures how long a store takes to open, from its image file beside its
 * rows, and how long a command and a mount take with it. */
#include "tools/bench/bench.h"

#include <time.h>
#include <unistd.h>

#include "fs/image/imagefile.h"
#include "fs/tree/tree.h"

#define ROUNDS 5

static const struct pfs_cmd command = {
	"open",
	"",
	"Times opening a store from its image file and from its rows, beside find, plocate and duc.",
	pfs_bench_folder_options,
	NULL,
};

struct bench {
	struct pfs_bench_folder folder;
};

enum { OPENED, FOUND, MOUNTED, WRITTEN, FIGURES };

/* Opens and closes it; with `write`, its image file is made anew in between. */
static int open_once(double *opened, double *written, const struct bench *bench, bool from_rows)
{
	const struct pfs_tree_options how = {.read_only = true, .no_image_file = from_rows};
	const struct timespec pause = {.tv_nsec = 100000000};
	double started = pfs_bench_now();
	struct pfs_tree *tree;
	int error;

	PFS_TRY(pfs_tree_open(&tree, bench->folder.store, &how));
	*opened = pfs_bench_now() - started;
	do { /* the import may still be writing it */
		started = pfs_bench_now();
		error = written ? pfs_imagefile_write(tree) : 0;
		if (written)
			*written = pfs_bench_now() - started;
	} while (error == -EBUSY && nanosleep(&pause, NULL) == 0);
	(void)pfs_tree_close(tree);
	return error;
}

static int run_round(const struct bench *bench, struct pfs_figures *figures)
{
	const char *find[] = {pfs_bench_primefs(), "find", bench->folder.store, "-name",
			      "no such name",	   NULL};
	const char *mount[] = {pfs_bench_primefs(), "mount",   "-o", "noatime",
			       bench->folder.store,	    bench->folder.mountpoint, NULL};
	const char *list[] = {"ls", bench->folder.mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->folder.mountpoint, NULL};
	double rows, file, written, found, mounted, listed;

	PFS_TRY(open_once(&rows, &written, bench, true));
	PFS_TRY(open_once(&file, NULL, bench, false));
	PFS_TRY(pfs_bench_run(command.verb, &found, find));
	PFS_TRY(pfs_bench_run(command.verb, &mounted, mount));
	PFS_TRY(pfs_bench_run(command.verb, &listed, list));
	PFS_TRY(pfs_bench_run(command.verb, NULL, umount));
	pfs_figures_add(&figures[OPENED], file * 1e3);
	pfs_figures_add_yardstick(&figures[OPENED], rows * 1e3);
	pfs_figures_add(&figures[FOUND], found * 1e3);
	pfs_figures_add(&figures[MOUNTED], (mounted + listed) * 1e3);
	pfs_figures_add(&figures[WRITTEN], written * 1e3);
	return 0;
}

/* Runs other programs on the mount, once each. */
static void run_others(const struct bench *bench)
{
	const char *place = bench->folder.mountpoint;
	char names[sizeof(bench->folder.store) + 8];
	const char *find[] = {"find", place, "-fprintf", "/dev/null", "%s\n", NULL};
	const char *name[] = {"find", place, "-name", "no such name", NULL};
	const char *plocate[] = {"plocate", "-d", names, "-c", "", NULL};

	(void)snprintf(names, sizeof(names), "%s.names", bench->folder.store);
	pfs_bench_run_other(command.verb, "find -printf of the mount", find);
	pfs_bench_run_other(command.verb, "find -name of the mount", name);
	pfs_bench_index_names(command.verb, "updatedb of the mount", place, names);
	pfs_bench_run_other(command.verb, "plocate, all names counted", plocate);
	(void)unlink(names);
	pfs_bench_index_sizes(command.verb, "duc index of the mount", place, bench->folder.store);
}

static int run_beside(const struct bench *bench)
{
	const char *mount[] = {pfs_bench_primefs(), "mount",   "-o", "noatime",
			       bench->folder.store,	    bench->folder.mountpoint, NULL};
	const char *umount[] = {pfs_bench_primefs(), "umount", bench->folder.mountpoint, NULL};

	PFS_TRY(pfs_bench_run(command.verb, NULL, mount));
	run_others(bench);
	return pfs_bench_run(command.verb, NULL, umount);
}

static int run(const struct bench *bench, struct pfs_figures *figures)
{
	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	for (int round = 0; round < ROUNDS; round++)
		PFS_TRY(run_round(bench, figures));
	return 0;
}

int pfs_bench_open(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 1000000};
	struct pfs_figures figures[FIGURES] = {
		[OPENED] = {.what = "open, from the image file",
			    .unit = "ms",
			    .yardstick = "from the rows",
			    .less_is_better = true},
		[FOUND] = {.what = "primefs find -name, from its start to its end", .unit = "ms"},
		[MOUNTED] = {.what = "primefs mount and ls", .unit = "ms"},
		[WRITTEN] = {.what = "write the image file, synced", .unit = "ms"},
	};
	int error, status;

	status = pfs_bench_folder_begin(&bench.folder, &command, 2, argc, argv);
	if (status >= 0)
		return status;
	error = run(&bench, figures);
	for (size_t i = 0; i < FIGURES; i++)
		pfs_figures_print(&figures[i], NULL);
	if (!error)
		error = run_beside(&bench);
	return pfs_bench_folder_end(&bench.folder, error);
}
