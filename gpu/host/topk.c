/* SPDX-License-Identifier: MIT */
/* The first few of an order: each thread keeps twice as many candidates, and takes no tuple that
 * cannot be among its first ones. */
#include "gpu/host/order.h"

#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "base/search.h"
#include "gpu/host/positions.h"

struct candidates {
	struct pfs_keyed *list; /* indexes of positions by the number of the first key; */
	struct pfs_keyed *more; /* and room for as many */
	size_t n, capacity;
	bool is_full;	   /* list[most - 1] is the last that can be among the first */
	uint8_t apart[64]; /* workers write, each in its own cache line */
};

struct choosing {
	const struct pfs_sorting *sorting;
	uint64_t most;
	struct candidates *of_worker;
};

/* Sorts the candidates and keeps the first ones; host: whose threads help, or NULL. */
static int keep_first(const struct choosing *c, struct candidates *mine,
		      struct pfs_host_operators *host)
{
	struct pfs_sorting by_number = *c->sorting;
	uint64_t n = mine->n;

	by_number.host = host;
	PFS_TRY(pfs_sort_keys(&by_number, mine->list, mine->more, n, PFS_SORTED_AT_ONCE));
	if (n > c->most) /* with all that may share the last one's place */
		n = PFS_SEARCH(i, c->most, n, mine->list[i].key == mine->list[c->most - 1].key);
	PFS_TRY(pfs_sort_ties(&by_number, mine->list, mine->more, n));
	mine->n = PFS_MIN(mine->n, c->most);
	mine->is_full = mine->n == c->most;
	return 0;
}

/* is_exact: a later tuple with the same number as the last one does not precede it, unless other
 * keys say so, or the last one is a NULL, which shares the greatest number with values before
 * it. */
static bool is_wanted(const struct choosing *c, const struct candidates *mine,
		      const struct pfs_keyed *candidate, bool is_exact)
{
	const struct pfs_positions *positions = c->sorting->positions;
	const struct pfs_keyed *last;

	if (!mine->is_full)
		return true;
	last = &mine->list[c->most - 1];
	if (candidate->key != last->key)
		return candidate->key < last->key;
	return (!is_exact || candidate->key == UINT64_MAX) &&
	       pfs_order_compare(c->sorting, pfs_position_at(positions, candidate->value),
				 pfs_position_at(positions, last->value)) < 0;
}

static int make_room(const struct pfs_run *run, struct candidates *mine, size_t capacity)
{
	int error = pfs_run_alloc_raw(run, &mine->list, capacity, sizeof(*mine->list));

	mine->capacity = capacity;
	return error ? error : pfs_run_alloc_raw(run, &mine->more, capacity, sizeof(*mine->more));
}

static void free_room(const struct pfs_run *run, struct candidates *mine)
{
	pfs_run_free(run, mine->list, mine->capacity, sizeof(*mine->list));
	pfs_run_free(run, mine->more, mine->capacity, sizeof(*mine->more));
}

static int choose_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct choosing *c = context;
	struct candidates *mine = &c->of_worker[worker];

	if (!mine->list)
		PFS_TRY(make_room(c->sorting->run, mine, 2 * c->most + PFS_SPAN));
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		uint64_t numbers[PFS_SPAN];
		struct pfs_cells cells;
		struct pfs_span span;
		bool is_exact;

		pfs_positions_span(c->sorting->positions, &span, at, to);
		is_exact = pfs_order_numbers(&c->sorting->keys[0], &span, numbers, &cells) &&
			   c->sorting->n_keys == 1;
		for (uint32_t i = 0; i < span.n; i++) {
			struct pfs_keyed candidate = {.key = numbers[i],
						      .value = (uint32_t)at + i};

			if (!is_wanted(c, mine, &candidate, is_exact))
				continue;
			mine->list[mine->n++] = candidate;
			if (mine->n == mine->capacity)
				PFS_TRY(keep_first(c, mine, NULL));
		}
	}
	return 0;
}

struct copying {
	struct pfs_keyed *to;
	const struct pfs_keyed *from;
};

static int copy_piece(void *context, unsigned worker PFS_UNUSED, uint64_t from, uint64_t to)
{
	const struct copying *copying = context;

	memcpy(copying->to + from, copying->from + from, (to - from) * sizeof(*copying->to));
	return 0;
}

/* Brings all workers' candidates together; the first n of them. */
static int merge_candidates(const struct choosing *c, unsigned workers, uint32_t **order,
			    uint64_t n)
{
	const struct pfs_sorting *s = c->sorting;
	struct candidates all = {0};
	size_t capacity = 0;
	int error;

	for (unsigned i = 0; i < workers; i++)
		capacity += c->of_worker[i].n;
	error = make_room(s->run, &all, capacity);
	for (unsigned i = 0; i < workers && !error; i++) {
		struct copying copying = {all.list + all.n, c->of_worker[i].list};

		error = pfs_host_for(s->host, s->run, c->of_worker[i].n, PFS_PIECE, copy_piece,
				     &copying);
		all.n += c->of_worker[i].n;
	}
	if (!error)
		error = keep_first(c, &all, s->host);
	if (!error)
		error = pfs_sorted_positions(s, order, all.list, n);
	free_room(s->run, &all);
	return error;
}

int pfs_sort_first(const struct pfs_sorting *s, uint32_t **order, uint64_t most)
{
	struct choosing c = {.sorting = s, .most = most};
	unsigned workers = pfs_host_workers(s->host);
	int error;

	*order = NULL;
	if (most == 0)
		return pfs_run_alloc_raw(s->run, order, 0, sizeof(**order));
	PFS_TRY(pfs_run_alloc(s->run, &c.of_worker, workers, sizeof(*c.of_worker)));
	error = pfs_host_for(s->host, s->run, s->positions->n, PFS_PIECE, choose_piece, &c);
	if (!error)
		error = merge_candidates(&c, workers, order, most);
	for (unsigned i = 0; i < workers; i++)
		free_room(s->run, &c.of_worker[i]);
	pfs_run_free(s->run, c.of_worker, workers, sizeof(*c.of_worker));
	return error;
}
