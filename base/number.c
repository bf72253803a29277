/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints eight digits at once, in the bytes of a word and without a branch for each digit. printf
 * takes ten times as long, and answers are full of numbers. */
#define EIGHT UINT64_C(100000000)

/* Returns the digits of a number below EIGHT, one a byte, the first digit in the lowest byte. It
 * splits the number into halves of four digits, these into pairs in 16 bits, and the pairs into
 * digits; a multiplication and a shift divide by 100 and by 10. */
static inline uint64_t digits_of(uint32_t value)
{
	uint64_t halves = value / 10000 | (uint64_t)(value % 10000) << 32;
	uint64_t high = (halves * 10486 >> 20) & UINT64_C(0x7f0000007f);
	uint64_t pairs = high | (halves - high * 100) << 16;
	uint64_t tens = (pairs * 103 >> 10) & UINT64_C(0x000f000f000f000f);

	return tens | (pairs - tens * 10) << 8;
}

static void put_word(char *out, uint64_t digits)
{
	uint64_t text = htole64(digits + UINT64_C(0x3030303030303030));

	(void)memcpy(out, &text, sizeof(text));
}

/* Writes the digits without leading zeros. It writes to eight bytes. */
static char *put_first(char *out, uint32_t value)
{
	uint64_t digits = digits_of(value);
	unsigned zeros = digits ? (unsigned)__builtin_ctzll(digits) / 8 : 7;

	put_word(out, digits >> 8 * zeros);
	return out + 8 - zeros;
}

static char *put_digits(char *out, uint64_t value)
{
	if (value < EIGHT)
		return put_first(out, (uint32_t)value);
	if (value < EIGHT * EIGHT) {
		out = put_first(out, (uint32_t)(value / EIGHT));
	} else {
		uint64_t high = value / EIGHT;

		out = put_first(out, (uint32_t)(high / EIGHT));
		put_word(out, digits_of((uint32_t)(high % EIGHT)));
		out += 8;
	}
	put_word(out, digits_of((uint32_t)(value % EIGHT)));
	return out + 8;
}

/* Prints a number below 100, as most columns' numbers are. */
static size_t print_small(char *out, uint32_t value)
{
	uint32_t tens = value * 103 >> 10; /* divided by 10 */
	bool has_tens = tens != 0;

	out[0] = (char)('0' + tens);
	out[has_tens] = (char)('0' + value - tens * 10);
	out[has_tens + 1] = 0;
	return (size_t)has_tens + 1;
}

size_t pfs_print_unsigned(char out[PFS_NUMBER_SIZE], uint64_t value)
{
	char *end;

	if (value < 100)
		return print_small(out, (uint32_t)value);
	end = put_digits(out, value);
	*end = 0;
	return (size_t)(end - out);
}

size_t pfs_print_integer(char out[PFS_NUMBER_SIZE], int64_t value)
{
	char *end;

	if (value >= 0)
		return pfs_print_unsigned(out, (uint64_t)value);
	*out = '-';
	end = put_digits(out + 1, 0 - (uint64_t)value);
	*end = 0;
	return (size_t)(end - out);
}

size_t pfs_print_real(char out[PFS_NUMBER_SIZE], double value)
{
	size_t len = 0;
	int digits;

	if (isnan(value))
		return (size_t)snprintf(out, PFS_NUMBER_SIZE, "nan");
	for (digits = 15; digits <= 17; digits++) {
		len = (size_t)snprintf(out, PFS_NUMBER_SIZE, "%.*g", digits, value);
		if (strtod(out, NULL) == value)
			break;
	}
	if (!isinf(value) && !strpbrk(out, ".e")) {
		(void)memcpy(out + len, ".0", 3);
		len += 2;
	}
	return len;
}

bool pfs_is_integer(int64_t *out, const void *text, size_t len)
{
	const char *digits = text, *end = digits + len;
	bool negative = len > 0 && *digits == '-';
	int64_t value = 0;

	digits += negative;
	if (digits == end || (*digits == '0' && len > 1))
		return false;
	for (; digits < end; digits++) {
		int digit = *digits - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    (negative ? __builtin_sub_overflow(value, digit, &value)
			      : __builtin_add_overflow(value, digit, &value)))
			return false;
	}
	*out = value;
	return true;
}

bool pfs_is_real(double *out, const void *text, size_t len)
{
	char copy[PFS_NUMBER_SIZE], printed[PFS_NUMBER_SIZE];
	double value;
	char *end;

	/* strtod also reads texts that are never printed: blanks, "0x", "infinity". */
	if (len == 0 || len >= sizeof(copy) || memchr(text, 0, len))
		return false;
	(void)memcpy(copy, text, len);
	copy[len] = 0;
	value = strtod(copy, &end);
	/* Stores keep neither NaN nor the sign of zero. */
	if (isnan(value) || (value == 0 && signbit(value)))
		return false;
	if (end != copy + len || pfs_print_real(printed, value) != len ||
	    memcmp(printed, text, len) != 0)
		return false;
	*out = value;
	return true;
}
