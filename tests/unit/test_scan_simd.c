/* SPDX-License-Identifier: MIT */
/* Every version of the scans' inner loops against plain ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/checked.h"
#include "fs/image/names.h"
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

/* The heap: at each place a length byte, then the bytes, of few letters. */
static uint8_t heap[N * 256 + 512];
static uint32_t places[N];

static void fill_heap(void)
{
	uint32_t at = 1;

	for (size_t i = 0; i < N; i++) {
		uint32_t len = rnd(8) ? rnd(70) : rnd(256);

		if (at * PFS_NAME_UNIT + 260 > sizeof(heap) - 512)
			at = 1;
		places[i] = at;
		heap[(size_t)at * PFS_NAME_UNIT] = (uint8_t)len;
		for (uint32_t k = 1; k <= len; k++)
			heap[(size_t)at * PFS_NAME_UNIT + k] = (uint8_t) "abABc@`{["[rnd(9)];
		at += (len + 1 + PFS_NAME_UNIT) / PFS_NAME_UNIT;
	}
}

static bool contains(const uint8_t *name, const struct pfs_needle *needle)
{
	for (size_t at = 1; at + needle->len <= 1u + name[0]; at++)
		if (pfs_same_bytes(name + at, needle->text, needle->len, needle->fold))
			return true;
	return false;
}

static void check_names(const struct pfs_scan_simd *simd)
{
	uint8_t text[256];
	struct pfs_needle needle = {
		.text = text, .len = 1 + rnd(rnd(20) ? 4 : 255), .fold = rnd(2)};
	uint64_t bits[WORDS], before[WORDS];

	for (size_t i = 0; i < needle.len; i++)
		text[i] = (uint8_t) "abc@`{[AB"[rnd(needle.fold ? 7 : 9)];
	for (size_t w = 0; w < WORDS; w++)
		before[w] = bits[w] = rnd(4) ? rnd64() : 0;
	simd->keep_containing(bits, heap, places, WORDS, &needle);
	for (size_t i = 0; i < N; i++)
		assert_int_equal(bit(bits, i),
				 bit(before, i) && contains(heap + (size_t)places[i] * PFS_NAME_UNIT, &needle));
}

/* In many names at once, the needle being in one of them or across two. */
static void check_bytes(const struct pfs_scan_simd *simd)
{
	size_t at = rnd(sizeof(heap) - PFS_SCAN_SIMD_SLACK - 2000), size = rnd(2000), from = at;
	uint8_t text[64];
	struct pfs_needle needle = {.text = text, .len = 1 + rnd(rnd(20) ? 6 : 64), .fold = rnd(2)};
	bool there = false;

	memcpy(text, heap + at + rnd(2000), needle.len);
	for (size_t i = 0; i < needle.len && needle.fold; i++)
		text[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];
	for (; from + needle.len <= at + size && !there; from++)
		there = pfs_same_bytes(heap + from, text, needle.len, needle.fold);
	assert_int_equal(simd->has(heap + at, size, &needle), there);
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
			if (round % 30 == 0)
				fill_heap();
			check_i64(simd);
			check_u32(simd);
			check_small(simd);
			check_names(simd);
			check_bytes(simd);
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
