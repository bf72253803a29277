/* SPDX-License-Identifier: MIT */
/* `.query/tables`, the same in every `.query`: what `nodes` looks like. */
#include <string.h>

#include "fs/mount/virtual.h"

static int add_column(void *arg, const struct pfs_query *query)
{
	struct pfs_answer *answer = arg;
	struct pfs_query_value name, type;

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

#define SCHEMA "nodes.schema"

static int lookup(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *dir PFS_UNUSED,
		  const char *name, struct pfs_found *found)
{
	found->kind = &schema_kind;
	return strcmp(name, SCHEMA) == 0 ? 0 : -ENOENT;
}

static int list(struct pfs_call *call PFS_UNUSED, struct pfs_virtual *dir PFS_UNUSED,
		struct pfs_virtual_names *names)
{
	return pfs_virtual_names_add(names, SCHEMA, strlen(SCHEMA), S_IFREG);
}

const struct pfs_virtual_kind pfs_tables_kind = {
	.mode = S_IFDIR | 0500,
	.lookup = lookup,
	.list = list,
};
