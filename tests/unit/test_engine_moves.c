/* SPDX-License-Identifier: MIT */
/* Many directories that move, are made and go between two questions: whatever lies below a moved
 * one has another code, and the back end is sent the changes, not everything anew.  The stand-in
 * counts what a device is asked. */
#include "stand_in_util.h"

static void check_counts(void **state, unsigned loads, unsigned applies)
{
	if (!is_stand_in(state))
		return;
	assert_int_equal(stand_in.loads, loads);
	assert_int_equal(stand_in.applies, applies);
}

static void check_some(struct pair *p)
{
	for (unsigned i = 0; i < 6; i++)
		check_node(p, pair_random_node(p, i % 2));
	check_whole(p);
}

/* So many random directories move to random places; some twice, some into one another. */
static void move_many(void **state, size_t n_nodes, size_t reach, size_t n_moves)
{
	struct pfs_engine *engine = open_case(state);
	struct pair p;

	pair_init(&p, engine, n_moves);
	random_tree(&p, n_nodes, reach);
	check_node(&p, 0);
	for (size_t i = 0; i < n_moves; i++) {
		uint32_t slot = pair_random_node(&p, true);

		if (slot)
			pair_move(&p, slot, pair_random_node(&p, true));
	}
	check_node(&p, 0);
	check_counts(state, 1, 1);
	check_some(&p);
	pair_finish(&p);
	pfs_engine_close(engine);
}

static void few_moves(void **state)
{
	move_many(state, 3000, 40, 3);
}

static void as_many_as_a_pass_has_predicates(void **state)
{
	move_many(state, 3000, 40, PFS_SUBTREES_MAX);
}

static void one_more(void **state)
{
	move_many(state, 3000, 40, PFS_SUBTREES_MAX + 1);
}

static void a_thousand(void **state)
{
	move_many(state, 3000, 40, 1000);
}

/* Most codes are deep, before and after. */
static void a_hundred_of_deep_ones(void **state)
{
	move_many(state, 2500, 2, 100);
}

/* Directories of 32, of which each is 1,024 numbers away from its parent: no way up stays near. */
static void far_parents(void **state)
{
	enum { NEAR = 1024, LEVELS = 3 };
	struct pfs_engine *engine = open_case(state);
	struct pair p;

	pair_init(&p, engine, 3);
	ref_add(&p.ref, 0, REF_NONE, 2);
	for (uint32_t i = 1; i < LEVELS * NEAR; i++)
		ref_add(&p.ref, i, i < NEAR ? 0 : i - NEAR, pair_prime(&p, true));
	pair_load(&p);
	check_node(&p, 5);
	for (uint32_t i = 1; i < 200; i++)
		pair_move(&p, i, NEAR + 500 + i);
	check_node(&p, 0);
	check_counts(state, 1, 1);
	check_node(&p, NEAR + 7);
	check_node(&p, 2 * NEAR + 7);
	check_whole(&p);
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* A chain 0 > 1 > 2 > ... moves in parts, below what was made meanwhile, and out of what has
 * moved. */
static void nested(void **state)
{
	enum { CHAIN = 90 };
	struct pfs_engine *engine = open_case(state);
	struct pair p;

	pair_init(&p, engine, 17);
	random_tree(&p, CHAIN, 1);
	check_node(&p, CHAIN - 1);
	pair_add(&p, CHAIN, 0, true);
	for (uint32_t i = 1; i < CHAIN; i += 10)
		pair_move(&p, i, CHAIN); /* each out of the one before */
	pair_move(&p, 81, 50);
	pair_move(&p, 41, 89);
	pair_add(&p, CHAIN + 1, 60, true);
	pair_move(&p, 31, CHAIN + 1);
	pair_move(&p, 31, CHAIN); /* as if it had not */
	check_node(&p, 0);
	check_counts(state, 1, 1);
	for (uint32_t i = 0; i < p.ref.n; i += 7)
		check_node(&p, i);
	pair_move(&p, 21, 15);
	pair_remove(&p, 25); /* the questions of the removal find it where it is */
	pair_add(&p, 25, 24, true);
	pair_add(&p, 26, 25, true);
	pair_move(&p, 25, 16);
	check_some(&p);
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* Directories that are made, and files that move, change no other code. */
static void others(void **state)
{
	struct pfs_engine *engine = open_case(state);
	struct pair p;

	pair_init(&p, engine, 18);
	random_tree(&p, 1000, 30);
	check_node(&p, 0);
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t slot = pair_random_node(&p, false);

		if (i % 2)
			pair_add(&p, 1000 + i, pair_random_node(&p, true), i % 4 == 1);
		else if (!pair_is_directory(&p, slot))
			pair_move(&p, slot, pair_random_node(&p, true));
	}
	check_node(&p, 0);
	check_counts(state, 1, 1);
	check_some(&p);
	pair_finish(&p);
	pfs_engine_close(engine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_EACH(few_moves),
		ON_EACH(as_many_as_a_pass_has_predicates),
		ON_EACH(one_more),
		ON_EACH(a_thousand),
		ON_EACH(a_hundred_of_deep_ones),
		ON_EACH(far_parents),
		ON_EACH(nested),
		ON_EACH(others),
	};

	return RUN_ON_ALL(tests, argc, argv);
}
