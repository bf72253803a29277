/* SPDX-License-Identifier: MIT */
#include "gpu/host/positions.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/lanes.h"

/* ---- writing positions down ---- */

struct counting {
	const struct pfs_source_reader *reader;
	/* by span: at first how many positions it has, then how many are before it */
	uint32_t *before;
	uint32_t *out;
};

static int count_spans(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct counting *c = context;
	uint64_t words[PFS_SPAN_WORDS];

	(void)worker;
	for (uint64_t i = from; i < to; i++)
		c->before[i] = pfs_source_reader_words(c->reader, words,
						(uint32_t)(c->reader->begin + i * PFS_SPAN));
	return 0;
}

static int fill_spans(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct counting *c = context;
	uint64_t words[PFS_SPAN_WORDS];
	uint32_t buffer[PFS_SPAN];

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint32_t first = (uint32_t)(c->reader->begin + i * PFS_SPAN), n;

		(void)pfs_source_reader_words(c->reader, words, first);
		n = pfs_lanes()->list_bits(buffer, words, PFS_SPAN_WORDS, first);
		memcpy(c->out + c->before[i], buffer, n * sizeof(*buffer));
	}
	return 0;
}

static int list_rows(struct pfs_positions *out, struct pfs_host_operators *host,
		     const struct pfs_run *run, const struct pfs_source_reader *reader)
{
	uint64_t n_spans = pfs_div_round_up(reader->end - reader->begin, PFS_SPAN);
	struct counting c = {.reader = reader};
	uint32_t all = 0;
	int error;

	PFS_TRY(pfs_run_alloc_raw(run, &c.before, n_spans, sizeof(*c.before)));
	error = pfs_host_for(host, run, n_spans, PFS_PIECE / PFS_SPAN, count_spans, &c);
	for (uint64_t i = 0; !error && i < n_spans; i++) {
		uint32_t here = c.before[i];

		c.before[i] = all;
		all += here;
	}
	if (!error && all == reader->to - reader->from) {
		*out = (struct pfs_positions){.first = reader->from, .n = all};
	} else if (!error) {
		error = pfs_run_alloc_raw(run, &c.out, all, sizeof(*c.out));
		if (!error)
			error = pfs_host_for(host, run, n_spans, PFS_PIECE / PFS_SPAN, fill_spans,
					     &c);
		if (error)
			pfs_run_free(run, c.out, all, sizeof(*c.out));
		else
			*out = (struct pfs_positions){.at = c.out, .n = all, .allocated = all};
	}
	pfs_run_free(run, c.before, n_spans, sizeof(*c.before));
	return error;
}

int pfs_positions_open(struct pfs_positions *out, struct pfs_host_operators *host,
		       const struct pfs_run *run, const struct pfs_source *source)
{
	struct pfs_source_reader reader;

	*out = (struct pfs_positions){0};
	PFS_TRY(pfs_source_reader_open(&reader, source));
	out->n = reader.end - reader.begin;
	if (source->tuples) {
		out->first = (uint32_t)reader.begin;
		return 0;
	}
	if (reader.by_list) {
		PFS_TRY(pfs_run_alloc_raw(run, &out->at, out->n, sizeof(*out->at)));
		out->allocated = out->n;
		memcpy(out->at, source->rows->list + reader.begin, out->n * sizeof(*out->at));
		return 0;
	}
	if ((source->rows && source->rows->form == PFS_ROWS_RANGE) ||
	    (!source->rows && !source->table->live && !source->table->fill_live)) {
		out->first = reader.from;
		out->n = reader.to - reader.from;
		return 0;
	}
	return list_rows(out, host, run, &reader);
}

void pfs_positions_close(const struct pfs_run *run, struct pfs_positions *positions)
{
	pfs_run_free(run, positions->at, positions->allocated, sizeof(*positions->at));
	*positions = (struct pfs_positions){0};
}

/* ---- batches of positions ---- */

struct taking {
	const struct pfs_positions *positions;
	const struct pfs_tuple_table *from; /* NULL: positions are rows */
	uint32_t *rows;
	const struct pfs_vector *vector;
	struct pfs_vector *out;
};

static int take_rows(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct taking *t = context;
	const uint32_t *at = t->positions->at, *rows = t->from ? t->from->rows : NULL;
	uint32_t first = t->positions->first, add = t->from ? t->from->from : 0;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint32_t position = at ? at[i] : first + (uint32_t)i;

		if (position == PFS_NO_ROW)
			t->rows[i] = PFS_NO_ROW;
		else
			t->rows[i] = rows ? rows[position] : add + position;
	}
	return 0;
}

static int take_values(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct taking *t = context;
	const struct pfs_vector *v = t->vector;
	const uint32_t *at = t->positions->at;
	uint32_t first = t->positions->first;
	bool is_text = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE;

	(void)worker;
	for (uint64_t i = from; i < to; i++) {
		uint32_t position = at ? at[i] : first + (uint32_t)i;
		uint64_t bit = UINT64_C(1) << i % 64;
		bool is_null = position == PFS_NO_ROW || pfs_vector_is_null(v, position);

		if (is_null)
			t->out->nulls[i / 64] |= bit;
		if (is_text)
			t->out->codes[i] = is_null ? 0 : v->codes[position];
		else
			t->out->integers[i] = is_null ? 0 : v->integers[position];
		if (!is_null && v->is_real && pfs_bit(v->is_real, position))
			t->out->is_real[i / 64] |= bit;
	}
	return 0;
}

static bool has_bits(const uint64_t *bits, uint64_t n)
{
	for (uint64_t w = 0; bits && w * 64 < n; w++) {
		if (bits[w])
			return true;
	}
	return false;
}

/* Returns true if one of the numbers is an integer. */
static bool has_integers(const struct pfs_vector *vector)
{
	for (uint64_t i = 0; i < vector->n; i += 64) {
		uint64_t others =
			vector->is_real[i / 64] | (vector->nulls ? vector->nulls[i / 64] : 0);

		if (~others << (vector->n - i < 64 ? 64 - (vector->n - i) : 0))
			return true;
	}
	return false;
}

void pfs_vector_trim(const struct pfs_run *run, struct pfs_vector *vector)
{
	size_t words = (size_t)pfs_div_round_up(vector->n, 64);
	bool has_reals;

	if (vector->nulls && !has_bits(vector->nulls, vector->n)) {
		pfs_run_free(run, vector->nulls, words, sizeof(*vector->nulls));
		vector->nulls = NULL;
	}
	has_reals = vector->is_real && has_bits(vector->is_real, vector->n);
	if (vector->is_real && !(has_reals && has_integers(vector))) {
		pfs_run_free(run, vector->is_real, words, sizeof(*vector->is_real));
		vector->is_real = NULL;
		vector->kind = has_reals ? PFS_KIND_REAL : PFS_KIND_INTEGER;
	}
}

static int take_vector(struct pfs_host_operators *host, const struct pfs_run *run, struct taking *t,
		       uint64_t n)
{
	PFS_TRY(pfs_vector_make(run, t->out, t->vector->kind, n));
	t->out->dictionary = t->vector->dictionary;
	t->out->heap = t->vector->heap;
	PFS_TRY(pfs_vector_make_bits(run, &t->out->nulls, n));
	if (t->vector->is_real)
		PFS_TRY(pfs_vector_make_bits(run, &t->out->is_real, n));
	PFS_TRY(pfs_host_for(host, run, n, PFS_PIECE, take_values, t));
	pfs_vector_trim(run, t->out);
	return 0;
}

static int take_table(struct pfs_host_operators *host, const struct pfs_run *run,
		      struct pfs_tuple_table *to, const struct pfs_source *source, size_t i,
		      const struct pfs_positions *positions)
{
	struct taking t = {.positions = positions};

	to->table = source->table;
	if (!source->table) {
		t.from = &source->tuples->tables[i];
		to->table = t.from->table;
	}
	if (!positions->at && !(t.from && t.from->rows)) {
		to->from = positions->first + (t.from ? t.from->from : 0);
		return 0;
	}
	PFS_TRY(pfs_run_alloc_raw(run, &to->rows, positions->n, sizeof(*to->rows)));
	t.rows = to->rows;
	return pfs_host_for(host, run, positions->n, PFS_PIECE, take_rows, &t);
}

int pfs_host_take(struct pfs_host_operators *host, const struct pfs_run *run,
		  struct pfs_tuples *out, size_t first_table, size_t first_computed,
		  const struct pfs_source *source, const struct pfs_positions *positions)
{
	for (size_t i = 0; i < pfs_source_tables(source); i++)
		PFS_TRY(take_table(host, run, &out->tables[first_table + i], source, i, positions));
	for (size_t i = 0; i < pfs_source_computed(source); i++) {
		struct taking t = {.positions = positions,
				   .vector = &source->tuples->computed[i],
				   .out = &out->computed[first_computed + i]};

		PFS_TRY(take_vector(host, run, &t, out->n));
	}
	return 0;
}

int pfs_host_batch(struct pfs_host_operators *host, const struct pfs_run *run,
		   struct pfs_tuples **out, const struct pfs_source *source,
		   const struct pfs_positions *positions, size_t more)
{
	struct pfs_tuples *tuples;
	int error;

	*out = NULL;
	PFS_TRY(pfs_tuples_make(run, &tuples, positions->n, pfs_source_tables(source),
				pfs_source_computed(source) + more));
	error = pfs_host_take(host, run, tuples, 0, 0, source, positions);
	if (error)
		pfs_tuples_free(run, tuples);
	else
		*out = tuples;
	return error;
}
