/* SPDX-License-Identifier: MIT */
/* gpu/host/concat.h - GROUP_CONCAT: the tuples of each group as a list that ascends, and the texts
 * that their values make. A tuple belongs to one group of one thread's table, so that all tables
 * share one array of links. */
#ifndef PFS_GPU_HOST_CONCAT_H
#define PFS_GPU_HOST_CONCAT_H

#include "gpu/host/fold.h"

/* Opens the array of links. -EOPNOTSUPP: the values are reals, which SQLite knows how to print. */
PFS_MUST_CHECK int pfs_concat_open(struct pfs_fold *fold, const struct pfs_run *run,
				   const struct pfs_source *source);
void pfs_concat_close(const struct pfs_run *run, struct pfs_fold *fold);

/* Adds a tuple to the group's list; those before it have lower positions. */
static inline void pfs_concat_add(const struct pfs_fold *fold, struct pfs_fold_table *t,
				  size_t group, uint32_t position)
{
	if (t->count[group]++ == 0)
		t->at[group] = position;
	else
		fold->next[t->last[group]] = position;
	t->last[group] = position;
}

/* Adds the other group's list, which is not empty, in the order of positions. */
void pfs_concat_merge(const struct pfs_fold *fold, struct pfs_fold_table *t, size_t into,
		      const struct pfs_fold_table *other, size_t from);

/* Makes the texts of groups order[0..n), or, order NULL, 0..n, in the aggregate's heap; a group
 * without values has NULL. -EOPNOTSUPP: one is longer than the aggregate allows. */
PFS_MUST_CHECK int pfs_concat_finish(const struct pfs_fold *fold, struct pfs_host_operators *host,
				     const struct pfs_run *run, struct pfs_vector *out,
				     const struct pfs_fold_table *t, const uint32_t *order,
				     uint64_t n);

#endif
