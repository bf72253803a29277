/* SPDX-License-Identifier: MIT */
/* tests/ref/random.h - random numbers, the same for the same seed. */
#ifndef PFS_TESTS_REF_RANDOM_H
#define PFS_TESTS_REF_RANDOM_H

#include <stdint.h>

/* splitmix64's scrambling of a number. */
static inline uint64_t random_mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* The next number of the sequence that *state stands for. */
static inline uint64_t random_next(uint64_t *state)
{
	return random_mix(*state += UINT64_C(0x9e3779b97f4a7c15));
}

/* One below n, which is not 0. */
static inline uint32_t random_below(uint64_t *state, uint32_t n)
{
	return (uint32_t)(random_next(state) % n);
}

#endif
