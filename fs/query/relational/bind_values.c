/* SPDX-License-Identifier: MIT */
/* VALUES, and a SELECT of constants without FROM: an input of rows that the statement says itself.
 */
#include "fs/query/relational/bind.h"

#include <stdio.h>

#define ROWS_MAX 4096

/* A row's expressions, which are constants. */
static void bind_row(struct pfs_binder *binder, struct pfs_constant *out, struct pfs_input *input,
		     const struct pfs_items *items)
{
	const struct pfs_item *item = items->first;

	if (items->n != input->n_columns)
		pfs_bind_refuse(binder, "rows of VALUES that differ in length");
	for (size_t i = 0; item && i < input->n_columns && !binder->error; i++, item = item->next) {
		struct pfs_input_column *column = &input->columns[i];
		struct pfs_term *value = item->expr ? pfs_bind_expr(binder, item->expr) : NULL;

		if (!value || value->kind != PFS_BOUND_CONSTANT || value->is_collated) {
			pfs_bind_refuse(binder, "VALUES, or no FROM, of what is no constant");
			return;
		}
		out[i] = value->constant;
		if (value->affinity != column->affinity && input->n_rows)
			column->affinity = PFS_NO_AFFINITY;
		else
			column->affinity = value->affinity;
	}
}

/* Values of one type, or none at all. */
static void settle_column(struct pfs_binder *binder, struct pfs_input *input, size_t number)
{
	struct pfs_input_column *column = &input->columns[number];
	enum pfs_constant_type type = PFS_IS_NULL;

	for (size_t row = 0; row < input->n_rows; row++) {
		const struct pfs_constant *value = &input->values[row * input->n_columns + number];

		column->can_be_null |= value->type == PFS_IS_NULL;
		if (type == PFS_IS_NULL)
			type = value->type;
		else if (value->type != PFS_IS_NULL && value->type != type && !binder->is_said)
			pfs_bind_refuse(binder, "VALUES of several types");
	}
	column->class = type == PFS_IS_NULL   ? PFS_CLASS_NONE
			: type == PFS_IS_TEXT ? PFS_CLASS_TEXT
					      : PFS_CLASS_NUMBER;
}

static const char *name_of(struct pfs_binder *binder, size_t number)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "column%zu", number + 1);
	return pfs_bind_keep(binder, name);
}

/* The input's columns are the results. */
static void bind_results(struct pfs_binder *binder, struct pfs_input *input,
			 const struct pfs_items *items)
{
	struct pfs_block *block = binder->block;
	const struct pfs_item *item = items ? items->first : NULL;

	block->results = pfs_bind_get(binder, input->n_columns * sizeof(struct pfs_term *));
	if (item)
		binder->items = pfs_bind_get(binder, input->n_columns * sizeof(struct pfs_item *));
	for (unsigned i = 0; i < input->n_columns && !binder->error; i++) {
		settle_column(binder, input, i);
		if (!item && !input->columns[i].name)
			input->columns[i].name = name_of(binder, i);
		block->results[block->n_results++] = pfs_bind_own_column(binder, 0, i);
		if (item) {
			binder->items[i] = item;
			item = item->next;
		}
	}
}

int pfs_bind_values(struct pfs_binder *binder, const struct pfs_core *core,
		    const struct pfs_select *end)
{
	const struct pfs_items *first = core->results ? core->results : core->rows;
	struct pfs_block *block = binder->block;
	struct pfs_constant *values;
	struct pfs_input *input;
	size_t n_rows = 0;

	if (!first || core->where || core->group || core->having || core->is_distinct ||
	    core->windows || (end && (end->order || end->limit || end->offset)))
		return pfs_bind_refuse(binder, "VALUES, or no FROM, with a condition or order"),
		       binder->error;
	for (const struct pfs_items *row = first; row; row = row->next)
		n_rows++;
	if (n_rows > ROWS_MAX)
		return pfs_bind_refuse(binder, "very many rows of VALUES"), binder->error;
	block->limit = UINT64_MAX;
	block->inputs = input = pfs_bind_get(binder, sizeof(*input));
	values = pfs_bind_get(binder, n_rows * first->n * sizeof(*values));
	if (input)
		input->columns = pfs_bind_get(binder, first->n * sizeof(*input->columns));
	if (binder->error || !input)
		return binder->error;
	block->n_inputs = 1;
	input->kind = PFS_INPUT_VALUES;
	input->table = input->name = "";
	input->n_columns = first->n;
	input->values = values;
	for (const struct pfs_items *row = first; row && !binder->error; row = row->next) {
		bind_row(binder, &values[input->n_rows * first->n], input, row);
		input->n_rows++;
	}
	if (!binder->error)
		bind_results(binder, input, core->results);
	pfs_bind_may_read(binder, input->table, "");
	return binder->error;
}

int pfs_bind_rows_of_values(struct pfs_binder *binder, const struct pfs_input *rows)
{
	struct pfs_block *block = binder->block;

	block->limit = UINT64_MAX;
	block->inputs = pfs_bind_get(binder, sizeof(*block->inputs));
	if (!block->inputs)
		return binder->error;
	block->n_inputs = 1;
	block->inputs[0] = *rows;
	block->inputs[0].kind = PFS_INPUT_VALUES;
	block->inputs[0].table = block->inputs[0].name = "";
	bind_results(binder, &block->inputs[0], NULL);
	pfs_bind_may_read(binder, "", "");
	return binder->error;
}
