/* SPDX-License-Identifier: MIT */
#include "tools/bench_intervals.h"

#include "base/checked.h"
#include "gpu/intervals.h"
#include "gpu/probe.h"
#include "tools/bench.h"

#define REPEAT	   20u /* even: what is moved there has been moved back */
#define DEPTH_MOST 4096u
#define A_FILE	   (UINT64_C(0xfffffffffffffffe)) /* any number does that no file has */

struct beside {
	struct pfs_engine *engine;
	struct pfs_intervals *intervals;
	const struct pfs_beside_intervals *what;
	unsigned turn;
};

static int subtree_by_codes(struct beside *b)
{
	struct pfs_bitmap *set = NULL;
	int rc = pfs_engine_subtree(b->engine, &set, b->what->top);

	pfs_bitmap_free(set);
	return rc;
}

static int subtree_by_intervals(struct beside *b)
{
	struct pfs_bitmap *set = NULL;
	int rc = pfs_intervals_subtree(b->intervals, &set, b->what->top);

	pfs_bitmap_free(set);
	return rc;
}

static int ancestors_by_codes(struct beside *b)
{
	uint32_t path[DEPTH_MOST];
	size_t n;

	return pfs_engine_ancestors(b->engine, path, &n, DEPTH_MOST, b->what->deep);
}

static int ancestors_by_intervals(struct beside *b)
{
	struct pfs_bitmap *set = NULL;
	int rc = pfs_intervals_ancestors(b->intervals, &set, b->what->deep);

	pfs_bitmap_free(set);
	return rc;
}

/* In and out again, in turn. */
static int add_by_codes(struct beside *b)
{
	const struct pfs_delta delta = {.op = b->turn++ % 2 ? PFS_DELTA_REMOVE : PFS_DELTA_ADD,
					.slot = b->what->n,
					.parent = b->what->top,
					.prime = A_FILE};

	return pfs_engine_apply(b->engine, NULL, &delta, 1);
}

static int add_by_intervals(struct beside *b)
{
	return pfs_intervals_add(b->intervals, b->what->n, b->what->top);
}

static int move_by_codes(struct beside *b)
{
	const struct pfs_delta delta = {.op = PFS_DELTA_MOVE,
					.slot = b->what->moved,
					.parent = b->turn++ % 2 ? b->what->parent : b->what->other};

	return pfs_engine_apply(b->engine, NULL, &delta, 1);
}

static int move_by_intervals(struct beside *b)
{
	return pfs_intervals_move(b->intervals, b->what->moved,
				  b->turn++ % 2 ? b->what->parent : b->what->other);
}

static const struct {
	const char *what;
	int (*by_codes)(struct beside *b), (*by_intervals)(struct beside *b);
} contests[] = {
	{"what lies under a directory, as a bitmap", subtree_by_codes, subtree_by_intervals},
	{"what lies above a node", ancestors_by_codes, ancestors_by_intervals},
	{"adding, or removing, a file", add_by_codes, add_by_intervals},
	{"moving a directory", move_by_codes, move_by_intervals},
};

static int time_one(struct beside *b, struct pfs_figure *f, int (*op)(struct beside *))
{
	double seconds[REPEAT];
	int rc = 0;

	b->turn = 0;
	for (unsigned i = 0; i < REPEAT + 2 && rc == 0; i++) {
		double start = pfs_bench_now();

		rc = op(b);
		rc = rc ? rc : pfs_engine_sync(b->engine);
		if (i >= 2)
			seconds[i - 2] = pfs_bench_now() - start;
	}
	if (rc == 0)
		pfs_figure_of(f, seconds, REPEAT);
	return rc;
}

/* Both have to know the same tree. */
static int compare(struct beside *b)
{
	struct pfs_bitmap *sets[3] = {NULL};
	uint64_t counts[3] = {0};
	size_t depth;
	int rc = pfs_engine_ancestors(b->engine, NULL, &depth, 0, b->what->deep);

	rc = rc ? rc : pfs_engine_subtree(b->engine, &sets[0], b->what->top);
	rc = rc ? rc : pfs_intervals_subtree(b->intervals, &sets[1], b->what->top);
	rc = rc ? rc : pfs_intervals_ancestors(b->intervals, &sets[2], b->what->deep);
	for (size_t i = 0; i < PFS_COUNT(sets); i++) {
		rc = rc ? rc : pfs_bitmap_count(sets[i], &counts[i]);
		pfs_bitmap_free(sets[i]);
	}
	if (rc || (counts[0] == counts[1] && counts[2] == depth + 1))
		return rc;
	(void)printf("  BAD: codes and intervals disagree\n");
	return -EIO;
}

int pfs_bench_beside_intervals(struct pfs_engine *engine, const struct pfs_beside_intervals *what)
{
	struct beside b = {.engine = engine, .what = what};
	int rc = pfs_intervals_make(engine, &b.intervals);

	if (rc)
		return rc;
	pfs_engine_use_ranges(engine, false);
	rc = compare(&b);
	if (rc == 0)
		(void)printf("  %-52s %9s       %9s\n", "beside nested intervals (rank and size)",
			     "codes", "intervals");
	for (size_t i = 0; i < PFS_COUNT(contests) && rc == 0; i++) {
		struct pfs_figure ours, theirs;

		rc = time_one(&b, &ours, contests[i].by_codes);
		rc = rc ? rc : time_one(&b, &theirs, contests[i].by_intervals);
		if (rc == 0)
			(void)printf("  %-52s %9.4f ms    %9.4f ms\n", contests[i].what,
				     ours.median * 1e3, theirs.median * 1e3);
	}
	pfs_engine_use_ranges(engine, true);
	pfs_intervals_free(b.intervals);
	return rc;
}
