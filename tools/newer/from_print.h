/* SPDX-License-Identifier: MIT */
/* tools/newer/from_print.h - differences of two trees (tools/newer/from.h) as lines and as JSON. */
#ifndef PFS_TOOLS_NEWER_FROM_PRINT_H
#define PFS_TOOLS_NEWER_FROM_PRINT_H

#include "tools/cmd.h"
#include "tools/newer/from.h"

extern const char *const pfs_from_names[PFS_FROM_WHATS]; /* "added" */

/* Prints a line on standard output. */
void pfs_from_print(const struct pfs_from_event *event);
/* An object, into an array. */
void pfs_from_print_json(struct pfs_json *json, const struct pfs_from_event *event);

/* "3 added, 0 removed ...", of those that the comparison may have. */
void pfs_from_print_counts(const struct pfs_from_lists *from, bool merges);
void pfs_from_print_counts_json(struct pfs_json *json, const struct pfs_from_lists *from);

#endif
