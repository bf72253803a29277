/* SPDX-License-Identifier: MIT */
/* tests/ref/random_sides.h - random side tables, and random statements over them: extreme integers,
 * reals where integers begin to be rounded, texts that are empty, long or no UTF-8, columns of
 * mixed classes, and as many rows as blocks have, one more or one less. */
#ifndef PFS_TESTS_REF_RANDOM_SIDES_H
#define PFS_TESTS_REF_RANDOM_SIDES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Writes the statements that make two tables anew, one a line: `large` and `small`. */
void random_sides_fill(FILE *out, uint64_t *seed);
/* As random_statement, over the tables that were written last. */
bool random_sides(FILE *out, uint64_t *seed);

#endif
