/* SPDX-License-Identifier: MIT */
/* The columns of nodes. */
#include "fs/query/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static const struct pfs_node_column built_in[] = {
	{"path", "TEXT", PFS_NODE_BYTES, PFS_FIELD_PATH},
	{"name", "TEXT", PFS_NODE_BYTES, PFS_FIELD_NAME},
	{"ext", "TEXT", PFS_NODE_BYTES, PFS_FIELD_EXT},
	{"ino", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_INO},
	{"parent", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_PARENT},
	{"depth", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_DEPTH},
	{"type", "TEXT", PFS_NODE_TYPE, PFS_FIELD_TYPE},
	{"mode", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_MODE},
	{"uid", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_UID},
	{"gid", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_GID},
	{"owner", "TEXT", PFS_NODE_OWNER, PFS_FIELD_UID},
	{"owner_group", "TEXT", PFS_NODE_GROUP, PFS_FIELD_GID},
	{"size", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_SIZE},
	{"blocks", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_BLOCKS},
	{"nlink", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_NLINK},
	{"target", "TEXT", PFS_NODE_BYTES, PFS_FIELD_TARGET},
	{"mtime", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_MTIME},
	{"atime", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_ATIME},
	{"ctime", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_CTIME},
	{"subtree_count", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_SUBTREE_COUNT},
	{"subtree_size", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_SUBTREE_SIZE},
	{"subtree_blocks", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_SUBTREE_BLOCKS},
	{"subtree_mtime", "INTEGER", PFS_NODE_INTEGER, PFS_FIELD_SUBTREE_MTIME},
};
const int pfs_node_ino = 3;

static int declare(struct pfs_node_table *table)
{
	size_t size = sizeof("CREATE TABLE nodes()");
	char *at;

	for (size_t i = 0; i < table->n; i++) /* a quote may be doubled */
		size += 2 * strlen(table->columns[i].name) + strlen(table->columns[i].declared) + 8;
	table->declaration = malloc(size);
	if (!table->declaration)
		return -ENOMEM;
	at = stpcpy(table->declaration, "CREATE TABLE nodes(");
	for (size_t i = 0; i < table->n; i++) {
		*at++ = '"';
		for (const char *c = table->columns[i].name; *c; c++) {
			if (*c == '"')
				*at++ = '"';
			*at++ = *c;
		}
		at = stpcpy(stpcpy(at, "\" "), table->columns[i].declared);
		*at++ = i + 1 < table->n ? ',' : ')';
	}
	*at = 0;
	return 0;
}

int pfs_node_table_create(struct pfs_node_table **out, struct pfs_tree *tree PFS_UNUSED)
{
	struct pfs_node_table *table = calloc(1, sizeof(*table));
	int error;

	*out = NULL;
	if (!table)
		return -ENOMEM;
	table->columns = calloc(PFS_COUNT(built_in), sizeof(*table->columns));
	error = table->columns ? 0 : -ENOMEM;
	if (!error) {
		memcpy(table->columns, built_in, sizeof(built_in));
		table->n = PFS_COUNT(built_in);
		error = declare(table);
	}
	if (error)
		pfs_node_table_destroy(table);
	else
		*out = table;
	return error;
}

void pfs_node_table_destroy(struct pfs_node_table *table)
{
	if (!table)
		return;
	free(table->columns);
	free(table->declaration);
	free(table);
}
