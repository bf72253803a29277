/* SPDX-License-Identifier: MIT */
/* Measures two kinds of column index. The column is mtime: random seconds, as many different ones
 * as nodes, so that some nodes share one.
 *
 * To remove an entry from the ordered index, its value there must be known, so each slot's key is
 * kept beside that index. It is told which slots have changed, while the sorted slots read the
 * tree's feed. */
#include "tools/bench/s5_columns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/radix.h"
#include "fs/nodes/index.h"
#include "fs/nodes/relation.h"
#include "fs/nodes/scan.h"
#include "gpu/index.h"
#include "gpu/probe.h"
#include "tools/bench/bench.h"
#include "tools/bench/gen.h"

#define RUNS	   5u
#define FIRST	   1000u /* rows of an ORDER BY with a LIMIT */
#define HELD	   16384u /* changes that are followed in one hold of the tree */
#define SLOT_BYTES 4.5	 /* bytes of a node in the sorted slots (fs/nodes/index.h) */
#define SECOND	   INT64_C(1000000000)
#define EARLIEST   INT64_C(1000000000) /* seconds */

static const struct pfs_caller owner = {.umask = 022};

/* Slots that one of the two has found, in order. */
struct found {
	uint32_t *slot;
	size_t n;
};

struct bench {
	const struct pfs_run *run;
	struct pfs_bench_folder folder;
	struct pfs_tree *tree;
	bool is_cpu, is_bad;
	uint64_t state; /* of the random numbers */
	int64_t low, high; /* the range that is asked for: a hundredth of the nodes */
	struct pfs_slots all;
	struct found by_slots, by_pairs;
	struct pfs_slots changed; /* slots that changed since the indexes followed the tree */
	/* The index of pairs, and the key that it has for each slot. */
	struct pfs_index *pairs;
	uint64_t *key;
	double held; /* the longest hold of the tree in which changes were followed */
};

static double clock_of(const struct bench *b)
{
	return b->is_cpu ? pfs_bench_cpu() : pfs_bench_now();
}

/* ---- the tree ---- */

static int set_time(struct bench *b, uint32_t slot)
{
	const int64_t second = EARLIEST + (int64_t)(pfs_gen_random(&b->state) % b->folder.nodes);
	const struct stat attr = {.st_mtim = {.tv_sec = second}};
	struct pfs_entry entry;
	uint64_t ino;

	(void)pfs_scan_lock(b->tree, __func__);
	ino = pfs_relation_ino(b->tree, slot);
	pfs_scan_unlock(b->tree);
	return pfs_tree_setattr(b->tree, &entry, ino, &attr, PFS_SET_MTIME, &owner);
}

/* Changes n nodes from one end of the tree to the other. */
static int set_times(struct bench *b, size_t n)
{
	const size_t step = PFS_MAX(b->all.n / n, 1);

	b->changed.n = 0;
	for (size_t i = 0; i < b->all.n && b->changed.n < n; i += step) {
		b->changed.slot[b->changed.n++] = b->all.slot[i];
		PFS_TRY(set_time(b, b->all.slot[i]));
	}
	return pfs_tree_sync(b->tree);
}

/* ---- the slots ---- */

static int build_slots(struct bench *b)
{
	pfs_scan_missed(b->tree, PFS_FIELD_MTIME);
	pfs_scan_missed(b->tree, PFS_FIELD_MTIME);
	pfs_scan_prepare(b->tree);
	return 0;
}

/* Finds as many as the range has, `most` at most. -ENOENT: there is no index. */
static int walk_slots(struct bench *b, const struct pfs_index_range *range, size_t most)
{
	struct found *found = &b->by_slots;
	struct pfs_index_walk *walk;
	size_t got = 1;
	int error;

	found->n = 0;
	(void)pfs_scan_lock(b->tree, __func__);
	error = pfs_index_walk_open(&walk, b->tree, range, false);
	while (!error && got && found->n < most) {
		got = pfs_index_walk_next(walk, found->slot + found->n, most - found->n);
		found->n += got;
	}
	pfs_index_walk_close(walk);
	pfs_scan_unlock(b->tree);
	return error;
}

static int range_slots(struct bench *b)
{
	const struct pfs_index_range range = {
		.field = PFS_FIELD_MTIME, .low = b->low, .high = b->high};

	return walk_slots(b, &range, b->all.n);
}

static int first_slots(struct bench *b)
{
	const struct pfs_index_range all = {
		.field = PFS_FIELD_MTIME, .low = INT64_MIN, .high = INT64_MAX};

	return walk_slots(b, &all, FIRST);
}

/* Measures up to the first question after the changes; after too many changes the index is made
 * anew. */
static int follow_slots(struct bench *b)
{
	int error;

	pfs_indexes_follow(b->tree);
	error = first_slots(b);
	if (error != -ENOENT)
		return error;
	PFS_TRY(build_slots(b));
	return first_slots(b);
}

/* ---- the pairs ---- */

static uint64_t key_of(int64_t value)
{
	return (uint64_t)value ^ UINT64_C(1) << 63;
}

/* Gets the present keys of the slots. */
static int get_keys(struct bench *b, uint64_t *keys, const uint32_t *slots, size_t n)
{
	int64_t *values PFS_FREE = malloc((n + 1) * sizeof(*values));

	if (!values)
		return -ENOMEM;
	PFS_TRY(pfs_scan_integers(b->tree, values, PFS_FIELD_MTIME, slots, n));
	for (size_t i = 0; i < n; i++)
		keys[i] = key_of(values[i]);
	return 0;
}

static int gather(struct bench *b, struct pfs_keyed *items, uint64_t *keys)
{
	const struct pfs_slots *all = &b->all;
	int error;

	(void)pfs_scan_lock(b->tree, __func__);
	error = get_keys(b, keys, all->slot, all->n);
	pfs_scan_unlock(b->tree);
	for (size_t i = 0; i < all->n && !error; i++) {
		b->key[all->slot[i]] = keys[i];
		items[i] = (struct pfs_keyed){.key = keys[i], .value = all->slot[i]};
	}
	return error;
}

static int build_pairs(struct bench *b)
{
	const struct pfs_index_shape shape = {.kind = PFS_INDEX_DUPLICATES, .page = PFS_INDEX_PAGE};
	const size_t n = b->all.n;
	struct pfs_keyed *items PFS_FREE = malloc((n + 1) * sizeof(*items));
	uint64_t *keys PFS_FREE = malloc((n + 1) * sizeof(*keys));
	uint32_t *slots PFS_FREE = malloc((n + 1) * sizeof(*slots));

	if (!items || !keys || !slots)
		return -ENOMEM;
	PFS_TRY(gather(b, items, keys));
	PFS_TRY(pfs_radix_sort(items, n));
	for (size_t i = 0; i < n; i++) {
		keys[i] = items[i].key;
		slots[i] = items[i].value;
	}
	return pfs_index_build(b->run, &b->pairs, &shape, keys, slots, n);
}

static int range_pairs(struct bench *b)
{
	struct found *found = &b->by_pairs;
	struct pfs_index_list list;

	PFS_TRY(pfs_index_range(b->run, b->pairs, &list, key_of(b->low), key_of(b->high)));
	found->n = PFS_MIN(list.n, b->all.n);
	if (found->n)
		(void)memcpy(found->slot, list.values, found->n * sizeof(*found->slot));
	pfs_index_list_free(b->run, &list);
	return 0;
}

static int first_pairs(struct bench *b)
{
	uint64_t keys[FIRST];
	struct pfs_index_cursor cursor = PFS_INDEX_BEGIN;
	struct pfs_index_list list = {.keys = keys, .values = b->by_pairs.slot, .n = FIRST};

	PFS_TRY(pfs_index_read(b->run, b->pairs, &cursor, &list, PFS_INDEX_UP));
	b->by_pairs.n = list.n;
	return 0;
}

/* Takes slots out, and puts them back where they belong now. */
static int move_pairs(struct bench *b, const uint32_t *slots, size_t n)
{
	uint64_t *before PFS_FREE = malloc((n + 1) * sizeof(*before)),
			 *now PFS_FREE = malloc((n + 1) * sizeof(*now));
	uint64_t n_changed;

	if (!before || !now)
		return -ENOMEM;
	PFS_TRY(get_keys(b, now, slots, n));
	for (size_t i = 0; i < n; i++) {
		before[i] = b->key[slots[i]];
		b->key[slots[i]] = now[i];
	}
	PFS_TRY(pfs_index_remove(b->run, b->pairs, &n_changed, before, slots, n));
	return pfs_index_insert(b->run, b->pairs, &n_changed, now, slots, n, PFS_INDEX_REFUSE);
}

static int follow_pairs(struct bench *b)
{
	for (size_t at = 0; at < b->changed.n; at += HELD) {
		double started = clock_of(b);
		int error;

		(void)pfs_scan_lock(b->tree, __func__);
		error = move_pairs(b, b->changed.slot + at, PFS_MIN(b->changed.n - at, HELD));
		pfs_scan_unlock(b->tree);
		PFS_TRY(error);
		b->held = PFS_MAX(b->held, clock_of(b) - started);
	}
	return first_pairs(b);
}

/* ---- side by side ---- */

typedef int bench_step(struct bench *b);

static int time_step(struct pfs_figure *out, struct bench *b, bench_step *step, unsigned runs)
{
	double seconds[RUNS];

	for (unsigned i = 0; i < runs; i++) {
		double started = clock_of(b);

		PFS_TRY(step(b));
		seconds[i] = clock_of(b) - started;
	}
	pfs_figure_of(out, seconds, runs);
	return 0;
}

/* The median, with the least and the most where there are several runs. */
static void print_figure(const struct pfs_figure *figure, unsigned runs)
{
	char range[40] = "";

	if (runs > 1)
		(void)snprintf(range, sizeof(range), "[%.3f %.3f]", figure->least * 1e3,
			       figure->most * 1e3);
	(void)printf(" %10.3f ms %-19s", figure->median * 1e3, range);
}

/* Nodes with the same value come in the order of their slots by both. */
static bool is_same(const struct bench *b)
{
	return b->by_slots.n == b->by_pairs.n &&
	       memcmp(b->by_slots.slot, b->by_pairs.slot,
		      b->by_slots.n * sizeof(*b->by_slots.slot)) == 0;
}

static int compare(struct bench *b, const char *what, bench_step *slots, bench_step *pairs,
		   unsigned runs)
{
	struct pfs_figure ours, theirs;

	PFS_TRY(time_step(&ours, b, slots, runs));
	PFS_TRY(time_step(&theirs, b, pairs, runs));
	(void)printf("%-52s", what);
	print_figure(&ours, runs);
	print_figure(&theirs, runs);
	(void)printf("%s\n", is_same(b) ? "" : "  BAD");
	(void)fflush(stdout);
	b->is_bad |= !is_same(b);
	return 0;
}

static int ask(struct bench *b, const char *when)
{
	char what[80];

	(void)snprintf(what, sizeof(what), "range of a hundredth%s", when);
	PFS_TRY(compare(b, what, range_slots, range_pairs, RUNS));
	(void)snprintf(what, sizeof(what), "the first %u%s", FIRST, when);
	return compare(b, what, first_slots, first_pairs, RUNS);
}

static int change(struct bench *b, size_t n)
{
	char what[80];

	PFS_TRY(set_times(b, n));
	b->held = 0;
	(void)snprintf(what, sizeof(what), "%zu changes, to the first %u after them", n, FIRST);
	PFS_TRY(compare(b, what, follow_slots, follow_pairs, 1));
	(void)printf("%-52s %33s %10.3f ms\n", "    of that in one hold of the tree, at most", "",
		     b->held * 1e3);
	return ask(b, " after them");
}

static void print_memory(const struct bench *b)
{
	struct pfs_index_info info;

	pfs_index_describe(b->pairs, &info);
	(void)printf("%-52s %10.1f %22s %10.1f\n", "bytes a node", SLOT_BYTES, "",
		     (double)info.bytes / (double)b->all.n + sizeof(*b->key));
}

static int compare_all(struct bench *b)
{
	(void)printf("%zu nodes, an index of mtime: %s\n%-52s %13s %33s\n", b->all.n,
		     b->is_cpu ? "processor time" : "time", "", "sorted slots", "B+-tree");
	PFS_TRY(compare(b, "creation", build_slots, build_pairs, 1));
	print_memory(b);
	PFS_TRY(ask(b, ""));
	PFS_TRY(change(b, 1000));
	return change(b, 100000);
}

static int open_bench(struct bench *b)
{
	const struct pfs_tree_options options = {.no_atime = true};
	uint32_t end;
	int error;

	PFS_TRY(pfs_bench_folder_import(&b->folder));
	PFS_TRY(pfs_tree_open(&b->tree, b->folder.store, &options));
	PFS_TRY(pfs_tree_start(b->tree));
	(void)pfs_scan_lock(b->tree, __func__);
	end = pfs_scan_end(b->tree);
	error = pfs_scan_select(b->tree, &b->all, NULL, 0, NULL, NULL);
	pfs_scan_unlock(b->tree);
	if (error)
		return error;
	b->by_slots.slot = malloc((end + FIRST) * sizeof(uint32_t));
	b->by_pairs.slot = malloc((end + FIRST) * sizeof(uint32_t));
	b->changed.slot = malloc((end + FIRST) * sizeof(uint32_t));
	b->key = calloc(end + FIRST, sizeof(*b->key));
	if (!b->by_slots.slot || !b->by_pairs.slot || !b->changed.slot || !b->key)
		return -ENOMEM;
	b->low = (EARLIEST + (int64_t)(b->folder.nodes / 2)) * SECOND;
	b->high = b->low + (int64_t)(b->folder.nodes / 100) * SECOND - 1;
	return set_times(b, b->all.n);
}

int pfs_s5_columns(const struct pfs_run *run, uint64_t nodes, bool is_cpu)
{
	struct bench b = {
		.run = run, .folder = {.verb = "s5", .nodes = nodes}, .is_cpu = is_cpu, .state = 1};
	int error;

	PFS_TRY(pfs_bench_folder_make(&b.folder, NULL));
	error = open_bench(&b);
	if (!error)
		error = compare_all(&b);
	pfs_index_close(run, b.pairs);
	if (b.tree && pfs_tree_close(b.tree) && !error)
		error = -EIO;
	pfs_bench_folder_remove(&b.folder);
	pfs_slots_finish(&b.all);
	pfs_slots_finish(&b.changed);
	free(b.by_slots.slot);
	free(b.by_pairs.slot);
	free(b.key);
	return error ? error : b.is_bad ? -EUCLEAN : 0;
}
