/* SPDX-License-Identifier: MIT */
/* Rows of nodes that a few values name: each value is looked up, and no other node is looked at.
 * Constants are a scan's (choice.c). */
#include "fs/query/relational/cost.h"
#include "fs/query/relational/kept_rates.h"
#include "fs/query/relational/ties.h"
#include "fs/query/relational/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "fs/nodes/relation.h"

#define LISTED	   64u	  /* directories whose children are listed, at most; of more, all parents are looked at */
#define POLL_ROWS  4096u  /* values, between two looks at the statement's time */
#define POLL_WORDS 4096u  /* of bits, likewise */
#define CHILDREN_PART 8u  /* a directory with so much of all nodes is not listed */

/* ---- looking up ---- */

/* Slots that were found, in any order, perhaps several times. */
struct found {
	struct pfs_running *running;
	const struct pfs_table *nodes;
	const struct pfs_table *values;
	const struct pfs_table_column *column; /* of values */
	uint32_t *slots;
	size_t n, capacity;
};

/* The element of a row's value; PFS_NO_ROW: there is none. */
static uint32_t value_at(const struct found *found, uint32_t row)
{
	const uint64_t *live = found->values->live;

	if (live && !(live[row / 64] >> row % 64 & 1))
		return PFS_NO_ROW;
	return pfs_cell_at(found->column, row);
}

/* The node whose number the row has; PFS_NO_SLOT: there is none. */
static uint32_t slot_at(const struct found *found, uint32_t row)
{
	const struct pfs_tree *tree = found->running->query->tree;
	uint32_t at = value_at(found, row);
	double real;

	if (at == PFS_NO_ROW)
		return PFS_NO_SLOT;
	if (found->column->kind == PFS_KIND_INTEGER)
		return pfs_scan_slot_of(tree, (uint64_t)pfs_cell_integer(found->column, at));
	real = pfs_cell_real(found->column, at);
	if (!(real >= 1 && real < 0x1p63) || real != (double)(int64_t)real)
		return PFS_NO_SLOT;
	return pfs_scan_slot_of(tree, (uint64_t)real);
}

static int add_slots(struct found *found, const uint32_t *slots, size_t n)
{
	if (!n)
		return 0;
	PFS_TRY(pfs_grow(&found->slots, &found->capacity, found->n + n, sizeof(*slots)));
	memcpy(found->slots + found->n, slots, n * sizeof(*slots));
	found->n += n;
	return 0;
}

static int add_numbered(struct found *found)
{
	for (uint32_t row = 0; row < found->values->n_rows; row++) {
		uint32_t slot = slot_at(found, row);

		if (row % POLL_ROWS == 0)
			PFS_TRY(pfs_run_poll(found->running->run));
		if (slot != PFS_NO_SLOT)
			PFS_TRY(add_slots(found, &slot, 1));
	}
	return 0;
}

/* -E2BIG: they are many. */
static int add_children(struct found *found)
{
	for (uint32_t row = 0; row < found->values->n_rows; row++) {
		struct pfs_slots children = {.slot = NULL};
		uint32_t slot = slot_at(found, row);
		int error;

		if (slot == PFS_NO_SLOT)
			continue;
		error = pfs_scan_children(found->running->query->tree, &children, slot,
					  found->nodes->n_rows / CHILDREN_PART + LISTED);
		if (!error)
			error = add_slots(found, children.slot, children.n);
		pfs_slots_finish(&children);
		PFS_TRY(error);
	}
	return 0;
}

/* Sets the name that is looked for; false: the row has none. */
static bool take_name(const struct found *found, struct pfs_predicate *name, uint32_t row)
{
	const struct pfs_table_column *column = found->column;
	uint32_t at = value_at(found, row), text;

	if (at == PFS_NO_ROW)
		return false;
	*name = (struct pfs_predicate){.field = PFS_FIELD_NAME, .test = PFS_TEST_EQUAL};
	text = (uint32_t)pfs_cell_integer(column, at);
	name->text = (const char *)(column->kind == PFS_KIND_CODE
					    ? pfs_dictionary_text(column->dictionary, text,
								  &name->text_len)
					    : pfs_heap_text(column->heap, text, &name->text_len));
	return true;
}

/* -E2BIG: there is no index that has the name, or it is that of many nodes. */
static int add_nodes_of(struct found *found, const struct pfs_predicate *name)
{
	struct pfs_query *query = found->running->query;
	struct pfs_slots slots = {.slot = NULL};
	int error;

	if (!name->text_len) { /* that is the root's alone */
		uint32_t root = pfs_scan_slot_of(query->tree, PFS_ROOT_PRIME);

		return add_slots(found, &root, 1);
	}
	if (!pfs_scan_is_short(query->tree, name, 1)) {
		pfs_scan_missed(query->tree, PFS_FIELD_NAME);
		found->running->context->few.lacks_index = true;
		return -E2BIG;
	}
	error = pfs_scan_select(query->tree, &slots, name, 1, NULL, &query->watch);
	if (!error)
		error = add_slots(found, slots.slot, slots.n);
	pfs_slots_finish(&slots);
	return error;
}

static int add_named(struct found *found)
{
	struct pfs_predicate name;

	for (uint32_t row = 0; row < found->values->n_rows; row++) {
		if (take_name(found, &name, row))
			PFS_TRY(add_nodes_of(found, &name));
	}
	return 0;
}

/* Sorts them, and leaves those that are rows of the statement. */
static int make_rows(struct found *found, struct pfs_rows **rows)
{
	const struct pfs_query *query = found->running->query;
	uint32_t top = pfs_scan_slot_of(query->tree, query->top);
	bool is_below = query->top != PFS_ROOT_PRIME;
	const uint64_t *live = found->nodes->live;
	size_t kept = 0;

	if (found->n)
		PFS_TRY(pfs_radix_sort_u32(found->slots, found->n));
	for (size_t i = 0; i < found->n; i++) {
		uint32_t slot = found->slots[i];

		if ((kept && found->slots[kept - 1] == slot) ||
		    (live && !(live[slot / 64] >> slot % 64 & 1)) ||
		    (is_below && !pfs_relation_is_under(query->tree, slot, top)))
			continue;
		found->slots[kept++] = slot;
	}
	return pfs_rows_of_list(found->running->run, rows, found->nodes->n_rows, found->slots,
				(uint32_t)kept);
}

/* ---- all parents ---- */

/* Sets the bits of rows that exist and whose parent has a bit among `parents`. */
static int pass(const struct found *found, uint64_t *out, const uint32_t *via,
		const uint64_t *parents)
{
	const struct pfs_table *nodes = found->nodes;
	size_t words = (nodes->n_rows + 63) / 64;

	for (size_t word = 0; word < words; word++) {
		uint32_t first = (uint32_t)word * 64, n = PFS_MIN(nodes->n_rows - first, 64);
		uint64_t bits = 0;

		if (word % POLL_WORDS == 0)
			PFS_TRY(pfs_run_poll(found->running->run));
		for (uint32_t i = 0; i < n; i++) {
			uint32_t parent = via[first + i];

			if (parent != PFS_NO_ROW)
				bits |= (parents[parent / 64] >> parent % 64 & 1) << i;
		}
		out[word] = nodes->live ? bits & nodes->live[word] : bits;
	}
	return 0;
}

static int pass_all(const struct found *found, struct pfs_rows **rows)
{
	static const struct pfs_column_wish parent = {.field = PFS_FIELD_PARENT};
	const struct pfs_run *run = found->running->run;
	uint32_t n_rows = found->nodes->n_rows;
	size_t words = (n_rows + 63) / 64;
	uint64_t *bits = NULL;
	struct pfs_table_column via;
	int error;

	PFS_TRY(pfs_columns_get(found->running->query->tree, &via, &parent));
	PFS_TRY(pfs_run_alloc(run, &bits, 2 * words + 1, sizeof(*bits)));
	for (uint32_t row = 0; row < found->values->n_rows; row++) {
		uint32_t slot = slot_at(found, row);

		if (slot != PFS_NO_SLOT)
			bits[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	error = pass(found, bits + words, via.via, bits);
	if (!error)
		error = pfs_rows_of_bits(run, rows, n_rows, bits + words, 0, n_rows);
	pfs_run_free(run, bits, 2 * words + 1, sizeof(*bits));
	return error;
}

/* ---- the whole ---- */

static int look_up(struct found *found, struct pfs_rows **rows, enum pfs_field field)
{
	bool is_short = field != PFS_FIELD_PARENT || found->values->n_rows <= LISTED;
	int error = -E2BIG;

	if (!is_short && found->running->query->top != PFS_ROOT_PRIME)
		return 0;
	PFS_TRY(pfs_table_here(found->running->run, found->values));
	if (is_short) {
		error = field == PFS_FIELD_INO	    ? add_numbered(found)
			: field == PFS_FIELD_PARENT ? add_children(found)
						    : add_named(found);
		if (!error)
			error = make_rows(found, rows);
		free(found->slots);
		found->slots = NULL;
	}
	if (error != -E2BIG)
		return error;
	return field == PFS_FIELD_PARENT && found->running->query->top == PFS_ROOT_PRIME
		       ? pass_all(found, rows)
		       : 0;
}

/* Returns true if the column's values can be looked up: texts as names, else numbers of one class.
 */
static bool has_values(const struct pfs_table_column *column, enum pfs_field field)
{
	if (field == PFS_FIELD_NAME)
		return column->kind == PFS_KIND_CODE || column->kind == PFS_KIND_PLACE;
	return column->kind == PFS_KIND_INTEGER || column->kind == PFS_KIND_REAL;
}

int pfs_running_few_nodes(struct pfs_running *running, struct pfs_rows **rows, unsigned input)
{
	struct pfs_few_nodes *few = &running->context->few;
	const struct pfs_block *block = running->block;
	struct found found = {.running = running, .nodes = &running->tables[input]};
	struct pfs_tie ties[PFS_TIES_MAX];
	size_t n = found.nodes->fill_live ? 0 : pfs_ties_find(ties, block, input);
	struct pfs_rates rates;

	if (n)
		pfs_kept_rates_get(running->query->queries->rates, &rates);
	if (n && pfs_scan_slot_of(running->query->tree, running->query->top) == PFS_NO_SLOT)
		return -EOPNOTSUPP;
	for (size_t i = 0; i < n && !*rows; i++) {
		const struct pfs_term *by = ties[i].by;

		found.values = &running->tables[by->input];
		if (!found.values->columns) /* a lifted one that has not run */
			continue;
		found.column =
			&found.values->columns[block->inputs[by->input].columns[by->column].at];
		found.n = found.capacity = 0;
		if (!has_values(found.column, ties[i].field))
			continue;
		*few = pfs_cost_few_nodes(ties[i].field, &rates, found.values->n_rows,
					  found.nodes->n_rows,
					  running->query->queries->placement.processors);
		if (few->find_ns < few->all_ns)
			PFS_TRY(look_up(&found, rows, ties[i].field));
		few->is_chosen = *rows != NULL;
	}
	return 0;
}
