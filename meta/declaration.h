/* SPDX-License-Identifier: MIT */
/* meta/declaration.h - how a side table was declared: CREATE TABLE and the CREATE INDEXes after it, as the
 * store keeps them.  Anybody may have made the file, so the text is never run: it is parsed, and what
 * runs is composed anew of the parts that were understood.
 *
 * Expressions (DEFAULT, CHECK, generated columns, indexes) may call functions of SQLite's that depend on
 * nothing but their arguments, and random(): none of the tree, whose values are another viewer's. */
#ifndef PFS_META_DECLARATION_H
#define PFS_META_DECLARATION_H

#include <stddef.h>

#include "base/err.h"

#define PFS_DECLARATION_WHY 128

/* *sql = statements, each ended by ";\n", that make the table of that name and its indexes; malloc'ed.
 * NULL: it is only looked at.  -EUCLEAN: it is none, and why, in words that follow "its declaration";
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_declaration_parse(char **sql, char why[PFS_DECLARATION_WHY],
					 const char *name, const void *text, size_t len);

#endif
