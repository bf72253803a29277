/* SPDX-License-Identifier: MIT */
#include "fs/nodes/scan_simd.h"

#include <string.h>

#include "base/checked.h"
#include "base/err.h"
#include "fs/image/names.h"

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

static bool has_c(const uint8_t *bytes, size_t size, const struct pfs_needle *needle)
{
	if (!needle->fold)
		return memmem(bytes, size, needle->text, needle->len) != NULL;
	for (size_t at = 0; at + needle->len <= size; at++)
		if (pfs_same_bytes(bytes + at, needle->text, needle->len, true))
			return true;
	return false;
}

static void keep_containing_c(uint64_t *bits, const uint8_t *heap, const uint32_t *place,
			      size_t words, const struct pfs_needle *needle)
{
	for (size_t w = 0; w < words; w++, place += 64) {
		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *name = heap + (size_t)place[i] * PFS_NAME_UNIT;

			if (!has_c(name + 1, name[0], needle))
				bits[w] &= ~(UINT64_C(1) << i);
		}
	}
}

static const struct pfs_scan_simd portable = {
	.name = "portable",
	.between_i64 = between_i64_c,
	.between_u32 = between_u32_c,
	.masked_u16 = masked_u16_c,
	.type_u16 = type_u16_c,
	.keep_containing = keep_containing_c,
	.has = has_c,
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

/* The needle's first and last byte, and the bit that folds each of them, if it is a letter. */
struct ends {
	__m256i first, last, first_fold, last_fold;
};

static uint8_t fold_of(uint8_t c)
{
	return c >= 'a' && c <= 'z' ? 0x20 : 0;
}

AVX2 static inline struct ends ends_of(const struct pfs_needle *needle)
{
	uint8_t first = needle->text[0], last = needle->text[needle->len - 1];

	return (struct ends){
		.first = _mm256_set1_epi8((char)first),
		.last = _mm256_set1_epi8((char)last),
		.first_fold = _mm256_set1_epi8(needle->fold ? (char)fold_of(first) : 0),
		.last_fold = _mm256_set1_epi8(needle->fold ? (char)fold_of(last) : 0),
	};
}

/* Loads a name's bytes, of which so many are left. What lies behind them may change while a frozen
 * tree is read; it is masked. */
AVX2 static inline __m256i load_text(const uint8_t *bytes, size_t left PFS_UNUSED)
{
#ifdef __SANITIZE_THREAD__
	uint8_t copy[32] = {0};

	memcpy(copy, bytes, PFS_MIN(left, sizeof(copy)));
	return load(copy);
#else
	return load(bytes); /* PFS_NAME_SLACK */
#endif
}

/* 32 places at a time: where first and last byte are right, the rest is looked at. */
AVX2 static inline bool contains_avx2(const uint8_t *bytes, size_t size, const struct pfs_needle *needle,
				      const struct ends *ends)
{
	ptrdiff_t last = (ptrdiff_t)size - (ptrdiff_t)needle->len; /* where it may begin */

	for (ptrdiff_t at = 0; at <= last; at += 32) {
		__m256i a =
			_mm256_or_si256(load_text(bytes + at, size - (size_t)at), ends->first_fold);
		__m256i b = _mm256_or_si256(
			load_text(bytes + at + needle->len - 1, (size_t)(last - at) + 1),
			ends->last_fold);
		__m256i both = _mm256_and_si256(_mm256_cmpeq_epi8(a, ends->first),
						_mm256_cmpeq_epi8(b, ends->last));
		uint32_t hits = (uint32_t)_mm256_movemask_epi8(both);

		if (last - at < 31)
			hits = _bzhi_u32(hits, (unsigned)(last - at) + 1);
		for (; hits; hits &= hits - 1)
			if (pfs_same_bytes(bytes + at + __builtin_ctz(hits), needle->text,
					   needle->len, needle->fold))
				return true;
	}
	return false;
}

AVX2 static void keep_containing_avx2(uint64_t *bits, const uint8_t *heap, const uint32_t *place,
				      size_t words, const struct pfs_needle *needle)
{
	struct ends ends = ends_of(needle);

	for (size_t w = 0; w < words; w++, place += 64) {
		uint64_t found = 0;

		for (uint64_t left = bits[w]; left; left &= left - 1) {
			unsigned i = (unsigned)__builtin_ctzll(left);
			const uint8_t *name = heap + (size_t)place[i] * PFS_NAME_UNIT;

			found |= (uint64_t)contains_avx2(name + 1, name[0], needle, &ends) << i;
		}
		bits[w] = found;
	}
}

AVX2 static bool has_avx2(const uint8_t *bytes, size_t size, const struct pfs_needle *needle)
{
	struct ends ends = ends_of(needle);

	return contains_avx2(bytes, size, needle, &ends);
}

static const struct pfs_scan_simd avx2 = {
	.name = "AVX2",
	.between_i64 = between_i64_avx2,
	.between_u32 = between_u32_avx2,
	.masked_u16 = masked_u16_avx2,
	.type_u16 = type_u16_avx2,
	.keep_containing = keep_containing_avx2,
	.has = has_avx2,
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
