/* SPDX-License-Identifier: MIT */
/* Rows of side tables that the operators change, which are shown as those that SQLite has changed
 * in its copy. */
#include "fs/query/sides.h"

#include <string.h>
#include <strings.h>

#include "fs/query/relational/change.h"
#include "fs/query/relational/relational.h"
#include "fs/tree/sides.h"
#include "meta/sql/sqlside.h"

/* Builds with VERIFY=1: SQLite would have changed the same rows to the same values. */
#ifdef PFS_VERIFY

struct verifying {
	struct pfs_sql *sql;
	struct pfs_side_rows rows;
};

static int collect(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	return pfs_side_rows_add(arg, row, cells, n);
}

static int collect_changed(void *arg, const struct pfs_sql_side *side, enum pfs_sql_fate fate)
{
	struct verifying *its = arg;

	if (fate == PFS_SQL_REPLACED) /* there was no memory to note which rows */
		return -ENOMEM;
	PFS_VERIFY_CHECK(fate == PFS_SQL_CHANGED);
	its->rows.table = side->id;
	return pfs_sql_changed_rows(its->sql, side->name, collect, &its->rows);
}

/* Which numbers inserted rows get is SQLite's own way of scanning. */
static int verify(struct pfs_query *query, const struct pfs_side_rows *rows,
		  struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	struct verifying its = {.sql = sql};
	int error;

	PFS_TRY(pfs_sides_fill(query->connection, query->queries->tree));
	error = pfs_sql_run(sql, problem);
	pfs_query_let_go(query);
	if (error == -EAGAIN) /* the nodes that it reads are others by now */
		return 0;
	PFS_TRY(error);
	error = pfs_sql_fates(sql, collect_changed, &its);
	if (error == -ENOMEM) {
		/* nothing to compare with */
	} else if (!error && its.rows.n) {
		PFS_VERIFY_CHECK(its.rows.n == rows->n);
		PFS_VERIFY_CHECK(its.rows.table == rows->table);
		if (strncasecmp(query->sql, "INSERT", 6) != 0)
			PFS_VERIFY_CHECK(its.rows.size == rows->size &&
					 memcmp(its.rows.bytes, rows->bytes, rows->size) == 0);
	} else {
		PFS_VERIFY_CHECK(!rows->n);
	}
	pfs_side_rows_finish(&its.rows);
	pfs_sql_rollback(sql);
	return error == -ENOMEM ? error : 0;
}

#else

static int verify(struct pfs_query *query PFS_UNUSED, const struct pfs_side_rows *rows PFS_UNUSED,
		  struct pfs_sql_problem *problem PFS_UNUSED)
{
	return 0;
}

#endif

int pfs_sides_change(struct pfs_query *query, struct pfs_sql_problem *problem)
{
	struct pfs_tree *tree =
		query->queries->tree; /* the statement's own may get frozen while it runs */
	struct pfs_side_rows rows = {.table = 0};
	const char *why = NULL;
	uint64_t charged;
	int error = -EOPNOTSUPP;

	if (pfs_sql_effect(query->connection->sql) == PFS_SQL_CHANGES_ROWS)
		error = pfs_relational_change(query, &rows, &why);
	charged = rows.capacity;
	if (!error && rows.n && !pfs_sides_fit(tree, &rows)) {
		error = -EOPNOTSUPP; /* the copy's are committed at once */
		why = "more changes than may wait for a commit";
	}
	if (error == -EOPNOTSUPP && why)
		pfs_relational_not_changed(query->relational, why);
	if (!error)
		error = verify(query, &rows, problem);
	query->changes = error ? 0 : rows.n;
	if (!error && rows.n) {
		uint32_t table = rows.table;

		error = pfs_sides_tell_space(query, pfs_sides_apply(tree, &rows));
		if (!error)
			error = pfs_sides_refresh(query->connection, tree);
		if (!error)
			pfs_relational_changed(query, table);
	}
	pfs_side_rows_finish(&rows);
	pfs_account_discharge(query->account, charged);
	return error;
}
