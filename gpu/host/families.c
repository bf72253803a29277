/* SPDX-License-Identifier: MIT */
#include "gpu/host/families.h"

#include "gpu/host/operators.h"

static const struct pfs_select_family select_family = {
	.select = pfs_host_select_rows,
};
static const struct pfs_sort_family sort_family = {
	.sort = pfs_host_sort,
	.window = pfs_host_window,
	.index = pfs_host_index,
};
static const struct pfs_group_family group_family = {
	.group = pfs_host_group,
};
static const struct pfs_join_family join_family = {
	.join = pfs_host_join,
	.merge = pfs_host_merge,
	.partners = pfs_host_partners,
};
static const struct pfs_gather_family gather_family = {
	.gather = pfs_host_gather_column,
	.compute = pfs_host_compute,
	.filter = pfs_host_filter,
};
static const struct pfs_families host_families = {
	.name = "host",
	.close = pfs_host_operators_close,
	.select = &select_family,
	.sort = &sort_family,
	.group = &group_family,
	.join = &join_family,
	.gather = &gather_family,
	.index = &pfs_host_index_family,
	.wide_index = &pfs_host_wide_index_family,
};

int pfs_host_operators_open(struct pfs_operator_backend **out, struct pfs_pool *pool)
{
	return pfs_host_operators_create(out, &host_families, pool);
}
