/* SPDX-License-Identifier: MIT */
#include "tools/open.h"

#include "meta/store.h"

int pfs_open_tree(struct pfs_tree **out, const char *verb, const char *store,
		  const struct pfs_tree_options *options)
{
	char why[512];
	int error = pfs_tree_open(out, store, options);

	if (!error)
		return PFS_EXIT_OK;
	pfs_store_explain(why, sizeof(why), store, error);
	return pfs_cmd_fail(verb, "%s", why);
}
