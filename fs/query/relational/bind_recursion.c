/* SPDX-License-Identifier: MIT */
/* CTEs that name themselves and nodes.  A recursion is an input of blocks: those that begin it, and
 * steps, in which the CTE's name means the rows of the step before.  SQLite takes them from a queue
 * one by one; of UNION ALL without an order that leaves the same rows. */
#include "fs/query/relational/bind.h"

bool pfs_bind_is_step(const struct pfs_core *core, const struct pfs_cte *cte)
{
	for (const struct pfs_from *from = core->from; from; from = from->next) {
		if (from->kind == PFS_FROM_TABLE && !from->schema &&
		    pfs_name_is(from->name, cte->name.text))
			return true;
	}
	return false;
}

bool pfs_bind_is_recursive(const struct pfs_cte *cte)
{
	const struct pfs_select *select = cte->select;
	const struct pfs_core *core = select->first;

	if (select->with || select->order || select->limit || select->offset ||
	    pfs_bind_is_step(core, cte))
		return false;
	for (core = core->next; core && !pfs_bind_is_step(core, cte); core = core->next) {
		if (core->compound != PFS_UNION_ALL)
			return false;
	}
	if (!core)
		return false;
	for (; core; core = core->next) {
		if (core->compound != PFS_UNION_ALL || !pfs_bind_is_step(core, cte))
			return false;
	}
	return true;
}

void pfs_bind_queue_columns(struct pfs_binder *binder, struct pfs_input *input)
{
	input->n_first = input->n_parts;
	for (unsigned i = 0; i < input->n_columns; i++) {
		struct pfs_input_column *column = &input->columns[i];

		if (column->why_not)
			pfs_bind_refuse(binder, column->why_not);
		column->can_be_null = true;
		column->is_used = true;
		column->at = i;
	}
	input->n_used = input->n_columns;
}

int pfs_bind_queue(struct pfs_binder *binder, struct pfs_input *input)
{
	const struct pfs_input *of = binder->step->input;

	input->kind = PFS_INPUT_QUEUE;
	input->of = of;
	input->n_columns = input->n_used = of->n_columns;
	input->columns = pfs_bind_get(binder, (of->n_columns + 1) * sizeof(*input->columns));
	for (size_t i = 0; input->columns && i < of->n_columns; i++)
		input->columns[i] = of->columns[i];
	return binder->error;
}

/* Returns true if one of the condition's ANDs says that the number of a node's parent is a column
 * of the queue. */
static bool is_to_children(const struct pfs_block *step, const struct pfs_term *term,
			   unsigned queue, unsigned *key)
{
	if (!term || term->kind != PFS_BOUND_STEP)
		return false;
	if (term->op == PFS_OP_AND)
		return is_to_children(step, term->args[0], queue, key) ||
		       is_to_children(step, term->args[1], queue, key);
	for (unsigned i = 0; term->op == PFS_OP_EQ && i < 2; i++) {
		const struct pfs_term *number = term->args[1 - i];

		if (number->kind != PFS_BOUND_COLUMN || number->input != queue ||
		    !pfs_bound_is_number(number) ||
		    !pfs_block_is_field(step, term->args[i], PFS_FIELD_PARENT))
			continue;
		*key = number->column;
		return true;
	}
	return false;
}

void pfs_bind_check_step(struct pfs_binder *binder, struct pfs_input *input)
{
	struct pfs_block *step = input->parts[input->n_parts - 1];
	unsigned queue = step->n_inputs && step->inputs[0].kind == PFS_INPUT_QUEUE ? 0 : 1;
	bool is_step = step->n_inputs == 2 && !step->inputs[1].is_left &&
		       step->inputs[queue].kind == PFS_INPUT_QUEUE &&
		       step->inputs[1 - queue].kind == PFS_INPUT_NODES && !step->is_grouped &&
		       !step->is_distinct && !step->n_windows;
	struct pfs_input *from;

	for (size_t i = 0; i < input->n_columns && !binder->error; i++) {
		if (input->columns[i].why_not)
			pfs_bind_refuse(binder, input->columns[i].why_not);
	}
	if (binder->error)
		return;
	from = &step->inputs[queue];
	if (!is_step || binder->query->is_limited || binder->query->top != PFS_ROOT_PRIME ||
	    (!is_to_children(step, step->where, queue, &from->key) &&
	     !is_to_children(step, step->inputs[1].on, queue, &from->key) &&
	     !is_to_children(step, step->inputs[1].equal, queue, &from->key)))
		pfs_bind_refuse(binder, "a recursion to what are no children of nodes");
}
