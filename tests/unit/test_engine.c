/* SPDX-License-Identifier: MIT */
/* The engine against the reference: all small trees, random ones, block boundaries, on every back
 * end that there is; and a device that fails at each call in turn. */
#include "engine_util.h"

/* ---- all trees of up to seven nodes ---- */

#define NODES_MAX 7

struct shape {
	unsigned n;
	unsigned parent[NODES_MAX]; /* parent[i] < i */
	unsigned files;		    /* bit i: node i, a leaf, is no directory */
	bool backwards; /* slots are numbered from the other end: no parent is before its child */
};

static uint32_t slot_of(const struct shape *shape, unsigned i)
{
	return shape->backwards ? shape->n - 1 - i : i;
}

/* Equal for two shapes exactly when one is the other with siblings in another order. */
static void describe(const struct shape *shape, unsigned i, char *out)
{
	char children[NODES_MAX][2 * NODES_MAX + 1];
	unsigned n = 0;

	if (shape->files >> i & 1) {
		(void)stpcpy(out, "f");
		return;
	}
	for (unsigned c = i + 1; c < shape->n; c++)
		if (shape->parent[c] == i)
			describe(shape, c, children[n++]);
	qsort(children, n, sizeof(children[0]), (int (*)(const void *, const void *))strcmp);
	out = stpcpy(out, "(");
	for (unsigned c = 0; c < n; c++)
		out = stpcpy(out, children[c]);
	(void)stpcpy(out, ")");
}

static void build(struct pair *p, const struct shape *shape, bool by_deltas)
{
	ref_add(&p->ref, slot_of(shape, 0), REF_NONE, 2);
	if (by_deltas)
		pair_load(p);
	for (unsigned i = 1; i < shape->n; i++) {
		uint32_t slot = slot_of(shape, i), parent = slot_of(shape, shape->parent[i]);
		bool directory = !(shape->files >> i & 1);

		if (by_deltas)
			pair_add(p, slot, parent, directory);
		else
			ref_add(&p->ref, slot, parent, pair_prime(p, directory));
	}
	if (!by_deltas)
		pair_load(p);
}

static void check_every_node(struct pair *p)
{
	for (uint32_t i = 0; i < p->ref.n; i++)
		if (p->ref.nodes[i].live)
			check_node(p, i);
}

static void check_every_pair(struct pair *p)
{
	for (uint32_t a = 0; a < p->ref.n; a++)
		for (uint32_t b = 0; b < p->ref.n; b++)
			if (p->ref.nodes[a].live && p->ref.nodes[b].live)
				check_two(p, a, b);
}

enum operation { ADD_DIRECTORY, ADD_FILE, REMOVE, MOVE };

static void change(struct pair *p, enum operation operation, uint32_t x, uint32_t to)
{
	switch (operation) {
	case ADD_DIRECTORY:
	case ADD_FILE:
		if (pair_is_directory(p, x))
			pair_add(p, (uint32_t)p->ref.n, x, operation == ADD_DIRECTORY);
		break;
	case REMOVE:
		if (p->ref.nodes[x].parent != REF_NONE)
			pair_remove(p, x);
		break;
	case MOVE: /* both refuse what makes no sense */
		if (p->ref.nodes[x].parent != REF_NONE && pair_is_directory(p, to))
			pair_move(p, x, to);
		break;
	}
}

/* All questions about the tree; then about what each change of it, alone, makes of it. */
static void check_shape(struct pfs_engine *engine, const struct shape *shape)
{
	struct pair p;

	for (int by_deltas = 0; by_deltas < 2; by_deltas++) {
		pair_init(&p, engine, shape->n);
		build(&p, shape, by_deltas);
		check_every_node(&p);
		check_every_pair(&p);
		check_whole(&p);
		pair_finish(&p);
	}
	for (int operation = ADD_DIRECTORY; operation <= MOVE; operation++) {
		for (uint32_t x = 0; x < shape->n; x++) {
			for (uint32_t to = 0; to < (operation == MOVE ? shape->n : 1); to++) {
				pair_init(&p, engine, x);
				build(&p, shape, false);
				change(&p, (enum operation)operation, x, to);
				check_every_node(&p);
				pair_finish(&p);
			}
		}
	}
}

static unsigned leaves_of(const struct shape *shape)
{
	unsigned leaves = 0;

	for (unsigned i = 1; i < shape->n; i++)
		leaves |= 1u << i;
	for (unsigned i = 1; i < shape->n; i++)
		leaves &= ~(1u << shape->parent[i]);
	return leaves;
}

static bool is_new(char (*seen)[2 * NODES_MAX + 1], size_t *n, const struct shape *shape)
{
	describe(shape, 0, seen[*n]);
	for (size_t i = 0; i < *n; i++)
		if (!strcmp(seen[i], seen[*n]))
			return false;
	++*n;
	return true;
}

/* Every shape, with every choice of leaves that are files; siblings in one order of theirs only,
 * unless PFS_TEST_FULL is set. */
static void all_small_trees(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	char seen[1000][2 * NODES_MAX + 1];
	bool full = getenv("PFS_TEST_FULL");
	size_t n_seen = 0;
	unsigned checked = 0;

	for (unsigned n = 1; n <= NODES_MAX; n++) {
		unsigned codes = 1; /* of n - 1 parents, each before its child */

		for (unsigned i = 2; i < n; i++)
			codes *= i;
		for (unsigned code = 0; code < codes; code++) {
			struct shape shape = {.n = n};
			unsigned leaves, rest = code;

			for (unsigned i = 1; i < n; i++) {
				shape.parent[i] = rest % i;
				rest /= i;
			}
			leaves = leaves_of(&shape);
			for (shape.files = leaves;; shape.files = (shape.files - 1) & leaves) {
				if (is_new(seen, &n_seen, &shape) || full) {
					shape.backwards = checked++ % 2;
					check_shape(engine, &shape);
				}
				if (shape.files == 0)
					break;
			}
		}
	}
	print_message("%u trees of %zu shapes\n", checked, n_seen);
	pfs_engine_close(engine);
}

/* ---- random trees, random changes ---- */

static void random_sequences(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	uint64_t seed = first_seed();

	for (unsigned round = 0; round < 24; round++, seed++) {
		struct pair p;

		print_message("seed %llu\n", (unsigned long long)seed);
		pair_init(&p, engine, seed);
		/* Every other round with primes of up to 32 bits: wide codes. */
		if (round % 2)
			p.next_directory = UINT64_C(4294900000) - 900 * round;
		random_tree(&p, 20 + 30 * round, 1 + pair_random(&p, 2 + 10 * round));
		for (unsigned step = 0; step < 12; step++) {
			for (uint64_t n = pair_random(&p, 40); n > 0; n--)
				random_change(&p);
			for (unsigned k = 0; k < 4; k++) {
				check_node(&p, pair_random_node(&p, k % 2));
				check_two(&p, pair_random_node(&p, false),
					  pair_random_node(&p, k % 2));
			}
			check_whole(&p);
		}
		pair_finish(&p);
	}
	pfs_engine_close(engine);
}

static void block_boundaries(void **state)
{
	static const unsigned sizes[] = {1,   2,   31,	 32,   33,   63,   64,	 65,  255,
					 256, 257, 1023, 1024, 1025, 2047, 2048, 2049};
	struct pfs_engine *engine = open_or_skip(kind_of(state));

	for (size_t i = 0; i < PFS_COUNT(sizes); i++) {
		for (unsigned directories = 0; directories < 2; directories++) {
			struct pair p;

			pair_init(&p, engine, i + 1);
			ref_add(&p.ref, 0, REF_NONE, 2);
			for (uint32_t s = 1; s < sizes[i]; s++) /* a star, or a flat tree */
				ref_add(&p.ref, s, directories ? (s - 1) / 8 : 0,
					pair_prime(&p, directories));
			pair_load(&p);
			check_node(&p, 0);
			check_node(&p, pair_random_node(&p, false));
			check_whole(&p);
			pair_finish(&p);
		}
	}
	pfs_engine_close(engine);
}

/* Codes beyond what is kept as limbs, and a cut through the middle. */
static void long_chain(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pfs_engine_info info;
	uint64_t wrong;
	struct pair p;

	pair_init(&p, engine, 77);
	random_tree(&p, 2000, 1);
	pfs_engine_describe(engine, &info);
	assert_true(info.deep > 1000);
	check_node(&p, 0);
	check_node(&p, 300);
	check_node(&p, 1999);
	check_two(&p, 1000, 1999);
	pair_move(&p, 700, 2); /* shortens 1,300 codes */
	check_node(&p, 700);
	check_node(&p, 1999);
	pair_add(&p, 2000, 1999, true);
	pair_add(&p, 2001, 1999, false);
	pair_move(&p, 1500, 699); /* and these grow again */
	check_node(&p, 2001);
	check_node(&p, 1500);
	assert_int_equal(pfs_engine_check(engine, &wrong), 0);
	assert_int_equal(wrong, 0);
	pair_remove(&p, 600);
	check_node(&p, 599);
	check_whole(&p);
	pair_finish(&p);
	pfs_engine_close(engine);
}

static void wide_star(void **state)
{
	enum { NODES = 1000000 };
	static uint32_t parent[NODES];
	static uint64_t prime[NODES];
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pfs_bitmap *set;
	uint64_t count;

	parent[0] = PFS_NO_SLOT;
	prime[0] = 2;
	for (size_t i = 1; i < NODES; i++) /* any odd numbers do for counting */
		prime[i] = i % 2 ? 2 * i + 1 : (UINT64_C(1) << 32) + 2 * i + 1;
	assert_int_equal(pfs_engine_load(engine, parent, prime, NODES), 0);
	pfs_engine_use_ranges(engine, false);
	assert_int_equal(pfs_engine_subtree(engine, &set, 0), 0);
	assert_int_equal(pfs_bitmap_count(set, &count), 0);
	assert_int_equal(count, NODES);
	pfs_bitmap_free(set);
	pfs_engine_close(engine);
}

/* ---- what must be refused ---- */

static void refusals(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	const uint32_t parent[] = {PFS_NO_SLOT, 0, 1, 1, 0};
	const uint64_t prime[] = {2, 3, 5, (UINT64_C(1) << 32) + 15, 0};
	const uint32_t circle[] = {PFS_NO_SLOT, 2, 1}, two_roots[] = {PFS_NO_SLOT, PFS_NO_SLOT};
	const uint32_t under_file[] = {PFS_NO_SLOT, 0, 1};
	const uint64_t primes[] = {2, 3, 5}, even[] = {2, 4, 5}, twos[] = {2, 2};
	const uint64_t file_first[] = {2, (UINT64_C(1) << 32) + 15, 3};
	const struct pfs_delta bad[] = {
		{.op = PFS_DELTA_ADD, .slot = 1, .parent = 0, .prime = 7}, /* in use */
		{.op = PFS_DELTA_ADD, .slot = 4, .parent = 3, .prime = 7}, /* under a file */
		{.op = PFS_DELTA_ADD, .slot = 4, .parent = 9, .prime = 7}, /* under nothing */
		{.op = PFS_DELTA_ADD, .slot = 4, .parent = 0, .prime = 8}, /* even */
		{.op = PFS_DELTA_ADD, .slot = 4, .parent = 0, .prime = 0},
		{.op = PFS_DELTA_REMOVE, .slot = 4},
		{.op = PFS_DELTA_REMOVE, .slot = 0}, /* the root */
		{.op = PFS_DELTA_MOVE, .slot = 0, .parent = 1},
		{.op = PFS_DELTA_MOVE, .slot = 1, .parent = 2}, /* under itself */
		{.op = PFS_DELTA_MOVE, .slot = 1, .parent = 1},
		{.op = PFS_DELTA_MOVE, .slot = 1, .parent = 3},
	};
	struct pfs_bitmap *set;
	uint32_t slot;
	size_t applied;

	assert_int_equal(pfs_engine_load(engine, circle, primes, 3), -EINVAL);
	assert_int_equal(pfs_engine_load(engine, two_roots, twos, 2), -EINVAL);
	assert_int_equal(pfs_engine_load(engine, under_file, file_first, 3), -EINVAL);
	assert_int_equal(pfs_engine_load(engine, under_file, even, 3), -EINVAL);
	assert_int_equal(pfs_engine_subtree(engine, &set, 0), -ENOENT);
	assert_int_equal(pfs_engine_load(engine, parent, prime, 5), 0);
	for (size_t i = 0; i < PFS_COUNT(bad); i++) {
		assert_int_equal(pfs_engine_apply(engine, &applied, &bad[i], 1), -EINVAL);
		assert_int_equal(applied, 0);
	}
	assert_int_equal(pfs_engine_subtree(engine, &set, 4), -ENOENT);
	assert_int_equal(pfs_engine_subtree(engine, &set, 4000000), -ENOENT);
	assert_int_equal(pfs_engine_node(engine, &slot, "30"), 0); /* 2 * 3 * 5 */
	assert_int_equal(slot, 2);
	assert_int_equal(pfs_engine_node(engine, &slot, "15"), -ENOENT);
	assert_int_equal(pfs_engine_node(engine, &slot, "10"), -ENOENT); /* 5 is not below 2 */
	assert_int_equal(pfs_engine_node(engine, &slot, "60"), -ENOENT);
	assert_int_equal(pfs_engine_node(engine, &slot, "0"), -ENOENT);
	assert_int_equal(pfs_engine_node(engine, &slot, ""), -EINVAL);
	assert_int_equal(pfs_engine_node(engine, &slot, "-6"), -EINVAL);
	pfs_engine_close(engine);
}

static bool combined(enum pfs_bitmap_op op, bool a, bool b)
{
	return op == PFS_BITMAP_AND ? a && b : op == PFS_BITMAP_OR ? a || b : a && !b;
}

static void set_algebra(void **state)
{
	struct pfs_engine *engine = open_or_skip(kind_of(state));
	struct pair p;

	pair_init(&p, engine, 5);
	random_tree(&p, 1500, 20);
	for (int op = PFS_BITMAP_AND; op <= PFS_BITMAP_AND_NOT; op++) {
		for (unsigned round = 0; round < 8; round++) {
			uint32_t a = pair_random_node(&p, true), b = pair_random_node(&p, true);
			bool first[1600], second[1600];
			struct pfs_bitmap *x, *y;

			pfs_engine_use_ranges(engine, round % 2);
			assert_int_equal(pfs_engine_subtree(engine, &x, a), 0);
			if (round >= 4) /* sets from before the columns grew */
				pair_add(&p, (uint32_t)p.ref.n, 0, round % 2);
			assert_int_equal(pfs_engine_subtree(engine, &y, b), 0);
			memset(first, 0, sizeof(first));
			ref_subtree(&p.ref, first, a);
			ref_subtree(&p.ref, second, b);
			if (round >= 4 && a == 0)
				first[p.ref.n - 1] = false;
			for (size_t i = 0; i < p.ref.n; i++)
				first[i] = combined((enum pfs_bitmap_op)op, first[i], second[i]);
			assert_int_equal(pfs_bitmap_combine(x, y, (enum pfs_bitmap_op)op), 0);
			pfs_bitmap_free(y);
			check_set(&p, x, first);
		}
	}
	pair_finish(&p);
	pfs_engine_close(engine);
}

/* Two sets of which one was made before the columns had to grow. */
static void sets_from_before(void **state)
{
	enum { BEFORE = 1000, AFTER = 2200 };

	for (unsigned round = 0; round < 6; round++) {
		enum pfs_bitmap_op op = (enum pfs_bitmap_op)(round / 2);
		struct pfs_engine *engine = open_or_skip(kind_of(state));
		bool before[AFTER] = {false}, after[AFTER];
		struct pfs_bitmap *old, *new;
		struct pair p;

		pair_init(&p, engine, 6 + round);
		random_tree(&p, BEFORE, 20);
		pfs_engine_use_ranges(engine, false);
		ref_subtree(&p.ref, before, p.ref.nodes[BEFORE - 1].parent);
		assert_int_equal(pfs_engine_subtree(engine, &old, p.ref.nodes[BEFORE - 1].parent),
				 0);
		while (p.ref.n < AFTER)
			pair_add(&p, (uint32_t)p.ref.n, pair_random_node(&p, true), p.ref.n % 2);
		ref_subtree(&p.ref, after, 0);
		assert_int_equal(pfs_engine_subtree(engine, &new, 0), 0);
		if (round % 2) {
			assert_int_equal(pfs_bitmap_combine(old, new, op), 0);
			for (size_t i = 0; i < AFTER; i++)
				before[i] = combined(op, before[i], after[i]);
			check_set(&p, old, before);
			pfs_bitmap_free(new);
		} else {
			assert_int_equal(pfs_bitmap_combine(new, old, op), 0);
			for (size_t i = 0; i < AFTER; i++)
				after[i] = combined(op, after[i], before[i]);
			check_set(&p, new, after);
			pfs_bitmap_free(old);
		}
		pair_finish(&p);
		pfs_engine_close(engine);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_ALL(all_small_trees), ON_ALL(random_sequences), ON_ALL(block_boundaries),
		ON_ALL(long_chain),	 ON_ALL(wide_star),	   ON_ALL(refusals),
		ON_ALL(set_algebra),	 ON_ALL(sets_from_before),
	};

	return RUN_ON_ALL(tests, argc, argv);
}
