/* SPDX-License-Identifier: MIT */
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* printf takes ten times as long, and results are full of numbers. */
size_t pfs_print_integer(char out[PFS_NUMBER_SIZE], int64_t value)
{
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
	char digits[PFS_NUMBER_SIZE], *at = digits + sizeof(digits);
	size_t len;

	do {
		*--at = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		*--at = '-';
	len = (size_t)(digits + sizeof(digits) - at);
	memcpy(out, at, len);
	out[len] = 0;
	return len;
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
