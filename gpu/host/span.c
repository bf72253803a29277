/* SPDX-License-Identifier: MIT */
#include "gpu/host/span.h"

#include <string.h>

#include "base/checked.h"
#include "base/search.h"
#include "gpu/host/lanes.h"

/* Returns the first place in the list whose row is not below `row`. */
static uint64_t place_in_list(const struct pfs_rows *rows, uint64_t row)
{
	return PFS_SEARCH(i, 0, rows->n_list, rows->list[i] < row);
}

static void open_table(struct pfs_source_reader *reader)
{
	const struct pfs_source *source = reader->source;
	const struct pfs_rows *rows = source->rows;
	uint64_t to = source->to ? source->to : UINT64_MAX;

	to = PFS_MIN(to, source->table->n_rows);
	reader->to = (uint32_t)to;
	reader->from = (uint32_t)PFS_MIN(source->from, to);
	if (rows && rows->form == PFS_ROWS_LIST) {
		reader->by_list = true;
		reader->begin = place_in_list(rows, reader->from);
		reader->end = place_in_list(rows, reader->to);
		return;
	}
	if (rows) {
		reader->to = PFS_MIN(reader->to, rows->to);
		reader->from = PFS_MIN(PFS_MAX(reader->from, rows->from), reader->to);
	}
	reader->begin = reader->from / PFS_SPAN * PFS_SPAN;
	reader->end = reader->to;
}

int pfs_source_reader_open(struct pfs_source_reader *reader, const struct pfs_source *source)
{
	*reader = (struct pfs_source_reader){.source = source};
	if (source->table) {
		open_table(reader);
		return 0;
	}
	if (source->tuples->n >= PFS_NO_ROW)
		return -EINVAL;
	reader->end = source->tuples->n;
	if (source->to)
		reader->end = PFS_MIN(reader->end, source->to);
	reader->begin = PFS_MIN(source->from, reader->end);
	return 0;
}

uint64_t pfs_source_reader_bound(const struct pfs_source_reader *reader)
{
	return reader->end - reader->begin;
}

/* Leaves of the words, which are of rows from `first` on, the rows from..to. */
static void cut_words(uint64_t *words, uint32_t first, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < PFS_SPAN_WORDS; i++) {
		uint64_t start = (uint64_t)first + (uint64_t)i * 64;

		if (start + 64 <= from || start >= to) {
			words[i] = 0;
			continue;
		}
		if (start < from)
			words[i] &= UINT64_MAX << (from - start);
		if (start + 64 > to)
			words[i] &= UINT64_MAX >> (start + 64 - to);
	}
}

uint32_t pfs_source_reader_words(const struct pfs_source_reader *reader, uint64_t *words,
				 uint32_t first)
{
	const struct pfs_table *table = reader->source->table;
	const struct pfs_rows *rows = reader->source->rows;
	size_t n = ((size_t)table->n_rows - first + 63) / 64;
	uint32_t count = 0;

	n = PFS_MIN(n, PFS_SPAN_WORDS);
	memset(words, 0xff, PFS_SPAN_WORDS * sizeof(*words));
	if (rows && rows->form == PFS_ROWS_BITS)
		memcpy(words, rows->bits + first / 64, n * sizeof(*words));
	else if (!rows && table->live)
		memcpy(words, table->live + first / 64, n * sizeof(*words));
	else if (!rows && table->fill_live)
		table->fill_live(table->live_context, words, first / 64, n);
	cut_words(words, first, reader->from, reader->to);
	for (unsigned i = 0; i < PFS_SPAN_WORDS; i++)
		count += (uint32_t)__builtin_popcountll(words[i]);
	return count;
}

static uint64_t rows_span(const struct pfs_source_reader *reader, struct pfs_span *span,
			  uint64_t at, uint64_t end)
{
	uint64_t words[PFS_SPAN_WORDS], next = PFS_MIN(at + PFS_SPAN, end);

	span->n = pfs_source_reader_words(reader, words, (uint32_t)at);
	span->first = (uint32_t)at;
	span->at = NULL;
	if (span->n < next - at) {
		pfs_lanes()->list_bits(span->buffer, words, PFS_SPAN_WORDS, (uint32_t)at);
		span->at = span->buffer;
	}
	return next;
}

uint64_t pfs_source_reader_span(const struct pfs_source_reader *reader, struct pfs_span *span,
				uint64_t at, uint64_t end)
{
	if (reader->source->table && !reader->by_list)
		return rows_span(reader, span, at, end);
	span->n = (uint32_t)PFS_MIN(PFS_SPAN, end - at);
	span->first = (uint32_t)at;
	span->at = reader->by_list ? reader->source->rows->list + at : NULL;
	return at + span->n;
}

/* ---- cells ---- */

void pfs_cell_reader_open(struct pfs_cell_reader *reader, const struct pfs_source *source,
			  struct pfs_ref ref)
{
	const struct pfs_tuple_table *of;

	*reader = (struct pfs_cell_reader){0};
	if (ref.table == PFS_COMPUTED) {
		reader->vector = &source->tuples->computed[ref.column];
		reader->kind = reader->vector->kind;
		return;
	}
	if (source->table) {
		reader->column = &source->table->columns[ref.column];
	} else {
		of = &source->tuples->tables[ref.table];
		reader->column = &of->table->columns[ref.column];
		reader->rows = of->rows || of->from ? of : NULL;
	}
	reader->kind = reader->column->kind;
}

bool pfs_cell_reader_has_values(const struct pfs_cell_reader *reader)
{
	const struct pfs_table_column *c = reader->column;

	if (!c)
		return !reader->vector->nulls;
	return !c->via && !(reader->rows && reader->rows->rows) && (c->not_null || !c->nulls);
}

bool pfs_cell_reader_is_safe(const struct pfs_cell_reader *reader)
{
	return reader->column && !reader->rows && !reader->column->via &&
	       (reader->kind == PFS_KIND_INTEGER || reader->kind == PFS_KIND_REAL);
}

const uint32_t *pfs_cell_elements(const struct pfs_cell_reader *reader, const struct pfs_span *span,
				  uint32_t *first, uint32_t *buffer)
{
	const uint32_t *at = span->at, *via = reader->column ? reader->column->via : NULL;

	*first = span->first;
	if (reader->rows && !reader->rows->rows) { /* a range that is shifted */
		*first += reader->rows->from;
		for (uint32_t i = 0; at && i < span->n; i++)
			buffer[i] = at[i] + reader->rows->from;
		at = at ? buffer : NULL;
	} else if (reader->rows) {
		const uint32_t *rows = reader->rows->rows;

		for (uint32_t i = 0; at && i < span->n; i++)
			buffer[i] = rows[at[i]];
		at = at ? buffer : rows + span->first;
	}
	if (!via)
		return at;
	if (!at)
		return via + *first;
	for (uint32_t i = 0; i < span->n; i++)
		buffer[i] = at[i] == PFS_NO_ROW ? PFS_NO_ROW : via[at[i]];
	return buffer;
}

/* Bits from.. of the bitmap, n of them. */
static bool read_bits(uint64_t *out, const uint64_t *bits, uint64_t from, uint32_t n)
{
	unsigned shift = from % 64;
	uint64_t any = 0;

	for (uint32_t i = 0; i * 64 < n; i++) {
		const uint64_t *word = bits + from / 64 + i;
		uint32_t left = n - i * 64;

		out[i] = word[0] >> shift;
		if (shift && left > 64 - shift)
			out[i] |= word[1] << (64 - shift);
		if (left < 64)
			out[i] &= (UINT64_C(1) << left) - 1;
		any |= out[i];
	}
	return any != 0;
}

/* Sets NULL for missing rows and for NULLs of listed elements; these read element 0, if there is
 * one. */
static void list_nulls(const uint64_t *nulls, const uint32_t *at, uint32_t n, struct pfs_cells *out)
{
	uint64_t any = 0;

	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t word = 0;

		for (uint32_t i = w * 64; i < n && i < w * 64 + 64; i++) {
			bool is_null = at[i] == PFS_NO_ROW || (nulls && pfs_bit(nulls, at[i]));

			word |= (uint64_t)is_null << i % 64;
		}
		out->nulls[w] = word;
		any |= word;
	}
	out->has_nulls = any != 0;
}

static const uint32_t *without_nulls(const uint32_t *at, uint32_t n, const struct pfs_cells *cells,
				     uint32_t *buffer)
{
	uint32_t some = PFS_NO_ROW;

	for (uint32_t i = 0; i < n && some == PFS_NO_ROW; i++)
		some = at[i];
	if (some == PFS_NO_ROW)
		return NULL;
	for (uint32_t i = 0; i < n; i++)
		buffer[i] = pfs_bit(cells->nulls, i) && at[i] == PFS_NO_ROW ? some : at[i];
	return buffer;
}

void pfs_cells_clear_nulls(struct pfs_cells *cells, enum pfs_kind kind, uint32_t n)
{
	bool is_text = kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE;

	for (uint32_t w = 0; w * 64 < n; w++) {
		for (uint64_t word = cells->nulls[w]; word; word &= word - 1) {
			uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(word);

			if (is_text)
				cells->codes[i] = 0;
			else
				cells->integers[i] = 0;
		}
	}
}

static void read_column(const struct pfs_table_column *c, const uint32_t *at, uint32_t first,
			uint32_t n, struct pfs_cells *out)
{
	const struct pfs_lanes *lanes = pfs_lanes();

	switch (c->kind) {
	case PFS_KIND_REAL:
	case PFS_KIND_NUMBER:
		if (at)
			lanes->list_64(out->integers, c->data, at, n);
		else
			memcpy(out->reals, (const double *)c->data + first, n * sizeof(double));
		return;
	case PFS_KIND_CODE:
	case PFS_KIND_PLACE:
		if (!at && c->width == sizeof(uint32_t) && !c->shift && !c->mask)
			memcpy(out->codes, (const uint32_t *)c->data + first, n * sizeof(uint32_t));
		else
			lanes->read_32(out->codes, c, at, first, n);
		return;
	case PFS_KIND_INTEGER:
		lanes->read_64(out->integers, c, at, first, n);
	}
}

static void read_vector(const struct pfs_vector *v, const uint32_t *at, uint32_t first, uint32_t n,
			struct pfs_cells *out)
{
	const struct pfs_table_column as_column = {
		.kind = v->kind,
		.width = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE ? 4 : 8,
		.is_signed = v->kind == PFS_KIND_INTEGER,
		.data = v->data,
	};
	uint64_t any = 0;

	read_column(&as_column, at, first, n, out);
	if (!v->is_real)
		return;
	if (!at) {
		out->has_reals = read_bits(out->is_real, v->is_real, first, n);
		return;
	}
	memset(out->is_real, 0, sizeof(out->is_real));
	for (uint32_t i = 0; i < n; i++) {
		out->is_real[i / 64] |= (uint64_t)pfs_bit(v->is_real, at[i]) << i % 64;
		any |= out->is_real[i / 64];
	}
	out->has_reals = any != 0;
}

void pfs_cells_read(const struct pfs_cell_reader *reader, const struct pfs_span *span,
		    struct pfs_cells *out)
{
	uint32_t buffer[PFS_SPAN], first;
	const uint32_t *at = pfs_cell_elements(reader, span, &first, buffer);
	const struct pfs_table_column *c = reader->column;
	const uint64_t *nulls = c ? (c->not_null ? NULL : c->nulls) : reader->vector->nulls;

	out->has_nulls = false;
	out->has_reals = false;
	if (at && (nulls || (c && (reader->rows || c->via))))
		list_nulls(nulls, at, span->n, out);
	else if (nulls)
		out->has_nulls = read_bits(out->nulls, nulls, first, span->n);
	if (at && out->has_nulls) {
		at = without_nulls(at, span->n, out, buffer);
		if (!at) {
			memset(out->integers, 0, span->n * sizeof(out->integers[0]));
			return;
		}
	}
	if (c)
		read_column(c, at, first, span->n, out);
	else
		read_vector(reader->vector, at, first, span->n, out);
	if (out->has_nulls)
		pfs_cells_clear_nulls(out, reader->kind, span->n);
}

static bool read_vector_cell(const struct pfs_vector *v, uint32_t position, struct pfs_scalar *out)
{
	if (pfs_vector_is_null(v, position))
		return false;
	out->is_real = v->kind == PFS_KIND_REAL || (v->is_real && pfs_bit(v->is_real, position));
	if (out->is_real)
		out->real = v->reals[position];
	else
		out->integer = v->kind == PFS_KIND_CODE || v->kind == PFS_KIND_PLACE
				       ? v->codes[position]
				       : v->integers[position];
	return true;
}

bool pfs_scalar_read(const struct pfs_cell_reader *reader, uint32_t position,
		     struct pfs_scalar *out)
{
	uint32_t at = position;

	if (reader->vector)
		return read_vector_cell(reader->vector, position, out);
	if (reader->rows)
		at = reader->rows->rows ? reader->rows->rows[position]
					: reader->rows->from + position;
	at = pfs_cell_at(reader->column, at);
	if (at == PFS_NO_ROW)
		return false;
	out->is_real = reader->kind == PFS_KIND_REAL;
	if (out->is_real)
		out->real = pfs_cell_real(reader->column, at);
	else
		out->integer = pfs_cell_integer(reader->column, at);
	return true;
}

const uint8_t *pfs_cell_text(const struct pfs_cell_reader *reader, uint32_t code, size_t *len)
{
	const struct pfs_dictionary *dictionary =
		reader->column ? reader->column->dictionary : reader->vector->dictionary;

	return reader->kind == PFS_KIND_CODE ? pfs_dictionary_text(dictionary, code, len)
					     : pfs_heap_text(pfs_cell_heap(reader), code, len);
}
