/* SPDX-License-Identifier: MIT */
/* What is grouped in parts is grouped once more, where the aggregates of parts say what that of the
 * whole is: all but count(DISTINCT), and but for sums that may leave 64 bits in one order of rows
 * and not in another, or have infinities of both signs, of which nothing is left but a NULL. */
#include "fs/query/relational/partial_groups.h"

#include "base/checked.h"

#define SAMPLE_ROWS   8u  /* for each group of a sample that is worth it, */
#define SAMPLE_GROUPS 64u /* but for so many */
#define PARTS	      2u

/* Numbers that are never negative: their sum leaves 64 bits in any order or in none. */
static bool only_grows(const struct pfs_block *block, const struct pfs_term *arg)
{
	const struct pfs_column_wish *wish = &block->inputs[arg->input].columns[arg->column].wish;

	return arg->kind == PFS_BOUND_COLUMN && block->inputs[arg->input].kind == PFS_INPUT_NODES &&
	       !wish->attr && !pfs_field_is_time(wish->field);
}

static bool merges_exactly(const struct pfs_block *block,
			   const struct pfs_bound_aggregate *aggregate)
{
	switch (pfs_aggregate_traits[aggregate->op].merge) {
	case PFS_MERGE_NONE:
		return false;
	case PFS_MERGE_GROWING:
	case PFS_MERGE_MEAN:
		return only_grows(block, aggregate->arg);
	case PFS_MERGE_SAME:
	case PFS_MERGE_SUM:
		break;
	}
	return true;
}

bool pfs_partial_is_exact(const struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_aggregates; i++)
		if (!merges_exactly(block, &block->aggregates[i]))
			return false;
	return true;
}

static void add_partial(struct pfs_partial *partial, const struct pfs_aggregate *aggregate,
			enum pfs_aggregate_op op, enum pfs_aggregate_op merge)
{
	size_t i = partial->n_partial++;

	partial->partial[i] = *aggregate;
	partial->partial[i].op = op;
	partial->merged[i] = *aggregate;
	partial->merged[i].op = merge;
	partial->merged[i].ref = (struct pfs_ref){PFS_COMPUTED, (uint16_t)i};
}

int pfs_partial_plan(struct pfs_partial *partial)
{
	size_t n = partial->running->block->n_aggregates;
	struct pfs_arena *arena = partial->running->arena;

	partial->partial = pfs_arena_get(arena, (2 * n + 1) * sizeof(*partial->partial));
	partial->merged = pfs_arena_get(arena, (2 * n + 1) * sizeof(*partial->merged));
	partial->partial_of = pfs_arena_get(arena, (n + 1) * sizeof(*partial->partial_of));
	if (!partial->partial || !partial->merged || !partial->partial_of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct pfs_aggregate *aggregate = &partial->aggregates[i];

		partial->partial_of[i] = (uint16_t)partial->n_partial;
		switch (pfs_aggregate_traits[aggregate->op].merge) {
		case PFS_MERGE_SUM:
			add_partial(partial, aggregate, aggregate->op, PFS_SUM);
			break;
		case PFS_MERGE_MEAN:
			add_partial(partial, aggregate, PFS_TOTAL, PFS_TOTAL);
			add_partial(partial, aggregate, PFS_COUNT, PFS_SUM);
			break;
		case PFS_MERGE_SAME:
		case PFS_MERGE_GROWING:
			add_partial(partial, aggregate, aggregate->op, aggregate->op);
			break;
		case PFS_MERGE_NONE:
			return -EOPNOTSUPP; /* pfs_partial_is_exact() said so */
		}
	}
	return 0;
}

/* The sample, and all that is behind it; *n of them are there, also when this fails. */
static int group_parts(const struct pfs_partial *partial, struct pfs_tuples **parts, size_t *n,
		       const struct pfs_source *source)
{
	uint64_t ends[PARTS] = {PFS_MIN(partial->sample, source->table->n_rows),
				source->table->n_rows};
	struct pfs_source part = *source;

	part.to = 0;
	for (size_t i = 0; i < PARTS && part.to < source->table->n_rows; i++) {
		part.from = part.to;
		part.to = ends[i];
		PFS_TRY(pfs_group(partial->running->run, &parts[i], &part, partial->keys,
				  partial->n_keys, partial->partial, partial->n_partial));
		*n = i + 1;
		if (i == 0 && parts[0]->n > PFS_MAX(part.to / SAMPLE_ROWS, SAMPLE_GROUPS))
			return -ERANGE;
	}
	return 0;
}

static int merge_parts(struct pfs_partial *partial, struct pfs_tuples **out,
		       struct pfs_tuples *const *parts, size_t n)
{
	struct pfs_running *running = partial->running;
	struct pfs_source source = {.table = NULL};
	int error;

	PFS_TRY(pfs_tuples_concat(running->run, &source.tuples, parts, n));
	for (size_t i = 0; i < partial->n_partial; i++)
		partial->merged[i].ref.column = (uint16_t)i;
	error = pfs_group(running->run, out, &source, partial->keys, partial->n_keys,
			  partial->merged, partial->n_partial);
	partial->at = (uint16_t)partial->n_partial;
	pfs_tuples_free(running->run, source.tuples);
	return error;
}

int pfs_partial_run(struct pfs_partial *partial, struct pfs_tuples **out,
		    const struct pfs_source *source)
{
	struct pfs_tuples *parts[PARTS];
	size_t n = 0;
	int error;

	*out = NULL;
	error = group_parts(partial, parts, &n, source);
	if (!error)
		error = merge_parts(partial, out, parts, n);
	for (size_t i = 0; i < n; i++)
		pfs_tuples_free(partial->running->run, parts[i]);
	return error;
}
