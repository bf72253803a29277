/* SPDX-License-Identifier: MIT */
/* tests/ref/recursion.h - random statements with recursive CTEs over nodes. */
#ifndef PFS_TESTS_REF_RECURSION_H
#define PFS_TESTS_REF_RECURSION_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_recursion(FILE *out, uint64_t *seed);

#endif
