/* SPDX-License-Identifier: MIT */
/* The statement is bound as the SELECT that its rows, or its new values, are the answer to. */
#include "fs/query/relational/change.h"

#include <strings.h>

#include "base/cleanup.h"
#include "fs/query/relational/bind.h"
#include "fs/query/relational/choice.h"
#include "fs/query/relational/side_lookup.h"
#include "fs/query/relational/run.h"
#include "fs/query/relational/sidetable.h"
#include "meta/sql/sqlside.h"

#define BOUND_BYTES ((size_t)16 << 20)	/* of a statement's plan */
#define EXACT	    9007199254740992.0	/* integers up to here are reals, too */
#define TICK_ROWS   4096		/* between two looks at the clock */

struct changing {
	struct pfs_query *query;
	struct pfs_arena arena;
	struct pfs_parsed *parsed;
	const struct pfs_statement *statement;
	struct pfs_block *block;
	bool reads_nodes;
	struct pfs_run run;
	struct pfs_run_context context;
	const struct pfs_input *said; /* VALUES: the rows; NULL: the answer's */
	struct pfs_answer_rows answer;
	const struct pfs_side_table *table; /* that changes */
	bool is_ours;			    /* it is to be put back; else the block's */
	size_t *result_of; /* by column of the table: the result that it becomes, or SIZE_MAX */
	struct pfs_side_rows *rows;
	uint64_t charged; /* bytes of them */
	const char *why;  /* SQLite is to run it; NULL: for another reason than it is */
};

static int refuse(struct changing *changing, const char *why)
{
	changing->why = why;
	return -EOPNOTSUPP;
}

/* ---- the statement as a SELECT ---- */

/* Returns what is in it beyond the table, SET, WHERE, VALUES and SELECT; NULL: nothing. */
static const char *find_more(const struct pfs_statement *statement)
{
	if (statement->schema)
		return "a schema before the table that it changes";
	if (statement->alias)
		return "another name of the table that it changes";
	if (statement->has_conflict)
		return "what is to be done where rows conflict";
	if (statement->with || statement->from)
		return "WITH or FROM beside the table that it changes";
	if (statement->order || statement->limit || statement->offset)
		return "an order or a limit of the rows that it changes";
	return NULL;
}

static struct pfs_items *one(struct changing *changing)
{
	struct pfs_items *items = pfs_arena_get(&changing->arena, sizeof(*items));
	struct pfs_item *item = pfs_arena_get(&changing->arena, sizeof(*item));
	struct pfs_expr *expr = pfs_arena_get(&changing->arena, sizeof(*expr));
	struct pfs_name *name = pfs_arena_get(&changing->arena, sizeof(*name));

	if (!items || !item || !expr || !name)
		return NULL;
	*name = (struct pfs_name){.text = "1", .len = 1};
	*expr = (struct pfs_expr){.kind = PFS_EXPR_INTEGER, .name = name, .depth = 1};
	item->expr = expr;
	*items = (struct pfs_items){.first = item, .last = item, .n = 1, .depth = 1};
	return items;
}

/* SELECT what SET says, or 1, FROM the table WHERE it says so. */
static const struct pfs_select *make_select(struct changing *changing)
{
	const struct pfs_statement *statement = changing->statement;
	struct pfs_select *select = pfs_arena_get(&changing->arena, sizeof(*select));
	struct pfs_core *core = pfs_arena_get(&changing->arena, sizeof(*core));
	struct pfs_from *from = pfs_arena_get(&changing->arena, sizeof(*from));
	struct pfs_items *results = statement->set ? statement->set : one(changing);

	if (!select || !core || !from || !results)
		return NULL;
	*from = (struct pfs_from){.kind = PFS_FROM_TABLE, .name = statement->table, .last = from};
	*core = (struct pfs_core){.results = results, .from = from, .where = statement->where};
	*select = (struct pfs_select){.first = core, .last = core};
	return select;
}

static bool reads_nodes(const struct pfs_block *block)
{
	bool reads = false;

	for (size_t i = 0; i < block->n_inputs; i++) {
		reads |= block->inputs[i].kind == PFS_INPUT_NODES;
		for (size_t part = 0; part < block->inputs[i].n_parts; part++)
			reads |= reads_nodes(block->inputs[i].parts[part]);
	}
	return reads;
}

/* Returns NULL if the operators compute all its rows. Few nodes, and rows of nodes as they are, are
 * found as those of any part. */
static const char *why_not(const struct changing *changing)
{
	const struct pfs_block *block = changing->block;

	if (!block->n_inputs)
		return "a row of constants";
	if (block->rows)
		return "rows of nodes as they are";
	return changing->reads_nodes
		       ? pfs_block_why_not(block, changing->query, PFS_BLOCK_CHANGE_PART)
		       : NULL;
}

static int bind(struct changing *changing)
{
	struct pfs_query *query = changing->query;
	const struct pfs_statement *statement;
	const struct pfs_select *select;
	struct pfs_bind_part part = {.is_change = true};
	struct pfs_not_taken refusal = {.why = NULL};
	bool is_simple;
	int error = pfs_parse(&changing->parsed, query->text.text, query->text.len, &refusal);

	changing->why = refusal.why;
	if (error)
		return error;
	statement = changing->statement = pfs_parsed_statement(changing->parsed);
	changing->why = find_more(statement);
	if (!statement->table || changing->why)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_sql_side_is_simple(query->connection->sql, &is_simple, statement->table->text));
	if (!is_simple) /* before its columns are made */
		return refuse(changing, "a table with constraints, or with such indexes");
	switch (statement->kind) {
	case PFS_STATEMENT_INSERT:
		select = statement->select;
		if (!select)
			return refuse(changing, "DEFAULT VALUES");
		break;
	case PFS_STATEMENT_UPDATE:
	case PFS_STATEMENT_DELETE:
		select = make_select(changing);
		break;
	default:
		return -EOPNOTSUPP;
	}
	if (!select)
		return -ENOMEM;
	PFS_TRY(pfs_bind(&changing->block, &changing->why, query, &changing->arena, select, &part));
	changing->reads_nodes = reads_nodes(changing->block);
	changing->why = why_not(changing);
	return changing->why ? -EOPNOTSUPP : 0;
}

/* ---- the table ---- */

static size_t find_column(const struct pfs_side_table *table, const struct pfs_name *name)
{
	size_t i = 0;

	while (i < table->table.n_columns && !pfs_name_is(name, table->columns[i].name))
		i++;
	return i;
}

static int set_result(struct changing *changing, const struct pfs_name *name, size_t result)
{
	size_t column = find_column(changing->table, name);

	if (column == changing->table->table.n_columns ||
	    changing->table->columns[column].is_number)
		return refuse(changing, "a row's number that it sets");
	if (changing->result_of[column] != SIZE_MAX)
		return refuse(changing, "a column that it sets twice");
	changing->result_of[column] = result;
	return 0;
}

/* All columns have a value: of an INSERT a result, of an UPDATE that or the one that they had,
 * since a row is written whole; of a column with several classes the table does not keep it. */
static int check_columns(struct changing *changing)
{
	for (size_t i = 0; i < changing->table->table.n_columns; i++) {
		const struct pfs_side_column *column = &changing->table->columns[i];

		if (changing->result_of[i] != SIZE_MAX)
			continue;
		if (changing->statement->kind == PFS_STATEMENT_INSERT)
			return refuse(changing, "a column that gets its default");
		if (column->why_not)
			return refuse(changing, column->why_not);
	}
	return 0;
}

static int set_all(struct changing *changing)
{
	for (size_t i = 0; i < changing->table->table.n_columns; i++) {
		if (changing->table->columns[i].is_number)
			return refuse(changing, "a row's number that it sets");
		changing->result_of[i] = i;
	}
	return changing->table->table.n_columns == changing->block->n_results ? 0 : -EOPNOTSUPP;
}

/* The columns of SET, or those that INSERT lists. */
static int set_named(struct changing *changing)
{
	const struct pfs_statement *statement = changing->statement;
	size_t n = 0;

	for (const struct pfs_item *item = statement->set ? statement->set->first : NULL; item;
	     item = item->next)
		PFS_TRY(set_result(changing, item->alias, n++));
	for (const struct pfs_column_names *name = statement->columns; name; name = name->next)
		PFS_TRY(set_result(changing, &name->name, n++));
	return n == changing->block->n_results ? 0 : -EOPNOTSUPP;
}

static int map_columns(struct changing *changing)
{
	const struct pfs_statement *statement = changing->statement;
	size_t n = changing->table->table.n_columns;

	changing->result_of =
		pfs_arena_get(&changing->arena, (n + 1) * sizeof(*changing->result_of));
	if (!changing->result_of)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		changing->result_of[i] = SIZE_MAX;
	if (statement->kind == PFS_STATEMENT_DELETE)
		return 0;
	PFS_TRY(statement->set || statement->columns ? set_named(changing) : set_all(changing));
	return check_columns(changing);
}

static int find_table(struct changing *changing)
{
	if (changing->statement->kind == PFS_STATEMENT_INSERT) {
		PFS_TRY(pfs_side_table_get(&changing->table, changing->query,
					   changing->statement->table->text));
		changing->is_ours = true;
	} else {
		changing->table = changing->block->inputs[0].side;
	}
	changing->rows->table = changing->table->id;
	return map_columns(changing);
}

/* ---- rows ---- */

/* As SQLite would keep it there. -EOPNOTSUPP: it says so itself. */
static int fit(const struct pfs_side_column *column, struct pfs_cell *cell)
{
	if (cell->type == PFS_CELL_NULL)
		return column->is_not_null ? -EOPNOTSUPP : 0;
	if (pfs_side_column_keeps(column, cell))
		return 0;
	if (cell->type == PFS_CELL_INTEGER && column->is_real && cell->integer >= -(int64_t)EXACT &&
	    cell->integer <= (int64_t)EXACT)
		*cell = (struct pfs_cell){.type = PFS_CELL_REAL, .real = (double)cell->integer};
	else if (cell->type == PFS_CELL_REAL && column->is_real)
		*cell = (struct pfs_cell){.type = PFS_CELL_REAL, .real = 0.0};
	else if (cell->type == PFS_CELL_REAL && column->affinity == PFS_NUMERIC &&
		 cell->real >= -EXACT && cell->real <= EXACT)
		*cell = (struct pfs_cell){.type = PFS_CELL_INTEGER, .integer = (int64_t)cell->real};
	else
		return -EOPNOTSUPP;
	return 0;
}

static void take(struct pfs_cell *out, const struct pfs_sql_value *value)
{
	*out = (struct pfs_cell){.type = PFS_CELL_NULL};
	switch (value->type) {
	case PFS_SQL_INTEGER:
		out->type = PFS_CELL_INTEGER;
		out->integer = value->integer;
		break;
	case PFS_SQL_REAL:
		out->type = PFS_CELL_REAL;
		out->real = value->real;
		break;
	case PFS_SQL_TEXT:
		out->type = PFS_CELL_TEXT;
		out->bytes = value->bytes;
		out->size = value->size;
		break;
	default:
		break;
	}
}

static void take_constant(struct pfs_cell *out, const struct pfs_constant *constant)
{
	*out = (struct pfs_cell){.type = PFS_CELL_NULL};
	switch (constant->type) {
	case PFS_IS_INTEGER:
		out->type = PFS_CELL_INTEGER;
		out->integer = constant->integer;
		break;
	case PFS_IS_REAL:
		out->type = PFS_CELL_REAL;
		out->real = constant->real;
		break;
	case PFS_IS_TEXT:
		out->type = PFS_CELL_TEXT;
		out->bytes = constant->text;
		out->size = constant->len;
		break;
	default:
		break;
	}
}

static void take_result(const struct changing *changing, struct pfs_cell *out, uint64_t row,
			size_t result)
{
	struct pfs_sql_value value;

	if (changing->said) {
		take_constant(out,
			      &changing->said->values[row * changing->said->n_columns + result]);
		return;
	}
	pfs_answer_value(&changing->answer, row, result, &value);
	take(out, &value);
}

static int add_row(struct changing *changing, uint64_t i, int64_t number, uint32_t place)
{
	const struct pfs_side_table *table = changing->table;
	struct pfs_cell cells[PFS_TABLE_COLUMNS_MAX];
	size_t n = table->table.n_columns;

	for (size_t c = 0; c < n; c++) {
		if (changing->result_of[c] == SIZE_MAX) {
			pfs_side_table_cell(table, &cells[c], place, c);
			continue;
		}
		take_result(changing, &cells[c], i, changing->result_of[c]);
		if (fit(&table->columns[c], &cells[c]))
			return refuse(changing, "a value that its column would keep as another");
	}
	return pfs_side_rows_add(changing->rows, number, cells, n);
}

/* They are on the statement's account. */
static int charge_rows(struct changing *changing)
{
	uint64_t more = changing->rows->capacity - changing->charged;

	if (!more)
		return 0;
	changing->charged += more;
	return pfs_account_charge(changing->query->account, (int64_t)more);
}

/* Rows that are too many are refused before any is made. */
static int reserve(struct changing *changing, uint64_t n)
{
	bool is_delete = changing->statement->kind == PFS_STATEMENT_DELETE;
	int error = pfs_side_rows_reserve(changing->rows, n,
					  is_delete ? 0 : changing->table->table.n_columns);

	return error ? error : charge_rows(changing);
}

static int add_rows(struct changing *changing)
{
	const struct pfs_answer_rows *answer = &changing->answer;
	bool is_insert = changing->statement->kind == PFS_STATEMENT_INSERT;
	bool is_delete = changing->statement->kind == PFS_STATEMENT_DELETE;
	uint64_t n = changing->said ? changing->said->n_rows : answer->n;
	int64_t last = is_insert ? pfs_side_table_last(changing->table) : 0;
	int error = 0;

	if (is_insert && (last < 0 || last > INT64_MAX - (int64_t)n))
		return refuse(changing, "rows whose numbers SQLite chooses");
	PFS_TRY(reserve(changing, n));
	for (uint64_t i = 0; i < n && !error; i++) {
		uint32_t place = is_insert ? 0 : answer->places[i];
		int64_t number = is_insert ? ++last : pfs_side_table_number(changing->table, place);

		if (i % TICK_ROWS == 0 && pfs_query_tick(changing->query))
			return -EINTR;
		error = is_delete ? pfs_side_rows_add(changing->rows, number, NULL, 0)
				  : add_row(changing, i, number, place);
		if (!error)
			error = charge_rows(changing);
	}
	return error;
}

/* ---- the whole ---- */

/* Nodes are those of one moment. -EAGAIN: others have waited for the tree. */
static int run_block(struct changing *changing)
{
	struct pfs_query *query = changing->query;
	int error;

	if (!changing->reads_nodes)
		return pfs_block_run(&changing->answer, changing->block, &changing->context);
	PFS_TRY(pfs_inputs_prepare(changing->block, &changing->context));
	query->bound = false; /* nothing of the tree has been seen */
	PFS_TRY(pfs_query_hold(query));
	error = pfs_block_run(&changing->answer, changing->block, &changing->context);
	pfs_query_release(query);
	if (error)
		query->bound = false; /* nor is, when SQLite runs the statement */
	return error;
}

static int find_rows(struct changing *changing)
{
	struct pfs_query *query = changing->query;
	struct pfs_placement *placement;

	PFS_TRY(bind(changing));
	PFS_TRY(find_table(changing));
	if (changing->block->inputs[0].kind == PFS_INPUT_VALUES) {
		changing->said = &changing->block->inputs[0];
		return add_rows(changing);
	}
	if (pfs_side_finds_few(changing->block, query, PFS_SQLITE_CHANGES))
		return refuse(changing, "few rows of a side table, which are found at once");
	PFS_TRY(pfs_queries_placement(query->queries, &placement));
	changing->run.operators = placement->operators;
	changing->block->wants_places = changing->statement->kind != PFS_STATEMENT_INSERT;
	PFS_TRY(run_block(changing));
	return add_rows(changing);
}

static const char *why_failed(const struct changing *changing, int error)
{
	if (changing->query->is_limited)
		return "a user who does not see all nodes";
	if (changing->why)
		return changing->why;
	if (error == -EAGAIN)
		return "nodes that others have waited for";
	return pfs_run_why_not(&changing->context, error);
}

int pfs_relational_change(struct pfs_query *query, struct pfs_side_rows *rows, const char **why)
{
	struct changing changing = {.query = query, .rows = rows};
	int error = -EOPNOTSUPP;

	changing.arena.limit = BOUND_BYTES;
	pfs_run_context_begin(&changing.context, &changing.run, query, &changing.arena);
	if (!query->is_limited)
		error = find_rows(&changing);
	*why = error ? why_failed(&changing, error) : NULL;
	pfs_answer_rows_free(&changing.answer, &changing.run);
	pfs_dictionary_finish(&changing.context.owners[0].dictionary);
	pfs_dictionary_finish(&changing.context.owners[1].dictionary);
	if (changing.is_ours)
		pfs_side_table_put(query->queries, changing.table);
	pfs_block_finish(changing.block, query->queries);
	pfs_parsed_free(changing.parsed);
	pfs_arena_finish(&changing.arena);
	if (error) {
		pfs_side_rows_finish(rows);
		pfs_account_discharge(query->account, changing.charged);
	}
	/* what is too large for its memory may not be for SQLite's */
	return !error || error == -EINTR ? error : -EOPNOTSUPP;
}

void pfs_relational_changed(struct pfs_query *query, uint32_t table)
{
	const struct pfs_side_table *columns;
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(query->connection->sql, &n);

	for (size_t i = 0; i < n; i++) {
		if (sides[i].id == table && !pfs_side_table_get(&columns, query, sides[i].name))
			pfs_side_table_put(query->queries, columns);
	}
}
