/* SPDX-License-Identifier: MIT */
/* The columns of nodes. */
#include "fs/query/internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/order.h"

static const struct pfs_node_column built_in[] = {
#define ALIAS(column, type_name, of_kind, id)                                                      \
	{                                                                                          \
		.name = (column), .declared = (type_name), .kind = PFS_NODE_##of_kind,             \
		.field = PFS_FIELD_##id                                                            \
	},
#define FIELD(id, column, type_name, of_kind, ...) ALIAS(column, type_name, of_kind, id)
	PFS_FIELDS(FIELD, ALIAS)
#undef FIELD
#undef ALIAS
};

/* Their numbers. */
enum {
#define ALIAS(column, type_name, of_kind, id) AT_##of_kind,
#define FIELD(id, ...)			      AT_##id,
	PFS_FIELDS(FIELD, ALIAS)
#undef FIELD
#undef ALIAS
};
const int pfs_node_ino = AT_INO;

bool pfs_nodes_has_column(const char *name)
{
	for (size_t i = 0; i < PFS_COUNT(built_in); i++) {
		if (strcasecmp(built_in[i].name, name) == 0)
			return true;
	}
	return strcasecmp(name, "hash") == 0;
}

/* SQLite's limit is 2,000 unless it was built otherwise. */
#define ATTRS_FROM  (PFS_COUNT(built_in) + 1) /* the hash is one that is always there */
#define COLUMNS_MAX (ATTRS_FROM + PFS_ATTR_COLUMNS_MAX)

static size_t quoted_size(const char *name)
{
	return 2 * strlen(name); /* a quote may be doubled */
}

static int declare(struct pfs_node_table *table)
{
	size_t size = sizeof("CREATE TABLE nodes()");
	char *at;

	for (size_t i = 0; i < table->n; i++)
		size += quoted_size(table->columns[i].name) + sizeof("\"\" INTEGER NOT NULL,");
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

/* By a column, or by SQLite: a column called rowid would stand before that. */
static bool is_taken(const struct pfs_node_table *table, const char *name)
{
	if (strcasecmp(name, "rowid") == 0 || strcasecmp(name, "_rowid_") == 0 ||
	    strcasecmp(name, "oid") == 0)
		return true;
	for (size_t i = 0; i < table->n; i++) {
		if (strcasecmp(table->columns[i].name, name) == 0)
			return true;
	}
	return false;
}

/* SQLite tells names apart without regard to capitals: the oldest of them has its own name, the
 * second one with "user." before it, and others are not to be had as columns: nobody takes a column
 * from others by a name that he thinks of later. */
static int add_attr(void *arg, const char *name, size_t len, enum pfs_attr_type type)
{
	static const char *const declared[] = {
		[PFS_ATTR_INTEGER] = "INTEGER",
		[PFS_ATTR_REAL] = "REAL",
		[PFS_ATTR_TEXT] = "TEXT",
	};
	struct pfs_node_table *table = arg;
	uint64_t i = table->n_names++;
	char *full;

	if (table->attrs.shown && i >= table->attrs.n)
		return -EAGAIN;
	if (pfs_attr_is_ours(name, len)) /* saved queries, which are nobody's column */
		return 0;
	if (table->attrs.shown && !table->attrs.shown[i])
		return 0;
	if (table->n == COLUMNS_MAX) {
		table->is_full = true;
		return 0;
	}
	PFS_TRY(pfs_grow(&table->columns, &table->capacity, table->n + 1,
			 sizeof(*table->columns)));
	full = malloc(sizeof("user.") + len);
	if (!full)
		return -ENOMEM;
	memcpy(stpcpy(full, "user."), name, len);
	full[sizeof("user.") - 1 + len] = 0;
	table->columns[table->n] = (struct pfs_node_column){
		.name = full,
		.declared = declared[type],
		.kind = PFS_NODE_ATTR,
		.type = type,
		.attr = full + sizeof("user.") - 1,
		.attr_len = len,
	};
	if (!is_taken(table, table->columns[table->n].attr))
		table->columns[table->n].name = table->columns[table->n].attr;
	if (is_taken(table, table->columns[table->n].name))
		free(full);
	else
		table->n++;
	return 0;
}

static int compare_attrs(const void *a, const void *b)
{
	const struct pfs_node_column *x = a, *y = b;

	return pfs_compare_bytes(x->attr, x->attr_len, y->attr, y->attr_len);
}

static int copy_attrs(struct pfs_attr_visibility *out, const struct pfs_attr_visibility *attrs)
{
	if (!attrs->shown)
		return 0;
	out->n = attrs->n;
	out->shown = calloc(attrs->n + 1, sizeof(*out->shown));
	if (!out->shown)
		return -ENOMEM;
	memcpy(out->shown, attrs->shown, attrs->n * sizeof(*out->shown));
	return 0;
}

static int add_hash(struct pfs_node_table *table)
{
	char *full = strdup("user." PFS_HASH_NAME);

	if (!full)
		return -ENOMEM;
	table->columns[table->n++] = (struct pfs_node_column){
		.name = "hash",
		.declared = "TEXT HIDDEN",
		.kind = PFS_NODE_ATTR,
		.type = PFS_ATTR_TEXT,
		.attr = full + sizeof("user.") - 1,
		.attr_len = sizeof(PFS_HASH_NAME) - 1,
	};
	return 0;
}

int pfs_node_table_create(struct pfs_node_table **out, struct pfs_tree *tree,
			  const struct pfs_attr_visibility *attrs)
{
	struct pfs_node_table *table = calloc(1, sizeof(*table));
	int error;

	*out = NULL;
	if (!table)
		return -ENOMEM;
	error = copy_attrs(&table->attrs, attrs);
	if (!error)
		error = pfs_grow(&table->columns, &table->capacity, ATTRS_FROM,
			 sizeof(*table->columns));
	if (!error) {
		memcpy(table->columns, built_in, sizeof(built_in));
		table->n = PFS_COUNT(built_in);
		error = add_hash(table);
	}
	if (!error)
		error = pfs_attr_names(tree, add_attr, table);
	if (!error && table->n > ATTRS_FROM)
		qsort(table->columns + ATTRS_FROM, table->n - ATTRS_FROM,
		      sizeof(*table->columns), compare_attrs);
	if (!error)
		error = declare(table);
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
	for (size_t i = PFS_COUNT(built_in); i < table->n; i++)
		free((char *)table->columns[i].attr - (sizeof("user.") - 1));
	free(table->attrs.shown);
	free(table->columns);
	free(table->declaration);
	free(table);
}
