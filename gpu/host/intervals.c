/* SPDX-License-Identifier: MIT */
/* gpu/host/intervals.c - nested intervals in host memory. */
#include "gpu/intervals.h"

#include "gpu/host/sets.h"

#define GRAIN 65536u /* nodes */

struct search {
	const struct pfs_simd *simd;
	uint32_t *bits;
	const uint32_t *rank, *size;
	uint32_t from, n;
};

struct renumbering {
	uint32_t *rank, *size;
	struct pfs_interval_move move;
};

static void in_piece(void *context, size_t from, size_t to)
{
	const struct search *s = context;

	s->simd->held_bits(s->bits + from / 32, s->rank + from, to - from, s->from, s->n);
}

static void around_piece(void *context, size_t from, size_t to)
{
	const struct search *s = context;

	s->simd->holding_bits(s->bits + from / 32, s->rank + from, s->size + from, to - from,
			      s->from);
}

static void move_piece(void *context, size_t from, size_t to)
{
	const struct renumbering *r = context;

	for (size_t i = from; i < to; i++)
		pfs_interval_moved(&r->rank[i], &r->size[i], r->move);
}

int pfs_host_intervals_in(struct pfs_backend *b, uint32_t *bits, const uint32_t *rank, size_t n,
			  uint32_t from, uint32_t size)
{
	struct search s = {.rank = rank, .from = from, .n = size};

	s.bits = bits;
	s.simd = pfs_host_of(b)->codes.simd;
	pfs_pool_run(pfs_host_of(b)->codes.pool, n, GRAIN, in_piece, &s);
	return 0;
}

int pfs_host_intervals_around(struct pfs_backend *b, uint32_t *bits, const uint32_t *rank,
			      const uint32_t *size, size_t n, uint32_t at)
{
	struct search s = {.rank = rank, .size = size, .from = at};

	s.bits = bits;
	s.simd = pfs_host_of(b)->codes.simd;
	pfs_pool_run(pfs_host_of(b)->codes.pool, n, GRAIN, around_piece, &s);
	return 0;
}

int pfs_host_intervals_move(struct pfs_backend *b, uint32_t *rank, uint32_t *size, size_t n,
			    struct pfs_interval_move move)
{
	struct renumbering r = {.move = move};

	r.rank = rank;
	r.size = size;
	pfs_pool_run(pfs_host_of(b)->codes.pool, n, GRAIN, move_piece, &r);
	return 0;
}
