/* SPDX-License-Identifier: MIT */
/* Totals of subtrees as columns: of those rows alone that a block looks at, since changes of any
 * node change them. */
#include "fs/query/relational/run.h"

#include <stdlib.h>

#define PIECE 65536u /* rows, between two looks at the statement's time */

/* The values of a column, by slot. */
struct pfs_made_totals {
	int64_t *values;
	uint64_t n;
	struct pfs_made_totals *next;
};

bool pfs_block_has_totals(const struct pfs_block *block)
{
	bool has = false;

	for (size_t i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *input = &block->inputs[i];

		for (size_t column = 0; column < input->n_columns; column++)
			has |= input->columns[column].is_total && input->columns[column].is_used;
		for (size_t part = 0; part < input->n_parts; part++)
			has |= pfs_block_has_totals(input->parts[part]);
	}
	return has;
}

/* A piece of rows and their values. */
struct piece {
	uint32_t slots[PIECE];
	int64_t values[PIECE];
};

/* Leaves out rows that do not exist. */
static size_t keep_live(uint32_t *slots, size_t n, const uint64_t *live)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (!live || live[slots[i] / 64] >> slots[i] % 64 & 1)
			slots[kept++] = slots[i];
	}
	return kept;
}

static int fill(struct pfs_running *running, int64_t *out, const struct pfs_table *table,
		const struct pfs_rows *rows, enum pfs_field field)
{
	struct piece *piece = malloc(sizeof(*piece));
	uint64_t next = 0;
	int error = piece ? 0 : -ENOMEM;
	size_t n = 1;

	while (!error && (n = pfs_rows_next(rows, &next, piece->slots, PIECE))) {
		n = keep_live(piece->slots, n, table->live);
		error = pfs_scan_integers(running->query->tree, piece->values, field, piece->slots,
					  n);
		for (size_t i = 0; i < n && !error; i++)
			out[piece->slots[i]] = piece->values[i];
		if (!error)
			error = pfs_run_poll(running->run);
	}
	free(piece);
	return error;
}

static int make(struct pfs_running *running, struct pfs_table_column *column,
		const struct pfs_table *table, struct pfs_rows *rows, enum pfs_field field)
{
	struct pfs_made_totals *made = pfs_arena_get(running->arena, sizeof(*made));
	struct pfs_rows *all = NULL;
	int error;

	if (!made)
		return -ENOMEM;
	made->n = (uint64_t)table->n_rows + 1;
	PFS_TRY(pfs_run_alloc(running->run, &made->values, made->n, sizeof(*made->values)));
	made->next = running->totals;
	running->totals = made;
	error = rows ? pfs_rows_here(running->run, rows)
		     : pfs_rows_of_range(running->run, &all, table->n_rows, 0, table->n_rows);
	if (!error)
		error = fill(running, made->values, table, rows ? rows : all, field);
	pfs_rows_free(running->run, all);
	column->data = made->values;
	return error;
}

int pfs_running_totals(struct pfs_running *running, unsigned number)
{
	const struct pfs_input *input = &running->block->inputs[number];
	struct pfs_table *table = &running->tables[number];
	struct pfs_query *query = running->query;

	for (size_t i = 0; i < input->n_columns; i++) {
		const struct pfs_input_column *of = &input->columns[i];
		struct pfs_table_column *column =
			(struct pfs_table_column *)&table->columns[of->at];

		if (!of->is_total || !of->is_used)
			continue;
		PFS_TRY(pfs_scan_prepare_totals(query->tree, &query->watch));
		PFS_TRY(make(running, column, table, running->rows[number], of->wish.field));
	}
	return 0;
}

void pfs_made_totals_free(struct pfs_running *running)
{
	for (struct pfs_made_totals *made = running->totals; made; made = made->next)
		pfs_run_free(running->run, made->values, made->n, sizeof(*made->values));
	running->totals = NULL;
}
