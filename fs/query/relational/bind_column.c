/* SPDX-License-Identifier: MIT */
/* Columns of a SELECT's inputs as terms. */
#include "fs/query/relational/bind.h"

struct pfs_term *pfs_bind_own_column(struct pfs_binder *binder, unsigned input, unsigned number)
{
	const struct pfs_input *from = &binder->block->inputs[input];
	const struct pfs_input_column *column = &from->columns[number];
	const char *why_not = column->is_total && !binder->takes_rows ? NULL : column->why_not;
	struct pfs_term *bound = pfs_bind_get(binder, sizeof(*bound));

	if (!bound)
		return NULL;
	if (why_not && binder->takes_rows)
		binder->lax = why_not;
	else if (why_not && !binder->is_unsure)
		return pfs_bind_refuse(binder, why_not);
	bound->kind = PFS_BOUND_COLUMN;
	bound->size = 1;
	bound->class = column->class;
	bound->affinity = column->affinity;
	bound->collation = column->collation;
	bound->has_collation = true;
	bound->is_late = column->is_late || why_not;
	bound->can_be_null = column->can_be_null || from->is_left;
	bound->input = input;
	bound->column = number;
	return bound;
}

struct pfs_term *pfs_bind_input_column(struct pfs_binder *binder, unsigned input, unsigned number)
{
	struct pfs_input *from = &binder->block->inputs[input];

	if (from->kind != PFS_INPUT_BLOCKS && from->kind != PFS_INPUT_QUEUE && !from->is_flat)
		pfs_bind_read(binder, from->table, from->columns[number].name);
	from->is_read = true;
	return pfs_bind_own_column(binder, input, number);
}

/* What SQLite calls the number of a row, which is a node's. */
static bool is_rowid(const struct pfs_input *from, const struct pfs_name *table,
		     const struct pfs_name *name)
{
	return !from->is_flat && (!table || pfs_name_is(table, from->name)) &&
	       (pfs_name_is(name, "rowid") || pfs_name_is(name, "oid") ||
		pfs_name_is(name, "_rowid_"));
}

struct pfs_term *pfs_bind_column(struct pfs_binder *binder, const struct pfs_name *table,
				 const struct pfs_name *name)
{
	const struct pfs_block *block = binder->block;
	unsigned input = 0, column = 0;
	size_t found = 0;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *from = &block->inputs[i];

		if (table && !pfs_name_is(table, from->name))
			continue;
		for (unsigned c = 0; c < from->n_columns; c++) {
			if (!pfs_name_is(name, from->columns[c].name) ||
			    (!table && from->columns[c].is_merged))
				continue;
			found++;
			input = i;
			column = c;
		}
	}
	if (found > 1)
		return pfs_bind_refuse(binder, "a name that two tables have");
	if (!found && binder->takes_rows && is_rowid(&block->inputs[0], table, name)) {
		pfs_bind_read(binder, block->inputs[0].table, "ROWID");
		block->inputs[0].is_read = true;
		return pfs_bind_own_column(binder, 0, (unsigned)pfs_node_ino);
	}
	return found ? pfs_bind_input_column(binder, input, column) : NULL;
}
