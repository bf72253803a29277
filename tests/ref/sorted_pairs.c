/* SPDX-License-Identifier: MIT */
#include "tests/ref/sorted_pairs.h"

#include <stdlib.h>
#include <string.h>

void ref_pairs_free(struct ref_pairs *pairs)
{
	free(pairs->keys);
	free(pairs->values);
}

size_t ref_pairs_rank(const struct ref_pairs *pairs, uint64_t key, uint32_t value)
{
	size_t low = 0, high = pairs->n;

	while (low < high) {
		size_t i = (low + high) / 2;

		if (pairs->keys[i] < key || (pairs->keys[i] == key && pairs->values[i] < value))
			low = i + 1;
		else
			high = i;
	}
	return low;
}

uint32_t ref_pairs_find(const struct ref_pairs *pairs, uint64_t *found_key, uint64_t key,
			enum pfs_index_question question)
{
	size_t i = ref_pairs_rank(pairs, key,
				  question == PFS_INDEX_GREATER ? PFS_INDEX_NONE : 0);

	if (i == pairs->n || (question == PFS_INDEX_EQUAL && pairs->keys[i] != key))
		return PFS_INDEX_NONE;
	*found_key = pairs->keys[i];
	return pairs->values[i];
}

static void put(struct ref_pairs *pairs, size_t i, uint64_t key, uint32_t value)
{
	if (pairs->n == pairs->capacity) {
		pairs->capacity = pairs->capacity * 2 + 16;
		pairs->keys = realloc(pairs->keys, pairs->capacity * sizeof(*pairs->keys));
		pairs->values = realloc(pairs->values, pairs->capacity * sizeof(*pairs->values));
		if (!pairs->keys || !pairs->values)
			abort();
	}
	memmove(&pairs->keys[i + 1], &pairs->keys[i], (pairs->n - i) * sizeof(*pairs->keys));
	memmove(&pairs->values[i + 1], &pairs->values[i], (pairs->n - i) * sizeof(*pairs->values));
	pairs->keys[i] = key;
	pairs->values[i] = value;
	pairs->n++;
}

size_t ref_pairs_insert(struct ref_pairs *pairs, const uint64_t *keys, const uint32_t *values,
			size_t n, enum pfs_index_policy policy)
{
	bool unique = pairs->kind == PFS_INDEX_UNIQUE;
	size_t added = 0;

	for (size_t k = 0; k < n; k++) {
		size_t i = ref_pairs_rank(pairs, keys[k], unique ? 0 : values[k]);
		bool same = i < pairs->n && pairs->keys[i] == keys[k];

		if (same && unique) {
			if (policy == PFS_INDEX_REPLACE)
				pairs->values[i] = values[k];
		} else if (!same || pairs->values[i] != values[k]) {
			put(pairs, i, keys[k], values[k]);
			added++;
		}
	}
	return added;
}

size_t ref_pairs_remove(struct ref_pairs *pairs, const uint64_t *keys, const uint32_t *values,
			size_t n)
{
	size_t removed = 0;

	for (size_t k = 0; k < n; k++) {
		size_t i = ref_pairs_rank(pairs, keys[k], values ? values[k] : 0);

		if (i == pairs->n || pairs->keys[i] != keys[k] ||
		    (values && pairs->values[i] != values[k]))
			continue;
		pairs->n--;
		memmove(&pairs->keys[i], &pairs->keys[i + 1],
			(pairs->n - i) * sizeof(*pairs->keys));
		memmove(&pairs->values[i], &pairs->values[i + 1],
			(pairs->n - i) * sizeof(*pairs->values));
		removed++;
	}
	return removed;
}
