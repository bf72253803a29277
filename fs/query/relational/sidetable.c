/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/sidetable.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/sides.h"
#include "fs/nodes/dictionary.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

#define KEPT_MAX 8 /* tables that nobody uses */

struct pfs_side_entry {
	struct pfs_side_table table; /* the first member */
	uint32_t id;		     /* the store's */
	uint64_t version;	     /* of all side tables */
	unsigned users;
	const struct pfs_account *account; /* while it is being made */
	struct pfs_side_entry *next;
	/* By column; arrays of texts are codes. */
	struct pfs_dictionary_builder *dictionaries;
	struct pfs_table_column *columns;
	void **data;
	uint64_t **nulls;
	bool *has_value; /* it has had one, which says of what class it is */
	int64_t *numbers; /* of the rows, which are in their order */
	uint64_t *live;	  /* NULL: all are */
	size_t n_dead;
	size_t n_columns, columns_capacity, n_rows, capacity;
};

static void free_entry(struct pfs_side_entry *entry)
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
		return -EOPNOTSUPP;
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

static int set_cells(struct pfs_side_entry *entry, size_t row, const struct pfs_cell *cells, size_t n)
{
	if (n != entry->n_columns)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(add_cell(entry, i, row, &cells[i]));
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

static int read_rows(struct pfs_side_entry *entry, struct pfs_sql *sql)
{
	size_t n = entry->n_columns;

	entry->columns = calloc(n + 1, sizeof(*entry->columns));
	entry->dictionaries = calloc(n + 1, sizeof(*entry->dictionaries));
	entry->data = calloc(n + 1, sizeof(*entry->data));
	entry->nulls = calloc(n + 1, sizeof(*entry->nulls));
	entry->has_value = calloc(n + 1, sizeof(*entry->has_value));
	if (!entry->columns || !entry->dictionaries || !entry->data || !entry->nulls || !entry->has_value)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		PFS_TRY(pfs_dictionary_begin(&entry->dictionaries[i]));
	PFS_TRY(make_room(entry));
	PFS_TRY(pfs_sql_all_rows(sql, entry->table.name, add_row, entry));
	describe_all(entry);
	return 0;
}

static int make_entry(struct pfs_side_entry **out, struct pfs_query *query, const struct pfs_sql_side *side)
{
	const char *name = side->name;
	struct pfs_side_entry *entry = calloc(1, sizeof(*entry));
	struct pfs_sql *sql = query->connection->sql;
	int error;

	if (!entry)
		return -ENOMEM;
	entry->id = side->id;
	entry->version = query->connection->sides_version;
	entry->users = 1;
	entry->account = query->account;
	entry->table.name = strdup(name);
	error = entry->table.name ? pfs_sql_side_declared(sql, name, add_column, entry) : -ENOMEM;
	if (!error)
		error = entry->n_columns ? read_rows(entry, sql) : -ENOENT;
	entry->account = NULL;
	if (error)
		free_entry(entry);
	else
		*out = entry;
	return error;
}

/* ---- changes ---- */

/* The first row whose number is not below. */
static size_t place_of(const struct pfs_side_entry *entry, int64_t number)
{
	size_t from = 0, to = entry->n_rows;

	if (to && entry->numbers[to - 1] < number)
		return to;
	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (entry->numbers[middle] < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

static bool is_live(const struct pfs_side_entry *entry, size_t row)
{
	return !entry->live || entry->live[row / 64] >> row % 64 & 1;
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

	if (!cells)
		return is_there && is_live(entry, row) ? remove_at(entry, row) : 0;
	if (!is_there)
		return row == entry->n_rows ? add_row(entry, number, cells, n) : -EOPNOTSUPP;
	entry->n_dead -= !is_live(entry, row);
	return set_cells(entry, row, cells, n);
}

static int follow_rows(void *arg, const struct pfs_side_rows *rows)
{
	struct pfs_side_entry *entry = arg;

	return rows->table == entry->id ? pfs_side_rows_each(rows, follow_row, entry) : 0;
}

struct following {
	struct pfs_side_entry *entry;
	struct pfs_query *query;
};

static int follow_all(void *arg, struct pfs_store *store PFS_UNUSED)
{
	const struct following *following = arg;
	uint64_t version = following->query->connection->sides_version;

	PFS_TRY(pfs_sides_between(following->query->queries->tree, following->entry->version, version, follow_rows,
				  following->entry));
	following->entry->version = version;
	return 0;
}

/* Rows and texts that are gone take up to as much room as those that are there. */
static bool is_worn(const struct pfs_side_entry *entry)
{
	size_t most = PFS_MAX(2 * (entry->n_rows - entry->n_dead), 1024);
	bool is = entry->n_rows > most;

	for (size_t i = 0; i < entry->n_columns; i++)
		is |= entry->columns[i].kind == PFS_KIND_CODE && entry->dictionaries[i].shown.n > most;
	return is;
}

/* The entry, which nobody else has, becomes that of the connection's version, at what has changed since. */
static int follow(struct pfs_side_entry *entry, struct pfs_query *query)
{
	struct following following = {entry, query};
	int error;

	entry->account = query->account;
	error = pfs_sides_read(query->queries->tree, follow_all, &following);
	entry->account = NULL;
	if (!error && is_worn(entry))
		error = -EOPNOTSUPP;
	if (!error)
		describe_all(entry);
	return error;
}

/* ---- the cache ---- */

static const struct pfs_sql_side *find_side(struct pfs_query *query, const char *name)
{
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(query->connection->sql, &n);

	for (size_t i = 0; i < n; i++) {
		if (pfs_side_is_named(sides[i].name, name))
			return sides[i].filled ? &sides[i] : NULL;
	}
	return NULL;
}

static struct pfs_side_entry *find(struct pfs_query *query, const char *name)
{
	struct pfs_side_entry *entry;
	PFS_LOCKED(&query->queries->lock);

	for (entry = query->queries->sides; entry; entry = entry->next) {
		if (entry->version == query->connection->sides_version &&
		    strcmp(entry->table.name, name) == 0) {
			entry->users++;
			return entry;
		}
	}
	return NULL;
}

/* Takes out the latest of an older version that nobody uses; NULL: there is none. */
static struct pfs_side_entry *take_older(struct pfs_query *query, const struct pfs_sql_side *side)
{
	struct pfs_side_entry **latest = NULL, *entry;
	PFS_LOCKED(&query->queries->lock);

	for (struct pfs_side_entry **link = &query->queries->sides; *link; link = &(*link)->next) {
		entry = *link;
		if (entry->id == side->id && !entry->users &&
		    entry->version < query->connection->sides_version &&
		    (!latest || entry->version > (*latest)->version))
			latest = link;
	}
	if (!latest)
		return NULL;
	entry = *latest;
	*latest = entry->next;
	entry->users = 1;
	return entry;
}

/* Takes those out that nobody uses and that are of another version, or too many. */
static struct pfs_side_entry *take_old(struct pfs_queries *queries, uint64_t version)
{
	struct pfs_side_entry **link = &queries->sides, *old = NULL;
	unsigned n = 0;

	while (*link) {
		struct pfs_side_entry *entry = *link;

		if (entry->users || (entry->version == version && ++n <= KEPT_MAX)) {
			link = &entry->next;
			continue;
		}
		*link = entry->next;
		entry->next = old;
		old = entry;
	}
	return old;
}

static void free_all(struct pfs_side_entry *entry)
{
	while (entry) {
		struct pfs_side_entry *next = entry->next;

		free_entry(entry);
		entry = next;
	}
}

int pfs_side_table_get(const struct pfs_side_table **out, struct pfs_query *query, const char *name)
{
	struct pfs_queries *queries = query->queries;
	const struct pfs_sql_side *side = find_side(query, name);
	struct pfs_side_entry *entry, *old;
	bool is_new;

	*out = NULL;
	if (!side)
		return -ENOENT;
	entry = find(query, side->name);
	if (!entry) {
		entry = take_older(query, side);
		if (entry && follow(entry, query))
			free_entry(PFS_TAKE(entry));
		is_new = !entry;
		if (is_new)
			PFS_TRY(make_entry(&entry, query, side));
		PFS_LOCKED(&queries->lock);
		queries->sides_made += is_new;
		entry->next = queries->sides;
		queries->sides = entry;
		old = take_old(queries, entry->version);
	} else {
		old = NULL;
	}
	free_all(old);
	*out = &entry->table;
	return 0;
}

void pfs_side_table_put(struct pfs_queries *queries, const struct pfs_side_table *table)
{
	struct pfs_side_entry *entry = (struct pfs_side_entry *)table;
	PFS_LOCKED(&queries->lock);

	entry->users--;
}

void pfs_side_tables_close(struct pfs_queries *queries)
{
	free_all(queries->sides);
	queries->sides = NULL;
}
