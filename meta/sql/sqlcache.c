/* SPDX-License-Identifier: MIT */
#include "meta/sql/sqlcache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "meta/sql/sqlquery_impl.h"
#include "meta/sql/sqlside.h"

struct pfs_sql_cached {
	sqlite3_stmt *statement; /* NULL: the connection uses it now */
	size_t size;
	/* the connection's when the statement was prepared, as the next members are */
	uint64_t tables, value_limit, steps_limit;
	bool may_change;
	unsigned saw;
	char *changed;
	uint64_t updated, columns;
	struct pfs_sql_read *reads;
	size_t n_reads, reads_capacity;
	uint32_t *wanted; /* numbers of side tables: their places in the connection */
	size_t n_wanted;
};

/* Returns true if the text is this statement's; behind the statement it had only blanks and
 * comments. */
static bool is_of(const struct pfs_sql *sql, const char *text, size_t len)
{
	const char *its = sql->statement ? sqlite3_sql(sql->statement) : NULL;

	return its && strlen(its) <= len && memcmp(its, text, strlen(its)) == 0;
}

static int keep_wanted(struct pfs_sql_cached *cached, const struct pfs_sql *sql)
{
	uint32_t *wanted = calloc(sql->n_sides + 1, sizeof(*wanted));

	if (!wanted)
		return -ENOMEM;
	free(cached->wanted);
	cached->wanted = wanted;
	cached->n_wanted = 0;
	for (size_t i = 0; i < sql->n_sides; i++) {
		if (sql->sides[i].wanted)
			wanted[cached->n_wanted++] = (uint32_t)i;
	}
	return 0;
}

static void forget_reads(struct pfs_sql_cached *cached)
{
	for (size_t i = 0; i < cached->n_reads; i++)
		free(cached->reads[i].table);
	free(cached->reads);
	cached->reads = NULL;
	cached->n_reads = cached->reads_capacity = 0;
}

static int measure(struct pfs_sql_cached *cached, const struct pfs_sql *sql)
{
	if (cached->size)
		return 0;
	cached->changed = strdup(sql->changed);
	if (!cached->changed)
		return -ENOMEM;
	cached->size = sizeof(*cached) +
		       (size_t)sqlite3_stmt_status(sql->statement, SQLITE_STMTSTATUS_MEMUSED, 0);
	for (size_t i = 0; i < sql->n_reads; i++)
		cached->size += sizeof(*sql->reads) + strlen(sql->reads[i].table) +
				strlen(sql->reads[i].column) + 2;
	return 0;
}

int pfs_sql_cache(struct pfs_sql *sql, struct pfs_sql_cached **cached, const char *text, size_t len)
{
	struct pfs_sql_cached *to = *cached;

	if (!is_of(sql, text, len) || sql->reads_lost || sql->saw & PFS_SQL_SAW_SCHEMA ||
	    sqlite3_stmt_isexplain(sql->statement))
		return -EOPNOTSUPP;
	if (!to)
		to = *cached = calloc(1, sizeof(*to));
	if (!to)
		return -ENOMEM;
	PFS_TRY(keep_wanted(to, sql));
	PFS_TRY(measure(to, sql));
	pfs_sql_reset(sql);
	forget_reads(to);
	to->statement = sql->statement;
	to->tables = sql->tables_made;
	to->value_limit = sql->value_limit;
	to->steps_limit = sql->steps_limit;
	to->may_change = sql->may_change;
	to->saw = sql->saw;
	to->updated = sql->updated;
	to->columns = sql->columns;
	to->reads = sql->reads;
	to->n_reads = sql->n_reads;
	to->reads_capacity = sql->reads_capacity;
	sql->statement = NULL;
	sql->reads = NULL;
	sql->n_reads = sql->reads_capacity = 0;
	return 0;
}

/* Marks the tables that pfs_sql_sides_named and preparing would have marked. */
static void want(struct pfs_sql *sql, const struct pfs_sql_cached *cached)
{
	for (size_t i = 0; i < sql->n_sides; i++)
		sql->sides[i].named = sql->sides[i].wanted = false;
	for (size_t i = 0; i < cached->n_wanted; i++)
		sql->sides[cached->wanted[i]].named = sql->sides[cached->wanted[i]].wanted = true;
}

bool pfs_sql_use_cached(struct pfs_sql *sql, struct pfs_sql_cached *cached)
{
	if (cached->tables != sql->tables_made || cached->may_change != sql->may_change ||
	    cached->value_limit != sql->value_limit)
		return false;
	pfs_sql_finish(sql);
	pfs_sql_forget_reads(sql);
	free(sql->reads);
	sql->error = 0;
	sql->is_lost = false;
	sql->refused[0] = 0;
	(void)stpcpy(sql->changed, cached->changed);
	sql->statement = cached->statement;
	sql->selects = 0;
	/* the general limit of values holds until the next step, which lowers it again */
	sql->steps_limit = cached->steps_limit < cached->value_limit ? 0 : cached->steps_limit;
	sql->saw = cached->saw;
	sql->updated = cached->updated;
	sql->columns = cached->columns;
	sql->reads = cached->reads;
	sql->n_reads = cached->n_reads;
	sql->reads_capacity = cached->reads_capacity;
	cached->statement = NULL;
	cached->reads = NULL;
	cached->n_reads = cached->reads_capacity = 0;
	want(sql, cached);
	(void)sqlite3_limit(sql->handle, SQLITE_LIMIT_LENGTH, (int)sql->value_limit);
	return true;
}

void pfs_sql_cached_free(struct pfs_sql_cached *cached)
{
	if (!cached)
		return;
	(void)sqlite3_finalize(cached->statement);
	forget_reads(cached);
	free(cached->changed);
	free(cached->wanted);
	free(cached);
}

size_t pfs_sql_cached_size(const struct pfs_sql_cached *cached)
{
	return cached->size;
}

bool pfs_sql_each_wanted(const struct pfs_sql *sql, bool (*fn)(void *arg, uint32_t id), void *arg)
{
	for (size_t i = 0; i < sql->n_sides; i++) {
		if (sql->sides[i].wanted && !fn(arg, sql->sides[i].id))
			return false;
	}
	return true;
}
