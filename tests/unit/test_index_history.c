/* SPDX-License-Identifier: MIT */
/* Batches of eight threads are steps in one order, in which whoever began after another had ended
 * comes behind him: what each saw, and when, is noted, and the notes are checked afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "tests/ref/random.h"
#include "tests/unit/index_util.h"

#define N_THREADS 8u
#define STEPS	  250u /* of a thread, at the most */
#define N_KEYS	  300u /* that each batch is about: several pages */
#define N_VALUES  (N_THREADS * STEPS + 1)

static const uint64_t seed = 0x5eed0056;
static uint32_t n_steps = STEPS;

/* A batch that set all keys to a value, or that found them with it. Value 0 was there before. */
struct step {
	uint64_t began, ended; /* by a clock that goes on at each look */
	uint32_t value;
	bool is_write;
};

struct history {
	struct pair_test *t;
	uint64_t keys[N_KEYS];
	atomic_uint_fast64_t clock;
	atomic_uint bad, n_threads, n_values;
	struct step steps[N_THREADS][STEPS];
};

static void write_all(struct history *history, struct step *step)
{
	uint32_t values[N_KEYS];
	uint64_t added;

	step->is_write = true;
	step->value = atomic_fetch_add(&history->n_values, 1) + 1;
	for (size_t i = 0; i < N_KEYS; i++)
		values[i] = step->value;
	step->began = atomic_fetch_add(&history->clock, 1);
	if (insert_into(history->t, &added, history->keys, values, N_KEYS, PFS_INDEX_REPLACE) ||
	    added)
		atomic_fetch_add(&history->bad, 1);
	step->ended = atomic_fetch_add(&history->clock, 1);
}

/* By searches or as a range, by turns; whatever is not the same of all keys is no step. */
static void read_all(struct history *history, struct step *step, bool as_range)
{
	struct pfs_index_list list = {0};
	struct pair_test *t = history->t;
	uint64_t found[N_KEYS] = {0}, value;
	const void *values = found;
	int error;

	step->began = atomic_fetch_add(&history->clock, 1);
	if (as_range)
		error = pfs_index_range(&t->run, t->index, &list, 0, UINT64_MAX);
	else
		error = pfs_index_find(&t->run, t->index, NULL, found, history->keys, N_KEYS,
				       PFS_INDEX_EQUAL);
	step->ended = atomic_fetch_add(&history->clock, 1);
	if (as_range)
		values = t->is_wide ? (void *)list.wide_values : list.values;
	if (error || (as_range && list.n != N_KEYS)) {
		atomic_fetch_add(&history->bad, 1);
		pfs_index_list_free(&t->run, &list);
		return;
	}
	value = number_at(t, values, 0);
	for (size_t i = 1; i < N_KEYS; i++)
		atomic_fetch_add(&history->bad, number_at(t, values, i) != value);
	step->value = (uint32_t)(t->is_wide ? value >> 33 << 4 | (value >> 28 & 15) : value);
	pfs_index_list_free(&t->run, &list);
}

static void *make_steps(void *context)
{
	struct history *history = context;
	uint32_t number = atomic_fetch_add(&history->n_threads, 1);
	uint64_t state = seed + number;

	for (uint32_t i = 0; i < n_steps; i++) {
		if (random_next(&state) % 3 == 0)
			write_all(history, &history->steps[number][i]);
		else
			read_all(history, &history->steps[number][i], i % 2);
	}
	return NULL;
}

/* All that is known of a value: it was there at least from first_end, when somebody had certainly
 * written or seen it, to last_begin, when somebody who saw it had not begun yet; or, if last_begin
 * is earlier, at some moment between the two. */
struct zone {
	uint64_t first_end, last_begin, written;
	bool is_known;
};

static void add_step(struct zone *zones, const struct step *step)
{
	struct zone *zone = &zones[step->value];

	assert_true(step->value < N_VALUES);
	if (!zone->is_known || step->ended < zone->first_end)
		zone->first_end = step->ended;
	if (!zone->is_known || step->began > zone->last_begin)
		zone->last_begin = step->began;
	if (step->is_write)
		zone->written = step->began;
	zone->is_known = true;
}

/* Two values cannot have been there at the same time, and none for a moment alone while another one
 * was. */
static bool can_both_be(const struct zone *a, const struct zone *b)
{
	if (a->first_end >=
	    a->last_begin) /* whatever b is, this is asked the other way round, too */
		return true;
	if (b->last_begin < b->first_end)
		return !(b->last_begin > a->first_end && b->first_end < a->last_begin);
	return b->first_end > a->last_begin || b->last_begin < a->first_end;
}

/* One order is possible if, and only if, this is so of any two, and none was seen before it was
 * being written (Gibbons and Korach 1997). */
static bool is_one_order(const struct zone *zones)
{
	for (size_t i = 0; i < N_VALUES; i++) {
		if (zones[i].is_known && zones[i].first_end <= zones[i].written)
			return false;
		for (size_t k = 0; k < N_VALUES && zones[i].is_known; k++)
			if (k != i && zones[k].is_known && !can_both_be(&zones[i], &zones[k]))
				return false;
	}
	return true;
}

/* What was there before anybody began. */
static void add_beginning(struct zone *zones)
{
	zones[0] = (struct zone){.first_end = 1, .is_known = true};
}

static void one_order(struct pair_test *t)
{
	struct history *history = room(1, sizeof(*history));
	struct zone *zones = room(N_VALUES, sizeof(*zones));
	uint32_t zeros[N_KEYS] = {0};
	pthread_t threads[N_THREADS];

	history->t = t;
	for (size_t i = 0; i < N_KEYS; i++)
		history->keys[i] = i * 7;
	assert_int_equal(build_index(t, &t->index, PFS_INDEX_UNIQUE, history->keys, zeros, N_KEYS),
			 0);
	atomic_store(&history->clock, 1);
	for (size_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_steps, history), 0);
	for (size_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&history->bad), 0);
	add_beginning(zones);
	for (size_t i = 0; i < N_THREADS; i++)
		for (size_t k = 0; k < n_steps; k++)
			add_step(zones, &history->steps[i][k]);
	assert_true(is_one_order(zones));
	pfs_index_close(&t->run, t->index);
	free(zones);
	free(history);
}

/* Histories that have no order are told from those that have one. */
static void the_check_finds_what_is_wrong(void **state)
{
	enum { WRITE = true, READ = false };
	static const struct {
		struct step steps[4];
		bool is_right;
	} cases[] = {
		{{{2, 3, 1, WRITE}, {4, 5, 2, WRITE}, {6, 7, 2, READ}, {8, 9, 2, READ}}, true},
		{{{2, 3, 1, WRITE}, {4, 5, 2, WRITE}, {6, 7, 1, READ}, {8, 9, 1, READ}},
		 false}, /* an old one */
		{{{2, 9, 1, WRITE}, {3, 8, 2, WRITE}, {4, 5, 2, READ}, {6, 7, 1, READ}}, true},
		{{{2, 3, 1, WRITE}, {4, 9, 2, WRITE}, {5, 6, 2, READ}, {7, 8, 1, READ}},
		 false}, /* back again */
		{{{4, 5, 1, WRITE}, {2, 3, 1, READ}, {6, 7, 1, READ}, {8, 9, 1, READ}},
		 false}, /* too soon */
		{{{2, 3, 1, WRITE}, {4, 5, 0, READ}, {6, 7, 1, READ}, {8, 9, 1, READ}},
		 false}, /* the beginning */
	};
	struct zone *zones = room(N_VALUES, sizeof(*zones));

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(cases); i++) {
		memset(zones, 0, N_VALUES * sizeof(*zones));
		add_beginning(zones);
		for (size_t k = 0; k < PFS_COUNT(cases[i].steps); k++)
			add_step(zones, &cases[i].steps[k]);
		assert_int_equal(is_one_order(zones), cases[i].is_right);
	}
	free(zones);
}

CASES(one_order)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_check_finds_what_is_wrong),
					   EACH(one_order)};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("PFS_TEST_SMALL"))
		n_steps = STEPS / 50;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
