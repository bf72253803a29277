/* SPDX-License-Identifier: MIT */
#include "tools/bench/gen_kladr.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/bench/bench.h"

static const char *const types[PFS_KLADR_LEVELS + 1] = {"country", "region",	 "district",
							"town",	   "settlement", "street"};

static uint64_t mix(uint64_t x)
{
	return pfs_bench_mix(x + UINT64_C(0x9e3779b97f4a7c15));
}

/* The tree level by level; first[] and count[] tell a node's children, which follow each other. */
struct levels {
	uint32_t start[PFS_KLADR_LEVELS + 2];
	uint32_t *first, *count;
};

/* Some parents get a hundred times as many children as others. */
static uint64_t weight(uint64_t seed, uint32_t node)
{
	uint64_t x = mix(seed ^ node) % 100 + 1;

	return x * x;
}

static void share_out(struct levels *l, unsigned level, uint64_t seed)
{
	uint32_t from = l->start[level], to = l->start[level + 1];
	uint32_t children = l->start[level + 2] - to, given = 0;
	uint64_t total = 0, sum = 0;

	for (uint32_t i = from; i < to; i++)
		total += weight(seed, i);
	for (uint32_t i = from; i < to; i++) {
		uint32_t upto;

		sum += weight(seed, i);
		upto = (uint32_t)((__uint128_t)children * sum / total);
		l->first[i] = to + given;
		l->count[i] = upto - given;
		given = upto;
	}
}

static void walk(struct pfs_kladr *k, const struct levels *l)
{
	uint32_t path[PFS_KLADR_LEVELS + 1] = {0}, next[PFS_KLADR_LEVELS + 1] = {0}, at = 0;
	uint32_t node[PFS_KLADR_LEVELS + 1] = {0};

	k->parent[at] = 0;
	k->level[at++] = 0;
	for (unsigned level = 0;;) {
		if (level < PFS_KLADR_LEVELS && next[level] < l->count[path[level]]) {
			path[level + 1] = l->first[path[level]] + next[level]++;
			k->parent[at] = node[level];
			node[++level] = at;
			next[level] = 0;
			k->level[at++] = (uint8_t)level;
		} else if (level-- == 0) {
			return;
		}
	}
}

int pfs_kladr_make(struct pfs_kladr *kladr, uint32_t n, uint64_t seed)
{
	/* As in the register: 85 regions, and of the rest one in a thousand is a district, ... */
	const uint32_t sizes[PFS_KLADR_LEVELS] = {1, PFS_MIN(85u, n / 100), n / 800, n / 60, n / 9};
	struct levels l = {{0}, NULL, NULL};
	uint32_t *first PFS_FREE = NULL, *count PFS_FREE = NULL;

	*kladr = (struct pfs_kladr){.n = n};
	kladr->parent = calloc(n, sizeof(*kladr->parent));
	kladr->level = calloc(n, sizeof(*kladr->level));
	first = l.first = calloc(n, sizeof(*l.first));
	count = l.count = calloc(n, sizeof(*l.count));
	if (!kladr->parent || !kladr->level || !first || !count) {
		pfs_kladr_free(kladr);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < PFS_KLADR_LEVELS; i++)
		l.start[i + 1] = l.start[i] + sizes[i];
	l.start[PFS_KLADR_LEVELS + 1] = n;
	for (unsigned level = 0; level < PFS_KLADR_LEVELS; level++)
		share_out(&l, level, seed);
	walk(kladr, &l);
	return 0;
}

void pfs_kladr_free(struct pfs_kladr *kladr)
{
	free(kladr->parent);
	free(kladr->level);
	*kladr = (struct pfs_kladr){0};
}

int pfs_gen_kladr(FILE *out, uint64_t nodes, uint64_t seed)
{
	struct pfs_kladr k;
	int error =
		pfs_kladr_make(&k, (uint32_t)PFS_MIN(PFS_MAX(nodes, 1000u), UINT32_MAX - 1), seed);

	if (error)
		return error;
	(void)fputs("id,parent,name,objName,gpsX,gpsY,level,objType,objCode\n", out);
	for (uint32_t i = 0; i < k.n; i++) {
		uint64_t x = mix(seed ^ (uint64_t)i << 20);

		(void)fprintf(out, "%" PRIu32 ",", i + 1);
		if (i)
			(void)fprintf(out, "%" PRIu32, k.parent[i] + 1);
		(void)fprintf(out, ",%s %" PRIu32 ",%.8" PRIx64 ",%.5f,%.5f,%u,%s,%013" PRIu64 "\n",
			      types[k.level[i]], i, x & UINT32_MAX,
			      41 + (double)(x % 4000000) / 1e5, 20 + (double)(x >> 40) / 1e5,
			      (unsigned)k.level[i], types[k.level[i]],
			      x % UINT64_C(10000000000000));
	}
	pfs_kladr_free(&k);
	return ferror(out) ? -EIO : 0;
}
