/* SPDX-License-Identifier: MIT */
/* Groups.  A large table is grouped a piece at a time, between which the tree is let go, and the pieces'
 * groups are grouped once more, where the aggregates of parts say what that of the whole is: all but
 * count(DISTINCT), and but for sums that may leave 64 bits in one order of rows and not in another. */
#include "fs/query/relational/run.h"

#include "base/checked.h"
#include "base/clock.h"

#define PIECES_MAX 2048

static int compute_arguments(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	const struct pfs_term **values;
	size_t n = 0;

	values = pfs_arena_get(running->arena,
			       (block->n_group + block->n_aggregates + 1) * sizeof(struct pfs_term *));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < block->n_group; i++)
		values[n++] = block->group[i];
	for (size_t i = 0; i < block->n_aggregates; i++) {
		if (block->aggregates[i].arg)
			values[n++] = block->aggregates[i].arg;
	}
	return pfs_running_compute(running, values, n);
}

static bool is_number_of_node(const struct pfs_block *block, const struct pfs_term *key)
{
	const struct pfs_input *from = &block->inputs[key->input];
	const struct pfs_column_wish *wish = &from->columns[key->column].wish;

	return from->kind == PFS_INPUT_NODES && !wish->attr && wish->field == PFS_FIELD_INO;
}

/* From here on only keys and aggregates are known, and whole nodes whose number is a key. */
static int know_groups(struct pfs_running *running, const struct pfs_group_key *keys,
		       uint16_t computed)
{
	const struct pfs_block *block = running->block;
	struct pfs_stage *stage = &running->stage;

	stage->n_known = 0;
	stage->has_columns = false;
	for (size_t i = 0; i < block->n_group; i++) {
		const struct pfs_term *key = block->group[i];

		pfs_stage_add(stage, key, keys[i].ref);
		if (key->kind == PFS_BOUND_COLUMN && is_number_of_node(block, key))
			stage->whole |= UINT32_C(1) << key->input;
	}
	for (size_t i = 0; i < block->n_aggregates; i++) {
		struct pfs_term *bound = pfs_arena_get(running->arena, sizeof(*bound));

		if (!bound)
			return -ENOMEM;
		bound->kind = PFS_BOUND_AGGREGATE;
		bound->aggregate = i;
		pfs_stage_add(stage, bound,
			      (struct pfs_ref){PFS_COMPUTED, (uint16_t)(computed + i)});
	}
	return 0;
}

/* ---- in pieces ---- */

struct grouping {
	struct pfs_running *running;
	struct pfs_group_key *keys;
	size_t n_keys;
	struct pfs_aggregate *aggregates; /* as they are of the whole; */
	struct pfs_aggregate *partial;	  /* of a piece, AVG being two; */
	struct pfs_aggregate *merged;	  /* of these, once more */
	uint16_t *partial_of;		  /* by aggregate */
	size_t n_partial;
};

/* Numbers that are never negative: their sum leaves 64 bits in any order or in none. */
static bool only_grows(const struct pfs_block *block, const struct pfs_term *arg)
{
	const struct pfs_column_wish *wish = &block->inputs[arg->input].columns[arg->column].wish;

	return arg->kind == PFS_BOUND_COLUMN && block->inputs[arg->input].kind == PFS_INPUT_NODES &&
	       !wish->attr && !pfs_field_is_time(wish->field);
}

static bool is_in_pieces(const struct pfs_running *running)
{
	return !running->tuples && running->source.table &&
	       running->source.table->n_rows > pfs_running_piece(running) &&
	       running->source.table->n_rows <= pfs_running_piece(running) * PIECES_MAX;
}

static bool can_be_merged(const struct grouping *grouping)
{
	const struct pfs_block *block = grouping->running->block;

	if (!is_in_pieces(grouping->running))
		return false;
	for (size_t i = 0; i < block->n_aggregates; i++) {
		const struct pfs_bound_aggregate *aggregate = &block->aggregates[i];

		enum pfs_merge merge = pfs_aggregate_traits[aggregate->op].merge;

		if (merge == PFS_MERGE_NONE ||
		    (merge == PFS_MERGE_GROWING && !only_grows(block, aggregate->arg)))
			return false;
	}
	return true;
}

static void add_partial(struct grouping *grouping, const struct pfs_aggregate *aggregate,
			enum pfs_aggregate_op op, enum pfs_aggregate_op merge)
{
	size_t i = grouping->n_partial++;

	grouping->partial[i] = *aggregate;
	grouping->partial[i].op = op;
	grouping->merged[i] = *aggregate;
	grouping->merged[i].op = merge;
	grouping->merged[i].ref = (struct pfs_ref){PFS_COMPUTED, (uint16_t)i};
}

static int plan_pieces(struct grouping *grouping, size_t n)
{
	struct pfs_arena *arena = grouping->running->arena;

	grouping->partial = pfs_arena_get(arena, (2 * n + 1) * sizeof(*grouping->partial));
	grouping->merged = pfs_arena_get(arena, (2 * n + 1) * sizeof(*grouping->merged));
	grouping->partial_of = pfs_arena_get(arena, (n + 1) * sizeof(*grouping->partial_of));
	if (!grouping->partial || !grouping->merged || !grouping->partial_of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct pfs_aggregate *aggregate = &grouping->aggregates[i];

		grouping->partial_of[i] = (uint16_t)grouping->n_partial;
		switch (pfs_aggregate_traits[aggregate->op].merge) {
		case PFS_MERGE_SUM:
			add_partial(grouping, aggregate, aggregate->op, PFS_SUM);
			break;
		case PFS_MERGE_MEAN:
			add_partial(grouping, aggregate, PFS_TOTAL, PFS_TOTAL);
			add_partial(grouping, aggregate, PFS_COUNT, PFS_SUM);
			break;
		case PFS_MERGE_SAME:
		case PFS_MERGE_GROWING:
			add_partial(grouping, aggregate, aggregate->op, aggregate->op);
			break;
		case PFS_MERGE_NONE:
			return -EOPNOTSUPP; /* can_be_merged() said so */
		}
	}
	return 0;
}

/* One after the other; *n of them are there, also when this fails. */
static int group_pieces(struct grouping *grouping, struct pfs_tuples **parts, size_t *n)
{
	struct pfs_running *running = grouping->running;
	struct pfs_source piece = running->source;
	uint64_t step = pfs_running_piece(running), n_rows = piece.table->n_rows;

	for (piece.to = 0; piece.to < n_rows;) {
		uint64_t started = pfs_now_ns();

		piece.from = piece.to;
		piece.to = PFS_MIN(piece.from + step, n_rows);
		PFS_TRY(pfs_group(running->run, &parts[*n], &piece, grouping->keys,
				  grouping->n_keys, grouping->partial, grouping->n_partial));
		++*n;
		step = pfs_running_next_piece(running, step, started);
		PFS_TRY(pfs_query_look(running->query));
	}
	return 0;
}

static int merge_pieces(struct grouping *grouping, struct pfs_tuples *const *parts, size_t n)
{
	struct pfs_running *running = grouping->running;
	struct pfs_tuples *tuples;

	PFS_TRY(pfs_tuples_concat(running->run, &tuples, parts, n));
	pfs_running_go_on(running, tuples);
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, grouping->keys,
			  grouping->n_keys, grouping->merged, grouping->n_partial));
	pfs_running_go_on(running, tuples);
	return 0;
}

/* An average is its total by its count; the other aggregates are where the merged ones are. */
static int know_merged(struct grouping *grouping)
{
	struct pfs_running *running = grouping->running;
	size_t n = running->block->n_aggregates, n_averages = 0;
	uint16_t first = (uint16_t)grouping->n_partial, end = running->tuples->n_computed;
	struct pfs_program *programs = pfs_arena_get(running->arena, (n + 1) * sizeof(*programs));
	struct pfs_known_value *known = &running->stage.known[running->block->n_group];
	struct pfs_tuples *tuples;

	if (!programs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint16_t at = (uint16_t)(first + grouping->partial_of[i]);
		struct pfs_step *steps;

		known[i].ref.column = at;
		if (pfs_aggregate_traits[grouping->aggregates[i].op].merge != PFS_MERGE_MEAN)
			continue;
		steps = pfs_arena_get(running->arena, 3 * sizeof(*steps));
		if (!steps)
			return -ENOMEM;
		steps[0] = (struct pfs_step){.op = PFS_OP_COLUMN, .ref = {PFS_COMPUTED, at}};
		steps[1] = (struct pfs_step){.op = PFS_OP_COLUMN,
					     .ref = {PFS_COMPUTED, (uint16_t)(at + 1)}};
		steps[2] = (struct pfs_step){.op = PFS_OP_DIVIDE};
		known[i].ref.column = (uint16_t)(end + n_averages);
		programs[n_averages++] = (struct pfs_program){steps, 3};
	}
	if (!n_averages)
		return 0;
	PFS_TRY(pfs_compute(running->run, &tuples, &running->source, programs, n_averages));
	pfs_running_go_on(running, tuples);
	return 0;
}

/* What the grouping's keys and partial aggregates make of the table. */
static int group_table(struct grouping *grouping)
{
	struct pfs_running *running = grouping->running;
	struct pfs_tuples **parts;
	size_t n = 0;
	int error;

	parts = pfs_arena_get(running->arena, PIECES_MAX * sizeof(struct pfs_tuples *));
	if (!parts)
		return -ENOMEM;
	error = group_pieces(grouping, parts, &n);
	if (!error)
		error = merge_pieces(grouping, parts, n);
	for (size_t i = 0; i < n; i++)
		pfs_tuples_free(running->run, parts[i]);
	return error;
}

static int group_in_pieces(struct grouping *grouping)
{
	PFS_TRY(plan_pieces(grouping, grouping->running->block->n_aggregates));
	PFS_TRY(group_table(grouping));
	PFS_TRY(know_groups(grouping->running, grouping->keys, 0));
	return know_merged(grouping);
}

int pfs_running_distinct(struct pfs_running *running, struct pfs_group_key *keys, size_t n)
{
	struct grouping grouping = {.running = running, .keys = keys, .n_keys = n};
	struct pfs_tuples *tuples;

	if (is_in_pieces(running))
		return group_table(&grouping);
	PFS_TRY(pfs_running_settle(running));
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, keys, n, NULL, 0));
	pfs_running_go_on(running, tuples);
	return 0;
}

/* ---- at once ---- */

static int find_refs(struct grouping *grouping)
{
	struct pfs_running *running = grouping->running;
	const struct pfs_block *block = running->block;

	for (size_t i = 0; i < block->n_group; i++) {
		grouping->keys[i].collation = block->group[i]->collation;
		if (!pfs_stage_ref(&running->stage, &grouping->keys[i].ref, block->group[i]))
			return -EOPNOTSUPP;
	}
	for (size_t i = 0; i < block->n_aggregates; i++) {
		const struct pfs_term *arg = block->aggregates[i].arg;
		struct pfs_aggregate *aggregate = &grouping->aggregates[i];

		aggregate->op = block->aggregates[i].op;
		if (!arg)
			continue;
		aggregate->collation = arg->collation;
		if (!pfs_stage_ref(&running->stage, &aggregate->ref, arg))
			return -EOPNOTSUPP;
	}
	return 0;
}

int pfs_running_group(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	struct grouping grouping = {.running = running};
	struct pfs_tuples *tuples;
	uint16_t computed;

	PFS_TRY(compute_arguments(running));
	computed = running->tuples ? running->tuples->n_computed : 0;
	grouping.n_keys = block->n_group;
	grouping.keys = pfs_arena_get(running->arena, (block->n_group + 1) * sizeof(*grouping.keys));
	grouping.aggregates = pfs_arena_get(running->arena, (block->n_aggregates + 1) *
								    sizeof(*grouping.aggregates));
	if (!grouping.keys || !grouping.aggregates)
		return -ENOMEM;
	PFS_TRY(find_refs(&grouping));
	if (can_be_merged(&grouping))
		return group_in_pieces(&grouping);
	PFS_TRY(pfs_running_settle(running));
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, grouping.keys, block->n_group,
			  grouping.aggregates, block->n_aggregates));
	pfs_running_go_on(running, tuples);
	return know_groups(running, grouping.keys, computed);
}
