/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* printf takes ten times as long, and results are full of numbers: two digits at a time, without a
 * division of 64 bits but for the first eight. */
static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

#define EIGHT UINT64_C(100000000)

static void put_two(char *out, uint32_t value)
{
	(void)memcpy(out, &pairs[2 * value], 2);
}

static void put_eight(char *out, uint32_t value)
{
	uint32_t high = value / 10000, low = value % 10000;

	put_two(out, high / 100);
	put_two(out + 2, high % 100);
	put_two(out + 4, low / 100);
	put_two(out + 6, low % 100);
}

static unsigned digits_of(uint32_t value) /* below EIGHT */
{
	if (value < 10000)
		return value < 100 ? 1 + (value >= 10) : 3 + (value >= 1000);
	return value < 1000000 ? 5 + (value >= 100000) : 7 + (value >= 10000000);
}

/* The digits without zeros before them. */
static char *put_first(char *out, uint32_t value)
{
	unsigned n = digits_of(value);
	char *end = out + n;

	for (; n > 2; n -= 2, value /= 100)
		put_two(out + n - 2, value % 100);
	if (n == 2)
		put_two(out, value);
	else
		*out = (char)('0' + value);
	return end;
}

static char *put_digits(char *out, uint64_t value)
{
	if (value < EIGHT)
		return put_first(out, (uint32_t)value);
	out = put_digits(out, value / EIGHT);
	put_eight(out, (uint32_t)(value % EIGHT));
	return out + 8;
}

size_t pfs_print_integer(char out[PFS_NUMBER_SIZE], int64_t value)
{
	char *end = out;

	if (value < 0)
		*end++ = '-';
	end = put_digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
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

	/* strtod also reads what is never printed: blanks, "0x", "infinity" */
	if (len == 0 || len >= sizeof(copy) || memchr(text, 0, len))
		return false;
	(void)memcpy(copy, text, len);
	copy[len] = 0;
	value = strtod(copy, &end);
	/* stores keep neither NaN nor the sign of zero */
	if (isnan(value) || (value == 0 && signbit(value)))
		return false;
	if (end != copy + len || pfs_print_real(printed, value) != len ||
	    memcmp(printed, text, len) != 0)
		return false;
	*out = value;
	return true;
}
