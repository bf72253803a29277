/* SPDX-License-Identifier: MIT */
/* Names of owners as columns: a node's is that of its number, so the column is one of numbers, by
 * way of which names are found. */
#include "fs/query/relational/ownernames.h"

#include <string.h>

#define NUMBERS_MAX (1u << 18) /* larger ones are SQLite's */

/* Returns the number after the largest of all rows, with a node or without: whatever is read must
 * be there. */
static uint32_t end_of(const uint32_t *numbers, uint32_t n)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < n; i++)
		most = numbers[i] > most ? numbers[i] : most;
	return most == UINT32_MAX ? most : most + 1;
}

static int name_them(struct pfs_owner_names *names, struct pfs_owners *owners,
		     const struct pfs_vector *numbers, bool groups)
{
	for (uint64_t i = 0; i < numbers->n; i++) {
		struct pfs_sql_value value;
		uint32_t at = (uint32_t)numbers->integers[i];

		PFS_TRY(pfs_owners_names(owners, &value, &numbers->integers[i], 1, groups));
		if (value.type != PFS_SQL_TEXT)
			continue;
		names->nulls[at / 64] &= ~(UINT64_C(1) << at % 64);
		PFS_TRY(pfs_dictionary_add(&names->dictionary, &names->codes[at], value.bytes,
					   value.size));
	}
	return 0;
}

static int find_names(struct pfs_owner_names *names, struct pfs_owners *owners,
		      const struct pfs_run *run, const struct pfs_table *table, bool groups)
{
	const struct pfs_source nodes = {.table = table};
	const struct pfs_group_key key = {.ref = {0, 0}};
	struct pfs_tuples *tuples;
	struct pfs_vector numbers;
	int error;

	PFS_TRY(pfs_group(run, &tuples, &nodes, &key, 1, NULL, 0));
	error = pfs_gather(run, &numbers, &(struct pfs_source){.tuples = tuples}, key.ref);
	if (!error) {
		error = numbers.kind == PFS_KIND_INTEGER
				? name_them(names, owners, &numbers, groups)
				: -EOPNOTSUPP;
		pfs_vector_free(run, &numbers);
	}
	pfs_tuples_free(run, tuples);
	return error;
}

static int fill(struct pfs_owner_names *names, const struct pfs_table_column *column,
		const struct pfs_table *nodes, struct pfs_owners *owners, const struct pfs_run *run,
		struct pfs_arena *arena, bool groups)
{
	struct pfs_table table = *nodes;
	uint32_t end = end_of(column->data, nodes->n_rows);
	size_t words = (end + 63) / 64;

	if (end > NUMBERS_MAX)
		return -EOPNOTSUPP;
	pfs_dictionary_finish(&names->dictionary);
	PFS_TRY(pfs_dictionary_begin(&names->dictionary));
	names->end = end;
	names->codes = pfs_arena_get(arena, (end + 1) * sizeof(*names->codes));
	names->nulls = pfs_arena_get(arena, (words + 1) * sizeof(*names->nulls));
	if (!names->codes || !names->nulls)
		return -ENOMEM;
	memset(names->nulls, 0xff, words * sizeof(*names->nulls));
	table.columns = column;
	table.n_columns = 1;
	return find_names(names, owners, run, &table, groups);
}

int pfs_owner_names_get(struct pfs_owner_names *names, struct pfs_table_column *column,
			const struct pfs_table *nodes, struct pfs_owners *owners,
			const struct pfs_run *run, struct pfs_arena *arena, bool groups)
{
	if (!names->codes)
		PFS_TRY(fill(names, column, nodes, owners, run, arena, groups));
	*column = (struct pfs_table_column){
		.kind = PFS_KIND_CODE,
		.width = sizeof(*names->codes),
		.data = names->codes,
		.nulls = names->nulls,
		.via = column->data,
		.via_stamps = column->data_stamps,
		.n_elements = names->end,
		.dictionary = &names->dictionary.shown,
	};
	return 0;
}
