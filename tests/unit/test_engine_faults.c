/* SPDX-License-Identifier: MIT */
/* A device that fails at its n-th call, for every n: the engine goes on with the host back end and
 * the answers stay right.  The device is a stand-in over the host back end, and a real one if there
 * is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "gpu/engine_impl.h"
#include "tests/ref/compare.h"
#include "tests/ref/stand_in.h"

static struct pfs_engine *open_stand_in(void)
{
	struct pfs_backend *device = NULL;
	struct pfs_engine *engine = NULL;

	assert_int_equal(stand_in_open(&device), 0);
	assert_int_equal(pfs_engine_open_backend(&engine, device, true), 0);
	return engine;
}

/* A bit of everything, compared with the reference.  Returns whether the device was left. */
static bool scenario(struct pfs_engine *engine)
{
	struct pfs_engine_info info;
	struct pair p;

	pair_init(&p, engine, 11);
	ref_add(&p.ref, 0, REF_NONE, 2);
	for (uint32_t i = 1; i < 40; i++) {
		uint32_t parent = pair_random_node(&p, true);

		ref_add(&p.ref, i, parent, pair_prime(&p, pair_random(&p, 2)));
	}
	pair_load(&p);
	check_node(&p, 7);
	check_two(&p, 9, 30);
	pair_add(&p, 40, 0, true);
	pair_add(&p, 41, 40, false);
	check_node(&p, 41);
	pair_move(&p, pair_random_node(&p, true), 40);
	check_node(&p, pair_random_node(&p, true));
	check_whole(&p);
	assert_int_equal(pfs_engine_sync(engine), 0);
	pfs_engine_describe(engine, &info);
	pair_finish(&p);
	return info.degraded;
}

static void every_call_of_a_stand_in(void **state)
{
	static const int failures[] = {-EIO, -ENOMEM};
	long n = 1;

	(void)state;
	for (size_t f = 0; f < PFS_COUNT(failures); f++) {
		stand_in.failure = failures[f];
		for (n = 1;; n++) {
			struct pfs_engine *engine = open_stand_in();
			bool left;

			stand_in.calls_left = n;
			left = scenario(engine);
			pfs_engine_close(engine);
			if (!left)
				break;
		}
		assert_true(n > 50);
	}
	print_message("%ld calls\n", n - 1);
}

/* When not even the bits can be had from the device, a set that was there says so. */
static void lost_set(void **state)
{
	struct pfs_engine *engine = open_stand_in();
	const uint32_t parent[] = {PFS_NO_SLOT, 0}, root = 0;
	const uint64_t prime[] = {2, 3};
	struct pfs_bitmap *set, *other;
	uint64_t count;

	(void)state;
	stand_in.failure = -EIO;
	stand_in.reads_fail = true;
	stand_in.calls_left = 1000;
	assert_int_equal(pfs_engine_load(engine, parent, prime, 2), 0);
	assert_int_equal(pfs_bitmap_of_slots(engine, &set, &root, 1), 0);
	stand_in.calls_left = 1;
	assert_int_equal(pfs_bitmap_count(set, &count), -ESTALE);
	assert_int_equal(pfs_bitmap_of_slots(engine, &other, &root, 1), 0);
	assert_int_equal(pfs_bitmap_count(other, &count), 0);
	assert_int_equal(count, 1);
	pfs_bitmap_free(other);
	pfs_bitmap_free(set);
	pfs_engine_close(engine);
	stand_in.reads_fail = false;
}

static void every_call_of_a_real_device(void **state)
{
	long n;

	(void)state;
	for (n = 1;; n += 1 + n / 16) {
		struct pfs_engine *engine = NULL;
		bool left;

		if (pfs_engine_open(&engine, PFS_ENGINE_CUDA) == -ENODEV) {
			print_message("no CUDA device: skipped\n");
			skip();
		}
		assert_non_null(engine);
		pfs_cuda_fail_at(n);
		left = scenario(engine);
		pfs_cuda_fail_at(0);
		pfs_engine_close(engine);
		if (!left)
			break;
	}
	print_message("to call %ld\n", n);
	assert_true(n > 50);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_a_stand_in),
		cmocka_unit_test(lost_set),
		cmocka_unit_test(every_call_of_a_real_device),
	};

	pfs_log_open((enum pfs_log_level)0, false); /* failures are the point here */
	if (argc > 1)				    /* some of them: a pattern */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
