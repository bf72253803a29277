/* SPDX-License-Identifier: MIT */
/* base/number.h - conversions between numbers and texts that lose nothing.
 *
 * A text is kept as a number only if printing the number gives the same bytes again: "7" is an
 * integer; "007", "+7" and "7 " stay texts. This decides the types of attributes, and whether a new
 * value takes its column's type.
 * Threads: any number of callers. */
#ifndef PFS_BASE_NUMBER_H
#define PFS_BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PFS_NUMBER_SIZE 32 /* holds any printed number and a NUL */

/* Print the number in decimal. Return the length, without the NUL. */
size_t pfs_print_integer(char out[PFS_NUMBER_SIZE], int64_t value);
size_t pfs_print_unsigned(char out[PFS_NUMBER_SIZE], uint64_t value);

/* Prints the shortest decimal that reads back as the value, always with a point or an exponent:
 * "2.5", "3.0", "1e+300". Infinities and NaN are "inf", "-inf", "nan". Returns the length, without
 * the NUL. */
size_t pfs_print_real(char out[PFS_NUMBER_SIZE], double value);

/* Return true, and set *out, if the text is exactly what pfs_print_integer or pfs_print_real prints
 * for *out. They return false for NaN and negative zero, which SQLite does not keep. */
bool pfs_is_integer(int64_t *out, const void *text, size_t len);
bool pfs_is_real(double *out, const void *text, size_t len);

#endif
