/* SPDX-License-Identifier: MIT */
/* Computes what waits until rows are few: the paths and targets of the answer's rows, and the
 * ranks of rows in an order that no column has. */
#include "fs/query/relational/run.h"

#include <stdlib.h>
#include <string.h>

#include "fs/nodes/relation.h"

#define LATE_MAX (1u << 20) /* rows with paths; SQLite, used for more, hands rows on as they come */

/* Returns the input's row in a tuple, or PFS_NO_ROW if a LEFT JOIN found none. */
static uint32_t row_of(const struct pfs_running *running, unsigned input, uint64_t tuple)
{
	unsigned at = running->block->inputs[input].parent_of;
	const struct pfs_tuple_table *table = &running->tuples->tables[running->stage.table_of[at]];
	uint32_t row = table->rows ? table->rows[tuple] : table->from + (uint32_t)tuple;

	return row == PFS_NO_ROW || at == input ? row
						: pfs_relation_parent(running->query->tree, row);
}

/* ---- paths and targets ---- */

/* Gets the slots of an input's rows in the answer's order. Where there is no row, sets the bit of
 * `nulls`, and takes the root's slot. */
static void find_slots(const struct pfs_running *running, uint32_t *slots, uint64_t *nulls,
		       unsigned input, size_t n)
{
	uint32_t root = pfs_scan_slot_of(running->query->tree, PFS_ROOT_PRIME);

	for (size_t i = 0; i < n; i++) {
		uint32_t row = row_of(running, input, i);

		nulls[i / 64] |= (uint64_t)(row == PFS_NO_ROW) << i % 64;
		slots[i] = row == PFS_NO_ROW ? root : row;
	}
}

int pfs_running_gather_late(struct pfs_running *running, struct pfs_answer_column *column,
			    const struct pfs_term *late)
{
	const struct pfs_input *from = &running->block->inputs[late->input];
	enum pfs_field field = from->columns[late->column].wish.field;
	uint64_t n = running->tuples ? running->tuples->n : 0;
	uint32_t *slots = NULL;
	char *bytes = NULL;
	size_t capacity = 0;
	uint8_t *is_none = NULL;
	int error;

	if (!(running->stage.whole >> late->input & 1) || !running->tuples || n > LATE_MAX)
		return -EOPNOTSUPP;
	PFS_TRY(pfs_tuples_here(running->run, running->tuples));
	column->n_offsets = n + 1;
	column->vector.n = n;
	PFS_TRY(pfs_run_alloc_raw(running->run, &column->offset, n + 1, sizeof(uint64_t)));
	PFS_TRY(pfs_run_alloc(running->run, &column->vector.nulls, (n + 63) / 64,
			      sizeof(uint64_t)));
	slots = malloc((n + 1) * sizeof(*slots));
	is_none = malloc(n + 1);
	error = slots && is_none ? 0 : -ENOMEM;
	if (!error)
		find_slots(running, slots, column->vector.nulls, late->input, n);
	column->offset[0] = 0;
	if (!error && n)
		error = pfs_scan_bytes(running->query->tree, &bytes, &capacity, column->offset,
				       is_none, field, slots, n);
	for (uint64_t i = 0; i < n && !error; i++)
		column->vector.nulls[i / 64] |= (uint64_t)(is_none[i] != 0) << i % 64;
	if (!error)
		error = pfs_run_alloc_raw(running->run, &column->text, column->offset[n] + 1, 1);
	if (!error && n)
		memcpy(column->text, bytes, column->offset[n]);
	free(slots);
	free(bytes);
	free(is_none);
	return error;
}

/* ---- orders ---- */

/* Slots in the order of their paths, each once. */
struct ranking {
	struct pfs_slots slots;
	uint32_t *numbers; /* by slot: its place in that order, from 1 on; 0: it is not listed */
	uint32_t end;	   /* all slots are below it */
};

/* Lists the slots that have a number. */
static int list_slots(struct pfs_running *running, struct ranking *ranking)
{
	uint32_t *slot = malloc((ranking->slots.n + 1) * sizeof(*slot));

	ranking->slots.slot = slot;
	if (!slot)
		return -ENOMEM;
	for (uint32_t i = 0; i < ranking->end; i++) {
		if (ranking->numbers[i])
			*slot++ = i;
		PFS_TRY(pfs_running_look(running, i));
	}
	return 0;
}

/* Numbers the slots of an input's rows in the order of their paths. */
static int number_paths(struct pfs_running *running, struct ranking *ranking, unsigned input)
{
	struct pfs_query *query = running->query;

	for (uint64_t i = 0; i < running->tuples->n; i++) {
		uint32_t row = row_of(running, input, i);

		if (row != PFS_NO_ROW && !ranking->numbers[row]) {
			ranking->numbers[row] = 1;
			ranking->slots.n++;
		}
		PFS_TRY(pfs_running_look(running, i));
	}
	PFS_TRY(list_slots(running, ranking));
	PFS_TRY(pfs_scan_sort_paths(query->tree, &ranking->slots, &query->watch));
	for (uint32_t i = 0; i < ranking->slots.n; i++)
		ranking->numbers[ranking->slots.slot[i]] = i + 1;
	return 0;
}

int pfs_running_rank(struct pfs_running *running, struct pfs_ref *out, unsigned input, bool by_path)
{
	const struct pfs_step zero = {.op = PFS_OP_CONSTANT, .constant = {.type = PFS_IS_INTEGER}};
	struct ranking ranking = {.end = pfs_scan_end(running->query->tree)};
	struct pfs_vector *vector;
	int error = 0;

	PFS_TRY(pfs_running_add_vector(running, &vector, out, &(struct pfs_program){&zero, 1}));
	if (by_path) {
		PFS_TRY(pfs_run_alloc(running->run, &ranking.numbers, ranking.end,
				      sizeof(*ranking.numbers)));
		error = number_paths(running, &ranking, input);
	}
	for (uint64_t i = 0; i < vector->n && !error; i++) {
		uint32_t row = row_of(running, input, i);

		if (row != PFS_NO_ROW)
			vector->integers[i] = by_path ? ranking.numbers[row] : INT64_C(1) + row;
		error = pfs_running_look(running, i);
	}
	pfs_slots_finish(&ranking.slots);
	if (ranking.numbers)
		pfs_run_free(running->run, ranking.numbers, ranking.end, sizeof(*ranking.numbers));
	return error;
}
