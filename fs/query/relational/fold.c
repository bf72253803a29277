/* SPDX-License-Identifier: MIT */
/* A join of nodes with their parents needs none: a parent's columns are columns of the child, by
 * way of the slot of its parent (struct pfs_table_column.via). */
#include "fs/query/relational/bound.h"

static const struct pfs_column_wish *wish_of(const struct pfs_block *block,
					     const struct pfs_term *term)
{
	const struct pfs_input *from = &block->inputs[term->input];

	if (term->kind != PFS_BOUND_COLUMN || from->kind != PFS_INPUT_NODES)
		return NULL;
	return &from->columns[term->column].wish;
}

bool pfs_block_is_field(const struct pfs_block *block, const struct pfs_term *term,
			enum pfs_field field)
{
	const struct pfs_column_wish *wish = wish_of(block, term);

	return wish && !wish->attr && wish->field == field;
}

bool pfs_block_is_total(const struct pfs_block *block, const struct pfs_term *term)
{
	const struct pfs_column_wish *wish = wish_of(block, term);

	return wish && !wish->attr && pfs_field_is_total(wish->field);
}

/* child.parent = parent.ino, in one of the ANDs; *parent is which argument. */
static struct pfs_term *find_equality(const struct pfs_block *block, struct pfs_term *term,
				      unsigned input, unsigned *parent)
{
	struct pfs_term *found;

	if (!term || term->kind != PFS_BOUND_STEP)
		return NULL;
	if (term->op == PFS_OP_AND) {
		found = find_equality(block, term->args[0], input, parent);
		return found ? found : find_equality(block, term->args[1], input, parent);
	}
	for (*parent = 0; term->op == PFS_OP_EQ && *parent < 2; ++*parent) {
		const struct pfs_term *of = term->args[*parent], *child = term->args[1 - *parent];

		if (pfs_block_is_field(block, of, PFS_FIELD_INO) && of->input == input &&
		    pfs_block_is_field(block, child, PFS_FIELD_PARENT) && child->input != input)
			return term;
	}
	return NULL;
}

static bool names_nodes(const struct pfs_term *term, unsigned input)
{
	if (!term)
		return false;
	if (term->kind == PFS_BOUND_NODES && term->input == input)
		return true;
	for (unsigned i = 0; i < term->n_args; i++) {
		if (names_nodes(term->args[i], input))
			return true;
	}
	return false;
}

static bool can_be_folded(const struct pfs_block *block, unsigned input)
{
	const struct pfs_input *from = &block->inputs[input];

	if (from->kind != PFS_INPUT_NODES || names_nodes(block->where, input))
		return false;
	for (size_t i = 0; i < block->n_inputs; i++) {
		if (names_nodes(block->inputs[i].on, input) || block->inputs[i].parent_of == input)
			if (i != input || names_nodes(block->inputs[i].on, input))
				return false;
	}
	for (size_t i = 0; i < from->n_columns; i++) {
		const struct pfs_input_column *column = &from->columns[i];

		/* found by way of something already, or made: a parent's parent, an owner's name, a
		 * total */
		if (column->is_used && !column->wish.attr &&
		    (column->is_total || column->wish.field == PFS_FIELD_PARENT ||
		     column->kind == PFS_NODE_OWNER || column->kind == PFS_NODE_GROUP))
			return false;
	}
	return true;
}

static void fold(struct pfs_block *block, unsigned input)
{
	struct pfs_input *from = &block->inputs[input];
	struct pfs_term *found, *child;
	unsigned parent;

	found = find_equality(block, from->on, input, &parent);
	if (!found && !from->is_left)
		found = find_equality(block, block->where, input, &parent);
	for (size_t i = input + 1; i < block->n_inputs && !found; i++) {
		if (!from->is_left && !block->inputs[i].is_left)
			found = find_equality(block, block->inputs[i].on, input, &parent);
	}
	if (!found || (from->is_left && (found != from->on || from->equal)))
		return;
	child = found->args[1 - parent];
	if (block->inputs[child->input].is_left ||
	    block->inputs[child->input].parent_of != child->input)
		return;
	from->parent_of = child->input;
	if (from->is_left) { /* the root has none, and keeps its row */
		from->on = NULL;
		return;
	}
	found->op = PFS_OP_NOT_NULL;
	found->args[0] = child;
	found->n_args = 1;
}

void pfs_block_fold(struct pfs_block *block)
{
	for (unsigned i = 0; i < block->n_inputs && block->n_inputs > 1; i++) {
		if (can_be_folded(block, i))
			fold(block, i);
	}
}

uint32_t pfs_term_inputs(const struct pfs_block *block, const struct pfs_term *term)
{
	uint32_t inputs = 0;

	if ((term->kind == PFS_BOUND_COLUMN || term->kind == PFS_BOUND_NODES) &&
	    !block->inputs[term->input].is_value)
		inputs = UINT32_C(1) << block->inputs[term->input].parent_of;
	for (unsigned i = 0; i < term->n_args; i++)
		inputs |= pfs_term_inputs(block, term->args[i]);
	return inputs;
}
