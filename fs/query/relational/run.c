/* SPDX-License-Identifier: MIT */
/* Stages: select, compute what keys and aggregates are of, group, HAVING, functions of windows,
 * compute what results are, DISTINCT, sort, gather. */
#include "fs/query/relational/eager_groups.h"

#include <string.h>

#include "base/checked.h"

static size_t count_values(const struct pfs_block *block)
{
	size_t n = block->n_group + 2 * block->n_aggregates + block->n_results + block->n_order +
		   block->n_printed;

	for (size_t i = 0; i < block->n_windows; i++)
		n += block->windows[i].n_keys + 2 * block->windows[i].n_functions;
	return n;
}

/* ---- what operators ask ---- */

static int poll(void *arg)
{
	const struct pfs_run_context *context = arg;

	if (pthread_equal(pthread_self(), context->thread))
		return pfs_query_poll(context->query);
	return context->query->stop ? -EINTR : 0;
}

static int pause_run(void *arg)
{
	return pfs_query_look(((struct pfs_run_context *)arg)->query);
}

/* What is not asked for is not refused: SQLite may yet do with less. */
static int charge(void *arg, int64_t bytes)
{
	struct pfs_account *account = ((struct pfs_run_context *)arg)->query->account;

	if (bytes > 0 && (uint64_t)bytes > pfs_account_left(account))
		return -ENOMEM;
	return pfs_account_charge(account, bytes);
}

void pfs_run_context_begin(struct pfs_run_context *context, struct pfs_run *run,
			   struct pfs_query *query, struct pfs_arena *arena)
{
	*run = (struct pfs_run){.on = PFS_ENGINE_HOST,
				.poll = poll,
				.pause = pause_run,
				.charge = charge,
				.context = context};
	*context = (struct pfs_run_context){
		.query = query, .arena = arena, .run = run, .thread = pthread_self()};
}

/* ---- stages ---- */

static int filter(struct pfs_running *running)
{
	const struct pfs_term *having = running->block->having;
	struct pfs_program program;
	struct pfs_tuples *tuples;

	if (!having)
		return 0;
	PFS_TRY(pfs_running_print_all(running, having));
	PFS_TRY(pfs_stage_program(&running->stage, &program, &having, 1));
	PFS_TRY(pfs_filter(running->run, &tuples, &running->source, &program));
	pfs_running_go_on(running, tuples);
	return 0;
}

static int compute_results(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	const struct pfs_term **values;
	size_t n = 0;

	values = pfs_arena_get(running->arena,
			       (block->n_results + block->n_order + 1) * sizeof(struct pfs_term *));
	if (!values)
		return -ENOMEM;
	for (size_t i = 0; i < block->n_results; i++)
		values[n++] = block->results[i];
	for (size_t i = 0; i < block->n_order; i++)
		values[n++] = block->order[i].value;
	return pfs_running_compute(running, values, n);
}

/* ---- order ---- */

struct sorting {
	struct pfs_sort_key *keys;
	size_t n;
};

static int add_key(struct pfs_running *running, struct sorting *sorting,
		   const struct pfs_term *value, bool is_descending, bool nulls_last)
{
	struct pfs_sort_key *key = &sorting->keys[sorting->n];

	if (value->kind == PFS_BOUND_CONSTANT)
		return 0;
	*key = (struct pfs_sort_key){
		.collation = value->collation,
		.descending = is_descending,
		.nulls_last = nulls_last,
	};
	if (!pfs_stage_ref(&running->stage, &key->ref, value))
		return -EOPNOTSUPP;
	for (size_t i = 0; i < sorting->n; i++) {
		const struct pfs_sort_key *other = &sorting->keys[i];

		if (other->ref.table == key->ref.table && other->ref.column == key->ref.column &&
		    other->collation == key->collation)
			return 0; /* what is equal there is equal here */
	}
	sorting->n++;
	if (value->is_path)
		return pfs_running_rank(running, &key->ref, value->input, true);
	return 0;
}

/* The keys of groups in the order in which SQLite finds them. */
static int add_group_keys(struct pfs_running *running, struct sorting *sorting)
{
	const struct pfs_block *block = running->block;

	for (size_t i = 0; i < block->n_group; i++) {
		bool descends = block->groups_descend && block->order[i].is_descending;

		PFS_TRY(add_key(running, sorting, block->group[i], descends, descends));
	}
	return 0;
}

static int make_keys(struct pfs_running *running, struct sorting *sorting)
{
	const struct pfs_block *block = running->block;
	size_t n = block->n_order + block->n_group + block->n_results;

	sorting->keys = pfs_arena_get(running->arena, (n + 1) * sizeof(*sorting->keys));
	return sorting->keys ? 0 : -ENOMEM;
}

/* An order by all columns leaves nothing of distinct rows open.  What another one leaves open comes
 * as the only scan meets the rows. */
static int add_distinct_keys(struct pfs_running *running, struct sorting *sorting)
{
	const struct pfs_block *block = running->block;
	size_t n = sorting->n;

	for (size_t i = 0; i < block->n_results; i++)
		PFS_TRY(add_key(running, sorting, block->results[i], false, false));
	if (block->is_set || pfs_block_joins(block) || sorting->n == n)
		return 0;
	sorting->n = n + 1;
	sorting->keys[n] = (struct pfs_sort_key){0};
	return pfs_running_rank(running, &sorting->keys[n].ref, 0, false);
}

/* What ORDER BY leaves open is in the order of groups. */
static int find_keys(struct pfs_running *running, struct sorting *sorting)
{
	const struct pfs_block *block = running->block;

	PFS_TRY(make_keys(running, sorting));
	for (size_t i = 0; i < block->n_order; i++)
		PFS_TRY(add_key(running, sorting, block->order[i].value,
				block->order[i].is_descending, block->order[i].nulls_last));
	if (block->is_distinct && !block->is_grouped)
		return add_distinct_keys(running, sorting);
	return add_group_keys(running, sorting);
}

/* Sorts groups that are made distinct: of those that show the same the first one stays, and its
 * keys say where. */
static int order_groups(struct pfs_running *running)
{
	struct sorting sorting = {.n = 0};
	struct pfs_tuples *tuples;

	PFS_TRY(make_keys(running, &sorting));
	PFS_TRY(add_group_keys(running, &sorting));
	if (!sorting.n || !running->block->shows_order)
		return 0;
	PFS_TRY(pfs_sort(running->run, &tuples, &running->source, sorting.keys, sorting.n, 0,
			 UINT64_MAX));
	pfs_running_go_on(running, tuples);
	return 0;
}

static int make_distinct(struct pfs_running *running)
{
	const struct pfs_block *block = running->block;
	struct pfs_group_key *keys =
		pfs_arena_get(running->arena, (block->n_results + 1) * sizeof(*keys));
	size_t n = 0;

	if (!block->is_distinct)
		return 0;
	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < block->n_results; i++) {
		const struct pfs_term *result = block->results[i];

		if (result->kind == PFS_BOUND_CONSTANT)
			continue;
		if (result->is_late)
			return -EOPNOTSUPP;
		if (result->collation != PFS_BINARY && !pfs_bound_is_number(result))
			return -EOPNOTSUPP; /* which of the equal ones it is matters */
		if (!pfs_stage_ref(&running->stage, &keys[n++].ref, result))
			return -EOPNOTSUPP;
	}
	if (!n)
		return -EOPNOTSUPP;
	PFS_TRY(order_groups(running));
	return pfs_running_distinct(running, keys, n);
}

/* What was only selected so far, as a batch. */
static int make_tuples(struct pfs_running *running)
{
	struct pfs_tuples *tuples;
	struct pfs_rows *rows;
	int error;

	if (running->tuples)
		return 0;
	PFS_TRY(pfs_select(running->run, &rows, &running->source, NULL));
	error = pfs_rows_here(running->run, rows);
	if (!error)
		error = pfs_tuples_of_rows(running->run, &tuples, running->source.table, rows);
	pfs_rows_free(running->run, rows);
	if (!error)
		pfs_running_go_on(running, tuples);
	return error;
}

static int sort(struct pfs_running *running, struct pfs_answer_rows *out)
{
	const struct pfs_block *block = running->block;
	struct sorting sorting = {.n = 0};
	struct pfs_tuples *tuples;

	if (!block->shows_order && !block->n_order)
		; /* in any order */
	else
		PFS_TRY(find_keys(running, &sorting));
	if (sorting.n) {
		PFS_TRY(pfs_sort(running->run, &tuples, &running->source, sorting.keys, sorting.n,
				 block->offset, block->limit));
		pfs_running_go_on(running, tuples);
		out->n = tuples->n;
		return 0;
	}
	PFS_TRY(make_tuples(running));
	out->first = PFS_MIN(block->offset, running->tuples->n);
	out->n = PFS_MIN(running->tuples->n - out->first, block->limit);
	return 0;
}

/* ---- answers ---- */

/* Texts are copied: their dictionaries grow, and names go, once the tree is let go. */
static int copy_texts(const struct pfs_running *running, struct pfs_answer_column *column)
{
	const struct pfs_run *run = running->run;
	const struct pfs_vector *vector = &column->vector;
	uint64_t size = 0, n = vector->n;
	size_t len;

	PFS_TRY(pfs_run_alloc_raw(run, &column->offset, n + 1, sizeof(uint64_t)));
	column->n_offsets = n + 1;
	for (uint64_t i = 0; i < n; i++) {
		PFS_TRY(pfs_running_look(running, i));
		column->offset[i] = size;
		if (pfs_vector_is_null(vector, i))
			continue;
		(void)pfs_vector_text(vector, i, &len);
		size += len;
	}
	column->offset[n] = size;
	PFS_TRY(pfs_run_alloc_raw(run, &column->text, size + 1, 1));
	for (uint64_t i = 0; i < n; i++) {
		PFS_TRY(pfs_running_look(running, i));
		if (pfs_vector_is_null(vector, i))
			continue;
		memcpy(column->text + column->offset[i], pfs_vector_text(vector, i, &len),
		       column->offset[i + 1] - column->offset[i]);
	}
	return 0;
}

static int gather_column(struct pfs_running *running, struct pfs_answer_column *column,
			 const struct pfs_term *result)
{
	struct pfs_ref ref;

	if (result->kind == PFS_BOUND_CONSTANT) {
		column->constant = &result->constant;
		return 0;
	}
	if (result->is_late)
		return pfs_running_gather_late(running, column, result);
	if (!pfs_stage_ref(&running->stage, &ref, result))
		return -EOPNOTSUPP;
	PFS_TRY(pfs_gather(running->run, &column->vector, &running->source, ref));
	if (column->vector.kind != PFS_KIND_CODE && column->vector.kind != PFS_KIND_PLACE)
		return 0;
	return copy_texts(running, column);
}

/* Which rows of its only input they are. */
static int gather_places(struct pfs_running *running, struct pfs_answer_rows *out)
{
	const struct pfs_tuple_table *table = &running->tuples->tables[0];

	PFS_TRY(pfs_tuples_here(running->run, running->tuples));
	PFS_TRY(pfs_run_alloc_raw(running->run, &out->places, running->tuples->n + 1,
				  sizeof(*out->places)));
	out->n_places = running->tuples->n;
	for (uint64_t i = 0; i < out->n_places; i++)
		out->places[i] = table->rows ? table->rows[i] : table->from + (uint32_t)i;
	return 0;
}

static int gather(struct pfs_running *running, struct pfs_answer_rows *out)
{
	const struct pfs_block *block = running->block;

	out->columns =
		pfs_arena_get(running->arena, (block->n_results + 1) * sizeof(*out->columns));
	if (!out->columns)
		return -ENOMEM;
	for (size_t i = 0; i < block->n_results; i++) {
		PFS_TRY(pfs_run_poll(running->run));
		out->n_columns = i + 1;
		PFS_TRY(gather_column(running, &out->columns[i], block->results[i]));
	}
	return block->wants_places ? gather_places(running, out) : 0;
}

void pfs_answer_rows_free(struct pfs_answer_rows *rows, const struct pfs_run *run)
{
	for (size_t i = 0; i < rows->n_columns; i++) {
		struct pfs_answer_column *column = &rows->columns[i];

		if (column->text)
			pfs_run_free(run, column->text, column->offset[column->n_offsets - 1] + 1,
				     1);
		if (column->offset)
			pfs_run_free(run, column->offset, column->n_offsets, sizeof(uint64_t));
		pfs_vector_free(run, &column->vector);
	}
	if (rows->places)
		pfs_run_free(run, rows->places, rows->n_places + 1, sizeof(*rows->places));
	*rows = (struct pfs_answer_rows){.columns = NULL};
}

static void take_constant(struct pfs_sql_value *out, const struct pfs_constant *constant)
{
	if (constant->type == PFS_IS_INTEGER)
		*out = (struct pfs_sql_value){.type = PFS_SQL_INTEGER,
					      .integer = constant->integer};
	else if (constant->type == PFS_IS_REAL)
		*out = (struct pfs_sql_value){.type = PFS_SQL_REAL, .real = constant->real};
	else if (constant->type == PFS_IS_TEXT)
		*out = (struct pfs_sql_value){
			.type = PFS_SQL_TEXT, .bytes = constant->text, .size = constant->len};
}

void pfs_answer_value(const void *arg, uint64_t row, size_t number, struct pfs_sql_value *out)
{
	const struct pfs_answer_rows *rows = arg;
	const struct pfs_answer_column *column = &rows->columns[number];
	const struct pfs_vector *vector = &column->vector;

	row += rows->first;
	*out = (struct pfs_sql_value){.type = PFS_SQL_NULL};
	if (column->constant) {
		take_constant(out, column->constant);
		return;
	}
	if (pfs_vector_is_null(vector, row))
		return;
	if (column->text) {
		out->type = PFS_SQL_TEXT;
		out->bytes = column->text + column->offset[row];
		out->size = column->offset[row + 1] - column->offset[row];
	} else if (vector->kind == PFS_KIND_REAL ||
		   (vector->is_real && (vector->is_real[row / 64] >> row % 64 & 1))) {
		out->type = PFS_SQL_REAL;
		out->real = vector->reals[row];
	} else {
		out->type = PFS_SQL_INTEGER;
		out->integer = vector->integers[row];
	}
}

int pfs_running_find(struct pfs_running *running)
{
	PFS_TRY(pfs_running_tables(running));
	PFS_TRY(pfs_running_tied(running));
	PFS_TRY(pfs_running_join(running));
	PFS_TRY(pfs_running_lifted(running));
	return pfs_running_join_lifted(running);
}

static int group(struct pfs_running *running)
{
	return running->block->is_grouped ? pfs_running_group(running) : 0;
}

static int run_stages(struct pfs_running *running, struct pfs_answer_rows *out)
{
	static int (*const stages[])(struct pfs_running * running) = {
		pfs_running_find,    group,	      filter,
		pfs_running_windows, compute_results, make_distinct,
	};

	for (size_t i = 0; i < PFS_COUNT(stages); i++) {
		PFS_TRY(stages[i](running));
		PFS_TRY(pfs_run_poll(running->run));
	}
	return sort(running, out);
}

int pfs_running_begin(struct pfs_running *running, const struct pfs_block *block,
		      struct pfs_run_context *context)
{
	*running = (struct pfs_running){
		.block = block,
		.context = context,
		.query = context->query,
		.arena = context->arena,
		.run = context->run,
		.stage = {.arena = context->arena,
			  .block = block,
			  .has_columns = true,
			  .whole = block->is_grouped ? 0 : UINT32_MAX},
	};
	running->stage.known = pfs_arena_get(context->arena, (count_values(block) + 1) *
								     sizeof(*running->stage.known));
	return running->stage.known ? 0 : -ENOMEM;
}

void pfs_running_end(struct pfs_running *running)
{
	pfs_tuples_free(running->run, running->tuples);
	for (size_t i = 0; i < PFS_COUNT(running->rows); i++) {
		pfs_rows_free(running->run, running->rows[i]);
		pfs_rows_free(running->run, running->marked[i]);
	}
	for (size_t i = 0; i < running->stage.n_sets; i++)
		pfs_rows_free(running->run, running->sets[i].rows);
	pfs_eager_free(running);
	pfs_subselects_free(running);
	pfs_made_totals_free(running);
}

const char *pfs_run_why_not(const struct pfs_run_context *context, int error)
{
	if (error == -ENOMEM || error == -E2BIG)
		return "more rows than there is memory for";
	return context->is_slower ? "few rows to look for, which the operators take longer for"
				  : "what the operators have no answer to";
}

int pfs_block_run(struct pfs_answer_rows *out, const struct pfs_block *block,
		  struct pfs_run_context *context)
{
	struct pfs_running running;
	int error = pfs_running_begin(&running, block, context);

	*out = (struct pfs_answer_rows){.columns = NULL};
	if (!error)
		error = run_stages(&running, out);
	if (!error)
		error = gather(&running, out);
	pfs_running_end(&running);
	pfs_kept_texts_free(context);
	pfs_made_texts_free(context);
	if (error)
		pfs_answer_rows_free(out, context->run);
	return error;
}

int pfs_block_run_part(struct pfs_tuples **out, const struct pfs_block *block,
		       struct pfs_run_context *context, bool is_alone)
{
	struct pfs_answer_rows rows = {.columns = NULL};
	struct pfs_running running;
	int error = pfs_running_begin(&running, block, context);

	*out = NULL;
	if (!error)
		error = run_stages(&running, &rows);
	if (!error)
		error = pfs_running_vectors(&running, out, rows.n, is_alone);
	pfs_running_end(&running);
	return error;
}
