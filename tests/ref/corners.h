/* SPDX-License-Identifier: MIT */
/* tests/ref/corners.h - random statements of what the others make seldom: NULLs in lists, values
 * that are converted, patterns with ESCAPE, outer joins that find nothing, HAVING without GROUP BY,
 * CTEs that are named twice, compounds of ordered sub-selects, limits that leave ties or
 * nothing. */
#ifndef PFS_TESTS_REF_CORNERS_H
#define PFS_TESTS_REF_CORNERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_corners(FILE *out, uint64_t *seed);

#endif
