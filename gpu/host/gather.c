/* SPDX-License-Identifier: MIT */
/* Work that is done tuple by tuple: values of columns and of programs, and the tuples that a
 * program keeps. */
#include "gpu/host/families.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/evaluate.h"
#include "gpu/host/positions.h"

struct gathering {
	const struct pfs_positions *positions;
	struct pfs_cell_reader reader;	 /* a column, or */
	struct pfs_evaluator *evaluator; /* a program */
	struct pfs_vector *out;
};

/* Values number `at`.. of the vector; at is a multiple of PFS_SPAN. */
static void write_cells(struct pfs_vector *out, const struct pfs_cells *cells, uint64_t at,
			uint32_t n)
{
	size_t words = (n + 63) / 64;

	if (out->kind == PFS_KIND_CODE || out->kind == PFS_KIND_PLACE)
		memcpy(out->codes + at, cells->codes, n * sizeof(*out->codes));
	else
		memcpy(out->integers + at, cells->integers, n * sizeof(*out->integers));
	if (cells->has_nulls)
		memcpy(out->nulls + at / 64, cells->nulls, words * sizeof(uint64_t));
	if (out->is_real && cells->has_reals)
		memcpy(out->is_real + at / 64, cells->is_real, words * sizeof(uint64_t));
	/* Bits behind the end in the last word are undefined, so they are cleared. */
	if (n % 64 && cells->has_nulls)
		out->nulls[at / 64 + words - 1] &= (UINT64_C(1) << n % 64) - 1;
	if (n % 64 && out->is_real && cells->has_reals)
		out->is_real[at / 64 + words - 1] &= (UINT64_C(1) << n % 64) - 1;
}

static int gather_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct gathering *g = context;

	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		struct pfs_span span;
		struct pfs_cells cells;
		struct pfs_slot *slot;

		pfs_positions_span(g->positions, &span, at, to);
		if (!g->evaluator) {
			pfs_cells_read(&g->reader, &span, &cells);
			write_cells(g->out, &cells, at, span.n);
			continue;
		}
		slot = pfs_evaluate(g->evaluator, worker, &span);
		PFS_TRY(atomic_load(&g->evaluator->error));
		if (slot->type != PFS_SLOT_IS_TEXT)
			pfs_slot_to_number(slot, span.n);
		write_cells(g->out, &slot->cells, at, span.n);
	}
	return 0;
}

static int gather_all(struct pfs_host_operators *host, const struct pfs_run *run,
		      struct gathering *g, enum pfs_kind kind)
{
	PFS_TRY(pfs_vector_make(run, g->out, kind, g->positions->n));
	PFS_TRY(pfs_vector_make_bits(run, &g->out->nulls, g->positions->n));
	if (kind == PFS_KIND_NUMBER)
		PFS_TRY(pfs_vector_make_bits(run, &g->out->is_real, g->positions->n));
	PFS_TRY(pfs_host_for(host, run, g->positions->n, PFS_PIECE, gather_piece, g));
	pfs_vector_trim(run, g->out);
	return 0;
}

static void set_texts(struct pfs_vector *out, const struct pfs_cell_reader *reader)
{
	out->dictionary = reader->column ? reader->column->dictionary : reader->vector->dictionary;
	out->heap = reader->column ? reader->column->heap : reader->vector->heap;
}

int pfs_host_gather_column(struct pfs_operator_backend *b, const struct pfs_run *run,
			   struct pfs_vector *out, const struct pfs_source *source,
			   struct pfs_ref ref)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions;
	struct gathering g = {.positions = &positions, .out = out};
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	pfs_cell_reader_open(&g.reader, source, ref);
	error = gather_all(host, run, &g, g.reader.kind);
	if (error)
		pfs_vector_free(run, out);
	else
		set_texts(out, &g.reader);
	pfs_positions_close(run, &positions);
	return error;
}

static int compute_one(struct pfs_host_operators *host, const struct pfs_run *run,
		       struct pfs_vector *out, const struct pfs_source *source,
		       const struct pfs_positions *positions, const struct pfs_program *program)
{
	struct pfs_evaluator evaluator;
	struct gathering g = {.positions = positions, .evaluator = &evaluator, .out = out};
	enum pfs_kind kind;
	bool is_truth;
	int error;

	PFS_TRY(pfs_program_check(&kind, &is_truth, program, source->table, source->tuples));
	PFS_TRY(pfs_evaluator_open(&evaluator, host, run, source, program));
	error = gather_all(host, run, &g, kind);
	if (!error && (kind == PFS_KIND_CODE || kind == PFS_KIND_PLACE))
		set_texts(out, &evaluator.prepared[0].reader);
	pfs_evaluator_close(&evaluator);
	return error;
}

int pfs_host_compute(struct pfs_operator_backend *b, const struct pfs_run *run,
		     struct pfs_tuples **out, const struct pfs_source *source,
		     const struct pfs_program *programs, size_t n_programs, bool alone)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	size_t before = alone ? 0 : pfs_source_computed(source);
	struct pfs_positions positions;
	struct pfs_tuples *tuples = NULL;
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	error = alone ? pfs_tuples_make(run, &tuples, positions.n, 0, n_programs)
		      : pfs_host_batch(host, run, &tuples, source, &positions, n_programs);
	for (size_t i = 0; !error && i < n_programs; i++)
		error = compute_one(host, run, &tuples->computed[before + i], source, &positions,
				    &programs[i]);
	pfs_positions_close(run, &positions);
	if (error)
		pfs_tuples_free(run, tuples);
	else
		*out = tuples;
	return error;
}

/* ---- filter ---- */

struct filtering {
	const struct pfs_positions *positions;
	struct pfs_evaluator evaluator;
	uint32_t *kept;	 /* kept tuples of each piece, from the piece's place on */
	uint32_t *count; /* by piece */
};

static int filter_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct filtering *f = context;
	uint32_t n = 0;

	for (uint64_t at = from; at < to; at += PFS_SPAN) {
		const uint64_t *truth;
		struct pfs_span span;

		pfs_positions_span(f->positions, &span, at, to);
		truth = pfs_evaluate_truth(&f->evaluator, worker, &span);
		PFS_TRY(atomic_load(&f->evaluator.error));
		for (uint32_t i = 0; i < span.n; i++) {
			if (pfs_bit(truth, i))
				f->kept[from + n++] = pfs_span_at(&span, i);
		}
	}
	f->count[from / PFS_PIECE] = n;
	return 0;
}

static int filter_all(struct filtering *f, struct pfs_host_operators *host,
		      const struct pfs_run *run, struct pfs_positions *kept)
{
	uint64_t n = f->positions->n, n_pieces = pfs_div_round_up(n, PFS_PIECE), total = 0;
	int error = pfs_run_alloc_raw(run, &f->count, n_pieces, sizeof(*f->count));

	if (!error)
		error = pfs_run_alloc_raw(run, &f->kept, n, sizeof(*f->kept));
	if (!error)
		error = pfs_host_for(host, run, n, PFS_PIECE, filter_piece, f);
	for (uint64_t i = 0; !error && i < n_pieces; i++) {
		memmove(f->kept + total, f->kept + i * PFS_PIECE, f->count[i] * sizeof(*f->kept));
		total += f->count[i];
	}
	*kept = (struct pfs_positions){.at = f->kept, .n = total, .allocated = n};
	pfs_run_free(run, f->count, n_pieces, sizeof(*f->count));
	return error;
}

int pfs_host_filter(struct pfs_operator_backend *b, const struct pfs_run *run,
		    struct pfs_tuples **out, const struct pfs_source *source,
		    const struct pfs_program *program)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct pfs_positions positions, kept = {0};
	struct filtering f = {.positions = &positions};
	int error;

	PFS_TRY(pfs_positions_open(&positions, host, run, source));
	error = pfs_evaluator_open(&f.evaluator, host, run, source, program);
	if (!error)
		error = filter_all(&f, host, run, &kept);
	if (!error)
		error = pfs_host_batch(host, run, out, source, &kept, 0);
	pfs_positions_close(run, &kept);
	pfs_evaluator_close(&f.evaluator);
	pfs_positions_close(run, &positions);
	return error;
}
