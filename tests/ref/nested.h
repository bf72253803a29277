/* SPDX-License-Identifier: MIT */
/* tests/ref/nested.h - random statements over sub-selects, WITH, VALUES and compounds, of `nodes`
 * and the side table of tests/ref/statements.h. */
#ifndef PFS_TESTS_REF_NESTED_H
#define PFS_TESTS_REF_NESTED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_nested(FILE *out, uint64_t *seed);
/* The same of groups and sets, which SQLite has in an order that is known; always ordered. */
bool random_known(FILE *out, uint64_t *seed);

/* A sub-select with columns t, n and m. */
void random_sub_select(FILE *out, uint64_t *seed);

#endif
