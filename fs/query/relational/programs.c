/* SPDX-License-Identifier: MIT */
/* Bound values as programs (run.h), and vectors of what they compute. */
#include "fs/query/relational/run.h"

#include <string.h>

void pfs_stage_add(struct pfs_stage *stage, const struct pfs_term *bound, struct pfs_ref ref)
{
	stage->known[stage->n_known++] = (struct pfs_known_value){bound, ref};
}

/* Made columns are behind all others of their table. */
static size_t made_column(const struct pfs_block *block, const struct pfs_term *bound)
{
	unsigned table = block->inputs[bound->input].parent_of;
	size_t column = 0, made = pfs_block_made(block, bound);

	for (size_t i = 0; i < block->n_inputs; i++)
		column += block->inputs[i].parent_of == table ? block->inputs[i].n_used : 0;
	for (size_t i = 0; i < made; i++)
		column += block->inputs[block->made[i]->input].parent_of == table;
	return column;
}

size_t pfs_stage_column(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	const struct pfs_input *inputs = stage->block->inputs, *from = &inputs[bound->input];
	size_t column = from->columns[bound->column].at;

	if (bound->kind == PFS_BOUND_MADE)
		return made_column(stage->block, bound);
	if (from->parent_of != bound->input) { /* behind those that were put there before it */
		column += inputs[from->parent_of].n_used;
		for (unsigned i = 0; i < bound->input; i++) {
			if (i != from->parent_of && inputs[i].parent_of == from->parent_of)
				column += inputs[i].n_used;
		}
	}
	return column;
}

/* Returns true if a made column's values follow from what is known: a key of the groups, or what
 * the column is made of. */
static bool is_of_key(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	for (size_t i = 0; i < stage->n_known; i++) {
		const struct pfs_term *key = stage->known[i].bound;
		const struct pfs_term *of = key->kind == PFS_BOUND_MADE ? key->args[0] : key;

		if (of->kind == PFS_BOUND_COLUMN && pfs_bound_equals(of, bound->args[0]) &&
		    pfs_steps_begin(bound, key))
			return true;
	}
	return false;
}

/* Columns are there before rows are grouped, and afterwards those of whole rows. */
static bool is_there(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	bool is_row = stage->has_columns || (stage->whole >> bound->input & 1);

	if (bound->kind == PFS_BOUND_COLUMN)
		return is_row && !bound->is_late;
	return bound->kind == PFS_BOUND_MADE && (is_row || is_of_key(stage, bound)) &&
	       pfs_block_made(stage->block, bound) <
		       stage->block->n_made; /* or a cursor makes it */
}

static bool is_value(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	return bound->kind == PFS_BOUND_COLUMN && stage->block->inputs[bound->input].is_value;
}

bool pfs_stage_ref(const struct pfs_stage *stage, struct pfs_ref *ref, const struct pfs_term *bound)
{
	for (size_t i = 0; i < stage->n_known; i++) {
		if (pfs_bound_equals(stage->known[i].bound, bound)) {
			*ref = stage->known[i].ref;
			return true;
		}
	}
	if (is_value(stage, bound) || !is_there(stage, bound))
		return false;
	*ref = (struct pfs_ref){stage->table_of[bound->input],
				(uint16_t)pfs_stage_column(stage, bound)};
	return true;
}

bool pfs_stage_folds(const struct pfs_stage *stage, const struct pfs_bound_aggregate *aggregate)
{
	enum pfs_fold_takes takes = pfs_fold_of(aggregate->op)->takes;

	return (takes == PFS_TAKES_NULLS || takes == PFS_TAKES_NUMBERS) &&
	       aggregate->arg->kind == PFS_BOUND_STEP && pfs_bound_is_number(aggregate->arg) &&
	       !stage->block->n_printed;
}

/* Has the i-th aggregate's argument computed while it is aggregated: once for all that have it. */
static int fold_argument(const struct pfs_stage *stage, struct pfs_aggregate *out,
			 const struct pfs_bound_aggregate *aggregates, size_t i)
{
	const struct pfs_term *arg = aggregates[i].arg;
	struct pfs_program *program;

	if (!pfs_stage_folds(stage, &aggregates[i]))
		return -EOPNOTSUPP;
	for (size_t k = 0; k < i; k++) {
		if (!out[k].program || !pfs_bound_equals(aggregates[k].arg, arg))
			continue;
		out[i].program = out[k].program;
		return 0;
	}
	program = pfs_arena_get(stage->arena, sizeof(*program));
	out[i].program = program;
	return program ? pfs_stage_program(stage, program, &arg, 1) : -ENOMEM;
}

int pfs_stage_aggregates(const struct pfs_stage *stage, struct pfs_aggregate *out,
			 const struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_aggregates; i++) {
		const struct pfs_term *arg = block->aggregates[i].arg;

		out[i].op = block->aggregates[i].op;
		out[i].separator = block->aggregates[i].separator;
		if (!arg)
			continue;
		out[i].collation = arg->collation;
		if (!pfs_stage_ref(stage, &out[i].ref, arg))
			PFS_TRY(fold_argument(stage, out, block->aggregates, i));
	}
	return 0;
}

struct emitting {
	const struct pfs_stage *stage;
	struct pfs_step *steps;
	size_t n;
};

static size_t count_steps(const struct pfs_term *bound)
{
	size_t n = 1;

	for (unsigned i = 0; i < bound->n_args; i++)
		n += count_steps(bound->args[i]);
	return n;
}

static struct pfs_rows *set_of(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	for (size_t i = 0; i < stage->n_sets; i++) {
		if (stage->sets[i].bound == bound)
			return stage->sets[i].rows;
	}
	return NULL;
}

/* What a sub-select of one row has found, with that row as its table. */
static struct pfs_constant value_of(const struct pfs_stage *stage, const struct pfs_term *bound)
{
	const struct pfs_table_column *column =
		&stage->tables[bound->input]
			 .columns[stage->block->inputs[bound->input].columns[bound->column].at];
	struct pfs_constant value = {.type = PFS_IS_NULL};

	if (column->nulls && column->nulls[0] & 1)
		return value;
	value.type = column->kind == PFS_KIND_REAL ? PFS_IS_REAL : PFS_IS_INTEGER;
	memcpy(value.type == PFS_IS_REAL ? (void *)&value.real : (void *)&value.integer,
	       column->data, sizeof(int64_t));
	return value;
}

static int emit(struct emitting *emitting, const struct pfs_term *bound)
{
	struct pfs_step step = {.op = PFS_OP_COLUMN, .collation = bound->collation};

	if (is_value(emitting->stage, bound)) {
		step.op = PFS_OP_CONSTANT;
		step.constant = value_of(emitting->stage, bound);
		emitting->steps[emitting->n++] = step;
		return 0;
	}
	if (pfs_stage_ref(emitting->stage, &step.ref, bound)) {
		emitting->steps[emitting->n++] = step;
		return 0;
	}
	for (unsigned i = 0; i < bound->n_args; i++)
		PFS_TRY(emit(emitting, bound->args[i]));
	switch (bound->kind) {
	case PFS_BOUND_CONSTANT:
		step.op = PFS_OP_CONSTANT;
		step.constant = bound->constant;
		break;
	case PFS_BOUND_STEP:
		step.op = bound->op;
		step.constant = bound->constant;
		step.list = bound->list;
		step.n_list = bound->n_list;
		step.escape = bound->escape;
		break;
	case PFS_BOUND_NODES:
		step.op = PFS_OP_BITS;
		step.ref.table = emitting->stage->table_of[bound->input];
		step.bits = emitting->stage->has_columns ? set_of(emitting->stage, bound) : NULL;
		if (!step.bits)
			return -EOPNOTSUPP;
		break;
	case PFS_BOUND_COLUMN:
	case PFS_BOUND_MADE:
	case PFS_BOUND_AGGREGATE:
	case PFS_BOUND_WINDOW:
	case PFS_BOUND_PRINTED:
		return -EOPNOTSUPP;
	}
	emitting->steps[emitting->n++] = step;
	return 0;
}

int pfs_stage_program(const struct pfs_stage *stage, struct pfs_program *out,
		      const struct pfs_term *const *terms, size_t n)
{
	struct emitting emitting = {.stage = stage};
	size_t n_steps = n;

	for (size_t i = 0; i < n; i++)
		n_steps += count_steps(terms[i]);
	if (n_steps > PFS_PROGRAM_STEPS)
		return -EOPNOTSUPP;
	emitting.steps = pfs_arena_get(stage->arena, n_steps * sizeof(*emitting.steps));
	if (!emitting.steps)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		PFS_TRY(emit(&emitting, terms[i]));
		if (i)
			emitting.steps[emitting.n++] = (struct pfs_step){.op = PFS_OP_AND};
	}
	*out = (struct pfs_program){.steps = emitting.steps, .n = emitting.n};
	return 0;
}

/* ---- computed ---- */

void pfs_running_go_on(struct pfs_running *running, struct pfs_tuples *tuples)
{
	pfs_tuples_free(running->run, running->tuples);
	running->tuples = tuples;
	running->source = (struct pfs_source){.tuples = tuples};
}

int pfs_running_select(struct pfs_running *running, struct pfs_source *source, unsigned input,
		       const struct pfs_program *program)
{
	struct pfs_rows *rows;

	PFS_TRY(pfs_select(running->run, &rows, source, program));
	pfs_rows_free(running->run, running->rows[input]);
	running->rows[input] = source->rows = rows;
	return 0;
}

int pfs_running_settle(struct pfs_running *running)
{
	const struct pfs_program *where = running->source.where;

	running->source.where = NULL;
	return where ? pfs_running_select(running, &running->source, 0, where) : 0;
}
