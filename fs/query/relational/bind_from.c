/* SPDX-License-Identifier: MIT */
/* FROM: tables, their columns, and how they are joined. */
#include "fs/query/relational/bind.h"

#include <string.h>

#include <strings.h>

#include "fs/query/relational/sidetable.h"

static void describe(struct pfs_input_column *column, const struct pfs_node_column *node,
		     bool is_limited)
{
	enum pfs_operand operand;

	*column = (struct pfs_input_column){
		.name = node->name,
		.class = PFS_CLASS_TEXT,
		.affinity = PFS_TEXTUAL,
		.wish = {.field = node->field},
		.kind = node->kind,
		.can_be_null = strstr(node->declared, "NOT NULL") == NULL,
		.is_hidden = strstr(node->declared, "HIDDEN") != NULL,
	};
	switch (node->kind) {
	case PFS_NODE_INTEGER:
		column->class = PFS_CLASS_NUMBER;
		column->affinity = PFS_NUMERIC;
		break;
	case PFS_NODE_ATTR:
		column->wish = (struct pfs_column_wish){
			.attr = node->attr, .attr_len = node->attr_len, .type = node->type};
		if (node->type != PFS_ATTR_TEXT) {
			column->class = PFS_CLASS_NUMBER;
			column->affinity = PFS_NUMERIC;
		}
		if (pfs_node_column_is_hash(node))
			column->why_not = "a hash, which counts for one size and mtime";
		return;
	case PFS_NODE_OWNER:
	case PFS_NODE_GROUP:
	case PFS_NODE_BYTES:
	case PFS_NODE_TYPE:
		break;
	}
	operand = pfs_fields[node->field].operand;
	column->is_late = operand == PFS_OPERAND_LATE;
	if (operand == PFS_OPERAND_ABSENT || (is_limited && pfs_field_is_viewers(node->field)))
		column->why_not = "a subtree's total, names of a file, or an order of nodes";
	column->is_total = !is_limited && pfs_field_is_total(node->field);
}

static int bind_nodes(struct pfs_binder *binder, struct pfs_input *input)
{
	const struct pfs_node_table *table = binder->query->connection->table;

	input->kind = PFS_INPUT_NODES;
	input->n_columns = table->n;
	input->columns = pfs_bind_get(binder, table->n * sizeof(*input->columns));
	for (unsigned i = 0; input->columns && i < table->n; i++) {
		describe(&input->columns[i], &table->columns[i], binder->query->is_limited);
		input->columns[i].number = i;
	}
	return binder->error;
}

static struct pfs_input_column describe_side(const struct pfs_side_column *column)
{
	return (struct pfs_input_column){
		.name = column->name,
		.class = column->class,
		.affinity = column->affinity,
		.collation = column->collation,
		.can_be_null = column->can_be_null,
		.why_not = column->why_not,
	};
}

static int bind_side(struct pfs_binder *binder, struct pfs_input *input, const char *name)
{
	int error = pfs_side_table_get(&input->side, binder->query, name);

	if (error == -ENOMEM)
		return binder->error = error;
	if (error) {
		binder->query->for_now |= error != -ENOENT && error != -EOPNOTSUPP;
		pfs_bind_refuse(binder, "a table that the operators do not have");
		return binder->error;
	}
	input->kind = PFS_INPUT_SIDE;
	input->table = pfs_bind_keep(binder, input->side->name);
	input->n_columns = input->side->table.n_columns;
	input->columns = pfs_bind_get(binder, input->n_columns * sizeof(*input->columns));
	for (size_t i = 0; input->columns && i < input->n_columns; i++) {
		input->columns[i] = describe_side(&input->side->columns[i]);
		input->columns[i].name = pfs_bind_keep(binder, input->columns[i].name);
	}
	return binder->error;
}

/* All that binding knows of them. */
static bool is_bound_to(const struct pfs_input *input, const struct pfs_side_table *side)
{
	bool is = input->n_columns == side->table.n_columns;

	for (size_t i = 0; is && i < input->n_columns; i++) {
		struct pfs_input_column now = describe_side(&side->columns[i]);
		const struct pfs_input_column *column = &input->columns[i];

		is = now.class == column->class && now.affinity == column->affinity &&
		     now.collation == column->collation && now.can_be_null == column->can_be_null &&
		     now.why_not == column->why_not && strcmp(now.name, column->name) == 0;
	}
	return is;
}

int pfs_block_take_sides(struct pfs_block *block, struct pfs_query *query)
{
	for (size_t i = 0; i < block->n_inputs; i++) {
		struct pfs_input *input = &block->inputs[i];

		if (input->kind == PFS_INPUT_SIDE) {
			PFS_TRY(pfs_side_table_get(&input->side, query, input->table));
			if (!is_bound_to(input, input->side))
				return -ESTALE;
		}
		for (size_t part = 0; part < input->n_parts; part++)
			PFS_TRY(pfs_block_take_sides(input->parts[part], query));
	}
	return 0;
}

/* A CTE comes before a table of its name. */
static int bind_named(struct pfs_binder *binder, struct pfs_input *input,
		      const struct pfs_from *from, bool is_joined)
{
	const struct pfs_bind_scope *scope;
	const struct pfs_cte *cte = pfs_bind_find_cte(binder, &scope, from->name);

	if (cte) {
		input->table = cte->name.text;
		if (binder->step && binder->step->cte == cte)
			return pfs_bind_queue(binder, input);
		if (pfs_bind_is_recursive(cte) && !pfs_bind_is_closed(scope, cte))
			return pfs_bind_recursive_blocks(binder, input, scope, cte);
		if (is_joined && pfs_bind_is_closed(scope, cte))
			return pfs_bind_closed_blocks(binder, input, scope, cte);
		return pfs_bind_blocks(binder, input, cte->select, scope, cte->columns);
	}
	if (!pfs_name_is(from->name, pfs_nodes_source.name))
		return bind_side(binder, input, from->name->text);
	input->table = pfs_nodes_source.name;
	return bind_nodes(binder, input);
}

static int bind_input(struct pfs_binder *binder, struct pfs_input *input,
		      const struct pfs_from *from, bool is_joined)
{
	if (from->kind == PFS_FROM_SELECT) {
		input->table = "";
		PFS_TRY(pfs_bind_blocks(binder, input, from->select, binder->scope, from->columns));
	} else if (from->kind == PFS_FROM_TABLE && !from->schema && !from->is_indexed) {
		PFS_TRY(bind_named(binder, input, from, is_joined));
	} else {
		pfs_bind_refuse(binder, "a source that is no table");
	}
	input->name = from->alias ? from->alias->text : input->table;
	return binder->error;
}

/* ---- joins ---- */

/* The first column of that name in an input before this one. */
static bool find_before(const struct pfs_block *block, unsigned before, const char *name,
			unsigned *input, unsigned *column)
{
	for (*input = 0; *input < before; ++*input) {
		const struct pfs_input *from = &block->inputs[*input];

		for (*column = 0; *column < from->n_columns; ++*column) {
			const char *other = from->columns[*column].name;

			if (other && name && strcasecmp(other, name) == 0)
				return true;
		}
	}
	return false;
}

/* SQLite is not asked about columns that it compares so. */
static void merge(struct pfs_binder *binder, unsigned input, unsigned column)
{
	struct pfs_input *from = &binder->block->inputs[input], *other;
	struct pfs_term *a, *b;
	unsigned i, c;

	if (!find_before(binder->block, input, from->columns[column].name, &i, &c)) {
		pfs_bind_refuse(binder, "USING a column of one table");
		return;
	}
	other = &binder->block->inputs[i];
	if (other->columns[c].is_late || from->columns[column].is_late || other->is_left) {
		pfs_bind_refuse(binder, "USING a path, or after a LEFT JOIN");
		return;
	}
	pfs_bind_may_read(binder, other->table, other->columns[c].name);
	pfs_bind_may_read(binder, from->table, from->columns[column].name);
	from->is_read = other->is_read = true;
	a = pfs_bind_own_column(binder, i, c);
	b = a ? pfs_bind_own_column(binder, input, column) : NULL;
	from->equal =
		b ? pfs_bind_and(binder, from->equal, pfs_bind_comparison(binder, PFS_OP_EQ, a, b))
		  : NULL;
	from->columns[column].is_merged = true;
}

static void merge_using(struct pfs_binder *binder, unsigned input,
			const struct pfs_column_names *names)
{
	const struct pfs_input *from = &binder->block->inputs[input];

	for (; names && !binder->error; names = names->next) {
		unsigned c = 0;

		while (c < from->n_columns && !pfs_name_is(&names->name, from->columns[c].name))
			c++;
		if (c == from->n_columns)
			pfs_bind_refuse(binder, "USING a column of one table");
		else
			merge(binder, input, c);
	}
}

static void merge_natural(struct pfs_binder *binder, unsigned input)
{
	const struct pfs_input *from = &binder->block->inputs[input];
	unsigned i, c;

	for (unsigned own = 0; own < from->n_columns && !binder->error; own++) {
		if (from->columns[own].is_hidden)
			continue;
		if (find_before(binder->block, input, from->columns[own].name, &i, &c) &&
		    !binder->block->inputs[i].columns[c].is_hidden)
			merge(binder, input, own);
	}
}

static void join(struct pfs_binder *binder, unsigned input, const struct pfs_from *from)
{
	struct pfs_input *bound = &binder->block->inputs[input];

	if (from->join & PFS_JOINS_RIGHT)
		pfs_bind_refuse(binder, "a RIGHT or FULL JOIN");
	bound->is_left = (from->join & PFS_JOINS_LEFT) != 0;
	bound->is_cross = (from->join & PFS_JOINS_CROSS) != 0;
	if (from->join & PFS_JOINS_NATURAL)
		merge_natural(binder, input);
	else if (from->using)
		merge_using(binder, input, from->using);
	if (from->on && !binder->error)
		bound->on = pfs_bind_condition(binder, from->on);
}

/* ---- sub-selects of expressions (lift.c) ---- */

/* Two of its rows that are not equal are not equal to one value: then no row is met twice. */
static bool keeps_apart(const struct pfs_term *on)
{
	if (on->op == PFS_OP_AND)
		return keeps_apart(on->args[0]) && keeps_apart(on->args[1]);
	return on->op == PFS_OP_EQ && on->n_args == 2 && on->args[0]->kind == PFS_BOUND_COLUMN &&
	       on->args[1]->kind == PFS_BOUND_COLUMN && on->collation == PFS_BINARY &&
	       pfs_bound_is_number(on->args[0]) == pfs_bound_is_number(on->args[1]);
}

/* An aggregate of all rows is one row. */
static bool is_row_of_numbers(const struct pfs_input *input)
{
	const struct pfs_block *part = input->parts[0];

	for (size_t i = 0; i < input->n_columns; i++) {
		if (input->columns[i].class == PFS_CLASS_TEXT)
			return false;
	}
	return input->n_parts == 1 && part->is_grouped && !part->n_group && part->limit &&
	       !part->offset;
}

static void take_lifted(struct pfs_binder *binder, struct pfs_input *input, bool is_once)
{
	input->is_lifted = true;
	input->is_once = is_once;
	input->is_value = !input->is_left;
	for (size_t i = 0; i < input->n_columns; i++)
		input->columns[i].is_hidden = true;
	if (input->is_value)
		input->parent_of = PFS_INPUTS_MAX;
	if (input->is_value && !is_row_of_numbers(input))
		pfs_bind_refuse(binder, "a sub-select that is no number of all rows");
	else if (!input->is_value && !(input->on && keeps_apart(input->on)))
		pfs_bind_refuse(binder, "a sub-select that is tied by more than columns");
}

/* ---- the whole ---- */

int pfs_bind_from(struct pfs_binder *binder, const struct pfs_from *from)
{
	bool is_joined = from && from->next;
	struct pfs_block *block = binder->block;

	block->inputs = pfs_bind_get(binder, PFS_INPUTS_MAX * sizeof(*block->inputs));
	for (; from && !binder->error; from = from->next) {
		unsigned input = (unsigned)block->n_inputs;

		if (input == PFS_INPUTS_MAX)
			return pfs_bind_refuse(binder, "very many tables"), binder->error;
		block->n_inputs++;
		block->inputs[input].parent_of = input;
		if (bind_input(binder, &block->inputs[input], from, is_joined) == 0)
			join(binder, input, from);
		if (from->columns && !binder->error)
			take_lifted(binder, &block->inputs[input], from->is_once);
	}
	return binder->error;
}
