/* SPDX-License-Identifier: MIT */
/* The first few of an order: each thread keeps twice as many candidates, and takes no tuple that
 * cannot be among its first ones. */
#include "gpu/host/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/positions.h"

struct candidate {
	uint64_t number; /* the number of the first key */
	uint32_t at;
};

struct candidates {
	struct candidate *list;
	size_t n, capacity;
	bool is_full;	   /* list[most - 1] is the last that can be among the first */
	uint8_t apart[64]; /* workers write, each in its own cache line */
};

struct choosing {
	const struct pfs_sorting *sorting;
	uint64_t most;
	struct candidates *of_worker;
};

static int compare_candidates(const void *a, const void *b, void *context)
{
	const struct pfs_sorting *const *sorting = context;
	const struct candidate *x = a, *y = b;
	int order;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	order = pfs_order_compare(*sorting, x->at, y->at);
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

static void keep_first(const struct choosing *c, struct candidates *mine)
{
	const struct pfs_sorting *sorting = c->sorting;

	qsort_r(mine->list, mine->n, sizeof(*mine->list), compare_candidates, &sorting);
	mine->n = PFS_MIN(mine->n, c->most);
	mine->is_full = mine->n == c->most;
}

/* is_exact: a later tuple with the same number as the last one does not precede it, unless other
 * keys say so. */
static bool is_wanted(const struct choosing *c, const struct candidates *mine,
		      const struct candidate *candidate, bool is_exact)
{
	const struct candidate *last;

	if (!mine->is_full)
		return true;
	last = &mine->list[c->most - 1];
	if (candidate->number != last->number)
		return candidate->number < last->number;
	return !is_exact && pfs_order_compare(c->sorting, candidate->at, last->at) < 0;
}

static int choose_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct choosing *c = context;
	struct candidates *mine = &c->of_worker[worker];

	if (!mine->list) {
		PFS_TRY(pfs_run_alloc_raw(c->sorting->run, &mine->list, 2 * c->most + PFS_SPAN,
					  sizeof(*mine->list)));
		mine->capacity = 2 * c->most + PFS_SPAN;
	}
	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		uint64_t numbers[PFS_SPAN];
		struct pfs_span span;
		bool is_exact;

		pfs_positions_span(c->sorting->positions, &span, at, to);
		is_exact = pfs_order_numbers(&c->sorting->keys[0], &span, numbers) &&
			   c->sorting->n_keys == 1;
		for (uint32_t i = 0; i < span.n; i++) {
			struct candidate candidate = {.number = numbers[i],
						      .at = pfs_span_at(&span, i)};

			if (!is_wanted(c, mine, &candidate, is_exact))
				continue;
			mine->list[mine->n++] = candidate;
			if (mine->n == mine->capacity)
				keep_first(c, mine);
		}
	}
	return 0;
}

/* Brings all workers' candidates together; the first n of them. */
static int merge_candidates(const struct choosing *c, unsigned workers, uint32_t **order,
			    uint64_t n)
{
	const struct pfs_run *run = c->sorting->run;
	struct candidates all = {0};
	int error;

	for (unsigned i = 0; i < workers; i++)
		all.capacity += c->of_worker[i].n;
	PFS_TRY(pfs_run_alloc_raw(run, &all.list, all.capacity, sizeof(*all.list)));
	for (unsigned i = 0; i < workers; i++) {
		if (c->of_worker[i].n)
			memcpy(all.list + all.n, c->of_worker[i].list,
			       c->of_worker[i].n * sizeof(*all.list));
		all.n += c->of_worker[i].n;
	}
	keep_first(c, &all);
	error = pfs_run_alloc_raw(run, order, n, sizeof(**order));
	for (uint64_t i = 0; !error && i < n; i++)
		(*order)[i] = all.list[i].at;
	pfs_run_free(run, all.list, all.capacity, sizeof(*all.list));
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
		pfs_run_free(s->run, c.of_worker[i].list, c.of_worker[i].capacity,
			     sizeof(*c.of_worker[i].list));
	pfs_run_free(s->run, c.of_worker, workers, sizeof(*c.of_worker));
	return error;
}
