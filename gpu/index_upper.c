/* SPDX-License-Identifier: MIT */
#include "gpu/index_upper.h"

#include <errno.h>
#include <stdlib.h>

#include "base/checked.h"
#include "gpu/index_fence.h"

#define FAN_BITS     4
#define FAN	     (1u << FAN_BITS)
#define SIDE_BY_SIDE 16u /* searches; about as many lines as a core waits for at once */
#define LINE_KEYS    8u
#define PIECE	     (1u << 13) /* searches between two polls */

/* Fences and all levels above them. */
static size_t keys_for(uint32_t n)
{
	size_t keys = n;

	while (n > FAN) {
		n = (uint32_t)pfs_div_round_up(n, FAN);
		keys += n;
	}
	return keys;
}

void pfs_index_upper_free(struct pfs_index_upper *upper)
{
	free(upper->keys);
	free(upper->values);
	*upper = (struct pfs_index_upper){0};
}

int pfs_index_upper_reserve(struct pfs_index_upper *upper, uint32_t n)
{
	uint32_t room = (uint32_t)PFS_MIN((uint64_t)n + n / 8, UINT32_MAX);
	pfs_index_value *values;
	uint64_t *keys;

	if (n <= upper->room)
		return 0;
	keys = realloc(upper->keys, keys_for(room) * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	upper->keys = keys;
	values = realloc(upper->values, room * sizeof(*values));
	if (!values)
		return -ENOMEM; /* for the keys there is more room than needed */
	upper->values = values;
	upper->room = room;
	return 0;
}

void pfs_index_upper_set(struct pfs_index_upper *upper, uint32_t n)
{
	upper->at[0] = 0;
	upper->n[0] = n;
	upper->top = 0;
	while (upper->n[upper->top] > FAN) {
		const uint64_t *below = upper->keys + upper->at[upper->top];
		uint32_t n_below = upper->n[upper->top];
		uint64_t *level = upper->keys + upper->at[upper->top] + n_below;

		upper->top++;
		upper->at[upper->top] = upper->at[upper->top - 1] + n_below;
		upper->n[upper->top] = (uint32_t)pfs_div_round_up(n_below, FAN);
		for (uint32_t i = 0; i < upper->n[upper->top]; i++)
			level[i] = below[(size_t)i << FAN_BITS];
	}
}

/* The child of a level's node that the pair belongs to, by number on this level, on which the
 * node's begin at `from`. */
static uint32_t child(const struct pfs_index_upper *upper, int level, uint32_t from, uint64_t key,
		      pfs_index_value value)
{
	return pfs_last_fence(upper->keys + upper->at[level], upper->values, from,
			      PFS_MIN(FAN, upper->n[level] - from), level * FAN_BITS, key, value);
}

static void find_some(const struct pfs_index_upper *upper, uint32_t *leaves, const uint64_t *keys,
		      size_t n, pfs_index_value value)
{
	for (size_t i = 0; i < n; i++)
		leaves[i] = 0;
	for (int level = upper->top; level >= 0; level--) {
		for (size_t i = 0; i < n; i++) {
			const uint64_t *below;

			leaves[i] =
				child(upper, level, level == upper->top ? 0 : leaves[i] << FAN_BITS,
				      keys[i], value);
			if (!level)
				continue;
			below = upper->keys + upper->at[level - 1] +
				((size_t)leaves[i] << FAN_BITS);
			__builtin_prefetch(below);
			__builtin_prefetch(below + LINE_KEYS);
		}
	}
}

int pfs_index_upper_find(const struct pfs_index_upper *upper, const struct pfs_run *run,
			 uint32_t *leaves, const uint64_t *keys, size_t n, pfs_index_value value)
{
	for (size_t i = 0; i < n; i += SIDE_BY_SIDE) {
		if (i % PIECE == 0)
			PFS_TRY(pfs_run_poll(run));
		find_some(upper, &leaves[i], &keys[i], PFS_MIN(n - i, SIDE_BY_SIDE), value);
	}
	return 0;
}

size_t pfs_index_upper_memory(const struct pfs_index_upper *upper)
{
	return keys_for(upper->room) * sizeof(*upper->keys) + upper->room * sizeof(*upper->values);
}
