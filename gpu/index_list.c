/* SPDX-License-Identifier: MIT */
/* Entries of an index in order, in a run's memory. */
#include "gpu/index.h"

#include "gpu/engine_impl.h"

int pfs_index_list_make(const struct pfs_run *run, struct pfs_index_list *list, size_t n,
			bool is_wide)
{
	int error;

	*list = (struct pfs_index_list){.n = n};
	PFS_TRY(pfs_run_alloc_raw(run, &list->keys, n, sizeof(*list->keys)));
	error = is_wide ? pfs_run_alloc_raw(run, &list->wide_values, n, sizeof(*list->wide_values))
			: pfs_run_alloc_raw(run, &list->values, n, sizeof(*list->values));
	if (error)
		pfs_index_list_free(run, list);
	return error;
}

void pfs_index_list_free(const struct pfs_run *run, struct pfs_index_list *list)
{
	pfs_run_free(run, list->keys, list->n, sizeof(*list->keys));
	pfs_run_free(run, list->values, list->n, sizeof(*list->values));
	pfs_run_free(run, list->wide_values, list->n, sizeof(*list->wide_values));
	*list = (struct pfs_index_list){0};
}
