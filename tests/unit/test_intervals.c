/* SPDX-License-Identifier: MIT */
/* Nested intervals, which codes are compared with in benchmarks: the same answers as the
 * reference's, on every engine, while nodes are added and moved. */
#include "engine_util.h"
#include "gpu/intervals.h"

enum { NODES = 1100 };

/* Slots in pre-order: a node's parent is on the path to the one before. */
static void pre_order_tree(struct pair *p)
{
	uint32_t path[NODES];
	size_t depth = 1;

	path[0] = 0;
	ref_add(&p->ref, 0, REF_NONE, 2);
	for (uint32_t i = 1; i < NODES; i++) {
		bool directory = pair_random(p, 3) != 0;

		depth -= pair_random(p, PFS_MIN(depth, 4u));
		ref_add(&p->ref, i, path[depth - 1], pair_prime(p, directory));
		if (directory)
			path[depth++] = i;
	}
	pair_load(p);
}

static void check_intervals(struct pair *p, struct pfs_intervals *intervals, uint32_t slot)
{
	bool expected[2 * NODES];
	struct pfs_bitmap *set;

	ref_subtree(&p->ref, expected, slot);
	assert_int_equal(pfs_intervals_subtree(intervals, &set, slot), 0);
	check_set(p, set, expected);
	ref_parents(&p->ref, expected, slot);
	expected[slot] = true;
	assert_int_equal(pfs_intervals_ancestors(intervals, &set, slot), 0);
	check_set(p, set, expected);
}

static void intervals_follow(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pfs_intervals *intervals;
	struct pair p;

	pair_init(&p, engine, 31);
	pre_order_tree(&p);
	assert_int_equal(pfs_intervals_make(engine, &intervals), 0);
	for (unsigned step = 0; step < 300; step++) {
		uint32_t node = pair_random_node(&p, false), to = pair_random_node(&p, true);
		bool expected[2 * NODES];

		check_intervals(&p, intervals, node);
		if (step % 3 == 0) {
			assert_int_equal(pfs_intervals_add(intervals, (uint32_t)p.ref.n, to), 0);
			pair_add(&p, (uint32_t)p.ref.n, to, step % 2);
			continue;
		}
		ref_subtree(&p.ref, expected, node);
		assert_int_equal(pfs_intervals_move(intervals, node, to),
				 expected[to] ? -EINVAL : 0);
		pair_move(&p, node, to);
	}
	for (uint32_t slot = 0; slot < p.ref.n; slot += 7)
		check_intervals(&p, intervals, slot);
	assert_int_equal(pfs_intervals_move(intervals, 2 * NODES - 1, 0), -ENOENT);
	pfs_intervals_free(intervals);
	/* The slots are no longer in pre-order. */
	assert_int_equal(pfs_intervals_make(engine, &intervals), -EINVAL);
	pair_finish(&p);
	pfs_engine_close(engine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {ON_ALL(intervals_follow)};

	return RUN_ON_ALL(tests, argc, argv);
}
