/* SPDX-License-Identifier: MIT */
/* Selection: a program over every row, whose truths become a set of rows. */
#include "gpu/host/families.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/evaluate.h"
#include "gpu/host/positions.h"

struct selection {
	struct pfs_reader reader;
	struct pfs_evaluator evaluator;
	bool has_program;
	uint64_t *bits;	 /* by row; NULL: only counted */
	uint32_t *list;	 /* read by list: those kept of each piece, from the piece's place on */
	uint32_t *count; /* of each piece */
};

/* words, of rows from `first` on, lose the rows for which the program is not true. */
static void test_words(struct selection *s, unsigned worker, uint64_t *words, uint32_t first,
		       uint32_t count)
{
	struct pfs_span span = {.first = first};
	const uint64_t *truth;

	span.n = (uint32_t)PFS_MIN(PFS_SPAN, s->reader.end - first);
	if (count == span.n || (s->evaluator.is_safe && count >= PFS_SPAN / 4)) {
		truth = pfs_evaluate_truth(&s->evaluator, worker, &span);
		for (unsigned w = 0; w < PFS_SPAN_WORDS; w++)
			words[w] &= truth[w];
		return;
	}
	(void)pfs_reader_span(&s->reader, &span, first, s->reader.end);
	truth = pfs_evaluate_truth(&s->evaluator, worker, &span);
	memset(words, 0, PFS_SPAN_WORDS * sizeof(*words));
	for (unsigned w = 0; w < PFS_SPAN_WORDS; w++) {
		for (uint64_t word = truth[w]; word; word &= word - 1) {
			uint32_t row = span.at[w * 64 + (unsigned)__builtin_ctzll(word)] - first;

			words[row / 64] |= UINT64_C(1) << row % 64;
		}
	}
}

static uint32_t select_span(struct selection *s, unsigned worker, uint32_t first)
{
	uint64_t words[PFS_SPAN_WORDS];
	uint32_t count = pfs_reader_words(&s->reader, words, first);
	size_t left = ((size_t)s->reader.source->table->n_rows - first + 63) / 64;

	if (count && s->has_program) {
		test_words(s, worker, words, first, count);
		count = 0;
		for (unsigned w = 0; w < PFS_SPAN_WORDS; w++)
			count += (uint32_t)__builtin_popcountll(words[w]);
	}
	if (s->bits)
		memcpy(s->bits + first / 64, words, PFS_MIN(left, PFS_SPAN_WORDS) * sizeof(*words));
	return count;
}

static uint32_t select_of_list(struct selection *s, unsigned worker, uint64_t at, uint64_t end)
{
	uint32_t *out = s->list ? s->list + (at - s->reader.begin) : NULL, n = 0;

	while (at < end) {
		struct pfs_span span;
		const uint64_t *truth;

		at = pfs_reader_span(&s->reader, &span, at, end);
		truth = s->has_program ? pfs_evaluate_truth(&s->evaluator, worker, &span) : NULL;
		for (uint32_t i = 0; i < span.n; i++) {
			if (truth && !pfs_bit(truth, i))
				continue;
			if (out)
				out[n] = span.at[i];
			n++;
		}
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
		return 0;
	}
	for (uint64_t at = from; at < to; at += PFS_SPAN)
		*count += select_span(s, worker, (uint32_t)(s->reader.begin + at));
	return 0;
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
	PFS_TRY(pfs_reader_open(&s->reader, source));
	return program ? pfs_evaluator_open(&s->evaluator, host, run, source, program) : 0;
}

int pfs_host_select_count(struct pfs_operator_backend *b, const struct pfs_run *run,
			  uint64_t *count, const struct pfs_source *source,
			  const struct pfs_program *program)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	struct selection s;
	int error;

	PFS_TRY(open_selection(&s, host, run, source, program));
	error = select_all(&s, host, run, count);
	pfs_evaluator_close(&s.evaluator);
	return error;
}

/* The kept rows as a set: what was written to bits or list becomes the set's, or is copied and
 * freed. */
static int make_set(const struct pfs_run *run, struct pfs_rows **out, const struct selection *s,
		    uint64_t total)
{
	const struct pfs_table *table = s->reader.source->table;
	struct pfs_rows all = {.form = PFS_ROWS_BITS, .n_rows = table->n_rows, .bits = s->bits};
	uint32_t *list;
	uint64_t next = 0;
	int error;

	if (s->reader.by_list)
		return pfs_rows_of_list(run, out, table->n_rows, s->list, (uint32_t)total);
	if (total == table->n_rows)
		return pfs_rows_of_range(run, out, table->n_rows, 0, table->n_rows);
	if (total > table->n_rows / 32)
		return pfs_rows_of_bits(run, out, table->n_rows, s->bits);
	PFS_TRY(pfs_run_alloc_raw(run, &list, total, sizeof(*list)));
	(void)pfs_rows_next(&all, &next, list, total);
	error = pfs_rows_of_list(run, out, table->n_rows, list, (uint32_t)total);
	pfs_run_free(run, list, total, sizeof(*list));
	return error;
}

int pfs_host_select_rows(struct pfs_operator_backend *b, const struct pfs_run *run,
			 struct pfs_rows **out, const struct pfs_source *source,
			 const struct pfs_program *program)
{
	struct pfs_host_operators *host = pfs_host_operators_of(b);
	size_t words = ((size_t)source->table->n_rows + 63) / 64, n_list;
	struct selection s;
	uint64_t total;
	int error;

	PFS_TRY(open_selection(&s, host, run, source, program));
	n_list = s.reader.by_list ? s.reader.end - s.reader.begin : 0;
	if (s.reader.by_list)
		error = pfs_run_alloc_raw(run, &s.list, n_list, sizeof(*s.list));
	else
		error = pfs_run_alloc(run, &s.bits, words, sizeof(*s.bits));
	if (!error)
		error = select_all(&s, host, run, &total);
	if (!error)
		error = make_set(run, out, &s, total);
	pfs_run_free(run, s.list, n_list, sizeof(*s.list));
	pfs_run_free(run, s.bits, words, sizeof(*s.bits));
	pfs_evaluator_close(&s.evaluator);
	return error;
}
