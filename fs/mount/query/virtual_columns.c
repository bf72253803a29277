/* SPDX-License-Identifier: MIT */
/* The columns of nodes that facets show. SQLite is asked for them once for each set of attributes
 * that the store has, since every step in `.query/where` needs them. */
#include "fs/mount/query/virtual.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/attr/attrcolumn.h"
#include "fs/query/facet.h"

struct pfs_known_columns {
	pthread_mutex_t lock;
	/* how many attributes there were when the columns were asked for; protected by lock */
	uint64_t n_names;
	/* of users who see all; empty: not asked for yet; protected by lock */
	struct pfs_facet_columns columns;
};

int pfs_known_columns_open(struct pfs_known_columns **out)
{
	struct pfs_known_columns *known = calloc(1, sizeof(*known));

	*out = known;
	if (!known)
		return -ENOMEM;
	(void)pthread_mutex_init(&known->lock, NULL);
	return 0;
}

void pfs_known_columns_close(struct pfs_known_columns *known)
{
	if (!known)
		return;
	pfs_facet_columns_finish(&known->columns);
	(void)pthread_mutex_destroy(&known->lock);
	free(known);
}

static int copy(struct pfs_facet_columns *to, const struct pfs_facet_columns *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct pfs_facet_column *column = &from->columns[i];

		PFS_TRY(pfs_facet_add_column(to, column->name, strlen(column->name),
					     column->is_number, column->is_number_only));
	}
	return 0;
}

static int recall(struct pfs_known_columns *known, uint64_t n_names,
		  struct pfs_facet_columns *columns)
{
	PFS_LOCKED(&known->lock);

	return known->n_names == n_names ? copy(columns, &known->columns) : 0;
}

static int remember(struct pfs_known_columns *known, uint64_t n_names,
		    const struct pfs_facet_columns *columns)
{
	PFS_LOCKED(&known->lock);

	pfs_facet_columns_clear(&known->columns);
	known->n_names = n_names;
	return copy(&known->columns, columns);
}

static int add_column(void *arg, const struct pfs_query *query)
{
	struct pfs_facet_columns *columns = arg;
	struct pfs_sql_value name, type;
	bool is_number;

	if (!query) {
		pfs_facet_columns_clear(columns);
		return 0;
	}
	pfs_query_value(query, 1, &name);
	pfs_query_value(query, 2, &type);
	is_number = type.size > 0 && type.bytes[0] != 'T';
	return pfs_facet_add_column(columns, name.bytes, name.size, is_number,
				    is_number && pfs_query_integer(query, 3));
}

int pfs_call_columns(struct pfs_call *call, struct pfs_facet_columns *columns)
{
	static const char sql[] = "PRAGMA table_info(nodes)";
	struct pfs_known_columns *known = call->mount->columns;
	/* before the columns, since new ones may come meanwhile */
	uint64_t n_names = pfs_attr_names_count(call->mount->tree);

	if (call->scope.sees_all) /* other users know only of columns that they may see */
		PFS_TRY(recall(known, n_names, columns));
	if (columns->n)
		return 0;
	PFS_TRY(pfs_call_rows(call, sql, strlen(sql), add_column, columns));
	return call->scope.sees_all ? remember(known, n_names, columns) : 0;
}
