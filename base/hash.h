/* SPDX-License-Identifier: MIT */
/* base/hash.h - a hash of 64-bit words under a seed, for tables in memory: whoever does not know
 * the seed cannot choose words whose hashes are near each other. It is quicker than SipHash, and
 * never stored. The function is compiled into kernels, too. */
#ifndef PFS_BASE_HASH_H
#define PFS_BASE_HASH_H

#include <stdint.h>

#include "base/both.h"

/* Returns the hash of some words and a further one; that of none is the seed. The halves of a
 * 64 x 64 -> 128 bit multiplication, by a number that only the seed tells, are folded together. */
PFS_BOTH uint64_t pfs_hash_word(uint64_t hash, uint64_t word, uint64_t seed)
{
	const uint64_t a = hash ^ word, b = seed ^ UINT64_C(0x9e3779b97f4a7c15);
#ifdef __CUDA_ARCH__
	return a * b ^ __umul64hi(a, b);
#else
	const __uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

/* Returns the hash of a number. After one multiplication numbers that follow each other would fill
 * stretches of a table. */
PFS_BOTH uint64_t pfs_hash_number(uint64_t number, uint64_t seed)
{
	return pfs_hash_word(pfs_hash_word(seed, number, seed), 0, seed);
}

#endif
