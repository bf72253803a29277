/* SPDX-License-Identifier: MIT */
/* tools/row.h - a row of an answer taken apart, field by field from the left, where it lies: a line of
 * tab-separated values in which \t, \n, \r and \\ stand for such bytes.  What is missing is "" or 0. */
#ifndef PFS_TOOLS_ROW_H
#define PFS_TOOLS_ROW_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PFS_ROW_SLACK 8 /* bytes that may be read beyond a line's end */

struct pfs_row {
	char *at;     /* the next field */
	bool escaped; /* there may be backslashes */
	bool ended;   /* by a text, whose NUL at is */
};

/* The tab or newline at which the field ends, eight bytes at a time: whatever is below 14 is looked at. */
static inline char *pfs_row_field_end(char *at)
{
	const uint64_t ones = UINT64_MAX / 255, highs = ones << 7;
	uint64_t word, low;
	char *hit;

	for (;; at += sizeof(word)) {
		(void)memcpy(&word, at, sizeof(word));
		word = le64toh(word);
		for (low = (word - 14 * ones) & ~word & highs; low; low &= low - 1) {
			hit = at + __builtin_ctzll(low) / 8;
			if (*hit == '\t' || *hit == '\n')
				return hit;
		}
	}
}

/* Undoes what stands for other bytes, in place; returns the new size. */
size_t pfs_row_unescape(char *text, size_t size);

/* NUL-terminated, in place. */
static inline char *pfs_row_text(struct pfs_row *row, size_t *size)
{
	char *text = row->at, *end;

	*size = 0;
	if (row->ended)
		return text;
	end = pfs_row_field_end(text);
	row->ended = *end == '\n';
	row->at = end + !row->ended;
	*end = 0;
	*size = (size_t)(end - text);
	if (row->escaped)
		*size = pfs_row_unescape(text, *size);
	return text;
}

/* Decimal; modulo 2^64 what is too large. */
static inline uint64_t pfs_row_number(struct pfs_row *row)
{
	const bool negative = *row->at == '-';
	unsigned digit;
	uint64_t n = 0;

	for (row->at += negative; (digit = (unsigned char)*row->at - (unsigned)'0') < 10; row->at++)
		n = n * 10 + digit;
	row->at += *row->at == '\t';
	return negative ? -n : n;
}

static inline int64_t pfs_row_signed(struct pfs_row *row)
{
	return (int64_t)pfs_row_number(row);
}

#endif
