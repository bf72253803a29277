/* SPDX-License-Identifier: MIT */
/* meta/register.c - describes the tables whose rows are nodes. */
#include "meta/internal.h"

#include <string.h>

#include "base/cleanup.h"

enum { ID, ROOT, COLUMNS, ROLES, DELIMITER = ROLES + 4, SLASH, STYLE };

static size_t count_columns(const struct pfs_register_record *record)
{
	size_t i, n = 0;

	for (i = 0; i < record->columns_len; i++)
		n += !record->columns[i];
	return n;
}

static bool is_valid(const struct pfs_register_record *record)
{
	const int roles[] = {record->path, record->id, record->parent, record->name};
	size_t n, i;

	if (!record->columns_len || record->columns_len > PFS_REGISTER_COLUMNS_MAX ||
	    record->columns[record->columns_len - 1] || !*record->delimiter ||
	    record->root >= PFS_END_PRIME || record->style > 3)
		return false;
	n = count_columns(record);
	for (i = 0; i < 4; i++)
		if (roles[i] < PFS_NO_COLUMN || roles[i] >= (int)n)
			return false;
	return record->path != PFS_NO_COLUMN ||
	       (record->id != PFS_NO_COLUMN && record->parent != PFS_NO_COLUMN &&
		record->name != PFS_NO_COLUMN);
}

int pfs_store_put_register(struct pfs_store *store, const struct pfs_register_record *record)
{
	const int roles[] = {record->path, record->id, record->parent, record->name};
	int error = pfs_group_ready(store), i;
	sqlite3_stmt *put;

	if (error)
		return error;
	if (!is_valid(record))
		return -EINVAL;
	put = store->writer->sql[PFS_SQL_REGISTER_PUT];
	pfs_bind_u64(put, ROOT, record->root);
	pfs_bind_blob(put, COLUMNS, record->columns, record->columns_len);
	for (i = 0; i < 4; i++) {
		if (roles[i] == PFS_NO_COLUMN)
			(void)sqlite3_bind_null(put, ROLES + i);
		else
			pfs_bind_int(put, ROLES + i, roles[i]);
	}
	pfs_bind_blob(put, DELIMITER, record->delimiter, strlen(record->delimiter));
	if (*record->slash)
		pfs_bind_blob(put, SLASH, record->slash, strlen(record->slash));
	else
		(void)sqlite3_bind_null(put, SLASH);
	pfs_bind_int(put, STYLE, record->style);
	return pfs_group_run(store, PFS_SQL_REGISTER_PUT);
}

static bool sign_from_row(char out[PFS_REGISTER_SIGN_MAX + 1], sqlite3_stmt *row, int column)
{
	const void *bytes;
	size_t len;

	memset(out, 0, PFS_REGISTER_SIGN_MAX + 1);
	if (sqlite3_column_type(row, column) == SQLITE_NULL)
		return true;
	if (!pfs_column_blob(&bytes, &len, row, column, PFS_REGISTER_SIGN_MAX) ||
	    memchr(bytes, 0, len))
		return false;
	memcpy(out, bytes, len);
	return true;
}

/* The record points into the row. */
static bool from_row(struct pfs_register_record *out, sqlite3_stmt *row)
{
	int *const roles[] = {&out->path, &out->id, &out->parent, &out->name};
	const void *columns;
	uint32_t number;
	int i;

	*out = (struct pfs_register_record){.root = 0};
	if (!pfs_column_u64(&out->root, row, ROOT) ||
	    !pfs_column_blob(&columns, &out->columns_len, row, COLUMNS, PFS_REGISTER_COLUMNS_MAX) ||
	    !sign_from_row(out->delimiter, row, DELIMITER) ||
	    !sign_from_row(out->slash, row, SLASH) || !pfs_column_u32(&number, row, STYLE))
		return false;
	out->columns = columns;
	out->style = number;
	for (i = 0; i < 4; i++) {
		*roles[i] = PFS_NO_COLUMN;
		if (sqlite3_column_type(row, ROLES + i) == SQLITE_NULL)
			continue;
		if (!pfs_column_u32(&number, row, ROLES + i) || number > INT32_MAX)
			return false;
		*roles[i] = (int)number;
	}
	return is_valid(out);
}

bool pfs_register_row_sound(sqlite3_stmt *row)
{
	struct pfs_register_record record;

	return from_row(&record, row);
}

int pfs_store_scan_registers(struct pfs_store *store,
			     int (*fn)(void *arg, const struct pfs_register_record *record),
			     void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int got = pfs_reader_begin(&reader, PFS_SQL_REGISTER_SCAN);

	while (!got && (got = pfs_reader_step(&reader)) == 1) {
		struct pfs_register_record record;

		if (!from_row(&record, reader.row))
			return pfs_db_damaged(reader.db, "register", 0,
					      "a value is of the wrong type or out of range");
		got = fn(arg, &record);
	}
	return got;
}
