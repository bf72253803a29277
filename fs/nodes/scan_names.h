/* SPDX-License-Identifier: MIT */
/* fs/nodes/scan_names.h - predicates about bytes as tests of texts (gpu/textmatch.h), and names
 * that are in the image file only. */
#ifndef PFS_FS_NODES_SCAN_NAMES_H
#define PFS_FS_NODES_SCAN_NAMES_H

#include "fs/nodes/scan.h"
#include "gpu/textmatch.h"

/* Takes a predicate's test apart; *out is to be finished in any case. The predicate's texts stay
 * the caller's. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_match_init(struct pfs_text_match *out,
				       const struct pfs_predicate *predicate);
/* Makes a test of names that is true where the extension equals the text. -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_match_init_ext(struct pfs_text_match *out, const char *text,
					   size_t len);

/* Returns about what testing so many bytes may take, in bytes looked at: patterns go back. */
static inline uint64_t pfs_scan_match_work(const struct pfs_text_match *match, size_t len)
{
	return 64 + len + (match->rest == PFS_REST_PATTERN ? (uint64_t)len * match->text_len : 0);
}

/* Clears bits of names for which the test does not hold, and which are in the image file only: they
 * are not read into memory. `bits` are those of the slots from `slot` on, a multiple of 64. Names
 * that are in memory keep their bits. */
void pfs_scan_leave_out_names(const struct pfs_tree *tree, const struct pfs_text_match *match,
			      uint64_t *bits, uint32_t slot, size_t words);

#endif
