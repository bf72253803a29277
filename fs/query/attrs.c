/* SPDX-License-Identifier: MIT */
/* The attributes that a statement reads. */
#include "fs/query/internal.h"

#include <stdlib.h>

static int open_attr(struct pfs_query *query, size_t i)
{
	const struct pfs_node_column *column = &query->connection->table->columns[i];

	return pfs_attr_reader_open(&query->attrs[i], query->tree, column->attr, column->attr_len);
}

int pfs_query_attr(struct pfs_query *query, struct pfs_attr_reader **out, size_t column)
{
	size_t n = query->connection->table->n;

	if (!query->attrs)
		query->attrs = calloc(n, sizeof(struct pfs_attr_reader *));
	if (!query->attr_wanted)
		query->attr_wanted = calloc(n, sizeof(bool));
	if (!query->attrs || !query->attr_wanted)
		return -ENOMEM;
	query->attr_wanted[column] = true;
	if (!query->attrs[column] && query->holds && !query->frozen)
		return -EAGAIN;
	if (!query->attrs[column])
		PFS_TRY(open_attr(query, column));
	return pfs_attr_reader_copy(out, query->attrs[column]);
}

void pfs_query_close_attrs(struct pfs_query *query)
{
	for (size_t i = 0; query->attrs && i < query->connection->table->n; i++) {
		pfs_attr_reader_close(query->attrs[i]);
		query->attrs[i] = NULL;
	}
}

int pfs_query_reopen_attrs(struct pfs_query *query)
{
	int error = 0;

	pfs_query_close_attrs(query);
	for (size_t i = 0; query->attr_wanted && i < query->connection->table->n && !error; i++) {
		if (query->attr_wanted[i])
			error = open_attr(query, i);
	}
	return error;
}
