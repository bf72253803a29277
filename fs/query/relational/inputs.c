/* SPDX-License-Identifier: MIT */
/* The tables that a block's inputs are. */
#include "fs/query/relational/partners.h"
#include "fs/query/relational/run.h"

#include <string.h>

#include "fs/query/relational/sidetable.h"
#include "gpu/textheap.h"
#include "fs/query/relational/ties.h"

/* SQLite finds what belongs to one node in as long as the operators take for so many. */
#define FEW_OF_NODES 400
#define LOOKED_AT (1u << 14) /* rows, before others who wait for the tree are looked for */
/* Bytes copied to a device in one hold, before the statement's own: as much as a thread reads from
 * the image file, verifies and sends in two milliseconds, by the most threads that do so. */
#define HELD_EACH ((size_t)1 << 20)
#define HELD_BY	  16u

static int tick(void *arg)
{
	return pfs_query_tick(arg);
}

/* The used columns of an input, in the order of their numbers. */
static struct pfs_column_wish *wishes_of(struct pfs_arena *arena, const struct pfs_input *input)
{
	struct pfs_column_wish *wishes =
		pfs_arena_get(arena, (input->n_used + 1) * sizeof(*wishes));

	for (size_t i = 0; wishes && i < input->n_columns; i++) {
		if (input->columns[i].is_used)
			wishes[input->columns[i].at] = input->columns[i].wish;
	}
	return wishes;
}

static bool is_total(const struct pfs_column_wish *wish)
{
	return !wish->attr && pfs_field_is_total(wish->field);
}

static int get_owners(struct pfs_running *running, struct pfs_table_column *column,
		      const struct pfs_table *table, enum pfs_node_kind kind)
{
	bool groups = kind == PFS_NODE_GROUP;

	if (kind != PFS_NODE_OWNER && !groups)
		return 0;
	return pfs_owner_names_get(&running->context->owners[groups], column, table,
				   running->query->queries->owners, running->run, running->arena,
				   groups);
}

static enum pfs_node_kind kind_at(const struct pfs_input *input, size_t at)
{
	size_t i = 0;

	while (!input->columns[i].is_used || input->columns[i].at != at)
		i++;
	return input->columns[i].kind;
}

/* What may not be read of a node that is seen, is NULL: as getxattr(2) would have it. */
static int hide_unread(struct pfs_running *running, const struct pfs_table *table,
		       struct pfs_table_column *column)
{
	const struct pfs_query *query = running->query;
	size_t words = (table->n_rows + 63) / 64;
	uint64_t *nulls = pfs_arena_get(running->arena, (words + 1) * sizeof(*nulls));

	if (!nulls)
		return -ENOMEM;
	for (uint32_t row = 0; row < table->n_rows; row++) {
		uint64_t bit = UINT64_C(1) << row % 64;

		if (row % LOOKED_AT == 0)
			PFS_TRY(pfs_run_poll(running->run));
		if ((column->nulls && column->nulls[row / 64] & bit) ||
		    !pfs_visible_may_read(query->visible, query->tree, row))
			nulls[row / 64] |= bit;
	}
	column->nulls = nulls;
	column->nulls_stamps = NULL;
	column->not_null = false;
	return 0;
}

/* An input's columns; via: by the rows of its children. */
static int get_columns(struct pfs_running *running, struct pfs_table *table,
		       const struct pfs_input *input, const struct pfs_table_column *via)
{
	struct pfs_tree *tree = running->query->tree;
	const struct pfs_column_wish *wishes = wishes_of(running->arena, input);
	struct pfs_table_column *columns = (struct pfs_table_column *)table->columns;

	if (!wishes)
		return -ENOMEM;
	for (size_t i = 0; i < input->n_used; i++) {
		struct pfs_table_column *column = &columns[table->n_columns++];

		if (is_total(&wishes[i])) { /* it is made when it is known of which rows */
			*column = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
							    .width = sizeof(int64_t),
							    .is_signed = true,
							    .not_null = true};
			continue;
		}
		PFS_TRY(pfs_columns_get(tree, column, &wishes[i]));
		if (wishes[i].attr && running->query->visible)
			PFS_TRY(hide_unread(running, table, column));
		PFS_TRY(get_owners(running, column, table, kind_at(input, i)));
		if (!via)
			continue;
		if (column->via)
			return -EOPNOTSUPP;
		column->is_by_via = column->unique && column->not_null;
		column->via = via->via;
		column->via_stamps = via->via_stamps;
		column->n_elements = via->n_elements;
		column->not_null = column->unique = false;
	}
	return 0;
}

static void fill_seen(void *context, uint64_t *words, size_t first, size_t n)
{
	const struct pfs_query *query = context;

	pfs_visible_words(query->visible, query->tree, words, first, n);
}

/* A row is a node that is seen, from the first operator on. */
static void show_seen(struct pfs_query *query, struct pfs_table *table)
{
	if (!query->visible)
		return;
	table->live = NULL;
	table->live_stamps = NULL;
	table->fill_live = fill_seen;
	table->live_context = query;
}

static int get_nodes(struct pfs_running *running, unsigned number)
{
	static const struct pfs_column_wish parent = {.field = PFS_FIELD_PARENT};
	const struct pfs_block *block = running->block;
	struct pfs_table *table = &running->tables[number];
	struct pfs_table_column via;
	size_t n = 0;

	for (unsigned i = 0; i < block->n_inputs; i++)
		n += block->inputs[i].parent_of == number ? block->inputs[i].n_used : 0;
	pfs_columns_table(running->query->tree, table);
	show_seen(running->query, table);
	table->columns = pfs_arena_get(running->arena, (n + 1) * sizeof(*table->columns));
	if (!table->columns)
		return -ENOMEM;
	PFS_TRY(pfs_columns_get(running->query->tree, &via, &parent));
	PFS_TRY(get_columns(running, table, &block->inputs[number], NULL));
	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (i != number && block->inputs[i].parent_of == number)
			PFS_TRY(get_columns(running, table, &block->inputs[i], &via));
	}
	return 0;
}

/* Gets those of a side table's columns that are used, in their order. */
static int get_side(struct pfs_running *running, struct pfs_table *table,
		    const struct pfs_input *input)
{
	struct pfs_table_column *columns =
		pfs_arena_get(running->arena, (input->n_used + 1) * sizeof(*columns));

	if (!columns)
		return -ENOMEM;
	*table = input->side->table;
	for (size_t i = 0; i < input->n_columns; i++) {
		if (input->columns[i].is_used)
			columns[input->columns[i].at] = table->columns[i];
	}
	table->columns = columns;
	table->n_columns = (uint32_t)input->n_used;
	return 0;
}

/* ---- rows that the statement says ---- */

static uint64_t text_size(const struct pfs_constant *value)
{
	return value->type == PFS_IS_TEXT ? pfs_heap_room(value->len) : 0;
}

/* Puts the texts of a column into a heap of their own. */
static int put_texts(struct pfs_running *running, struct pfs_table_column *column,
		     const struct pfs_constant *first, const struct pfs_input *input)
{
	uint32_t *places = (uint32_t *)column->data;
	struct pfs_heap *heap = pfs_arena_get(running->arena, sizeof(*heap));
	uint64_t size = 0, at = 0;
	uint8_t *bytes;

	for (size_t row = 0; row < input->n_rows; row++)
		size += text_size(&first[row * input->n_columns]);
	bytes = pfs_arena_get(running->arena, size + 1);
	if (!heap || !bytes)
		return -ENOMEM;
	for (size_t row = 0; row < input->n_rows; row++) {
		const struct pfs_constant *value = &first[row * input->n_columns];

		if (value->type == PFS_IS_TEXT)
			places[row] = pfs_heap_put(bytes, &at, value->text, value->len);
	}
	*heap = pfs_heap_of(bytes, size);
	column->kind = PFS_KIND_PLACE;
	column->width = sizeof(*places);
	column->heap = heap;
	return 0;
}

static int get_constants(struct pfs_running *running, struct pfs_table_column *column,
			 const struct pfs_constant *first, const struct pfs_input *input)
{
	uint64_t *nulls = pfs_arena_get(running->arena, (input->n_rows / 64 + 1) * sizeof(*nulls));
	int64_t *integers = pfs_arena_get(running->arena, (input->n_rows + 1) * sizeof(*integers));
	bool is_text = false;

	if (!nulls || !integers)
		return -ENOMEM;
	*column = (struct pfs_table_column){.kind = PFS_KIND_INTEGER,
					    .width = sizeof(*integers),
					    .is_signed = true,
					    .data = integers,
					    .nulls = nulls};
	for (size_t row = 0; row < input->n_rows; row++) {
		const struct pfs_constant *value = &first[row * input->n_columns];

		if (value->type == PFS_IS_NULL)
			nulls[row / 64] |= UINT64_C(1) << row % 64;
		else if (value->type == PFS_IS_INTEGER)
			integers[row] = value->integer;
		else if (value->type == PFS_IS_REAL) {
			memcpy(&integers[row], &value->real, sizeof(value->real));
			column->kind = PFS_KIND_REAL;
		}
		is_text |= value->type == PFS_IS_TEXT;
	}
	return is_text ? put_texts(running, column, first, input) : 0;
}

static int get_values(struct pfs_running *running, struct pfs_table *table,
		      const struct pfs_input *input)
{
	struct pfs_table_column *columns =
		pfs_arena_get(running->arena, (input->n_used + 1) * sizeof(*columns));

	if (!columns)
		return -ENOMEM;
	for (size_t i = 0; i < input->n_columns; i++) {
		if (input->columns[i].is_used)
			PFS_TRY(get_constants(running, &columns[input->columns[i].at],
					      &input->values[i], input));
	}
	*table = (struct pfs_table){.n_rows = (uint32_t)input->n_rows,
				    .n_columns = (uint32_t)input->n_used,
				    .columns = columns};
	return 0;
}

static int get_table(struct pfs_running *running, unsigned number)
{
	const struct pfs_input *input = &running->block->inputs[number];
	struct pfs_table *table = &running->tables[number];

	if (input->kind == PFS_INPUT_SIDE)
		PFS_TRY(get_side(running, table, input));
	else if (input->kind == PFS_INPUT_VALUES)
		PFS_TRY(get_values(running, table, input));
	else if (input->kind == PFS_INPUT_QUEUE)
		PFS_TRY(pfs_recursion_queue(running, table, input));
	else if (input->kind == PFS_INPUT_BLOCKS)
		PFS_TRY(pfs_subselect_get(running, table, input));
	else if (input->parent_of == number)
		PFS_TRY(get_nodes(running, number));
	return input->parent_of == number ? pfs_running_texts(running, number) : 0;
}

int pfs_running_tables(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;

	running->tables =
		pfs_arena_get(running->arena, (block->n_inputs + 1) * sizeof(*running->tables));
	if (!running->tables)
		return -ENOMEM;
	running->stage.tables = running->tables;
	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (!block->inputs[i].is_lifted || block->inputs[i].is_value)
			PFS_TRY(get_table(running, i));
	}
	return 0;
}

/* Nodes by their number or their place, which SQLite finds without a look at the others. */
static bool is_found_at_once(const struct pfs_block *part)
{
	bool is = false;

	for (size_t i = 0; i < part->n_results; i++)
		is |= pfs_block_is_field(part, part->results[i], PFS_FIELD_INO) ||
		      pfs_block_is_field(part, part->results[i], PFS_FIELD_PARENT);
	return is;
}

/* Counts the rows that there are before the next join. */
static int count_rows(const struct pfs_running *running, uint64_t *n)
{
	const struct pfs_source *source = &running->source;

	if (!source->tuples && source->rows)
		return pfs_rows_count(running->run, n, source->rows);
	*n = source->tuples ? source->tuples->n : source->table->n_rows;
	return 0;
}

/* Runs the sub-select as far as its rows are found, and marks what has one. */
static int mark(struct pfs_running *running, struct pfs_rows **marked,
		const struct pfs_partners *partners, const struct pfs_source *source,
		unsigned input)
{
	const struct pfs_block *block = running->block->inputs[input].parts[0];
	struct pfs_running part;
	int error = pfs_running_begin(&part, block, running->context);

	if (!error)
		error = pfs_running_find(&part);
	if (!error)
		error = pfs_partners_mark(partners, marked, running, source, &part);
	pfs_running_end(&part);
	return error;
}

static int select_by_partners(struct pfs_running *running, const struct pfs_partners *partners,
			      unsigned input)
{
	struct pfs_rows **marked = &running->marked[input];

	PFS_TRY(mark(running, marked, partners, &running->source, input));
	PFS_TRY(pfs_partners_select(partners, running, &running->source, *marked));
	pfs_running_joined(running, input);
	return 0;
}

/* Returns true if a sub-select that SQLite would run once a row has been marked by: rows are few
 * because of it. */
static bool has_marked_each(const struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	bool has = false;

	for (unsigned i = 0; i < block->n_inputs; i++)
		has |= running->marked[i] && !block->inputs[i].is_once;
	return has;
}

/* A sub-select of an expression runs when it is known how many rows it is for: for few of them
 * SQLite's way, which looks at what belongs to each, takes less than all keys at once. If it was
 * other sub-selects that left few, SQLite would run those for all. */
static int run_lifted(struct pfs_running *running, unsigned input)
{
	const struct pfs_input *from = &running->block->inputs[input];
	struct pfs_partners partners;
	uint64_t n = 0;

	PFS_TRY(count_rows(running, &n));
	if (!from->is_once && is_found_at_once(from->parts[0]) &&
	    n < running->query->n_nodes / FEW_OF_NODES && !has_marked_each(running) &&
	    !running->query->piece) {
		running->context->is_slower = true;
		return -EOPNOTSUPP;
	}
	return !running->early && pfs_partners_ask(&partners, running, &running->source, input)
		       ? select_by_partners(running, &partners, input)
		       : get_table(running, input);
}

/* Returns true if one of the condition's ANDs is about that input alone. */
static bool has_own(const struct pfs_block *block, const struct pfs_term *term, unsigned input)
{
	if (!term)
		return false;
	if (term->kind == PFS_BOUND_STEP && term->op == PFS_OP_AND)
		return has_own(block, term->args[0], input) || has_own(block, term->args[1], input);
	return pfs_term_inputs(block, term) == UINT32_C(1) << input;
}

/* Where the nodes may be few without them, whether SQLite's way takes less is found out first. */
static int run_tied(struct pfs_running *running, unsigned input)
{
	const struct pfs_source nodes = {.table = &running->tables[input]};
	const struct pfs_block *block = running->block;
	struct pfs_partners partners;
	struct pfs_tie ties[PFS_TIES_MAX];
	size_t n = pfs_ties_find(ties, block, input);
	bool of_all = n && !has_own(block, block->where, input);

	for (unsigned i = 0; i < block->n_inputs && of_all; i++)
		of_all = !has_own(block, block->inputs[i].on, input);
	for (size_t i = 0; i < n; i++) {
		unsigned by = ties[i].by->input;

		if (!block->inputs[by].is_lifted || block->inputs[by].is_value ||
		    running->has_lifted >> by & 1 ||
		    (!of_all && !block->inputs[by].is_once &&
		     is_found_at_once(block->inputs[by].parts[0])))
			continue;
		running->has_lifted |= UINT32_C(1) << by;
		PFS_TRY(pfs_partners_ask(&partners, running, &nodes, by)
				? mark(running, &running->marked[by], &partners, &nodes, by)
				: get_table(running, by));
	}
	return 0;
}

int pfs_running_tied(struct pfs_running *running)
{
	for (unsigned i = 0; i < running->block->n_inputs; i++)
		PFS_TRY(run_tied(running, i));
	return 0;
}

int pfs_running_lifted(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;

	for (unsigned i = 0; i < block->n_inputs; i++) {
		if (block->inputs[i].is_lifted && !block->inputs[i].is_value &&
		    !(running->has_lifted >> i & 1))
			PFS_TRY(run_lifted(running, i));
	}
	return 0;
}

/* Copies more of the columns to the device, in one hold. Returns 1 if there is yet more; 0 also if
 * it does not work: then the statement's own hold shows why. */
static int mirror_some(struct pfs_run_context *context, struct pfs_table_column *columns,
		       const struct pfs_column_wish *wishes, size_t n, size_t held,
		       uint64_t *size)
{
	struct pfs_tree *tree = context->query->tree;
	struct pfs_table table;
	int error = 0;

	(void)pfs_scan_lock(tree, __func__);
	pfs_columns_table(tree, &table);
	table.columns = columns;
	for (size_t i = 0; i < n && !error; i++)
		error = pfs_columns_get(tree, &columns[table.n_columns++], &wishes[i]);
	if (!error)
		error = pfs_table_mirror(context->run, &table, held);
	pfs_scan_unlock(tree);
	*size = (uint64_t)table.n_rows * (n + 1) * sizeof(int64_t);
	return error == -EINTR || error == 1 ? error : 0;
}

/* What the statement's hold then copies to the device is what has changed meanwhile. Ends if that
 * is much each time. */
static int mirror(struct pfs_run_context *context, const struct pfs_column_wish *wishes, size_t n)
{
	struct pfs_table_column *columns =
		pfs_arena_get(context->arena, (n + 1) * sizeof(*columns));
	unsigned threads = context->query->queries->placement.processors;
	size_t held = PFS_MAX(PFS_MIN(threads, HELD_BY), 1u) * HELD_EACH;
	uint64_t size = 0, copied = 0;
	int more = 1;

	if (!columns)
		return -ENOMEM;
	for (; more == 1 && copied <= 2 * size; copied += held) {
		if (pfs_query_tick(context->query))
			return -EINTR;
		more = mirror_some(context, columns, wishes, n, held, &size);
	}
	return more < 0 ? more : 0;
}

static int prepare_nodes(const struct pfs_block *block, struct pfs_run_context *context,
			 unsigned number)
{
	const struct pfs_input *input = &block->inputs[number];
	struct pfs_column_wish *wishes = wishes_of(context->arena, input);
	struct pfs_query *query = context->query;
	struct pfs_tie ties[PFS_TIES_MAX];
	bool has_names = false;
	size_t n = 0;

	if (!wishes)
		return -ENOMEM;
	for (size_t i = 0; i < input->n_used; i++) {
		has_names |= !wishes[i].attr && wishes[i].field == PFS_FIELD_NAME;
		if (!is_total(&wishes[i]))
			wishes[n++] = wishes[i];
	}
	if (has_names || pfs_ties_find(ties, block, number))
		pfs_scan_prepare(query->tree); /* few nodes are found by it */
	PFS_TRY(pfs_columns_prepare(query->tree, wishes, n, tick, query));
	return context->run->on == PFS_ENGINE_HOST ? 0 : mirror(context, wishes, n);
}

/* SQLite asks for the tree when it says how long texts may be. */
static int find_text_limit(const struct pfs_block *block, struct pfs_run_context *context)
{
	bool has = false;

	for (size_t i = 0; i < block->n_aggregates; i++)
		has |= block->aggregates[i].op == PFS_GROUP_CONCAT;
	return has ? pfs_sql_value_limit(context->query->connection->sql, &context->text_limit) : 0;
}

int pfs_inputs_prepare(const struct pfs_block *block, struct pfs_run_context *context)
{
	PFS_TRY(find_text_limit(block, context));
	for (unsigned i = 0; i < block->n_inputs; i++) {
		const struct pfs_input *input = &block->inputs[i];

		for (size_t part = 0; part < input->n_parts; part++)
			PFS_TRY(pfs_inputs_prepare(input->parts[part], context));
		if (input->kind == PFS_INPUT_NODES)
			PFS_TRY(prepare_nodes(block, context, i));
	}
	return 0;
}
