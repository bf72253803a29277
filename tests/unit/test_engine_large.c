/* SPDX-License-Identifier: MIT */
/* The engine on trees that are large in some way, under random changes: codes of every width,
 * chains of 2,000, a star of a million, the shape of this machine's /usr. */
#include <ftw.h>
#include <limits.h>
#include <primesieve.h>

#include "engine_util.h"

/* ---- codes at the edge of every width ---- */

/* The largest primes of 32 bits, descending: a product of k of them has k limbs. */
static uint64_t *large_primes(size_t n)
{
	size_t n_found = 0;
	uint64_t *found = primesieve_generate_primes(UINT64_C(4294900000), UINT32_MAX, &n_found,
						     UINT64_PRIMES);
	uint64_t *out = calloc(n, sizeof(*out));

	assert_true(found && out && n_found >= n);
	for (size_t i = 0; i < n; i++)
		out[i] = found[n_found - 1 - i];
	primesieve_free(found);
	return out;
}

enum { CHAIN = 140 }; /* 128 limbs are the most that is kept */

static void check_codes(struct pair *p, uint64_t deep_from, uint64_t deep_to)
{
	struct pfs_engine_info info;
	uint64_t wrong = 9;

	assert_int_equal(pfs_engine_check(p->engine, &wrong), 0);
	assert_int_equal(wrong, 0);
	pfs_engine_describe(p->engine, &info);
	assert_in_range(info.deep, deep_from, deep_to);
}

/* Chain node k has a code of k limbs, all but full; a file below each.  One factor of 3 more makes
 * it k + 1: so moving the chain under a directory of prime 3 widens every code by a limb, and
 * moving it back narrows it, across the edge of every width.  Slots stay, whatever rows do. */
static void widths(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	uint64_t *primes = large_primes(CHAIN);
	struct pair p;

	pair_init(&p, engine, 21);
	ref_add(&p.ref, 0, REF_NONE, 2);
	ref_add(&p.ref, 1, 0, 3);
	for (uint32_t k = 1; k <= CHAIN; k++) {
		ref_add(&p.ref, 2 * k, k == 1 ? 0 : 2 * k - 2, primes[k - 1]);
		ref_add(&p.ref, 2 * k + 1, 2 * k, pair_prime(&p, false));
	}
	pair_load(&p);
	check_codes(&p, CHAIN - 128, CHAIN - 128);
	for (unsigned round = 0; round < 4; round++) {
		pair_move(&p, 2, round % 2 ? 0 : 1);
		/* Under 3 the 128th has more than 4,096 bits; back home it has all but that. */
		check_codes(&p, CHAIN - 127 - round % 2, CHAIN - 127 - round % 2);
		for (uint32_t slot = 0; slot < p.ref.n; slot += round < 2 ? 1 : 13)
			check_node(&p, slot);
	}
	for (uint32_t k = 1; k < CHAIN; k += 9) { /* the rest of the chain, from the middle */
		pair_move(&p, 2 * k + 2, 1);
		check_codes(&p, 0, CHAIN - 127);
		check_node(&p, 2 * CHAIN);
		check_node(&p, 2 * k + 2);
		pair_move(&p, 2 * k + 2, 2 * k);
	}
	check_whole(&p);
	pair_finish(&p);
	free(primes);
	pfs_engine_close(engine);
}

/* Each length of code from 1 to beyond 4,096 bits: small primes, a chain that grows by a few bits.
 */
static void lengths(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pair p;

	pair_init(&p, engine, 22);
	random_tree(&p, 700, 1); /* 7,000 bits */
	check_codes(&p, 200, 350);
	for (uint32_t slot = 0; slot < 700; slot++) {
		uint32_t from = slot > 10 ? slot - 10 : 0, found;
		uint32_t pair_of[2] = {slot, from};

		assert_int_equal(pfs_engine_common_ancestor(engine, &found, pair_of, 2), 0);
		assert_int_equal(found, from);
		if (slot % 10 == 0)
			check_node(&p, slot);
	}
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* ---- random sequences ---- */

static void check_some(struct pair *p, unsigned n)
{
	uint64_t wrong = 9;

	for (unsigned i = 0; i < n; i++) {
		check_node(p, pair_random_node(p, i % 2));
		check_two(p, pair_random_node(p, false), pair_random_node(p, i % 2));
	}
	assert_int_equal(pfs_engine_check(p->engine, &wrong), 0);
	assert_int_equal(wrong, 0);
}

static void random_chains(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	uint64_t seed = first_seed();

	for (unsigned round = 0; round < 3; round++, seed++) {
		struct pair p;

		print_message("seed %llu\n", (unsigned long long)seed);
		pair_init(&p, engine, seed);
		random_tree(&p, 2000, 1 + round);
		for (unsigned step = 0; step < 6; step++) {
			for (uint64_t n = pair_random(&p, 12); n > 0; n--)
				random_change(&p);
			check_some(&p, 1);
		}
		pair_finish(&p);
	}
	pfs_engine_close(engine);
}

/* A million children, half of them directories; then it changes. */
static void million_star(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const size_t n = getenv("PFS_TEST_SMALL") ? 20000 : 1000000;
	uint64_t *small = primesieve_generate_n_primes(n, 3, UINT64_PRIMES);
	uint64_t *large = primesieve_generate_n_primes(n, UINT64_C(1) << 32, UINT64_PRIMES);
	uint64_t seed = first_seed();
	struct pair p;

	assert_true(small && large);
	print_message("seed %llu\n", (unsigned long long)seed);
	pair_init(&p, engine, seed);
	ref_add(&p.ref, 0, REF_NONE, 2);
	for (uint32_t i = 1; i < n; i++)
		ref_add(&p.ref, i, 0, i % 2 ? small[i] : large[i]);
	p.next_directory = small[n - 1] + 1;
	p.next_file = large[n - 1] + 1;
	primesieve_free(small);
	primesieve_free(large);
	pair_load(&p);
	check_node(&p, 0);
	for (unsigned step = 0; step < 3; step++) {
		for (unsigned i = 0; i < 300; i++) /* from one of a million into another */
			random_change(&p);
		check_some(&p, 1);
	}
	check_node(&p, 0);
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* ---- the shape of a real /usr ---- */

enum { USR_MOST = 40000, DEEPEST = 64 };

static struct pair *usr_pair;
static uint32_t usr_path[DEEPEST]; /* slots, by level */

static int add_entry(const char *path, const struct stat *attr, int type, struct FTW *at)
{
	struct ref_tree *t = &usr_pair->ref;
	uint32_t slot = (uint32_t)t->n;

	(void)path;
	(void)attr;
	if (at->level >= DEEPEST)
		return 0;
	usr_path[at->level] = slot;
	if (at->level == 0)
		ref_add(t, slot, REF_NONE, 2);
	else
		ref_add(t, slot, usr_path[at->level - 1],
			pair_prime(usr_pair, type == FTW_D || type == FTW_DNR));
	return t->n == USR_MOST;
}

static void shape_of_usr(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	uint64_t seed = first_seed();
	struct pair p;

	pair_init(&p, engine, seed);
	usr_pair = &p;
	if (nftw("/usr", add_entry, 30, FTW_PHYS) < 0 || p.ref.n < 1000) {
		print_message("there is not much in /usr: skipped\n");
		skip();
	}
	print_message("seed %llu, %zu nodes\n", (unsigned long long)seed, p.ref.n);
	pair_load(&p);
	for (unsigned step = 0; step < 5; step++) {
		check_some(&p, 2);
		for (unsigned i = 0; i < 100; i++)
			random_change(&p);
	}
	check_some(&p, 2);
	pair_finish(&p);
	pfs_engine_close(engine);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(widths),	      ON_ALL(lengths),	    ON_ALL(random_chains),
		ON_ALL(million_star), ON_ALL(shape_of_usr),
	};

	return RUN_ON_ALL(tests, argc, argv);
}
