/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/eager_groups.h"

#include "fs/query/relational/sidetable.h"

#define ROWS_MIN    4096u  /* fewer are joined as they are */
#define SAMPLE_ROWS 16384u /* that say how many groups there are */

/* ---- whether ---- */

static bool add_column(struct pfs_eager_plan *plan, const struct pfs_block *block,
		       const struct pfs_term *column)
{
	const struct pfs_input *from = &block->inputs[column->input];
	const struct pfs_input_column *of = &from->columns[column->column];

	if (column->is_late || plan->n_columns == PFS_EARLY_COLUMNS ||
	    (from->kind == PFS_INPUT_NODES && !of->wish.attr &&
	     pfs_fields[of->wish.field].values != PFS_VALUES_FEW))
		return false;
	for (size_t i = 0; i < plan->n_columns; i++) {
		if (pfs_bound_equals(plan->columns[i], column))
			return true;
	}
	plan->columns[plan->n_columns++] = column;
	return true;
}

/* Adds the columns of the input that the term names; false: they are none of few values, or it asks
 * for rows. */
static bool add_columns(struct pfs_eager_plan *plan, const struct pfs_block *block,
			const struct pfs_term *term)
{
	bool is_own = (term->kind == PFS_BOUND_COLUMN || term->kind == PFS_BOUND_NODES) &&
		      block->inputs[term->input].parent_of == plan->input;

	if (is_own)
		return term->kind == PFS_BOUND_COLUMN && add_column(plan, block, term);
	for (unsigned i = 0; i < term->n_args; i++) {
		if (!add_columns(plan, block, term->args[i]))
			return false;
	}
	return true;
}

/* The same of a condition, but for those parts that select the input's rows before. */
static bool add_condition(struct pfs_eager_plan *plan, const struct pfs_block *block,
			  const struct pfs_term *term, bool is_of_left_join)
{
	if (!term)
		return true;
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_AND)
		return add_condition(plan, block, term->args[0], is_of_left_join) &&
		       add_condition(plan, block, term->args[1], is_of_left_join);
	if (!is_of_left_join && pfs_term_inputs(block, term) == UINT32_C(1) << plan->input)
		return true;
	return add_columns(plan, block, term);
}

static bool add_all(struct pfs_eager_plan *plan, const struct pfs_block *block)
{
	struct pfs_term *const *keys = block->is_grouped ? block->group : block->results;
	size_t n_keys = block->is_grouped ? block->n_group : block->n_results;
	bool fits = add_condition(plan, block, block->where, false);

	for (unsigned i = 0; i < block->n_inputs && fits; i++) {
		const struct pfs_input *from = &block->inputs[i];

		fits = add_condition(plan, block, from->on, from->is_left) &&
		       add_condition(plan, block, from->equal, from->is_left);
	}
	for (size_t i = 0; i < n_keys && fits; i++)
		fits = add_columns(plan, block, keys[i]);
	for (size_t i = 0; i < block->n_order && fits && !block->is_grouped; i++)
		fits = add_columns(plan, block, block->order[i].value);
	return fits;
}

/* True if each aggregate is of one of the input's columns, or of none. */
static bool has_arguments(const struct pfs_eager_plan *plan, const struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_aggregates; i++) {
		const struct pfs_term *arg = block->aggregates[i].arg;

		if (arg && (arg->kind != PFS_BOUND_COLUMN || arg->is_late ||
			    block->inputs[arg->input].parent_of != plan->input))
			return false;
	}
	return true;
}

bool pfs_eager_find(struct pfs_eager_plan *plan, const struct pfs_block *block, uint64_t n_nodes)
{
	unsigned n_joined = 0;

	*plan = (struct pfs_eager_plan){.n_rows = 0};
	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *from = &block->inputs[i];
		uint64_t n_rows = 0;

		if (from->is_value)
			return false; /* conditions that name it are of no input */
		if (from->parent_of != i)
			continue;
		n_joined++;
		if (from->kind == PFS_INPUT_NODES)
			n_rows = n_nodes;
		else if (from->kind == PFS_INPUT_SIDE)
			n_rows = from->side->table.n_rows;
		if (n_rows <= plan->n_rows)
			continue;
		plan->input = i;
		plan->n_rows = n_rows;
	}
	/* what a LEFT JOIN has found nothing for is a row, too, and nobody's group */
	return n_joined > 1 && plan->n_rows && (block->is_grouped || block->is_distinct) &&
	       !block->n_windows && !block->inputs[plan->input].is_left &&
	       has_arguments(plan, block) && pfs_partial_is_exact(block) && add_all(plan, block);
}

/* ---- making them ---- */

static int take_aggregates(struct pfs_running *running, struct pfs_partial *partial)
{
	const struct pfs_block *block = running->block;

	partial->aggregates = pfs_arena_get(running->arena, (block->n_aggregates + 1) *
								    sizeof(*partial->aggregates));
	if (!partial->aggregates)
		return -ENOMEM;
	PFS_TRY(pfs_stage_aggregates(&running->stage, partial->aggregates, block));
	for (size_t i = 0; i < block->n_aggregates; i++)
		partial->aggregates[i].ref.table = 0;
	return pfs_partial_plan(partial);
}

static int take_keys(struct pfs_running *running, struct pfs_partial *partial,
		     const struct pfs_eager_plan *plan)
{
	partial->n_keys = plan->n_columns;
	partial->keys =
		pfs_arena_get(running->arena, (plan->n_columns + 1) * sizeof(*partial->keys));
	if (!partial->keys)
		return -ENOMEM;
	for (size_t i = 0; i < plan->n_columns; i++) {
		partial->keys[i].collation = PFS_BINARY;
		if (!pfs_stage_ref(&running->stage, &partial->keys[i].ref, plan->columns[i]))
			return -EOPNOTSUPP;
		partial->keys[i].ref.table = 0; /* of the input alone */
	}
	return 0;
}

int pfs_eager_group(struct pfs_running *running, struct pfs_source *source,
		    const struct pfs_eager_plan *plan)
{
	uint64_t rows_min = running->query->piece ? 1 : ROWS_MIN;
	struct pfs_eager *early;
	int error;

	if (running->run->on != PFS_ENGINE_HOST || source->table->n_rows < rows_min ||
	    (source->rows && source->rows->form == PFS_ROWS_LIST &&
	     source->rows->n_list < rows_min))
		return 0;
	early = pfs_arena_get(running->arena, sizeof(*early));
	if (!early)
		return -ENOMEM;
	early->partial.running = running;
	early->partial.sample = running->query->piece ? running->query->piece : SAMPLE_ROWS;
	PFS_TRY(take_keys(running, &early->partial, plan));
	PFS_TRY(take_aggregates(running, &early->partial));
	error = pfs_partial_run(&early->partial, &early->tuples, source);
	if (error == -ERANGE || error == -EOVERFLOW) /* of rows, maybe, that are joined with none */
		return 0;
	if (error)
		return error;
	running->early = early;
	*source = (struct pfs_source){.tuples = early->tuples};
	return 0;
}

void pfs_eager_free(struct pfs_running *running)
{
	if (running->early)
		pfs_tuples_free(running->run, running->early->tuples);
	running->early = NULL;
}
