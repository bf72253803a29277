/* SPDX-License-Identifier: MIT */
/* base/pattern.h - SQLite's GLOB and LIKE, byte for byte: also in what they make of text that is
 * not UTF-8.  LIKE folds the case of ASCII letters. */
#ifndef PFS_BASE_PATTERN_H
#define PFS_BASE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum pfs_pattern_kind { PFS_PATTERN_GLOB, PFS_PATTERN_LIKE };

/* The text ends at its first NUL, or after len bytes; the pattern is NUL-terminated.  escape: a
 * character (LIKE only), 0: none.  Takes at most their lengths' product in steps, and no stack. */
bool pfs_pattern_matches(enum pfs_pattern_kind kind, const char *pattern, uint32_t escape,
			 const void *text, size_t len);

/* The same, and look->fn(look->arg) is asked from time to time whether to stop: -EINTR. */
struct pfs_pattern_look {
	int (*fn)(void *arg);
	void *arg;
};
PFS_MUST_CHECK int pfs_pattern_matches_until(bool *matches, const struct pfs_pattern_look *look,
					     enum pfs_pattern_kind kind, const char *pattern,
					     uint32_t escape, const void *text, size_t len);

/* Whether the text, which is NUL-terminated, is one character, and which, as patterns know them. */
bool pfs_pattern_is_character(uint32_t *c, const char *text);

/* The same of texts that are NUL-terminated, without an escape. */
bool pfs_glob_matches(const char *pattern, const char *text);
bool pfs_like_matches(const char *pattern, const char *text);

#endif
