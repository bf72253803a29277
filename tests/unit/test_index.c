/* SPDX-License-Identifier: MIT */
/* Ordered indexes: one table of cases on the host, on the stand-in of a device and, where there is
 * one, on a device, each answer compared with a sorted array's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "tests/ref/random.h"
#include "tests/unit/index_util.h"

static const uint64_t seed = 0x5eed0005;

static void assert_range(struct pair_test *t, uint64_t first, uint64_t last)
{
	size_t from = ref_pairs_rank(&t->ref, first, 0);
	size_t to = ref_pairs_rank(&t->ref, last, PFS_INDEX_NONE), n = from < to ? to - from : 0;
	struct pfs_index_list list;

	assert_int_equal(pfs_index_range(&t->run, t->index, &list, first, last), 0);
	assert_int_equal(list.n, n);
	if (n) {
		assert_memory_equal(list.keys, &t->ref.keys[from], n * sizeof(*list.keys));
		assert_values(t, t->is_wide ? (void *)list.wide_values : list.values,
			      &t->ref.values[from], n);
	}
	pfs_index_list_free(&t->run, &list);
}

static struct pfs_index_list list_at(const struct pair_test *t, uint64_t *keys, void *values,
				     size_t n)
{
	struct pfs_index_list list = {.n = n};

	list.keys = keys;
	if (t->is_wide)
		list.wide_values = values;
	else
		list.values = values;
	return list;
}

/* From a cursor on to the end of the index, some entries at a time. */
static void assert_walk(struct pair_test *t, struct pfs_index_cursor cursor, size_t piece,
			enum pfs_index_direction direction)
{
	size_t at = ref_pairs_rank(&t->ref, cursor.key, (uint32_t)cursor.value), n = piece;
	uint64_t keys[64], values[64];

	assert_true(piece <= PFS_COUNT(keys));
	if (t->is_wide)
		cursor.value = wide_of((uint32_t)cursor.value);
	while (n == piece) {
		struct pfs_index_list list = list_at(t, keys, values, piece);
		size_t left = direction == PFS_INDEX_UP ? t->ref.n - at : at;

		assert_int_equal(pfs_index_read(&t->run, t->index, &cursor, &list, direction), 0);
		n = list.n;
		assert_int_equal(n, left < piece ? left : piece);
		for (size_t i = 0; i < n; i++) {
			size_t k = direction == PFS_INDEX_UP ? at++ : --at;

			assert_int_equal(keys[i], t->ref.keys[k]);
			assert_values(t, t->is_wide ? (void *)&values[i] : (uint32_t *)values + i,
				      &t->ref.values[k], 1);
		}
	}
}

static bool has_cursors(struct pair_test *t)
{
	struct pfs_index_info info;

	pfs_index_describe(t->index, &info);
	return strcmp(info.where, "host") == 0;
}

/* Up and down from the ends and from the middle; a device has no cursors. */
static void assert_walks(struct pair_test *t)
{
	struct pfs_index_cursor middle = PFS_INDEX_BEGIN;
	struct pfs_index_list none = {0};
	size_t half = t->ref.n / 2;

	assert_int_equal(pfs_index_read(&t->run, t->index, &middle, &none, PFS_INDEX_UP),
			 has_cursors(t) ? 0 : -EOPNOTSUPP);
	if (!has_cursors(t))
		return;
	if (t->ref.n) {
		middle.key = t->ref.keys[half];
		middle.value = t->ref.values[half] + (uint32_t)(half % 2);
	}
	assert_walk(t, PFS_INDEX_BEGIN, 64, PFS_INDEX_UP);
	assert_walk(t, PFS_INDEX_END, 64, PFS_INDEX_DOWN);
	assert_walk(t, PFS_INDEX_BEGIN, 3, PFS_INDEX_DOWN);
	assert_walk(t, PFS_INDEX_END, 3, PFS_INDEX_UP);
	assert_walk(t, middle, 61, PFS_INDEX_UP);
	assert_walk(t, middle, 61, PFS_INDEX_DOWN);
}

static void assert_finds(struct pair_test *t, const uint64_t *keys, size_t n)
{
	uint64_t *values = room(n, sizeof(*values)), *found = room(n, sizeof(*found));
	for (int question = PFS_INDEX_EQUAL; question <= PFS_INDEX_GREATER; question++) {
		assert_int_equal(pfs_index_find(&t->run, t->index, found, values, keys, n,
						(enum pfs_index_question)question),
				 0);
		for (size_t i = 0; i < n; i++) {
			uint64_t key = 0;
			uint32_t value = ref_pairs_find(&t->ref, &key, keys[i],
							(enum pfs_index_question)question);

			assert_values(t, t->is_wide ? (void *)&values[i] : (uint32_t *)values + i,
				      &value, 1);
			if (value != PFS_INDEX_NONE)
				assert_int_equal(found[i], key);
		}
	}
	free(values);
	free(found);
}

static void assert_same(struct pair_test *t)
{
	struct pfs_index_info info;

	assert_int_equal(pfs_index_verify(&t->run, t->index), 0);
	pfs_index_describe(t->index, &info);
	assert_int_equal(info.n, t->ref.n);
	assert_range(t, 0, UINT64_MAX);
	assert_walks(t);
}

/* ---- the cases ---- */

/* Every sequence of up to `most` keys from a small alphabet, inserted one by one or at once, asked
 * for everything, and a part of it removed. */
static void exhaustive(struct pair_test *t)
{
	static const uint64_t alphabet[] = {0, 1, 7, UINT64_MAX};
	static const uint64_t asked[] = {0, 1, 2, 6, 7, 8, UINT64_MAX - 1, UINT64_MAX};
	unsigned most = t->run.on == PFS_ENGINE_HOST ? 6 : 4;

	for (unsigned length = 0; length <= most; length++)
		for (unsigned code = 0; code < 1u << 2 * length; code++) {
			uint64_t keys[6];
			uint32_t values[6];

			for (unsigned i = 0; i < length; i++) {
				keys[i] = alphabet[code >> 2 * i & 3];
				values[i] = (code * 5 + i) % 3;
			}
			begin(t, code & 1 ? PFS_INDEX_UNIQUE : PFS_INDEX_DUPLICATES);
			if (code & 2)
					insert(t, keys, values, length,
				       code >> 2 & 1 ? PFS_INDEX_REPLACE : PFS_INDEX_REFUSE);
			else
				for (unsigned i = 0; i < length; i++)
					insert(t, &keys[i], &values[i], 1, PFS_INDEX_REPLACE);
			assert_same(t);
			assert_finds(t, asked, PFS_COUNT(asked));
			assert_range(t, 1, 7);
			remove_pairs(t, keys, values, length / 2);
			assert_same(t);
			assert_finds(t, asked, PFS_COUNT(asked));
			end(t);
		}
}

/* Built from every size about a page's and a level's, then asked at, before and after each key. */
static void built(struct pair_test *t)
{
	static const size_t sizes[] = {0,  1,  2,   23,	 24,  25,   31,	  32,	33,    47,    48,
				       49, 64, 383, 384, 385, 6143, 6144, 6145, 20000, 70001};

	for (size_t s = 0; s < PFS_COUNT(sizes) * 2; s++) {
		size_t n = sizes[s / 2], asked = n < 3000 ? 3 * n : 9000;
		uint64_t *keys = room(n, sizeof(*keys)), *ask = room(asked, sizeof(*ask));
		uint32_t *values = room(n, sizeof(*values));
		struct ref_pairs *ref = &t->ref;
		uint64_t state = seed + s;

		for (size_t i = 0; i < n; i++) {
			keys[i] = s % 2 ? i * 4 + 1 : i / 3 * 3;
			values[i] = (uint32_t)(s % 2 ? n - i : i);
		}
		*ref = (struct ref_pairs){.kind = s % 2 ? PFS_INDEX_UNIQUE : PFS_INDEX_DUPLICATES};
		assert_int_equal(ref_pairs_insert(ref, keys, values, n, PFS_INDEX_REFUSE), n);
		assert_int_equal(build_index(t, &t->index, ref->kind, keys, values, n), 0);
		assert_same(t);
		for (size_t i = 0; i < asked; i++)
			ask[i] = keys[n < 3000 ? i / 3 : random_next(&state) % n] + i % 3 - 1;
		assert_finds(t, ask, asked);
		for (size_t i = 0; n && i < 20; i++)
			assert_range(t, random_next(&state) % (n * 4),
				     random_next(&state) % (n * 4));
		end(t);
		free(keys);
		free(ask);
		free(values);
	}
}

/* Pairs for a batch of a test that mostly grows or mostly shrinks. */
struct made {
	uint64_t *keys, n_keys, state;
	uint32_t *values, n_values;
	size_t most;
};

static void make_pairs(struct made *made, const struct ref_pairs *ref, size_t n, bool grows)
{
	for (size_t i = 0; i < n; i++) {
		size_t any = ref->n ? random_next(&made->state) % ref->n : 0;
		bool known = ref->n && random_next(&made->state) % 8 > (grows ? 6 : 0);

		made->keys[i] = known ? ref->keys[any] : random_next(&made->state) % made->n_keys;
		made->values[i] = known && !grows ? ref->values[any]
						  : random_below(&made->state, made->n_values);
	}
}

/* Half of what is left, until nothing is. */
static void remove_all(struct pair_test *t, const struct made *made)
{
	struct pfs_index_info info;

	while (t->ref.n) {
		size_t n = t->ref.n / 2 + 1 < made->most ? t->ref.n / 2 + 1 : made->most;

		for (size_t i = 0; i < n; i++) {
			made->keys[i] = t->ref.keys[i * (t->ref.n / n)];
			made->values[i] = t->ref.values[i * (t->ref.n / n)];
		}
		remove_pairs(t, made->keys, made->values, n);
		assert_int_equal(pfs_index_verify(&t->run, t->index), 0);
		pfs_index_describe(t->index, &info);
		/* two neighbours that fit into one page do not both stay poor */
		assert_true(info.n_leaves <= t->ref.n / 8 + 2);
	}
}

static void random_batches(struct pair_test *t, enum pfs_index_kind kind, uint64_t n_keys,
			   uint32_t n_values, size_t most)
{
	struct made made = {room(most, sizeof(uint64_t)), n_keys,   seed + n_keys + most,
			    room(most, sizeof(uint32_t)), n_values, most};

	begin(t, kind);
	for (unsigned round = 0; round < 40; round++) {
		size_t n = random_next(&made.state) % most + 1;
		bool grows = random_next(&made.state) % 10 < (round / 10 % 2 ? 2 : 8);

		make_pairs(&made, &t->ref, n, grows);
		if (grows)
			insert(t, made.keys, made.values, n,
			       round % 3 ? PFS_INDEX_REPLACE : PFS_INDEX_REFUSE);
		else
			remove_pairs(t, made.keys, made.values, n);
		assert_same(t);
		assert_finds(t, made.keys, n);
		assert_range(t, made.keys[0], made.keys[n - 1]);
	}
	remove_all(t, &made);
	assert_same(t);
	end(t);
	free(made.keys);
	free(made.values);
}

static void random_cases(struct pair_test *t)
{
	print_message("seed %#llx\n", (unsigned long long)seed);
	random_batches(t, PFS_INDEX_UNIQUE, UINT64_MAX, UINT32_MAX, 7000);
	random_batches(t, PFS_INDEX_UNIQUE, 900, UINT32_MAX, 2000);
	random_batches(t, PFS_INDEX_UNIQUE, UINT64_MAX, UINT32_MAX, 40);
	random_batches(t, PFS_INDEX_DUPLICATES, UINT64_MAX, UINT32_MAX, 5000);
	random_batches(t, PFS_INDEX_DUPLICATES, 5, 20000, 5000); /* many values a key */
	random_batches(t, PFS_INDEX_DUPLICATES, 1, 30000, 3000);
	random_batches(t, PFS_INDEX_DUPLICATES, 3000, 3, 3000);
}

/* More entries than a core's cache has; keys of which some are there or come twice. */
static void large(struct pair_test *t)
{
	enum { N = 100000, MOST = 300 };
	struct made made = {room(N, 8), N * 4, seed, room(N, 4), 9, MOST};

	for (uint32_t i = 0; i < N; i++)
		made.keys[i] = i * 4;
	begin(t, PFS_INDEX_UNIQUE);
	insert(t, made.keys, made.values, N, PFS_INDEX_REFUSE);
	for (unsigned round = 0; round < 6; round++) {
		make_pairs(&made, &t->ref, MOST, round < 4);
		made.keys[MOST - 1] = made.keys[0];
		if (round < 4)
			insert(t, made.keys, made.values, MOST, (enum pfs_index_policy)(round % 2));
		else
			remove_pairs(t, made.keys, NULL, MOST);
		assert_finds(t, made.keys, MOST);
	}
	assert_same(t);
	end(t);
	free(made.keys);
	free(made.values);
}

/* Whole batches behind, before and between what is there. */
static void in_order(struct pair_test *t)
{
	enum { N = 30000 };
	static uint64_t keys[N];
	static uint32_t values[N];

	begin(t, PFS_INDEX_UNIQUE);
	for (uint64_t from = 10 * N; from > 6 * N; from -= N) {
		for (size_t i = 0; i < N; i++) {
			keys[i] = (from + i) * 2 + (from / N & 1 ? 0 : N);
			values[i] = (uint32_t)i;
		}
		insert(t, keys, values, N, PFS_INDEX_REFUSE);
		assert_same(t);
	}
	for (size_t i = 0; i < N; i++)
		keys[i] = UINT64_MAX - i;
	insert(t, keys, values, N, PFS_INDEX_REFUSE);
	assert_same(t);
	assert_finds(t, keys, N);
	end(t);
}

static void refusals(struct pair_test *t)
{
	static const uint64_t keys[] = {1, 3, 2}, equal[] = {5, 5};
	static const uint32_t values[] = {1, 2, 3}, none[] = {1, PFS_INDEX_NONE},
			      falling[] = {2, 1};
	struct pfs_index *index;
	uint64_t n;

	assert_int_equal(build_index(t, &index, PFS_INDEX_UNIQUE, keys, values, 3), -EINVAL);
	assert_int_equal(build_index(t, &index, PFS_INDEX_UNIQUE, equal, values, 2), -EINVAL);
	assert_int_equal(build_index(t, &index, PFS_INDEX_DUPLICATES, equal, falling, 2),
			 -EINVAL);
	assert_int_equal(build_index(t, &index, PFS_INDEX_UNIQUE, keys, none, 2), -EINVAL);
	t->page = PFS_INDEX_PAGE_LEAST - 1;
	assert_int_equal(build_index(t, &index, PFS_INDEX_UNIQUE, keys, values, 0), -EINVAL);
	t->page = PFS_INDEX_PAGE_MOST + 1;
	assert_int_equal(build_index(t, &index, PFS_INDEX_UNIQUE, keys, values, 0), -EINVAL);
	t->page = 0;
	begin(t, PFS_INDEX_UNIQUE);
	assert_int_equal(insert_into(t, &n, keys, none, 2, PFS_INDEX_REFUSE),
			 -EINVAL);
	assert_int_equal(remove_from(t, &n, keys, values, 2), -EINVAL);
	assert_int_equal(pfs_index_find(&t->run, t->index, NULL, NULL, NULL, SIZE_MAX,
					PFS_INDEX_EQUAL),
			 -EINVAL);
	assert_same(t);
	assert_range(t, 9, 3);
	end(t);
	begin(t, PFS_INDEX_DUPLICATES);
	assert_int_equal(remove_from(t, &n, keys, NULL, 2), -EINVAL);
	end(t);
}

/* A cursor on its way up, while what it has read goes and more comes before and behind it. */
static void changes_on_the_way(struct pair_test *t)
{
	struct pfs_index_cursor cursor = PFS_INDEX_BEGIN;
	uint64_t state = seed, last = 0, keys[16];
	uint32_t values[16] = {0};

	begin(t, PFS_INDEX_UNIQUE);
	for (uint32_t i = 0; i < 1000 && has_cursors(t); i++) {
		uint64_t read[5];
		struct pfs_index_list list = list_at(t, keys, read, PFS_COUNT(read));
		size_t at = ref_pairs_rank(&t->ref, cursor.key, cursor.value != 0);
		size_t left = t->ref.n - at;

		assert_int_equal(pfs_index_read(&t->run, t->index, &cursor, &list, PFS_INDEX_UP),
				 0);
		assert_int_equal(list.n, left < 5 ? left : 5);
		for (size_t k = 0; k < list.n; k++)
			assert_int_equal(keys[k], t->ref.keys[at + k]);
		last = list.n ? keys[list.n - 1] : last;
		remove_pairs(t, keys, NULL, list.n);
		for (size_t k = 0; k < PFS_COUNT(keys); k++) {
			keys[k] = random_next(&state) % (k % 2 ? last + 1 : last + 1000);
			values[k] = (uint32_t)k + i;
		}
		insert(t, keys, values, PFS_COUNT(keys), PFS_INDEX_REFUSE);
	}
	assert_same(t);
	end(t);
}

/* ---- pages ---- */

/* Of all sizes, as said; a device has its own, whatever is said. */
static void pages(struct pair_test *t)
{
	static const uint32_t sizes[] = {PFS_INDEX_PAGE_LEAST, 9, 30, 255, PFS_INDEX_PAGE_MOST};
	bool is_host = t->run.on == PFS_ENGINE_HOST;
	struct pfs_index_info info;

	for (size_t i = 0; i < (is_host ? PFS_COUNT(sizes) : 1); i++) {
		t->page = sizes[i];
		begin(t, PFS_INDEX_UNIQUE);
		pfs_index_describe(t->index, &info);
		assert_true(!is_host || info.page == sizes[i]);
		end(t);
		random_batches(t, PFS_INDEX_UNIQUE, UINT64_MAX, UINT32_MAX, 500 + 2 * sizes[i]);
		random_batches(t, PFS_INDEX_DUPLICATES, 5, 20000, 1000);
	}
	t->page = 0;
}

static void append(struct pair_test *t, size_t n)
{
	uint64_t *keys = room(n, sizeof(*keys));
	uint32_t *values = room(n, sizeof(*values));

	for (size_t i = 0; i < n; i++) {
		keys[i] = (t->ref.n + i) * 7;
		values[i] = (uint32_t)i;
	}
	insert(t, keys, values, n, PFS_INDEX_REFUSE);
	assert_same(t);
	free(keys);
	free(values);
}

/* The page is measured when there are entries enough, and when there are many more, and not in
 * between. */
static void measured_pages(struct pair_test *t)
{
	static const size_t steps[] = {1000, 64000, 600, 100000, 100000};
	static const uint32_t wanted[] = {0, 0, 1, 1, 2};
	struct pfs_index_info info;

	t->page = PFS_INDEX_MEASURED;
	begin(t, PFS_INDEX_UNIQUE);
	for (size_t i = 0; i < PFS_COUNT(steps) && t->run.on == PFS_ENGINE_HOST; i++) {
		append(t, steps[i]);
		pfs_index_describe(t->index, &info);
		assert_int_equal(info.measured, wanted[i]);
		assert_true(info.page == 62 ||
			    (wanted[i] && (info.page == 30 || info.page % 126 <= 2)));
	}
	end(t);
	t->page = 0;
}

/* ---- batches are steps ---- */

#define STEP_KEYS 3000u

struct steps {
	struct pair_test *t;
	atomic_bool done;
	atomic_uint bad, seen;
};

/* Every batch sets all values to its own number: a reader must never see two of them. */
static void *read_steps(void *context)
{
	struct steps *steps = context;
	uint64_t keys[256], values[256], last = 0;

	for (size_t i = 0; i < PFS_COUNT(keys); i++)
		keys[i] = i * (STEP_KEYS / PFS_COUNT(keys));
	while (!atomic_load(&steps->done)) {
		memset(values, 0, sizeof(values));
		if (pfs_index_find(&steps->t->run, steps->t->index, NULL, values, keys,
				   PFS_COUNT(keys), PFS_INDEX_EQUAL))
			atomic_fetch_add(&steps->bad, 1);
		for (size_t i = 0; i < PFS_COUNT(keys); i++)
			if (number_at(steps->t, values, i) != number_at(steps->t, values, 0) ||
			    number_at(steps->t, values, i) < last)
				atomic_fetch_add(&steps->bad, 1);
		last = number_at(steps->t, values, 0);
		atomic_fetch_add(&steps->seen, 1);
	}
	return NULL;
}

static void steps(struct pair_test *t)
{
	static uint64_t keys[STEP_KEYS];
	static uint32_t values[STEP_KEYS];
	struct steps steps = {.t = t};
	pthread_t threads[8];

	begin(t, PFS_INDEX_UNIQUE);
	memset(values, 0, sizeof(values)); /* the other back end's run has left its last step */
	for (uint32_t i = 0; i < STEP_KEYS; i++)
		keys[i] = i;
	insert(t, keys, values, STEP_KEYS, PFS_INDEX_REFUSE);
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_steps, &steps), 0);
	for (uint32_t step = 1; step < 60 || atomic_load(&steps.seen) < 50; step++) {
		for (uint32_t i = 0; i < STEP_KEYS; i++)
			values[i] = step;
		insert(t, keys, values, STEP_KEYS, PFS_INDEX_REPLACE);
	}
	atomic_store(&steps.done, true);
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&steps.bad), 0);
	assert_int_equal(pfs_index_verify(&t->run, t->index), 0);
	end(t);
}

/* Eight threads, each of which inserts, removes and asks for the same few keys in one batch: to
 * everybody they are all there, with one value, or none is; and each that came went once. */
struct few {
	struct pair_test *t;
	size_t n;
	atomic_uint bad, numbers;
	atomic_int there; /* keys that were added less those that were removed */
};

static void *change_few(void *context)
{
	static const uint64_t keys[6] = {0, 1, 1000, 1001, UINT64_MAX - 1, UINT64_MAX};
	struct few *few = context;
	uint32_t values[6], number = atomic_fetch_add(&few->numbers, 1);
	uint64_t state = seed + number, n = 0, found[6];

	for (uint32_t step = 0; step < 300; step++) {
		bool grows = random_next(&state) % 2;
		int error;

		for (size_t i = 0; i < few->n; i++)
			values[i] = number * 1000 + step;
		error = grows ? insert_into(few->t, &n, keys, values, few->n,
						 step % 2 ? PFS_INDEX_REPLACE : PFS_INDEX_REFUSE)
			      : remove_from(few->t, &n, keys, NULL, few->n);
		atomic_fetch_add(&few->there, grows ? (int)n : -(int)n);
		atomic_fetch_add(&few->bad, error || n % few->n);
		error = pfs_index_find(&few->t->run, few->t->index, NULL, found, keys, few->n,
				       PFS_INDEX_EQUAL);
		for (size_t i = 0; i < few->n; i++)
			atomic_fetch_add(&few->bad, error || number_at(few->t, found, i) !=
								    number_at(few->t, found, 0));
	}
	return NULL;
}

static void changes_of_eight(struct pair_test *t)
{
	for (size_t n = 1; n <= 6; n++) {
		struct few few = {.t = t, .n = n};
		struct pfs_index_info info;
		pthread_t threads[8];

		begin(t, PFS_INDEX_UNIQUE);
		for (size_t i = 0; i < PFS_COUNT(threads); i++)
			assert_int_equal(pthread_create(&threads[i], NULL, change_few, &few), 0);
		for (size_t i = 0; i < PFS_COUNT(threads); i++)
			assert_int_equal(pthread_join(threads[i], NULL), 0);
		pfs_index_describe(t->index, &info);
		assert_int_equal(atomic_load(&few.bad), 0);
		assert_int_equal(info.n, atomic_load(&few.there));
		assert_int_equal(pfs_index_verify(&t->run, t->index), 0);
		end(t);
	}
}

CASES(exhaustive)
CASES(built)
CASES(random_cases)
CASES(large)
CASES(in_order)
CASES(refusals)
CASES(changes_on_the_way)
CASES(pages)
CASES(measured_pages)
CASES(steps)
CASES(changes_of_eight)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		EACH(exhaustive),   EACH(built),
		EACH(random_cases), EACH(in_order),
		EACH(refusals),	    EACH(changes_on_the_way),
		EACH(pages),	    EACH(measured_pages),
		EACH(steps),	    EACH(changes_of_eight), EACH(large),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
