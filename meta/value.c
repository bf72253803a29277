/* SPDX-License-Identifier: MIT */
/* meta/value.c - binds values to statements and reads them from rows. What comes from a file is
 * never trusted. */
#include "meta/db.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "meta/store.h"

#define NSEC_PER_SEC INT64_C(1000000000)

/* Columns are asked for as values: each further question about a value is a look at it, while each
 * about a column of a row has to find it first. */
bool pfs_column_int(int64_t *out, sqlite3_stmt *row, int column, int64_t low, int64_t high)
{
	sqlite3_value *value = sqlite3_column_value(row, column);
	int64_t integer;

	if (sqlite3_value_type(value) != SQLITE_INTEGER)
		return false;
	integer = sqlite3_value_int64(value);
	if (integer < low || integer > high)
		return false;
	*out = integer;
	return true;
}

bool pfs_column_u32(uint32_t *out, sqlite3_stmt *row, int column)
{
	int64_t value;

	if (!pfs_column_int(&value, row, column, 0, UINT32_MAX))
		return false;
	*out = (uint32_t)value;
	return true;
}

bool pfs_column_u64(uint64_t *out, sqlite3_stmt *row, int column)
{
	int64_t value;

	if (!pfs_column_int(&value, row, column, INT64_MIN, INT64_MAX))
		return false;
	*out = (uint64_t)value;
	return true;
}

bool pfs_column_blob(const void **data, size_t *len, sqlite3_stmt *row, int column, size_t max_len)
{
	sqlite3_value *value = sqlite3_column_value(row, column);
	size_t bytes;

	if (sqlite3_value_type(value) != SQLITE_BLOB)
		return false;
	bytes = (size_t)sqlite3_value_bytes(value);
	if (bytes > max_len)
		return false;
	*data = bytes ? sqlite3_value_blob(value) : "";
	*len = bytes;
	return *data != NULL;
}

void pfs_column_cell(struct pfs_cell *cell, sqlite3_stmt *row, int column)
{
	sqlite3_value *value = sqlite3_column_value(row, column);

	*cell = (struct pfs_cell){.type = PFS_CELL_NULL};
	switch (sqlite3_value_type(value)) {
	case SQLITE_INTEGER:
		cell->type = PFS_CELL_INTEGER;
		cell->integer = sqlite3_value_int64(value);
		return;
	case SQLITE_FLOAT:
		cell->type = PFS_CELL_REAL;
		cell->real = sqlite3_value_double(value);
		return;
	case SQLITE_TEXT:
		cell->type = PFS_CELL_TEXT;
		cell->bytes = sqlite3_value_text(value);
		break;
	case SQLITE_BLOB:
		cell->type = PFS_CELL_BLOB;
		cell->bytes = sqlite3_value_blob(value);
		break;
	default:
		return;
	}
	cell->size = (size_t)sqlite3_value_bytes(value);
}

/* Parses "SECONDS.NANOSECONDS", with nine digits: the form of times whose nanoseconds do not fit
 * into 64 bits. */
static bool parse_time(struct pfs_time *out, const char *text)
{
	char *end;
	long long sec;
	uint64_t nsec;

	if ((text[0] < '0' || text[0] > '9') && text[0] != '-')
		return false;
	errno = 0;
	sec = strtoll(text, &end, 10);
	if (errno || *end != '.' || strlen(end) != 10 || pfs_parse_u64(&nsec, end + 1))
		return false;
	out->sec = sec;
	out->nsec = (uint32_t)nsec;
	return true;
}

bool pfs_column_time(struct pfs_time *out, sqlite3_stmt *row, int column)
{
	sqlite3_value *in = sqlite3_column_value(row, column);
	int type = sqlite3_value_type(in);
	char text[PFS_TIME_TEXT_SIZE];
	const void *bytes;
	int64_t value, rest;
	int len;

	if (type == SQLITE_INTEGER) {
		value = sqlite3_value_int64(in);
		rest = value % NSEC_PER_SEC;
		out->sec = value / NSEC_PER_SEC - (rest < 0);
		out->nsec = (uint32_t)(rest < 0 ? rest + NSEC_PER_SEC : rest);
		return true;
	}
	if (type != SQLITE_TEXT)
		return false;
	bytes = sqlite3_value_blob(in); /* value_text may allocate */
	len = sqlite3_value_bytes(in);
	if (!bytes || len < 0 || len >= PFS_TIME_TEXT_SIZE)
		return false;
	(void)memcpy(text, bytes, (size_t)len);
	text[len] = 0;
	return parse_time(out, text);
}

void pfs_bind_int(sqlite3_stmt *statement, int parameter, int64_t value)
{
	/* allocates nothing, so it cannot fail */
	(void)sqlite3_bind_int64(statement, parameter, value);
}

void pfs_bind_u64(sqlite3_stmt *statement, int parameter, uint64_t value)
{
	(void)sqlite3_bind_int64(statement, parameter, (int64_t)value);
}

void pfs_bind_blob(sqlite3_stmt *statement, int parameter, const void *data, size_t len)
{
	if (len)
		(void)sqlite3_bind_blob64(statement, parameter, data, len, SQLITE_STATIC);
	else
		(void)sqlite3_bind_zeroblob(statement, parameter, 0);
}

void pfs_bind_time(sqlite3_stmt *statement, int parameter, const struct pfs_time *time,
		   char text[PFS_TIME_TEXT_SIZE])
{
	int64_t value;
	int len;

	/* A time near the lower end takes the longer form, since the product of its seconds
	 * overflows. */
	if (!__builtin_mul_overflow(time->sec, NSEC_PER_SEC, &value) &&
	    !__builtin_add_overflow(value, (int64_t)time->nsec, &value)) {
		(void)sqlite3_bind_int64(statement, parameter, value);
		return;
	}
	len = snprintf(text, PFS_TIME_TEXT_SIZE, "%lld.%09u", (long long)time->sec,
		       (unsigned)time->nsec);
	(void)sqlite3_bind_text(statement, parameter, text, len, SQLITE_STATIC);
}
