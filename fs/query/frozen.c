/* SPDX-License-Identifier: MIT */
/* A statement whose tree changed goes on with the tree as it is at one moment, frozen, and so holds nobody
 * up. What can be frozen follows from the columns that SQLite was asked for leave to read, or needs. */
#include "fs/tree/frozen.h"

#include <string.h>

#include "base/checked.h"
#include "fs/image/watch.h"
#include "fs/query/internal.h"
#include "meta/sqlside.h"

#define MEMORY_PART 2 /* of what the statement may have: its own rows need the rest */

#define ANYWAY	(1u << 31) /* columns that each frozen tree has */
#define VIEWERS (PFS_COLUMN_UID | PFS_COLUMN_GID | PFS_COLUMN_FLAGS)

static unsigned columns_at(const struct pfs_node_table *table, size_t i)
{
	return table->columns[i].kind == PFS_NODE_ATTR ? 0 : pfs_fields[table->columns[i].field].made_of;
}

/* Of a column of nodes by its name; the rowid, and a table of which no column is read, are none. */
static unsigned columns_read(const struct pfs_node_table *table, const char *name)
{
	for (size_t i = 0; i < table->n; i++)
		if (strcasecmp(table->columns[i].name, name) == 0)
			return columns_at(table, i);
	return ANYWAY;
}

/* Of those by which tables are joined, too; the last bit is all from its column on. */
static bool add_needed(const struct pfs_query *query, unsigned *columns)
{
	const struct pfs_node_table *table = query->connection->table;
	uint64_t needed = pfs_sql_source_columns(query->connection->sql);

	for (size_t i = 0; i < table->n; i++) {
		if (!(needed >> PFS_MIN(i, 63) & 1))
			continue;
		if (!columns_at(table, i))
			return false;
		*columns |= columns_at(table, i);
	}
	return true;
}

/* False: the statement reads what is not frozen. */
static bool find_columns(const struct pfs_query *query, unsigned *columns)
{
	const struct pfs_sql_read *reads;
	size_t n;

	*columns = query->is_limited ? VIEWERS : ANYWAY;
	if (pfs_sql_effect(query->connection->sql) != PFS_SQL_READS ||
	    !pfs_sql_reads(query->connection->sql, &reads, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned read = ANYWAY;

		if (strcasecmp(reads[i].table, "nodes") == 0)
			read = columns_read(query->connection->table, reads[i].column);
		if (!read)
			return false;
		*columns |= read;
	}
	if (!add_needed(query, columns))
		return false;
	*columns &= PFS_COLUMNS_ALL;
	*columns |= PFS_COLUMN_PRIME;
	return true;
}

static int tick(void *arg)
{
	return pfs_query_tick(arg);
}

void pfs_query_can_freeze(struct pfs_query *query)
{
	query->can_freeze = find_columns(query, &query->frozen_columns);
}

int pfs_query_freeze(struct pfs_query *query)
{
	int error;

	if (query->frozen || !query->can_freeze)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_frozen_open(&query->frozen, query->queries->tree, query->frozen_columns,
				pfs_account_left(query->account) / MEMORY_PART, tick, query));
	query->frozen_charged = pfs_frozen_size(query->frozen);
	error = pfs_account_charge(query->account, (int64_t)query->frozen_charged);
	if (error) {
		pfs_query_thaw(query);
		return error;
	}
	query->tree = query->frozen;
	return 0;
}

void pfs_query_thaw(struct pfs_query *query)
{
	pfs_frozen_close(query->frozen);
	query->frozen = NULL;
	query->tree = query->queries->tree;
	pfs_account_discharge(query->account, query->frozen_charged);
	query->frozen_charged = 0;
}
