/* SPDX-License-Identifier: MIT */
/* Groups by index: each thread has an array of groups by the keys' numbers, which are few. */
#include "gpu/host/group.h"

#include "base/checked.h"

struct indexing {
	const struct pfs_grouping *grouping;
	struct pfs_group_table *of_worker;
};

struct indexed_worker {
	const struct pfs_grouping *grouping;
	struct pfs_group_table *table;
};

static int add_span(void *context, const struct pfs_span *span)
{
	const struct indexed_worker *worker = context;
	const struct pfs_grouping *g = worker->grouping;
	struct pfs_group_table *table = worker->table;
	uint64_t keys[PFS_SPAN];
	uint32_t group[PFS_SPAN];

	if (g->keys.n == 0) {
		if (table->rows[0] == 0)
			table->first[0] = pfs_span_at(span, 0);
		table->rows[0] += span->n;
	} else {
		pfs_keys_read(&g->keys, span, keys, NULL);
		for (uint32_t i = 0; i < span->n; i++) {
			group[i] = (uint32_t)keys[i];
			if (table->rows[group[i]]++ == 0)
				table->first[group[i]] = pfs_span_at(span, i);
		}
	}
	for (size_t i = 0; i < g->n_folds; i++)
		pfs_fold_add(&g->folds[i], &table->folds[i], span, g->keys.n ? group : NULL);
	return 0;
}

static int index_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct indexing *x = context;
	const struct pfs_grouping *g = x->grouping;
	struct indexed_worker its = {g, &x->of_worker[worker]};

	if (!its.table->capacity) {
		PFS_TRY(pfs_group_table_open(its.table, g));
		PFS_TRY(pfs_group_table_reserve(its.table, g, g->keys.domain, true));
	}
	return pfs_grouping_spans(g, worker, from, to, add_span, &its);
}

/* Adds a thread's groups to those of `to`. */
static int merge_tables(const struct pfs_grouping *g, struct pfs_group_table *to,
			const struct pfs_group_table *from)
{
	for (size_t k = 0; from->folds && k < g->n_folds; k++)
		to->folds[k].size += from->folds[k].size;
	for (size_t i = 0; i < from->capacity; i++) {
		PFS_TRY(pfs_group_look(g->run, i));
		if (from->rows[i] == 0)
			continue;
		to->first[i] = to->rows[i] ? PFS_MIN(to->first[i], from->first[i]) : from->first[i];
		to->rows[i] += from->rows[i];
		for (size_t k = 0; k < g->n_folds; k++)
			pfs_fold_merge(&g->folds[k], &to->folds[k], i, &from->folds[k], i);
	}
	return 0;
}

/* Makes the only group of tuples without reading them, since only their number is wanted. */
static int count_without_keys(struct pfs_group_table *out, const struct pfs_grouping *g)
{
	struct pfs_span span;

	PFS_TRY(pfs_group_table_reserve(out, g, 1, true));
	out->n = out->capacity;
	if (g->positions->n == 0)
		return 0;
	pfs_positions_span(g->positions, &span, 0, g->positions->n);
	out->first[0] = pfs_span_at(&span, 0);
	out->rows[0] = g->positions->n;
	return 0;
}

int pfs_group_by_index(struct pfs_group_table *out, const struct pfs_grouping *g)
{
	uint64_t n = pfs_grouping_tuples(g);
	unsigned workers = pfs_host_workers(g->host);
	struct indexing x = {.grouping = g};
	int error;

	if (g->keys.n == 0 && g->n_folds == 0 && !g->reader)
		return count_without_keys(out, g);
	PFS_TRY(pfs_run_alloc(g->run, &x.of_worker, workers, sizeof(*x.of_worker)));
	error = pfs_host_for(g->host, g->run, n, PFS_PIECE, index_piece, &x);
	if (!error)
		error = pfs_group_table_reserve(out, g, g->keys.domain, true);
	for (unsigned i = 0; i < workers; i++) {
		if (!error)
			error = merge_tables(g, out, &x.of_worker[i]);
		pfs_group_table_close(&x.of_worker[i], g);
	}
	out->n = out->capacity;
	pfs_run_free(g->run, x.of_worker, workers, sizeof(*x.of_worker));
	return error;
}
