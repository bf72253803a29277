/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/side_lookup.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/order.h"
#include "fs/query/relational/sidetable.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

#define SAMPLE 1024u /* rows that are looked at */

/* Nanoseconds: of SQLite for a row that its copy takes over, of the operators for a statement, a
 * row that is looked at, one that an index names, and one of the answer. */
#define SQLITE_FILL   800.0
#define OPERATORS     5000.0
#define OPERATORS_ROW 0.8
#define LISTED_ROW    20.0
#define ANSWER_ROW    60.0

static const struct pfs_side_column *side_column(const struct pfs_block *block,
						 const struct pfs_term *term)
{
	return term->kind == PFS_BOUND_COLUMN ? &block->inputs[0].side->columns[term->column]
					      : NULL;
}

static int compare_numbers(const struct pfs_table_column *column, uint32_t row,
			   const struct pfs_constant *constant)
{
	if (column->kind == PFS_KIND_INTEGER && constant->type == PFS_IS_INTEGER) {
		int64_t value = ((const int64_t *)column->data)[row];

		return (value > constant->integer) - (value < constant->integer);
	}
	double value = column->kind == PFS_KIND_INTEGER
			       ? (double)((const int64_t *)column->data)[row]
			       : ((const double *)column->data)[row];
	double other =
		constant->type == PFS_IS_INTEGER ? (double)constant->integer : constant->real;

	return (value > other) - (value < other);
}

static int compare_texts(const struct pfs_table_column *column, uint32_t row,
			 const struct pfs_constant *constant)
{
	size_t len;
	const uint8_t *text = pfs_dictionary_text(column->dictionary,
						  ((const uint32_t *)column->data)[row], &len);

	return pfs_compare_bytes(text, len, constant->text, constant->len);
}

/* A comparison of a column with a constant of its class by which an index finds rows: its operator
 * as it is with the column on the left; else PFS_OP_AND. */
static enum pfs_op found_by(const struct pfs_block *block, const struct pfs_term *term,
			    const struct pfs_term **column, const struct pfs_term **constant)
{
	bool is_mirrored;

	if (term->kind != PFS_BOUND_STEP || term->n_args != 2)
		return PFS_OP_AND;
	is_mirrored = term->args[0]->kind == PFS_BOUND_CONSTANT;
	*column = term->args[is_mirrored];
	*constant = term->args[!is_mirrored];
	if (!side_column(block, *column) || (*constant)->kind != PFS_BOUND_CONSTANT ||
	    (*constant)->constant.type == PFS_IS_NULL || (*column)->class != (*constant)->class ||
	    term->collation != PFS_BINARY || term->op < PFS_OP_EQ || term->op > PFS_OP_IS ||
	    term->op == PFS_OP_NE)
		return PFS_OP_AND;
	return is_mirrored ? pfs_op_mirrored(term->op) : term->op;
}

/* Returns false if the row fails one of WHERE's conditions that are about this column alone. */
static bool may_be(const struct pfs_block *block, const struct pfs_term *where, unsigned number,
		   uint32_t row)
{
	const struct pfs_table_column *values = &block->inputs[0].side->table.columns[number];
	const struct pfs_term *column, *constant;
	enum pfs_op op;

	if (where->kind == PFS_BOUND_STEP && where->op == PFS_OP_AND)
		return may_be(block, where->args[0], number, row) &&
		       may_be(block, where->args[1], number, row);
	op = found_by(block, where, &column, &constant);
	if (op == PFS_OP_AND || column->column != number)
		return true;
	if (pfs_cell_at(values, row) == PFS_NO_ROW)
		return false;
	return pfs_op_holds(op, values->kind == PFS_KIND_CODE
					? compare_texts(values, row, &constant->constant)
					: compare_numbers(values, row, &constant->constant));
}

static bool names(const struct pfs_block *block, const struct pfs_term *where, unsigned number)
{
	const struct pfs_term *column, *constant;

	if (where->kind == PFS_BOUND_STEP && where->op == PFS_OP_AND)
		return names(block, where->args[0], number) || names(block, where->args[1], number);
	return found_by(block, where, &column, &constant) != PFS_OP_AND && column->column == number;
}

/* Estimates how many rows the index of that column finds. */
static double found(const struct pfs_block *block, unsigned number)
{
	const struct pfs_table *table = &block->inputs[0].side->table;
	uint32_t n = PFS_MIN(table->n_rows, SAMPLE), hits = 0;

	for (uint32_t i = 0; i < n; i++)
		hits += may_be(block, block->where, number,
			       (uint32_t)((uint64_t)i * table->n_rows / n));
	return table->n_rows * ((n == table->n_rows ? 0 : 0.25) + hits) / PFS_MAX(n, 1u);
}

/* The rows that SQLite has to step over; all, and more, where what is grouped has no index of
 * texts. */
static double stepped(const struct pfs_block *block)
{
	const struct pfs_side_table *side = block->inputs[0].side;
	double least = block->is_grouped || block->is_distinct ? INFINITY : side->table.n_rows;

	for (unsigned i = 0; block->where && i < side->table.n_columns; i++) {
		if (side->columns[i].is_indexed && !side->columns[i].why_not &&
		    side->table.columns[i].kind == PFS_KIND_CODE && names(block, block->where, i))
			least = fmin(least, found(block, i));
	}
	return least;
}

/* ---- rows of numbers ---- */

static void narrow(struct pfs_side_range *range, const struct pfs_block *block,
		   const struct pfs_term *where, unsigned number)
{
	const struct pfs_term *column, *constant;
	enum pfs_op op;

	if (where->kind == PFS_BOUND_STEP && where->op == PFS_OP_AND) {
		narrow(range, block, where->args[0], number);
		narrow(range, block, where->args[1], number);
		return;
	}
	op = found_by(block, where, &column, &constant);
	if (op != PFS_OP_AND && column->column == number)
		pfs_side_range_narrow(range, block->inputs[0].side, number, op,
				      &constant->constant);
}

int pfs_side_find(struct pfs_running *running, struct pfs_rows **rows)
{
	const struct pfs_block *block = running->block;
	const struct pfs_side_table *side = block->inputs[0].side;
	size_t most = (size_t)(side->table.n_rows * OPERATORS_ROW / LISTED_ROW), n;
	int error = 0;

	for (unsigned i = 0; block->where && i < side->table.n_columns && !error && !*rows; i++) {
		struct pfs_side_range range = {0, UINT64_MAX};
		uint32_t *list;

		if (!side->columns[i].is_indexed || side->columns[i].why_not ||
		    side->table.columns[i].kind == PFS_KIND_CODE ||
		    !names(block, block->where, i) ||
		    (!pfs_side_table_is_indexed(side, i) && found(block, i) > (double)most))
			continue;
		narrow(&range, block, block->where, i);
		error = pfs_side_table_find(side, &list, &n, i, &range, most,
					    running->query->account);
		if (!error && list)
			error = pfs_rows_of_list(running->run, rows, side->table.n_rows, list,
						 (uint32_t)n);
		free(list);
	}
	return error;
}

/* ---- who is sooner ---- */

/* The first rows of all, or of the order of an index. */
static bool ends_early(const struct pfs_block *block)
{
	const struct pfs_side_column *column;

	if (block->is_distinct)
		return false;
	if (!block->is_grouped && block->limit != UINT64_MAX && !block->n_order)
		return true;
	if (!block->is_grouped && block->limit != UINT64_MAX) {
		column = side_column(block, block->order[0].value);
		return column && column->is_indexed;
	}
	if (block->n_group || block->where || block->n_aggregates != 1 ||
	    !pfs_fold_of(block->aggregates[0].op)->is_end)
		return false;
	column = side_column(block, block->aggregates[0].arg);
	return column && column->is_indexed;
}

/* Returns true if bringing SQLite's copy up to date costs less than what would be won by it. */
static bool is_worth_it(const struct pfs_block *block, const struct pfs_query *query, double won)
{
	struct pfs_sql *sql = query->connection->sql;
	struct pfs_sql_side *side = pfs_sql_side_find(sql, block->inputs[0].table);
	uint64_t rows = block->inputs[0].side->table.n_rows;

	if (!side)
		return false;
	if (side->filled)
		rows = pfs_sides_distance(query->queries->tree, side->id, side->version, rows);
	side->missed_ns += (uint64_t)won;
	return (double)side->missed_ns >= (double)rows * SQLITE_FILL;
}

bool pfs_side_weigh(const struct pfs_block *block, struct pfs_side_sqlite sqlite,
		    struct pfs_side_weighed *out)
{
	double rows, all;

	*out = (struct pfs_side_weighed){.is_index = false};
	if (block->n_inputs != 1 || block->inputs[0].kind != PFS_INPUT_SIDE)
		return false;
	all = block->inputs[0].side->table.n_rows;
	rows = ends_early(block) ? 1 : stepped(block);
	out->is_index = rows < all;
	out->index_ns = (uint64_t)fmin(sqlite.statement + rows * sqlite.row, 1e18);
	out->operators_ns =
		(uint64_t)(OPERATORS + all * OPERATORS_ROW + fmin(rows, all) * ANSWER_ROW);
	return true;
}

bool pfs_side_finds_few(const struct pfs_block *block, const struct pfs_query *query,
			struct pfs_side_sqlite sqlite)
{
	struct pfs_side_weighed weighed;

	return pfs_side_weigh(block, sqlite, &weighed) &&
	       weighed.operators_ns > weighed.index_ns &&
	       is_worth_it(block, query, (double)(weighed.operators_ns - weighed.index_ns));
}
