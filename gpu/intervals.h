/* SPDX-License-Identifier: MIT */
/* gpu/intervals.h - for benchmarks: nested intervals, the strongest rival of codes, as columns on
 * the same back ends.  A node has its rank in pre-order and the size of its subtree; what lies
 * under it has the ranks from its own on.  Any change renumbers every node behind it.
 *
 * The arithmetic of one node is compiled into the kernels, the host back end and the unit tests. */
#ifndef PFS_GPU_INTERVALS_H
#define PFS_GPU_INTERVALS_H

#include "gpu/engine.h"
#include "gpu/modexact.h"

#define PFS_NO_RANK  UINT32_MAX /* of a slot that is not in use; its size is 0 */
#define PFS_NEW_RANK (UINT32_MAX - 1)

/* The nodes of ranks from.. become the first ones under the node of rank `parent`, which is not one
 * of them; from = PFS_NEW_RANK: room is made for new ones. */
struct pfs_interval_move {
	uint32_t from, size, parent;
};

PFS_BOTH bool pfs_interval_holds(uint32_t rank, uint32_t size, uint32_t other)
{
	return other - rank < size;
}

PFS_BOTH void pfs_interval_moved(uint32_t *rank, uint32_t *size, struct pfs_interval_move m)
{
	uint32_t r = *rank, s = *size, to = m.parent + 1;
	bool down = to > m.from; /* the numbers between are closed up */

	if (pfs_interval_holds(m.from, m.size, r)) {
		*rank = r - m.from + to - (down ? m.size : 0);
		return;
	}
	if (pfs_interval_holds(r, s, m.from))
		*size -= m.size;
	if (pfs_interval_holds(r, s, m.parent))
		*size += m.size;
	if (down && r >= m.from + m.size && r < to)
		*rank = r - m.size;
	else if (!down && r >= to && r < m.from)
		*rank = r + m.size;
}

struct pfs_intervals;

/* Of the engine's present tree, whose slots have to be in pre-order (-EINVAL).  It does not follow
 * what happens to the engine; its bitmaps are that engine's.  -EIO: the device was left. */
PFS_MUST_CHECK int pfs_intervals_make(struct pfs_engine *e, struct pfs_intervals **out);
void pfs_intervals_free(struct pfs_intervals *intervals);

/* The node itself included. */
PFS_MUST_CHECK int pfs_intervals_subtree(struct pfs_intervals *intervals, struct pfs_bitmap **out,
					 uint32_t slot);
PFS_MUST_CHECK int pfs_intervals_ancestors(struct pfs_intervals *intervals, struct pfs_bitmap **out,
					   uint32_t slot);
/* slot: not in use so far, and one that the engine has room for. */
PFS_MUST_CHECK int pfs_intervals_add(struct pfs_intervals *intervals, uint32_t slot,
				     uint32_t parent);
PFS_MUST_CHECK int pfs_intervals_move(struct pfs_intervals *intervals, uint32_t slot,
				      uint32_t parent);

#endif
