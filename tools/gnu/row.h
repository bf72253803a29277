/* SPDX-License-Identifier: MIT */
/* tools/gnu/row.h - a row of an answer taken apart, field by field from the left, where it lies: a
 * line of tab-separated values in which \t, \n, \r and \\ stand for such bytes.  What is missing is
 * "" or 0. */
#ifndef PFS_TOOLS_GNU_ROW_H
#define PFS_TOOLS_GNU_ROW_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PFS_ROW_SLACK 16 /* bytes that may be read beyond a line's end */

typedef uint8_t pfs_row_bytes __attribute__((vector_size(16)));

struct pfs_row {
	char *at;   /* the next field */
	bool ended; /* by a text, whose NUL at is */
};

/* The first of sixteen bytes that is set; 16: none is. */
static inline size_t pfs_row_first(pfs_row_bytes set)
{
#ifdef __SSE2__
	unsigned mask = (unsigned)_mm_movemask_epi8((__m128i)set);

	return mask ? (size_t)__builtin_ctz(mask) : sizeof(set);
#else
	uint64_t half[2];

	(void)memcpy(half, &set, sizeof(half));
	if (half[0])
		return (size_t)__builtin_ctzll(le64toh(half[0])) / 8;
	return half[1] ? 8 + (size_t)__builtin_ctzll(le64toh(half[1])) / 8 : sizeof(set);
#endif
}

/* Undoes what stands for other bytes in the field: what is left ends where that did, at *end.
 * Returns where it begins. */
char *pfs_row_unescape(char *text, char **end);

/* NUL-terminated, in place: the next field begins after the NUL. */
static inline char *pfs_row_text(struct pfs_row *row, size_t *size)
{
	char *text = row->at, *end = text;
	pfs_row_bytes bytes;
	size_t n = row->ended ? 0 : sizeof(bytes);

	for (; n == sizeof(bytes); end += n) {
		(void)memcpy(&bytes, end, sizeof(bytes));
		n = pfs_row_first((bytes == '\t') | (bytes == '\n') | (bytes == '\\'));
	}
	if (*end == '\\')
		text = pfs_row_unescape(text, &end);
	row->ended |= *end == '\n';
	row->at = end + !row->ended;
	*end = 0;
	*size = (size_t)(end - text);
	return text;
}

/* The first byte of a text, which is all that it should have. */
static inline char pfs_row_letter(struct pfs_row *row)
{
	char letter = *row->at;
	size_t size;

	if (letter <= '\n' || row->at[1] != '\t')
		return *pfs_row_text(row, &size);
	row->at += 2;
	return letter;
}

/* Adds eight digits to the number at once, if there are as many.  Their values are brought together
 * in pairs, then in fours, then all of them. */
static inline bool pfs_row_eight(const char *at, uint64_t *n)
{
	const uint64_t ones = UINT64_MAX / 255;
	uint64_t word;

	(void)memcpy(&word, at, sizeof(word));
	word = le64toh(word) - '0' * ones;
	if (((word + 118 * ones) | word) & ones << 7) /* some is no digit */
		return false;
	word = word * 10 + (word >> 8);
	word = (((word & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
		((word >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001))) >> 32;
	*n = *n * 100000000 + word;
	return true;
}

/* Decimal; modulo 2^64 what is too large.  What tends to be long is taken in eights first. */
static inline uint64_t pfs_row_digits(struct pfs_row *row, bool is_long)
{
	const char *at = row->at;
	const bool negative = *at == '-';
	unsigned digit;
	uint64_t n = 0;

	at += negative;
	while (is_long && pfs_row_eight(at, &n))
		at += 8;
	for (; (digit = (unsigned char)*at - (unsigned)'0') < 10; at++)
		n = n * 10 + digit;
	row->at += at - row->at + (*at == '\t');
	return negative ? -n : n;
}

static inline uint64_t pfs_row_number(struct pfs_row *row)
{
	return pfs_row_digits(row, false);
}

static inline int64_t pfs_row_signed(struct pfs_row *row)
{
	return (int64_t)pfs_row_digits(row, false);
}

static inline int64_t pfs_row_time(struct pfs_row *row)
{
	return (int64_t)pfs_row_digits(row, true);
}

#endif
