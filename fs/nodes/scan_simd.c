/* SPDX-License-Identifier: MIT */
#include "fs/nodes/scan_simd.h"

#include "base/err.h"

/* ---- portable ---- */

static void between_i64_c(uint64_t *bits, const int64_t *values, size_t words, int64_t low,
			  int64_t high)
{
	for (size_t w = 0; w < words; w++) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i++) {
			int64_t value = values[w * 64 + i];

			word |= (uint64_t)(value >= low && value <= high) << i;
		}
		bits[w] = word;
	}
}

static void between_u32_c(uint64_t *bits, const uint32_t *values, size_t words, uint32_t low,
			  uint32_t high)
{
	for (size_t w = 0; w < words; w++) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i++)
			word |= (uint64_t)(values[w * 64 + i] - low <= high - low) << i;
		bits[w] = word;
	}
}

static void masked_u16_c(uint64_t *bits, const uint16_t *values, size_t words, uint16_t mask,
			 uint16_t wanted)
{
	for (size_t w = 0; w < words; w++) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i++)
			word |= (uint64_t)((values[w * 64 + i] & mask) == wanted) << i;
		bits[w] = word;
	}
}

static void type_u16_c(uint64_t *bits, const uint16_t *values, size_t words, uint16_t types)
{
	for (size_t w = 0; w < words; w++) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i++)
			word |= (uint64_t)(types >> (values[w * 64 + i] >> 12) & 1) << i;
		bits[w] = word;
	}
}

static const struct pfs_scan_simd portable = {
	.name = "portable",
	.between_i64 = between_i64_c,
	.between_u32 = between_u32_c,
	.masked_u16 = masked_u16_c,
	.type_u16 = type_u16_c,
};

/* ---- AVX2 ---- */

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2")))

AVX2 static inline __m256i load(const void *values)
{
	return _mm256_loadu_si256(values);
}

AVX2 static void between_i64_avx2(uint64_t *bits, const int64_t *values, size_t words, int64_t low,
				  int64_t high)
{
	__m256i from = _mm256_set1_epi64x(low), to = _mm256_set1_epi64x(high);

	for (size_t w = 0; w < words; w++, values += 64) {
		uint64_t outside = 0;

		for (unsigned i = 0; i < 64; i += 4) {
			__m256i value = load(values + i);
			__m256i out = _mm256_or_si256(_mm256_cmpgt_epi64(from, value),
						      _mm256_cmpgt_epi64(value, to));
			unsigned mask = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(out));

			outside |= (uint64_t)mask << i;
		}
		bits[w] = ~outside;
	}
}

AVX2 static void between_u32_avx2(uint64_t *bits, const uint32_t *values, size_t words,
				  uint32_t low, uint32_t high)
{
	__m256i from = _mm256_set1_epi32((int)low), span = _mm256_set1_epi32((int)(high - low));

	for (size_t w = 0; w < words; w++, values += 64) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i += 8) {
			__m256i value = _mm256_sub_epi32(load(values + i), from);
			__m256i in = _mm256_cmpeq_epi32(_mm256_min_epu32(value, span), value);
			unsigned mask = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(in));

			word |= (uint64_t)mask << i;
		}
		bits[w] = word;
	}
}

/* Two vectors of 16 words of 16 bits to one of 32 bytes, in order. */
AVX2 static inline __m256i pack(__m256i low, __m256i high)
{
	return _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
}

AVX2 static void masked_u16_avx2(uint64_t *bits, const uint16_t *values, size_t words,
				 uint16_t mask, uint16_t wanted)
{
	__m256i m = _mm256_set1_epi16((short)mask), want = _mm256_set1_epi16((short)wanted);

	for (size_t w = 0; w < words; w++, values += 64) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i += 32) {
			__m256i a = _mm256_and_si256(load(values + i), m);
			__m256i b = _mm256_and_si256(load(values + i + 16), m);
			__m256i in = pack(_mm256_cmpeq_epi16(a, want), _mm256_cmpeq_epi16(b, want));

			word |= (uint64_t)(uint32_t)_mm256_movemask_epi8(in) << i;
		}
		bits[w] = word;
	}
}

AVX2 static void type_u16_avx2(uint64_t *bits, const uint16_t *values, size_t words, uint16_t types)
{
	uint8_t table[32];
	__m256i has;

	for (unsigned i = 0; i < 32; i++)
		table[i] = types >> i % 16 & 1 ? 0xff : 0;
	has = load(table);
	for (size_t w = 0; w < words; w++, values += 64) {
		uint64_t word = 0;

		for (unsigned i = 0; i < 64; i += 32) {
			__m256i a = _mm256_srli_epi16(load(values + i), 12);
			__m256i b = _mm256_srli_epi16(load(values + i + 16), 12);
			__m256i in = _mm256_shuffle_epi8(has, pack(a, b));

			word |= (uint64_t)(uint32_t)_mm256_movemask_epi8(in) << i;
		}
		bits[w] = word;
	}
}

static const struct pfs_scan_simd avx2 = {
	.name = "AVX2",
	.between_i64 = between_i64_avx2,
	.between_u32 = between_u32_avx2,
	.masked_u16 = masked_u16_avx2,
	.type_u16 = type_u16_avx2,
};
#endif

const struct pfs_scan_simd *pfs_scan_simd_version(unsigned i)
{
	const struct pfs_scan_simd *versions[3];
	unsigned n = 0;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
	    __builtin_cpu_supports("bmi2"))
		versions[n++] = &avx2;
#endif
	versions[n++] = &portable;
	return i < n ? versions[i] : NULL;
}
