/* SPDX-License-Identifier: MIT */
#include "tools/newer/from_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/query/query.h"
#include "meta/store.h"
#include "tools/newer/from_print.h"

#define VALUE_MAX 1000
#define COLUMNS	  "time, what, ino, source, id, path, was, field, before, after"
#define INSERTION "INSERT INTO refreshes (" COLUMNS ") "

struct log {
	struct pfs_queries *queries;
	const char *source;
	char time[32];
	char *text; /* a statement with several rows */
	size_t len, capacity;
	struct pfs_query_error error;
};

static int run(struct log *log, const char *sql, size_t len)
{
	const struct pfs_query_scope scope = {
		.ino = PFS_ROOT_PRIME,
		.sees_all = true,
		.uid = geteuid(),
		.gid = getegid(),
		.may_change = true,
	};
	struct pfs_query *query;
	int status = pfs_query_start(&query, log->queries, &scope, sql, len, &log->error);

	pfs_query_finish(query);
	return status;
}

static int flush(struct log *log)
{
	int error = log->len ? run(log, log->text, log->len) : 0;

	log->len = 0;
	return error;
}

static int add(struct log *log, const char *text, size_t len)
{
	PFS_TRY(pfs_grow(&log->text, &log->capacity, log->len + len + 1, 1));
	memcpy(log->text + log->len, text, len);
	log->len += len;
	return 0;
}

/* Adds a value as a literal of SQL, of any bytes. */
static int add_value(struct log *log, const char *value)
{
	char text[2 * VALUE_MAX + 32] = ", NULL";
	size_t len = value ? strnlen(value, VALUE_MAX) : 0, at;

	if (!value)
		return add(log, text, strlen(text));
	at = (size_t)snprintf(text, sizeof(text), ", CAST(x'");
	for (size_t i = 0; i < len; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%02x",
				       (unsigned char)value[i]);
	at += (size_t)snprintf(text + at, sizeof(text) - at, "' AS TEXT)");
	return add(log, text, at);
}

static int add_row(void *arg, const struct pfs_from_event *event)
{
	struct log *log = arg;
	char beginning[256];
	const char *values[] = {log->source,   event->key,    event->path, event->from,
				event->column, event->before, event->after};

	(void)snprintf(beginning, sizeof(beginning), "%s('%s', '%s', %llu",
		       log->len ? ", " : INSERTION "VALUES ", log->time,
		       pfs_from_names[event->what], (unsigned long long)event->ino);
	PFS_TRY(add(log, beginning, strlen(beginning)));
	for (size_t i = 0; i < PFS_COUNT(values); i++)
		PFS_TRY(add_value(log, values[i]));
	PFS_TRY(add(log, ")", 1));
	return log->len > PFS_STATEMENT_MAX / 2 ? flush(log) : 0;
}

int pfs_from_log_prepare(struct pfs_tree *tree, char *why, size_t why_size)
{
	static const char *const statements[] = {
		"CREATE TABLE IF NOT EXISTS refreshes (time TEXT, what TEXT, ino INTEGER, "
		"source TEXT, id TEXT, path TEXT, was TEXT, field TEXT, before TEXT, after TEXT)",
		/* fails if it has other columns */
		INSERTION "SELECT " COLUMNS " FROM refreshes WHERE 0",
	};
	struct log log = {.source = NULL};
	int error = pfs_queries_open(&log.queries, tree);

	for (size_t i = 0; i < PFS_COUNT(statements) && !error; i++)
		error = run(&log, statements[i], strlen(statements[i]));
	pfs_queries_close(log.queries);
	(void)snprintf(why, why_size, "%s", log.error.text);
	return error;
}

int pfs_from_log(struct pfs_tree *tree, const struct pfs_from_lists *from, const char *source,
		 char *why, size_t why_size)
{
	struct log log = {.source = source};
	time_t seconds = time(NULL);
	struct tm utc;
	int error;

	(void)gmtime_r(&seconds, &utc);
	(void)strftime(log.time, sizeof(log.time), "%Y-%m-%dT%H:%M:%SZ", &utc);
	PFS_TRY(pfs_queries_open(&log.queries, tree));
	error = pfs_from_tell(from, add_row, &log);
	if (!error)
		error = flush(&log);
	pfs_queries_close(log.queries);
	free(log.text);
	(void)snprintf(why, why_size, "%s", log.error.text);
	return error ? error : pfs_tree_sync(tree);
}
