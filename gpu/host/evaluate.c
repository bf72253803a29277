/* SPDX-License-Identifier: MIT */
#include "gpu/host/evaluate.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/lanes.h"

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

/* Looks the results up in the table by code. */
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

/* Applies a step to its operands, `slots`. The first slot becomes the result. */
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

static void test_range(struct pfs_slot *slot, const struct pfs_prepared *range,
		       const struct pfs_span *span)
{
	size_t words = pfs_div_round_up(span->n, 64);

	slot->type = PFS_SLOT_IS_TRUTH;
	slot->cells.has_nulls = false;
	if (range->low > range->high)
		memset(slot->truth, 0, words * sizeof(*slot->truth));
	else
		pfs_lanes()->between(slot->truth, range->reader.column, span->at, span->first,
				     span->n, range->low, range->high);
	for (size_t w = 0; range->is_contrary && w < words; w++)
		slot->truth[w] = ~slot->truth[w];
}

/* Runs the steps from..to, and returns the one value that they leave. */
static struct pfs_slot *run_steps(struct pfs_evaluator *e, struct pfs_slot *slots,
				  const struct pfs_span *span, size_t from, size_t to)
{
	struct pfs_run_work work = {.run = e->run};
	size_t n = 0;

	for (size_t i = from; i < to; i++) {
		const struct pfs_step *step = &e->program->steps[i];
		const struct pfs_prepared *prepared = &e->prepared[i];

		n -= pfs_step_operands(step->op);
		if (prepared->has_range)
			test_range(slots + n, prepared, span);
		else if (!prepared->is_within)
			apply(step, prepared, slots + n, span, &work);
		n++;
		if (work.error)
			break; /* what the steps read may have changed */
	}
	if (work.error) {
		atomic_store(&e->error, work.error);
		memset(slots->truth, 0, sizeof(slots->truth));
		slots->type = PFS_SLOT_IS_TRUTH;
		slots->cells.has_nulls = false;
	}
	return slots;
}

static struct pfs_slot *slots_of(const struct pfs_evaluator *e, unsigned worker)
{
	return e->slots + worker * e->depth;
}

struct pfs_slot *pfs_evaluate(struct pfs_evaluator *e, unsigned worker, const struct pfs_span *span)
{
	return run_steps(e, slots_of(e, worker), span, 0, e->program->n);
}

struct pfs_slot *pfs_evaluate_with(struct pfs_evaluator *e, struct pfs_slot *slots,
				   const struct pfs_span *span)
{
	return run_steps(e, slots, span, 0, e->program->n);
}

/* As run_steps, but returns the value as a truth. Bits past the span are 0. */
static const uint64_t *run_truth(struct pfs_evaluator *e, unsigned worker,
				 const struct pfs_span *span, size_t from, size_t to)
{
	struct pfs_slot *slot = run_steps(e, slots_of(e, worker), span, from, to);

	pfs_slot_to_truth(slot, span->n);
	if (span->n % 64)
		slot->truth[span->n / 64] &= (UINT64_C(1) << span->n % 64) - 1;
	for (uint32_t w = (span->n + 63) / 64; w < PFS_SPAN_WORDS; w++)
		slot->truth[w] = 0;
	return slot->truth;
}

const uint64_t *pfs_evaluate_truth(struct pfs_evaluator *e, unsigned worker,
				   const struct pfs_span *span)
{
	return run_truth(e, worker, span, 0, e->program->n);
}

/* Keeps the listed rows for which the part is true. Returns how many. */
static uint32_t keep_listed(struct pfs_evaluator *e, unsigned worker,
			    const struct pfs_program_part *part, uint32_t *rows, uint32_t n)
{
	const struct pfs_span span = {.n = n, .first = rows[0], .at = rows};
	const uint64_t *truth = run_truth(e, worker, &span, part->from, part->to);
	uint32_t kept = 0;

	for (uint32_t w = 0; w * 64 < n; w++)
		for (uint64_t word = truth[w]; word; word &= word - 1)
			rows[kept++] = rows[w * 64 + (uint32_t)__builtin_ctzll(word)];
	return kept;
}

uint32_t pfs_evaluate_list(struct pfs_evaluator *e, unsigned worker, uint32_t *rows, uint32_t n)
{
	for (unsigned i = 0; i < e->n_parts && n; i++)
		n = keep_listed(e, worker, &e->parts[i], rows, n);
	return n;
}

/* Clears the bits of rows for which the part is not true. The words stand for n rows from `first`
 * on, and have `count` bits set. Returns how many are left. */
static uint32_t test_words(struct pfs_evaluator *e, unsigned worker,
			   const struct pfs_program_part *part, uint64_t *words, uint32_t first,
			   uint32_t n, uint32_t count)
{
	struct pfs_span span = {.first = first, .n = n};
	uint32_t rows[PFS_SPAN], kept = 0;

	if (count == n || (part->is_safe && count >= PFS_SPAN / 4)) {
		const uint64_t *truth = run_truth(e, worker, &span, part->from, part->to);

		for (unsigned w = 0; w < PFS_SPAN_WORDS; w++) {
			words[w] &= truth[w];
			kept += (uint32_t)__builtin_popcountll(words[w]);
		}
		return kept;
	}
	count = pfs_lanes()->list_bits(rows, words, PFS_SPAN_WORDS, first);
	kept = keep_listed(e, worker, part, rows, count);
	memset(words, 0, PFS_SPAN_WORDS * sizeof(*words));
	for (uint32_t i = 0; i < kept; i++)
		words[(rows[i] - first) / 64] |= UINT64_C(1) << (rows[i] - first) % 64;
	return kept;
}

uint32_t pfs_evaluate_words(struct pfs_evaluator *e, unsigned worker,
			    const struct pfs_source_reader *reader, uint64_t *words, uint32_t first)
{
	uint32_t n = (uint32_t)PFS_MIN(PFS_SPAN, reader->end - first);
	uint32_t count = pfs_source_reader_words(reader, words, first);

	for (unsigned i = 0; i < e->n_parts && count; i++)
		count = test_words(e, worker, &e->parts[i], words, first, n, count);
	return count;
}
