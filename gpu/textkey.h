/* SPDX-License-Identifier: MIT */
/* gpu/textkey.h - texts as keys: a hash, and equality, by each collation, eight bytes at a time.
 * The same inline functions are compiled into the kernels, the host's tables, and a test that
 * compares them with gpu/host/text.h.
 *
 * On a device a text is read in aligned words of eight bytes: up to seven bytes before it and
 * behind it are read, too, and do not count. */
#ifndef PFS_GPU_TEXTKEY_H
#define PFS_GPU_TEXTKEY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "gpu/table.h"

#define PFS_EACH_BYTE UINT64_C(0x0101010101010101)

/* Returns the bytes of the text from `at`, which is below len, as the lowest ones of a word; its
 * other bytes are 0. */
PFS_BOTH uint64_t pfs_textkey_word(const uint8_t *text, uint32_t at, uint32_t len)
{
	const uint32_t n = len - at < 8 ? len - at : 8;
	uint64_t word = 0;

#ifdef __CUDA_ARCH__
	const uint32_t before = (uint32_t)((uintptr_t)(text + at) & 7);
	const unsigned long long *words =
		reinterpret_cast<const unsigned long long *>(text + at - before);

	word = __ldg(words) >> before * 8;
	if (before + n > 8) /* before is not 0 */
		word |= __ldg(words + 1) << (8 - before) * 8;
	return n == 8 ? word : word & ((UINT64_C(1) << n * 8) - 1);
#else
	/* Loads of a known size overlap, rather than one of a size that is not known. */
	if (len >= 8) {
		memcpy(&word, text + at + n - 8, 8);
		return word >> (64 - 8 * n);
	}
	if (n >= 4) { /* at is 0 */
		uint32_t first, last;

		memcpy(&first, text, 4);
		memcpy(&last, text + n - 4, 4);
		return first | (uint64_t)last << (n - 4) * 8;
	}
	/* cppcheck-suppress shiftTooManyBits ; at is below len, so that n is not 0 */
	return text[0] | (uint64_t)text[n / 2] << n / 2 * 8 | (uint64_t)text[n - 1] << (n - 1) * 8;
#endif
}

/* Makes ASCII capitals small letters. */
PFS_BOTH uint64_t pfs_textkey_lower(uint64_t word)
{
	const uint64_t low = word & PFS_EACH_BYTE * 0x7f;
	const uint64_t from_a = low + PFS_EACH_BYTE * (0x80 - 'A');
	const uint64_t behind_z = low + PFS_EACH_BYTE * (0x7f - 'Z');

	return word | ((from_a ^ behind_z) & ~word & PFS_EACH_BYTE * 0x80) >> 2;
}

/* Clears what stands behind a NUL, which SQLite's NOCASE does not compare; true: there is one. */
PFS_BOTH bool pfs_textkey_ends(uint64_t *word)
{
	uint64_t nul = (*word - PFS_EACH_BYTE) & ~*word & PFS_EACH_BYTE * 0x80;

	if (!nul)
		return false;
	*word &= (nul & -nul) - 1; /* its bits beside the NUL's are 0 */
	return true;
}

/* Returns how many bytes of a text count. */
PFS_BOTH uint32_t pfs_textkey_size(enum pfs_collation collation, const uint8_t *text, uint32_t len)
{
	while (collation == PFS_RTRIM && len && text[len - 1] == ' ')
		len--;
	return len;
}

/* Returns a hash under the seed that is the same for texts that are equal by the collation; len:
 * pfs_textkey_size. */
PFS_BOTH uint64_t pfs_textkey_hash(enum pfs_collation collation, const uint8_t *text, uint32_t len,
				   uint64_t seed)
{
	uint64_t hash = seed;
	bool ends = false;

	for (uint32_t at = 0; at < len && !ends; at += 8) {
		uint64_t word = pfs_textkey_word(text, at, len);

		if (collation == PFS_NOCASE) {
			ends = pfs_textkey_ends(&word);
			word = pfs_textkey_lower(word);
		}
		hash = pfs_hash_word(hash, word, seed);
	}
	return pfs_hash_word(hash, len, seed);
}

/* Returns true if the texts are equal by the collation; the lengths: pfs_textkey_size. */
PFS_BOTH bool pfs_textkey_equal(enum pfs_collation collation, const uint8_t *a, uint32_t a_len,
				const uint8_t *b, uint32_t b_len)
{
	bool ends = false;

	if (a_len != b_len)
		return false;
	for (uint32_t at = 0; at < a_len && !ends; at += 8) {
		uint64_t x = pfs_textkey_word(a, at, a_len), y = pfs_textkey_word(b, at, a_len);

		if (collation == PFS_NOCASE) {
			ends = pfs_textkey_ends(&x);
			if (ends != pfs_textkey_ends(&y))
				return false;
			x = pfs_textkey_lower(x);
			y = pfs_textkey_lower(y);
		}
		if (x != y)
			return false;
	}
	return true;
}

#endif
