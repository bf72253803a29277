/* SPDX-License-Identifier: MIT */
/* meta/declaration.h - how a side table was declared: its CREATE TABLE and the CREATE INDEXes after
 * it, as the store keeps them.
 *
 * Anybody may have made the file, so that text is never run. It is parsed, and what runs is
 * composed anew from the parts that were understood.
 *
 * Expressions (DEFAULT, CHECK, generated columns, indexes) may call random() and those functions of
 * SQLite that depend on nothing but their arguments; none of the tree's, since their values are
 * another viewer's.
 * Threads: any number of callers. */
#ifndef PFS_META_DECLARATION_H
#define PFS_META_DECLARATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_DECLARATION_WHY 128

/* Parses a declaration. *sql gets statements, each ended by ";
 * ", that make the table of that name and its indexes; the caller frees it; sql NULL: the text is
 * only checked. -EUCLEAN: it is no declaration, and `why` says so in words that follow "its
 * declaration"; -ENOMEM. */
PFS_MUST_CHECK int pfs_declaration_parse(char **sql, char why[PFS_DECLARATION_WHY],
					 const char *name, const void *text, size_t len);

/* Returns true if the CREATE TABLE, which SQLite takes, says CHECK, AUTOINCREMENT, ON CONFLICT or STRICT: not in a name, a text
 * or a comment. */
bool pfs_declaration_constrains(const char *text, size_t len);

#endif
