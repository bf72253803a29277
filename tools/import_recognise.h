/* SPDX-License-Identifier: MIT */
/* tools/import_recognise.h - which format a file has that --format does not name. */
#ifndef PFS_TOOLS_IMPORT_RECOGNISE_H
#define PFS_TOOLS_IMPORT_RECOGNISE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tools/import.h"

/* Sets import->options.format by what the input begins with: an archive that libarchive knows, a
 * CSV table (columns named on the command line, .csv, or a header that looks so), else paths. */
PFS_MUST_CHECK int pfs_import_recognise(struct pfs_import *import);

/* The first two lines look like a header and a row: as many fields, names like names. */
bool pfs_looks_like_csv(const char *data, size_t size);

/* import_archive.c: libarchive knows what data begins with (never true without it). */
bool pfs_looks_like_archive(const void *data, size_t size);

#endif
