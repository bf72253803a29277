/* SPDX-License-Identifier: MIT */
/* `.query/tables`, which is the same in every `.query`: side tables as CSV, and the columns of
 * `nodes`. A table exists once the file that was written for it is closed. */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <string.h>

#include "fs/query/tables.h"

#define SUFFIX ".csv"
#define SCHEMA "nodes.schema"

/* ---- nodes.schema ---- */

static int add_column(void *arg, const struct pfs_query *query)
{
	struct pfs_answer *answer = arg;
	struct pfs_sql_value name, type;

	if (!query)
		pfs_answer_truncate(answer);
	if (!query || !pfs_answer_size(answer))
		PFS_TRY(pfs_answer_text(answer, "column\ttype\n"));
	if (!query)
		return 0;
	pfs_query_value(query, 1, &name);
	pfs_query_value(query, 2, &type);
	PFS_TRY(pfs_answer_write(answer, name.bytes, name.size));
	PFS_TRY(pfs_answer_text(answer, "\t"));
	PFS_TRY(pfs_answer_write(answer, type.bytes, type.size));
	return pfs_answer_text(answer, "\n");
}

static int fill_schema(struct pfs_call *call, struct pfs_virtual *file PFS_UNUSED,
		       struct pfs_answer *answer)
{
	static const char sql[] = "PRAGMA table_info(nodes)";

	return pfs_call_rows(call, sql, strlen(sql), add_column, answer);
}

static const struct pfs_virtual_kind schema_kind = {
	.mode = S_IFREG | 0400,
	.fill = fill_schema,
};

/* ---- NAME.csv ---- */

/* Gets the name of the table that a file stands for. -EINVAL: there can be none. */
static int table_name(char out[PFS_TABLE_NAME_MAX + 1], const char *file)
{
	size_t len = strlen(file), suffix = strlen(SUFFIX);

	if (len <= suffix || len - suffix > PFS_TABLE_NAME_MAX ||
	    strcmp(file + len - suffix, SUFFIX) != 0)
		return -EINVAL;
	(void)snprintf(out, PFS_TABLE_NAME_MAX + 1, "%.*s", (int)(len - suffix), file);
	return 0;
}

static int fail(struct pfs_call *call, int code, const char *file,
		const struct pfs_query_error *error)
{
	if (code && code != -EINTR)
		(void)pfs_call_fail(call, code, "%s: %s", file,
				    *error->text ? error->text : strerror(-code));
	return code;
}

static int fill_table(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	struct pfs_sink sink = {answer, pfs_answer_write};
	struct pfs_query_error error = {.error = 0};
	char name[PFS_TABLE_NAME_MAX + 1];

	PFS_TRY(table_name(name, file->name));
	pfs_dispatch_yield();
	return fail(call, pfs_table_export(call->mount->queries, name, &sink, &error), file->name,
		    &error);
}

static ssize_t read_bytes(void *answer, void *data, size_t size, uint64_t offset)
{
	return pfs_answer_read(answer, data, size, offset);
}

static int store_table(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	const struct pfs_table_bytes bytes = {answer, read_bytes};
	struct pfs_query_error error = {.error = 0};
	char name[PFS_TABLE_NAME_MAX + 1];

	if (!call->scope.sees_all)
		return -EACCES;
	PFS_TRY(table_name(name, file->name));
	pfs_dispatch_yield();
	return fail(call, pfs_table_import(call->mount->queries, name, &bytes, &error), file->name,
		    &error);
}

static const struct pfs_virtual_kind table_kind = {
	.mode = S_IFREG | 0600,
	.fill = fill_table,
	.store = store_table,
};

/* ---- the directory ---- */

static int lookup(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		  struct pfs_virtual_found *found)
{
	char table[PFS_TABLE_NAME_MAX + 1];

	found->kind = strcmp(name, SCHEMA) == 0 ? &schema_kind : &table_kind;
	if (found->kind == &schema_kind)
		return 0;
	if (table_name(table, name) != 0)
		return -ENOENT;
	if (call->making)
		return 0;
	pfs_dispatch_yield();
	return pfs_table_is_there(call->mount->queries, table);
}

static int add_table(void *names, const char *name)
{
	char file[PFS_TABLE_NAME_MAX + sizeof(SUFFIX)];
	int len = snprintf(file, sizeof(file), "%s" SUFFIX, name);

	return pfs_virtual_names_add(names, file, (size_t)len, S_IFREG);
}

static int list(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED,
		struct pfs_virtual_names *names)
{
	PFS_TRY(pfs_virtual_names_add(names, SCHEMA, strlen(SCHEMA), S_IFREG));
	pfs_dispatch_yield();
	return pfs_tables_names(call->mount->queries, add_table, names);
}

/* Makes a file to be written, which becomes a table. */
static int make(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		mode_t type)
{
	char table[PFS_TABLE_NAME_MAX + 1];
	int error;

	if (!S_ISREG(type))
		return -EPERM;
	if (!call->scope.sees_all)
		return -EACCES;
	error = table_name(table, name);
	if (error)
		return pfs_call_fail(call, error, "%s: a table's file is NAME" SUFFIX, name);
	error = pfs_table_check_name(table);
	return error ? pfs_call_fail(call, error, "%s: a table cannot be called so", name) : 0;
}

static int remove_(struct pfs_call *call, struct pfs_virtual *dir PFS_UNUSED, const char *name,
		   mode_t type)
{
	struct pfs_query_error error = {.error = 0};
	char table[PFS_TABLE_NAME_MAX + 1];

	if (!S_ISREG(type) || strcmp(name, SCHEMA) == 0)
		return -EPERM;
	if (!call->scope.sees_all)
		return -EACCES;
	if (table_name(table, name) != 0)
		return -ENOENT;
	pfs_dispatch_yield();
	return fail(call, pfs_table_drop(call->mount->queries, table, &error), name, &error);
}

const struct pfs_virtual_kind pfs_tables_kind = {
	.mode = S_IFDIR | 0700,
	.lookup = lookup,
	.list = list,
	.make = make,
	.remove = remove_,
};
