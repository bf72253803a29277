/* SPDX-License-Identifier: MIT */
/* A statement, and the key that lets it in. */
#include "fs/query/relational/bind.h"

#include <strings.h>

#include "fs/query/relational/sidetable.h"
#include "fs/query/relational/ties.h"

/* ---- the key ---- */

static bool is_asked(const struct pfs_bound_read *read, const struct pfs_sql_read *reads, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(read->table, reads[i].table) == 0 &&
		    strcasecmp(read->column, reads[i].column) == 0)
			return true;
	}
	return read->is_optional;
}

/* An empty column means that the table is read, be it that its columns are not used in the end.
 * SQLite's own table is read when it reads its tables' declarations for the first time; no
 * statement that is bound names it. */
static bool is_bound(const struct pfs_sql_read *asked, const struct pfs_bound_read *reads)
{
	if (strncasecmp(asked->table, "sqlite_", 7) == 0)
		return true;
	for (; reads; reads = reads->next) {
		if (strcasecmp(reads->table, asked->table) == 0 &&
		    (!*asked->column || strcasecmp(reads->column, asked->column) == 0))
			return true;
	}
	return false;
}

/* A part that names what stands around it is none to SQLite. */
static void prepare_part(struct pfs_binder *binder, struct pfs_bind_part *part)
{
	struct pfs_sql_problem problem;
	int error;

	if (!part->text || binder->error)
		return;
	part->is_prepared = true;
	error = pfs_sql_prepare(binder->query->connection->sql, part->text, part->len, &problem);
	if (error == -ENOMEM)
		binder->error = error;
	else if (error)
		pfs_bind_refuse(binder, "a part that does not stand alone");
}

/* The second key: what was bound is what SQLite's authorizer was asked about. */
static int compare_reads(struct pfs_binder *binder, bool is_change)
{
	const struct pfs_sql_read *asked;
	size_t n;

	if (!pfs_sql_reads(binder->query->connection->sql, &asked, &n))
		pfs_bind_refuse(binder, "too many columns");
	for (const struct pfs_bound_read *read = binder->reads; read; read = read->next) {
		if (!is_asked(read, asked, n) && !(is_change && !*read->column))
			pfs_bind_refuse(binder, "a column that SQLite does not read");
	}
	for (size_t i = 0; i < n; i++) {
		if (!is_bound(&asked[i], binder->reads))
			pfs_bind_refuse(binder, "a column that SQLite reads elsewhere");
	}
	return binder->error;
}

/* ---- what is used ---- */

static void use_term(struct pfs_binder *binder, struct pfs_block *block,
		     const struct pfs_term *term)
{
	struct pfs_input *input;
	struct pfs_input_column *column;

	for (unsigned i = 0; term && i < term->n_args; i++)
		use_term(binder, block, term->args[i]);
	if (term && term->kind == PFS_BOUND_MADE && pfs_block_made(block, term) == block->n_made) {
		if (block->n_made == PFS_MADE_MAX)
			pfs_bind_refuse(binder, "very many functions of texts");
		else
			block->made[block->n_made++] = term;
	}
	if (!term || term->kind != PFS_BOUND_COLUMN || term->is_late)
		return;
	input = &block->inputs[term->input];
	column = &input->columns[term->column];
	if (column->is_used)
		return;
	column->at = (unsigned)input->n_used++;
	column->is_used = true;
}

static void use_window(struct pfs_binder *binder, struct pfs_block *block,
		       const struct pfs_bound_window *window)
{
	for (size_t i = 0; i < window->n_keys; i++)
		use_term(binder, block, window->keys[i].value);
	for (size_t i = 0; i < window->n_functions; i++)
		use_term(binder, block, window->functions[i].arg);
}

static void use_terms(struct pfs_binder *binder, struct pfs_block *block)
{
	for (size_t i = 0; i < block->n_inputs; i++) {
		use_term(binder, block, block->inputs[i].on);
		use_term(binder, block, block->inputs[i].equal);
	}
	for (size_t i = 0; block->rows && i < block->rows->n_rest; i++)
		use_term(binder, block, block->rows->rest[i]);
	if (block->rows)
		return; /* its cursor has the values of the rows that it finds */
	use_term(binder, block, block->where);
	use_term(binder, block, block->having);
	for (size_t i = 0; i < block->n_group; i++)
		use_term(binder, block, block->group[i]);
	for (size_t i = 0; i < block->n_aggregates; i++)
		use_term(binder, block, block->aggregates[i].arg);
	for (size_t i = 0; i < block->n_windows; i++)
		use_window(binder, block, &block->windows[i]);
	for (size_t i = 0; i < block->n_order; i++)
		use_term(binder, block, block->order[i].value);
	for (size_t i = 0; i < block->n_results; i++)
		use_term(binder, block, block->results[i]);
}

/* What is to be distinct is, with all of its columns; a set has its order by them as they stand. */
static void use_all(struct pfs_input *input)
{
	bool is_any = false;

	for (size_t i = 0; i < input->n_parts; i++)
		is_any |= input->parts[i]->is_distinct;
	for (size_t i = 0; i < input->n_columns && is_any; i++) {
		input->columns[i].at = (unsigned)i;
		input->columns[i].is_used = true;
		input->n_used = input->n_columns;
	}
}

/* Only those results that are used are there. */
static void use_results(struct pfs_binder *binder, struct pfs_block *part,
			const struct pfs_input *input)
{
	struct pfs_term **results =
		pfs_bind_get(binder, (input->n_used + 1) * sizeof(struct pfs_term *));

	for (size_t i = 0; i < input->n_columns && results; i++) {
		if (input->columns[i].is_used)
			results[input->columns[i].at] = part->results[i];
	}
	part->results = results;
	part->n_results = results ? input->n_used : 0;
}

/* Columns are found used from the outside inwards, and then a join with parents is none. */
static void use_block(struct pfs_binder *binder, struct pfs_block *block)
{
	use_terms(binder, block);
	pfs_block_join_inner(block);
	pfs_bind_pass_order(binder, block);
	for (size_t i = 0; i < block->n_inputs; i++) {
		struct pfs_input *input = &block->inputs[i];

		if (input->kind == PFS_INPUT_BLOCKS)
			use_all(input);
		for (size_t part = 0; part < input->n_parts; part++) {
			use_results(binder, input->parts[part], input);
			use_block(binder, input->parts[part]);
		}
	}
	if (binder->query->top == PFS_ROOT_PRIME)
		pfs_block_fold(block);
}

/* ---- the whole ---- */

int pfs_bind(struct pfs_block **out, const char **why, struct pfs_query *query,
	     struct pfs_arena *arena, const struct pfs_select *select, struct pfs_bind_part *part)
{
	struct pfs_binder binder = {.query = query,
				    .arena = arena,
				    .is_table = part->text && !part->takes_rows,
				    .is_said = part->is_change,
				    .text = part->text || part->is_change ? NULL
									  : query->text.text};

	*out = NULL;
	binder.block = pfs_bind_get(&binder, sizeof(*binder.block));
	if (!binder.error && !pfs_bind_select(&binder, select))
		prepare_part(&binder, part);
	if (!binder.error && !compare_reads(&binder, part->is_change)) {
		binder.block->shows_order = true;
		use_block(&binder, binder.block);
	}
	*why = binder.why;
	if (binder.error)
		pfs_block_finish(binder.block, query->queries);
	else
		*out = binder.block;
	return binder.error;
}

void pfs_block_finish(struct pfs_block *block, struct pfs_queries *queries)
{
	for (size_t i = 0; block && i < block->n_inputs; i++) {
		struct pfs_input *input = &block->inputs[i];

		if (input->side)
			pfs_side_table_put(queries, input->side);
		input->side = NULL;
		for (size_t part = 0; part < input->n_parts; part++)
			pfs_block_finish(input->parts[part], queries);
	}
}
