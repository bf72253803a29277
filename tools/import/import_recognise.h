/* SPDX-License-Identifier: MIT */
/* tools/import/import_recognise.h - what a file is that options do not say all of: whether it is
 * packed, its format, and what stands between the fields of a table. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_RECOGNISE_H
#define PFS_TOOLS_IMPORT_IMPORT_RECOGNISE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tools/import/import.h"

/* Sets import->options.format, unless given, by what the input, unpacked if need be, begins with:
 * an archive that libarchive knows, a table (options that only one has, a name that ends with .csv
 * or .tsv, or a header that looks so), else paths; and of a table the delimiter, unless given.
 * Errors: those of reading; -EBADMSG for what is none of these.  A sentence in *why, or NULL. */
PFS_MUST_CHECK int pfs_import_recognise(struct pfs_import *import, const char **why);

/* Returns the delimiter (as in base/csv.h) with which data begins like a table, with a header and a
 * row of as many fields, or NULL. by_looks: also that the header's names are like names. */
const char *pfs_find_delimiter(const char *data, size_t size, bool by_looks);

/* import_archive.c: libarchive knows what data begins with (never true without it). */
bool pfs_looks_like_archive(const void *data, size_t size);

#endif
