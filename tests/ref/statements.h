/* SPDX-License-Identifier: MIT */
/* tests/ref/statements.h - random statements over `nodes` and a side table, whose rows are the same
 * wherever they are run. */
#ifndef PFS_TESTS_REF_STATEMENTS_H
#define PFS_TESTS_REF_STATEMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The side table that statements join with, made and filled: a NULL-ended list of statements. */
extern const char *const random_statement_tables[];

/* Writes a statement without a newline; true: its rows have an order. */
bool random_statement(FILE *out, uint64_t *seed);
/* One that orders its rows, by what the tree may have in that order already. */
bool random_order(FILE *out, uint64_t *seed);
/* One of rows as they are, most with an order, a LIMIT or both. */
bool random_rows(FILE *out, uint64_t *seed);

#endif
