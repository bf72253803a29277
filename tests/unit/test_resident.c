/* SPDX-License-Identifier: MIT */
/* The kernel that answers single questions, or a thread in its place: its answers beside a sorted
 * array and a walk, while changes come; how it leaves and starts again; and what follows when it
 * fails.  The same cases run on a device if there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "clock_util.h"

#include "base/btree.h"
#include "base/checked.h"
#include "gpu/engine_impl.h"
#include "gpu/resident.h"
#include "tests/ref/random.h"
#include "tests/ref/stand_in.h"
#include "tests/ref/stand_in_resident.h"

#define SLOTS 4000u
#define KEYS  700u /* fewer than slots: several of a key */
#define CHAIN (2 * PFS_MAILBOX_STEPS + 77)
#define NONE  PFS_MAILBOX_NONE

static const uint64_t seed = 0x5eed0014;

struct model {
	struct pfs_resident *resident;
	struct pfs_btree *index;
	uint32_t parent[SLOTS + CHAIN];
	uint64_t key[SLOTS]; /* of the slot's pair; UINT64_MAX: it has none */
	uint32_t end;
	uint64_t random;
};

typedef int (*open_fn)(struct pfs_resident **out);

static int open_stand_in(struct pfs_resident **out)
{
	struct pfs_resident_backend *backend;

	PFS_TRY(stand_in_resident_open(&backend));
	return pfs_resident_open_backend(out, backend);
}

static uint64_t random_key(struct model *m)
{
	return ((uint64_t)random_below(&m->random, 40) << 31) + random_below(&m->random, KEYS / 40);
}

/* ---- a tree of SLOTS nodes, some yet to come ---- */

static void fill(struct model *m)
{
	uint64_t keys[SLOTS];
	uint32_t slots[SLOTS];
	struct pfs_btree_cursor cursor;
	size_t n;

	m->random = seed;
	m->end = SLOTS / 2;
	assert_int_equal(pfs_btree_create(&m->index), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		m->parent[i] = i && i < m->end ? random_below(&m->random, i) : NONE;
		m->key[i] = i && i < m->end ? random_key(m) : UINT64_MAX;
		if (m->key[i] != UINT64_MAX)
			assert_int_equal(pfs_btree_insert(m->index, m->key[i], i), 0);
	}
	pfs_btree_seek(m->index, &cursor, 0, 0);
	n = pfs_btree_read(m->index, &cursor, keys, slots, SLOTS, UINT64_MAX);
	assert_int_equal(pfs_resident_load(m->resident,
					   &(struct pfs_resident_load){.parent = m->parent,
								       .n_slots = m->end,
								       .keys = keys,
								       .values = slots,
								       .n = n}),
			 0);
}

struct batch {
	uint64_t gone_keys[64], new_keys[64];
	uint32_t gone[64], fresh[64], slots[64], parents[64];
	size_t n_gone, n_new, n_slots;
};

static int by_pair(const void *a, const void *b, void *keys_of)
{
	const uint64_t *keys = keys_of;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	if (keys[x] != keys[y])
		return keys[x] < keys[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* n slots lose their pairs or get others, and another parent. */
static int change(struct model *m, unsigned n)
{
	uint32_t chosen[64], kept = 0;
	struct batch b = {.n_gone = 0};
	uint64_t old[SLOTS];

	m->end = PFS_MIN(m->end + n, SLOTS);
	memcpy(old, m->key, sizeof(old));
	for (unsigned i = 0; i < n; i++) {
		uint32_t slot = 1 + random_below(&m->random, m->end - 1);
		bool again = false;

		for (unsigned j = 0; j < kept; j++)
			again = again || chosen[j] == slot;
		if (again)
			continue;
		chosen[kept++] = slot;
		m->key[slot] = random_below(&m->random, 3) ? random_key(m) : UINT64_MAX;
		m->parent[slot] = random_below(&m->random, slot);
		b.slots[b.n_slots] = slot;
		b.parents[b.n_slots++] = m->parent[slot];
	}
	qsort_r(chosen, kept, sizeof(*chosen), by_pair, old);
	for (unsigned i = 0; i < kept; i++)
		if (old[chosen[i]] != UINT64_MAX && old[chosen[i]] != m->key[chosen[i]]) {
			b.gone_keys[b.n_gone] = old[chosen[i]];
			b.gone[b.n_gone++] = chosen[i];
			(void)pfs_btree_remove(m->index, old[chosen[i]], chosen[i]);
		}
	qsort_r(chosen, kept, sizeof(*chosen), by_pair, m->key);
	for (unsigned i = 0; i < kept; i++)
		if (m->key[chosen[i]] != UINT64_MAX) {
			b.new_keys[b.n_new] = m->key[chosen[i]];
			b.fresh[b.n_new++] = chosen[i];
			(void)!pfs_btree_insert(m->index, m->key[chosen[i]], chosen[i]);
		}
	return pfs_resident_apply(m->resident,
				  &(struct pfs_resident_changes){.gone_keys = b.gone_keys,
								 .new_keys = b.new_keys,
								 .gone_values = b.gone,
								 .new_values = b.fresh,
								 .n_gone = b.n_gone,
								 .n_new = b.n_new,
								 .slots = b.slots,
								 .parents = b.parents,
								 .n_slots = b.n_slots,
								 .end = m->end});
}

/* ---- questions, compared; 0 or the device's error ---- */

static int ask_entries(const struct model *m, uint64_t *random, enum pfs_mailbox_op op)
{
	uint64_t keys[PFS_MAILBOX_ENTRIES], first = ((uint64_t)random_below(random, 41) << 31) +
						    random_below(random, KEYS / 40 + 1);
	uint32_t slots[PFS_MAILBOX_ENTRIES];
	struct pfs_mailbox_question q = {
		.op = op,
		.first = first,
		.last = op == PFS_MAILBOX_LOOKUP ? first : first + random_below(random, 64),
		.value = random_below(random, 4) ? 0 : random_below(random, SLOTS),
		.capacity = 1 + random_below(random, PFS_MAILBOX_ENTRIES),
	};
	struct pfs_mailbox_answer answer;
	struct pfs_btree_cursor cursor;
	size_t n;

	if (op == PFS_MAILBOX_LIST && random_below(random, 4) == 0)
		q.last = UINT64_MAX;
	PFS_TRY(pfs_resident_ask(m->resident, &answer, &q, NULL));
	pfs_btree_seek(m->index, &cursor, q.first, q.value);
	n = pfs_btree_read(m->index, &cursor, keys, slots, q.capacity, q.last);
	assert_int_equal(answer.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(answer.keys[i], keys[i]);
		assert_int_equal(answer.values[i], slots[i]);
	}
	return 0;
}

static bool is_under(const struct model *m, uint32_t slot, uint32_t top)
{
	while (slot != top && slot != NONE)
		slot = m->parent[slot];
	return slot == top;
}

static int ask_ways(const struct model *m, uint64_t *random)
{
	uint32_t a = random_below(random, m->end), b = random_below(random, m->end), common;
	struct pfs_mailbox_question q = {.op = PFS_MAILBOX_CHILD, .a = a, .b = b};
	struct pfs_mailbox_answer answer;
	bool under;

	if (random_below(random, 2) && m->parent[a] != NONE)
		q.b = b = m->parent[a];
	PFS_TRY(pfs_resident_ask(m->resident, &answer, &q, NULL));
	assert_int_equal(answer.a, m->parent[a] == b);
	PFS_TRY(pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_ANCESTOR, a, b));
	assert_int_equal(under, is_under(m, a, b));
	PFS_TRY(pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_MOVE, b, a));
	assert_int_equal(under, is_under(m, b, a));
	PFS_TRY(pfs_resident_common(m->resident, &common, a, b));
	while (!is_under(m, b, a))
		a = m->parent[a];
	assert_int_equal(common, a);
	return 0;
}

static int ask_some(const struct model *m, uint64_t *random, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		PFS_TRY(ask_entries(m, random, PFS_MAILBOX_LOOKUP));
		PFS_TRY(ask_entries(m, random, PFS_MAILBOX_LIST));
		PFS_TRY(ask_ways(m, random));
	}
	return 0;
}

struct asker {
	pthread_t thread;
	const struct model *model;
	uint64_t random;
	int error;
};

static void *ask_in_thread(void *arg)
{
	struct asker *asker = arg;

	asker->error = ask_some(asker->model, &asker->random, getenv("PFS_TEST_SMALL") ? 10 : 40);
	return NULL;
}

static struct model *begin(open_fn open_it)
{
	struct pfs_resident *resident = NULL;
	struct model *m;

	if (open_it(&resident))
		skip();
	m = calloc(1, sizeof(*m));
	assert_non_null(m);
	m->resident = resident;
	fill(m);
	return m;
}

static void end(struct model *m)
{
	pfs_resident_close(m->resident);
	pfs_btree_destroy(m->index);
	free(m);
}

/* ---- the cases ---- */

static void follows_changes(open_fn open_it)
{
	struct model *m = begin(open_it);
	unsigned rounds = getenv("PFS_TEST_SMALL") ? 8 : 25;
	struct asker askers[8];

	print_message("seed %#llx\n", (unsigned long long)seed);
	for (unsigned round = 0; round < rounds; round++) {
		for (unsigned i = 0; i < PFS_COUNT(askers); i++) {
			askers[i] = (struct asker){.model = m, .random = random_next(&m->random)};
			assert_int_equal(pthread_create(&askers[i].thread, NULL, ask_in_thread,
							&askers[i]),
					 0);
		}
		for (unsigned i = 0; i < PFS_COUNT(askers); i++) {
			(void)pthread_join(askers[i].thread, NULL);
			assert_int_equal(askers[i].error, 0);
		}
		for (unsigned i = 0; i < 3; i++) /* edits of the kernel */
			assert_int_equal(change(m, 1 + i), 0);
		assert_int_equal(change(m, round % 3 == 2 ? 64 : 1 + round % 3 * 5), 0);
	}
	end(m);
}

/* Ways longer than the kernel goes at once. */
static void goes_long_ways(open_fn open_it)
{
	struct model *m = begin(open_it);
	uint32_t bottom = CHAIN - 1, common;
	bool under;

	for (uint32_t i = 0; i < CHAIN; i++)
		m->parent[i] = i ? i - 1 : NONE;
	m->parent[CHAIN] = 3; /* a branch far above */
	assert_int_equal(pfs_resident_load(m->resident,
					   &(struct pfs_resident_load){.parent = m->parent,
								       .n_slots = CHAIN + 1}),
			 0);
	assert_int_equal(
		pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_ANCESTOR, bottom, 0), 0);
	assert_true(under);
	assert_int_equal(
		pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_ANCESTOR, 0, bottom), 0);
	assert_false(under);
	assert_int_equal(
		pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_ANCESTOR, bottom, CHAIN), 0);
	assert_false(under);
	assert_int_equal(pfs_resident_common(m->resident, &common, bottom, CHAIN), 0);
	assert_int_equal(common, 3);
	assert_int_equal(pfs_resident_common(m->resident, &common, CHAIN, bottom), 0);
	assert_int_equal(common, 3);
	assert_int_equal(pfs_resident_common(m->resident, &common, bottom, 9), 0);
	assert_int_equal(common, 9);
	end(m);
}

static void leaves_and_starts_again(open_fn open_it)
{
	struct model *m = begin(open_it);
	struct pfs_resident_info info;

	assert_int_equal(ask_some(m, &m->random, 1), 0);
	for (int i = 0; i < 1000; i++) { /* 10 s, of which it takes a tenth of one */
		pfs_resident_describe(m->resident, &info);
		if (!info.is_running)
			break;
		(void)usleep(10000);
	}
	assert_false(info.is_running);
	assert_int_equal(ask_some(m, &m->random, 1), 0);
	pfs_resident_keep_away();
	pfs_resident_describe(m->resident, &info);
	assert_false(info.is_running);
	assert_int_equal(ask_some(m, &m->random, 5), 0);
	pfs_resident_come_back();
	assert_int_equal(ask_some(m, &m->random, 5), 0);
	pfs_resident_describe(m->resident, &info);
	assert_true(info.runs >= 4);
	assert_false(info.failed);
	end(m);
}

/* How long it took to leave, as is kept; a run may end by itself before it is told. 0: all did. */
static uint64_t leave_once(open_fn open_it)
{
	struct model *m = begin(open_it);
	struct pfs_resident_info info = {.leave_ns = 0};

	pfs_resident_describe(m->resident, &info);
	assert_int_equal(info.leave_ns, 0);
	for (int i = 0; i < 200 && !info.leave_ns; i++) {
		assert_int_equal(ask_some(m, &m->random, 1), 0);
		pfs_resident_keep_away();
		pfs_resident_come_back();
		pfs_resident_describe(m->resident, &info);
	}
	end(m);
	return info.leave_ns;
}

static int compare_ns(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Others may have the processor while one leaves, but hardly while each of nine does. Under tools
 * that run tests slowly, which have the small ones, it takes longer. */
static void time_to_leave(open_fn open_it)
{
	uint64_t ns[9];
	const uint64_t *median = &ns[PFS_COUNT(ns) / 2], *most = &ns[PFS_COUNT(ns) - 1];

	for (size_t i = 0; i < PFS_COUNT(ns); i++)
		ns[i] = leave_once(open_it);
	qsort(ns, PFS_COUNT(ns), sizeof(*ns), compare_ns);
	print_message("left after %.1f us, at most %.1f\n", (double)*median / 1e3,
		      (double)*most / 1e3);
	assert_true(ns[0] > 0);
	assert_true(ns[0] < (getenv("PFS_TEST_SMALL") ? 1000000000 : 1000000));
}

static void is_falsified(open_fn open_it)
{
	struct model *m = begin(open_it);
	struct pfs_mailbox_question q = {.op = PFS_MAILBOX_LIST, .last = UINT64_MAX, .capacity = 3};
	struct pfs_mailbox_answer answer;
	bool under;

	pfs_resident_falsify(m->resident, 1u << PFS_MAILBOX_LIST | 1u << PFS_MAILBOX_MOVE);
	assert_int_equal(pfs_resident_ask(m->resident, &answer, &q, NULL), 0);
	assert_int_equal(answer.n, 0);
	q.op = PFS_MAILBOX_LOOKUP;
	assert_int_equal(pfs_resident_ask(m->resident, &answer, &q, NULL), 0);
	assert_int_equal(answer.n, 3);
	assert_int_equal(pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_MOVE, 5, 0), 0);
	assert_false(under);
	assert_int_equal(pfs_resident_is_under(m->resident, &under, PFS_MAILBOX_ANCESTOR, 5, 0), 0);
	assert_true(under);
	end(m);
}

/* Whatever fails, no answer is wrong, and from then on there is none. */
static bool survives(open_fn open_it)
{
	struct model *m = calloc(1, sizeof(*m));
	struct pfs_resident_info info;
	int error = 0;

	assert_non_null(m);
	if (open_it(&m->resident)) {
		free(m);
		return false;
	}
	m->random = seed;
	m->end = 2;
	assert_int_equal(pfs_btree_create(&m->index), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		m->key[i] = UINT64_MAX;
		m->parent[i] = NONE;
	}
	m->parent[1] = 0;
	error = pfs_resident_load(m->resident,
				  &(struct pfs_resident_load){.parent = m->parent, .n_slots = 2});
	for (unsigned round = 0; round < 4 && !error; round++) {
		error = change(m, 40);
		error = error ? error : ask_some(m, &m->random, 2);
	}
	assert_true(error == 0 || error == -EIO || error == -ENOMEM);
	pfs_resident_describe(m->resident, &info);
	assert_int_equal(info.failed, error != 0);
	if (error)
		assert_int_equal(ask_some(m, &m->random, 1), error);
	end(m);
	return error;
}

static void every_call_of_a_stand_in(void **state)
{
	static const int failures[] = {-EIO, -ENOMEM};
	long n = 1;

	(void)state;
	for (size_t f = 0; f < PFS_COUNT(failures); f++) {
		stand_in.failure = failures[f];
		for (n = 1;; n++) {
			stand_in.calls_left = n;
			if (!survives(open_stand_in))
				break;
		}
		assert_true(n > 5);
	}
	stand_in.failure = -EIO;
	stand_in.calls_left = LONG_MAX;
}

static void every_call_of_a_device(void **state)
{
	unsigned met = 0;

	(void)state;
	if (access("/dev/nvidiactl", F_OK))
		skip();
	for (long n = 1; n <= 150; n += n < 40 ? 1 : 5) {
		pfs_cuda_fail_at(n);
		met += survives(pfs_resident_open);
	}
	pfs_cuda_fail_at(0);
	assert_true(met > 10);
}

/* A server that does not answer: the device counts as failed, and nobody waits for it again. */
static void silence_is_a_failure(void **state)
{
	uint64_t patience = stand_in_resident.patience_ns;
	struct model *m;
	int error = 0;

	(void)state;
	stand_in_resident.silent_after = 100;
	stand_in_resident.patience_ns = UINT64_C(300000000);
	m = begin(open_stand_in);
	for (unsigned i = 0; i < 100 && !error; i++)
		error = ask_some(m, &m->random, 1);
	assert_int_equal(error, -EIO);
	assert_int_equal(change(m, 5), -EIO);
	assert_int_equal(ask_some(m, &m->random, 1), -EIO);
	end(m);
	stand_in_resident.silent_after = -1;
	stand_in_resident.patience_ns = patience;
}

static void serves_in_slices(void **state)
{
	struct model *m;
	struct pfs_resident_info info;

	(void)state;
	stand_in_resident.in_slices = true;
	m = begin(open_stand_in);
	assert_int_equal(ask_some(m, &m->random, 20), 0);
	pfs_resident_describe(m->resident, &info);
	assert_true(info.runs > 1);
	end(m);
	stand_in_resident.in_slices = false;
}

static struct pfs_resident *being_loaded; /* NULL: nothing is asked of it then */
static unsigned told;

static void ask_amid(void)
{
	struct pfs_resident_info info = {.loads = 0};

	if (!being_loaded)
		return;
	pfs_resident_describe(being_loaded, &info);
	assert_int_equal(info.loads, 1); /* this one is not counted yet */
	assert_true(info.asked > 0);
	told++;
}

/* Who wants to know its figures does not wait for a load, but is told those of before. */
static void is_described_amid_a_load(void **state)
{
	const struct pfs_resident_load nothing = {.n = 0};
	struct pfs_resident_info info;
	struct model *m;

	(void)state;
	stand_in_resident.loading = ask_amid;
	m = begin(open_stand_in);
	assert_int_equal(ask_some(m, &m->random, 5), 0);
	pfs_resident_describe(m->resident, &info);
	assert_int_equal(info.loads, 1);
	being_loaded = m->resident;
	assert_int_equal(pfs_resident_load(m->resident, &nothing), 0);
	being_loaded = NULL;
	stand_in_resident.loading = NULL;
	assert_int_equal(told, 1);
	pfs_resident_describe(m->resident, &info);
	assert_int_equal(info.loads, 2);
	end(m);
}

/* Memory for lists, where it was refused, is asked for once in a while. */
static void asks_for_memory_once_in_a_while(void **state)
{
	struct model *m = begin(open_stand_in);
	struct pfs_resident_paths *taken[PFS_RESIDENT_LISTS], *none;

	(void)state;
	stand_in_resident.refused = PFS_RESIDENT_LISTS;
	stand_in_resident.asked = 0;
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(pfs_resident_paths_take(m->resident, &none), -ENOMEM);
	assert_int_equal(stand_in_resident.asked, 1);
	stand_in_resident.refused = PFS_RESIDENT_LISTS - 1;
	seconds_later = 60;
	stand_in_resident.asked = 0;
	assert_int_equal(pfs_resident_paths_take(m->resident, &taken[0]), 0);
	assert_int_equal(stand_in_resident.asked, 1);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(pfs_resident_paths_take(m->resident, &none), -EBUSY);
	assert_int_equal(stand_in_resident.asked, PFS_RESIDENT_LISTS);
	stand_in_resident.refused = 0;
	assert_int_equal(pfs_resident_paths_take(m->resident, &none), -EBUSY);
	seconds_later = 120;
	for (unsigned i = 1; i < PFS_RESIDENT_LISTS; i++)
		assert_int_equal(pfs_resident_paths_take(m->resident, &taken[i]), 0);
	for (unsigned i = 0; i < PFS_RESIDENT_LISTS; i++)
		pfs_resident_paths_return(m->resident, taken[i]);
	assert_int_equal(stand_in_resident.asked, 2 * PFS_RESIDENT_LISTS - 1);
	seconds_later = 0;
	end(m);
}

#define BOTH(name)                                                                                 \
	static void name##_stand_in(void **state)                                                  \
	{                                                                                          \
		(void)state;                                                                       \
		name(open_stand_in);                                                               \
	}                                                                                          \
	static void name##_device(void **state)                                                    \
	{                                                                                          \
		(void)state;                                                                       \
		name(pfs_resident_open);                                                           \
	}
BOTH(follows_changes)
BOTH(goes_long_ways)
BOTH(leaves_and_starts_again)
BOTH(time_to_leave)
BOTH(is_falsified)

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_changes_stand_in),
		cmocka_unit_test(goes_long_ways_stand_in),
		cmocka_unit_test(leaves_and_starts_again_stand_in),
		cmocka_unit_test(time_to_leave_stand_in),
		cmocka_unit_test(is_falsified_stand_in),
		cmocka_unit_test(every_call_of_a_stand_in),
		cmocka_unit_test(silence_is_a_failure),
		cmocka_unit_test(serves_in_slices),
		cmocka_unit_test(is_described_amid_a_load),
		cmocka_unit_test(asks_for_memory_once_in_a_while),
		cmocka_unit_test(follows_changes_device),
		cmocka_unit_test(goes_long_ways_device),
		cmocka_unit_test(leaves_and_starts_again_device),
		cmocka_unit_test(time_to_leave_device),
		cmocka_unit_test(is_falsified_device),
		cmocka_unit_test(every_call_of_a_device),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
