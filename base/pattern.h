/* SPDX-License-Identifier: MIT */
/* base/pattern.h - SQLite's GLOB and LIKE, with the same results also for text that is not UTF-8.
 * LIKE folds the case of ASCII letters. Threads: any number of callers. */
#ifndef PFS_BASE_PATTERN_H
#define PFS_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum pfs_pattern_kind { PFS_PATTERN_GLOB, PFS_PATTERN_LIKE };

/* Returns true if the text, which ends at its first NUL or after len bytes, matches the
 * NUL-terminated pattern. escape is a character (LIKE only) or 0 for none. It takes at most as many
 * steps as the product of both lengths, and does not recurse. */
bool pfs_pattern_matches(enum pfs_pattern_kind kind, const char *pattern, uint32_t escape,
			 const void *text, size_t len);

/* As pfs_pattern_matches, but calls look->fn(look->arg) every few thousand steps, and returns
 * -EINTR if that returns non-zero. */
struct pfs_pattern_look {
	int (*fn)(void *arg);
	void *arg;
};
PFS_MUST_CHECK int pfs_pattern_matches_until(bool *matches, const struct pfs_pattern_look *look,
					     enum pfs_pattern_kind kind, const char *pattern,
					     uint32_t escape, const void *text, size_t len);

/* Returns true, and sets *c, if the NUL-terminated text is one character in the sense of patterns.
 */
bool pfs_pattern_is_character(uint32_t *c, const char *text);

#endif
