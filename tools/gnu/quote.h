/* SPDX-License-Identifier: MIT */
/* tools/gnu/quote.h - names as ls(1) shows them on a terminal: as words of a shell, with quotes
 * where it would take them for something else, so that no byte of one tells the terminal what to
 * do. */
#ifndef PFS_TOOLS_GNU_QUOTE_H
#define PFS_TOOLS_GNU_QUOTE_H

#include <stdbool.h>
#include <stddef.h>

#define PFS_QUOTED_SIZE(len) (8 * (len) + 3)

/* Returns true if pfs_quote_name puts the name in quotes. */
bool pfs_needs_quotes(const char *name, size_t len, bool colon);

/* Writes the name, in quotes if it needs them: PFS_QUOTED_SIZE(len) bytes at most, and returns how
 * many. The locale decides which characters can be printed. With `colon` a name with a colon is
 * quoted, too, as in headings. */
size_t pfs_quote_name(char *out, const char *name, size_t len, bool colon);

/* Returns the columns of a terminal that the name takes. */
size_t pfs_name_width(const char *name, size_t len);

#endif
