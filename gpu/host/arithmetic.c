/* SPDX-License-Identifier: MIT */
/* Numbers, as SQLite's virtual machine computes with them. */
#include "gpu/host/evaluate.h"

#include <string.h>

#include "base/checked.h"
#include "gpu/host/lanes.h"
#include "gpu/host/number.h"
#include "gpu/host/text.h"

#define AHEAD 16u /* texts that are fetched into the cache before their lengths are read */

static bool null_at(const struct pfs_slot *slot, uint32_t i)
{
	return slot->cells.has_nulls && pfs_bit(slot->cells.nulls, i);
}

static struct pfs_number number_at(const struct pfs_slot *slot, uint32_t i)
{
	bool is_real = slot->cells.has_reals && pfs_bit(slot->cells.is_real, i);

	return is_real ? (struct pfs_number){.is_real = true, .real = slot->cells.reals[i]}
		       : (struct pfs_number){.integer = slot->cells.integers[i]};
}

static void fill_constant(struct pfs_slot *slot, uint32_t n)
{
	const struct pfs_constant *constant = slot->constant;
	struct pfs_cells *cells = &slot->cells;

	cells->has_nulls = constant->type == PFS_IS_NULL;
	cells->has_reals = constant->type == PFS_IS_REAL;
	if (cells->has_nulls)
		memset(cells->nulls, 0xff, sizeof(cells->nulls));
	if (cells->has_reals)
		memset(cells->is_real, 0xff, sizeof(cells->is_real));
	for (uint32_t i = 0; i < n; i++) {
		if (cells->has_reals)
			cells->reals[i] = constant->real;
		else
			cells->integers[i] = cells->has_nulls ? 0 : constant->integer;
	}
}

void pfs_slot_to_number(struct pfs_slot *slot, uint32_t n)
{
	if (slot->type == PFS_SLOT_IS_CONSTANT) {
		fill_constant(slot, n);
	} else if (slot->type == PFS_SLOT_IS_TRUTH) {
		slot->cells.has_reals = false;
		for (uint32_t i = 0; i < n; i++)
			slot->cells.integers[i] = pfs_bit(slot->truth, i);
	}
	slot->type = PFS_SLOT_IS_NUMBER;
}

void pfs_slot_to_truth(struct pfs_slot *slot, uint32_t n)
{
	if (slot->type == PFS_SLOT_IS_TRUTH)
		return;
	pfs_slot_to_number(slot, n);
	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t truth = 0;

		for (uint32_t i = w * 64; i < n && i < w * 64 + 64; i++) {
			struct pfs_number x = number_at(slot, i);
			bool is_true = x.is_real ? x.real != 0 : x.integer != 0;

			truth |= (uint64_t)is_true << i % 64;
		}
		slot->truth[w] = truth & ~(slot->cells.has_nulls ? slot->cells.nulls[w] : 0);
	}
	slot->type = PFS_SLOT_IS_TRUTH;
}

static int64_t shift(int64_t a, int64_t by, bool left)
{
	if (by < 0) {
		left = !left;
		by = by > -64 ? -by : 64;
	}
	if (by >= 64)
		return a >= 0 || left ? 0 : -1;
	return left ? (int64_t)((uint64_t)a << by) : a >> by;
}

/* Returns true if the result is exact and an integer; else it is computed with reals. A divisor is
 * not 0. */
static bool compute_integer(int64_t *out, enum pfs_op op, int64_t a, int64_t b)
{
	switch (op) {
	case PFS_OP_ADD:
		return !__builtin_add_overflow(a, b, out);
	case PFS_OP_SUBTRACT:
		return !__builtin_sub_overflow(a, b, out);
	case PFS_OP_MULTIPLY:
		return !__builtin_mul_overflow(a, b, out);
	case PFS_OP_DIVIDE:
		if (a == INT64_MIN && b == -1)
			return false;
		*out = a / b;
		return true;
	case PFS_OP_REMAINDER:
		*out = b == -1 ? 0 : a % b;
		return true;
	case PFS_OP_BIT_AND:
		*out = a & b;
		return true;
	case PFS_OP_BIT_OR:
		*out = a | b;
		return true;
	default:
		*out = shift(a, b, op == PFS_OP_SHIFT_LEFT);
		return true;
	}
}

static double compute_real(enum pfs_op op, double a, double b)
{
	switch (op) {
	case PFS_OP_ADD:
		return a + b;
	case PFS_OP_SUBTRACT:
		return a - b;
	case PFS_OP_MULTIPLY:
		return a * b;
	default:
		return a / b;
	}
}

/* Returns false if the result is NULL. */
static bool compute(struct pfs_number *out, enum pfs_op op, struct pfs_number a,
		    struct pfs_number b)
{
	bool is_whole = op >= PFS_OP_BIT_AND || (!a.is_real && !b.is_real);

	if (op == PFS_OP_DIVIDE && pfs_number_real(b) == 0)
		return false;
	if (op == PFS_OP_REMAINDER && pfs_number_integer(b) == 0)
		return false;
	out->is_real = false;
	if (is_whole &&
	    compute_integer(&out->integer, op, pfs_number_integer(a), pfs_number_integer(b)))
		return true;
	out->is_real = true;
	if (op == PFS_OP_REMAINDER) { /* a remainder of large integers would be rounded as a real */
		int64_t divisor = pfs_number_integer(b);

		out->real = divisor == -1 ? 0 : (double)(pfs_number_integer(a) % divisor);
		return true;
	}
	out->real = compute_real(op, pfs_number_real(a), pfs_number_real(b));
	return out->real == out->real; /* SQLite makes NULL of NaN */
}

/* The common case, as a loop that the compiler can vectorise. Returns false if a result does not
 * fit an integer. */
static bool all_exact(struct pfs_slot *a, const struct pfs_slot *b, enum pfs_op op, uint32_t n)
{
	int64_t *x = a->cells.integers, out[PFS_SPAN];
	const int64_t *y = b->cells.integers;
	bool overflows = false;

	if (op > PFS_OP_MULTIPLY || a->cells.has_reals || b->cells.has_reals)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		if (op == PFS_OP_ADD)
			overflows |= __builtin_add_overflow(x[i], y[i], &out[i]);
		else if (op == PFS_OP_SUBTRACT)
			overflows |= __builtin_sub_overflow(x[i], y[i], &out[i]);
		else
			overflows |= __builtin_mul_overflow(x[i], y[i], &out[i]);
	}
	if (overflows)
		return false;
	memcpy(x, out, n * sizeof(*x));
	return true;
}

static void take_remainders(int64_t *values, uint32_t n, int64_t constant, int64_t least,
			    int64_t greatest)
{
	int64_t quotients[PFS_SPAN];

	memcpy(quotients, values, n * sizeof(*values));
	pfs_lanes()->divide(quotients, n, constant, least, greatest);
	for (uint32_t i = 0; i < n; i++)
		values[i] -= quotients[i] * constant;
}

/* Combines the slot's values with an integer. Returns false if the slot stays as it is, since a
 * result may not fit an integer: that of the least or of the greatest value does not then. */
static bool apply_constant(struct pfs_slot *slot, enum pfs_op op, int64_t constant, uint32_t n)
{
	int64_t *values = slot->cells.integers, least, greatest, end;

	if (op > PFS_OP_REMAINDER || (op >= PFS_OP_DIVIDE && constant <= 0))
		return false;
	pfs_slot_to_number(slot, n);
	if (slot->cells.has_reals || n == 0)
		return false;
	pfs_lanes()->extremes(&least, &greatest, values, n);
	if (!compute_integer(&end, op, least, constant) ||
	    !compute_integer(&end, op, greatest, constant))
		return false;
	if (op == PFS_OP_MULTIPLY)
		pfs_lanes()->multiply(values, n, constant);
	else if (op == PFS_OP_DIVIDE)
		pfs_lanes()->divide(values, n, constant, least, greatest);
	else if (op == PFS_OP_REMAINDER)
		take_remainders(values, n, constant, least, greatest);
	else
		pfs_lanes()->add(values, n,
				 op == PFS_OP_ADD ? constant : (int64_t)(0 - (uint64_t)constant));
	return true;
}

static bool is_integer(const struct pfs_slot *slot)
{
	return slot->type == PFS_SLOT_IS_CONSTANT && slot->constant->type == PFS_IS_INTEGER;
}

/* As pfs_slot_arithmetic; false: not exactly one of the operands is a constant for which that is
 * fast. */
static bool with_constant(struct pfs_slot *slots, enum pfs_op op, uint32_t n)
{
	struct pfs_slot *a = &slots[0], *b = &slots[1];

	if (a->type != PFS_SLOT_IS_CONSTANT && is_integer(b))
		return apply_constant(a, op, b->constant->integer, n);
	if ((op != PFS_OP_ADD && op != PFS_OP_MULTIPLY) || !is_integer(a) ||
	    b->type == PFS_SLOT_IS_CONSTANT || !apply_constant(b, op, a->constant->integer, n))
		return false;
	*a = *b;
	return true;
}

/* Adds the other's NULLs. */
static void join_nulls(struct pfs_slot *a, const struct pfs_slot *b)
{
	if (!b->cells.has_nulls)
		return;
	for (unsigned w = 0; w < PFS_SPAN_WORDS; w++)
		a->cells.nulls[w] =
			b->cells.nulls[w] | (a->cells.has_nulls ? a->cells.nulls[w] : 0);
	a->cells.has_nulls = true;
}

static void set_number(struct pfs_slot *slot, uint32_t i, bool is_there, struct pfs_number x)
{
	struct pfs_cells *cells = &slot->cells;
	uint64_t bit = UINT64_C(1) << i % 64;

	if (!is_there && !cells->has_nulls) {
		memset(cells->nulls, 0, sizeof(cells->nulls));
		cells->has_nulls = true;
	}
	if (!is_there) {
		cells->nulls[i / 64] |= bit;
		x = (struct pfs_number){0};
	}
	if (x.is_real && !cells->has_reals) {
		memset(cells->is_real, 0, sizeof(cells->is_real));
		cells->has_reals = true;
	}
	if (x.is_real) {
		cells->is_real[i / 64] |= bit;
		cells->reals[i] = x.real;
	} else {
		if (cells->has_reals)
			cells->is_real[i / 64] &= ~bit;
		cells->integers[i] = x.integer;
	}
}

void pfs_slot_arithmetic(struct pfs_slot *slots, enum pfs_op op, uint32_t n)
{
	struct pfs_slot *a = &slots[0], *b = &slots[1];

	if (with_constant(slots, op, n))
		return;
	pfs_slot_to_number(a, n);
	pfs_slot_to_number(b, n);
	join_nulls(a, b);
	if (all_exact(a, b, op, n))
		return;
	for (uint32_t i = 0; i < n; i++) {
		struct pfs_number out = {0};

		if (null_at(a, i))
			continue;
		bool is_there = compute(&out, op, number_at(a, i), number_at(b, i));
		set_number(a, i, is_there, out);
	}
}

void pfs_slot_convert(struct pfs_slot *slot, enum pfs_op op, uint32_t n)
{
	const struct pfs_number zero = {0};

	pfs_slot_to_number(slot, n);
	for (uint32_t i = 0; i < n; i++) {
		struct pfs_number x, out = {0};
		bool is_there = true;

		if (null_at(slot, i))
			continue;
		x = number_at(slot, i);
		if (op == PFS_OP_NEGATE) /* SQLite computes it as 0 - x */
			is_there = compute(&out, PFS_OP_SUBTRACT, zero, x);
		else if (op == PFS_OP_BIT_NOT)
			out.integer = ~pfs_number_integer(x);
		else if (op == PFS_OP_TO_INTEGER)
			out.integer = pfs_number_integer(x);
		else
			out = (struct pfs_number){.is_real = true, .real = pfs_number_real(x)};
		set_number(slot, i, is_there, out);
	}
}

/* Gets the lengths of texts in a heap, which are fetched into the cache first. */
static void measure_heap(struct pfs_cells *cells, const struct pfs_heap *heap, uint32_t n)
{
	for (uint32_t i = n; i-- > 0;) {
		size_t len = 0;
		const uint8_t *text = NULL;

		if (i >= AHEAD)
			__builtin_prefetch(heap->bytes + ((uint64_t)cells->codes[i - AHEAD]
							  << heap->place_shift));
		if (!cells->has_nulls || !pfs_bit(cells->nulls, i))
			text = pfs_heap_text(heap, cells->codes[i], &len);
		cells->integers[i] =
			pfs_text_is_plain(text, len) ? (int64_t)len : pfs_text_length(text, len);
	}
}

void pfs_slot_length(struct pfs_slot *slot, uint32_t n)
{
	const struct pfs_constant *constant = slot->constant;
	const struct pfs_cell_reader *reader = slot->reader;
	bool is_constant = slot->type == PFS_SLOT_IS_CONSTANT;

	if (is_constant && constant->type == PFS_IS_NULL) {
		pfs_slot_to_number(slot, n);
		return;
	}
	slot->cells.has_reals = false;
	slot->type = PFS_SLOT_IS_NUMBER;
	if (!is_constant && reader->kind == PFS_KIND_PLACE) {
		measure_heap(&slot->cells,
			     reader->column ? reader->column->heap : reader->vector->heap, n);
		return;
	}
	/* from the end, since lengths take the room of several codes */
	for (uint32_t i = n; i-- > 0;) {
		size_t len = is_constant ? constant->len : 0;
		const uint8_t *text = is_constant ? (const uint8_t *)constant->text : NULL;

		if (!is_constant && !null_at(slot, i))
			text = pfs_cell_text(reader, slot->cells.codes[i], &len);
		slot->cells.integers[i] = pfs_text_length(text, len);
	}
}

/* For values without reals: chooses a word of truths at a time. The value of a NULL is 0. */
static void choose_integers(struct pfs_slot *slots, uint32_t n)
{
	struct pfs_cells *out = &slots[0].cells;
	const struct pfs_cells *yes = &slots[1].cells, *no = &slots[2].cells;

	out->has_nulls = yes->has_nulls || no->has_nulls;
	for (uint32_t w = 0; w * 64 < n; w++) {
		uint64_t yes_there = slots[0].truth[w] & ~(yes->has_nulls ? yes->nulls[w] : 0);
		uint64_t no_there = ~slots[0].truth[w] & ~(no->has_nulls ? no->nulls[w] : 0);
		uint32_t count = PFS_MIN(n - w * 64, 64u);

		for (uint32_t k = 0; k < count; k++) {
			uint32_t i = w * 64 + k;

			out->integers[i] = (yes->integers[i] & -(int64_t)(yes_there >> k & 1)) |
					   (no->integers[i] & -(int64_t)(no_there >> k & 1));
		}
		out->nulls[w] = ~(yes_there | no_there);
	}
}

void pfs_slot_choose(struct pfs_slot *slots, uint32_t n)
{
	struct pfs_slot *condition = &slots[0], *yes = &slots[1], *no = &slots[2];

	pfs_slot_to_truth(condition, n);
	pfs_slot_to_number(yes, n);
	pfs_slot_to_number(no, n);
	condition->type = PFS_SLOT_IS_NUMBER;
	condition->cells.has_nulls = false;
	condition->cells.has_reals = false;
	if (!yes->cells.has_reals && !no->cells.has_reals) {
		choose_integers(slots, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct pfs_slot *from = pfs_bit(condition->truth, i) ? yes : no;

		set_number(condition, i, !null_at(from, i), number_at(from, i));
	}
}
