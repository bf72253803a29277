/* SPDX-License-Identifier: MIT */
#include "tools/import/import_columns.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/number.h"

#define RESERVED "primefs." /* user.primefs.prime and others are computed */

const char *pfs_import_columns_add(struct pfs_import_columns *columns, const void *name,
				   size_t name_len)
{
	char *copy;
	size_t i;

	if (name_len == 0)
		return "a column has no name";
	if (name_len > PFS_ATTR_NAME_MAX)
		return "a column's name is longer than 255 bytes";
	if (memchr(name, 0, name_len))
		return "a column's name has a NUL in it";
	if (name_len >= strlen(RESERVED) && memcmp(name, RESERVED, strlen(RESERVED)) == 0)
		return "names that begin with primefs. are reserved";
	for (i = 0; i < columns->n; i++)
		if (columns->list[i].name_len == name_len &&
		    memcmp(columns->list[i].name, name, name_len) == 0)
			return "two columns have the same name";
	if (columns->n == PFS_ATTR_COLUMNS_MAX) {
		(void)snprintf(
			columns->why, sizeof(columns->why),
			"'%.*s' is one column too many: nodes have at most %d of attributes; "
			"leave some out",
			(int)name_len, (const char *)name, PFS_ATTR_COLUMNS_MAX);
		return columns->why;
	}
	copy = strndup(name, name_len);
	if (!copy || pfs_grow(&columns->list, &columns->capacity, columns->n + 1,
			      sizeof(*columns->list)) != 0) {
		free(copy);
		return "out of memory";
	}
	columns->list[columns->n++] = (struct pfs_import_column){
		.name = copy,
		.name_len = name_len,
		.type = PFS_ATTR_TEXT,
		.integers = true,
		.reals = true,
	};
	return NULL;
}

static const char *parse_one(struct pfs_import_columns *columns, const char *text, size_t len)
{
	static const struct {
		const char *name;
		enum pfs_attr_type type;
	} types[] = {
		{":int", PFS_ATTR_INTEGER}, {":real", PFS_ATTR_REAL}, {":text", PFS_ATTR_TEXT}};
	const char *why;
	size_t i;

	for (i = 0; i < PFS_COUNT(types); i++) {
		size_t suffix = strlen(types[i].name);

		if (len < suffix || memcmp(text + len - suffix, types[i].name, suffix) != 0)
			continue;
		why = pfs_import_columns_add(columns, text, len - suffix);
		if (!why) {
			columns->list[columns->n - 1].type = types[i].type;
			columns->list[columns->n - 1].declared = true;
		}
		return why;
	}
	if (memchr(text, ':', len))
		return "a column's type is int, real or text";
	return pfs_import_columns_add(columns, text, len);
}

const char *pfs_import_columns_parse(struct pfs_import_columns *columns, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ",");
		const char *why = parse_one(columns, text, len);

		if (why || !text[len])
			return why;
		text += len + 1;
	}
}

void pfs_import_columns_free(struct pfs_import_columns *columns)
{
	size_t i;

	for (i = 0; i < columns->n; i++)
		free(columns->list[i].name);
	free(columns->list);
	*columns = (struct pfs_import_columns){0};
}

/* A declared type takes every number that the C library reads in decimal. */
static bool read_number(const struct pfs_import_column *column, struct pfs_attr_record *attr,
			const void *text, size_t len)
{
	char copy[400], *end;

	if (len == 0 || len >= sizeof(copy) || memchr(text, 0, len))
		return false;
	(void)memcpy(copy, text, len);
	copy[len] = 0;
	errno = 0;
	if (column->type == PFS_ATTR_INTEGER) {
		attr->integer = strtoll(copy, &end, 10);
		return !*end && !errno;
	}
	attr->real = strtod(copy, &end) + 0.0; /* a negative zero is no number of an attribute's */
	/* a store keeps no NaN; and nobody means infinity by 1e999 */
	return !*end && !strpbrk(copy, "xX") && attr->real == attr->real &&
	       !(errno == ERANGE && isinf(attr->real));
}

const char *pfs_import_column_see(struct pfs_import_column *column, const void *text, size_t len)
{
	struct pfs_attr_record ignored;
	int64_t integer;
	double real;

	if (len == 0)
		return NULL;
	if (len > PFS_ATTR_VALUE_MAX)
		return "is longer than 64 KiB";
	if (column->declared) {
		if (column->type == PFS_ATTR_TEXT || read_number(column, &ignored, text, len))
			return NULL;
		return column->type == PFS_ATTR_INTEGER ? "is no integer (or beyond 64 bits)"
							: "is no real number";
	}
	column->seen = true;
	column->integers = column->integers && pfs_is_integer(&integer, text, len);
	column->reals = column->reals && pfs_is_real(&real, text, len);
	return NULL;
}

size_t pfs_import_column_printed(const struct pfs_import_column *column, const void *text,
				 size_t len)
{
	struct pfs_attr_record attr = {.name = NULL};
	char number[PFS_NUMBER_SIZE];

	/* an inferred number is what it prints */
	if (!column->declared || column->type == PFS_ATTR_TEXT ||
	    !read_number(column, &attr, text, len))
		return len;
	return column->type == PFS_ATTR_INTEGER ? pfs_print_integer(number, attr.integer)
						: pfs_print_real(number, attr.real);
}

int pfs_import_columns_settle(struct pfs_import_columns *columns, struct pfs_store *store)
{
	size_t i;

	for (i = 0; i < columns->n; i++) {
		struct pfs_import_column *column = &columns->list[i];

		if (column->kept_out)
			continue;
		if (!column->declared && column->seen)
			column->type = column->integers ? PFS_ATTR_INTEGER
				       : column->reals	? PFS_ATTR_REAL
							: PFS_ATTR_TEXT;
		PFS_TRY(pfs_store_put_column(store, column->name, column->name_len, column->type));
	}
	return 0;
}

int pfs_import_column_put(const struct pfs_import_column *column, struct pfs_store *store,
			  uint64_t prime, const void *text, size_t len)
{
	struct pfs_attr_record attr = {
		.name = column->name,
		.name_len = column->name_len,
		.type = column->type,
	};

	if (len == 0)
		return 0;
	if (column->type == PFS_ATTR_TEXT) {
		attr.text = text;
		attr.text_len = len;
	} else if (!read_number(column, &attr, text, len)) {
		return -EINVAL;
	}
	return pfs_store_put_attr(store, prime, &attr);
}
