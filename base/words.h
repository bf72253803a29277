/* SPDX-License-Identifier: MIT */
/* base/words.h - bytes read by words of eight, the first byte in the lowest bits, wherever they
 * begin. A kernel reads whole aligned words, and so up to seven bytes beside those that it is asked
 * for, but never a word that has none of them. */
#ifndef PFS_BASE_WORDS_H
#define PFS_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/both.h"

/* Bytes that are read word by word. */
struct pfs_words {
	const unsigned char *at;
	size_t left;
	uint64_t here; /* a kernel's: the aligned word that has the next byte */
};

PFS_BOTH struct pfs_words pfs_words_begin(const void *p, size_t n)
{
	struct pfs_words words;

	words.at = (const unsigned char *)p;
	words.left = n;
	words.here = 0;
#ifdef __CUDA_ARCH__
	if (n)
		words.here = *(const uint64_t *)((uintptr_t)p & ~(uintptr_t)7);
#endif
	return words;
}

/* Returns the next eight bytes, or those that are left and zeros above them. */
PFS_BOTH uint64_t pfs_words_next(struct pfs_words *words)
{
	const size_t n = words->left < 8 ? words->left : 8;
	uint64_t word;

#ifdef __CUDA_ARCH__
	const unsigned shift = (unsigned)((uintptr_t)words->at & 7) * 8;
	uint64_t after = 0;

	if (shift + 8 * words->left > 64)
		after = *(const uint64_t *)(((uintptr_t)words->at & ~(uintptr_t)7) + 8);
	word = words->here >> shift | after << 1 << (63 - shift);
	if (n < 8)
		word &= (UINT64_C(1) << 8 * n) - 1;
	words->here = after;
#else
	word = 0;
	if (n == 8)
		memcpy(&word, words->at, 8);
	else
		for (size_t i = 0; i < n; i++)
			word |= (uint64_t)words->at[i] << 8 * i;
#endif
	words->at += n;
	words->left -= n;
	return word;
}

/* Returns true if the n bytes at a and those at b are the same. */
PFS_BOTH bool pfs_same_bytes(const void *a, const void *b, size_t n)
{
#ifdef __CUDA_ARCH__
	struct pfs_words x = pfs_words_begin(a, n), y = pfs_words_begin(b, n);

	while (x.left)
		if (pfs_words_next(&x) != pfs_words_next(&y))
			return false;
	return true;
#else
	return memcmp(a, b, n) == 0;
#endif
}

#endif
