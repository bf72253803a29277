/* SPDX-License-Identifier: MIT */
/* Paths below .query/where: every statement that a path makes has its quotes in pairs, and what a
 * value is listed as leads back to it. */
#undef NDEBUG /* what is asserted is what is looked for */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fs/query/facet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A quote of one kind does not end inside the other. */
static void check_quotes(const char *sql)
{
	char open = 0;

	for (; *sql; sql++) {
		if (open && *sql == open)
			open = 0;
		else if (!open && (*sql == '\'' || *sql == '"'))
			open = *sql;
	}
	assert(!open);
}

static void check_statements(const struct pfs_facet *facet)
{
	char *sql[] = {pfs_facet_values(facet), pfs_facet_nodes(facet),
		       pfs_facet_child(facet, 2, "it's")};

	for (size_t i = 0; i < PFS_COUNT(sql); i++) {
		if (sql[i])
			check_quotes(sql[i]);
		free(sql[i]);
	}
	check_quotes(facet->text);
	check_quotes(facet->text + facet->where_len + 1);
}

static struct pfs_facet *step(struct pfs_facet *from, const char *name,
			      const struct pfs_facet_columns *columns)
{
	struct pfs_facet *facet = NULL;
	char problem[PFS_FACET_PROBLEM];

	if (from->kind == PFS_FACET_CHILDREN)
		(void)!pfs_facet_step_under(&facet, from, strlen(name));
	else if (from->kind != PFS_FACET_NODES && from->kind != PFS_FACET_ANSWER)
		(void)!pfs_facet_step(&facet, from, name, columns, problem);
	free(from);
	return facet;
}

static void check_encoding(const uint8_t *data, size_t size)
{
	struct pfs_sql_value value = {
		.type = PFS_SQL_TEXT, .bytes = (const char *)data, .size = size};
	char name[PFS_FACET_NAME_MAX + 1];
	size_t len = pfs_facet_encode(name, &value);

	assert(len <= PFS_FACET_NAME_MAX);
	if (len)
		assert(!memchr(name, '/', len) && !name[len] && strlen(name) == len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pfs_facet_columns columns = {.columns = NULL};
	struct pfs_facet *facet = NULL;
	char *text = calloc(1, size + 1), *name, *rest = text;

	check_encoding(data, size);
	if (text && size)
		memcpy(text, data, size);
	if (pfs_facet_add_column(&columns, "size", 4, true, true) == 0 &&
	    pfs_facet_add_column(&columns, "mtime", 5, true, true) == 0 &&
	    pfs_facet_add_column(&columns, "o\"dd.gt", 7, false, false) == 0 &&
	    pfs_facet_begin(&facet) == 0)
		while (facet && rest && (name = strsep(&rest, "/"))) {
			check_statements(facet);
			facet = step(facet, name, &columns);
		}
	if (facet)
		check_statements(facet);
	free(facet);
	free(text);
	pfs_facet_columns_finish(&columns);
	return 0;
}
