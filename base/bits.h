/* SPDX-License-Identifier: MIT */
/* base/bits.h - counts bits. Threads: any number of callers. */
#ifndef PFS_BASE_BITS_H
#define PFS_BASE_BITS_H

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

#endif
