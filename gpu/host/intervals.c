/* SPDX-License-Identifier: MIT */
/* gpu/host/intervals.c - nested intervals in host memory. */
#include "gpu/intervals.h"

#include <string.h>

#include "gpu/host/sets.h"

#define GRAIN 65536u /* nodes */

struct search {
	uint32_t *bits;
	const uint32_t *rank, *size;
	uint32_t from, n;
};

struct renumbering {
	uint32_t *rank, *size;
	struct pfs_interval_move move;
};

/* The bits of 32 flags of a byte each: the compiler makes many such flags at a time. */
static uint32_t pack(const uint8_t *flags)
{
	uint32_t word = 0;

	for (unsigned k = 0; k < 4; k++) {
		uint64_t eight = 0;

		for (unsigned i = 0; i < 8; i++)
			eight |= (uint64_t)flags[8 * k + i] << 8 * i;
		word |= (uint32_t)(eight * UINT64_C(0x0102040810204080) >> 56) << 8 * k;
	}
	return word;
}

static void in_piece(void *context, size_t from, size_t to)
{
	const struct search *s = context;
	uint8_t flags[32];

	for (size_t w = from / 32; w < to / 32; w++) {
		for (unsigned i = 0; i < 32; i++)
			flags[i] = pfs_interval_holds(s->from, s->n, s->rank[32 * w + i]);
		s->bits[w] = pack(flags);
	}
}

static void around_piece(void *context, size_t from, size_t to)
{
	const struct search *s = context;
	uint8_t flags[32];

	for (size_t w = from / 32; w < to / 32; w++) {
		for (unsigned i = 0; i < 32; i++)
			flags[i] = pfs_interval_holds(s->rank[32 * w + i], s->size[32 * w + i],
						      s->from);
		s->bits[w] = pack(flags);
	}
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
	pfs_pool_run(pfs_host_of(b)->codes.pool, n, GRAIN, in_piece, &s);
	return 0;
}

int pfs_host_intervals_around(struct pfs_backend *b, uint32_t *bits, const uint32_t *rank,
			      const uint32_t *size, size_t n, uint32_t at)
{
	struct search s = {.rank = rank, .size = size, .from = at};

	s.bits = bits;
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
