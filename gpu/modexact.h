/* SPDX-License-Identifier: MIT */
/* gpu/modexact.h - does a 32-bit odd number divide a code?  Decided without division: the
 * exact-division carry chain (Jebelean 1993; GMP's modexact), one multiply-low, one multiply-high
 * and a subtraction a limb.  The same inline functions are compiled into the kernels, the host back
 * end and the unit tests.
 *
 * Why it works: with inverse * p = 1 (mod 2^32), q = (limb - carry) * inverse is the limb that
 * makes q * p agree with limb - carry in the low 32 bits; what q * p has above them, plus the
 * borrow, is what must be taken from the next limb.  p divides the number exactly if nothing is
 * left to take after the last limb.  The carry stays below p, so the sum cannot overflow. */
#ifndef PFS_GPU_MODEXACT_H
#define PFS_GPU_MODEXACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/both.h"

/* p = 1 divides everything: that is how the root, whose factor 2 is not kept in codes, asks. */
struct pfs_divisor {
	uint32_t p, inverse;
};

PFS_BOTH uint32_t pfs_mul_high(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
	return __umulhi(a, b);
#else
	return (uint32_t)(((uint64_t)a * b) >> 32);
#endif
}

/* p odd.  3p ^ 2 is right in 5 bits; each Newton step doubles that. */
PFS_BOTH struct pfs_divisor pfs_divisor_of(uint32_t p)
{
	struct pfs_divisor d;
	uint32_t x = (3 * p) ^ 2;

	x *= 2 - p * x;
	x *= 2 - p * x;
	x *= 2 - p * x;
	d.p = p;
	d.inverse = x;
	return d;
}

PFS_BOTH uint32_t pfs_exact_step(uint32_t carry, uint32_t limb, struct pfs_divisor d)
{
	uint32_t borrow = limb < carry;
	uint32_t q = (limb - carry) * d.inverse;

	return pfs_mul_high(q, d.p) + borrow;
}

/* Limbs least significant first, `stride` apart. */
PFS_BOTH int pfs_divides(struct pfs_divisor d, const uint32_t *limbs, unsigned n, size_t stride)
{
	uint32_t carry = 0;

	for (unsigned l = 0; l < n; l++)
		carry = pfs_exact_step(carry, limbs[l * stride], d);
	return carry == 0;
}

/* limbs[0..n) *= p; returns the limb that does not fit (0 mostly). */
PFS_BOTH uint32_t pfs_multiply(uint32_t *limbs, unsigned n, size_t stride, uint32_t p)
{
	uint64_t carry = 0;

	for (unsigned l = 0; l < n; l++) {
		carry += (uint64_t)limbs[l * stride] * p;
		limbs[l * stride] = (uint32_t)carry;
		carry >>= 32;
	}
	return (uint32_t)carry;
}

/* limbs[0..*n) *= p, a limb longer where need be; false: that would be more than `most`. */
PFS_BOTH bool pfs_multiply_on(uint32_t *limbs, uint32_t *n, uint32_t most, uint32_t p)
{
	uint32_t carry = pfs_multiply(limbs, *n, 1, p);

	if (carry && *n == most)
		return false;
	if (carry)
		limbs[(*n)++] = carry;
	return true;
}

#endif
