/* SPDX-License-Identifier: MIT */
/* primefs-bench totals - measures the totals of subtrees: making, keeping and reading them.
 *
 * Everything is asked of the tree itself, without a mount: a request's way through the kernel
 * would hide the differences. */
#include "tools/bench/bench.h"

#include <unistd.h>

#include "fs/tree/tree.h"
#include "meta/store.h"

#define ROUNDS	5
#define CHANGES 20000u
#define BACK	2000u /* files whose times are set back */
#define ASKED	1000000u
#define WIDE	100000u

static const unsigned depths[] = {1, 10, 100};

static const struct pfs_cmd command = {
	"totals",
	"",
	"Times the totals of subtrees: made, kept and read.",
	pfs_bench_folder_options,
	"Changes are timed in a tree that was never asked for totals, and again once it was.\n",
};

static const struct pfs_caller owner = {.umask = 022};

struct bench {
	struct pfs_bench_folder folder;
	struct pfs_tree *tree;
	uint64_t chains[PFS_COUNT(depths)], wide; /* inode numbers of directories */
	uint64_t file;				  /* a file to write to */
};

enum { MADE, BYTES, READ, FIRST_CHANGE };
enum { CREATE, WRITE, RENAME, CHANGE_KINDS };
#define SET_BACK (FIRST_CHANGE + PFS_COUNT(depths) * CHANGE_KINDS)
#define FIGURES	 (SET_BACK + 1)

/* ---- the tree ---- */

static int make(uint64_t *ino, const struct bench *bench, uint64_t parent, const char *name,
		mode_t mode)
{
	struct pfs_entry entry;

	PFS_TRY(pfs_tree_make(bench->tree, &entry, parent, name, mode, 0, &owner));
	*ino = entry.attr.st_ino;
	return 0;
}

/* Chains of directories, and a wide one whose files are old. */
static int make_places(struct bench *bench)
{
	const struct stat old = {.st_mtim = {.tv_sec = 1000000000}};
	struct pfs_entry entry;
	uint64_t ino;
	char name[32];

	for (size_t i = 0; i < PFS_COUNT(depths); i++) {
		bench->chains[i] = PFS_ROOT_PRIME;
		for (unsigned depth = 0; depth < depths[i]; depth++) {
			(void)snprintf(name, sizeof(name), "chain of %u", depths[i]);
			PFS_TRY(make(&bench->chains[i], bench, bench->chains[i], name,
				     S_IFDIR | 0755));
		}
	}
	PFS_TRY(make(&bench->wide, bench, PFS_ROOT_PRIME, "wide", S_IFDIR | 0755));
	for (unsigned i = 0; i < WIDE; i++) {
		(void)snprintf(name, sizeof(name), "%u", i);
		PFS_TRY(make(&ino, bench, bench->wide, name, S_IFREG | 0644));
		PFS_TRY(pfs_tree_setattr(bench->tree, &entry, ino, &old, PFS_SET_MTIME, &owner));
	}
	return pfs_tree_sync(bench->tree);
}

/* ---- changes; each returns the seconds that one takes ---- */

static int time_creating(double *seconds, const struct bench *bench, uint64_t parent)
{
	double started = pfs_bench_now();
	uint64_t ino;

	for (unsigned i = 0; i < CHANGES; i++) {
		PFS_TRY(make(&ino, bench, parent, "new", S_IFREG | 0644));
		PFS_TRY(pfs_tree_unlink(bench->tree, parent, "new"));
		pfs_tree_forget(bench->tree, ino, 1);
	}
	*seconds = (pfs_bench_now() - started) / CHANGES;
	return 0;
}

static int time_writing(double *seconds, const struct bench *bench, uint64_t parent)
{
	static const char bytes[64];
	double started;
	uint64_t ino;

	PFS_TRY(make(&ino, bench, parent, "log", S_IFREG | 0644));
	started = pfs_bench_now();
	for (unsigned i = 0; i < CHANGES; i++)
		if (pfs_tree_write(bench->tree, ino, bytes, sizeof(bytes), PFS_AT_END, true,
				   false) < 0)
			return -EIO;
	*seconds = (pfs_bench_now() - started) / CHANGES;
	PFS_TRY(pfs_tree_unlink(bench->tree, parent, "log"));
	pfs_tree_forget(bench->tree, ino, 1);
	return 0;
}

static int time_renaming(double *seconds, const struct bench *bench, uint64_t parent)
{
	double started;
	uint64_t ino;

	PFS_TRY(make(&ino, bench, parent, "a", S_IFREG | 0644));
	started = pfs_bench_now();
	for (unsigned i = 0; i < CHANGES; i++)
		PFS_TRY(pfs_tree_rename(bench->tree, parent, i % 2 ? "b" : "a", parent,
					i % 2 ? "a" : "b", 0));
	*seconds = (pfs_bench_now() - started) / CHANGES;
	PFS_TRY(pfs_tree_unlink(bench->tree, parent, "a"));
	pfs_tree_forget(bench->tree, ino, 1);
	return 0;
}

/* Does what unpacking an archive does: each file is new, and then gets an old time. */
static int time_setting_back(double *seconds, const struct bench *bench)
{
	double started = pfs_bench_now();
	struct stat attr = {.st_size = 0};
	struct pfs_entry entry;
	uint64_t ino = 0;

	for (unsigned i = 0; i < BACK; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "%u", i * (WIDE / BACK));
		PFS_TRY(pfs_tree_lookup(bench->tree, &entry, bench->wide, name));
		ino = entry.attr.st_ino;
		attr.st_mtim.tv_sec = 4000000000 + i;
		PFS_TRY(pfs_tree_setattr(bench->tree, &entry, ino, &attr, PFS_SET_MTIME, &owner));
		attr.st_mtim.tv_sec = 1000000000 + i;
		PFS_TRY(pfs_tree_setattr(bench->tree, &entry, ino, &attr, PFS_SET_MTIME, &owner));
		pfs_tree_forget(bench->tree, ino, 1);
	}
	*seconds = (pfs_bench_now() - started) / BACK;
	return 0;
}

static int time_changes(double *seconds, const struct bench *bench)
{
	static int (*const changes[CHANGE_KINDS])(double *, const struct bench *, uint64_t) = {
		[CREATE] = time_creating, [WRITE] = time_writing, [RENAME] = time_renaming};

	for (size_t i = 0; i < PFS_COUNT(depths); i++)
		for (int kind = 0; kind < CHANGE_KINDS; kind++)
			PFS_TRY(changes[kind](&seconds[i * CHANGE_KINDS + kind], bench,
					      bench->chains[i]));
	return time_setting_back(&seconds[PFS_COUNT(depths) * CHANGE_KINDS], bench);
}

/* ---- figures ---- */

static int time_reading(double *seconds, const struct bench *bench)
{
	struct pfs_totals totals;
	double started = pfs_bench_now();

	for (unsigned i = 0; i < ASKED; i++)
		PFS_TRY(pfs_tree_totals(bench->tree, &totals, PFS_ROOT_PRIME));
	*seconds = (pfs_bench_now() - started) / ASKED;
	return 0;
}

static int run_round(struct bench *bench, struct pfs_figures *figures)
{
	double without[FIGURES], with[FIGURES], started, seconds;
	struct pfs_tree_info before, after;
	struct pfs_totals totals;

	PFS_TRY(pfs_tree_info(bench->tree, &before));
	PFS_TRY(time_changes(without, bench));
	started = pfs_bench_now();
	PFS_TRY(pfs_tree_totals(bench->tree, &totals, PFS_ROOT_PRIME));
	pfs_figures_add(&figures[MADE], (pfs_bench_now() - started) * 1e3);
	PFS_TRY(pfs_tree_info(bench->tree, &after));
	pfs_figures_add(&figures[BYTES], (double)(after.memory_bytes - before.memory_bytes) /
						 (double)after.directories);
	PFS_TRY(time_reading(&seconds, bench));
	pfs_figures_add(&figures[READ], seconds * 1e9);
	PFS_TRY(time_changes(with, bench));
	for (size_t i = FIRST_CHANGE; i < FIGURES; i++) {
		pfs_figures_add(&figures[i], with[i - FIRST_CHANGE] * 1e6);
		pfs_figures_add_yardstick(&figures[i], without[i - FIRST_CHANGE] * 1e6);
	}
	return 0;
}

static int run(struct bench *bench, struct pfs_figures *figures)
{
	double started;
	int error;

	PFS_TRY(pfs_bench_folder_import(&bench->folder));
	for (int round = 0; round < ROUNDS; round++) {
		started = pfs_bench_now();
		PFS_TRY(pfs_tree_open(&bench->tree, bench->folder.store,
				      &(struct pfs_tree_options){0}));
		pfs_figures_add_yardstick(&figures[MADE], (pfs_bench_now() - started) * 1e3);
		error = pfs_tree_start(bench->tree);
		if (!error && !round)
			error = make_places(bench);
		if (!error)
			error = run_round(bench, figures);
		if (pfs_tree_close(bench->tree) && !error)
			error = -EIO;
		PFS_TRY(error);
	}
	return 0;
}

static void describe(struct pfs_figures *figures, char (*names)[64])
{
	static const char *const kinds[CHANGE_KINDS] = {"create and remove a file",
							"append 64 bytes", "rename a file"};

	figures[MADE] =
		(struct pfs_figures){.what = "totals of all directories, made when first asked for",
				     .unit = "ms",
				     .yardstick = "opening the store",
				     .less_is_better = true};
	figures[BYTES] =
		(struct pfs_figures){.what = "memory they take", .unit = "bytes a directory"};
	figures[READ] = (struct pfs_figures){.what = "totals of a directory, read", .unit = "ns"};
	for (size_t i = FIRST_CHANGE; i < FIGURES; i++) {
		size_t change = i - FIRST_CHANGE;

		(void)snprintf(names[i], sizeof(names[i]), "%s, %u directories deep",
			       kinds[change % CHANGE_KINDS], depths[change / CHANGE_KINDS % 3]);
		figures[i] = (struct pfs_figures){.what = names[i],
						  .unit = "us",
						  .yardstick = "without totals",
						  .less_is_better = true};
	}
	figures[SET_BACK].what = "set a file's time forth and back, among 100,000 siblings";
}

int pfs_bench_totals(int argc, char **argv)
{
	struct bench bench = {.folder.nodes = 1000000};
	struct pfs_figures figures[FIGURES];
	char names[FIGURES][64];
	int error, status;

	status = pfs_bench_folder_begin(&bench.folder, &command, 2, argc, argv);
	if (status >= 0)
		return status;
	describe(figures, names);
	error = run(&bench, figures);
	for (size_t i = 0; i < FIGURES; i++)
		pfs_figures_print(&figures[i], NULL);
	return pfs_bench_folder_end(&bench.folder, error);
}
