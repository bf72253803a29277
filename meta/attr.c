/* SPDX-License-Identifier: MIT */
/* meta/attr.c - attributes. Their names are numbered, since millions of nodes have the same few. */
#include "meta/store.h"

#include "meta/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

/* ---- names ---- */

static size_t cache_place(const uint8_t *name, size_t len)
{
	uint32_t hash = 2166136261u;
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ name[i]) * 16777619u;
	return hash % PFS_NAME_CACHE_SIZE;
}

/* Gets the number of a name. -ENOENT: it has none. The writer's connection is asked, so that the
 * open group counts. */
static int find_name(struct pfs_store *store, int64_t *id, const void *name, size_t len)
{
	sqlite3_stmt *row PFS_RESET = store->writer->sql[PFS_SQL_NAME_GET];
	int got;

	pfs_bind_blob(row, 1, name, len);
	got = pfs_db_step(store->writer, row);
	if (got < 0)
		store->group_error = got;
	if (got <= 0)
		return got ? got : -ENOENT;
	*id = sqlite3_column_int64(row, 0);
	return 0;
}

static int add_name(struct pfs_store *store, int64_t *id, const void *name, size_t len)
{
	int error;

	pfs_bind_blob(store->writer->sql[PFS_SQL_NAME_PUT], 1, name, len);
	error = pfs_group_run(store, PFS_SQL_NAME_PUT);
	if (!error)
		*id = sqlite3_last_insert_rowid(store->writer->handle);
	return error;
}

static int name_id(struct pfs_store *store, int64_t *id, const void *name, size_t len)
{
	size_t place = cache_place(name, len);
	int error;

	if (store->names->entry[place].len == len &&
	    memcmp(store->names->entry[place].name, name, len) == 0) {
		*id = store->names->entry[place].id;
		return 0;
	}
	error = find_name(store, id, name, len);
	if (error == -ENOENT)
		error = add_name(store, id, name, len);
	if (error)
		return error;
	(void)memcpy(store->names->entry[place].name, name, len);
	store->names->entry[place].len = len;
	store->names->entry[place].id = *id;
	return 0;
}

static bool name_valid(const void *name, size_t len)
{
	return len > 0 && len <= PFS_ATTR_NAME_MAX && !memchr(name, 0, len);
}

/* ---- writing ---- */

static bool value_valid(const struct pfs_attr_record *attr)
{
	switch (attr->type) {
	case PFS_ATTR_INTEGER:
		return true;
	case PFS_ATTR_REAL:
		return !isnan(attr->real); /* SQLite would make it NULL */
	case PFS_ATTR_TEXT:
		return attr->text_len <= PFS_ATTR_VALUE_MAX;
	}
	return false;
}

/* Binds a value, which is valid. */
static void bind_value(sqlite3_stmt *put, int parameter, const struct pfs_attr_record *attr)
{
	if (attr->type == PFS_ATTR_INTEGER)
		pfs_bind_int(put, parameter, attr->integer);
	else if (attr->type == PFS_ATTR_REAL)
		(void)sqlite3_bind_double(put, parameter, attr->real);
	else
		pfs_bind_blob(put, parameter, attr->text, attr->text_len);
}

/* Keeps the attribute's former value in the history before it becomes attr. NULL: before it is
 * removed; then `id` 0 stands for all attributes of the node. */
static int leave_former(struct pfs_store *store, uint64_t prime, int64_t id,
			const struct pfs_attr_record *attr)
{
	enum pfs_history_statement which = attr ? PFS_HISTORY_ATTR_CHANGE
					   : id ? PFS_HISTORY_ATTR_GONE
						: PFS_HISTORY_ATTRS_GONE;
	sqlite3_stmt *leave = pfs_history_statement(store, which);

	if (!leave)
		return 0;
	pfs_bind_u64(leave, 1, prime);
	if (id)
		pfs_bind_int(leave, 2, id);
	if (attr)
		bind_value(leave, 3, attr);
	return pfs_history_note(store, which);
}

static int put_one(struct pfs_store *store, uint64_t prime, int64_t id,
		   const struct pfs_attr_record *attr)
{
	sqlite3_stmt *put = store->writer->sql[PFS_SQL_ATTR_PUT];

	bind_value(put, 3, attr);
	pfs_bind_u64(put, 1, prime);
	pfs_bind_int(put, 2, id);
	return pfs_group_run(store, PFS_SQL_ATTR_PUT);
}

/* ---- many at once, in a store that is made ---- */

#define ROWS_TOGETHER 32u /* rows that PFS_SQL_ATTRS_PUT writes */

struct pfs_attr_rows {
	struct attr_row {
		uint64_t prime;
		int64_t id;
		size_t place; /* where the text is, in bytes */
		struct pfs_attr_record attr; /* without its name and text */
	} row[ROWS_TOGETHER];
	unsigned n;
	char *bytes;
	size_t n_bytes, capacity;
};

void pfs_attr_rows_free(struct pfs_attr_rows *rows)
{
	if (rows)
		free(rows->bytes);
	free(rows);
}

static struct pfs_attr_record record_of(const struct pfs_attr_rows *rows,
					const struct attr_row *row)
{
	struct pfs_attr_record attr = row->attr;

	attr.text = rows->bytes + row->place;
	return attr;
}

static int put_all(struct pfs_store *store, const struct pfs_attr_rows *rows)
{
	sqlite3_stmt *put = store->writer->sql[PFS_SQL_ATTRS_PUT];

	for (int i = 0; i < (int)ROWS_TOGETHER; i++) {
		const struct attr_row *row = &rows->row[i];
		const struct pfs_attr_record attr = record_of(rows, row);

		pfs_bind_u64(put, 3 * i + 1, row->prime);
		pfs_bind_int(put, 3 * i + 2, row->id);
		bind_value(put, 3 * i + 3, &attr);
	}
	return pfs_group_run(store, PFS_SQL_ATTRS_PUT);
}

static int put_rows(struct pfs_store *store)
{
	struct pfs_attr_rows *rows = store->attr_rows;
	unsigned n = rows->n;

	rows->n = 0;
	rows->n_bytes = 0;
	store->put_rest = NULL;
	if (n == ROWS_TOGETHER)
		return put_all(store, rows);
	for (unsigned i = 0; i < n; i++) {
		const struct pfs_attr_record attr = record_of(rows, &rows->row[i]);

		PFS_TRY(put_one(store, rows->row[i].prime, rows->row[i].id, &attr));
	}
	return 0;
}

static int put_later(struct pfs_store *store, uint64_t prime, int64_t id,
		     const struct pfs_attr_record *attr)
{
	size_t len = attr->type == PFS_ATTR_TEXT ? attr->text_len : 0;
	struct pfs_attr_rows *rows = store->attr_rows;

	if (!rows)
		rows = store->attr_rows = calloc(1, sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	PFS_TRY(pfs_grow(&rows->bytes, &rows->capacity, rows->n_bytes + len + 1, 1));
	rows->row[rows->n++] = (struct attr_row){prime, id, rows->n_bytes, *attr};
	if (len && rows->bytes)
		(void)memcpy(rows->bytes + rows->n_bytes, attr->text, len);
	rows->n_bytes += len;
	store->put_rest = put_rows;
	return rows->n == ROWS_TOGETHER ? put_rows(store) : 0;
}

int pfs_store_put_attr(struct pfs_store *store, uint64_t prime, const struct pfs_attr_record *attr)
{
	int64_t id = 0;

	PFS_TRY(pfs_group_ready(store));
	if (prime >= PFS_END_PRIME || !name_valid(attr->name, attr->name_len) || !value_valid(attr))
		return -EINVAL;
	PFS_TRY(name_id(store, &id, attr->name, attr->name_len));
	if (store->flags & PFS_STORE_BULK)
		return put_later(store, prime, id, attr);
	pfs_change_note(store, prime);
	PFS_TRY(leave_former(store, prime, id, attr));
	return put_one(store, prime, id, attr);
}

int pfs_store_remove_attr(struct pfs_store *store, uint64_t prime, const void *name,
			  size_t name_len)
{
	enum pfs_store_statement sql = name ? PFS_SQL_ATTR_DELETE : PFS_SQL_ATTR_DELETE_ALL;
	int error = pfs_group_ready(store);
	int64_t id = 0;

	if (!error)
		error = pfs_group_settle(store);
	if (!error && name)
		error = find_name(store, &id, name, name_len);
	if (error)
		return error == -ENOENT ? 0 : error;
	pfs_change_note(store, prime);
	error = leave_former(store, prime, id, NULL);
	if (error)
		return error;
	pfs_bind_u64(store->writer->sql[sql], 1, prime);
	if (name)
		pfs_bind_int(store->writer->sql[sql], 2, id);
	return pfs_group_run(store, sql);
}

int pfs_store_put_column(struct pfs_store *store, const void *name, size_t name_len,
			 enum pfs_attr_type type)
{
	int error = pfs_group_ready(store);
	sqlite3_stmt *put;

	if (error)
		return error;
	if (!name_valid(name, name_len) || type > PFS_ATTR_TEXT)
		return -EINVAL;
	put = store->writer->sql[PFS_SQL_COLUMN_PUT];
	pfs_bind_blob(put, 1, name, name_len);
	pfs_bind_int(put, 2, type);
	return pfs_group_run(store, PFS_SQL_COLUMN_PUT);
}

/* ---- reading ---- */

static bool attr_from_row(struct pfs_attr_record *out, sqlite3_stmt *row)
{
	if (!pfs_column_blob(&out->name, &out->name_len, row, 0, PFS_ATTR_NAME_MAX) ||
	    !name_valid(out->name, out->name_len))
		return false;
	switch (sqlite3_column_type(row, 1)) {
	case SQLITE_INTEGER:
		out->type = PFS_ATTR_INTEGER;
		out->integer = sqlite3_column_int64(row, 1);
		return true;
	case SQLITE_FLOAT:
		out->type = PFS_ATTR_REAL;
		out->real = sqlite3_column_double(row, 1);
		return true;
	default:
		out->type = PFS_ATTR_TEXT;
		return pfs_column_blob(&out->text, &out->text_len, row, 1, PFS_ATTR_VALUE_MAX);
	}
}

int pfs_store_scan_attrs(struct pfs_store *store, uint64_t prime,
			 int (*fn)(void *arg, const struct pfs_attr_record *attr), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = 0;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_ATTR_SCAN));
	pfs_bind_u64(reader.row, 1, prime);
	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_attr_record attr = {.name = NULL};

		if (!attr_from_row(&attr, reader.row))
			return pfs_db_damaged(reader.db, "attribute of node", prime,
					      "its name or value is not one");
		got = fn(arg, &attr);
	}
	return got;
}

int pfs_store_scan_columns(struct pfs_store *store,
			   int (*fn)(void *arg, const void *name, size_t name_len,
				     enum pfs_attr_type type),
			   void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_COLUMN_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		const void *name;
		int64_t type;
		size_t len;

		if (!pfs_column_blob(&name, &len, reader.row, 0, PFS_ATTR_NAME_MAX) ||
		    !name_valid(name, len) ||
		    !pfs_column_int(&type, reader.row, 1, 0, PFS_ATTR_TEXT))
			return pfs_db_damaged(reader.db, "attribute column", 0,
					      "its name or type is not one");
		got = fn(arg, name, len, (enum pfs_attr_type)type);
	}
	return got;
}

int pfs_store_scan_names(struct pfs_store *store,
			 int (*fn)(void *arg, const void *name, size_t name_len), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_NAME_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		const void *name;
		size_t len;

		if (!pfs_column_blob(&name, &len, reader.row, 0, PFS_ATTR_NAME_MAX) ||
		    !name_valid(name, len))
			return pfs_db_damaged(reader.db, "attribute name", 0, "it is none");
		got = fn(arg, name, len);
	}
	return got;
}

int pfs_store_scan_values(struct pfs_store *store, const void *name, size_t name_len,
			  int (*fn)(void *arg, uint64_t prime, const struct pfs_attr_record *attr),
			  void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = 0;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_VALUE_SCAN));
	pfs_bind_blob(reader.row, 1, name, name_len);
	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		uint64_t prime = (uint64_t)sqlite3_column_int64(reader.row, 2);
		struct pfs_attr_record attr = {.name = NULL};

		if (!attr_from_row(&attr, reader.row))
			return pfs_db_damaged(reader.db, "attribute of node", prime,
					      "its value is none");
		got = fn(arg, prime, &attr);
	}
	return got;
}
