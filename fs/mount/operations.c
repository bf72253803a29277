/* SPDX-License-Identifier: MIT */
#include "fs/mount/operations.h"

#include <string.h>

#include "fs/mount/query/virtual.h"

/* In a directory of the tree only the entry `.query` is virtual; in a virtual directory all entries
 * are. */
static bool is_query_entry(fuse_ino_t parent, const char *name)
{
	return pfs_is_virtual(parent) || strcmp(name, PFS_QUERY_NAME) == 0;
}

static bool is_any_virtual(size_t n, const struct fuse_forget_data *forgets)
{
	while (n && !pfs_is_virtual(forgets[n - 1].ino))
		n--;
	return n > 0;
}

#define X(operation, is_query, parameters, names)                                                  \
	static void do_##operation parameters                                                      \
	{                                                                                          \
		if (is_query)                                                                      \
			pfs_on_query_##operation names;                                            \
		else                                                                               \
			pfs_on_node_##operation names;                                             \
	}
/* NOLINTNEXTLINE(readability-function-size): the parameters are libfuse's */
PFS_OPERATIONS(X)
#undef X

const struct fuse_lowlevel_ops pfs_operations = {
#define X(operation, is_query, parameters, names) .operation = do_##operation,
	PFS_OPERATIONS(X)
#undef X
};
