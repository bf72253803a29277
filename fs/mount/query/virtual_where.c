/* SPDX-License-Identifier: MIT */
/* `.query/where`: facets. */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/query/facet.h"

static const struct pfs_virtual_kind answer_kind;

/* ---- the directories ---- */

static const struct pfs_facet *facet_of(const struct pfs_virtual *dir)
{
	return dir->data;
}

static int take_ino(void *arg, const struct pfs_query *query)
{
	if (query)
		*(uint64_t *)arg = (uint64_t)pfs_query_integer(query, 0);
	return 0;
}

/* Looks up CHILD in `under/CHILD`. */
static int lookup_child(struct pfs_call *call, const struct pfs_facet *from, const char *name,
			struct pfs_facet **facet)
{
	char *sql PFS_FREE = pfs_facet_child(from, call->scope.ino, name);
	uint64_t ino = 0;

	if (!sql)
		return -ENOMEM;
	PFS_TRY(pfs_call_rows(call, sql, strlen(sql), take_ino, &ino));
	return ino ? pfs_facet_step_under(facet, from, ino) : -ENOENT;
}

static int lookup_node(struct pfs_call *call, const struct pfs_virtual *dir, const char *name,
		       struct pfs_virtual_found *found)
{
	char *from PFS_FREE = NULL;
	const struct pfs_virtual *at;
	unsigned up = 0;

	for (at = dir; at; at = at->parent)
		up++;
	if (pfs_links_known(call, found, dir, name, up) == 0)
		return 0;
	from = pfs_facet_nodes(facet_of(dir));
	return from ? pfs_links_lookup(call, found, name, from, up) : -ENOMEM;
}

/* Says what is missing; without this, `.query/error` would tell of an earlier error. */
static int say_missing(struct pfs_call *call, int error, const char *what, const char *name)
{
	if (error != -ENOENT)
		return error;
	(void)pfs_call_fail(call, error, "%s: there is no such %s; ls lists what there is", name,
			    what);
	return -ENOENT;
}

static int step(struct pfs_call *call, struct pfs_facet **facet, const struct pfs_facet *from,
		const char *name)
{
	struct pfs_facet_columns columns = {.columns = NULL};
	char problem[PFS_FACET_PROBLEM] = "";
	int error = 0;

	if (from->kind == PFS_FACET_CHILDREN && pfs_facet_is_rest(name))
		return pfs_facet_step_children(facet, from, call->scope.ino);
	if (from->kind == PFS_FACET_CHILDREN)
		return say_missing(call, lookup_child(call, from, name, facet), "child", name);
	if (from->kind == PFS_FACET_COLUMNS && *name != '@')
		error = pfs_call_columns(call, &columns);
	if (!error)
		error = pfs_facet_step(facet, from, name, &columns, problem);
	pfs_facet_columns_finish(&columns);
	if (error && *problem) {
		(void)pfs_call_fail(call, error, "%s", problem);
		return error;
	}
	return say_missing(call, error, *name == '@' ? "end" : "column", name);
}

static int lookup(struct pfs_call *call, struct pfs_virtual *dir, const char *name,
		  struct pfs_virtual_found *found)
{
	struct pfs_facet *begin PFS_FREE = NULL;
	const struct pfs_facet *from = dir->data;
	struct pfs_facet *facet = NULL;

	if (!from) { /* `where` itself */
		PFS_TRY(pfs_facet_begin(&begin));
		from = begin;
	}
	if (from->kind == PFS_FACET_NODES)
		return lookup_node(call, dir, name, found);
	PFS_TRY(step(call, &facet, from, name));
	found->kind = facet->kind == PFS_FACET_ANSWER ? &answer_kind : &pfs_where_kind;
	found->data = facet;
	return 0;
}

/* ---- listings ---- */

static int list_unused_columns(struct pfs_call *call, const struct pfs_facet *facet,
			     struct pfs_virtual_names *names)
{
	struct pfs_facet_columns columns = {.columns = NULL};
	int error = pfs_call_columns(call, &columns);

	for (size_t i = 0; i < columns.n && !error; i++) {
		char name[PFS_FACET_NAME_MAX + 1];
		struct pfs_sql_value value = {
			.type = PFS_SQL_TEXT,
			.bytes = columns.columns[i].name,
			.size = strlen(columns.columns[i].name),
		};
		size_t len = pfs_facet_encode(name, &value);

		if (len && (!facet || pfs_facet_lists_column(facet, columns.columns[i].name)))
			error = pfs_virtual_names_add(names, name, len, S_IFDIR);
	}
	pfs_facet_columns_finish(&columns);
	if (!error && (!facet || pfs_facet_lists_column(facet, "under")))
		error = pfs_virtual_names_add(names, "under", strlen("under"), S_IFDIR);
	return error;
}

/* Lists the columns that may follow; facet NULL: in `where` itself. */
static int list_columns(struct pfs_call *call, const struct pfs_facet *facet,
			struct pfs_virtual_names *names)
{
	static const char *const ends[] = {"@paths",	  "@paths0",	 "@count",
					   "@result.tsv", "@result.csv", "@result.json",
					   "@result.txt"};

	if (!facet || pfs_facet_lists_columns(facet))
		PFS_TRY(list_unused_columns(call, facet, names));
	for (size_t i = 0; i < PFS_COUNT(ends); i++)
		PFS_TRY(pfs_virtual_names_add(names, ends[i], strlen(ends[i]), S_IFREG));
	return 0;
}

struct values {
	struct pfs_virtual_names *names;
	uint64_t total;
};

static int add_value(void *arg, const struct pfs_query *query)
{
	struct values *values = arg;
	struct pfs_sql_value value;
	char name[PFS_FACET_NAME_MAX + 1];
	size_t len;

	if (!query) {
		pfs_virtual_names_clear(values->names);
		return 0;
	}
	pfs_query_value(query, 0, &value);
	values->total = (uint64_t)pfs_query_integer(query, 2);
	len = pfs_facet_encode(name, &value);
	return len ? pfs_virtual_names_add(values->names, name, len, S_IFDIR) : 0;
}

/* Lists the values that a statement returns, and frees the statement. */
static int list_values(struct pfs_call *call, char *statement, struct pfs_virtual_names *names)
{
	char *sql PFS_FREE = statement;
	struct values values = {names, 0};
	char more[32];
	int len;

	if (!sql)
		return -ENOMEM;
	PFS_TRY(pfs_call_rows(call, sql, strlen(sql), add_value, &values));
	if (values.total <= names->n)
		return 0;
	len = snprintf(more, sizeof(more), "@more-%llu",
		       (unsigned long long)(values.total - names->n));
	return pfs_virtual_names_add(names, more, (size_t)len, S_IFREG);
}

static int list_nodes(struct pfs_call *call, const struct pfs_facet *facet,
		      struct pfs_virtual_names *names)
{
	char *from PFS_FREE = pfs_facet_nodes(facet);

	return from ? pfs_links_list(call, names, from) : -ENOMEM;
}

static int list(struct pfs_call *call, struct pfs_virtual *dir, struct pfs_virtual_names *names)
{
	const struct pfs_facet *facet = facet_of(dir);

	switch (facet ? facet->kind : PFS_FACET_COLUMNS) {
	case PFS_FACET_COLUMNS:
		return list_columns(call, facet, names);
	case PFS_FACET_VALUES:
		if (!pfs_facet_lists_values(facet))
			return pfs_virtual_names_add(names, "@values", strlen("@values"), S_IFREG);
		return list_values(call, pfs_facet_values(facet), names);
	case PFS_FACET_CHILDREN:
		if (!pfs_facet_lists_values(facet))
			return pfs_virtual_names_add(names, "@values", strlen("@values"), S_IFREG);
		return list_values(call, pfs_facet_children(facet, call->scope.ino), names);
	case PFS_FACET_NODES:
		return list_nodes(call, facet, names);
	case PFS_FACET_OPERANDS: /* anything may follow */
	case PFS_FACET_ANSWER:
		break;
	}
	return 0;
}

/* ---- */

static bool facets_differ(const void *data, const void *found)
{
	return data && found && !pfs_facet_is_same(data, found);
}

static int fill_answer(struct pfs_call *call, struct pfs_virtual *file, struct pfs_answer *answer)
{
	const struct pfs_facet *facet = facet_of(file);
	const char *sql = facet->text + facet->where_len + 1;

	return pfs_call_answer(call, answer, facet->format, sql, strlen(sql));
}

static const struct pfs_virtual_kind answer_kind = {
	.mode = S_IFREG | 0400,
	.runs = true,
	.fill = fill_answer,
	.differ = facets_differ,
};

const struct pfs_virtual_kind pfs_where_kind = {
	.mode = S_IFDIR | 0500,
	.finds = true,
	.lookup = lookup,
	.list = list,
	.differ = facets_differ,
};
