/* SPDX-License-Identifier: MIT */
#include "gpu/host/evaluate.h"

#include <string.h>

#include "base/checked.h"

/* Returns how many values a step takes. */
static unsigned operands_of(enum pfs_op op)
{
	switch (op) {
	case PFS_OP_COLUMN:
	case PFS_OP_CONSTANT:
	case PFS_OP_BITS:
		return 0;
	case PFS_OP_NEGATE:
	case PFS_OP_BIT_NOT:
	case PFS_OP_TO_INTEGER:
	case PFS_OP_TO_REAL:
	case PFS_OP_LENGTH:
	case PFS_OP_IN:
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
	case PFS_OP_LIKE:
	case PFS_OP_GLOB:
	case PFS_OP_PREFIX:
	case PFS_OP_SUFFIX:
	case PFS_OP_CONTAINS:
	case PFS_OP_NOT:
		return 1;
	case PFS_OP_BETWEEN:
	case PFS_OP_CHOOSE:
		return 3;
	default:
		return 2;
	}
}

/* Returns true if the step makes NULL of NULL, so that a table by code is complete. */
static bool has_table(const struct pfs_step *step)
{
	if (step->op == PFS_OP_IS || step->op == PFS_OP_IS_NOT)
		return false;
	if (step->op == PFS_OP_IN)
		return step->n_list > 0;
	return (step->op >= PFS_OP_EQ && step->op <= PFS_OP_BETWEEN) ||
	       (step->op >= PFS_OP_LIKE && step->op <= PFS_OP_CONTAINS);
}

/* ---- tables by code ---- */

struct table_job {
	const struct pfs_step *step;
	struct pfs_prepared *prepared;
	const struct pfs_run *run;
	const struct pfs_dictionary *dictionary;
	const struct pfs_constant *others[2];
};

static int fill_table(void *context, unsigned worker, uint64_t from, uint64_t to)
{
	const struct table_job *job = context;
	struct pfs_run_work work = {.run = job->run};

	(void)worker;
	for (uint64_t code = from; code < to; code++) {
		size_t len;
		const uint8_t *text = pfs_dictionary_text(job->dictionary, (uint32_t)code, &len);

		job->prepared->by_code[code] =
			pfs_text_truth(job->step, job->prepared, job->others, text, len, &work);
	}
	return work.error;
}

/* If step i compares a CODE with constants, computes its result once for each code, provided that
 * this is less work than once for each row. */
static int prepare_table(struct pfs_evaluator *e, size_t i, uint64_t n_rows)
{
	const struct pfs_step *steps = e->program->steps;
	unsigned others = operands_of(steps[i].op) - 1;
	struct table_job job = {.step = &steps[i], .prepared = &e->prepared[i], .run = e->run};
	const struct pfs_cell_reader *reader;

	if (i < others + 1 || steps[i - others - 1].op != PFS_OP_COLUMN)
		return 0;
	for (unsigned k = 0; k < others; k++) {
		if (steps[i - others + k].op != PFS_OP_CONSTANT)
			return 0;
		job.others[k] = &steps[i - others + k].constant;
	}
	reader = &e->prepared[i - others - 1].reader;
	if (reader->kind != PFS_KIND_CODE)
		return 0;
	job.dictionary = reader->column ? reader->column->dictionary : reader->vector->dictionary;
	if (job.dictionary->n > n_rows)
		return 0;
	job.prepared->n_codes = job.dictionary->n;
	PFS_TRY(pfs_run_alloc_raw(e->run, &job.prepared->by_code, job.prepared->n_codes, 1));
	return pfs_host_for(e->host, e->run, job.dictionary->n, PFS_SPAN, fill_table, &job);
}

/* ---- opening ---- */

/* The texts that step i, an EQ, compares are names: a column's, with a constant. */
static bool is_name(const struct pfs_evaluator *e, size_t i)
{
	const struct pfs_step *steps = e->program->steps;
	const struct pfs_cell_reader *reader;

	if (i < 2 || steps[i].op != PFS_OP_EQ || steps[i].collation != PFS_BINARY ||
	    steps[i - 1].op != PFS_OP_CONSTANT || steps[i - 1].constant.type != PFS_IS_TEXT ||
	    steps[i - 2].op != PFS_OP_COLUMN)
		return false;
	reader = &e->prepared[i - 2].reader;
	return reader->kind == PFS_KIND_PLACE &&
	       (reader->column ? reader->column->heap : reader->vector->heap)->length_size == 1;
}

/* Takes what step i looks for in texts apart. */
static int prepare_match(struct pfs_evaluator *e, size_t i)
{
	const struct pfs_step *step = &e->program->steps[i];
	const struct pfs_constant *constant = &step->constant;

	if (is_name(e, i))
		constant = &step[-1].constant;
	else if (step->op < PFS_OP_LIKE || step->op > PFS_OP_CONTAINS || step->escape)
		return 0;
	e->prepared[i].has_match = true;
	return pfs_text_match_init(&e->prepared[i].match, step->op, constant->text, constant->len);
}

static int prepare(struct pfs_evaluator *e, size_t i, uint64_t n_rows)
{
	const struct pfs_step *step = &e->program->steps[i];

	if (step->op == PFS_OP_COLUMN) {
		pfs_cell_reader_open(&e->prepared[i].reader, e->source, step->ref);
		e->is_safe &= pfs_cell_reader_is_safe(&e->prepared[i].reader);
		return 0;
	}
	if (step->op == PFS_OP_BITS) {
		/* The reader finds the row that a position stands for; a table may have no columns.
		 */
		e->prepared[i].reader.rows =
			e->source->table ? NULL : &e->source->tuples->tables[step->ref.table];
		return 0;
	}
	if (step->op == PFS_OP_IN)
		PFS_TRY(pfs_prepare_in(e->run, &e->prepared[i], step));
	PFS_TRY(prepare_match(e, i));
	return has_table(step) ? prepare_table(e, i, n_rows) : 0;
}

static size_t depth_of(const struct pfs_program *program)
{
	size_t depth = 0, most = 1;

	for (size_t i = 0; i < program->n; i++) {
		depth = depth + 1 - operands_of(program->steps[i].op);
		most = PFS_MAX(most, depth);
	}
	return most;
}

int pfs_evaluator_open(struct pfs_evaluator *e, struct pfs_host_operators *host,
		       const struct pfs_run *run, const struct pfs_source *source,
		       const struct pfs_program *program)
{
	struct pfs_source_reader reader;
	int error;

	*e = (struct pfs_evaluator){
		.host = host, .run = run, .source = source, .program = program, .is_safe = true};
	e->depth = depth_of(program);
	e->n_slots = e->depth * pfs_host_workers(host);
	PFS_TRY(pfs_source_reader_open(&reader, source));
	error = pfs_run_alloc(run, &e->prepared, program->n, sizeof(*e->prepared));
	if (!error)
		error = pfs_run_alloc_raw(run, &e->slots, e->n_slots, sizeof(*e->slots));
	for (size_t i = 0; !error && i < program->n; i++)
		error = prepare(e, i, pfs_source_reader_bound(&reader));
	if (error)
		pfs_evaluator_close(e);
	return error;
}

void pfs_evaluator_close(struct pfs_evaluator *e)
{
	for (size_t i = 0; e->prepared && i < e->program->n; i++) {
		struct pfs_prepared *prepared = &e->prepared[i];

		pfs_run_free(e->run, prepared->sorted, e->program->steps[i].n_list,
			     sizeof(*prepared->sorted));
		pfs_run_free(e->run, prepared->by_code, prepared->n_codes, 1);
		pfs_text_match_finish(&prepared->match);
	}
	if (e->prepared)
		pfs_run_free(e->run, e->prepared, e->program->n, sizeof(*e->prepared));
	pfs_run_free(e->run, e->slots, e->n_slots, sizeof(*e->slots));
	*e = (struct pfs_evaluator){0};
}

/* ---- running ---- */

static void push_column(struct pfs_slot *slot, const struct pfs_cell_reader *reader,
			const struct pfs_span *span)
{
	pfs_cells_read(reader, span, &slot->cells);
	slot->reader = reader;
	slot->type = reader->kind == PFS_KIND_CODE || reader->kind == PFS_KIND_PLACE
			     ? PFS_SLOT_IS_TEXT
			     : PFS_SLOT_IS_NUMBER;
	if (reader->kind == PFS_KIND_REAL) {
		slot->cells.has_reals = true;
		memset(slot->cells.is_real, 0xff, sizeof(slot->cells.is_real));
	}
}

static void push_bits(struct pfs_slot *slot, const struct pfs_prepared *prepared,
		      const struct pfs_rows *bits, const struct pfs_span *span)
{
	const struct pfs_tuple_table *table = prepared->reader.rows;

	slot->type = PFS_SLOT_IS_TRUTH;
	slot->cells.has_nulls = false;
	if (!table && !span->at && span->first % 64 == 0) {
		pfs_rows_words(bits, slot->truth, span->first / 64, PFS_SPAN_WORDS);
		return;
	}
	memset(slot->truth, 0, sizeof(slot->truth));
	for (uint32_t i = 0; i < span->n; i++) {
		uint32_t row = pfs_span_at(span, i);

		if (table)
			row = table->rows ? table->rows[row] : table->from + row;
		slot->truth[i / 64] |= (uint64_t)pfs_rows_has(bits, row) << i % 64;
	}
}

/* Looks the results up by code. */
static void look_up(struct pfs_slot *slot, const struct pfs_prepared *prepared, uint32_t n)
{
	const struct pfs_cells *cells = &slot->cells;
	uint64_t any = 0;

	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t truth = 0, unknown = 0;

		for (uint32_t k = 0; k < 64 && w * 64 + k < n; k++) {
			uint64_t found = cells->codes[w * 64 + k] < prepared->n_codes
						 ? prepared->by_code[cells->codes[w * 64 + k]]
						 : 2;

			truth |= (found & 1) << k;
			unknown |= (found >> 1) << k;
		}
		if (cells->has_nulls)
			unknown |= cells->nulls[w];
		slot->truth[w] = truth & ~unknown;
		slot->cells.nulls[w] = unknown;
		any |= unknown;
	}
	slot->cells.has_nulls = any != 0;
	slot->type = PFS_SLOT_IS_TRUTH;
}

static void test_null(struct pfs_slot *slot, bool wanted, uint32_t n)
{
	bool all = slot->type == PFS_SLOT_IS_CONSTANT && slot->constant->type == PFS_IS_NULL;
	bool some = slot->type != PFS_SLOT_IS_CONSTANT && slot->cells.has_nulls;

	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t nulls = all ? UINT64_MAX : some ? slot->cells.nulls[w] : 0;

		slot->truth[w] = wanted ? nulls : ~nulls;
	}
	slot->type = PFS_SLOT_IS_TRUTH;
	slot->cells.has_nulls = false;
}

static void combine(struct pfs_slot *slots, enum pfs_op op, uint32_t n)
{
	struct pfs_slot *a = &slots[0], *b = &slots[1];
	uint64_t any = 0;

	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t a_null = a->cells.has_nulls ? a->cells.nulls[w] : 0;
		uint64_t b_null = b->cells.has_nulls ? b->cells.nulls[w] : 0;
		uint64_t a_false = ~(a->truth[w] | a_null), b_false = ~(b->truth[w] | b_null);
		uint64_t is_true, is_false;

		if (op == PFS_OP_AND) {
			is_true = a->truth[w] & b->truth[w];
			is_false = a_false | b_false;
		} else {
			is_true = a->truth[w] | b->truth[w];
			is_false = a_false & b_false;
		}
		a->truth[w] = is_true;
		a->cells.nulls[w] = ~(is_true | is_false);
		any |= a->cells.nulls[w];
	}
	a->cells.has_nulls = any != 0;
}

static void invert(struct pfs_slot *slot, uint32_t n)
{
	for (uint32_t w = 0; w * 64 < n; w++)
		slot->truth[w] =
			~(slot->truth[w] | (slot->cells.has_nulls ? slot->cells.nulls[w] : 0));
}

/* Applies a step to its operands, `slots`. */
static void apply(const struct pfs_step *step, const struct pfs_prepared *prepared,
		  struct pfs_slot *slots, const struct pfs_span *span, struct pfs_run_work *work)
{
	uint32_t n = span->n;

	switch (step->op) {
	case PFS_OP_COLUMN:
		push_column(slots, &prepared->reader, span);
		return;
	case PFS_OP_CONSTANT:
		slots->type = PFS_SLOT_IS_CONSTANT;
		slots->constant = &step->constant;
		slots->cells.has_nulls = false;
		return;
	case PFS_OP_BITS:
		push_bits(slots, prepared, step->bits, span);
		return;
	case PFS_OP_IS_NULL:
	case PFS_OP_NOT_NULL:
		test_null(slots, step->op == PFS_OP_IS_NULL, n);
		return;
	case PFS_OP_AND:
	case PFS_OP_OR:
		pfs_slot_to_truth(&slots[0], n);
		pfs_slot_to_truth(&slots[1], n);
		combine(slots, step->op, n);
		return;
	case PFS_OP_NOT:
		pfs_slot_to_truth(slots, n);
		invert(slots, n);
		return;
	case PFS_OP_LENGTH:
		pfs_slot_length(slots, n);
		return;
	case PFS_OP_CHOOSE:
		pfs_slot_choose(slots, n);
		return;
	case PFS_OP_NEGATE:
	case PFS_OP_BIT_NOT:
	case PFS_OP_TO_INTEGER:
	case PFS_OP_TO_REAL:
		pfs_slot_convert(slots, step->op, n);
		return;
	default:
		break;
	}
	if (step->op < PFS_OP_EQ)
		pfs_slot_arithmetic(slots, step->op, n);
	else if (prepared->by_code)
		look_up(slots, prepared, n);
	else if (step->op == PFS_OP_IN)
		pfs_slot_in(slots, step, prepared, n);
	else if (step->op <= PFS_OP_BETWEEN && !prepared->has_match)
		pfs_slot_compare(slots, step, n);
	else
		pfs_slot_match(slots, step, prepared, n, work);
}

struct pfs_slot *pfs_evaluate(struct pfs_evaluator *e, unsigned worker, const struct pfs_span *span)
{
	struct pfs_slot *slots = e->slots + worker * e->depth;
	struct pfs_run_work work = {.run = e->run};
	size_t n = 0;

	for (size_t i = 0; i < e->program->n; i++) {
		const struct pfs_step *step = &e->program->steps[i];

		n -= operands_of(step->op);
		apply(step, &e->prepared[i], slots + n, span, &work);
		n++;
	}
	if (work.error)
		atomic_store(&e->error, work.error);
	return slots;
}

const uint64_t *pfs_evaluate_truth(struct pfs_evaluator *e, unsigned worker,
				   const struct pfs_span *span)
{
	struct pfs_slot *slot = pfs_evaluate(e, worker, span);

	pfs_slot_to_truth(slot, span->n);
	if (span->n % 64)
		slot->truth[span->n / 64] &= (UINT64_C(1) << span->n % 64) - 1;
	for (uint32_t w = (span->n + 63) / 64; w < PFS_SPAN_WORDS; w++)
		slot->truth[w] = 0;
	return slot->truth;
}

/* Clears the bits of rows, from `first` on, for which the program is not true. */
static void test_words(struct pfs_evaluator *e, unsigned worker, const struct pfs_source_reader *reader,
		       uint64_t *words, uint32_t first, uint32_t count)
{
	struct pfs_span span = {.first = first};
	const uint64_t *truth;

	span.n = (uint32_t)PFS_MIN(PFS_SPAN, reader->end - first);
	if (count == span.n || (e->is_safe && count >= PFS_SPAN / 4)) {
		truth = pfs_evaluate_truth(e, worker, &span);
		for (unsigned w = 0; w < PFS_SPAN_WORDS; w++)
			words[w] &= truth[w];
		return;
	}
	(void)pfs_source_reader_span(reader, &span, first, reader->end);
	truth = pfs_evaluate_truth(e, worker, &span);
	memset(words, 0, PFS_SPAN_WORDS * sizeof(*words));
	for (unsigned w = 0; w < PFS_SPAN_WORDS; w++) {
		for (uint64_t word = truth[w]; word; word &= word - 1) {
			uint32_t row = span.at[w * 64 + (unsigned)__builtin_ctzll(word)] - first;

			words[row / 64] |= UINT64_C(1) << row % 64;
		}
	}
}

uint32_t pfs_evaluate_words(struct pfs_evaluator *e, unsigned worker,
			    const struct pfs_source_reader *reader, uint64_t *words, uint32_t first)
{
	uint32_t count = pfs_source_reader_words(reader, words, first), kept = 0;

	if (!count)
		return 0;
	test_words(e, worker, reader, words, first, count);
	for (unsigned w = 0; w < PFS_SPAN_WORDS; w++)
		kept += (uint32_t)__builtin_popcountll(words[w]);
	return kept;
}
