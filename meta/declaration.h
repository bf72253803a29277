/* SPDX-License-Identifier: MIT */
/* meta/declaration.h - the declaration of a side table, which the store keeps: the text of its
 * CREATE TABLE and of the CREATE INDEXes behind it.
 *
 * Anybody may have made the store, so this text is never run. It is parsed, and the statements that
 * run are composed from the parts that were understood.
 *
 * Expressions (DEFAULT, CHECK, generated columns, indexes) may call random() and the functions of
 * SQLite whose values depend only on their arguments. They may not call functions of the tree,
 * whose values depend on the viewer. Threads: any number of callers. */
#ifndef PFS_META_DECLARATION_H
#define PFS_META_DECLARATION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define PFS_DECLARATION_WHY 128

/* Parses a declaration. Sets *sql to statements that make the table of that name and its indexes,
 * each ended by a semicolon and a newline; the caller frees it. With sql NULL the text is only
 * checked. -EUCLEAN: it is no declaration, and `why` says how it is wrong, in words that follow
 * "its declaration"; -ENOMEM. */
PFS_MUST_CHECK int pfs_declaration_parse(char **sql, char why[PFS_DECLARATION_WHY],
					 const char *name, const void *text, size_t len);

/* Returns true if a CREATE TABLE that SQLite accepts has the keywords CHECK, AUTOINCREMENT, ON
 * CONFLICT or STRICT. Names, texts and comments do not count. */
bool pfs_declaration_constrains(const char *text, size_t len);

/* Returns true if a CREATE TABLE that SQLite accepts has the keyword AUTOINCREMENT. */
bool pfs_declaration_counts(const char *text, size_t len);

#endif
