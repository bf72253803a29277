/* SPDX-License-Identifier: MIT */
/* Batches and vectors in the host's memory. */
#include "gpu/relation.h"

#include "gpu/engine_impl.h"

static size_t element_size(enum pfs_kind kind)
{
	return kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE ? sizeof(uint32_t) : sizeof(int64_t);
}

static size_t words_of(uint64_t n)
{
	return (size_t)((n + 63) / 64);
}

void pfs_vector_free(const struct pfs_run *run, struct pfs_vector *vector)
{
	pfs_run_free(run, vector->data, vector->n, element_size(vector->kind));
	pfs_run_free(run, vector->nulls, words_of(vector->n), sizeof(uint64_t));
	pfs_run_free(run, vector->is_real, words_of(vector->n), sizeof(uint64_t));
	*vector = (struct pfs_vector){0};
}

int pfs_vector_make(const struct pfs_run *run, struct pfs_vector *vector, enum pfs_kind kind,
		    uint64_t n)
{
	*vector = (struct pfs_vector){.kind = kind, .n = n};
	return pfs_run_alloc_raw(run, &vector->data, n, element_size(kind));
}

int pfs_vector_make_bits(const struct pfs_run *run, uint64_t **bits, uint64_t n)
{
	return pfs_run_alloc(run, bits, words_of(n), sizeof(**bits));
}

int pfs_tuples_make(const struct pfs_run *run, struct pfs_tuples **out, uint64_t n, size_t n_tables,
		    size_t n_computed)
{
	struct pfs_tuples *tuples;
	int error;

	*out = NULL;
	if (n_tables >= PFS_COMPUTED || n_computed >= PFS_COMPUTED)
		return -EINVAL;
	PFS_TRY(pfs_run_alloc(run, &tuples, 1, sizeof(*tuples)));
	tuples->n = n;
	tuples->n_tables = (uint16_t)n_tables;
	tuples->n_computed = (uint16_t)n_computed;
	error = pfs_run_alloc(run, &tuples->tables, n_tables, sizeof(*tuples->tables));
	if (!error)
		error = pfs_run_alloc(run, &tuples->computed, n_computed,
				      sizeof(*tuples->computed));
	if (error)
		pfs_tuples_free(run, tuples);
	else
		*out = tuples;
	return error;
}

void pfs_tuples_free(const struct pfs_run *run, struct pfs_tuples *tuples)
{
	if (!tuples)
		return;
	if (tuples->device)
		tuples->backend->families->gather->release(tuples->backend, run, tuples);
	for (size_t i = 0; tuples->tables && i < tuples->n_tables; i++)
		pfs_run_free(run, tuples->tables[i].rows, tuples->n, sizeof(uint32_t));
	for (size_t i = 0; tuples->computed && i < tuples->n_computed; i++)
		pfs_vector_free(run, &tuples->computed[i]);
	pfs_run_free(run, tuples->tables, tuples->n_tables, sizeof(*tuples->tables));
	pfs_run_free(run, tuples->computed, tuples->n_computed, sizeof(*tuples->computed));
	pfs_run_free(run, tuples, 1, sizeof(*tuples));
}

int pfs_tuples_here(const struct pfs_run *run, struct pfs_tuples *tuples)
{
	if (!tuples->device)
		return 0;
	return tuples->backend->families->gather->fetch(tuples->backend, run, tuples);
}

size_t pfs_source_tables(const struct pfs_source *source)
{
	return source->table ? 1 : source->tuples->n_tables;
}

size_t pfs_source_computed(const struct pfs_source *source)
{
	return source->table ? 0 : source->tuples->n_computed;
}

int pfs_tuples_of_rows(const struct pfs_run *run, struct pfs_tuples **out,
		       const struct pfs_table *table, const struct pfs_rows *rows)
{
	uint64_t n, next = 0;
	struct pfs_tuples *tuples;
	int error;

	*out = NULL;
	if (rows->form == PFS_ROWS_ON_DEVICE)
		return -EINVAL;
	PFS_TRY(pfs_rows_count(run, &n, rows));
	PFS_TRY(pfs_tuples_make(run, &tuples, n, 1, 0));
	tuples->tables[0].table = table;
	tuples->tables[0].from = rows->from;
	error = rows->form == PFS_ROWS_RANGE
			? 0
			: pfs_run_alloc_raw(run, &tuples->tables[0].rows, n, sizeof(uint32_t));
	if (error) {
		pfs_tuples_free(run, tuples);
		return error;
	}
	if (tuples->tables[0].rows)
		(void)pfs_rows_next(rows, &next, tuples->tables[0].rows, n);
	*out = tuples;
	return 0;
}
