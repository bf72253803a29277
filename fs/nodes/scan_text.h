/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_text.h - tests of bytes, taken apart into what is cheap to look for. Threads: a
 * test is never changed, and used by any number. */
#ifndef PFS_FS_NODES_SCAN_TEXT_H
#define PFS_FS_NODES_SCAN_TEXT_H

#include "fs/nodes/scan.h"
#include "fs/nodes/scan_simd.h"
#include "meta/store.h"

/* A test. All of it has to hold: the length, how it begins and ends, what is in it and, unless the
 * rest says everything, `verify`. */
struct pfs_scan_text {
	size_t min_len, max_len; /* max < min: nothing matches */
	const uint8_t *prefix, *suffix; /* in small letters if folded */
	size_t prefix_len, suffix_len;
	struct pfs_needle needle; /* len 0: none */
	bool fold;
	enum pfs_test verify; /* GLOB, LIKE, BETWEEN; NONE: nothing left to verify */
	const char *text, *high_text;
	size_t text_len, high_len;
	char *owned;
};

/* Takes a test apart; *out is to be finished in any case. The predicate's texts stay the caller's.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_text_init(struct pfs_scan_text *out,
				      const struct pfs_predicate *predicate);
void pfs_scan_text_finish(struct pfs_scan_text *text);

/* Makes a test of names that is true where the extension equals the text. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_text_init_ext(struct pfs_scan_text *out, const char *text, size_t len);

/* Returns about what testing so many bytes may take, in bytes looked at: patterns go back. */
static inline uint64_t pfs_scan_text_work(const struct pfs_scan_text *text, size_t len)
{
	bool is_pattern = text->verify == PFS_TEST_GLOB || text->verify == PFS_TEST_LIKE;

	return 64 + len + (is_pattern ? (uint64_t)len * text->text_len : 0);
}

/* Return true if what `verify` asks for holds, and if all does; bytes end in NUL. */
bool pfs_scan_text_verify(const struct pfs_scan_text *text, const char *bytes, size_t len);
bool pfs_scan_text_holds(const struct pfs_scan_text *text, const char *bytes, size_t len);

/* As pfs_scan_text_holds, of what may be very long. -E2BIG: the pattern would take too many
 * steps. */
PFS_MUST_CHECK int pfs_scan_text_holds_long(const struct pfs_scan_text *text, bool *holds,
					    const char *bytes, size_t len);

/* Bytes that stand in the heap of names (fs/image/names.h) wherever there is a name for which the test holds; needle.len 0:
 * nothing is known of them.  The needle is in `bytes`: it is not to be copied. */
struct pfs_scan_trace {
	struct pfs_needle needle;
	uint8_t bytes[1 + PFS_NAME_MAX + 1];
};
void pfs_scan_text_trace(const struct pfs_scan_text *text, struct pfs_scan_trace *trace);

/* Clears the bits of the names at heap + 4 * place[i] for which the test does not hold; what is to
 * be verified is not looked at. */
void pfs_scan_text_keep_names(const struct pfs_scan_text *text, const struct pfs_scan_simd *simd,
			      uint64_t *bits, const uint8_t *heap, const uint32_t *place,
			      size_t words);

#endif
