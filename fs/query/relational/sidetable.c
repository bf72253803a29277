/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/sidetable_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "fs/query/sides.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

#define ROWS_A_LOOK 4096 /* at the statement's time, while rows are read */

void pfs_side_entry_free(struct pfs_side_entry *entry)
{
	for (size_t i = 0; i < entry->n_columns; i++) {
		free(entry->table.columns[i].name);
		if (entry->dictionaries)
			pfs_dictionary_finish(&entry->dictionaries[i]);
		if (entry->data)
			free(entry->data[i]);
		if (entry->nulls)
			free(entry->nulls[i]);
	}
	pfs_side_indexes_drop(entry);
	(void)pthread_mutex_destroy(&entry->index_lock);
	free(entry->indexes);
	free(entry->table.columns);
	free(entry->table.name);
	free(entry->dictionaries);
	free(entry->columns);
	free(entry->data);
	free(entry->nulls);
	free(entry->has_value);
	free(entry->numbers);
	free(entry->live);
	free(entry);
}

/* ---- declarations ---- */

static bool holds(const char *type, const char *word)
{
	return strcasestr(type, word) != NULL;
}

/* SQLite's rules, in their order. */
static enum pfs_affinity affinity_of(const char *type)
{
	if (holds(type, "int"))
		return PFS_NUMERIC;
	if (holds(type, "char") || holds(type, "clob") || holds(type, "text"))
		return PFS_TEXTUAL;
	return !*type || holds(type, "blob") ? PFS_NO_AFFINITY : PFS_NUMERIC;
}

static bool is_real(const char *type)
{
	return affinity_of(type) == PFS_NUMERIC && !holds(type, "int") &&
	       (holds(type, "real") || holds(type, "floa") || holds(type, "doub"));
}

static int add_column(void *arg, const struct pfs_sql_declared *declared)
{
	struct pfs_side_entry *entry = arg;
	struct pfs_side_column *column;

	if (declared->is_generated)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_grow(&entry->table.columns, &entry->columns_capacity, entry->n_columns + 1,
			 sizeof(*entry->table.columns)));
	column = &entry->table.columns[entry->n_columns];
	*column = (struct pfs_side_column){
		.name = strdup(declared->name),
		.affinity = affinity_of(declared->type),
		.can_be_null = true,
		.is_not_null = declared->is_not_null,
		.is_number = declared->is_number,
		.is_real = is_real(declared->type),
		.is_indexed = declared->is_indexed,
	};
	if (!column->name)
		return -ENOMEM;
	entry->n_columns++;
	if (strcasecmp(declared->collation, "nocase") == 0)
		column->collation = PFS_NOCASE;
	else if (strcasecmp(declared->collation, "rtrim") == 0)
		column->collation = PFS_RTRIM;
	else if (strcasecmp(declared->collation, "binary") != 0)
		column->why_not = "a column of another collation";
	return 0;
}

/* ---- rows ---- */

/* A copy takes at most half of what the statement may still have, or SQLite's copy has to do. */
static bool is_too_large(const struct pfs_side_entry *entry, size_t capacity)
{
	uint64_t bytes = (uint64_t)capacity * entry->n_columns * (sizeof(uint64_t) + 1);

	for (size_t i = 0; i < entry->n_columns; i++)
		bytes += pfs_dictionary_memory(&entry->dictionaries[i]);
	return capacity > PFS_ROWS_MAX / 2 || bytes > pfs_account_left(entry->account) / 2;
}

/* *bits, which may be NULL, for so many rows, which have none. */
static int grow_bits(uint64_t **bits, size_t before, size_t capacity)
{
	uint64_t *grown = realloc(*bits, capacity / 8);

	if (!grown)
		return -ENOMEM;
	memset((char *)grown + before / 8, 0, (capacity - before) / 8);
	*bits = grown;
	return 0;
}

static int make_room(struct pfs_side_entry *entry)
{
	size_t capacity = PFS_MAX(entry->capacity * 2, 1024);
	int64_t *numbers;

	if (entry->n_rows < entry->capacity)
		return 0;
	if (is_too_large(entry, capacity))
		return -E2BIG;
	numbers = realloc(entry->numbers, capacity * sizeof(*numbers));
	if (!numbers)
		return -ENOMEM;
	entry->numbers = numbers;
	if (entry->live)
		PFS_TRY(grow_bits(&entry->live, entry->capacity, capacity));
	for (size_t i = 0; i < entry->n_columns; i++) {
		void *data = realloc(entry->data[i], capacity * sizeof(uint64_t));

		if (!data)
			return -ENOMEM;
		entry->data[i] = data;
		PFS_TRY(grow_bits(&entry->nulls[i], entry->capacity, capacity));
	}
	entry->capacity = capacity;
	return 0;
}

/* What the column is, by its first value that is not NULL. */
static void decide(struct pfs_side_entry *entry, size_t i, const struct pfs_cell *cell)
{
	struct pfs_side_column *column = &entry->table.columns[i];
	enum pfs_kind kind = cell->type == PFS_CELL_INTEGER ? PFS_KIND_INTEGER
			     : cell->type == PFS_CELL_REAL  ? PFS_KIND_REAL
							    : PFS_KIND_CODE;

	if (cell->type == PFS_CELL_BLOB)
		column->why_not = "a column with blobs";
	if (!entry->has_value[i]) {
		entry->has_value[i] = true;
		column->class = kind == PFS_KIND_CODE ? PFS_CLASS_TEXT : PFS_CLASS_NUMBER;
		entry->columns[i].kind = kind;
	} else if (entry->columns[i].kind != kind) {
		column->why_not = "a column with values of several classes";
	}
}

static int add_cell(struct pfs_side_entry *entry, size_t i, size_t row, const struct pfs_cell *cell)
{
	uint32_t *codes = entry->data[i];
	int64_t *integers = entry->data[i];
	double *reals = entry->data[i];

	entry->nulls[i][row / 64] &= ~(UINT64_C(1) << row % 64);
	if (cell->type == PFS_CELL_NULL) {
		entry->nulls[i][row / 64] |= UINT64_C(1) << row % 64;
		if (entry->has_value[i] && entry->columns[i].kind == PFS_KIND_CODE)
			codes[row] = 0;
		else
			integers[row] = 0; /* should texts come, two codes */
		return 0;
	}
	decide(entry, i, cell);
	if (entry->table.columns[i].why_not)
		return 0;
	switch (entry->columns[i].kind) {
	case PFS_KIND_INTEGER:
		integers[row] = cell->integer;
		return 0;
	case PFS_KIND_REAL:
		reals[row] = cell->real;
		return 0;
	default:
		return pfs_dictionary_add(&entry->dictionaries[i], &codes[row], cell->bytes,
					  cell->size);
	}
}

static int set_cells(struct pfs_side_entry *entry, size_t row, const struct pfs_cell *cells,
		     size_t n)
{
	bool is_new = row == entry->n_rows || !pfs_side_is_live(entry, row);

	if (n != entry->n_columns)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i++) {
		uint64_t before, after;
		bool had = !is_new && pfs_side_index_key(entry, &before, i, row);

		PFS_TRY(add_cell(entry, i, row, &cells[i]));
		if (!had || !pfs_side_index_key(entry, &after, i, row) || before != after)
			pfs_side_index_note(entry, i, (uint32_t)row);
	}
	if (entry->live)
		entry->live[row / 64] |= UINT64_C(1) << row % 64;
	return 0;
}

static int add_row(void *arg, int64_t number, const struct pfs_cell *cells, size_t n)
{
	struct pfs_side_entry *entry = arg;

	PFS_TRY(make_room(entry));
	PFS_TRY(set_cells(entry, entry->n_rows, cells, n));
	entry->numbers[entry->n_rows++] = number;
	return 0;
}

/* SQLite keeps whole numbers of a real column as integers, of which none is -0. */
static bool is_kept_real(const struct pfs_side_column *column, double real)
{
	if (column->is_real)
		return fpclassify(real) != FP_ZERO || !signbit(real);
	return column->affinity == PFS_NO_AFFINITY ||
	       (column->affinity == PFS_NUMERIC && real != nearbyint(real));
}

/* Anybody may have made the store: a table of SQLite's would not keep each value of each class in
 * each column. */
bool pfs_side_column_keeps(const struct pfs_side_column *column, const struct pfs_cell *cell)
{
	switch (cell->type) {
	case PFS_CELL_INTEGER:
		return column->affinity != PFS_TEXTUAL && !column->is_real;
	case PFS_CELL_REAL:
		return is_kept_real(column, cell->real);
	case PFS_CELL_TEXT:
		return column->affinity != PFS_NUMERIC;
	default:
		return true;
	}
}

static int add_stored_row(void *arg, int64_t number, const struct pfs_cell *cells, size_t n)
{
	struct pfs_side_entry *entry = arg;

	if (entry->n_rows % ROWS_A_LOOK == 0 && pfs_query_tick(entry->query))
		return -EINTR;
	for (size_t i = 0; i < n && i < entry->n_columns; i++)
		if (!pfs_side_column_keeps(&entry->table.columns[i], &cells[i]))
			return -EOPNOTSUPP;
	return add_row(entry, number, cells, n);
}

static void describe(struct pfs_side_entry *entry, size_t i)
{
	struct pfs_side_column *column = &entry->table.columns[i];
	struct pfs_table_column *out = &entry->columns[i];

	if (!entry->has_value[i]) { /* no value at all */
		column->class = column->affinity == PFS_NUMERIC ? PFS_CLASS_NUMBER : PFS_CLASS_TEXT;
		out->kind = column->affinity == PFS_NUMERIC ? PFS_KIND_INTEGER : PFS_KIND_CODE;
	}
	out->data = entry->data[i];
	out->nulls = entry->nulls[i];
	out->width = out->kind == PFS_KIND_CODE ? sizeof(uint32_t) : sizeof(uint64_t);
	out->is_signed = out->kind == PFS_KIND_INTEGER;
	if (out->kind == PFS_KIND_CODE)
		out->dictionary = &entry->dictionaries[i].shown;
}

static void describe_all(struct pfs_side_entry *entry)
{
	for (size_t i = 0; i < entry->n_columns; i++)
		describe(entry, i);
	entry->table.table = (struct pfs_table){
		.n_rows = (uint32_t)entry->n_rows,
		.n_columns = (uint32_t)entry->n_columns,
		.columns = entry->columns,
		.live = entry->live,
		.epoch = entry->version,
	};
}

static int prepare_columns(struct pfs_side_entry *entry)
{
	size_t n = entry->n_columns;

	if (!n)
		return -ENOENT;
	entry->columns = calloc(n + 1, sizeof(*entry->columns));
	entry->dictionaries = calloc(n + 1, sizeof(*entry->dictionaries));
	entry->data = calloc(n + 1, sizeof(*entry->data));
	entry->nulls = calloc(n + 1, sizeof(*entry->nulls));
	entry->has_value = calloc(n + 1, sizeof(*entry->has_value));
	entry->indexes = calloc(n + 1, sizeof(struct pfs_side_index *));
	if (!entry->indexes || !entry->columns || !entry->dictionaries || !entry->data ||
	    !entry->nulls || !entry->has_value)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(pfs_dictionary_begin(&entry->dictionaries[i]));
	return make_room(entry);
}

static int follow_row(void *arg, int64_t number, const struct pfs_cell *cells, size_t n);

/* From the store and what waits for a commit; or, where a row of that comes between others, or
 * SQLite would have other values of what is stored, from its copy. */
static int read_rows(struct pfs_side_entry *entry, struct pfs_query *query, bool by_copy)
{
	if (!by_copy)
		return pfs_sides_rows(query->queries->tree, entry->table.id, entry->version,
				      add_stored_row, follow_row, entry);
	PFS_TRY(pfs_sides_fill(query->connection, query->queries->tree));
	return pfs_sql_all_rows(query->connection->sql, entry->table.name, add_row, entry);
}

int pfs_side_entry_make(struct pfs_side_entry **out, struct pfs_query *query,
			const struct pfs_sql_side *side, bool by_copy)
{
	struct pfs_side_entry *entry = calloc(1, sizeof(*entry));
	int error;

	if (!entry)
		return -ENOMEM;
	entry->table.id = side->id;
	entry->version = query->connection->sides_version;
	entry->users = 1;
	entry->account = query->account;
	entry->query = query;
	(void)pthread_mutex_init(&entry->index_lock, NULL);
	entry->table.name = strdup(side->name);
	error = entry->table.name ? pfs_sql_side_declared(query->connection->sql, side->name,
							  add_column, entry)
				  : -ENOMEM;
	if (!error)
		error = prepare_columns(entry);
	if (!error)
		error = read_rows(entry, query, by_copy);
	if (!error)
		describe_all(entry);
	entry->account = NULL;
	entry->query = NULL;
	if (error)
		pfs_side_entry_free(entry);
	else
		*out = entry;
	return error;
}

/* ---- changes ---- */

/* The first row whose number is not below. */
static size_t place_of(const struct pfs_side_entry *entry, int64_t number)
{
	size_t n = entry->n_rows;

	if (entry->behind < n && entry->numbers[entry->behind] == number)
		return entry->behind;
	if (n && entry->numbers[n - 1] < number)
		return n;
	return PFS_SEARCH(i, 0, n, entry->numbers[i] < number);
}

static int remove_at(struct pfs_side_entry *entry, size_t row)
{
	if (!entry->live) {
		PFS_TRY(grow_bits(&entry->live, 0, entry->capacity));
		memset(entry->live, 0xff, entry->capacity / 8);
	}
	entry->live[row / 64] &= ~(UINT64_C(1) << row % 64);
	entry->n_dead++;
	return 0;
}

/* -EOPNOTSUPP: it comes between others, or it is better to make the columns anew. */
static int follow_row(void *arg, int64_t number, const struct pfs_cell *cells, size_t n)
{
	struct pfs_side_entry *entry = arg;
	size_t row = place_of(entry, number);
	bool is_there = row < entry->n_rows && entry->numbers[row] == number;

	if (entry->n_followed++ % ROWS_A_LOOK == 0 && pfs_query_tick(entry->query))
		return -EINTR;
	entry->behind = row + 1;
	if (!cells)
		return is_there && pfs_side_is_live(entry, row) ? remove_at(entry, row) : 0;
	if (!is_there)
		return row == entry->n_rows ? add_row(entry, number, cells, n) : -EOPNOTSUPP;
	entry->n_dead -= !pfs_side_is_live(entry, row);
	return set_cells(entry, row, cells, n);
}

static int follow_rows(void *arg, const struct pfs_side_rows *rows)
{
	return pfs_side_rows_each(rows, follow_row, arg);
}

static void move_cells(struct pfs_side_entry *entry, size_t i)
{
	bool is_code = entry->has_value[i] && entry->columns[i].kind == PFS_KIND_CODE;
	uint32_t *codes = entry->data[i];
	uint64_t *values = entry->data[i], *nulls = entry->nulls[i];
	size_t to = 0;

	for (size_t row = 0; row < entry->n_rows; row++) {
		uint64_t bit = UINT64_C(1) << to % 64;

		if (!pfs_side_is_live(entry, row))
			continue;
		if (is_code)
			codes[to] = codes[row];
		else
			values[to] = values[row];
		nulls[to / 64] = pfs_side_is_null(entry, i, row) ? nulls[to / 64] | bit
								 : nulls[to / 64] & ~bit;
		to++;
	}
}

/* Takes out the rows that are gone. */
static void compact(struct pfs_side_entry *entry)
{
	size_t to = 0;

	for (size_t i = 0; i < entry->n_columns; i++)
		move_cells(entry, i);
	for (size_t row = 0; row < entry->n_rows; row++)
		if (pfs_side_is_live(entry, row))
			entry->numbers[to++] = entry->numbers[row];
	pfs_side_indexes_drop(entry);
	entry->n_rows = to;
	entry->n_dead = entry->behind = 0;
	free(PFS_TAKE(entry->live));
}

/* Texts that are gone take up to as much room as those that are there. */
static bool is_worn(const struct pfs_side_entry *entry)
{
	size_t most = PFS_MAX(2 * entry->n_rows, 1024);
	bool is = false;

	for (size_t i = 0; i < entry->n_columns; i++)
		is |= entry->columns[i].kind == PFS_KIND_CODE &&
		      entry->dictionaries[i].shown.n > most;
	return is;
}

int pfs_side_entry_follow(struct pfs_side_entry *entry, struct pfs_query *query)
{
	uint64_t version = query->connection->sides_version;
	int error;

	entry->account = query->account;
	entry->query = query;
	error = pfs_sides_between(query->queries->tree, entry->table.id, entry->version, version,
				  follow_rows, entry);
	if (!error)
		entry->version = version;
	entry->account = NULL;
	entry->query = NULL;
	if (!error && entry->n_dead > PFS_MAX(entry->n_rows / 2, 512))
		compact(entry);
	if (!error && is_worn(entry))
		error = -EOPNOTSUPP;
	if (!error)
		describe_all(entry);
	return error;
}
