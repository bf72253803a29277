/* SPDX-License-Identifier: MIT */
/* Of ordered indexes what is a device's: the levels that the host keeps for it, each answer
 * compared with a walk through all fences, and a device, or the stand-in of one, that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gpu/engine_impl.h"
#include "gpu/index_upper.h"
#include "tests/ref/random.h"
#include "tests/unit/index_util.h"

#define ASKED 500u
#define MANY  200000u /* searches: of several milliseconds */

static const uint64_t seed = 0x5eed0055;

/* Fences, the least first: keys that repeat now and then where `values` ascend. */
static void make_fences(struct pfs_index_upper *upper, uint32_t n, bool is_unique, uint64_t *state)
{
	uint64_t key = 0;
	uint32_t value = 0;

	assert_int_equal(pfs_index_upper_reserve(upper, n), 0);
	for (uint32_t i = 0; i < n; i++) {
		upper->keys[i] = key;
		upper->values[i] = value;
		if (is_unique || random_below(state, 4) == 0) {
			key += random_below(state, 5) + 1;
			value = is_unique ? 0 : random_below(state, 3);
		} else {
			value += random_below(state, 3) + 1;
		}
	}
	pfs_index_upper_set(upper, n);
}

static uint32_t leaf_of(const struct pfs_index_upper *upper, uint64_t key, uint32_t value)
{
	uint32_t leaf = 0;

	for (uint32_t i = 1; i < upper->n[0]; i++)
		if (upper->keys[i] < key || (upper->keys[i] == key && upper->values[i] <= value))
			leaf = i;
	return leaf;
}

static int poll_times(void *context)
{
	unsigned *left = context;

	return (*left)-- ? 0 : -ETIMEDOUT;
}

static void assert_leaves(const struct pfs_index_upper *upper, uint64_t *state)
{
	const struct pfs_run run = {.poll = NULL};
	static const uint32_t values[] = {0, 1, 5, PFS_INDEX_NONE};
	uint64_t keys[ASKED], most = upper->keys[upper->n[0] - 1] + 3;
	uint32_t leaves[ASKED];

	for (size_t i = 0; i < ASKED; i++)
		keys[i] = random_next(state) % most;
	keys[ASKED - 1] = UINT64_MAX;
	for (size_t v = 0; v < PFS_COUNT(values); v++) {
		size_t n = v ? ASKED : ASKED - 7; /* not in whole groups */

		assert_int_equal(pfs_index_upper_find(upper, &run, leaves, keys, n, values[v]), 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(leaves[i], leaf_of(upper, keys[i], values[v]));
	}
}

/* Of every number of leaves about a node's and a level's, one after the other in the same
 * memory. */
static void leaves_of_pairs(void **state)
{
	static const uint32_t sizes[] = {1,   2,    15,	  16,	17,    31, 255, 256,
					 257, 4095, 4096, 4097, 70001, 3,  4097};
	struct pfs_index_upper upper = {0};
	uint64_t random = seed;

	(void)state;
	print_message("seed %#llx\n", (unsigned long long)seed);
	for (size_t i = 0; i < PFS_COUNT(sizes) * 2; i++) {
		make_fences(&upper, sizes[i / 2], i % 2, &random);
		assert_int_equal(upper.n[0], sizes[i / 2]);
		assert_true(upper.n[upper.top] <= 16);
		assert_leaves(&upper, &random);
		assert_true(pfs_index_upper_memory(&upper) >=
			    sizes[i / 2] * (sizeof(uint64_t) + sizeof(uint32_t)));
	}
	pfs_index_upper_free(&upper);
}

/* Whoever waits no longer has not to wait for all of many searches. */
static void many_searches_can_be_ended(void **state)
{
	unsigned left = 3;
	const struct pfs_run run = {.poll = poll_times, .context = &left};
	uint64_t *keys = calloc(MANY, sizeof(*keys)), random = seed;
	uint32_t *leaves = calloc(MANY, sizeof(*leaves));
	struct pfs_index_upper upper = {0};

	(void)state;
	assert_non_null(keys);
	assert_non_null(leaves);
	make_fences(&upper, 300, true, &random);
	assert_int_equal(pfs_index_upper_find(&upper, &run, leaves, keys, MANY, 0), -ETIMEDOUT);
	left = MANY;
	assert_int_equal(pfs_index_upper_find(&upper, &run, leaves, keys, MANY, 0), 0);
	assert_true(MANY - left > 3);
	pfs_index_upper_free(&upper);
	free(leaves);
	free(keys);
}

/* More room leaves what there is as it was. */
static void room_for_more(void **state)
{
	struct pfs_index_upper upper = {0};
	uint64_t random = seed;

	(void)state;
	make_fences(&upper, 300, true, &random);
	assert_int_equal(pfs_index_upper_reserve(&upper, 100000), 0);
	assert_leaves(&upper, &random);
	assert_int_equal(pfs_index_upper_reserve(&upper, 7), 0);
	assert_leaves(&upper, &random);
	pfs_index_upper_free(&upper);
}

/* Where all is on the host the choice changes nothing. */
static void without_device(void **state)
{
	static const uint64_t keys[] = {1, 5, 9};
	static const uint32_t values[] = {4, 3, 2};
	static const struct pfs_index_shape shape = {.kind = PFS_INDEX_UNIQUE,
						     .upper = PFS_INDEX_UPPER_HOST};
	struct pfs_run run = {.on = PFS_ENGINE_HOST};
	struct pfs_index_info info;
	struct pfs_index *index;
	uint32_t found[3];

	(void)state;
	assert_int_equal(pfs_operators_open(&run.operators, PFS_ENGINE_HOST, 1), 0);
	assert_int_equal(pfs_index_build(&run, &index, &shape, keys, values, 3), 0);
	assert_int_equal(pfs_index_find(&run, index, NULL, found, keys, 3, PFS_INDEX_EQUAL), 0);
	assert_memory_equal(found, values, sizeof(values));
	pfs_index_describe(index, &info);
	assert_string_equal(info.where, "host");
	assert_int_equal(info.upper_bytes, 0);
	pfs_index_close(&run, index);
	pfs_operators_close(run.operators);
}

#define DEVICE_CALLS 250 /* more than this makes */

static const uint64_t six_keys[] = {4, 8, 15, 16, 23, 42};

/* Builds an index of three keys, inserts three more and finds them; returns the first error after
 * it was built. */
static int insert_and_find(const struct pfs_run *run, struct pfs_index **index,
			   const struct pfs_index_shape *shape)
{
	static const uint32_t values[] = {1, 2, 3, 4, 5, 6};
	uint32_t found[6];
	uint64_t n;

	assert_int_equal(pfs_index_build(run, index, shape, six_keys, values, 3), 0);
	PFS_TRY(pfs_index_insert(run, *index, &n, six_keys, values, 6, PFS_INDEX_REFUSE));
	PFS_TRY(pfs_index_find(run, *index, NULL, found, six_keys, 6, PFS_INDEX_EQUAL));
	assert_memory_equal(found, values, sizeof(values));
	return 0;
}

/* Every call of the device failing in turn: an index that is built says so or goes to the host, and
 * one that is asked answers right or -EIO. */
static void device_faults(void **state)
{
	struct pfs_index_shape unique = {.kind = PFS_INDEX_UNIQUE};

	(void)state;
	for (long at = 2; at < 2 * DEVICE_CALLS; at++) {
		struct pfs_run run = run_at(ON_CUDA, 1);
		struct pfs_index *index;
		uint64_t n;
		int error;

		unique.upper = at % 2 ? PFS_INDEX_UPPER_HOST : PFS_INDEX_UPPER_BESIDE;
		pfs_cuda_fail_at(at / 2);
		error = insert_and_find(&run, &index, &unique);
		if (!error)
			error = pfs_index_remove(&run, index, &n, six_keys, NULL, 4);
		assert_true(error == 0 || error == -EIO);
		pfs_cuda_fail_at(0);
		pfs_index_close(&run, index);
		pfs_operators_close(run.operators);
	}
}

/* Each call of the stand-in failing in turn: one that is short of memory has the index go to the
 * host, with everything that it held; one that is lost has it answer right or -EIO, and from then
 * on -EIO. */
static void stand_in_faults(void **state)
{
	static const struct pfs_index_shape unique = {.kind = PFS_INDEX_UNIQUE};
	unsigned n_calls = 0;

	(void)state;
	for (unsigned at = 0; at <= 2 * n_calls + 1; at++) {
		struct pfs_run run = run_at(ON_STAND_IN, 1);
		struct pfs_index_list list = {0};
		struct pfs_index_info info;
		struct pfs_index *index;
		uint64_t n;
		int error;

		stand_in_operators.fail_at = at / 2;
		stand_in_operators.failure = at % 2 ? -EIO : -ENOMEM;
		error = insert_and_find(&run, &index, &unique);
		if (!error)
			error = pfs_index_range(&run, index, &list, 8, 23);
		if (!error)
			assert_int_equal(list.n, 4);
		pfs_index_list_free(&run, &list);
		if (!error)
			error = pfs_index_remove(&run, index, &n, six_keys, NULL, 4);
		if (!error)
			assert_int_equal(n, 4);
		if (at == 0)
			n_calls = stand_in_operators.indexed;
		pfs_index_describe(index, &info);
		if (at % 2 == 0)
			assert_int_equal(error, 0);
		assert_string_equal(info.where,
				    error || at < 2 || at / 2 > n_calls ? "cuda" : "host");
		if (error)
			assert_int_equal(pfs_index_remove(&run, index, &n, six_keys, NULL, 4),
					 -EIO);
		pfs_index_close(&run, index);
		pfs_operators_close(run.operators);
	}
	assert_true(n_calls >= 5); /* of build, insert, find, range, remove */
}

/* ---- so many questions that they are sorted first ---- */

#define PAIRS	  1700000u /* on more leaves than need no sort */
#define QUESTIONS 2000001u
#define LONGEST	  80000u /* entries of one key, which fill many leaves */

struct many {
	uint64_t *keys, *asked, *found_keys;
	uint32_t *values, *found;
};

/* Ascending; each key once, or for about `repeated` entries and one of them for LONGEST. */
static void make_many(struct many *m, uint32_t repeated, uint64_t *random)
{
	uint64_t key = 5;
	uint32_t left = 0;

	for (uint32_t i = 0; i < PAIRS; i++) {
		if (left == 0) {
			key += 1 + random_next(random) % ((uint64_t)1 << 40);
			left = repeated ? 1 + random_below(random, 2 * repeated) : 1;
			left = repeated && i > PAIRS / 2 && i < PAIRS / 2 + repeated ? LONGEST
										     : left;
		}
		left--;
		m->keys[i] = key;
		m->values[i] = i;
	}
	for (uint32_t i = 0; i < QUESTIONS; i++)
		m->asked[i] = m->keys[random_below(random, PAIRS)] + random_below(random, 3) - 1;
	m->asked[7] = 0;
	m->asked[8] = UINT64_MAX;
}

/* The first entry whose key is not less than `key`, or is greater. */
static uint32_t entry_of(const struct many *m, uint64_t key, bool is_greater)
{
	uint32_t from = 0, to = PAIRS;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (m->keys[middle] < key || (is_greater && m->keys[middle] == key))
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static void assert_answers(const struct pfs_run *run, struct pfs_index *index, struct many *m,
			   enum pfs_index_question question)
{
	assert_int_equal(
		pfs_index_find(run, index, m->found_keys, m->found, m->asked, QUESTIONS, question),
		0);
	for (uint32_t i = 0; i < QUESTIONS;
	     i += 1 + i % 5) { /* two of five: the search here takes long */
		uint32_t entry = entry_of(m, m->asked[i], question == PFS_INDEX_GREATER);
		bool is_there = entry < PAIRS &&
				(question != PFS_INDEX_EQUAL || m->keys[entry] == m->asked[i]);

		assert_int_equal(m->found[i], is_there ? m->values[entry] : PFS_INDEX_NONE);
		if (is_there)
			assert_int_equal(m->found_keys[i], m->keys[entry]);
	}
}

static void run_many_questions(uint32_t repeated, enum pfs_engine_kind kind)
{
	const struct pfs_index_shape shape = {.kind = repeated ? PFS_INDEX_DUPLICATES
							       : PFS_INDEX_UNIQUE};
	struct pfs_run run = {.on = kind, .operators = operators_or_skip(kind, 2)};
	struct many m = {room(PAIRS, 8), room(QUESTIONS, 8), room(QUESTIONS, 8), room(PAIRS, 4),
			 room(QUESTIONS, 4)};
	struct pfs_index *index;
	uint64_t random = seed;

	make_many(&m, repeated, &random);
	assert_int_equal(pfs_index_build(&run, &index, &shape, m.keys, m.values, PAIRS), 0);
	assert_answers(&run, index, &m, PFS_INDEX_EQUAL);
	assert_answers(&run, index, &m, PFS_INDEX_NOT_LESS);
	assert_answers(&run, index, &m, PFS_INDEX_GREATER);
	pfs_index_close(&run, index);
	pfs_operators_close(run.operators);
	free(m.keys);
	free(m.asked);
	free(m.found_keys);
	free(m.values);
	free(m.found);
}

ON_BOTH(many_questions, run_many_questions, 0)
ON_BOTH(many_questions_of_few_keys, run_many_questions, 1000)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_of_pairs), cmocka_unit_test(many_searches_can_be_ended),
		cmocka_unit_test(room_for_more),   cmocka_unit_test(without_device),
		cmocka_unit_test(device_faults),   cmocka_unit_test(stand_in_faults),
		BOTH(many_questions),		   BOTH(many_questions_of_few_keys),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
