/* SPDX-License-Identifier: MIT */
/* The arithmetic of one element, against division; and every SIMD version against it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <gmp.h>

#include "gpu/host/simd.h"
#include "gpu/modexact.h"

static uint64_t state_ = 88172645463325252u;

static uint64_t next_random(void)
{
	state_ ^= state_ << 13;
	state_ ^= state_ >> 7;
	state_ ^= state_ << 17;
	return state_ >> 7;
}

static void inverses(void **state)
{
	(void)state;
	for (uint64_t p = 1; p < UINT64_C(1) << 32; p += 2 + (p >> 12) * 2)
		assert_int_equal((uint32_t)(pfs_divisor_of((uint32_t)p).inverse * (uint32_t)p), 1);
	assert_int_equal((uint32_t)(pfs_divisor_of(UINT32_MAX).inverse * UINT32_MAX), 1);
}

static void small_numbers(void **state)
{
	(void)state;
	for (uint32_t p = 1; p < 200; p += 2)
		for (uint32_t x = 0; x < 3000; x++)
			assert_int_equal(pfs_divides(pfs_divisor_of(p), &x, 1, 1), x % p == 0);
}

/* The largest divisors and limbs, where a carry that overflowed would show. */
static void edges(void **state)
{
	static const uint32_t edge[] = {0,	    1,		2,	    3,	       0x7fffffff,
					0x80000000, 0xfffffffb, 0xfffffffe, 0xffffffff};
	const size_t n = sizeof(edge) / sizeof(*edge);

	(void)state;
	for (size_t d = 1; d < n; d++) {
		uint32_t p = edge[d] | 1;

		for (size_t i = 0; i < n * n * n; i++) {
			uint32_t limbs[3] = {edge[i % n], edge[i / n % n], edge[i / n / n]};
			uint64_t r = 0;

			for (int l = 2; l >= 0; l--)
				r = (r << 32 | limbs[l]) % p;
			assert_int_equal(pfs_divides(pfs_divisor_of(p), limbs, 3, 1), r == 0);
		}
	}
}

static void fill_tile(uint32_t *limbs, unsigned n_limbs, uint32_t p)
{
	for (unsigned i = 0; i < PFS_TILE_ROWS; i++) {
		uint32_t number[PFS_LIMBS_MAX];

		for (unsigned l = 0; l < n_limbs; l++)
			number[l] = (uint32_t)next_random();
		if (i % 3 == 0) { /* a multiple */
			number[n_limbs - 1] = 0;
			number[n_limbs - 1] = pfs_multiply(number, n_limbs - 1, 1, p);
		}
		for (unsigned l = 0; l < n_limbs; l++)
			limbs[(size_t)l * PFS_TILE_ROWS + i] = number[l];
	}
}

static void tiles(void **state)
{
	static const unsigned widths[] = PFS_WIDTHS;
	uint32_t *limbs = malloc(sizeof(*limbs) * PFS_TILE_ROWS * PFS_LIMBS_MAX);
	uint32_t bits[PFS_TILE_WORDS], number[PFS_LIMBS_MAX];
	mpz_t x;

	(void)state;
	assert_non_null(limbs);
	mpz_init(x);
	for (unsigned w = 0; w < PFS_N_WIDTHS; w++) {
		for (unsigned round = 0; round < 8; round++) {
			struct pfs_divisor d = pfs_divisor_of(
				round == 0 ? 1 : (uint32_t)(next_random() >> (2 * round)) | 1);
			const struct pfs_simd *simd;

			fill_tile(limbs, widths[w], d.p);
			for (unsigned v = 0; (simd = pfs_simd_version(v)); v++) {
				simd->scan_tile(bits, limbs, widths[w], d);
				for (unsigned i = 0; i < PFS_TILE_ROWS; i++) {
					for (unsigned l = 0; l < widths[w]; l++)
						number[l] = limbs[(size_t)l * PFS_TILE_ROWS + i];
					mpz_import(x, widths[w], -1, 4, 0, 0, number);
					assert_int_equal(bits[i / 32] >> i % 32 & 1,
							 mpz_divisible_ui_p(x, d.p) != 0);
				}
			}
		}
	}
	mpz_clear(x);
	free(limbs);
}

static void gathers(void **state)
{
	enum { N = 4096, TABLE = 1000 };
	uint32_t index[N], table[TABLE], bits[N / 32];
	const struct pfs_simd *simd;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		index[i] = (uint32_t)(next_random() % (TABLE * 32));
	for (unsigned i = 0; i < TABLE; i++)
		table[i] = (uint32_t)next_random();
	for (unsigned v = 0; (simd = pfs_simd_version(v)); v++) {
		print_message("%s\n", simd->name);
		simd->gather_bits(bits, index, N, table);
		for (unsigned i = 0; i < N; i++)
			assert_int_equal(bits[i / 32] >> i % 32 & 1,
					 table[index[i] / 32] >> index[i] % 32 & 1);
	}
}

/* Factors one by one until a code is longer than any that is kept: its limbs are those that the
 * number needs, and its length lies where the logarithms put it. */
static void products(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 200; round++) {
		uint32_t limbs[PFS_LIMBS_MAX] = {1}, n = 1, last = UINT32_MAX;
		unsigned shift = round % 22; /* of up to 32 bits, or fewer */
		float sum = 0;
		mpz_t number;
		bool kept;

		mpz_init_set_ui(number, 1);
		do {
			/* Every third round the largest, whose products all but fill their limbs */
			uint32_t p = round % 3 ? ((uint32_t)next_random() >> shift) | 1 : last;
			double exponent_of_2, fraction;
			long exponent;

			last -= 2;
			mpz_mul_ui(number, number, p);
			sum += log2f((float)p);
			fraction = mpz_get_d_2exp(&exponent, number);
			exponent_of_2 = (double)exponent + log2(fraction);
			assert_true(pfs_bits_least(sum) <= exponent_of_2);
			assert_true(pfs_bits_most(sum) >= exponent_of_2);
			kept = pfs_multiply_on(limbs, &n, PFS_LIMBS_MAX, p);
			assert_int_equal(kept, mpz_sizeinbase(number, 2) <= 32 * PFS_LIMBS_MAX);
			assert_true(!kept || n == (mpz_sizeinbase(number, 2) + 31) / 32);
		} while (kept);
		assert_int_equal(n, PFS_LIMBS_MAX);
		mpz_clear(number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inverses), cmocka_unit_test(small_numbers),
		cmocka_unit_test(edges),    cmocka_unit_test(tiles),
		cmocka_unit_test(gathers),  cmocka_unit_test(products),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
