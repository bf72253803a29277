/* SPDX-License-Identifier: MIT */
#include "fs/query/relational/rowlist.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/query/relational/cursor.h"

/* What is not asked for is not refused: SQLite may yet do with less. */
static int charge(struct pfs_row_list *list, struct pfs_account *account)
{
	uint64_t now =
		list->capacity * list->n_columns * sizeof(*list->values) + list->bytes_capacity;
	uint64_t more = now - list->charged;

	if (!more)
		return 0;
	if (more > pfs_account_left(account))
		return -ENOMEM;
	list->charged = now;
	return pfs_account_charge(account, (int64_t)more);
}

/* Bytes may move while more come: until then a text is known by its place. */
static int keep_bytes(struct pfs_row_list *list, const struct pfs_sql_value *value)
{
	PFS_TRY(pfs_grow(&list->bytes, &list->bytes_capacity, list->size + value->size + 1, 1));
	if (value->size)
		memcpy(list->bytes + list->size, value->bytes, value->size);
	list->size += value->size;
	return 0;
}

static bool has_bytes(const struct pfs_sql_value *value)
{
	return value->type == PFS_SQL_TEXT || value->type == PFS_SQL_BLOB;
}

static int add_row(struct pfs_row_list *list, const struct pfs_portion_walk *walk)
{
	struct pfs_sql_value *values;
	size_t capacity = (size_t)list->capacity;

	PFS_TRY(pfs_grow(&list->values, &capacity, (size_t)list->n + 1,
			 list->n_columns * sizeof(*values)));
	list->capacity = capacity;
	values = list->values + list->n * list->n_columns;
	for (size_t i = 0; i < list->n_columns; i++) {
		pfs_portion_value(&walk->portion, walk->row, i, &values[i]);
		if (has_bytes(&values[i]))
			PFS_TRY(keep_bytes(list, &values[i]));
	}
	list->n++;
	return 0;
}

/* All bytes are there, in the order of the values. */
static void place_bytes(struct pfs_row_list *list)
{
	const char *at = list->bytes;

	for (uint64_t i = 0; i < list->n * list->n_columns; i++) {
		if (!has_bytes(&list->values[i]))
			continue;
		list->values[i].bytes = at;
		at += list->values[i].size;
	}
}

static int read_all(struct pfs_row_list *list, struct pfs_row_cursor *cursor,
		    struct pfs_portion_walk *walk, struct pfs_account *account)
{
	int got;

	while ((got = pfs_row_cursor_next(cursor)) == 1) {
		do
			PFS_TRY(add_row(list, walk));
		while (pfs_portion_walk_on(walk));
		PFS_TRY(charge(list, account));
	}
	return got;
}

int pfs_row_list_read(struct pfs_row_list *out, const struct pfs_block *block,
		      struct pfs_run_context *context)
{
	struct pfs_query *query = context->query;
	bool explains = query->explains;
	struct pfs_portion_walk walk;
	struct pfs_row_cursor *cursor;
	int error;

	out->n_columns = block->n_results;
	PFS_TRY(pfs_row_cursor_open(&cursor, block, context, &walk));
	query->explains = false; /* the scans that are noted are SQLite's */
	error = read_all(out, cursor, &walk, query->account);
	query->explains = explains;
	pfs_row_cursor_close(cursor);
	if (!error)
		place_bytes(out);
	return error;
}

void pfs_row_list_value(const struct pfs_row_list *list, uint64_t row, size_t column,
			struct pfs_sql_value *out)
{
	*out = list->values[row * list->n_columns + column];
}

void pfs_row_list_free(struct pfs_row_list *list, struct pfs_account *account)
{
	pfs_account_discharge(account, list->charged);
	free(list->values);
	free(list->bytes);
	*list = (struct pfs_row_list){.values = NULL};
}
