/* SPDX-License-Identifier: MIT */
/* Comparisons, lists and patterns. */
#include "gpu/host/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "gpu/host/lanes.h"
#include "gpu/host/number.h"
#include "gpu/host/text.h"

#define LINEAR_MAX 16u /* up to so many constants of a list are compared one by one */

/* ---- one value beside another ---- */

struct value {
	enum { NUMBER, TEXT, NOTHING } class;
	struct pfs_number number;
	const uint8_t *text;
	size_t len;
};

static struct value value_of_constant(const struct pfs_constant *c)
{
	struct value v = {.class = NUMBER};

	if (c->type == PFS_IS_NULL)
		v.class = NOTHING;
	else if (c->type == PFS_IS_INTEGER)
		v.number.integer = c->integer;
	else if (c->type == PFS_IS_REAL)
		v.number = (struct pfs_number){.is_real = true, .real = c->real};
	else
		v = (struct value){.class = TEXT, .text = (const uint8_t *)c->text, .len = c->len};
	return v;
}

static struct value value_at(const struct pfs_slot *slot, uint32_t i)
{
	const struct pfs_cells *cells = &slot->cells;
	struct value v = {.class = NUMBER};

	if (slot->type == PFS_SLOT_IS_CONSTANT)
		return value_of_constant(slot->constant);
	if (cells->has_nulls && pfs_bit(cells->nulls, i)) {
		v.class = NOTHING;
	} else if (slot->type == PFS_SLOT_IS_TEXT) {
		v.class = TEXT;
		v.text = pfs_cell_text(slot->reader, cells->codes[i], &v.len);
	} else if (slot->type == PFS_SLOT_IS_TRUTH) {
		v.number.integer = pfs_bit(slot->truth, i);
	} else if (cells->has_reals && pfs_bit(cells->is_real, i)) {
		v.number = (struct pfs_number){.is_real = true, .real = cells->reals[i]};
	} else {
		v.number.integer = cells->integers[i];
	}
	return v;
}

/* Compares values that are not NULL. Numbers come before texts. */
static int compare_values(enum pfs_collation collation, const struct value *a,
			  const struct value *b)
{
	if (a->class != b->class)
		return a->class < b->class ? -1 : 1;
	if (a->class == NUMBER)
		return pfs_compare_numbers(a->number, b->number);
	return pfs_text_compare(collation, a->text, a->len, b->text, b->len);
}

/* Returns 0, 1, or 2 for NULL. */
static uint8_t compare_one(enum pfs_op op, enum pfs_collation collation, const struct value *a,
			   const struct value *b)
{
	bool is_null = a->class == NOTHING || b->class == NOTHING;

	if (is_null && (op == PFS_OP_IS || op == PFS_OP_IS_NOT))
		return (a->class == b->class) == (op == PFS_OP_IS);
	return is_null ? 2 : pfs_op_holds(op, compare_values(collation, a, b));
}

/* ---- spans ---- */

static void one_by_one(struct pfs_slot *out, const struct pfs_slot *a, const struct pfs_slot *b,
		       enum pfs_op op, enum pfs_collation collation, uint32_t n)
{
	uint64_t truth[PFS_SPAN_WORDS] = {0}, nulls[PFS_SPAN_WORDS] = {0}, any = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct value x = value_at(a, i), y = value_at(b, i);
		uint64_t found = compare_one(op, collation, &x, &y);

		truth[i / 64] |= (found & 1) << i % 64;
		nulls[i / 64] |= (found >> 1) << i % 64;
		any |= found >> 1;
	}
	memcpy(out->truth, truth, sizeof(truth));
	memcpy(out->cells.nulls, nulls, sizeof(nulls));
	out->cells.has_nulls = any != 0;
}

/* Returns the comparison that lanes have: op is this one or, with *is_contrary, its contrary. */
static enum pfs_order_op lanes_op(enum pfs_op op, bool *is_contrary)
{
	*is_contrary = op == PFS_OP_NE || op == PFS_OP_LE || op == PFS_OP_GE;
	if (op == PFS_OP_EQ || op == PFS_OP_NE)
		return PFS_LANES_EQ;
	return op == PFS_OP_LT || op == PFS_OP_GE ? PFS_LANES_LT : PFS_LANES_GT;
}

static bool is_exact_as_real(int64_t integer)
{
	return integer >= -(INT64_C(1) << 53) && integer <= INT64_C(1) << 53;
}

static bool all_real(const struct pfs_slot *slot, uint32_t n)
{
	for (uint32_t w = 0; w < n / 64; w++) {
		if (slot->cells.is_real[w] != UINT64_MAX)
			return false;
	}
	return n % 64 == 0 || slot->cells.is_real[n / 64] + 1 == 0 ||
	       (~slot->cells.is_real[n / 64] << (64 - n % 64)) == 0;
}

/* Compares by vectors. Returns false if the sides have different types. */
static bool by_lanes(struct pfs_slot *out, const struct pfs_slot *a, const struct pfs_slot *b,
		     enum pfs_op op, uint32_t n)
{
	const struct pfs_lanes *lanes = pfs_lanes();
	const struct pfs_constant *c = b->type == PFS_SLOT_IS_CONSTANT ? b->constant : NULL;
	bool is_contrary;
	enum pfs_order_op order = lanes_op(op, &is_contrary);
	uint64_t words[PFS_SPAN_WORDS];

	if (a->type != PFS_SLOT_IS_NUMBER)
		return false;
	if (!c) {
		if (b->type != PFS_SLOT_IS_NUMBER || a->cells.has_reals || b->cells.has_reals)
			return false;
		lanes->compare_both(words, a->cells.integers, b->cells.integers, n, order);
	} else if (!a->cells.has_reals && c->type == PFS_IS_INTEGER) {
		lanes->compare(words, a->cells.integers, n, order, c->integer);
	} else if (a->cells.has_reals && all_real(a, n) && c->type == PFS_IS_REAL) {
		lanes->compare_real(words, a->cells.reals, n, order, c->real);
	} else if (a->cells.has_reals && all_real(a, n) && c->type == PFS_IS_INTEGER &&
		   is_exact_as_real(c->integer)) {
		lanes->compare_real(words, a->cells.reals, n, order, (double)c->integer);
	} else {
		return false;
	}
	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t a_null = a->cells.has_nulls ? a->cells.nulls[w] : 0;
		uint64_t b_null = !c && b->cells.has_nulls ? b->cells.nulls[w] : 0;

		out->truth[w] = (is_contrary ? ~words[w] : words[w]) & ~(a_null | b_null);
		out->cells.nulls[w] = a_null | b_null;
	}
	out->cells.has_nulls = a->cells.has_nulls || (!c && b->cells.has_nulls);
	return true;
}

static void compare_slots(struct pfs_slot *out, const struct pfs_slot *a, const struct pfs_slot *b,
			  enum pfs_op op, enum pfs_collation collation, uint32_t n)
{
	bool may_be_null = op == PFS_OP_IS || op == PFS_OP_IS_NOT;

	if (may_be_null || !by_lanes(out, a, b, op, n))
		one_by_one(out, a, b, op, collation, n);
}

/* The operands are value, low and high. The comparison with `low` replaces low, since the value is
 * still needed. */
static void compare_between(struct pfs_slot *slots, enum pfs_collation collation, uint32_t n)
{
	struct pfs_slot *value = &slots[0], *low = &slots[1], *high = &slots[2];
	uint64_t any = 0;

	compare_slots(low, value, low, PFS_OP_GE, collation, n);
	compare_slots(high, value, high, PFS_OP_LE, collation, n);
	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t low_null = low->cells.has_nulls ? low->cells.nulls[w] : 0;
		uint64_t high_null = high->cells.has_nulls ? high->cells.nulls[w] : 0;
		uint64_t is_true = low->truth[w] & high->truth[w];
		uint64_t is_false = ~(low->truth[w] | low_null) | ~(high->truth[w] | high_null);

		value->truth[w] = is_true;
		value->cells.nulls[w] = ~(is_true | is_false);
		any |= value->cells.nulls[w];
	}
	value->cells.has_nulls = any != 0;
	value->type = PFS_SLOT_IS_TRUTH;
}

void pfs_slot_compare(struct pfs_slot *slots, const struct pfs_step *step, uint32_t n)
{
	if (step->op == PFS_OP_BETWEEN) {
		compare_between(slots, step->collation, n);
		return;
	}
	compare_slots(slots, &slots[0], &slots[1], step->op, step->collation, n);
	slots->type = PFS_SLOT_IS_TRUTH;
}

/* ---- IN ---- */

static int compare_constants(const void *a, const void *b, void *collation)
{
	struct value x = value_of_constant(a), y = value_of_constant(b);

	return compare_values(*(enum pfs_collation *)collation, &x, &y);
}

int pfs_prepare_in(const struct pfs_run *run, struct pfs_prepared *prepared,
		   const struct pfs_step *step)
{
	enum pfs_collation collation = step->collation;

	PFS_TRY(pfs_run_alloc(run, &prepared->sorted, step->n_list, sizeof(*prepared->sorted)));
	prepared->only_integers = true;
	for (size_t i = 0; i < step->n_list; i++) {
		const struct pfs_constant *c = &step->list[i];

		if (c->type == PFS_IS_NULL) {
			prepared->has_null = true;
			continue;
		}
		prepared->only_integers &= c->type == PFS_IS_INTEGER;
		prepared->sorted[prepared->n_sorted++] = *c;
	}
	qsort_r(prepared->sorted, prepared->n_sorted, sizeof(*prepared->sorted), compare_constants,
		&collation);
	return 0;
}

static uint8_t find(const struct pfs_prepared *prepared, enum pfs_collation collation,
		    const struct value *value)
{
	size_t low = 0, high = prepared->n_sorted;

	if (value->class == NOTHING)
		return 2;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct value other = value_of_constant(&prepared->sorted[middle]);
		int order = compare_values(collation, &other, value);

		if (order == 0)
			return 1;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return prepared->has_null ? 2 : 0;
}

/* Searches for a few integers among integers without NULL. Returns false if they are others. */
static bool find_few(struct pfs_slot *slot, const struct pfs_prepared *prepared, uint32_t n)
{
	uint64_t words[PFS_SPAN_WORDS], all[PFS_SPAN_WORDS] = {0};

	if (slot->type != PFS_SLOT_IS_NUMBER || slot->cells.has_reals || slot->cells.has_nulls ||
	    !prepared->only_integers || prepared->has_null || prepared->n_sorted > LINEAR_MAX)
		return false;
	for (size_t k = 0; k < prepared->n_sorted; k++) {
		pfs_lanes()->compare(words, slot->cells.integers, n, PFS_LANES_EQ,
				     prepared->sorted[k].integer);
		for (uint32_t w = 0; w * 64 < n; w++)
			all[w] |= words[w];
	}
	memcpy(slot->truth, all, sizeof(all));
	return true;
}

void pfs_slot_in(struct pfs_slot *slot, const struct pfs_step *step,
		 const struct pfs_prepared *prepared, uint32_t n)
{
	uint64_t truth[PFS_SPAN_WORDS] = {0}, nulls[PFS_SPAN_WORDS] = {0}, any = 0;

	if (!find_few(slot, prepared, n)) {
		for (uint32_t i = 0; step->n_list && i < n; i++) {
			struct value value = value_at(slot, i);
			uint64_t found = find(prepared, step->collation, &value);

			truth[i / 64] |= (found & 1) << i % 64;
			nulls[i / 64] |= (found >> 1) << i % 64;
			any |= found >> 1;
		}
		memcpy(slot->truth, truth, sizeof(truth));
		memcpy(slot->cells.nulls, nulls, sizeof(nulls));
		slot->cells.has_nulls = any != 0;
	}
	slot->type = PFS_SLOT_IS_TRUTH;
}

/* ---- texts ---- */

/* Texts of a heap whose lengths have one byte: names, which have no NUL. */
static bool are_names(const struct pfs_slot *slot)
{
	const struct pfs_cell_reader *reader = slot->reader;
	const struct pfs_heap *heap;

	if (slot->type != PFS_SLOT_IS_TEXT || reader->kind != PFS_KIND_PLACE)
		return false;
	heap = reader->column ? reader->column->heap : reader->vector->heap;
	return heap->length_size == 1;
}

static void match_names(struct pfs_slot *slot, const struct pfs_step *step,
			const struct pfs_text_match *match, uint32_t n, struct pfs_run_work *work)
{
	const struct pfs_cell_reader *reader = slot->reader;
	const struct pfs_heap *heap = reader->column ? reader->column->heap : reader->vector->heap;
	const struct pfs_cells *cells = &slot->cells;
	size_t words = pfs_div_round_up(n, 64);

	for (size_t w = 0; w < words; w++)
		slot->truth[w] = cells->has_nulls ? ~cells->nulls[w] : UINT64_MAX;
	if (n % 64)
		slot->truth[n / 64] &= (UINT64_C(1) << n % 64) - 1;
	pfs_text_match_keep(match, slot->truth, heap, cells->codes, words);
	for (uint32_t i = 0; match->rest == PFS_REST_PATTERN && i < n && !work->error; i++) {
		size_t len;
		const uint8_t *text;

		if (!pfs_bit(slot->truth, i))
			continue;
		text = pfs_heap_text(heap, cells->codes[i], &len);
		if (!pfs_text_matches(step, NULL, text, len, work))
			slot->truth[i / 64] &= ~(UINT64_C(1) << i % 64);
	}
	slot->type = PFS_SLOT_IS_TRUTH;
}

void pfs_slot_match(struct pfs_slot *slot, const struct pfs_step *step,
		    const struct pfs_prepared *prepared, uint32_t n, struct pfs_run_work *work)
{
	const struct pfs_text_match *match = prepared->has_match ? &prepared->match : NULL;
	uint64_t truth[PFS_SPAN_WORDS] = {0}, nulls[PFS_SPAN_WORDS] = {0};
	bool any = false;

	if (match && are_names(slot)) {
		match_names(slot, step, match, n, work);
		return;
	}
	for (uint32_t i = 0; i < n && !work->error; i++) {
		struct value value = value_at(slot, i);

		if (value.class == NOTHING) {
			nulls[i / 64] |= UINT64_C(1) << i % 64;
			any = true;
		} else if (pfs_text_matches(step, match, value.text, value.len, work)) {
			truth[i / 64] |= UINT64_C(1) << i % 64;
		}
	}
	memcpy(slot->truth, truth, sizeof(truth));
	memcpy(slot->cells.nulls, nulls, sizeof(nulls));
	slot->cells.has_nulls = any;
	slot->type = PFS_SLOT_IS_TRUTH;
}

static uint8_t both(uint8_t a, uint8_t b)
{
	if (a == 0 || b == 0)
		return 0;
	return a == 1 && b == 1 ? 1 : 2;
}

uint8_t pfs_text_truth(const struct pfs_step *step, const struct pfs_prepared *prepared,
		       const struct pfs_constant *const *others, const uint8_t *text, size_t len,
		       struct pfs_run_work *work)
{
	struct value value = {.class = TEXT, .text = text, .len = len}, low, high;

	if (step->op == PFS_OP_IN)
		return find(prepared, step->collation, &value);
	if (step->op > PFS_OP_NOT_NULL)
		return pfs_text_matches(step, prepared->has_match ? &prepared->match : NULL, text,
					len, work);
	low = value_of_constant(others[0]);
	if (step->op != PFS_OP_BETWEEN)
		return compare_one(step->op, step->collation, &value, &low);
	high = value_of_constant(others[1]);
	return both(compare_one(PFS_OP_GE, step->collation, &value, &low),
		    compare_one(PFS_OP_LE, step->collation, &value, &high));
}
