/* SPDX-License-Identifier: MIT */
/* Sorting items by their keys. Chunks are sorted by a thread each, then merged two by two, a piece
 * of the result by a thread. */
#include "gpu/host/order.h"

#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "base/search.h"

struct chunked {
	struct pfs_keyed *from, *to;
	uint64_t n, chunk;
};

static int sort_chunk(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	pfs_radix_sort_with(c->from + from, c->to + from, to - from);
	return 0;
}

static int copy_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	memcpy(c->to + from, c->from + from, (to - from) * sizeof(*c->to));
	return 0;
}

/* Returns how many of a are among the first k of both merged. If keys are equal, those of a come
 * first. */
static uint64_t merged_share(const struct pfs_keyed *a, uint64_t n_a, const struct pfs_keyed *b,
			     uint64_t n_b, uint64_t k)
{
	return PFS_SEARCH(i, k > n_b ? k - n_b : 0, PFS_MIN(k, n_a), a[i].key <= b[k - i - 1].key);
}

/* Places k.. before `end` of both merged. */
static void merge_pair(struct pfs_keyed *out, const struct pfs_keyed *a, uint64_t n_a,
		       const struct pfs_keyed *b, uint64_t n_b, uint64_t k, uint64_t end)
{
	uint64_t at_a = merged_share(a, n_a, b, n_b, k), at_b = k - at_a;

	for (; k < end && at_a < n_a && at_b < n_b;
	     k++) { /* without branches, which could not be predicted */
		bool is_a = a[at_a].key <= b[at_b].key;
		const struct pfs_keyed *from = is_a ? &a[at_a] : &b[at_b];

		out[k] = *from;
		at_a += is_a;
		at_b += !is_a;
	}
	if (k < end && at_a < n_a)
		memcpy(out + k, a + at_a, (end - k) * sizeof(*out));
	else if (k < end)
		memcpy(out + k, b + at_b, (end - k) * sizeof(*out));
}

static int merge_chunks(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct chunked *c = context;

	(void)worker;
	while (from < to) {
		uint64_t start = from / (2 * c->chunk) * (2 * c->chunk);
		uint64_t n_a = PFS_MIN(c->chunk, c->n - start);
		uint64_t n_b = PFS_MIN(c->chunk, c->n - start - n_a);
		uint64_t end = PFS_MIN(to, start + n_a + n_b);
		const struct pfs_keyed *a = c->from + start;

		merge_pair(c->to + start, a, n_a, a + n_a, n_b, from - start, end - start);
		from = end;
	}
	return 0;
}

int pfs_sort_keys(const struct pfs_sorting *s, struct pfs_keyed *items, struct pfs_keyed *more,
		  uint64_t n, uint64_t most)
{
	struct chunked c = {.from = items, .to = more, .n = n};
	uint64_t n_chunks = 1;

	if (n < PFS_SORT_SHARED) {
		pfs_radix_sort_with(items, more, n);
		return 0;
	}
	while (n_chunks < pfs_host_workers(s->host) || n / n_chunks > most)
		n_chunks *= 2;
	c.chunk = pfs_div_round_up(n, n_chunks);
	PFS_TRY(pfs_host_for(s->host, s->run, n, c.chunk, sort_chunk, &c));
	for (; c.chunk < n; c.chunk *= 2) {
		struct pfs_keyed *merged = c.to;

		PFS_TRY(pfs_host_for(s->host, s->run, n, PFS_PIECE, merge_chunks, &c));
		c.to = c.from;
		c.from = merged;
	}
	return c.from == items ? 0 : pfs_host_for(s->host, s->run, n, PFS_PIECE, copy_piece, &c);
}
