/* SPDX-License-Identifier: MIT */
/* gpu/host/text.h - texts as SQLite compares, matches and measures them. */
#ifndef PFS_GPU_HOST_TEXT_H
#define PFS_GPU_HOST_TEXT_H

#include "gpu/predicate.h"
#include "gpu/run.h"

/* Compares two texts by the collation: below 0, 0 or above 0. */
int pfs_text_compare(enum pfs_collation collation, const uint8_t *a, size_t a_len, const uint8_t *b,
		     size_t b_len);

/* Returns a hash that is the same for texts that are equal by the collation. */
uint64_t pfs_text_hash(enum pfs_collation collation, const uint8_t *text, size_t len);

/* Returns the number of characters as SQLite counts them, up to the first NUL. */
int64_t pfs_text_length(const uint8_t *text, size_t len);

/* Returns what a step LIKE, GLOB, PREFIX, SUFFIX or CONTAINS says of the text. What that takes is counted in `work`. */
bool pfs_text_matches(const struct pfs_step *step, const uint8_t *text, size_t len, struct pfs_run_work *work);

static inline uint64_t pfs_hash_mix(uint64_t z)
{
	z = (z ^ (z >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 29)) * UINT64_C(0xbf58476d1ce4e5b9);
	return z ^ (z >> 32);
}

#endif
