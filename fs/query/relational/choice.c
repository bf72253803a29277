/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/choice.h"

#include "fs/query/relational/side_lookup.h"

/* Returns true if a scan finds few nodes by the column. It may be a sub-select's, into which SQLite
 * moves the condition. */
static bool names_few(const struct pfs_block *block, const struct pfs_term *column)
{
	const struct pfs_input *input = &block->inputs[column->input];
	const struct pfs_input_column *of = &input->columns[column->column];

	if (column->kind != PFS_BOUND_COLUMN || column->is_late)
		return false;
	for (size_t i = 0; i < input->n_parts; i++) {
		if (names_few(input->parts[i], input->parts[i]->results[of->at]))
			return true;
	}
	return input->kind == PFS_INPUT_NODES && !of->wish.attr &&
	       (of->wish.field == PFS_FIELD_INO || of->wish.field == PFS_FIELD_PARENT ||
		of->wish.field == PFS_FIELD_NAME);
}

/* What is found at once by its number, its place or its name is SQLite's: a scan of its own knows
 * how. */
static bool finds_few(const struct pfs_block *block, const struct pfs_term *where)
{
	if (!where || where->kind != PFS_BOUND_STEP)
		return false;
	if (where->op == PFS_OP_AND)
		return finds_few(block, where->args[0]) || finds_few(block, where->args[1]);
	return where->op == PFS_OP_EQ && where->args[1]->kind == PFS_BOUND_CONSTANT &&
	       names_few(block, where->args[0]);
}

/* The least or greatest of all, which an index begins with. */
static bool is_end_of_order(const struct pfs_block *block)
{
	return block->n_inputs == 1 && block->inputs[0].kind == PFS_INPUT_NODES &&
	       !block->n_group && !block->where && block->n_aggregates == 1 &&
	       pfs_fold_of(block->aggregates[0].op)->is_end &&
	       block->aggregates[0].arg->kind == PFS_BOUND_COLUMN;
}

static bool has_side(const struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_inputs; i++) {
		if (block->inputs[i].kind == PFS_INPUT_SIDE)
			return true;
	}
	return false;
}

static bool is_side(const struct pfs_block *block)
{
	return block->n_inputs == 1 && has_side(block);
}

/* What each row is sorted by has to be computed. */
static bool has_computed_order(const struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_order; i++) {
		if (block->order[i].value->n_args)
			return true;
	}
	return false;
}

static bool is_plain(const struct pfs_block *block)
{
	return !block->is_grouped && !block->is_distinct && !block->n_windows &&
	       !has_computed_order(block) && (block->n_inputs == 1 || !has_side(block));
}

static const char plain[] = "rows as they are, which scans and indexes have";
static const char few_of_side[] = "few rows of a side table, which are found at once";

/* Returns why SQLite's way is better, by what the block reads, as it is for a block that is plain
 * throughout; NULL: it is not. */
static const char *why_not(const struct pfs_block *block, const struct pfs_query *query)
{
	bool is_all_plain = is_plain(block);

	if (finds_few(block, block->where))
		return "few nodes, which are found at once";
	if (is_end_of_order(block))
		return "the end of an order";
	if (pfs_side_finds_few(block, query, PFS_SQLITE_READS))
		return few_of_side;
	for (size_t i = 0; i < block->n_inputs; i++) {
		for (size_t part = 0; part < block->inputs[i].n_parts; part++) {
			const char *why = why_not(block->inputs[i].parts[part], query);

			if (why && why != plain && why != few_of_side &&
			    !block->inputs[i].is_lifted)
				return why;
			is_all_plain &= why != NULL && !block->inputs[i].is_lifted;
		}
	}
	return is_all_plain ? plain : NULL;
}

/* Returns true if something has to be computed of each row. What a scan alone answers it answers
 * for SQLite, too. */
static bool is_computed(const struct pfs_block *block)
{
	return !block->rows || (block->rows->n_rest && !block->rows->is_short);
}

const char *pfs_block_why_not(const struct pfs_block *block, const struct pfs_query *query,
			      enum pfs_block_use use)
{
	const char *why = block->rows && use == PFS_BLOCK_WHOLE ? NULL : why_not(block, query);

	if (why != plain)
		return why;
	switch (use) {
	case PFS_BLOCK_WHOLE:
		return is_side(block) ? NULL : why;
	case PFS_BLOCK_CHANGE_PART:
		return is_computed(block) ? NULL : why;
	case PFS_BLOCK_PART:
		break;
	}
	return why;
}
