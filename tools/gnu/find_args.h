/* SPDX-License-Identifier: MIT */
/* tools/gnu/find_args.h - the arguments of find(1)'s tests.  All return false for what makes no
 * sense. */
#ifndef PFS_TOOLS_GNU_FIND_ARGS_H
#define PFS_TOOLS_GNU_FIND_ARGS_H

#include <sys/types.h>

#include <regex.h>

#include "tools/gnu/find_expr.h"

/* Reads [+-]N and, if units is not NULL, one of the letters b c w k M G. */
bool pfs_find_parse_number(struct pfs_find_number *out, const char *text, const char *units);

/* Reads 644 or u=rw,go=r; the latter begins with no bit set. */
bool pfs_find_parse_mode(mode_t *out, const char *text);

/* Reads the time that the words mean to date(1), which GNU's find understands in the same way, as
 * nanoseconds. */
bool pfs_find_date(int64_t *out, const char *words);

/* Reads the argument of -regextype. */
bool pfs_find_syntax(reg_syntax_t *out, const char *name);

#endif
