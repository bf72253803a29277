/* SPDX-License-Identifier: MIT */
/* Batches and vectors in the host's memory. */
#include "gpu/relation.h"

#include <string.h>

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

int pfs_table_bring(const struct pfs_run *run, const struct pfs_operator_backend *b,
		    const struct pfs_table *table)
{
	for (uint32_t i = 0; table && i < table->n_columns; i++) {
		struct pfs_table_column *c = (struct pfs_table_column *)&table->columns[i];

		if (!c->batch || c->data || (c->batch->device && c->batch->backend == b))
			continue;
		PFS_TRY(pfs_tuples_here(run, c->batch));
		c->data = c->batch->computed[c->vector].data;
		c->nulls = c->batch->computed[c->vector].nulls;
	}
	return 0;
}

int pfs_table_here(const struct pfs_run *run, const struct pfs_table *table)
{
	return pfs_table_bring(run, NULL, table);
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

int pfs_tuples_of_vectors(const struct pfs_run *run, struct pfs_tuples **out, uint64_t n,
			  struct pfs_vector *vectors, size_t n_vectors)
{
	int error = pfs_tuples_make(run, out, n, 0, n_vectors);

	for (size_t i = 0; i < n_vectors; i++) {
		if (error)
			pfs_vector_free(run, &vectors[i]);
		else
			(*out)->computed[i] = vectors[i];
		vectors[i] = (struct pfs_vector){0};
	}
	return error;
}

/* ---- one batch of several ---- */

static void copy_rows(struct pfs_tuples *out, uint64_t at, const struct pfs_tuples *part)
{
	for (size_t i = 0; i < out->n_tables; i++) {
		const struct pfs_tuple_table *from = &part->tables[i];
		uint32_t *rows = out->tables[i].rows + at;

		if (from->rows && part->n)
			memcpy(rows, from->rows, part->n * sizeof(*rows));
		for (uint64_t j = 0; j < part->n && !from->rows; j++)
			rows[j] = from->from + (uint32_t)j;
	}
}

static void copy_bits(uint64_t *out, uint64_t at, const uint64_t *bits, uint64_t n)
{
	for (uint64_t i = 0; i < n && bits; i++)
		out[(at + i) / 64] |= (bits[i / 64] >> i % 64 & 1) << (at + i) % 64;
}

/* Vectors of which some part has bits have them. */
static int make_vector(const struct pfs_run *run, struct pfs_vector *out,
		       struct pfs_tuples *const *parts, size_t n_parts, size_t number)
{
	const struct pfs_vector *first = NULL;
	bool has_nulls = false, has_reals = false;
	uint64_t n = out->n;

	for (size_t i = 0; i < n_parts; i++) {
		const struct pfs_vector *vector = &parts[i]->computed[number];

		if (!parts[i]->n)
			continue;
		first = first ? first : vector;
		has_nulls |= vector->nulls != NULL;
		has_reals |= vector->is_real != NULL;
		if (vector->kind != first->kind || vector->dictionary != first->dictionary ||
		    vector->heap != first->heap)
			return -EOPNOTSUPP;
	}
	first = first ? first : &parts[0]->computed[number];
	PFS_TRY(pfs_vector_make(run, out, first->kind, n));
	out->dictionary = first->dictionary;
	out->heap = first->heap;
	if (has_nulls)
		PFS_TRY(pfs_vector_make_bits(run, &out->nulls, n));
	return has_reals ? pfs_vector_make_bits(run, &out->is_real, n) : 0;
}

static void copy_vector(struct pfs_vector *out, uint64_t at, const struct pfs_vector *part,
			uint64_t n)
{
	size_t size = element_size(out->kind);

	if (n)
		memcpy((char *)out->data + at * size, part->data, n * size);
	copy_bits(out->nulls, at, part->nulls, n);
	copy_bits(out->is_real, at, part->is_real, n);
}

static int make_parts(const struct pfs_run *run, struct pfs_tuples *out,
		      struct pfs_tuples *const *parts, size_t n_parts)
{
	for (size_t i = 0; i < out->n_tables; i++) {
		out->tables[i].table = parts[0]->tables[i].table;
		PFS_TRY(pfs_run_alloc_raw(run, &out->tables[i].rows, out->n, sizeof(uint32_t)));
	}
	for (size_t i = 0; i < out->n_computed; i++) {
		out->computed[i].n = out->n;
		PFS_TRY(make_vector(run, &out->computed[i], parts, n_parts, i));
	}
	return 0;
}

int pfs_tuples_concat(const struct pfs_run *run, struct pfs_tuples **out,
		      struct pfs_tuples *const *parts, size_t n_parts)
{
	struct pfs_tuples *tuples;
	uint64_t n = 0, at = 0;
	int error;

	*out = NULL;
	for (size_t i = 0; i < n_parts; i++) {
		PFS_TRY(pfs_tuples_here(run, parts[i]));
		if (parts[i]->n_tables != parts[0]->n_tables ||
		    parts[i]->n_computed != parts[0]->n_computed)
			return -EOPNOTSUPP;
		n += parts[i]->n;
	}
	PFS_TRY(pfs_tuples_make(run, &tuples, n, parts[0]->n_tables, parts[0]->n_computed));
	error = make_parts(run, tuples, parts, n_parts);
	if (error) {
		pfs_tuples_free(run, tuples);
		return error;
	}
	for (size_t i = 0; i < n_parts; at += parts[i++]->n) {
		copy_rows(tuples, at, parts[i]);
		for (size_t j = 0; j < tuples->n_computed; j++)
			copy_vector(&tuples->computed[j], at, &parts[i]->computed[j], parts[i]->n);
	}
	*out = tuples;
	return 0;
}

int pfs_column_index_here(const struct pfs_run *run, struct pfs_column_index *index)
{
	if (index->rows || !index->device)
		return 0;
	return index->backend->families->sort->fetch(index->backend, run, index);
}

int pfs_sort_here(const struct pfs_run *run, struct pfs_tuples **tuples,
		  const struct pfs_sort_key *keys, size_t n_keys, uint64_t offset, uint64_t limit)
{
	struct pfs_operator_backend *host = pfs_operators_host(run->operators);
	const struct pfs_source source = {.tuples = *tuples};
	struct pfs_run here = *run;
	int error = pfs_tuples_here(run, *tuples);

	for (size_t i = 0; !error && i < source.tuples->n_tables; i++)
		error = pfs_table_here(run, source.tuples->tables[i].table);
	here.on = PFS_ENGINE_HOST;
	*tuples = NULL;
	if (!error)
		error = host->families->sort->sort(host, &here, tuples, &source, keys, n_keys,
						   offset, limit);
	pfs_tuples_free(run, source.tuples);
	return error;
}
