/* SPDX-License-Identifier: MIT */
/* Prefix trees: what is refused, lists of payloads, damage that is found, dictionaries, readers
 * beside a writer, and devices that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/checked.h"
#include "gpu/engine_impl.h"
#include "gpu/prefix.h"
#include "each_util.h"

/* ---- on the host ---- */

static const struct pfs_prefix_shape plain = {PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 4, 0, 0};

static void open_host(struct pfs_run *run)
{
	*run = (struct pfs_run){.on = PFS_ENGINE_HOST};
	assert_int_equal(pfs_operators_open(&run->operators, PFS_ENGINE_HOST, 2), 0);
}

static void refusals(void **state)
{
	static const struct pfs_prefix_shape wrong[] = {
		{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 0, 0, 0},
		{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 9, 0, 0},
		{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 8, 40000, 0},
		{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 8, 1, 5000},
	};
	static uint8_t bytes[PFS_PREFIX_KEY_MAX + 1];
	const uint64_t at[] = {0, PFS_PREFIX_KEY_MAX + 1}, payload = 7;
	const struct pfs_prefix_keys keys = {bytes, at, 1}, integers = {&payload, NULL, 1};
	struct pfs_prefix *index;
	struct pfs_prefix_entry entry;
	struct pfs_prefix_list list;
	struct pfs_run run;
	uint32_t place;
	uint64_t n;

	(void)state;
	open_host(&run);
	for (size_t i = 0; i < PFS_COUNT(wrong); i++)
		assert_int_equal(pfs_prefix_create(&run, &index, &wrong[i]), -EINVAL);
	assert_int_equal(pfs_prefix_create(&run, &index, &plain), 0);
	assert_int_equal(pfs_prefix_insert(&run, index, &n, &keys, &payload), -ENAMETOOLONG);
	assert_int_equal(pfs_prefix_remove(&run, index, &n, &keys, &payload), -ENAMETOOLONG);
	assert_int_equal(pfs_prefix_get(&run, index, NULL, &place, &keys, PFS_PREFIX_SERIAL),
			 -ENAMETOOLONG);
	assert_int_equal(pfs_prefix_seek(index, &entry, &keys), -ENAMETOOLONG);
	assert_int_equal(pfs_prefix_scan(&run, index, &list, bytes, sizeof(bytes)), -ENAMETOOLONG);
	assert_int_equal(pfs_prefix_insert(&run, index, &n, &integers, &payload), -EINVAL);
	assert_int_equal(pfs_prefix_at(index, &entry, 0), -ESTALE);
	assert_int_equal(pfs_prefix_at(index, &entry, 100), -ESTALE);
	pfs_prefix_close(&run, index);
	pfs_operators_close(run.operators);
}

/* A payload that is there many times; places that outlive insertions but no removals. */
static void lists_of_payloads(void **state)
{
	static const uint64_t at[] = {0, 1, 2, 3, 4}, payloads[] = {5, 6, 5, 9};
	const struct pfs_prefix_keys keys = {"aaab", at, 4}, first = {"a", at, 1};
	const struct pfs_prefix_keys other = {"aa", (const uint64_t[]){0, 2}, 1};
	struct pfs_prefix_entry entry;
	struct pfs_prefix *index;
	struct pfs_run run;
	uint32_t place;
	uint64_t n, payload;

	(void)state;
	open_host(&run);
	assert_int_equal(pfs_prefix_create(&run, &index, &plain), 0);
	assert_int_equal(pfs_prefix_insert(&run, index, &n, &keys, payloads), 0);
	assert_int_equal(pfs_prefix_get(&run, index, &payload, &place, &first, PFS_PREFIX_SERIAL),
			 0);
	assert_int_equal(payload, 5);
	assert_int_equal(pfs_prefix_at(index, &entry, place), 1);
	assert_int_equal(pfs_prefix_next(index, &entry), 1);
	assert_int_equal(entry.payload, 6);
	assert_int_equal(pfs_prefix_insert(&run, index, &n, &other, &payloads[3]), 0);
	assert_int_equal(pfs_prefix_next(index, &entry), 1);
	assert_int_equal(entry.payload, 5);
	assert_int_equal(entry.len, 1);
	assert_int_equal(pfs_prefix_next(index, &entry), 1);
	assert_int_equal(entry.len, 2);
	assert_int_equal(pfs_prefix_remove(&run, index, &n, &first, payloads), 0);
	assert_int_equal(n, 1);
	assert_int_equal(pfs_prefix_next(index, &entry), -ESTALE);
	assert_int_equal(pfs_prefix_get(&run, index, &payload, &place, &first, PFS_PREFIX_SERIAL),
			 0);
	assert_int_equal(payload, 6);
	assert_int_equal(pfs_prefix_remove(&run, index, &n, &first, &payloads[3]), 0);
	assert_int_equal(n, 0);
	pfs_prefix_close(&run, index);
	pfs_operators_close(run.operators);
}

/* Any byte that is changed is found, and is no index. */
static void damage(void **state)
{
	static const uint64_t at[] = {0, 1, 3, 3}, payloads[] = {1, 2, 3};
	const struct pfs_prefix_keys keys = {"abc", at, 3};
	struct pfs_prefix *index, *back;
	struct pfs_run run;
	uint8_t *bytes;
	size_t size;
	uint64_t n;

	(void)state;
	open_host(&run);
	assert_int_equal(pfs_prefix_create(&run, &index, &plain), 0);
	assert_int_equal(pfs_prefix_insert(&run, index, &n, &keys, payloads), 0);
	assert_int_equal(pfs_prefix_write(&run, index, &bytes, &size), 0);
	pfs_prefix_close(&run, index);
	for (size_t i = 0; i < size; i += 1 + size / 300) {
		bytes[i] ^= 0x10;
		assert_int_equal(pfs_prefix_read(&run, &back, bytes, size), -EUCLEAN);
		assert_null(back);
		bytes[i] ^= 0x10;
	}
	for (size_t i = 0; i < size; i += 1 + size / 50)
		assert_int_equal(pfs_prefix_read(&run, &back, bytes, i), -EUCLEAN);
	assert_int_equal(pfs_prefix_read(&run, &back, bytes, size), 0);
	pfs_prefix_close(&run, back);
	free(bytes);
	pfs_operators_close(run.operators);
}

static int count_name(void *context, const char *name, struct pfs_prefix *index)
{
	(void)index;
	*(size_t *)context += strlen(name);
	return 0;
}

static void dictionary(enum pfs_engine_kind kind)
{
	struct pfs_run run = {.on = kind};
	struct pfs_prefix_names *names;
	struct pfs_prefix *indexes[40], *found;
	char name[300];
	size_t letters = 0;

	if (getenv("PFS_TEST_SMALL")) {
		print_message("a sanitizer has no address space for so many indexes at a time\n");
		skip();
	}
	if (pfs_operators_open(&run.operators, kind, 1))
		skip();
	assert_int_equal(pfs_prefix_names_create(&names), 0);
	assert_int_equal(pfs_prefix_names_find(&run, names, &found, "x"), 0);
	assert_null(found);
	for (size_t i = 0; i < PFS_COUNT(indexes); i++) {
		assert_int_equal(pfs_prefix_create(&run, &indexes[i], &plain), 0);
		(void)snprintf(name, sizeof(name), "index %zu", i);
		assert_int_equal(pfs_prefix_names_add(names, name, indexes[i]), 0);
		assert_int_equal(pfs_prefix_names_add(names, name, indexes[0]), -EEXIST);
	}
	assert_int_equal(pfs_prefix_names_remove(names, "index 7"), 0);
	assert_int_equal(pfs_prefix_names_remove(names, "index 7"), -ENOENT);
	for (size_t i = 0; i < PFS_COUNT(indexes); i++) {
		(void)snprintf(name, sizeof(name), "index %zu", i);
		assert_int_equal(pfs_prefix_names_find(&run, names, &found, name), 0);
		assert_ptr_equal(found, i == 7 ? NULL : indexes[i]);
	}
	assert_int_equal(pfs_prefix_names_each(names, count_name, &letters), 0);
	assert_int_equal(letters, 9 * strlen("index 1") + 30 * strlen("index 10"));
	memset(name, 'n', sizeof(name));
	name[256] = 0;
	assert_int_equal(pfs_prefix_names_add(names, name, indexes[0]), -ENAMETOOLONG);
	name[255] = 0;
	assert_int_equal(pfs_prefix_names_add(names, name, indexes[3]), 0);
	assert_int_equal(pfs_prefix_names_find(&run, names, &found, name), 0);
	assert_ptr_equal(found, indexes[3]);
	assert_int_equal(pfs_prefix_names_add(names, "", indexes[0]), -EINVAL);
	pfs_prefix_names_close(&run, names);
	for (size_t i = 0; i < PFS_COUNT(indexes); i++)
		pfs_prefix_close(&run, indexes[i]);
	pfs_operators_close(run.operators);
}

static void dictionary_host(void **state)
{
	(void)state;
	dictionary(PFS_ENGINE_HOST);
}

static void dictionary_cuda(void **state)
{
	(void)state;
	dictionary(PFS_ENGINE_CUDA);
}

/* ---- batches are steps ---- */

#define STEP_KEYS 200u
#define STEPS	  40u

struct steps {
	struct pfs_run *run;
	struct pfs_prefix *index;
	uint32_t keys[STEPS][STEP_KEYS];
	atomic_bool done;
	atomic_uint bad, seen;
};

/* A reader must see all keys of a step or none, and no step without the one before it. */
static void *read_steps(void *context)
{
	struct steps *steps = context;
	uint32_t places[STEP_KEYS];

	while (!atomic_load(&steps->done)) {
		unsigned missing = 0;

		for (unsigned step = STEPS; step-- > 0;) {
			const struct pfs_prefix_keys keys = {steps->keys[step], NULL, STEP_KEYS};
			unsigned n = 0;

			if (pfs_prefix_get(steps->run, steps->index, NULL, places, &keys,
					   PFS_PREFIX_SERIAL))
				atomic_fetch_add(&steps->bad, 1);
			for (size_t i = 0; i < STEP_KEYS; i++)
				n += places[i] != PFS_PREFIX_NONE;
			if ((n && n != STEP_KEYS) || (missing && n == 0))
				atomic_fetch_add(&steps->bad, 1);
			missing |= n != 0;
		}
		atomic_fetch_add(&steps->seen, 1);
	}
	return NULL;
}

static void threads_on(enum pfs_engine_kind kind)
{
	const struct pfs_prefix_shape shape = {PFS_PREFIX_U32, PFS_PREFIX_SIXTEEN, 4, 0, 0};
	static const uint64_t payloads[STEP_KEYS];
	static struct steps steps;
	struct pfs_run run = {.on = kind};
	pthread_t threads[8];
	uint64_t n;

	if (pfs_operators_open(&run.operators, kind, 2))
		skip();
	memset(&steps, 0, sizeof(steps));
	steps.run = &run;
	assert_int_equal(pfs_prefix_create(&run, &steps.index, &shape), 0);
	for (uint32_t i = 0; i < STEPS * STEP_KEYS; i++) /* an odd factor: no number twice */
		steps.keys[i % STEPS][i / STEPS] = i * 2654435761u;
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_steps, &steps), 0);
	for (unsigned step = 0; step < STEPS; step++) {
		const struct pfs_prefix_keys keys = {steps.keys[step], NULL, STEP_KEYS};

		while (atomic_load(&steps.seen) < step / 4) /* readers take part */
			(void)sched_yield();
		assert_int_equal(pfs_prefix_insert(&run, steps.index, &n, &keys, payloads), 0);
	}
	atomic_store(&steps.done, true);
	for (size_t i = 0; i < PFS_COUNT(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&steps.bad), 0);
	assert_int_equal(pfs_prefix_verify(steps.index), 0);
	pfs_prefix_close(&run, steps.index);
	pfs_operators_close(run.operators);
}

static void threads_host(void **state)
{
	(void)state;
	threads_on(PFS_ENGINE_HOST);
}

static void threads_cuda(void **state)
{
	(void)state;
	threads_on(PFS_ENGINE_CUDA);
}

/* ---- devices ---- */

#define DEVICE_CALLS 150 /* more than this makes */
#define TRAVERSALS   (PFS_PREFIX_PARALLEL + 1)

static const uint64_t three_at[] = {0, 1, 3, 6}, three_payloads[] = {10, 20, 30};
static const struct pfs_prefix_keys three = {"abbccc", three_at, 3};

static struct pfs_prefix *make_three(const struct pfs_run *run,
				     const struct pfs_prefix_shape *shape)
{
	struct pfs_prefix *index;
	uint64_t n;

	assert_int_equal(pfs_prefix_create(run, &index, shape), 0);
	assert_int_equal(pfs_prefix_insert(run, index, &n, &three, three_payloads), 0);
	return index;
}

/* Every traversal finds what is there, and that of a fourth key nothing is. */
static void ask_three(const struct pfs_run *run, struct pfs_prefix *index)
{
	static const uint64_t at[] = {0, 1, 3, 6, 9};
	const struct pfs_prefix_keys four = {"abbcccccd", at, 4};

	for (int traversal = PFS_PREFIX_SERIAL; traversal < TRAVERSALS; traversal++) {
		uint64_t got[4];
		uint32_t places[4];

		assert_int_equal(pfs_prefix_get(run, index, got, places, &four,
						(enum pfs_prefix_traversal)traversal),
				 0);
		assert_memory_equal(got, three_payloads, sizeof(three_payloads));
		assert_int_equal(places[3], PFS_PREFIX_NONE);
	}
}

/* Every call of the device failing in turn: the answers are the same, and the index goes on. */
static void device_faults(void **state)
{
	(void)state;
	for (long call = 1; call < DEVICE_CALLS; call++) {
		struct pfs_run run = run_at(ON_CUDA, 1);
		struct pfs_prefix *index;

		pfs_cuda_fail_at(call);
		index = make_three(&run, &plain);
		ask_three(&run, index);
		pfs_cuda_fail_at(0);
		pfs_prefix_close(&run, index);
		pfs_operators_close(run.operators);
	}
}

static void find_index(const struct pfs_run *run, struct pfs_prefix_names *names,
		       struct pfs_prefix *index)
{
	struct pfs_prefix *found;

	assert_int_equal(pfs_prefix_names_find(run, names, &found, "here"), 0);
	assert_ptr_equal(found, index);
	assert_int_equal(pfs_prefix_names_find(run, names, &found, "none"), 0);
	assert_null(found);
}

/* How many keys the stand-in looks up if its call of that number fails (0: none does): one that is
 * short of memory is not asked again until the index has been paged out; one that is lost answers
 * nothing any more. */
static uint64_t asked_at(unsigned call, int failure)
{
	const unsigned before = call ? PFS_MIN(call - 1, TRAVERSALS) : TRAVERSALS;

	return 4 * (before + (call == 0 || failure == -ENOMEM ? TRAVERSALS : 0));
}

/* Asks an index and a dictionary, and the index again after it was paged out. Returns the calls
 * that the stand-in had. */
static unsigned stand_in_fault(unsigned call, int failure, const struct pfs_prefix_shape *shape)
{
	struct pfs_run run = run_at(ON_STAND_IN, 1);
	struct pfs_prefix *index = make_three(&run, shape);
	struct pfs_prefix_names *names;
	struct pfs_prefix_info info;
	unsigned n_calls;

	assert_int_equal(pfs_prefix_names_create(&names), 0);
	assert_int_equal(pfs_prefix_names_add(names, "here", index), 0);
	stand_in_operators.fail_at = call;
	stand_in_operators.failure = failure;
	ask_three(&run, index);
	pfs_prefix_describe(index, &info);
	assert_string_equal(info.where, call >= 1 && call <= TRAVERSALS ? "host" : "cuda");
	find_index(&run, names, index);
	pfs_prefix_page_out(&run, index);
	ask_three(&run, index);
	n_calls = stand_in_operators.indexed;
	pfs_prefix_describe(index, &info);
	assert_int_equal(info.asked_on_device, asked_at(call, failure));
	assert_string_equal(info.where, call && failure == -EIO ? "host" : "cuda");
	pfs_prefix_names_close(&run, names);
	pfs_prefix_close(&run, index);
	pfs_operators_close(run.operators);
	return n_calls;
}

/* Each call of the stand-in failing in turn, for want of memory and for good: the answers are the
 * same. */
static void stand_in_faults(void **state)
{
	static const struct pfs_prefix_shape shapes[] = {
		{PFS_PREFIX_BYTES, PFS_PREFIX_ON_DEMAND, 4, 0, 0},
		{PFS_PREFIX_BYTES, PFS_PREFIX_SIXTEEN, 4, 0, 0},
		{PFS_PREFIX_BYTES, PFS_PREFIX_COMPACT, 2, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < PFS_COUNT(shapes); i++) {
		unsigned n_calls = stand_in_fault(0, 0, &shapes[i]);

		assert_int_equal(n_calls, 2 * TRAVERSALS + 2);
		for (unsigned call = 1; call <= TRAVERSALS + 2; call++) {
			(void)stand_in_fault(call, -ENOMEM, &shapes[i]);
			(void)stand_in_fault(call, -EIO, &shapes[i]);
		}
	}
}

/* The device answers, and not the host in its place. */
static void device_is_asked(void **state)
{
	struct pfs_run run = run_at(ON_CUDA, 1);
	struct pfs_prefix *index = make_three(&run, &plain);
	struct pfs_prefix_info info;

	(void)state;
	ask_three(&run, index);
	pfs_prefix_describe(index, &info);
	assert_string_equal(info.where, "cuda");
	assert_int_equal(info.asked_on_device, 4 * TRAVERSALS);
	pfs_prefix_page_out(&run, index);
	pfs_prefix_describe(index, &info);
	assert_string_equal(info.where, "host");
	pfs_prefix_close(&run, index);
	pfs_operators_close(run.operators);
}

/* With an argument, a pattern, only the tests that match it. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		BOTH(dictionary),
		BOTH(threads),
		cmocka_unit_test(refusals),
		cmocka_unit_test(lists_of_payloads),
		cmocka_unit_test(damage),
		cmocka_unit_test(device_faults),
		cmocka_unit_test(stand_in_faults),
		cmocka_unit_test(device_is_asked),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
