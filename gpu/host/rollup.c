/* SPDX-License-Identifier: MIT */
/* gpu/host/rollup.c - sums over every subtree at once. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gpu/host/sets.h"

/* A directory is complete when all its subdirectories are; then it is added to the one above. */
static void add_upwards(const struct pfs_columns *c, uint64_t *sums, uint32_t *pending)
{
	for (uint32_t d = 1; d < c->n_directories; d++)
		pending[c->directories[d].parent]++;
	pending[0] = UINT32_MAX;
	for (uint32_t d = c->n_directories; d-- > 1;) {
		uint32_t a = pending[d] == 0 ? d : 0;

		while (a) {
			uint32_t up = c->directories[a].parent;

			pending[a] = UINT32_MAX; /* done */
			sums[up] += sums[a];
			a = --pending[up] == 0 ? up : 0;
		}
	}
}

int pfs_host_rollup(struct pfs_backend *b, int64_t *sums, const int64_t *values, size_t values_n)
{
	const struct pfs_columns *c = pfs_host_of(b)->columns;
	uint32_t *pending PFS_FREE = calloc((size_t)c->n_directories + 1, sizeof(*pending));
	size_t n = PFS_MIN(c->n_slots, values ? values_n : SIZE_MAX);
	uint64_t *wrapping = (uint64_t *)sums;

	if (!pending)
		return -ENOMEM;
	memset(sums, 0, c->n_directories * sizeof(*sums));
	for (size_t i = 0; i < n; i++)
		wrapping[c->home[i]] += values ? (uint64_t)values[i] : 1;
	add_upwards(c, wrapping, pending);
	return 0;
}
