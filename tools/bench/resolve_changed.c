/* SPDX-License-Identifier: MIT */
#include "tools/bench/resolve_changed.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "fs/change/change.h"
#include "fs/image/device_lookup.h"
#include "fs/nodes/scan.h"
#include "meta/store.h"
#include "tools/bench/gen.h"

#define ROUNDS	 5
#define MANY	 1000000u /* nodes that are made, and that are moved */
#define TOGETHER 65536u	  /* nodes that are made at a moment */
#define WAIT_S	 120	  /* seconds for the device to get the tree */
#define PATHS	 16384u	  /* that are asked for to have the table made */
#define AWAY	 "gathered-and-moved"
#define HOME	 "gathered"

enum { INSERTED, INSERTED_SHORT, MOVED, MOVED_SHORT, TABLE, HOLD };

struct run {
	struct pfs_resolve_changed *changed;
	const char *verb;
	struct pfs_tree *tree;
	struct pfs_resolve_at_once few; /* paths that are asked for whatever they lead to */
	struct pfs_resolve_at_once all, short_ones;
};

static const struct pfs_caller owner = {.umask = 022};

/* ---- the device ---- */

static bool knows_paths(const struct run *run)
{
	struct pfs_device_lookup_stats stats;

	pfs_device_lookup_stats(run->tree, &stats);
	return stats.info.knows_paths;
}

/* Has the device resolve some paths, `most` at most, in one hold: *seconds. */
static int ask(const struct run *run, double *seconds, size_t most)
{
	struct pfs_resident_paths paths = run->few.paths;
	double began;
	int error;

	paths.n = PFS_MIN(paths.n, most);
	(void)pfs_scan_lock(run->tree, __func__);
	began = pfs_bench_now();
	error = pfs_device_paths_resolve(run->tree, &paths, PFS_NO_SLOT);
	*seconds = pfs_bench_now() - began;
	pfs_scan_unlock(run->tree);
	return error;
}

/* Asks until the device has all of the tree. */
static int wait_for_device(const struct run *run)
{
	const double until = pfs_bench_now() + WAIT_S;
	double seconds;

	while (ask(run, &seconds, 1)) {
		if (pfs_bench_now() > until) {
			(void)pfs_cmd_fail(run->verb, "the device does not get the changed tree");
			return -ENODEV;
		}
		(void)usleep(1000);
	}
	return 0;
}

/* Asks for paths until the device has made its table. What the paths take themselves is in the
 * figures, too. */
static int make_table(const struct run *run)
{
	const double until = pfs_bench_now() + WAIT_S;
	double all = 0, longest = 0, seconds;

	while (!knows_paths(run)) {
		PFS_TRY(ask(run, &seconds, PATHS));
		all += seconds;
		longest = PFS_MAX(longest, seconds);
		if (pfs_bench_now() > until) {
			(void)pfs_cmd_fail(run->verb, "the device makes no table of paths");
			return -ENODEV;
		}
	}
	pfs_figures_add(&run->changed->figures[TABLE], all * 1e3);
	pfs_figures_add(&run->changed->figures[HOLD], longest * 1e3);
	return 0;
}

/* ---- changes ---- */

static int make_node(const struct run *run, uint64_t *ino, uint64_t parent, const char *name,
		     mode_t mode)
{
	struct pfs_entry entry;

	PFS_TRY(pfs_tree_make(run->tree, &entry, parent, name, mode, 0, &owner));
	*ino = entry.attr.st_ino;
	pfs_tree_forget(run->tree, *ino, 1);
	return 0;
}

static bool is_directory(uint64_t ino)
{
	return ino >> 32 == 0;
}

/* Moves some of the root's directories into one, until that has many nodes: *n. */
static int gather(const struct run *run, uint64_t *n, const struct pfs_resolve_list *list)
{
	uint64_t home;

	*n = 0;
	PFS_TRY(make_node(run, &home, PFS_ROOT_PRIME, HOME, S_IFDIR | 0755));
	for (size_t i = 1; i < list->n && *n < MANY; i++) {
		const char *name = list->paths[i].bytes + 1;
		struct pfs_totals totals;

		if (!is_directory(list->wanted[i]) || strchr(name, '/'))
			continue;
		PFS_TRY(pfs_tree_totals(run->tree, &totals, list->wanted[i]));
		if (*n + totals.count > MANY + MANY / 4)
			continue;
		PFS_TRY(pfs_tree_rename(run->tree, PFS_ROOT_PRIME, name, home, name, 0));
		*n += totals.count;
	}
	return 0;
}

/* Adds a file in a random directory. */
static int add_file(struct pfs_change_set *set, uint64_t *state,
		    const struct pfs_resolve_list *list, size_t number)
{
	struct pfs_change change = {
		.set = PFS_CHANGE_PARENT | PFS_CHANGE_NAME | PFS_CHANGE_MODE,
		.mode = S_IFREG | 0644,
	};
	char name[32];
	int len = snprintf(name, sizeof(name), "inserted-%zu", number);

	do
		change.parent = list->wanted[pfs_gen_random(state) % list->n];
	while (!is_directory(change.parent));
	PFS_TRY(pfs_change_set_text(set, &change.name, name, (size_t)len));
	PFS_TRY(pfs_grow(&set->list, &set->capacity, set->n + 1, sizeof(*set->list)));
	set->list[set->n++] = change;
	return 0;
}

/* Makes n files, many at a time, as the device is asked for the name of one that is made alone. */
static int insert(const struct run *run, const struct pfs_resolve_list *list, size_t n)
{
	const struct pfs_change_basis any = {.epoch = 0};
	struct pfs_change_set set = {.kind = PFS_CHANGE_CREATE};
	uint64_t state = 2;
	char why[256];
	int error = 0;

	for (size_t i = 0; i < n && !error; i++) {
		error = add_file(&set, &state, list, i);
		if (error || (set.n < TOGETHER && i + 1 < n))
			continue;
		error = pfs_tree_change(run->tree, &set, &any, &owner, why, sizeof(why));
		pfs_change_set_clear(&set);
		if (!error)
			error = wait_for_device(run);
	}
	pfs_change_set_finish(&set);
	return error;
}

/* Moves the directory away and back, so that the paths are the same for a tree whose directory has
 * been moved. */
static int move(const struct run *run)
{
	static const char *const names[] = {HOME, AWAY, HOME};

	for (size_t i = 0; i + 1 < PFS_COUNT(names); i++) {
		PFS_TRY(pfs_tree_rename(run->tree, PFS_ROOT_PRIME, names[i], PFS_ROOT_PRIME,
					names[i + 1], 0));
		PFS_TRY(wait_for_device(run));
	}
	return 0;
}

/* ---- the run ---- */

static int list_again(struct run *run, size_t room)
{
	struct pfs_resolve_list list = {.n = 0};
	int error = pfs_resolve_list_make(&list, run->tree, room);

	if (!error)
		error = pfs_resolve_at_once_make(&run->all, run->tree, &list, 0, SIZE_MAX);
	if (!error)
		error = pfs_resolve_at_once_make(&run->short_ones, run->tree, &list,
						 PFS_RESOLVE_SHORT_LEAST, PFS_RESOLVE_SHORT_MOST);
	pfs_resolve_list_free(&list);
	return error;
}

static int time_both(const struct run *run, unsigned figure, bool is_moved)
{
	const struct pfs_resolve_at_once *const asked[] = {&run->all, &run->short_ones};

	for (unsigned i = 0; i < PFS_COUNT(asked); i++) {
		if (is_moved)
			PFS_TRY(move(run));
		PFS_TRY(pfs_resolve_at_once_time(&run->changed->figures[figure + i], asked[i],
						 run->verb, run->tree));
		if (knows_paths(run) != is_moved)
			continue;
		(void)pfs_cmd_fail(run->verb, "the device %s its table of paths",
				   is_moved ? "has already made" : "has lost");
		return -EIO;
	}
	return 0;
}

/* Makes a table, and then changes that it has not. */
static int prepare(struct run *run, uint64_t *n_gathered, size_t *n_made,
		   const struct pfs_resolve_list *list)
{
	*n_made = PFS_MIN(list->n, (size_t)MANY);
	PFS_TRY(wait_for_device(run));
	PFS_TRY(gather(run, n_gathered, list));
	PFS_TRY(wait_for_device(run));
	PFS_TRY(make_table(run));
	PFS_TRY(insert(run, list, *n_made));
	return list_again(run, list->n + *n_made + 1);
}

static int run_rounds(const struct run *run)
{
	for (unsigned round = 0; round < ROUNDS; round++)
		PFS_TRY(time_both(run, INSERTED, false));
	for (unsigned round = 0; round < ROUNDS; round++) {
		PFS_TRY(time_both(run, MOVED, true));
		PFS_TRY(make_table(run));
	}
	return 0;
}

static int run_all(struct run *run, const struct pfs_resolve_list *list)
{
	struct pfs_resolve_changed *changed = run->changed;
	uint64_t n_gathered;
	size_t n_made;

	PFS_TRY(prepare(run, &n_gathered, &n_made, list));
	(void)snprintf(changed->labels[INSERTED], sizeof(changed->labels[INSERTED]),
		       "the kernel's time alone, after %zu inserts", n_made);
	(void)snprintf(changed->labels[MOVED], sizeof(changed->labels[MOVED]),
		       "the kernel's time alone, after a directory of %llu nodes has moved",
		       (unsigned long long)n_gathered);
	return run_rounds(run);
}

int pfs_resolve_changed_run(struct pfs_resolve_changed *changed, const char *verb,
			    const char *store, const struct pfs_resolve_list *list)
{
	const struct pfs_tree_options with_device = {.engine = PFS_ENGINE_CUDA, .no_atime = true};
	struct run run = {.changed = changed, .verb = verb};
	struct pfs_resolve_list few = *list;
	int error = pfs_tree_open(&run.tree, store, &with_device);

	few.n = PFS_MIN(few.n, (size_t)PATHS);
	for (unsigned i = 0; i < PFS_CHANGED_FIGURES; i++)
		changed->figures[i] =
			(struct pfs_figures){.what = changed->labels[i], .unit = "M/s"};
	if (!error)
		error = pfs_tree_start(run.tree);
	if (!error)
		error = pfs_resolve_at_once_make(&run.few, run.tree, &few, 0, SIZE_MAX);
	if (!error)
		error = run_all(&run, list);
	pfs_resolve_at_once_free(&run.few);
	pfs_resolve_at_once_free(&run.all);
	pfs_resolve_at_once_free(&run.short_ones);
	return run.tree && pfs_tree_close(run.tree) && !error ? -EIO : error;
}

void pfs_resolve_changed_print(struct pfs_resolve_changed *changed)
{
	struct pfs_figures *figures = changed->figures;

	figures[INSERTED_SHORT].what = figures[MOVED_SHORT].what =
		"those of about 60 bytes, likewise";
	figures[TABLE].what = "the device's table of paths, made anew";
	figures[HOLD].what = "the longest that the tree is held for it at a time";
	for (unsigned i = 0; i < PFS_CHANGED_FIGURES; i++) {
		if (i >= TABLE) {
			figures[i].unit = "ms";
			figures[i].less_is_better = true;
		}
		pfs_figures_print(&figures[i], NULL);
	}
}
