/* SPDX-License-Identifier: MIT */
/* tests/ref/sorted_pairs.h - what an ordered index must hold: a sorted array of pairs, and the
 * answers that follow from it.  Slow and plain. */
#ifndef PFS_TESTS_REF_SORTED_PAIRS_H
#define PFS_TESTS_REF_SORTED_PAIRS_H

#include "gpu/index.h"

struct ref_pairs {
	enum pfs_index_kind kind;
	uint64_t *keys;
	uint32_t *values;
	size_t n, capacity;
};

void ref_pairs_free(struct ref_pairs *pairs);

/* The first pair not less than (key, value). */
size_t ref_pairs_rank(const struct ref_pairs *pairs, uint64_t key, uint32_t value);

/* As pfs_index_find answers one question; *found_key is set where there is an answer. */
uint32_t ref_pairs_find(const struct ref_pairs *pairs, uint64_t *found_key, uint64_t key,
			enum pfs_index_question question);

/* How many are new, or were there. */
size_t ref_pairs_insert(struct ref_pairs *pairs, const uint64_t *keys, const uint32_t *values,
			size_t n, enum pfs_index_policy policy);
size_t ref_pairs_remove(struct ref_pairs *pairs, const uint64_t *keys, const uint32_t *values,
			size_t n);

#endif
