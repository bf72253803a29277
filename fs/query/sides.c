/* SPDX-License-Identifier: MIT */
/* A connection has a copy of each side table that a statement of its has named: reading it then is
 * SQLite's own work, in memory, and no lock of the store is held meanwhile.  A change is made in
 * the copy, inside a transaction, and the rows that it changed there are then shown to the other
 * connections, whose copies take them over, and left to the next commit.  What it did to more than
 * rows is committed at once. */
#include "fs/query/sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fs/query/tables.h"
#include "fs/tree/sides.h"
#include "meta/declaration.h"
#include "meta/siderows.h"
#include "meta/sql/sqlside.h"

bool pfs_side_is_named(const char *name, const char *other)
{
	return strcasecmp(name, other) == 0;
}

/* ---- copies ---- */

struct reading {
	struct pfs_connection *connection;
	struct pfs_tree *tree;
	struct pfs_query *query; /* whose clock runs; NULL: none */
	uint64_t schema;	 /* the tables that the connection keeps are those of this one */
};

static int add_table(void *arg, const struct pfs_table_record *table)
{
	const struct reading *reading = arg;
	bool has_indexes = memmem(table->columns, table->columns_len, "INDEX", 5);
	int error;

	if (pfs_sql_side_has(reading->connection->sql, table->id, table->name, table->name_len))
		return 0;
	error = pfs_sql_side_add(reading->connection->sql, table->id, table->name, table->name_len,
				 has_indexes);

	if (error != -EUCLEAN)
		return error;
	pfs_warning("side table %.*s: none can have that name: statements cannot see it",
		    (int)table->name_len, (const char *)table->name);
	return 0;
}

static int declare(void *arg, const struct pfs_table_record *table)
{
	const struct reading *reading = arg;
	char why[PFS_DECLARATION_WHY];
	int error = pfs_sql_side_declare(reading->connection->sql, table->id, table->columns,
					 table->columns_len, why);

	if (error != -EUCLEAN)
		return error;
	pfs_warning("side table %.*s: damaged: its declaration %s: statements cannot see it",
		    (int)table->name_len, (const char *)table->name, why);
	return 0;
}

/* Inside of pfs_sides_read; a table that is damaged stays undeclared. */
static int declare_one(struct pfs_connection *connection, struct pfs_store *store,
		       const struct pfs_sql_side *side)
{
	struct reading reading = {.connection = connection};

	if (side->declared || side->is_damaged)
		return 0;
	return pfs_store_get_table(store, side->id, declare, &reading);
}

static int declare_named(void *arg, struct pfs_store *store)
{
	const struct reading *reading = arg;
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(reading->connection->sql, &n);

	if (!pfs_sides_are_known(reading->connection, reading->tree))
		return -EAGAIN;
	for (size_t i = 0; i < n; i++) {
		if (!sides[i].named)
			continue;
		if (reading->query && pfs_query_tick(reading->query))
			return -EINTR;
		PFS_TRY(declare_one(reading->connection, store, &sides[i]));
	}
	return 0;
}

int pfs_sides_declare(struct pfs_query *query, const char *text, size_t len)
{
	struct reading reading = {.connection = query->connection,
				  .tree = query->queries->tree, /* its own may be frozen */
				  .query = query};
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(query->connection->sql, &n);

	pfs_sql_sides_named(query->connection->sql, text, len);
	for (size_t i = 0; i < n; i++) {
		if (sides[i].named && !sides[i].declared && !sides[i].is_damaged)
			return pfs_sides_read(reading.tree, declare_named, &reading);
	}
	return 0;
}

bool pfs_sides_are_known(const struct pfs_connection *connection, const struct pfs_tree *tree)
{
	return connection->sides_version >= pfs_sides_schema(tree);
}

/* -ENOENT: they are others by now. */
static int look(void *arg, struct pfs_store *store PFS_UNUSED)
{
	struct reading *reading = arg;

	if (!pfs_sides_are_known(reading->connection, reading->tree))
		return -ENOENT;
	reading->connection->sides_version = pfs_sides_version(reading->tree);
	return 0;
}

static bool keeps(void *arg, uint32_t id)
{
	const struct reading *reading = arg;

	return pfs_sides_is_as_declared(reading->tree, id, reading->connection->sides_version);
}

/* -ENOENT: they are others by now. */
static int read_catalogue(void *arg, struct pfs_store *store)
{
	struct reading *reading = arg;
	size_t n_kept;

	(void)pfs_sql_sides(reading->connection->sql, &n_kept);
	if (n_kept && reading->schema != pfs_sides_schema(reading->tree))
		return -ENOENT;
	reading->connection->sides_version = pfs_sides_version(reading->tree);
	return pfs_store_scan_tables(store, add_table, reading);
}

/* Those that `is_kept` is true for stay as they are. */
static int read_tables(struct reading *reading, bool (*is_kept)(void *arg, uint32_t id))
{
	struct pfs_sql *sql = reading->connection->sql;

	pfs_sql_finish(sql);
	reading->schema = pfs_sides_schema(reading->tree);
	PFS_TRY(pfs_sql_sides_clear(sql, is_kept, reading));
	return pfs_sides_read(reading->tree, read_catalogue, reading);
}

int pfs_sides_refresh(struct pfs_connection *connection, struct pfs_tree *tree)
{
	struct reading reading = {.connection = connection, .tree = tree};
	int error;

	if (connection->sides_version == pfs_sides_version(tree))
		return 0;
	error = pfs_sides_read(tree, look, &reading);
	if (error == -ENOENT)
		error = read_tables(&reading, keeps);
	if (error == -ENOENT)
		error = read_tables(&reading, NULL);
	if (error) {
		connection->sides_version = 0;
		connection->spent = true;
	}
	return error;
}

/* ---- rows of copies ---- */

struct filling {
	struct pfs_connection *connection;
	struct pfs_tree *tree;
	const struct pfs_sql_side *side;
};

static int take_over(void *arg, const struct pfs_side_rows *rows)
{
	const struct filling *filling = arg;

	return pfs_side_rows_each(rows, pfs_sql_fill_changed, filling->connection->sql);
}

static int follow(struct filling *filling)
{
	const struct pfs_connection *connection = filling->connection;
	uint32_t id = filling->side->id;
	int error = pfs_sql_fill_begin(connection->sql, id, false);

	if (!error)
		error = pfs_sides_between(filling->tree, id, filling->side->version,
					  connection->sides_version, take_over, filling);
	return pfs_sql_fill_end(connection->sql, id, connection->sides_version, error);
}

static int fill(const struct filling *filling)
{
	struct pfs_sql *sql = filling->connection->sql;
	uint32_t id = filling->side->id;
	uint64_t version = filling->connection->sides_version;
	int error = pfs_sql_fill_begin(sql, id, filling->side->filled);

	if (!error)
		error = pfs_sides_rows(filling->tree, id, version, pfs_sql_fill_row,
				       pfs_sql_fill_changed, sql);
	return pfs_sql_fill_end(sql, id, version, error);
}

static int bring_up(struct filling *filling)
{
	const struct pfs_sql_side *side = filling->side;
	int error = -ENOENT;

	if (side->filled && pfs_sides_are_same(filling->tree, side->id, side->version,
					       filling->connection->sides_version))
		return 0;
	if (side->filled)
		error = follow(filling);
	return error == -ENOENT ? fill(filling) : error;
}

int pfs_sides_fill(struct pfs_connection *connection, struct pfs_tree *tree)
{
	struct filling filling = {.connection = connection, .tree = tree};
	size_t n;
	const struct pfs_sql_side *sides = pfs_sql_sides(connection->sql, &n);

	for (size_t i = 0; i < n; i++) {
		filling.side = &sides[i];
		if (sides[i].wanted && sides[i].declared)
			PFS_TRY(bring_up(&filling));
	}
	return 0;
}

/* ---- changes ---- */

struct keeping {
	struct pfs_sql *sql;
	struct pfs_tree *tree;
	struct pfs_store *store;
	struct pfs_account *account; /* the statement's */
	uint32_t id; /* of the table at hand */
	bool schema; /* other tables than before */
	bool whole;  /* the table at hand has other rows than can be said one by one */
	uint64_t bytes;
	struct pfs_side_rows rows; /* that have changed, if no more has; or are written next */
	uint64_t charged;	   /* bytes of `rows` on the account */
	struct pfs_sql_problem *problem;
};

static int put_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct keeping *keeping = arg;

	return pfs_store_put_row(keeping->store, &keeping->rows, row, cells, n);
}

/* Writes those rows of the table at hand that `get` gives. */
static int
put_rows(struct keeping *keeping, const char *table,
	 int (*get)(struct pfs_sql *sql, const char *table,
		    int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
		    void *arg))
{
	int error;

	keeping->rows.table = keeping->id;
	error = get(keeping->sql, table, put_row, keeping);
	if (!error)
		error = pfs_store_write_rows(keeping->store, &keeping->rows);
	pfs_side_rows_finish(&keeping->rows);
	return error;
}

static int put_table(struct keeping *keeping, const struct pfs_sql_side *side, uint32_t id)
{
	struct pfs_table_record record = {
		.id = id,
		.name = side->name,
		.name_len = strlen(side->name),
	};
	char *text;
	int error;

	PFS_TRY(pfs_sql_declaration(keeping->sql, &text, side->name));
	record.columns = text;
	record.columns_len = strlen(text);
	error = pfs_store_put_table(keeping->store, &keeping->id, &record,
				    (unsigned)side->n_columns);
	free(text);
	return error ? error : pfs_sides_touch(keeping->tree, keeping->id);
}

static int put_whole(struct keeping *keeping, const struct pfs_sql_side *side)
{
	PFS_TRY(put_table(keeping, side, 0));
	return put_rows(keeping, side->name, pfs_sql_all_rows);
}

static int write_fate(void *arg, const struct pfs_sql_side *side, enum pfs_sql_fate fate)
{
	struct keeping *keeping = arg;

	keeping->id = side->id;
	if (side->id)
		PFS_TRY(pfs_sides_touch(keeping->tree, side->id));
	switch (fate) {
	case PFS_SQL_DROPPED:
		return pfs_store_drop_table(keeping->store, side->id);
	case PFS_SQL_MADE:
		return put_whole(keeping, side);
	case PFS_SQL_INDEXED:
		return put_table(keeping, side, side->id);
	case PFS_SQL_REPLACED:
		PFS_TRY(pfs_store_drop_table(keeping->store, side->id));
		return put_whole(keeping, side);
	case PFS_SQL_CHANGED:
		break;
	}
	return put_rows(keeping, side->name, pfs_sql_changed_rows);
}

static int write_fates(void *arg, struct pfs_store *store)
{
	struct keeping *keeping = arg;

	keeping->store = store;
	return pfs_sql_fates(keeping->sql, write_fate, keeping);
}

static int complain(struct keeping *keeping, int error, const char *what)
{
	(void)snprintf(keeping->problem->text, sizeof(keeping->problem->text),
		       "the table cannot be kept: %s", what);
	return error;
}

static int measure(void *arg, int64_t row PFS_UNUSED, const struct pfs_cell *cells, size_t n)
{
	struct keeping *keeping = arg;
	uint64_t size = 0;

	for (size_t i = 0; cells && i < n; i++)
		size += 8 + (cells[i].type >= PFS_CELL_TEXT ? cells[i].size : 0);
	keeping->bytes += 16 + size;
	return size > PFS_TABLE_ROW_MAX ? -E2BIG : 0;
}

static void forget_rows(struct keeping *keeping)
{
	pfs_side_rows_finish(&keeping->rows);
	pfs_account_discharge(keeping->account, keeping->charged);
	keeping->charged = 0;
}

/* Adds the row to those that are packed. -ENOMEM: they are more than the statement has memory for.
 */
static int add(struct keeping *keeping, int64_t row, const struct pfs_cell *cells, size_t n)
{
	uint64_t more;

	PFS_TRY(pfs_side_rows_add(&keeping->rows, row, cells, n));
	more = keeping->rows.capacity - keeping->charged;
	keeping->charged += more;
	return more ? pfs_account_charge(keeping->account, (int64_t)more) : 0;
}

/* Packs rows as long as there is memory; if there is not, all are read once more as they are
 * written. */
static int pack(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	struct keeping *keeping = arg;
	int error = measure(arg, row, cells, n);

	if (error || keeping->whole)
		return error;
	error = add(keeping, row, cells, n);
	keeping->whole = error == -ENOMEM;
	if (keeping->whole)
		forget_rows(keeping);
	return keeping->whole ? 0 : error;
}

/* Whoever names the table later is to be able to. */
static int check_declaration(struct keeping *keeping, const char *table, bool is_new)
{
	char why[PFS_DECLARATION_WHY], what[PFS_DECLARATION_WHY + 32];
	char *text PFS_FREE = NULL;
	int error;

	PFS_TRY(pfs_sql_declaration(keeping->sql, &text, table));
	/* former versions have made such tables */
	if (is_new && pfs_declaration_counts(text, strlen(text)))
		return complain(
			keeping, -EINVAL,
			"numbers of rows that are gone come again; leave out AUTOINCREMENT");
	error = pfs_declaration_parse(NULL, why, table, text, strlen(text));
	if (error != -EUCLEAN)
		return error;
	(void)snprintf(what, sizeof(what), "its declaration %s", why);
	return complain(keeping, -EINVAL, what);
}

/* Before the store's part, which others wait for. */
static int check_fate(void *arg, const struct pfs_sql_side *side, enum pfs_sql_fate fate)
{
	struct keeping *keeping = arg;
	int error = 0;

	keeping->schema |= fate != PFS_SQL_CHANGED;
	keeping->id = keeping->rows.table = side->id;
	if (fate == PFS_SQL_MADE) {
		error = pfs_table_check_name(side->name);
		if (error)
			return complain(keeping, error, "none can have that name; choose another");
	}
	if (fate == PFS_SQL_MADE || fate == PFS_SQL_REPLACED)
		error = pfs_sql_all_rows(keeping->sql, side->name, measure, keeping);
	else if (fate == PFS_SQL_CHANGED)
		error = pfs_sql_changed_rows(keeping->sql, side->name, pack, keeping);
	if (!error && (fate == PFS_SQL_MADE || fate == PFS_SQL_INDEXED))
		error = check_declaration(keeping, side->name, fate == PFS_SQL_MADE);
	return error == -E2BIG ? complain(keeping, error, "a row has more than 8 MiB") : error;
}

int pfs_sides_tell_space(struct pfs_query *query, int error)
{
	if (error == -ENOSPC)
		(void)snprintf(query->why, sizeof(query->why), "the store: %s", PFS_STORE_IS_FULL);
	return error;
}

int pfs_sides_keep(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_connection *connection = query->connection;
	struct pfs_tree *tree =
		query->queries->tree; /* the statement's own may get frozen while it runs */
	struct keeping keeping = {.sql = connection->sql,
				  .tree = tree,
				  .account = connection->account,
				  .problem = problem};
	int error = pfs_sql_fates(connection->sql, check_fate, &keeping);

	if (error == -EINVAL && !*problem->text)
		error = complain(
			&keeping, error,
			"its rows have no number; leave out WITHOUT ROWID, or give a column "
			"another name than rowid, _rowid_ and oid");
	if (error == -E2BIG && !*problem->text)
		error = complain(&keeping, error, "it has more than 500 columns");
	if (error == -EEXIST && !*problem->text)
		error = complain(&keeping, error,
				 "a damaged one has its name; remove that one first");
	if (!error && !keeping.schema && !keeping.whole)
		keeping.whole = keeping.rows.n && !pfs_sides_fit(tree, &keeping.rows);
	if (!error && (keeping.schema || keeping.whole)) {
		forget_rows(&keeping);
		error = pfs_sides_tell_space(
			query, pfs_sides_commit(tree, keeping.bytes, write_fates, &keeping));
	} else if (!error && keeping.rows.n) {
		error = pfs_sides_tell_space(query, pfs_sides_apply(tree, &keeping.rows));
	}
	if (!error && keeping.id && !keeping.schema)
		pfs_sql_side_is_of(connection->sql, keeping.id, pfs_sides_version(tree));
	forget_rows(&keeping);
	if (error)
		pfs_sql_rollback(connection->sql);
	/* what has been made or dropped here is simply read anew, at the next refresh; so is a copy
	 * that did not keep what the store has by now */
	connection->spent |= error || pfs_sql_commit(connection->sql) ||
			     (keeping.schema && pfs_sql_sides_drop_new(connection->sql));
	if (!connection->spent && !keeping.schema)
		connection->sides_version = pfs_sides_version(tree);
	return error;
}
