/* SPDX-License-Identifier: MIT */
/* Every version of the scans' inner loops against plain ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/nodes/scan_simd.h"
#include "tests/ref/random.h"

#define WORDS 5u
#define N     (WORDS * 64u)

static uint64_t seed = 20260914;
static uint64_t random_state;

static uint64_t rnd64(void)
{
	return random_next(&random_state);
}

static uint32_t rnd(uint32_t n)
{
	return (uint32_t)(rnd64() % n);
}

static bool bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

/* Small, or near an end of its type. */
static int64_t any_i64(void)
{
	static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX};

	return rnd(3) ? (int64_t)rnd(8) - 4 : ends[rnd(PFS_COUNT(ends))];
}

static uint32_t any_u32(void)
{
	return rnd(3) ? rnd(8) : UINT32_MAX - rnd(4);
}

static void check_i64(const struct pfs_scan_simd *simd)
{
	int64_t values[N], low = any_i64(), high = any_i64();
	uint64_t bits[WORDS];

	for (size_t i = 0; i < N; i++)
		values[i] = any_i64();
	simd->between_i64(bits, values, WORDS, low, high);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(bit(bits, i), values[i] >= low && values[i] <= high);
}

static void check_u32(const struct pfs_scan_simd *simd)
{
	uint32_t values[N], a = any_u32(), b = any_u32();
	uint32_t low = PFS_MIN(a, b), high = PFS_MAX(a, b);
	uint64_t bits[WORDS];

	for (size_t i = 0; i < N; i++)
		values[i] = any_u32();
	simd->between_u32(bits, values, WORDS, low, high);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(bit(bits, i), values[i] >= low && values[i] <= high);
}

static void check_small(const struct pfs_scan_simd *simd)
{
	uint16_t modes[N], mask = (uint16_t)rnd(65536), wanted, types = (uint16_t)rnd(65536);
	uint64_t masked[WORDS], typed[WORDS];

	for (size_t i = 0; i < N; i++)
		modes[i] = (uint16_t)rnd(65536);
	wanted = modes[rnd(N)] & mask;
	simd->masked_u16(masked, modes, WORDS, mask, wanted);
	simd->type_u16(typed, modes, WORDS, types);
	for (size_t i = 0; i < N; i++) {
		assert_int_equal(bit(masked, i), (modes[i] & mask) == wanted);
		assert_int_equal(bit(typed, i), types >> (modes[i] >> 12) & 1);
	}
}

static void test_versions(void **state)
{
	const struct pfs_scan_simd *simd;

	(void)state;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (unsigned v = 0; (simd = pfs_scan_simd_version(v)); v++) {
		print_message("%s\n", simd->name);
		random_state = seed;
		for (int round = 0; round < 300; round++) {
			check_i64(simd);
			check_u32(simd);
			check_small(simd);
		}
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
