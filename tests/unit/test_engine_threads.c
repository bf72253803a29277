/* SPDX-License-Identifier: MIT */
/* Several threads ask an engine while others change its tree.  Each answer must be the reference's
 * at one moment between the call and its return.  Also while the device fails.
 *
 * The tree has parts that only meet at the root, and a part is changed by one thread, which writes
 * down each state of it: so there is an order of states to look an answer up in, though changes of
 * different parts meet in the engine.  A slot always has the same prime. */
#include "stand_in_util.h"

#include <gmp.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tests/ref/random.h"

enum {
	PARTS = 3,
	SLOTS = 72, /* of a part */
	END = 1 + PARTS * SLOTS,
	WORDS = END / 32 + 1,
	STATES = 120, /* of a part */
	ASKERS = 4,
	ASKED_LEAST = 150, /* by each */
	NAME = 8,
};

#define NONE UINT32_MAX

/* A part at one moment: the slot that each of its own lies in; NONE: it has no node. */
struct state {
	uint32_t parent[SLOTS];
};

static struct part {
	struct state states[STATES];
	/* The engine has been given the states before the first, and may have those before the
	 * second. */
	atomic_uint done, begun;
} parts[PARTS];

static struct pfs_engine *engine;
static uint64_t primes[END];
static struct pfs_names_view names;
static uint8_t heap[END * NAME];
static uint32_t places[END];
static atomic_uint changing;	/* threads that still change */
static atomic_bool may_fail;	/* the device, so that sets are lost */
static _Atomic(const char *) wrong;

/* No assertion here: it jumps out of a thread. */
static void expect(bool is_right, const char *what)
{
	if (!is_right)
		atomic_store(&wrong, what);
}

/* ---- the reference ---- */

static uint32_t base_of(uint32_t part)
{
	return 1 + part * SLOTS; /* its top */
}

static bool is_directory(uint32_t slot)
{
	return slot == 0 || (slot - 1) % SLOTS % 3 == 0;
}

static uint32_t parent_of(const struct state *s, uint32_t part, uint32_t slot)
{
	return s->parent[slot - base_of(part)];
}

static bool lies_under(const struct state *s, uint32_t part, uint32_t slot, uint32_t above)
{
	while (slot && slot != above)
		slot = parent_of(s, part, slot);
	return slot == above;
}

static bool is_empty(const struct state *s, uint32_t slot)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		if (s->parent[i] == slot)
			return false;
	return true;
}

static void prepare_tree(void)
{
	uint32_t parent[END] = {PFS_NO_SLOT};
	uint64_t loaded[END] = {2};
	mpz_t small, large;

	mpz_init_set_ui(small, 2);
	mpz_init_set_ui(large, UINT64_C(1) << 32);
	for (uint32_t slot = 0; slot < END; slot++) {
		mpz_t *next = is_directory(slot) ? &small : &large;

		if (slot)
			mpz_nextprime(*next, *next);
		primes[slot] = mpz_get_ui(*next);
		places[slot] = slot;
		heap[slot * NAME] =
			(uint8_t)snprintf((char *)heap + slot * NAME + 1, NAME - 1, "n%u", slot);
	}
	mpz_clears(small, large, NULL);
	for (uint32_t p = 0; p < PARTS; p++) {
		memset(parts[p].states, 0xff, sizeof(parts[p].states[0]));
		parts[p].states[0].parent[0] = 0;
		parts[p].done = parts[p].begun = 1;
		loaded[base_of(p)] = primes[base_of(p)];
	}
	names = (struct pfs_names_view){.heap = heap,
					.heap_size = sizeof(heap),
					.place = places,
					.n_slots = END,
					.place_shift = 3,
					.generation = 1};
	assert_int_equal(pfs_engine_load(engine, parent, loaded, END), 0);
}

/* ---- changing ---- */

static uint32_t random_directory(const struct state *s, uint32_t part, uint64_t *random)
{
	uint32_t from = random_below(random, SLOTS);

	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t at = (from + i) % SLOTS;

		if (s->parent[at] != NONE && is_directory(base_of(part) + at))
			return base_of(part) + at;
	}
	return base_of(part);
}

/* A node comes, goes, or moves. */
static struct pfs_delta random_delta(struct state *s, uint32_t part, uint64_t *random)
{
	uint32_t at = 1 + random_below(random, SLOTS - 1), to = random_directory(s, part, random);
	struct pfs_delta delta = {.slot = base_of(part) + at, .parent = to};

	if (s->parent[at] == NONE) {
		delta.op = PFS_DELTA_ADD;
		delta.prime = primes[delta.slot];
	} else if (random_below(random, 3) == 0 && is_empty(s, delta.slot)) {
		delta.op = PFS_DELTA_REMOVE;
	} else {
		delta.op = PFS_DELTA_MOVE;
		if (lies_under(s, part, to, delta.slot))
			delta.parent = s->parent[at];
	}
	s->parent[at] = delta.op == PFS_DELTA_REMOVE ? NONE : delta.parent;
	return delta;
}

/* Up to four changes are one state: they are given in one call. */
static void *change(void *arg)
{
	struct part *part = arg;
	const uint32_t p = (uint32_t)(part - parts);
	uint64_t random = p + 1;

	for (unsigned i = 1; i < STATES; i++) {
		struct pfs_delta deltas[4];
		size_t n = 1 + random_below(&random, PFS_COUNT(deltas)), applied;

		part->states[i] = part->states[i - 1];
		for (size_t k = 0; k < n; k++)
			deltas[k] = random_delta(&part->states[i], p, &random);
		atomic_store(&part->begun, i + 1);
		expect(pfs_engine_apply(engine, &applied, deltas, n) == 0 && applied == n, "apply");
		atomic_store(&part->done, i + 1);
		(void)sched_yield();
	}
	atomic_fetch_sub(&changing, 1);
	return NULL;
}

/* ---- asking ---- */

struct question {
	uint64_t random;
	uint32_t part;
	uint32_t slots[4];
	size_t n;
	/* the answer */
	int error;
	uint32_t slot;
	uint32_t sets[4][WORDS];
	char text[END * 64];
	size_t text_size;
	uint32_t path[SLOTS + 1]; /* the slots whose primes are the code's that is asked for */
};

static bool is_live(const struct question *q, const struct state *s, uint32_t slot)
{
	return parent_of(s, q->part, slot) != NONE;
}

static bool all_live(const struct question *q, const struct state *s)
{
	for (size_t i = 0; i < q->n; i++)
		if (!is_live(q, s, q->slots[i]))
			return false;
	return true;
}

static int read_set(struct pfs_bitmap *set, uint32_t words[WORDS])
{
	uint64_t count, bits = 0;
	int error = pfs_bitmap_read(set, words, 0, WORDS);

	error = error ? error : pfs_bitmap_count(set, &count);
	for (size_t i = 0; i < WORDS; i++)
		bits += (unsigned)__builtin_popcount(words[i]);
	expect(error || bits == count, "count");
	return error;
}

static void ask_subtrees(struct question *q)
{
	struct pfs_bitmap *sets[4] = {NULL};

	q->error = pfs_engine_subtrees(engine, sets, q->slots, q->n);
	for (size_t i = 0; i < q->n && q->error == 0; i++)
		q->error = read_set(sets[i], q->sets[i]);
	for (size_t i = 0; i < q->n; i++)
		pfs_bitmap_free(sets[i]);
}

/* Of the part: others change meanwhile. */
static bool is_set(const struct question *q, const uint32_t *words, const bool expected[SLOTS])
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		uint32_t slot = base_of(q->part) + i;

		if ((words[slot / 32] >> slot % 32 & 1) != expected[i])
			return false;
	}
	return true;
}

static bool are_subtrees(const struct question *q, const struct state *s)
{
	if (!all_live(q, s) || q->error == -ENOENT)
		return q->error == -ENOENT && !all_live(q, s);
	for (size_t k = 0; k < q->n; k++) {
		bool expected[SLOTS];

		for (uint32_t i = 0; i < SLOTS; i++)
			expected[i] = s->parent[i] != NONE &&
				      lies_under(s, q->part, base_of(q->part) + i, q->slots[k]);
		if (!is_set(q, q->sets[k], expected))
			return false;
	}
	return true;
}

static void ask_parents(struct question *q)
{
	struct pfs_bitmap *set = NULL;

	q->n = 1;
	q->error = pfs_engine_parents(engine, &set, q->slots[0]);
	if (q->error == 0)
		q->error = read_set(set, q->sets[0]);
	pfs_bitmap_free(set);
}

static bool are_parents(const struct question *q, const struct state *s)
{
	bool expected[SLOTS] = {false};

	if (!all_live(q, s) || q->error)
		return q->error == -ENOENT && !all_live(q, s);
	for (uint32_t up = q->slots[0]; (up = parent_of(s, q->part, up)) != 0;)
		expected[up - base_of(q->part)] = true;
	return is_set(q, q->sets[0], expected) && (q->sets[0][0] & 1);
}

static void ask_parent(struct question *q)
{
	q->n = 1;
	q->error = pfs_engine_parent(engine, &q->slot, q->slots[0]);
}

static bool is_parent(const struct question *q, const struct state *s)
{
	return q->error ? q->error == -ENOENT && !all_live(q, s)
			: q->slot == parent_of(s, q->part, q->slots[0]);
}

static void ask_common(struct question *q)
{
	q->error = pfs_engine_common_ancestor(engine, &q->slot, q->slots, q->n);
}

static bool is_common(const struct question *q, const struct state *s)
{
	uint32_t deepest = q->slots[0];

	if (!all_live(q, s) || q->error)
		return q->error == -ENOENT && !all_live(q, s);
	for (size_t i = 1; i < q->n; i++)
		while (!lies_under(s, q->part, q->slots[i], deepest))
			deepest = parent_of(s, q->part, deepest);
	return q->slot == deepest;
}

/* Of a node as it was at some time. */
static void ask_node(struct question *q)
{
	struct part *part = &parts[q->part];
	const struct state *s = &part->states[random_below(&q->random, part->done)];
	char *decimal;
	size_t n = 0;
	mpz_t code;

	q->n = 1;
	if (!is_live(q, s, q->slots[0]))
		q->slots[0] = base_of(q->part);
	mpz_init_set_ui(code, primes[0]);
	for (uint32_t up = q->slots[0]; up; up = parent_of(s, q->part, up)) {
		mpz_mul_ui(code, code, primes[up]);
		q->path[n++] = up;
	}
	q->path[n] = 0;
	decimal = mpz_get_str(NULL, 10, code);
	mpz_clear(code);
	q->error = pfs_engine_node(engine, &q->slot, decimal);
	free(decimal);
}

/* Whether the nodes from this one up to the top are those whose primes make the code, in any
 * order. */
static bool is_path(const struct question *q, const struct state *s, uint32_t slot)
{
	size_t n = 0, found = 0;

	if (!is_live(q, s, slot))
		return false;
	for (; slot; slot = parent_of(s, q->part, slot), n++)
		for (size_t i = 0; q->path[i]; i++)
			found += q->path[i] == slot;
	return n == found && !q->path[n];
}

static bool is_node(const struct question *q, const struct state *s)
{
	for (size_t i = 0; q->path[i]; i++)
		if (is_path(q, s, q->path[i]))
			return q->error == 0 && q->slot == q->path[i];
	return q->error == -ENOENT;
}

static int add_text(void *arg, const char *bytes, size_t size)
{
	struct question *q = arg;

	if (q->text_size + size > sizeof(q->text))
		return -E2BIG;
	memcpy(q->text + q->text_size, bytes, size);
	q->text_size += size;
	return 0;
}

static void ask_paths(struct question *q)
{
	uint32_t slots[SLOTS];
	const struct pfs_listing listing = {&names, slots, SLOTS, 0, add_text, q};

	for (uint32_t i = 0; i < SLOTS; i++)
		slots[i] = base_of(q->part) + i;
	q->text_size = 0;
	q->error = pfs_engine_list(engine, &listing);
	expect(q->error == 0 || (q->error == -ESTALE && may_fail), "list");
}

static size_t add_path(char *to, const struct state *s, uint32_t part, uint32_t slot)
{
	size_t n = slot ? add_path(to, s, part, parent_of(s, part, slot)) : 0;

	return slot ? n + (size_t)sprintf(to + n, "/n%u", slot) : 0;
}

static bool are_paths(const struct question *q, const struct state *s)
{
	const char *at = q->text;
	char path[SLOTS * NAME];

	for (uint32_t i = 0; i < SLOTS; i++) {
		size_t n;

		if (s->parent[i] == NONE)
			continue;
		n = add_path(path, s, q->part, base_of(q->part) + i);
		path[n++] = '\n';
		if (n > (size_t)(q->text + q->text_size - at) || memcmp(at, path, n) != 0)
			return false;
		at += n;
	}
	return at == q->text + q->text_size;
}

static void check_combined(struct question *q)
{
	struct pfs_bitmap *sets[2];
	uint32_t words[3][WORDS];
	int error;

	if (pfs_engine_subtrees(engine, sets, q->slots, 2))
		return;
	error = read_set(sets[0], words[0]);
	error = error ? error : read_set(sets[1], words[1]);
	error = error ? error : pfs_bitmap_combine(sets[0], sets[1], PFS_BITMAP_OR);
	error = error ? error : read_set(sets[0], words[2]);
	for (size_t i = 0; i < WORDS && !error; i++)
		expect(words[2][i] == (words[0][i] | words[1][i]), "combined");
	expect(!error, "combining");
	pfs_bitmap_free(sets[0]);
	pfs_bitmap_free(sets[1]);
}

static void check_codes(struct question *q PFS_UNUSED)
{
	uint64_t n_wrong = 1;

	expect(pfs_engine_check(engine, &n_wrong) == 0 && n_wrong == 0, "codes");
}

static void ask_one(struct question *q)
{
	static const struct {
		void (*ask)(struct question *q);
		bool (*is_right)(const struct question *q,
				 const struct state *s); /* that state's? */
		const char *what;
	} kinds[] = {
		{ask_subtrees, are_subtrees, "subtrees"},
		{ask_parents, are_parents, "parents"},
		{ask_parent, is_parent, "parent"},
		{ask_common, is_common, "common ancestor"},
		{ask_node, is_node, "node"},
		{ask_paths, are_paths, "paths"},
		{check_combined, NULL, "combined"},
		{check_codes, NULL, "codes"},
	};
	uint32_t kind = random_below(&q->random, PFS_COUNT(kinds));
	unsigned first, end;
	bool is_right = !kinds[kind].is_right;

	q->part = random_below(&q->random, PARTS);
	q->n = 1 + random_below(&q->random, 4);
	for (size_t i = 0; i < PFS_COUNT(q->slots); i++)
		q->slots[i] = base_of(q->part) + random_below(&q->random, SLOTS);
	first = atomic_load(&parts[q->part].done) - 1;
	kinds[kind].ask(q);
	end = atomic_load(&parts[q->part].begun);
	for (unsigned i = first; i < end && !is_right; i++)
		is_right = kinds[kind].is_right(q, &parts[q->part].states[i]);
	expect(is_right || (q->error == -ESTALE && may_fail), kinds[kind].what);
}

static void *ask(void *arg)
{
	struct question *q = calloc(1, sizeof(*q));

	expect(q, "memory");
	if (!q)
		return NULL;
	q->random = *(const uint64_t *)arg;
	for (unsigned i = 0; atomic_load(&changing) || i < ASKED_LEAST; i++)
		ask_one(q);
	free(q);
	return NULL;
}

/* ---- the tests ---- */

static void *ask_beside(void *arg)
{
	struct pfs_bitmap *set;
	uint64_t count = 0;

	if (pfs_engine_subtree(engine, &set, 0) == 0) {
		expect(pfs_bitmap_count(set, &count) == 0, "count");
		pfs_bitmap_free(set);
	}
	*(uint64_t *)arg = count;
	return NULL;
}

static int wait_for_other(void *arg, const char *bytes PFS_UNUSED, size_t size PFS_UNUSED)
{
	pthread_t other;

	if (pthread_create(&other, NULL, ask_beside, arg))
		return -EAGAIN;
	(void)pthread_join(other, NULL);
	return 1;
}

/* A question is answered while another one is in the middle of its answer. */
static void two_questions(void **state)
{
	const uint32_t top = base_of(0);
	uint64_t count = 0;
	const struct pfs_listing listing = {&names, &top, 1, 0, wait_for_other, &count};

	engine = open_case(state);
	prepare_tree();
	pfs_engine_use_ranges(engine, false);
	assert_int_equal(pfs_engine_list(engine, &listing), 1);
	assert_int_equal(count, PARTS + 1);
	pfs_engine_close(engine);
}

static void check_end(void)
{
	struct question *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->random = 1;
	for (unsigned i = 0; i < 200; i++)
		ask_one(q);
	check_codes(q);
	free(q);
}

/* Closes the engine. */
static void run_threads(void)
{
	static uint64_t seeds[ASKERS] = {77, 1077, 2077, 3077};
	pthread_t changers[PARTS], askers[ASKERS];

	prepare_tree();
	pfs_engine_use_ranges(engine, false);
	atomic_store(&wrong, NULL);
	atomic_store(&changing, PARTS);
	for (size_t i = 0; i < PARTS; i++)
		assert_int_equal(pthread_create(&changers[i], NULL, change, &parts[i]), 0);
	for (size_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&askers[i], NULL, ask, &seeds[i]), 0);
	for (size_t i = 0; i < PARTS; i++)
		assert_int_equal(pthread_join(changers[i], NULL), 0);
	for (size_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_join(askers[i], NULL), 0);
	check_end();
	if (atomic_load(&wrong))
		fail_msg("wrong: %s", atomic_load(&wrong));
}

static void questions_beside_changes(void **state)
{
	struct pfs_engine_info info;

	engine = open_case(state);
	run_threads();
	pfs_engine_describe(engine, &info);
	assert_false(info.degraded);
	pfs_engine_close(engine);
}

/* The call that fails is one that some thread makes; the others ask meanwhile. */
static void a_device_that_fails(void **state)
{
	static const int failures[] = {-EIO, -ENOMEM};
	struct pfs_engine_info info;
	bool is_met;

	for (long n = 20; n < 2000; n += n * 2) {
		for (size_t f = 0; f < PFS_COUNT(failures); f++) {
			engine = open_case(state);
			may_fail = true;
			stand_in.failure = failures[f];
			if (is_stand_in(state))
				stand_in.calls_left = n;
			else
				pfs_cuda_fail_at(n);
			run_threads();
			is_met = is_stand_in(state) || pfs_cuda_fail_at(0) == 0;
			stand_in.calls_left = LONG_MAX;
			pfs_engine_describe(engine, &info);
			assert_true(info.degraded == is_met); /* the threads may make fewer calls than n */
			assert_string_equal(info.engine, is_met ? "host" : "cuda");
			assert_true(is_met || n > 1000);
			pfs_engine_close(engine);
		}
	}
	may_fail = false;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ON_EACH(two_questions),
		ON_EACH(questions_beside_changes),
		ON(cuda, a_device_that_fails),
		ON(stand_in, a_device_that_fails),
	};

	pfs_log_open((enum pfs_log_level)0, false); /* failures are a point here */
	return RUN_ON_ALL(tests, argc, argv);
}
