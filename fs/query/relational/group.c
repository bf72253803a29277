/* SPDX-License-Identifier: MIT */
/* Groups: of all rows, or of early groups (eager_groups.c). */
#include "fs/query/relational/eager_groups.h"

static int compute_arguments(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	const struct pfs_term **values;
	size_t n = 0;

	values = pfs_arena_get(running->arena, (block->n_group + block->n_aggregates + 1) *
						       sizeof(struct pfs_term *));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < block->n_group; i++)
		values[n++] = block->group[i];
	for (size_t i = 0; i < block->n_aggregates; i++) {
		if (block->aggregates[i].arg &&
		    !(running->run->on == PFS_ENGINE_HOST &&
		      pfs_stage_folds(&running->stage, &block->aggregates[i])))
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

/* ---- of early groups ---- */

/* An average is its total by its count; the other aggregates are where the merged ones are: vectors
 * from `first` on. */
static int know_merged(struct pfs_partial *partial, uint16_t first)
{
	struct pfs_running *running = partial->running;
	size_t n = running->block->n_aggregates, n_averages = 0;
	uint16_t end = running->tuples->n_computed;
	struct pfs_program *programs = pfs_arena_get(running->arena, (n + 1) * sizeof(*programs));
	struct pfs_known_value *known = &running->stage.known[running->block->n_group];
	struct pfs_tuples *tuples;

	if (!programs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		uint16_t at = (uint16_t)(first + partial->partial_of[i]);
		struct pfs_step *steps;

		known[i].ref.column = at;
		if (pfs_aggregate_traits[partial->aggregates[i].op].merge != PFS_MERGE_MEAN)
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

/* What early groups have left, once they have been joined: their aggregates are merged.  Of nothing
 * there is nothing to merge, and the aggregates say what that makes. */
static int group_again(struct pfs_partial *partial)
{
	struct pfs_running *running = partial->running;
	const struct pfs_partial *early = &running->early->partial;
	const struct pfs_tuples *joined = running->tuples;
	uint16_t computed = joined ? joined->n_computed : 0;
	bool is_empty = !joined || joined->n == 0;
	struct pfs_tuples *tuples;

	for (size_t i = 0; i < early->n_partial; i++)
		early->merged[i].ref.column = (uint16_t)(early->at + i);
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, partial->keys, partial->n_keys,
			  is_empty ? partial->aggregates : early->merged,
			  is_empty ? running->block->n_aggregates : early->n_partial));
	pfs_running_go_on(running, tuples);
	PFS_TRY(know_groups(running, partial->keys, computed));
	partial->partial_of = early->partial_of;
	return is_empty ? 0 : know_merged(partial, computed);
}

/* Of values that are equal, one an integer and one a real, SQLite keeps the one that it meets
 * first.  Where the order of rows is not known to be its own, it runs a statement with such values:
 * -EOPNOTSUPP. */
static int check_classes(const struct pfs_running *running, struct pfs_ref ref, bool is_known)
{
	if (is_known || ref.table != PFS_COMPUTED || !running->tuples)
		return 0; /* no column of a table has both */
	return running->tuples->computed[ref.column].kind == PFS_KIND_NUMBER ? -EOPNOTSUPP : 0;
}

int pfs_running_distinct(struct pfs_running *running, struct pfs_group_key *keys, size_t n)
{
	bool is_known = running->block->is_scan && !running->block->is_grouped;
	struct pfs_tuples *tuples;

	for (size_t i = 0; i < n; i++)
		PFS_TRY(check_classes(running, keys[i].ref, is_known));
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, keys, n, NULL, 0));
	pfs_running_go_on(running, tuples);
	return 0;
}

/* ---- of rows ---- */

/* Makes ready where texts of several rows are put, each as long as SQLite allows. */
static int keep_texts(struct pfs_partial *grouping, size_t n_aggregates)
{
	struct pfs_run_context *context = grouping->running->context;

	for (size_t i = 0; i < n_aggregates; i++) {
		struct pfs_aggregate *aggregate = &grouping->aggregates[i];

		if (aggregate->op != PFS_GROUP_CONCAT)
			continue;
		aggregate->texts = pfs_kept_texts_add(context);
		if (!aggregate->texts)
			return -ENOMEM;
		aggregate->texts->limit = context->text_limit;
	}
	return 0;
}

static int find_refs(struct pfs_partial *grouping)
{
	struct pfs_running *running = grouping->running;
	const struct pfs_block *block = running->block;

	for (size_t i = 0; i < block->n_group; i++) {
		grouping->keys[i].collation = block->group[i]->collation;
		if (!pfs_stage_ref(&running->stage, &grouping->keys[i].ref, block->group[i]))
			return -EOPNOTSUPP;
		PFS_TRY(check_classes(running, grouping->keys[i].ref, block->is_scan));
	}
	PFS_TRY(pfs_stage_aggregates(&running->stage, grouping->aggregates, block));
	for (size_t i = 0; i < block->n_aggregates; i++) {
		if (pfs_fold_of(block->aggregates[i].op)->is_end)
			PFS_TRY(check_classes(running, grouping->aggregates[i].ref,
					      block->is_scan));
	}
	return keep_texts(grouping, block->n_aggregates);
}

int pfs_running_group(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	struct pfs_partial grouping = {.running = running};
	struct pfs_tuples *tuples;
	uint16_t computed;

	PFS_TRY(compute_arguments(running));
	computed = running->tuples ? running->tuples->n_computed : 0;
	grouping.n_keys = block->n_group;
	grouping.keys =
		pfs_arena_get(running->arena, (block->n_group + 1) * sizeof(*grouping.keys));
	grouping.aggregates = pfs_arena_get(running->arena, (block->n_aggregates + 1) *
								    sizeof(*grouping.aggregates));
	if (!grouping.keys || !grouping.aggregates)
		return -ENOMEM;
	PFS_TRY(find_refs(&grouping));
	if (running->early)
		return group_again(&grouping);
	PFS_TRY(pfs_group(running->run, &tuples, &running->source, grouping.keys, block->n_group,
			  grouping.aggregates, block->n_aggregates));
	pfs_running_go_on(running, tuples);
	return know_groups(running, grouping.keys, computed);
}
