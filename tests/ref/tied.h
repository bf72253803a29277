/* SPDX-License-Identifier: MIT */
/* tests/ref/tied.h - random statements with sub-selects in their expressions, tied to the rows
 * around them or not. */
#ifndef PFS_TESTS_REF_TIED_H
#define PFS_TESTS_REF_TIED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement, with its tables. */
bool random_tied(FILE *out, uint64_t *seed);

#endif
