/* SPDX-License-Identifier: MIT */
/* A statement whose tree changed goes on with the tree as it is at one moment, frozen, and so holds
 * nobody up. What is frozen are the columns that SQLite was asked for leave to read, or needs. */
#include "fs/query/internal.h"

#include "base/checked.h"
#include "fs/content/compared.h"
#include "fs/image/watch.h"

#define VIEWERS (PFS_COLUMN_UID | PFS_COLUMN_GID | PFS_COLUMN_FLAGS)

static int tick(void *arg)
{
	return pfs_query_tick(arg);
}

static int add_column(struct pfs_query *query, const struct pfs_node_column *column)
{
	struct pfs_frozen_wish *wish = &query->frozen_wish;

	if (column->kind != PFS_NODE_ATTR) {
		if (pfs_fields[column->field].source == PFS_SOURCE_COMPARED)
			PFS_TRY(pfs_compared_load(query->queries->tree));
		wish->columns |= pfs_fields[column->field].made_of;
		return 0;
	}
	PFS_TRY(pfs_grow(&query->frozen_attrs, &query->frozen_attrs_capacity, wish->n_attrs + 1,
			 sizeof(*query->frozen_attrs)));
	wish->attrs = query->frozen_attrs;
	query->frozen_attrs[wish->n_attrs++] =
		(struct pfs_attr_wish){column->attr, column->attr_len};
	wish->columns |= PFS_COLUMN_FLAGS;
	return 0;
}

/* A column of nodes by its name; the rowid, and a table of which no column is read, are none. */
static int add_read(struct pfs_query *query, const char *name)
{
	const struct pfs_node_table *table = query->connection->table;

	for (size_t i = 0; i < table->n; i++)
		if (strcasecmp(table->columns[i].name, name) == 0)
			return add_column(query, &table->columns[i]);
	return 0;
}

struct pfs_frozen_wish pfs_query_rights_wish(struct pfs_query *query)
{
	return (struct pfs_frozen_wish){.columns = PFS_COLUMN_PRIME |
						   (query->is_limited ? VIEWERS : 0),
					.poll = tick,
					.arg = query};
}

int pfs_query_note_reads(struct pfs_query *query)
{
	const struct pfs_node_table *table = query->connection->table;
	const struct pfs_sql_read *reads;
	/* by which tables are joined, too; the last bit is all from its column on */
	uint64_t needed = pfs_sql_source_columns(query->connection->sql);
	size_t n;

	query->frozen_wish = pfs_query_rights_wish(query);
	if (!pfs_sql_reads(query->connection->sql, &reads, &n)) {
		needed = UINT64_MAX; /* it is not known which */
		n = 0;
	}
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(reads[i].table, "nodes") == 0)
			PFS_TRY(add_read(query, reads[i].column));
	for (size_t i = 0; i < table->n; i++)
		if (needed >> PFS_MIN(i, 63) & 1)
			PFS_TRY(add_column(query, &table->columns[i]));
	return 0;
}

int pfs_query_begin_freeze(struct pfs_query *query)
{
	struct pfs_frozen_wish *wish = &query->frozen_wish;
	int error;

	if (query->frozen)
		return -EOPNOTSUPP;
	error = pfs_account_open(&query->frozen_account, 0, NULL, NULL);
	if (!error) {
		wish->most = pfs_account_left(query->frozen_account);
		error = pfs_frozen_begin(&query->still, query->queries->tree, wish);
	}
	if (error)
		pfs_query_thaw(query);
	return error;
}

int pfs_query_try_freeze(struct pfs_query *query)
{
	uint64_t size;
	int error;

	PFS_TRY(pfs_query_begin_freeze(query));
	size = pfs_frozen_size(query->still);
	error = pfs_account_charge(query->frozen_account, (int64_t)size);
	pfs_account_discharge(query->frozen_account, size);
	if (error)
		pfs_query_thaw(query);
	return error;
}

/* Its bytes are what others' changes cost, and not the statement's: they count for all statements
 * together. */
static int fill(struct pfs_query *query)
{
	PFS_TRY(pfs_frozen_fill(query->still, query->queries->tree, &query->frozen_wish));
	query->tree = query->frozen = query->still;
	query->still = NULL;
	return pfs_account_charge(query->frozen_account, (int64_t)pfs_frozen_size(query->frozen));
}

int pfs_query_freeze(struct pfs_query *query)
{
	int error = query->still ? 0 : pfs_query_begin_freeze(query);

	if (error == -EOPNOTSUPP)
		return error;
	if (!error)
		error = fill(query);
	if (error)
		pfs_query_thaw(query);
	if (error == -ENOMEM)
		query->lost =
			"the tree changed, and as it was it needs more memory than query_memory_total lets it; "
			"run it again, or raise that";
	return error;
}

void pfs_query_thaw(struct pfs_query *query)
{
	if (query->frozen)
		pfs_account_discharge(query->frozen_account, pfs_frozen_size(query->frozen));
	pfs_frozen_close(query->frozen);
	pfs_frozen_close(query->still);
	query->frozen = query->still = NULL;
	query->tree = query->queries->tree;
	pfs_account_close(query->frozen_account);
	query->frozen_account = NULL;
}

bool pfs_query_is_lost(struct pfs_query *query)
{
	const struct pfs_tree *frozen = query->frozen ? query->frozen : query->still;

	if (!query->lost && frozen && pfs_frozen_is_lost(frozen))
		query->lost =
			"more of the tree changed while the statement ran than there is memory to remember; "
			"run it again";
	return query->lost;
}
