/* SPDX-License-Identifier: MIT */
/* meta/table.c - side tables: a catalogue of them, a table of SQLite for the rows of each; and the
 * names of path indexes. */
#include "meta/store.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "meta/internal.h"

#define STATEMENT_SIZE 64 /* bytes of a statement without its list of columns */

/* ---- statements: a table's number is all that is put into their texts ---- */

/* Runs the text once; a failure spoils the group. */
static int run_text(struct pfs_store *store, const char *text)
{
	int error = pfs_db_exec(store->writer, text);

	if (error)
		store->group_error = error;
	return error;
}

static bool name_valid(const struct pfs_table_record *table)
{
	return table->name_len > 0 && table->name_len <= PFS_TABLE_NAME_LIMIT &&
	       !memchr(table->name, 0, table->name_len);
}

static int table_number(struct pfs_store *store, const struct pfs_table_record *table)
{
	sqlite3_stmt *put = store->writer->sql[PFS_SQL_TABLE_PUT];

	if (table->id)
		pfs_bind_int(put, 1, table->id);
	else
		(void)sqlite3_bind_null(put, 1);
	pfs_bind_blob(put, 2, table->name, table->name_len);
	pfs_bind_blob(put, 3, table->columns, table->columns_len);
	return pfs_group_run(store, PFS_SQL_TABLE_PUT);
}

static int create_rows(struct pfs_store *store, uint32_t id, unsigned n_columns)
{
	sqlite3_str *text = sqlite3_str_new(NULL);
	char *whole;
	int error = -ENOMEM;

	sqlite3_str_appendf(text, "CREATE TABLE side_%u (id INTEGER PRIMARY KEY", (unsigned)id);
	for (unsigned i = 0; i < n_columns; i++)
		sqlite3_str_appendf(text, ", c%u ANY", i);
	sqlite3_str_appendall(text, ") STRICT");
	whole = sqlite3_str_finish(text);
	if (whole)
		error = run_text(store, whole);
	sqlite3_free(whole);
	return error;
}

/* ---- writing ---- */

int pfs_store_put_table(struct pfs_store *store, uint32_t *id, const struct pfs_table_record *table,
			unsigned n_columns)
{
	int error = pfs_group_ready(store);
	int64_t number = table->id;

	if (error)
		return error;
	if (!name_valid(table) || (!table->id && (!n_columns || n_columns > PFS_TABLE_COLUMNS_MAX)))
		return -EINVAL;
	error = table_number(store, table);
	if (error)
		return error;
	if (!table->id) {
		number = sqlite3_last_insert_rowid(store->writer->handle);
		if (number <= 0 || number > UINT32_MAX)
			return -EUCLEAN;
		error = create_rows(store, (uint32_t)number, n_columns);
	}
	if (!error)
		*id = (uint32_t)number;
	return error;
}

int pfs_store_drop_table(struct pfs_store *store, uint32_t id)
{
	char text[STATEMENT_SIZE];
	int error = pfs_group_ready(store);

	if (error)
		return error;
	pfs_db_forget_rows(store->writer);
	pfs_bind_int(store->writer->sql[PFS_SQL_TABLE_DELETE], 1, id);
	error = pfs_group_run(store, PFS_SQL_TABLE_DELETE);
	if (error)
		return error;
	(void)snprintf(text, sizeof(text), "DROP TABLE side_%u", (unsigned)id);
	return run_text(store, text);
}

/* ---- reading ---- */

static bool table_from_row(struct pfs_table_record *out, sqlite3_stmt *row)
{
	int64_t id;

	*out = (struct pfs_table_record){.id = 0};
	if (!pfs_column_int(&id, row, 0, 1, UINT32_MAX) ||
	    !pfs_column_blob(&out->name, &out->name_len, row, 1, PFS_TABLE_NAME_LIMIT) ||
	    !pfs_column_blob(&out->columns, &out->columns_len, row, 2, PFS_TABLE_ROW_MAX))
		return false;
	out->id = (uint32_t)id;
	return name_valid(out);
}

int pfs_store_scan_tables(struct pfs_store *store,
			  int (*fn)(void *arg, const struct pfs_table_record *table), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_TABLE_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_table_record table;

		if (!table_from_row(&table, reader.row))
			return pfs_db_damaged(reader.db, "side table", table.id,
					      "its name or columns are none");
		got = fn(arg, &table);
	}
	return got;
}

int pfs_store_get_table(struct pfs_store *store, uint32_t id,
			int (*fn)(void *arg, const struct pfs_table_record *table), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	struct pfs_table_record table;
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_TABLE_GET));
	pfs_bind_int(reader.row, 1, id);
	got = pfs_reader_step(&reader);
	if (got < 1)
		return got ? got : -ENOENT;
	if (!table_from_row(&table, reader.row))
		return pfs_db_damaged(reader.db, "side table", table.id,
				      "its name or columns are none");
	return fn(arg, &table);
}

static int scan_rows(struct pfs_db *db, sqlite3_stmt *row, void (*begun)(void *arg),
		     int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		     void *arg)
{
	struct pfs_cell cells[PFS_TABLE_COLUMNS_MAX];
	int n = sqlite3_column_count(row) - 1, got;

	if (n < 1 || n > PFS_TABLE_COLUMNS_MAX)
		return pfs_db_damaged(db, "side table", 0, "its rows are none");
	got = pfs_db_step(db, row);
	if (got >= 0 && begun)
		begun(arg);
	for (; got == 1; got = pfs_db_step(db, row)) {
		for (int i = 0; i < n; i++)
			pfs_column_cell(&cells[i], row, i + 1);
		got = fn(arg, sqlite3_column_int64(row, 0), cells, (size_t)n);
		if (got)
			break;
	}
	return got;
}

/* Prepares the statement, with the table's number in place of %u. -ENOENT: there is no table for
 * its rows. */
static int prepare_for(struct pfs_db *db, sqlite3_stmt **out, const char *format, uint32_t id)
{
	char text[STATEMENT_SIZE];
	int result;

	(void)sqlite3_snprintf(sizeof(text), text, format, (unsigned)id);
	result = sqlite3_prepare_v3(db->handle, text, -1, 0, out, NULL);
	return result == SQLITE_ERROR ? -ENOENT : pfs_db_errno(db, result);
}

int pfs_store_scan_rows(struct pfs_store *store, uint32_t id, void (*begun)(void *arg),
			int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
			void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	sqlite3_stmt *row = NULL;
	int got = pfs_reader_get(store, &reader.db);

	if (got)
		return got;
	got = prepare_for(reader.db, &row, "SELECT * FROM side_%u ORDER BY id", id);
	if (!got)
		got = scan_rows(reader.db, row, begun, fn, arg);
	(void)sqlite3_finalize(row);
	return got;
}

int pfs_store_table_width(struct pfs_store *store, unsigned *n_columns, uint32_t id)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	sqlite3_stmt *row = NULL;
	int got = pfs_reader_get(store, &reader.db);

	if (got)
		return got;
	got = prepare_for(reader.db, &row, "SELECT * FROM side_%u", id);
	if (!got)
		*n_columns = (unsigned)sqlite3_column_count(row) - 1;
	(void)sqlite3_finalize(row);
	return got;
}

/* ---- path indexes ---- */

static const char definition[] = "path"; /* the only definition that exists */

struct path_index {
	const char *name, *definition;
	size_t name_len, definition_len;
};

static bool is_index_name(const void *name, size_t len)
{
	return len > 0 && len <= PFS_PATH_INDEX_NAME_LIMIT && !memchr(name, 0, len);
}

static int put_path_index(struct pfs_store *store, const struct path_index *index)
{
	sqlite3_stmt *put;

	PFS_TRY(pfs_group_ready(store));
	if (!is_index_name(index->name, index->name_len))
		return -EINVAL;
	put = store->writer->sql[PFS_SQL_PATH_INDEX_PUT];
	pfs_bind_blob(put, 1, index->name, index->name_len);
	pfs_bind_blob(put, 2, index->definition, index->definition_len);
	return pfs_group_run(store, PFS_SQL_PATH_INDEX_PUT);
}

int pfs_store_put_path_index(struct pfs_store *store, const char *name, size_t len)
{
	const struct path_index index = {name, definition, len, sizeof(definition) - 1};

	return put_path_index(store, &index);
}

int pfs_store_drop_path_index(struct pfs_store *store, const char *name, size_t len)
{
	PFS_TRY(pfs_group_ready(store));
	pfs_bind_blob(store->writer->sql[PFS_SQL_PATH_INDEX_DELETE], 1, name, len);
	return pfs_group_run(store, PFS_SQL_PATH_INDEX_DELETE);
}

/* Says it once, and not with each statement that looks at the names. */
static void tell_unsound(struct pfs_store *store)
{
	if (!__atomic_exchange_n(&store->told_path_index, true, __ATOMIC_RELAXED))
		pfs_warning("%s: the name of a path index is none, and passed over; see "
			    "`primefs check`",
			    store->path);
}

/* Calls fn for each row that has a name, whatever its definition. */
static int each_path_index(struct pfs_store *store,
			   int (*fn)(void *arg, const struct path_index *index), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_PATH_INDEX_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct path_index index;
		const void *name, *what;

		if (!pfs_column_blob(&name, &index.name_len, reader.row, 0,
				     PFS_PATH_INDEX_NAME_LIMIT) ||
		    !pfs_column_blob(&what, &index.definition_len, reader.row, 1,
				     PFS_TABLE_ROW_MAX) ||
		    !is_index_name(name, index.name_len)) {
			tell_unsound(store);
			got = 0;
			continue;
		}
		index.name = name;
		index.definition = what;
		got = fn(arg, &index);
	}
	return got;
}

struct scan {
	int (*fn)(void *arg, const char *name, size_t len, bool is_newer);
	void *arg;
};

static int give_name(void *arg, const struct path_index *index)
{
	const struct scan *scan = arg;
	bool is_newer = index->definition_len != sizeof(definition) - 1 ||
			memcmp(index->definition, definition, sizeof(definition) - 1) != 0;

	return scan->fn(scan->arg, index->name, index->name_len, is_newer);
}

int pfs_store_scan_path_indexes(struct pfs_store *store,
				int (*fn)(void *arg, const char *name, size_t len, bool is_newer),
				void *arg)
{
	struct scan scan = {fn, arg};

	return each_path_index(store, give_name, &scan);
}

static int copy_path_index(void *arg, const struct path_index *index)
{
	return put_path_index(arg, index);
}

int pfs_store_copy_path_indexes(struct pfs_store *from, struct pfs_store *to)
{
	return each_path_index(from, copy_path_index, to);
}
