/* SPDX-License-Identifier: MIT */
/* gpu/host/number.h - one number as SQLite has it: an integer or a real. */
#ifndef PFS_GPU_HOST_NUMBER_H
#define PFS_GPU_HOST_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct pfs_number {
	bool is_real;
	int64_t integer;
	double real;
};

/* Compares the integer with the real, without rounding either: below 0, 0 or above 0. The real is
 * no NaN. */
static inline int pfs_compare_mixed(int64_t integer, double real)
{
	int64_t truncated;

	if (real < -9223372036854775808.0)
		return 1;
	if (real >= 9223372036854775808.0)
		return -1;
	truncated = (int64_t)real;
	if (integer != truncated)
		return integer < truncated ? -1 : 1;
	return (real < (double)truncated) - (real > (double)truncated);
}

static inline int pfs_compare_numbers(struct pfs_number a, struct pfs_number b)
{
	if (a.is_real && b.is_real)
		return (a.real > b.real) - (a.real < b.real);
	if (a.is_real)
		return -pfs_compare_mixed(b.integer, a.real);
	if (b.is_real)
		return pfs_compare_mixed(a.integer, b.real);
	return (a.integer > b.integer) - (a.integer < b.integer);
}

static inline double pfs_number_real(struct pfs_number a)
{
	return a.is_real ? a.real : (double)a.integer;
}

/* Returns the real cast to an integer; what is beyond the range of integers is the end of that. */
static inline int64_t pfs_real_to_integer(double real)
{
	if (real <= -9223372036854775808.0)
		return INT64_MIN;
	if (real >= 9223372036854775808.0)
		return INT64_MAX;
	return (int64_t)real;
}

static inline int64_t pfs_number_integer(struct pfs_number a)
{
	return a.is_real ? pfs_real_to_integer(a.real) : a.integer;
}

#endif
