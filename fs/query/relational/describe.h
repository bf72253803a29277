/* SPDX-License-Identifier: MIT */
/* fs/query/relational/describe.h - what the operators make of a SELECT, in its own words: a line of
 * `plan`. */
#ifndef PFS_FS_QUERY_RELATIONAL_DESCRIBE_H
#define PFS_FS_QUERY_RELATIONAL_DESCRIBE_H

#include <stdio.h>

#include "fs/query/parse/ast.h"

/* Without the line's end. `where`: on what it runs; text: the statement, which the spans are of. */
void pfs_describe_select(FILE *out, const char *where, const char *text,
			 const struct pfs_select *select);

#endif
