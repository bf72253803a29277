/* SPDX-License-Identifier: MIT */
/* base/siphash.h - SipHash-1-3 (Aumasson and Bernstein 2012): a keyed hash of bytes. Nobody can
 * choose inputs that collide without knowing the key. Threads: any number of callers. */
#ifndef PFS_BASE_SIPHASH_H
#define PFS_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/both.h"
#include "base/words.h"

PFS_BOTH uint64_t pfs_rotate_left(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

PFS_BOTH void pfs_sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = pfs_rotate_left(v[1], 13) ^ v[0];
	v[0] = pfs_rotate_left(v[0], 32);
	v[2] += v[3];
	v[3] = pfs_rotate_left(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = pfs_rotate_left(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = pfs_rotate_left(v[1], 17) ^ v[2];
	v[2] = pfs_rotate_left(v[2], 32);
}

PFS_BOTH void pfs_sip_begin(uint64_t v[4], uint64_t key0, uint64_t key1)
{
	v[0] = key0 ^ UINT64_C(0x736f6d6570736575);
	v[1] = key1 ^ UINT64_C(0x646f72616e646f6d);
	v[2] = key0 ^ UINT64_C(0x6c7967656e657261);
	v[3] = key1 ^ UINT64_C(0x7465646279746573);
}

PFS_BOTH void pfs_sip_word(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	pfs_sip_round(v);
	v[0] ^= word;
}

/* To be called when the last word has been added, which has the up to seven bytes behind the other
 * words, and the number of bytes in its highest byte. */
PFS_BOTH uint64_t pfs_sip_finish(uint64_t v[4])
{
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		pfs_sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

PFS_BOTH uint64_t pfs_siphash(const void *data, size_t len, uint64_t key0, uint64_t key1)
{
	struct pfs_words words = pfs_words_begin(data, len);
	uint64_t v[4];

	pfs_sip_begin(v, key0, key1);
	while (words.left >= 8)
		pfs_sip_word(v, pfs_words_next(&words));
	pfs_sip_word(v, pfs_words_next(&words) | (uint64_t)len << 56);
	return pfs_sip_finish(v);
}

#endif
