/* SPDX-License-Identifier: MIT */
/* tests/ref/parts.h - random statements that the operators cannot run whole, around sub-selects,
 * FROMs and GROUP BYs that they can: windows, functions, compounds, values in expressions,
 * correlated sub-selects. */
#ifndef PFS_TESTS_REF_PARTS_H
#define PFS_TESTS_REF_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_parts(FILE *out, uint64_t *seed);

#endif
