/* SPDX-License-Identifier: MIT */
/* gpu/host/text.h - texts as SQLite compares, matches and measures them. */
#ifndef PFS_GPU_HOST_TEXT_H
#define PFS_GPU_HOST_TEXT_H

#include <string.h>

#include "gpu/textmatch.h"
#include "gpu/run.h"

/* Compares two texts by the collation: below 0, 0 or above 0. */
int pfs_text_compare(enum pfs_collation collation, const uint8_t *a, size_t a_len, const uint8_t *b,
		     size_t b_len);

/* Returns a word that has each byte of a text of up to seven, some of them twice; its other bytes
 * are 1. */
static inline uint64_t pfs_text_short_word(const uint8_t *text, size_t len)
{
	uint64_t word = UINT64_C(0x0101010101010101);
	uint32_t first, last;

	if (len >= sizeof(first)) {
		memcpy(&first, text, sizeof(first));
		memcpy(&last, text + len - sizeof(last), sizeof(last));
		return first | (uint64_t)last << 32;
	}
	for (size_t i = 0; i < len; i++)
		word = word << 8 | text[i];
	return word;
}

/* Returns true if no byte of the word is NUL or beyond ASCII. */
static inline bool pfs_text_word_is_plain(uint64_t word)
{
	return !((word | (word - UINT64_C(0x0101010101010101))) & UINT64_C(0x8080808080808080));
}

/* Returns true if the text is ASCII without a NUL, eight bytes at a time. */
static inline bool pfs_text_is_plain(const uint8_t *text, size_t len)
{
	uint64_t word;

	if (len < sizeof(word))
		return pfs_text_word_is_plain(pfs_text_short_word(text, len));
	for (size_t at = 0; at < len - sizeof(word); at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		if (!pfs_text_word_is_plain(word))
			return false;
	}
	memcpy(&word, text + len - sizeof(word), sizeof(word));
	return pfs_text_word_is_plain(word);
}

/* Returns the number of characters as SQLite counts them, up to the first NUL. */
int64_t pfs_text_length(const uint8_t *text, size_t len);

/* Returns true if a step LIKE, GLOB, PREFIX, SUFFIX or CONTAINS matches the text. `match` is the
 * step's pattern, taken apart; if it is NULL, the step is a LIKE or GLOB, and its pattern is used
 * as it is. The steps that this takes are counted in `work`. */
bool pfs_text_matches(const struct pfs_step *step, const struct pfs_text_match *match,
		      const uint8_t *text, size_t len, struct pfs_run_work *work);

#endif
