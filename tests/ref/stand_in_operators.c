/* SPDX-License-Identifier: MIT */
#include "tests/ref/stand_in_operators.h"

#include <stdlib.h>

#include "base/checked.h"
#include "gpu/engine_impl.h"
#include "gpu/host/families.h"
#include "gpu/host/operators.h"

struct stand_in_operators stand_in_operators;

static int select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
		       struct pfs_rows **out, const struct pfs_source *source,
		       const struct pfs_program *program)
{
	if (stand_in_operators.refuses)
		return -EOPNOTSUPP;
	if (!stand_in_operators.loses_rows)
		return pfs_host_select_rows(b, run, out, source, program);
	PFS_TRY(pfs_rows_of_range(run, out, source->table->n_rows, 0, source->table->n_rows));
	(*out)->form = PFS_ROWS_ON_DEVICE;
	(*out)->backend = b;
	return 0;
}

static int fetch(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		 struct pfs_rows *rows PFS_UNUSED)
{
	return -EIO;
}

static void release(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		    struct pfs_rows *rows PFS_UNUSED)
{
}

static int mirror(struct pfs_operator_backend *b PFS_UNUSED, const struct pfs_run *run PFS_UNUSED,
		  const struct pfs_table *table, size_t size)
{
	stand_in_operators.mirrored++;
	stand_in_operators.most = PFS_MAX(stand_in_operators.most, size);
	stand_in_operators.columns = pfs_table_is_sound(table) ? table->n_columns : 0;
	return stand_in_operators.more;
}

/* ---- batches ---- */

/* The vectors of a batch, which nobody has while they are here. */
struct kept {
	struct pfs_vector *computed;
};

static int keep(struct pfs_operator_backend *b, struct pfs_tuples *tuples)
{
	struct kept *kept = calloc(1, sizeof(*kept));

	if (kept)
		kept->computed = calloc(tuples->n_computed + 1u, sizeof(*kept->computed));
	if (!kept || !kept->computed) {
		free(kept);
		return -ENOMEM;
	}
	for (size_t i = 0; i < tuples->n_computed; i++) {
		kept->computed[i] = tuples->computed[i];
		tuples->computed[i].data = NULL;
		tuples->computed[i].nulls = NULL;
	}
	stand_in_operators.vectors = tuples->n_computed;
	stand_in_operators.tables = tuples->n_tables;
	tuples->device = kept;
	tuples->backend = b;
	return 0;
}

static void give_back(struct pfs_tuples *tuples)
{
	struct kept *kept = tuples->device;

	for (size_t i = 0; i < tuples->n_computed; i++)
		tuples->computed[i] = kept->computed[i];
	free(kept->computed);
	free(kept);
	tuples->device = NULL;
	tuples->backend = NULL;
}

static int fetch_tuples(struct pfs_operator_backend *b PFS_UNUSED,
			const struct pfs_run *run PFS_UNUSED, struct pfs_tuples *tuples)
{
	stand_in_operators.fetched++;
	give_back(tuples);
	return 0;
}

static void release_tuples(struct pfs_operator_backend *b PFS_UNUSED,
			   const struct pfs_run *run PFS_UNUSED, struct pfs_tuples *tuples)
{
	give_back(tuples);
}

/* The columns of a table that are vectors of kept batches are read where they lie, or not any
 * more. */
static void read_columns(const struct pfs_table *table, bool are_read)
{
	for (uint32_t i = 0; table && i < table->n_columns; i++) {
		struct pfs_table_column *c = (struct pfs_table_column *)&table->columns[i];
		const struct kept *kept = c->batch ? c->batch->device : NULL;

		if (!kept)
			continue;
		c->data = are_read ? kept->computed[c->vector].data : NULL;
		c->nulls = are_read ? kept->computed[c->vector].nulls : NULL;
	}
}

static void read_source(const struct pfs_source *source, bool are_read)
{
	read_columns(source->table, are_read);
	for (size_t i = 0; source->tuples && i < source->tuples->n_tables; i++)
		read_columns(source->tuples->tables[i].table, are_read);
}

static int compute(struct pfs_operator_backend *b, const struct pfs_run *run,
		   struct pfs_tuples **out, const struct pfs_source *source,
		   const struct pfs_program *programs, size_t n_programs, bool alone)
{
	struct pfs_operator_backend *host = pfs_operators_host(run->operators);
	int error;

	if (!stand_in_operators.keeps)
		return -EOPNOTSUPP;
	if (source->tuples && source->tuples->device)
		give_back(source->tuples);
	read_source(source, true);
	error = pfs_host_compute(host, run, out, source, programs, n_programs, alone);
	read_source(source, false);
	return error ? error : keep(b, *out);
}

/* All tuples could be. */
/* NOLINTNEXTLINE(readability-function-size): the public function's, and the back end */
static int sort(struct pfs_operator_backend *b, const struct pfs_run *run, struct pfs_tuples **out,
		const struct pfs_source *source, const struct pfs_sort_key *keys, size_t n_keys,
		uint64_t offset, uint64_t limit)
{
	if (!stand_in_operators.narrows)
		return -EOPNOTSUPP;
	PFS_TRY(compute(b, run, out, source, NULL, 0, false));
	return pfs_sort_here(run, out, keys, n_keys, offset, limit);
}

static const struct pfs_select_family select_family = {
	.select = select_rows, .fetch = fetch, .release = release};
static const struct pfs_gather_family gather_family = {
	.compute = compute, .fetch = fetch_tuples, .release = release_tuples, .mirror = mirror};
static const struct pfs_sort_family sort_family = {.sort = sort};
static const struct pfs_families families = {
	.name = "cuda",
	.close = pfs_host_operators_close,
	.select = &select_family,
	.gather = &gather_family,
	.sort = &sort_family,
	.index = &stand_in_index_family,
	.wide_index = &stand_in_index_family,
	.prefix = &stand_in_prefix_family,
};

int stand_in_operators_call(void)
{
	stand_in_operators.indexed++;
	if (!stand_in_operators.fail_at || --stand_in_operators.fail_at)
		return 0;
	if (stand_in_operators.failure == -EIO)
		stand_in_operators.fail_at = 1;
	return stand_in_operators.failure;
}

int stand_in_operators_open(struct pfs_operator_backend **out)
{
	return pfs_host_operators_create(out, &families, NULL);
}
