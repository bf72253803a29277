/* SPDX-License-Identifier: MIT */
/* tests/ref/unparse.h - a statement's tree as text again, with every bracket that it means. */
#ifndef PFS_TESTS_REF_UNPARSE_H
#define PFS_TESTS_REF_UNPARSE_H

#include <stdio.h>

#include "fs/query/parse/parse.h"

void unparse_expr(FILE *out, const struct pfs_expr *expr);
void unparse_select(FILE *out, const struct pfs_select *select);
void unparse_statement(FILE *out, const struct pfs_statement *statement);

#endif
