/* SPDX-License-Identifier: MIT */
/* Selection: runs a program over every row, and makes a set of the rows for which it is true. */
#include "gpu/host/families.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/evaluate.h"
#include "gpu/host/lanes.h"
#include "gpu/host/positions.h"

struct selection {
	struct pfs_source_reader reader;
	struct pfs_evaluator evaluator;
	bool has_program;
	uint64_t *bits;	 /* by row from the reader's first on */
	/* for reading by list: the kept rows of each piece, from the piece's place on */
	uint32_t *list;
	uint32_t *count; /* by piece: how many rows it has kept */
};

static uint32_t select_span(struct selection *s, unsigned worker, uint32_t first)
{
	uint64_t words[PFS_SPAN_WORDS];
	size_t left = ((size_t)s->reader.to - first + 63) / 64;
	uint32_t count =
		s->has_program ? pfs_evaluate_words(&s->evaluator, worker, &s->reader, words, first)
			       : pfs_source_reader_words(&s->reader, words, first);

	memcpy(s->bits + (first - s->reader.begin) / 64, words,
	       PFS_MIN(left, PFS_SPAN_WORDS) * sizeof(*words));
	return count;
}

static uint32_t select_of_list(struct selection *s, unsigned worker, uint64_t at, uint64_t end)
{
	uint32_t *out = s->list + (at - s->reader.begin), n = 0;

	while (at < end && !atomic_load(&s->evaluator.error)) {
		uint32_t here = (uint32_t)PFS_MIN(PFS_SPAN, end - at);

		memcpy(out + n, s->reader.source->rows->list + at, here * sizeof(*out));
		n += s->has_program ? pfs_evaluate_list(&s->evaluator, worker, out + n, here)
				    : here;
		at += here;
	}
	return n;
}

static int select_piece(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	struct selection *s = context;
	uint32_t *count = &s->count[from / PFS_PIECE];

	*count = 0;
	if (s->reader.by_list) {
		*count = select_of_list(s, worker, s->reader.begin + from, s->reader.begin + to);
		return atomic_load(&s->evaluator.error);
	}
	for (uint64_t at = from; at < to && !atomic_load(&s->evaluator.error); at += PFS_SPAN)
		*count += select_span(s, worker, (uint32_t)(s->reader.begin + at));
	return atomic_load(&s->evaluator.error);
}

/* Runs the pieces; *total = how many rows are kept. */
static int select_all(struct selection *s, struct pfs_host_operators *host,
		      const struct pfs_run *run, uint64_t *total)
{
	uint64_t n = s->reader.end - s->reader.begin, n_pieces = pfs_div_round_up(n, PFS_PIECE);
	uint32_t *kept = s->list;
	int error;

	PFS_TRY(pfs_run_alloc_raw(run, &s->count, n_pieces, sizeof(*s->count)));
	error = pfs_host_for(host, run, n, PFS_PIECE, select_piece, s);
	*total = 0;
	for (uint64_t i = 0; !error && i < n_pieces; i++) {
		if (kept)
			memmove(kept + *total, s->list + i * PFS_PIECE,
				s->count[i] * sizeof(*kept));
		*total += s->count[i];
	}
	pfs_run_free(run, s->count, n_pieces, sizeof(*s->count));
	return error;
}

static int open_selection(struct selection *s, struct pfs_host_operators *host,
			  const struct pfs_run *run, const struct pfs_source *source,
			  const struct pfs_program *program)
{
	*s = (struct selection){.has_program = program != NULL};
	PFS_TRY(pfs_source_reader_open(&s->reader, source));
	return program ? pfs_evaluator_open(&s->evaluator, host, run, source, program) : 0;
}

/* Lists the rows of the bits, which are `total`. */
static int list_bits(const struct pfs_run *run, struct pfs_rows **out, const struct selection *s,
		     uint64_t total)
{
	size_t n = ((size_t)s->reader.to - s->reader.begin + 63) / 64;
	uint32_t *list, buffer[PFS_SPAN], at = 0;
	int error;

	PFS_TRY(pfs_run_alloc_raw(run, &list, total, sizeof(*list)));
	for (size_t w = 0; at < total && w < n; w += PFS_SPAN_WORDS) {
		uint32_t here = pfs_lanes()->list_bits(buffer, s->bits + w,
						       PFS_MIN(n - w, PFS_SPAN_WORDS),
						       (uint32_t)(s->reader.begin + w * 64));

		memcpy(list + at, buffer, here * sizeof(*list));
		at += here;
	}
	error = pfs_rows_of_list(run, out, s->reader.source->table->n_rows, list, (uint32_t)total);
	pfs_run_free(run, list, total, sizeof(*list));
	return error;
}

/* Makes a set of the kept rows; what was written to bits or list is copied. */
static int make_set(const struct pfs_run *run, struct pfs_rows **out, const struct selection *s,
		    uint64_t total)
{
	uint32_t n_rows = s->reader.source->table->n_rows;

	if (s->reader.by_list)
		return pfs_rows_of_list(run, out, n_rows, s->list, (uint32_t)total);
	if (total == s->reader.to - s->reader.from)
		return pfs_rows_of_range(run, out, n_rows, s->reader.from, s->reader.to);
	if (total > (s->reader.to - s->reader.from) / 32 && total > n_rows / 1024)
		return pfs_rows_of_bits(run, out, n_rows, s->bits, (uint32_t)s->reader.begin,
					s->reader.to);
	return list_bits(run, out, s, total);
}

int pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
			 struct pfs_rows **out, const struct pfs_source *source,
			 const struct pfs_program *program)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	size_t words = 0, n_list = 0;
	struct selection s;
	uint64_t total;
	int error;

	PFS_TRY(open_selection(&s, host, run, source, program));
	if (s.reader.by_list) {
		n_list = s.reader.end - s.reader.begin;
		error = pfs_run_alloc_raw(run, &s.list, n_list, sizeof(*s.list));
	} else {
		words = ((size_t)s.reader.to - s.reader.begin + 63) / 64;
		error = pfs_run_alloc_raw(run, &s.bits, words, sizeof(*s.bits));
	}
	if (!error)
		error = select_all(&s, host, run, &total);
	if (!error)
		error = make_set(run, out, &s, total);
	pfs_run_free(run, s.list, n_list, sizeof(*s.list));
	pfs_run_free(run, s.bits, words, sizeof(*s.bits));
	pfs_evaluator_close(&s.evaluator);
	return error;
}
