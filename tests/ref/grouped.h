/* SPDX-License-Identifier: MIT */
/* tests/ref/grouped.h - random statements that group, join, sort and make distinct, over `nodes`
 * and the side table of tests/ref/statements.h; most operands are of classes that belong together.
 */
#ifndef PFS_TESTS_REF_GROUPED_H
#define PFS_TESTS_REF_GROUPED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* As random_statement. */
bool random_grouped(FILE *out, uint64_t *seed);

/* As random_statement: texts of several rows of nodes, which SQLite has in the order of a scan. */
bool random_texts(FILE *out, uint64_t *seed);

#endif
