/* SPDX-License-Identifier: MIT */
/* What a step of a recursion reads of the step before. Of nodes it reads only the children of those
 * rows, which are tied to them (few_nodes.h). */
#include "fs/query/relational/run.h"

#define SHORT 4096 /* nodes below one */

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

bool pfs_recursion_is_short(const struct pfs_running *running, const struct pfs_input *input,
			    const struct pfs_table *first)
{
	const struct pfs_block *step = input->parts[input->n_first];
	unsigned queue = step->inputs[0].kind == PFS_INPUT_QUEUE ? 0 : 1;
	const struct pfs_table_column *numbers = &first->columns[step->inputs[queue].key];
	uint32_t slot = PFS_NO_SLOT, span;

	if (first->n_rows != 1 || numbers->kind != PFS_KIND_INTEGER || running->query->piece)
		return false;
	if (pfs_cell_at(numbers, 0) != PFS_NO_ROW)
		slot = pfs_scan_slot_of(running->query->tree,
					(uint64_t)pfs_cell_integer(numbers, 0));
	span = slot == PFS_NO_SLOT ? 1 : pfs_scan_span(running->query->tree, slot);
	return span && span < SHORT;
}
