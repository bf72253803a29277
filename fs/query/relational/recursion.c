/* SPDX-License-Identifier: MIT */
/* What a step of a recursion reads: the rows of the step before, and of nodes only the children of
 * those.  Of few nodes each one's children are looked up; of more one pass over all parents finds
 * them. */
#include "fs/query/relational/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/radix.h"
#include "fs/nodes/relation.h"

#define LOOKED_UP  64	   /* nodes whose children are looked up, at most */
#define SHORT	   4096	   /* nodes below one */
#define POLL_WORDS 0x1000u /* of bits, between two looks at the statement's time */

int pfs_recursion_queue(const struct pfs_running *running, struct pfs_table *table,
			const struct pfs_input *queue)
{
	const struct pfs_recursion *recursion = running->context->recursion;

	while (recursion && recursion->of != queue->of)
		recursion = recursion->outer;
	if (!recursion)
		return -EOPNOTSUPP;
	*table = recursion->rows;
	return 0;
}

/* ---- nodes by their numbers ---- */

/* The slot of the node whose number the row has; PFS_NO_SLOT: there is none. */
static uint32_t slot_at(const struct pfs_running *running, const struct pfs_table_column *numbers,
			uint32_t row)
{
	const int64_t *values = numbers->data;

	if (numbers->nulls && numbers->nulls[row / 64] >> row % 64 & 1)
		return PFS_NO_SLOT;
	return pfs_scan_slot_of(running->query->tree, (uint64_t)values[row]);
}

bool pfs_recursion_is_short(const struct pfs_running *running, const struct pfs_input *input,
			    const struct pfs_table *first)
{
	const struct pfs_block *step = input->parts[input->n_first];
	unsigned queue = step->inputs[0].kind == PFS_INPUT_QUEUE ? 0 : 1;
	const struct pfs_table_column *numbers = &first->columns[step->inputs[queue].key];
	uint32_t slot, span;

	if (first->n_rows != 1 || numbers->kind != PFS_KIND_INTEGER || running->query->piece)
		return false;
	slot = slot_at(running, numbers, 0);
	span = slot == PFS_NO_SLOT ? 1 : pfs_scan_span(running->query->tree, slot);
	return span && span < SHORT;
}

/* ---- children ---- */

/* Each node's, one after another, ascending. */
static int look_up(struct pfs_running *running, struct pfs_rows **rows, uint32_t n_rows,
		   const struct pfs_table_column *numbers, uint32_t n)
{
	struct pfs_query *query = running->query;
	uint32_t *list = NULL;
	size_t capacity = 0, n_list = 0, kept = 0;
	int error = 0;

	for (uint32_t row = 0; row < n && !error; row++) {
		uint32_t slot = slot_at(running, numbers, row);
		struct pfs_predicate predicate = {.test = PFS_TEST_CHILD_OF};
		struct pfs_slots slots = {.slot = NULL};

		if (slot == PFS_NO_SLOT)
			continue;
		predicate.low = (int64_t)pfs_relation_ino(query->tree, slot);
		error = pfs_scan_select(query->tree, &slots, &predicate, 1, NULL, &query->watch);
		if (!error && slots.n)
			error = pfs_grow(&list, &capacity, n_list + slots.n, sizeof(*list));
		if (!error && slots.n && list)
			memcpy(list + n_list, slots.slot, slots.n * sizeof(*list));
		n_list += error ? 0 : slots.n;
		pfs_slots_finish(&slots);
	}
	if (!error && n_list)
		error = pfs_radix_sort_u32(list, n_list);
	for (size_t i = 0; i < n_list; i++) {
		if (!kept || list[kept - 1] != list[i])
			list[kept++] = list[i];
	}
	if (!error)
		error = pfs_rows_of_list(running->run, rows, n_rows, list, (uint32_t)kept);
	free(list);
	return error;
}

/* Sets the bits of rows that exist and whose parent has a bit among `parents`. */
static int pass(const struct pfs_running *running, uint64_t *out, const struct pfs_table *nodes,
		const uint32_t *via, const uint64_t *parents)
{
	size_t words = (nodes->n_rows + 63) / 64;

	for (size_t word = 0; word < words; word++) {
		uint32_t first = (uint32_t)word * 64, n = PFS_MIN(nodes->n_rows - first, 64);
		uint64_t bits = 0;

		if (word % POLL_WORDS == 0)
			PFS_TRY(pfs_run_poll(running->run));
		for (uint32_t i = 0; i < n; i++) {
			uint32_t parent = via[first + i];

			if (parent != PFS_NO_ROW)
				bits |= (parents[parent / 64] >> parent % 64 & 1) << i;
		}
		out[word] = nodes->live ? bits & nodes->live[word] : bits;
	}
	return 0;
}

static int find_all(struct pfs_running *running, struct pfs_rows **rows,
		    const struct pfs_table *nodes, const struct pfs_table_column *numbers,
		    uint32_t n)
{
	static const struct pfs_column_wish parent = {.field = PFS_FIELD_PARENT};
	size_t words = (nodes->n_rows + 63) / 64;
	uint64_t *bits = NULL;
	struct pfs_table_column via;
	int error;

	PFS_TRY(pfs_columns_get(running->query->tree, &via, &parent));
	PFS_TRY(pfs_run_alloc(running->run, &bits, 2 * words + 1, sizeof(*bits)));
	for (uint32_t row = 0; row < n; row++) {
		uint32_t slot = slot_at(running, numbers, row);

		if (slot != PFS_NO_SLOT)
			bits[slot / 64] |= UINT64_C(1) << slot % 64;
	}
	error = pass(running, bits + words, nodes, via.via, bits);
	if (!error)
		error = pfs_rows_of_bits(running->run, rows, nodes->n_rows, bits + words, 0,
					 nodes->n_rows);
	pfs_run_free(running->run, bits, 2 * words + 1, sizeof(*bits));
	return error;
}

int pfs_recursion_children(struct pfs_running *running, struct pfs_rows **rows, unsigned input)
{
	const struct pfs_block *block = running->block;
	const struct pfs_table *queue = NULL, *nodes = &running->tables[input];
	const struct pfs_table_column *numbers = NULL;

	for (size_t i = 0; i < block->n_inputs; i++) {
		if (block->inputs[i].kind != PFS_INPUT_QUEUE)
			continue;
		queue = &running->tables[i];
		numbers = &queue->columns[block->inputs[i].key];
	}
	if (!queue || numbers->kind != PFS_KIND_INTEGER || nodes->fill_live)
		return 0;
	return queue->n_rows <= LOOKED_UP
		       ? look_up(running, rows, nodes->n_rows, numbers, queue->n_rows)
		       : find_all(running, rows, nodes, numbers, queue->n_rows);
}
