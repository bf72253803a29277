/* SPDX-License-Identifier: MIT */
/* base/bits.h - counts and sets bits. Threads: any number of callers. */
#ifndef PFS_BASE_BITS_H
#define PFS_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns how many bits are 1. Unlike __builtin_popcountll this is no call: not every x86-64
 * processor has an instruction for it. */
static inline unsigned pfs_count_ones(uint64_t bits)
{
	bits -= bits >> 1 & UINT64_C(0x5555555555555555);
	bits = (bits & UINT64_C(0x3333333333333333)) + (bits >> 2 & UINT64_C(0x3333333333333333));
	bits = (bits + (bits >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	return (unsigned)(bits * UINT64_C(0x0101010101010101) >> 56);
}

/* A function that counts bits in a loop may be compiled once more, as PFS_COUNTS_ONES, with the
 * instruction. That one may be called if pfs_can_count_ones says so. */
#ifdef __x86_64__
#define PFS_COUNTS_ONES __attribute__((target("popcnt")))
#define pfs_can_count_ones() __builtin_cpu_supports("popcnt")
#else
#define PFS_COUNTS_ONES
#define pfs_can_count_ones() false
#endif

/* Sets the bits from..to, `to` not included. */
static inline void pfs_bits_fill(uint64_t *words, size_t from, size_t to)
{
	for (; from < to && from % 64; from++)
		words[from / 64] |= UINT64_C(1) << from % 64;
	for (; from + 64 <= to; from += 64)
		words[from / 64] = UINT64_MAX;
	for (; from < to; from++)
		words[from / 64] |= UINT64_C(1) << from % 64;
}

#endif
