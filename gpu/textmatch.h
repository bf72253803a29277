/* SPDX-License-Identifier: MIT */
/* gpu/textmatch.h - tests of texts, taken apart into parts that are cheap to check. Threads: any
 * number may use a test, which is never changed. */
#ifndef PFS_GPU_TEXTMATCH_H
#define PFS_GPU_TEXTMATCH_H

#include "base/pattern.h"
#include "gpu/needle.h"
#include "gpu/predicate.h"

/* What remains to be tested besides the parts. */
enum pfs_text_rest { PFS_REST_NONE, PFS_REST_PATTERN, PFS_REST_RANGE };

/* A test. All parts have to hold: the text's length, its beginning, its end, and what it contains;
 * and the rest, a LIKE or GLOB or a range, unless the parts say everything. */
struct pfs_text_match {
	size_t min_len, max_len; /* in bytes; max_len < min_len: nothing matches */
	const uint8_t *prefix, *suffix; /* in small letters if folded */
	size_t prefix_len, suffix_len;
	struct pfs_needle needle; /* len 0: none */
	bool fold;
	enum pfs_text_rest rest;
	enum pfs_op op; /* for LIKE and GLOB a text ends at its first NUL */
	/* The NUL-terminated pattern; or the range text <= x < high_text, by bytes. NULL: no
	 * bound. */
	const char *text, *high_text;
	size_t text_len, high_len;
	char *owned; /* the copy of a pattern, which `finish` frees */
};

/* Takes a test apart: LIKE (without an escape), GLOB, PREFIX, SUFFIX, CONTAINS or EQ (by bytes).
 * *out is to be finished in any case. The text stays the caller's. -ENOMEM. */
PFS_MUST_CHECK int pfs_text_match_init(struct pfs_text_match *out, enum pfs_op op, const char *text,
				       size_t len);
/* Makes the test low <= text < high, by bytes. NULL: no bound. */
void pfs_text_match_init_range(struct pfs_text_match *out, const char *low, size_t low_len,
			       const char *high, size_t high_len);
void pfs_text_match_finish(struct pfs_text_match *match);

/* Returns the kind of a pattern that is the rest. */
static inline enum pfs_pattern_kind pfs_text_match_kind(const struct pfs_text_match *match)
{
	return match->op == PFS_OP_LIKE ? PFS_PATTERN_LIKE : PFS_PATTERN_GLOB;
}

/* Returns true if the length, the beginning and the end are as the test has them, which never takes
 * long. */
bool pfs_text_match_ends_hold(const struct pfs_text_match *match, const uint8_t *text, size_t len);
/* Returns true if the test holds; does not try a pattern that is the rest. */
bool pfs_text_match_holds_outside(const struct pfs_text_match *match, const uint8_t *text,
				  size_t len);

/* Clears bit i if the test does not hold for the text at places[i]; does not try a pattern that is
 * the rest. The heap's lengths have one byte, and its texts no NUL. */
void pfs_text_match_keep(const struct pfs_text_match *match, uint64_t *bits,
			 const struct pfs_heap *heap, const uint32_t *places, size_t words);

#endif
