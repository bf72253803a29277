/* SPDX-License-Identifier: MIT */
#include "gpu/host/simd.h"

static void scan_tile_c(uint32_t *bits, const uint32_t *limbs, unsigned n_limbs,
			struct pfs_divisor divisor)
{
	for (unsigned w = 0; w < PFS_TILE_WORDS; w++) {
		uint32_t carry[32] = {0}, word = 0;

		for (unsigned l = 0; l < n_limbs; l++) {
			const uint32_t *row = limbs + (size_t)l * PFS_TILE_ROWS + (size_t)w * 32;

			for (unsigned i = 0; i < 32; i++)
				carry[i] = pfs_exact_step(carry[i], row[i], divisor);
		}
		for (unsigned i = 0; i < 32; i++)
			word |= (uint32_t)(carry[i] == 0) << i;
		bits[w] = word;
	}
}

static void gather_bits_c(uint32_t *bits, const uint32_t *index, size_t n, const uint32_t *table)
{
	for (size_t w = 0; w < n / 32; w++) {
		uint32_t word = 0;

		for (unsigned i = 0; i < 32; i++) {
			uint32_t at = index[w * 32 + i];

			word |= (table[at / 32] >> at % 32 & 1) << i;
		}
		bits[w] = word;
	}
}

static const struct pfs_simd portable = {
	.name = "portable",
	.scan_tile = scan_tile_c,
	.gather_bits = gather_bits_c,
};

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw")))

/* ---- AVX2: eight rows at a time ---- */

/* Returns the high halves of eight products of 32 by 32 bits: those of even lanes are shifted down,
 * those of odd lanes are in place. */
AVX2 static inline __m256i mul_high_8(__m256i a, __m256i b)
{
	__m256i even = _mm256_mul_epu32(a, b);
	__m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), b);

	return _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
}

/* There is no unsigned comparison, so limb >= carry is tested by the greater of the two being limb.
 */
AVX2 static inline __m256i exact_step_8(__m256i carry, __m256i limb, __m256i p, __m256i inverse)
{
	__m256i no_borrow = _mm256_cmpeq_epi32(_mm256_max_epu32(limb, carry), limb);
	__m256i q = _mm256_mullo_epi32(_mm256_sub_epi32(limb, carry), inverse);
	__m256i borrow = _mm256_add_epi32(no_borrow, _mm256_set1_epi32(1)); /* -1 + 1 or 0 + 1 */

	return _mm256_add_epi32(mul_high_8(q, p), borrow);
}

AVX2 static void scan_tile_avx2(uint32_t *bits, const uint32_t *limbs, unsigned n_limbs,
				struct pfs_divisor divisor)
{
	__m256i p = _mm256_set1_epi32((int)divisor.p);
	__m256i inverse = _mm256_set1_epi32((int)divisor.inverse);

	for (unsigned w = 0; w < PFS_TILE_WORDS; w++) {
		__m256i carry[4];
		uint32_t word = 0;

		for (unsigned k = 0; k < 4; k++)
			carry[k] = _mm256_setzero_si256();
		for (unsigned l = 0; l < n_limbs; l++) {
			const uint32_t *row = limbs + (size_t)l * PFS_TILE_ROWS + (size_t)w * 32;

			for (unsigned k = 0; k < 4; k++)
				carry[k] = exact_step_8(
					carry[k],
					_mm256_loadu_si256((const __m256i *)(row + 8 * k)), p,
					inverse);
		}
		for (unsigned k = 0; k < 4; k++) {
			__m256i zero = _mm256_cmpeq_epi32(carry[k], _mm256_setzero_si256());

			word |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(zero)) << 8 * k;
		}
		bits[w] = word;
	}
}

AVX2 static void gather_bits_avx2(uint32_t *bits, const uint32_t *index, size_t n,
				  const uint32_t *table)
{
	for (size_t w = 0; w < n / 32; w++) {
		uint32_t word = 0;

		for (unsigned k = 0; k < 4; k++) {
			__m256i at = _mm256_loadu_si256(
				(const __m256i *)(index + w * 32 + (size_t)8 * k));
			__m256i found = _mm256_i32gather_epi32((const int *)table,
							       _mm256_srli_epi32(at, 5), 4);

			/* Moves the bit to the top, where movemask looks. */
			found = _mm256_sllv_epi32(
				found,
				_mm256_sub_epi32(_mm256_set1_epi32(31),
						 _mm256_and_si256(at, _mm256_set1_epi32(31))));
			word |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(found)) << 8 * k;
		}
		bits[w] = word;
	}
}

static const struct pfs_simd avx2 = {
	.name = "AVX2",
	.scan_tile = scan_tile_avx2,
	.gather_bits = gather_bits_avx2,
};

/* ---- AVX-512: sixteen rows at a time ---- */

AVX512 static inline __m512i exact_step_16(__m512i carry, __m512i limb, __m512i p, __m512i inverse)
{
	__mmask16 borrow = _mm512_cmplt_epu32_mask(limb, carry);
	__m512i q = _mm512_mullo_epi32(_mm512_sub_epi32(limb, carry), inverse);
	__m512i even = _mm512_srli_epi64(_mm512_mul_epu32(q, p), 32);
	__m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(q, 32), p);
	__m512i high = _mm512_mask_mov_epi32(even, 0xaaaa, odd);

	return _mm512_mask_add_epi32(high, borrow, high, _mm512_set1_epi32(1));
}

AVX512 static void scan_tile_avx512(uint32_t *bits, const uint32_t *limbs, unsigned n_limbs,
				    struct pfs_divisor divisor)
{
	__m512i p = _mm512_set1_epi32((int)divisor.p);
	__m512i inverse = _mm512_set1_epi32((int)divisor.inverse);

	/* 64 rows at a time are four chains of dependent steps. */
	for (unsigned w = 0; w < PFS_TILE_WORDS; w += 2) {
		__m512i carry[4];

		for (unsigned k = 0; k < 4; k++)
			carry[k] = _mm512_setzero_si512();
		for (unsigned l = 0; l < n_limbs; l++) {
			const uint32_t *row = limbs + (size_t)l * PFS_TILE_ROWS + (size_t)w * 32;

			for (unsigned k = 0; k < 4; k++)
				carry[k] = exact_step_16(carry[k],
							 _mm512_loadu_si512(row + (size_t)16 * k),
							 p, inverse);
		}
		for (unsigned k = 0; k < 2; k++) {
			__mmask16 low = _mm512_testn_epi32_mask(carry[2 * k], carry[2 * k]);
			__mmask16 high =
				_mm512_testn_epi32_mask(carry[2 * k + 1], carry[2 * k + 1]);

			bits[w + k] = (uint32_t)low | (uint32_t)high << 16;
		}
	}
}

AVX512 static void gather_bits_avx512(uint32_t *bits, const uint32_t *index, size_t n,
				      const uint32_t *table)
{
	__m512i low_bits = _mm512_set1_epi32(31), one = _mm512_set1_epi32(1);

	for (size_t w = 0; w < n / 32; w++) {
		uint32_t word = 0;

		for (unsigned k = 0; k < 2; k++) {
			__m512i at = _mm512_loadu_si512(index + w * 32 + (size_t)16 * k);
			__m512i found = _mm512_i32gather_epi32(_mm512_srli_epi32(at, 5), table, 4);
			__m512i bit = _mm512_sllv_epi32(one, _mm512_and_si512(at, low_bits));

			word |= (uint32_t)_mm512_test_epi32_mask(found, bit) << 16 * k;
		}
		bits[w] = word;
	}
}

static const struct pfs_simd avx512 = {
	.name = "AVX-512",
	.scan_tile = scan_tile_avx512,
	.gather_bits = gather_bits_avx512,
};
#endif

const struct pfs_simd *pfs_simd_version(unsigned i)
{
	const struct pfs_simd *versions[4];
	unsigned n = 0;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw"))
		versions[n++] = &avx512;
	if (__builtin_cpu_supports("avx2"))
		versions[n++] = &avx2;
#endif
	versions[n++] = &portable;
	return i < n ? versions[i] : NULL;
}
