/* SPDX-License-Identifier: MIT */
/* gpu/textmatch.h - tests of texts, taken apart into what is cheap to look for. Threads: a test is
 * never changed, and used by any number. */
#ifndef PFS_GPU_TEXTMATCH_H
#define PFS_GPU_TEXTMATCH_H

#include "base/pattern.h"
#include "gpu/needle.h"
#include "gpu/predicate.h"

enum pfs_text_rest { PFS_REST_NONE, PFS_REST_PATTERN, PFS_REST_RANGE };

/* A test. All of it has to hold: the length, how a text begins and ends, what is in it and, unless
 * that says everything, the rest: a LIKE or GLOB, or that it lies in a range. */
struct pfs_text_match {
	size_t min_len, max_len; /* max < min: nothing matches */
	const uint8_t *prefix, *suffix; /* in small letters if folded */
	size_t prefix_len, suffix_len;
	struct pfs_needle needle; /* len 0: none */
	bool fold;
	enum pfs_text_rest rest;
	enum pfs_op op; /* LIKE or GLOB: a text counts up to its first NUL */
	const char *text, *high_text; /* the pattern, which NUL ends; or text <= a text < high_text (NULL: open), by bytes */
	size_t text_len, high_len;
	char *owned;
};

/* Takes a test LIKE (without an escape), GLOB, PREFIX, SUFFIX, CONTAINS or EQ (by bytes) apart; *out is to be
 * finished in any case. The text stays the caller's. -ENOMEM. */
PFS_MUST_CHECK int pfs_text_match_init(struct pfs_text_match *out, enum pfs_op op, const char *text, size_t len);
/* Makes the test low <= a text < high; NULL: open. */
void pfs_text_match_init_range(struct pfs_text_match *out, const char *low, size_t low_len, const char *high,
			       size_t high_len);
void pfs_text_match_finish(struct pfs_text_match *match);

/* Of a pattern that is the rest: which it is. */
static inline enum pfs_pattern_kind pfs_text_match_kind(const struct pfs_text_match *match)
{
	return match->op == PFS_OP_LIKE ? PFS_PATTERN_LIKE : PFS_PATTERN_GLOB;
}

/* Returns true if the length, the beginning and the end are as the test has them, which never takes long. */
bool pfs_text_match_ends_hold(const struct pfs_text_match *match, const uint8_t *text, size_t len);
/* Returns true if the test holds, a pattern that is the rest aside. */
bool pfs_text_match_holds_outside(const struct pfs_text_match *match, const uint8_t *text, size_t len);

/* Clears the bits of the texts at places[i] for which the test does not hold, patterns aside, which
 * are not looked at. The heap's lengths have one byte, and its texts no NUL. */
void pfs_text_match_keep(const struct pfs_text_match *match, uint64_t *bits, const struct pfs_heap *heap,
			 const uint32_t *places, size_t words);

#endif
