/* SPDX-License-Identifier: MIT */
/* gpu/cuda/cuda_source.c - what an operator's input is on the device: which places it has, and the
 * values at them; and batches that lie there. */
#include "gpu/cuda/cuda_operators.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

/* ---- places ---- */

static int live_mask(struct pfs_job *job, const uint32_t **d_mask, const struct pfs_table *table)
{
	struct pfs_array array = {.id = table->live_stamps ? table->live_stamps->id : 0,
				  .data = table->live,
				  .n = table->n_rows,
				  .element_bits = 1,
				  .stamps = table->live_stamps,
				  .fill = table->live ? NULL : table->fill_live,
				  .context = table->live_context};

	*d_mask = NULL;
	if (!table->live && !table->fill_live)
		return 0;
	return pfs_job_array(job, (const void **)d_mask, NULL, &array);
}

/* A list as bits. */
static int list_mask(struct pfs_job *job, const uint32_t **d_mask, const struct pfs_rows *rows)
{
	size_t n = pfs_div_round_up(rows->n_rows, 64);
	uint64_t *words PFS_FREE = malloc(n * sizeof(*words) + 1);
	int error;

	if (!words)
		return -ENOMEM;
	pfs_rows_words(rows, words, 0, n);
	error = pfs_job_upload(job, d_mask, words, n * sizeof(*words));
	return error ? error : PFS_CUDA(cudaStreamSynchronize(job->stream));
}

static int rows_places(struct pfs_job *job, struct pfs_device_places *places,
		       const struct pfs_rows *rows)
{
	switch (rows->form) {
	case PFS_ROWS_RANGE:
		places->from = PFS_MAX(places->from, rows->from);
		places->to = PFS_MIN(places->to, rows->to);
		places->from = PFS_MIN(places->from, places->to);
		return 0;
	case PFS_ROWS_BITS:
		return pfs_job_upload(job, &places->d_mask, rows->bits,
				      pfs_div_round_up(rows->n_rows, 64) * 8);
	case PFS_ROWS_LIST:
		return list_mask(job, &places->d_mask, rows);
	case PFS_ROWS_ON_DEVICE:
		places->d_mask = rows->device;
		return 0;
	}
	return -EINVAL;
}

int pfs_job_places(struct pfs_job *job, struct pfs_device_places *places,
		   const struct pfs_source *source)
{
	uint64_t n = source->table ? source->table->n_rows : source->tuples->n;

	if (n > PFS_ROWS_MAX)
		return -EOPNOTSUPP;
	*places = (struct pfs_device_places){
		.from = PFS_MIN(source->from, n),
		.to = source->to ? PFS_MIN(source->to, n) : n,
	};
	if (!source->table)
		return 0;
	return source->rows ? rows_places(job, places, source->rows)
			    : live_mask(job, &places->d_mask, source->table);
}

int pfs_job_list(struct pfs_job *job, uint32_t **d_list, uint64_t *n,
		 const struct pfs_device_places *places)
{
	uint64_t *d_n, all = places->to - places->from;
	uint32_t *d_bits;
	void *d_temporary;
	size_t size = 0;

	*d_list = NULL;
	*n = all;
	if (!places->d_mask || all == 0)
		return 0;
	/* Only what lies in from..to. */
	PFS_TRY(pfs_job_alloc(job, &d_bits, pfs_div_round_up(places->to, 64) * 8));
	PFS_TRY(pfs_job_alloc_zero(job, &d_n, 2 * sizeof(*d_n)));
	PFS_TRY(pfs_cuda_select(d_bits, places->to, d_n, places, NULL, job->stream));
	PFS_TRY(pfs_job_download(job, n, d_n, sizeof(*n)));
	PFS_TRY(pfs_job_alloc(job, d_list, *n * sizeof(**d_list)));
	PFS_TRY(pfs_cuda_rows_list(*d_list, d_n + 1, NULL, &size, d_bits, places->to, job->stream));
	PFS_TRY(pfs_job_alloc(job, &d_temporary, size));
	return pfs_cuda_rows_list(*d_list, d_n + 1, d_temporary, &size, d_bits, places->to,
				  job->stream);
}

/* ---- values ---- */

const struct pfs_table_column *pfs_source_column(const struct pfs_source *source,
						 struct pfs_ref ref)
{
	if (ref.table == PFS_COMPUTED)
		return NULL;
	return source->table ? &source->table->columns[ref.column]
			     : &source->tuples->tables[ref.table].table->columns[ref.column];
}

const struct pfs_dictionary *pfs_source_dictionary(const struct pfs_source *source,
						   struct pfs_ref ref)
{
	const struct pfs_table_column *column = pfs_source_column(source, ref);

	return column ? column->dictionary : source->tuples->computed[ref.column].dictionary;
}

static struct pfs_array array_of(const struct pfs_stamps *stamps, const void *data, uint64_t n,
				 unsigned element_bits)
{
	return (struct pfs_array){.id = stamps ? stamps->id : 0,
				  .data = data,
				  .n = n,
				  .element_bits = element_bits,
				  .stamps = stamps};
}

static struct pfs_array data_array(const struct pfs_table_column *c, uint32_t n_rows)
{
	return array_of(c->data_stamps, c->data, c->via ? c->n_elements : n_rows, 8u * c->width);
}

enum { DATA, VIA, NULLS, N_ARRAYS };

/* A column's arrays; the data of one that it lacks is NULL. */
static void arrays_of(struct pfs_array arrays[N_ARRAYS], const struct pfs_table_column *c,
		      uint32_t n_rows)
{
	arrays[DATA] = data_array(c, n_rows);
	arrays[VIA] = array_of(c->via_stamps, c->via, n_rows, 32);
	arrays[NULLS] = array_of(c->nulls_stamps, c->not_null ? NULL : c->nulls, arrays[DATA].n, 1);
}

static int column_arrays(struct pfs_job *job, struct pfs_device_column *out,
			 const struct pfs_table_column *c, uint32_t n_rows)
{
	const struct pfs_device_tuples *batch = c->batch ? c->batch->device : NULL;
	struct pfs_array arrays[N_ARRAYS];

	if (batch) {
		out->d_data = batch->d_data[c->vector];
		out->d_nulls = batch->d_nulls[c->vector];
		return 0;
	}
	arrays_of(arrays, c, n_rows);
	PFS_TRY(pfs_job_array(job, &out->d_data, NULL, &arrays[DATA]));
	if (arrays[VIA].data)
		PFS_TRY(pfs_job_array(job, (const void **)&out->d_via, NULL, &arrays[VIA]));
	if (arrays[NULLS].data)
		PFS_TRY(pfs_job_array(job, (const void **)&out->d_nulls, NULL, &arrays[NULLS]));
	return 0;
}

static int column_value(struct pfs_job *job, struct pfs_device_column *out,
			const struct pfs_table_column *c, uint32_t n_rows)
{
	*out = (struct pfs_device_column){.mask = c->mask ? c->mask : UINT64_MAX,
					  .base = c->base,
					  .width = c->width,
					  .is_signed = c->is_signed,
					  .shift = c->shift,
					  .is_real = c->kind == PFS_KIND_REAL};
	return column_arrays(job, out, c, n_rows);
}

static int computed_value(struct pfs_job *job, struct pfs_device_value *value,
			  const struct pfs_tuples *tuples, uint16_t at)
{
	const struct pfs_vector *v = &tuples->computed[at];
	const struct pfs_device_tuples *device = tuples->device;
	bool is_text = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE;

	if (v->kind == PFS_KIND_NUMBER)
		return -EOPNOTSUPP;
	value->column = (struct pfs_device_column){.mask = UINT64_MAX,
						   .width = is_text ? 4 : 8,
						   .is_real = v->kind == PFS_KIND_REAL};
	if (device) {
		value->column.d_data = device->d_data[at];
		value->column.d_nulls = device->d_nulls[at];
		return 0;
	}
	PFS_TRY(pfs_job_upload(job, &value->column.d_data, v->data,
			       tuples->n * value->column.width));
	if (v->nulls)
		PFS_TRY(pfs_job_upload(job, &value->column.d_nulls, v->nulls,
				       pfs_div_round_up(tuples->n, 64) * 8));
	return 0;
}

/* The rows of a batch's table, on the device. */
static int table_rows(struct pfs_job *job, const uint32_t **d_rows, const struct pfs_tuples *tuples,
		      size_t at)
{
	const struct pfs_device_tuples *device = tuples->device;

	*d_rows = NULL;
	if (device) {
		*d_rows = device->d_rows[at];
		return 0;
	}
	if (!tuples->tables[at].rows)
		return 0;
	return pfs_job_upload(job, d_rows, tuples->tables[at].rows, tuples->n * sizeof(uint32_t));
}

int pfs_job_value(struct pfs_job *job, struct pfs_device_value *value, enum pfs_kind *kind,
		  const struct pfs_source *source, struct pfs_ref ref)
{
	const struct pfs_table_column *column = pfs_source_column(source, ref);
	const struct pfs_table *table = source->table;

	*value = (struct pfs_device_value){0};
	if (!column) {
		*kind = source->tuples->computed[ref.column].kind;
		return computed_value(job, value, source->tuples, ref.column);
	}
	*kind = column->kind;
	if (!table) {
		table = source->tuples->tables[ref.table].table;
		value->from = source->tuples->tables[ref.table].from;
		PFS_TRY(table_rows(job, &value->d_rows, source->tuples, ref.table));
	}
	return column_value(job, &value->column, column, table->n_rows);
}

bool pfs_value_can_be_null(const struct pfs_device_value *value)
{
	return value->column.d_nulls || value->column.d_via || value->d_rows;
}

/* ---- bounds ---- */

static const struct pfs_device_bounds no_bounds = {INT64_MAX, INT64_MIN, 0, 0};

static int find_bounds(struct pfs_job *job, struct pfs_device_bounds *bounds,
		       const struct pfs_device_column *column, uint64_t n)
{
	struct pfs_device_value plain = {.column = *column};
	struct pfs_device_bounds *d_bounds;

	plain.column.d_via = NULL;
	PFS_TRY(pfs_job_upload(job, &d_bounds, &no_bounds, sizeof(no_bounds)));
	PFS_TRY(pfs_cuda_bounds(d_bounds, &plain, n, job->stream));
	return pfs_job_download(job, bounds, d_bounds, sizeof(*bounds));
}

/* Of a column's array: remembered with its mirror while that does not change. */
static int array_bounds(struct pfs_job *job, struct pfs_device_bounds *bounds,
			const struct pfs_table_column *c, const struct pfs_device_column *column,
			uint32_t n_rows)
{
	struct pfs_array array = data_array(c, n_rows);
	bool is_plain = !c->mask && !c->shift && !c->base && array.id;
	struct pfs_mirror *mirror = NULL;
	const void *d_data;

	if (is_plain) {
		PFS_TRY(pfs_job_array(job, &d_data, &mirror, &array));
		PFS_LOCKED(&job->o->lock);
		if (mirror->has_bounds) {
			*bounds = mirror->bounds;
			return 0;
		}
	}
	/* All elements, also where nulls has a bit: the bounds serve every use of the array. */
	{
		struct pfs_device_column all = *column;

		all.d_nulls = NULL;
		PFS_TRY(find_bounds(job, bounds, &all, array.n));
	}
	if (is_plain) {
		PFS_LOCKED(&job->o->lock);
		mirror->bounds = *bounds;
		mirror->has_bounds = true;
	}
	return 0;
}

int pfs_job_bounds(struct pfs_job *job, struct pfs_device_bounds *bounds,
		   const struct pfs_source *source, struct pfs_ref ref,
		   const struct pfs_device_value *value)
{
	const struct pfs_table_column *c = pfs_source_column(source, ref);
	const struct pfs_dictionary *dictionary = pfs_source_dictionary(source, ref);
	const struct pfs_table *table;

	if (dictionary) {
		*bounds = (struct pfs_device_bounds){.most = (long long)dictionary->n};
		return 0;
	}
	if (!c)
		return find_bounds(job, bounds, &value->column, source->tuples->n);
	if (c->kind == PFS_KIND_INTEGER && c->width <= 2 && !c->is_signed && !c->mask) {
		*bounds = (struct pfs_device_bounds){c->base, c->base + (1 << 8 * c->width) - 1, 0,
						     0};
		return 0;
	}
	table = source->table ? source->table : source->tuples->tables[ref.table].table;
	return array_bounds(job, bounds, c, &value->column, table->n_rows);
}

/* ---- batches ---- */

static void release_tuples(struct pfs_operator_backend *b, const struct pfs_run *run,
			   struct pfs_tuples *tuples)
{
	struct pfs_cuda_operators *o = pfs_cuda_operators_of(b);
	struct pfs_device_tuples *device = tuples->device;

	(void)run;
	for (size_t i = 0; i < device->n_owned; i++)
		pfs_device_give(o, device->d_owned[i]);
	free(device);
	tuples->device = NULL;
	tuples->backend = NULL;
}

int pfs_device_tuples_make(struct pfs_job *job, struct pfs_tuples **out, uint64_t n,
			   size_t n_tables, size_t n_computed)
{
	const size_t n_arrays = n_tables + 2 * n_computed;
	const size_t n_owned = n_arrays + 1; /* each array alone, and a room for several */
	struct pfs_device_tuples *device;

	PFS_TRY(pfs_tuples_make(job->run, out, n, n_tables, n_computed));
	device = calloc(1, sizeof(*device) + (n_owned + n_arrays) * sizeof(void *));
	if (!device) {
		pfs_tuples_free(job->run, *out);
		*out = NULL;
		return -ENOMEM;
	}
	device->d_owned = (void **)(device + 1);
	device->d_data = device->d_owned + n_owned;
	device->d_nulls = (uint32_t **)(device->d_data + n_computed);
	device->d_rows = device->d_nulls + n_computed;
	(*out)->device = device;
	(*out)->backend = &job->o->base;
	return 0;
}

void pfs_device_tuples_own(struct pfs_job *job, struct pfs_tuples *tuples, void *d_memory)
{
	struct pfs_device_tuples *device = tuples->device;

	if (pfs_job_keep(job, d_memory))
		device->d_owned[device->n_owned++] = d_memory;
}

static int put_table(struct pfs_job *job, struct pfs_tuples *tuples, size_t to,
		     const struct pfs_source *source, size_t at, uint32_t *d_places, bool adopt)
{
	struct pfs_device_tuples *device = tuples->device;
	const uint32_t *d_rows = NULL;
	uint32_t first = 0;

	tuples->tables[to].table = source->table ? source->table : source->tuples->tables[at].table;
	if (source->table && adopt) { /* places are rows */
		pfs_device_tuples_own(job, tuples, d_places);
		device->d_rows[to] = d_places;
		return 0;
	}
	if (source->tuples) {
		first = source->tuples->tables[at].from;
		PFS_TRY(table_rows(job, &d_rows, source->tuples, at));
	}
	PFS_TRY(pfs_job_alloc(job, &device->d_rows[to], tuples->n * sizeof(uint32_t)));
	pfs_device_tuples_own(job, tuples, device->d_rows[to]);
	return pfs_cuda_rows_at(device->d_rows[to], d_rows, first, d_places, tuples->n,
				job->stream);
}

static int put_computed(struct pfs_job *job, struct pfs_tuples *tuples, size_t to,
			const struct pfs_source *source, size_t at, const uint32_t *d_places)
{
	const struct pfs_vector *v = &source->tuples->computed[at];
	struct pfs_device_tuples *device = tuples->device;
	struct pfs_device_value value = {0};
	bool is_text = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE;

	PFS_TRY(computed_value(job, &value, source->tuples, (uint16_t)at));
	tuples->computed[to].kind = v->kind;
	tuples->computed[to].n = tuples->n;
	tuples->computed[to].dictionary = v->dictionary;
	tuples->computed[to].heap = v->heap;
	PFS_TRY(pfs_job_alloc(job, &device->d_data[to], tuples->n * (is_text ? 4 : 8)));
	pfs_device_tuples_own(job, tuples, device->d_data[to]);
	PFS_TRY(pfs_job_alloc(job, &device->d_nulls[to], pfs_div_round_up(tuples->n, 64) * 8));
	pfs_device_tuples_own(job, tuples, device->d_nulls[to]);
	return pfs_cuda_values_at(device->d_data[to], is_text, device->d_nulls[to], &value,
				  d_places, tuples->n, job->stream);
}

int pfs_job_put(struct pfs_job *job, struct pfs_tuples *tuples, size_t first_table,
		size_t first_computed, const struct pfs_source *source, uint32_t *d_places,
		bool adopt)
{
	for (size_t i = 0; i < pfs_source_tables(source); i++)
		PFS_TRY(put_table(job, tuples, first_table + i, source, i, d_places, adopt));
	for (size_t i = 0; i < pfs_source_computed(source); i++)
		PFS_TRY(put_computed(job, tuples, first_computed + i, source, i, d_places));
	return 0;
}

static int fetch_vector(struct pfs_job *job, struct pfs_vector *v, const void *d_data,
			const uint32_t *d_nulls)
{
	uint64_t n = v->n;
	const struct pfs_dictionary *dictionary = v->dictionary;
	const struct pfs_heap *heap = v->heap;
	size_t width = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE ? 4 : 8;

	PFS_TRY(pfs_vector_make(job->run, v, v->kind, n));
	v->dictionary = dictionary;
	v->heap = heap;
	PFS_TRY(pfs_job_download(job, v->data, d_data, n * width));
	if (!d_nulls)
		return 0;
	PFS_TRY(pfs_vector_make_bits(job->run, &v->nulls, n));
	return pfs_job_download(job, v->nulls, d_nulls, pfs_div_round_up(n, 64) * 8);
}

static int fetch_all(struct pfs_job *job, struct pfs_tuples *tuples)
{
	const struct pfs_device_tuples *device = tuples->device;

	for (size_t i = 0; i < tuples->n_tables; i++) {
		if (!device->d_rows[i])
			continue;
		PFS_TRY(pfs_run_alloc_raw(job->run, &tuples->tables[i].rows, tuples->n,
					  sizeof(uint32_t)));
		PFS_TRY(pfs_job_download(job, tuples->tables[i].rows, device->d_rows[i],
					 tuples->n * sizeof(uint32_t)));
	}
	for (size_t i = 0; i < tuples->n_computed; i++)
		PFS_TRY(fetch_vector(job, &tuples->computed[i], device->d_data[i],
				     device->d_nulls[i]));
	return 0;
}

static int fetch_tuples(struct pfs_operator_backend *b, const struct pfs_run *run,
			struct pfs_tuples *tuples)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : fetch_all(&job, tuples));
	if (!error)
		release_tuples(b, run, tuples);
	return error == -EOPNOTSUPP ? -EIO : error;
}

/* ---- gather ---- */

static int gather_column(struct pfs_job *job, struct pfs_vector *out,
			 const struct pfs_source *source, struct pfs_ref ref)
{
	const struct pfs_table_column *column = pfs_source_column(source, ref);
	struct pfs_device_places places;
	struct pfs_device_value value;
	uint32_t *d_list, *d_nulls = NULL;
	enum pfs_kind kind;
	void *d_out;
	uint64_t n;
	bool is_text;

	PFS_TRY(pfs_job_places(job, &places, source));
	PFS_TRY(pfs_job_value(job, &value, &kind, source, ref));
	PFS_TRY(pfs_job_list(job, &d_list, &n, &places));
	is_text = kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE;
	if (!d_list && value.d_rows)
		value.d_rows += places.from;
	else if (!d_list)
		value.from += (uint32_t)places.from;
	if (!d_list && !column) /* a vector is read from its place on */
		value.from = (uint32_t)places.from;
	PFS_TRY(pfs_job_alloc(job, &d_out, n * (is_text ? 4 : 8)));
	if (pfs_value_can_be_null(&value))
		PFS_TRY(pfs_job_alloc(job, &d_nulls, pfs_div_round_up(n, 64) * 8));
	PFS_TRY(pfs_cuda_values_at(d_out, is_text, d_nulls, &value, d_list, n, job->stream));
	*out = (struct pfs_vector){.kind = kind, .n = n};
	out->dictionary = pfs_source_dictionary(source, ref);
	out->heap = column ? column->heap : source->tuples->computed[ref.column].heap;
	return fetch_vector(job, out, d_out, d_nulls);
}

static int gather(struct pfs_operator_backend *b, const struct pfs_run *run, struct pfs_vector *out,
		  const struct pfs_source *source, struct pfs_ref ref)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run);

	error = pfs_job_end(&job, error ? error : gather_column(&job, out, source, ref));
	if (error)
		pfs_vector_free(run, out);
	return error;
}

/* ---- copies ahead of a statement ---- */

static int mirror_table(struct pfs_job *job, const struct pfs_table *table)
{
	struct pfs_array arrays[N_ARRAYS],
		live = array_of(table->live_stamps, table->live, table->n_rows, 1);
	int more = live.data ? pfs_job_mirror(job, &live) : 0;

	for (uint32_t column = 0; column < table->n_columns; column++) {
		arrays_of(arrays, &table->columns[column], table->n_rows);
		for (size_t i = 0; i < N_ARRAYS && !more; i++)
			if (arrays[i].data)
				more = pfs_job_mirror(job, &arrays[i]);
	}
	return more;
}

static int mirror(struct pfs_operator_backend *b, const struct pfs_run *run,
		  const struct pfs_table *table, size_t size)
{
	struct pfs_job job;
	int error = pfs_job_begin(&job, b, run), more = 0;

	job.left = size;
	if (!error)
		more = mirror_table(&job, table);
	error = pfs_job_end(&job, error ? error : PFS_MIN(more, 0));
	return error ? error : more;
}

const struct pfs_gather_family pfs_cuda_gather_family = {
	.gather = gather,
	.compute = pfs_cuda_compute,
	.filter = pfs_cuda_filter,
	.fetch = fetch_tuples,
	.release = release_tuples,
	.mirror = mirror,
};
