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

struct stand_in {
	struct pfs_backend base;
	struct pfs_backend *inner;
	struct pfs_engine_ops ops;
};

static long calls_left; /* the call that makes it 0 fails, and all after it */
static bool reads_fail;
static int failure;

static struct pfs_backend *inner(struct pfs_backend *b)
{
	return ((struct stand_in *)b)->inner;
}

static bool fails(void)
{
	return --calls_left <= 0;
}

/* One wrapper an operation: fails in its turn, else passes the call on. */
#define WRAP(name, parameters, arguments)                                                          \
	static int faulty_##name parameters                                                        \
	{                                                                                          \
		return fails() ? failure : inner(b)->ops->name arguments;                          \
	}
WRAP(load, (struct pfs_backend * b, const struct pfs_columns *c), (inner(b), c))
WRAP(apply,
     (struct pfs_backend * b, const struct pfs_columns *c, const struct pfs_changes *changes),
     (inner(b), c, changes))
WRAP(sync, (struct pfs_backend * b), (inner(b)))
WRAP(alloc, (struct pfs_backend * b, void **memory, size_t size), (inner(b), memory, size))
WRAP(write, (struct pfs_backend * b, void *memory, size_t offset, const void *in, size_t size),
     (inner(b), memory, offset, in, size))
WRAP(fill, (struct pfs_backend * b, uint32_t *bits, size_t words, uint64_t from, uint64_t to),
     (inner(b), bits, words, from, to))
WRAP(set, (struct pfs_backend * b, uint32_t *bits, size_t words, const uint32_t *slots, size_t n),
     (inner(b), bits, words, slots, n))
WRAP(combine,
     (struct pfs_backend * b, uint32_t *bits, size_t words, const uint32_t *other,
      size_t other_words, enum pfs_bitmap_op op),
     (inner(b), bits, words, other, other_words, op))
WRAP(count, (struct pfs_backend * b, uint64_t *count, const uint32_t *bits, size_t words),
     (inner(b), count, bits, words))
WRAP(gather,
     (struct pfs_backend * b, uint64_t *out, size_t *n, size_t capacity, const uint32_t *bits,
      size_t words, const struct pfs_wanted *wanted),
     (inner(b), out, n, capacity, bits, words, wanted))
WRAP(subtrees,
     (struct pfs_backend * b, uint32_t *const *bits, size_t words,
      const struct pfs_divisor *divisors, size_t n),
     (inner(b), bits, words, divisors, n))
WRAP(children,
     (struct pfs_backend * b, uint32_t *bits, size_t words, uint32_t directory, uint64_t from,
      uint64_t to),
     (inner(b), bits, words, directory, from, to))
WRAP(under_any,
     (struct pfs_backend * b, uint8_t *under, const uint32_t *slots, size_t n,
      const uint32_t *directories, size_t m),
     (inner(b), under, slots, n, directories, m))
WRAP(dividing,
     (struct pfs_backend * b, uint32_t *directories, size_t *n, size_t capacity,
      const uint32_t *limbs, size_t n_limbs),
     (inner(b), directories, n, capacity, limbs, n_limbs))
WRAP(find_prime, (struct pfs_backend * b, uint32_t *slot, uint64_t prime), (inner(b), slot, prime))
WRAP(rollup, (struct pfs_backend * b, int64_t *sums, const int64_t *values, size_t values_n),
     (inner(b), sums, values, values_n))
WRAP(codes, (struct pfs_backend * b, uint32_t *limbs, uint32_t *n_limbs, uint32_t first, size_t n),
     (inner(b), limbs, n_limbs, first, n))
WRAP(paths_open,
     (struct pfs_backend * b, struct pfs_paths **out, const struct pfs_paths_request *request),
     (inner(b), out, request))
WRAP(paths_next,
     (struct pfs_backend * b, struct pfs_paths *paths, const char **bytes, size_t *size),
     (inner(b), paths, bytes, size))

WRAP(probe,
     (struct pfs_backend * b, double *seconds, uint64_t *bytes, enum pfs_probe what,
      const struct pfs_divisor *divisors, size_t n),
     (inner(b), seconds, bytes, what, divisors, n))

/* What is there can mostly still be read. */
static int faulty_read(struct pfs_backend *b, void *out, const void *memory, size_t offset,
		       size_t size)
{
	if (fails() && reads_fail)
		return failure;
	return inner(b)->ops->read(inner(b), out, memory, offset, size);
}

static void faulty_release(struct pfs_backend *b, void *memory, size_t size)
{
	inner(b)->ops->release(inner(b), memory, size);
}

static void faulty_describe(struct pfs_backend *b, struct pfs_engine_info *info)
{
	inner(b)->ops->describe(inner(b), info);
}

static void faulty_paths_close(struct pfs_backend *b, struct pfs_paths *paths)
{
	inner(b)->ops->paths_close(inner(b), paths);
}

static void faulty_close(struct pfs_backend *b)
{
	inner(b)->ops->close(inner(b));
	free(b);
}

static const struct pfs_engine_ops faulty_ops = {
	.name = "faulty",
	.close = faulty_close,
	.describe = faulty_describe,
	.load = faulty_load,
	.apply = faulty_apply,
	.sync = faulty_sync,
	.alloc = faulty_alloc,
	.release = faulty_release,
	.read = faulty_read,
	.write = faulty_write,
	.fill = faulty_fill,
	.set = faulty_set,
	.combine = faulty_combine,
	.count = faulty_count,
	.gather = faulty_gather,
	.subtrees = faulty_subtrees,
	.children = faulty_children,
	.under_any = faulty_under_any,
	.dividing = faulty_dividing,
	.find_prime = faulty_find_prime,
	.rollup = faulty_rollup,
	.codes = faulty_codes,
	.paths_open = faulty_paths_open,
	.paths_next = faulty_paths_next,
	.paths_close = faulty_paths_close,
	.probe = faulty_probe,
};

static struct pfs_engine *open_stand_in(void)
{
	struct stand_in *device = calloc(1, sizeof(*device));
	struct pfs_engine *engine = NULL;

	assert_non_null(device);
	device->base.ops = &faulty_ops;
	assert_int_equal(pfs_host_open(&device->inner), 0);
	assert_int_equal(pfs_engine_open_backend(&engine, &device->base, true), 0);
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
		failure = failures[f];
		for (n = 1;; n++) {
			struct pfs_engine *engine = open_stand_in();
			bool left;

			calls_left = n;
			left = scenario(engine);
			pfs_engine_close(engine);
			if (!left)
				break;
		}
		assert_true(n > 100);
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
	failure = -EIO;
	reads_fail = true;
	calls_left = 1000;
	assert_int_equal(pfs_engine_load(engine, parent, prime, 2), 0);
	assert_int_equal(pfs_bitmap_of_slots(engine, &set, &root, 1), 0);
	calls_left = 1;
	assert_int_equal(pfs_bitmap_count(set, &count), -ESTALE);
	assert_int_equal(pfs_bitmap_of_slots(engine, &other, &root, 1), 0);
	assert_int_equal(pfs_bitmap_count(other, &count), 0);
	assert_int_equal(count, 1);
	pfs_bitmap_free(other);
	pfs_bitmap_free(set);
	pfs_engine_close(engine);
	reads_fail = false;
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
	assert_true(n > 100);
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
