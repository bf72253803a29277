/* SPDX-License-Identifier: MIT */
/* fs/tree/pattern.h - SQLite's GLOB and LIKE, byte for byte: also in what they make of text that is
 * not UTF-8.  (LIKE folds the case of ASCII letters and has no escape character.) */
#ifndef PFS_FS_TREE_PATTERN_H
#define PFS_FS_TREE_PATTERN_H

#include <stdbool.h>

/* Both are NUL-terminated.  Takes at most their lengths' product in steps, and no stack. */
bool pfs_glob_matches(const char *pattern, const char *text);
bool pfs_like_matches(const char *pattern, const char *text);

#endif
