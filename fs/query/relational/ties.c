/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/ties.h"

struct finding {
	const struct pfs_block *block;
	unsigned input;
	struct pfs_tie *ties;
	size_t n;
};

static bool is_looked_up(const struct finding *finding, enum pfs_field *field,
			 const struct pfs_term *own)
{
	static const enum pfs_field fields[] = {PFS_FIELD_INO, PFS_FIELD_PARENT, PFS_FIELD_NAME};

	for (size_t i = 0; i < PFS_COUNT(fields); i++) {
		*field = fields[i];
		if (own->input == finding->input && pfs_block_is_field(finding->block, own, *field))
			return true;
	}
	return false;
}

/* Adds the equalities at the ANDs of a condition. */
static void add_ties(struct finding *finding, const struct pfs_term *term)
{
	enum pfs_field field;

	if (!term || term->kind != PFS_BOUND_STEP)
		return;
	if (term->op == PFS_OP_AND) {
		add_ties(finding, term->args[0]);
		add_ties(finding, term->args[1]);
		return;
	}
	for (unsigned own = 0; own < 2 && term->op == PFS_OP_EQ; own++) {
		const struct pfs_term *by = term->args[1 - own];

		if (finding->n < PFS_TIES_MAX && is_looked_up(finding, &field, term->args[own]) &&
		    (field != PFS_FIELD_NAME || term->collation == PFS_BINARY) &&
		    by->kind == PFS_BOUND_COLUMN && !by->is_late && by->input != finding->input &&
		    finding->block->inputs[by->input].kind != PFS_INPUT_NODES)
			finding->ties[finding->n++] = (struct pfs_tie){field, by};
	}
}

/* Returns true if the condition is true only of rows for which a LEFT JOIN has found one of that
 * input. */
static bool wants_row(const struct pfs_term *term, unsigned input)
{
	if (!term || term->kind != PFS_BOUND_STEP)
		return false;
	if (term->op == PFS_OP_AND)
		return wants_row(term->args[0], input) || wants_row(term->args[1], input);
	return term->op == PFS_OP_NOT_NULL && term->args[0]->kind == PFS_BOUND_COLUMN &&
	       term->args[0]->input == input;
}

void pfs_block_join_inner(struct pfs_block *block)
{
	for (unsigned i = 0; i < block->n_inputs; i++)
		block->inputs[i].is_left &= !wants_row(block->where, i);
}

size_t pfs_ties_find(struct pfs_tie ties[static PFS_TIES_MAX], const struct pfs_block *block,
		     unsigned input)
{
	struct finding finding = {.block = block, .input = input, .ties = ties};
	bool is_left = block->inputs[input].is_left;

	if (block->inputs[input].kind != PFS_INPUT_NODES || block->inputs[input].parent_of != input)
		return 0;
	if (!is_left)
		add_ties(&finding, block->where);
	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *from = &block->inputs[i];

		if (i != input && (is_left || from->is_left))
			continue;
		add_ties(&finding, from->on);
		add_ties(&finding, from->equal);
	}
	return finding.n;
}
