/* SPDX-License-Identifier: MIT */
/* tools/newer/from_file.h - the command `primefs refresh --from`: a newer table, list or archive is
 * imported into a store that is removed at once, compared (tools/newer/from.h), and what changed is
 * told, made so and logged. */
#ifndef PFS_TOOLS_NEWER_FROM_FILE_H
#define PFS_TOOLS_NEWER_FROM_FILE_H

#include <stdbool.h>

#include "base/err.h"

struct pfs_from_file {
	const char *newer, *store;
	const char *path;    /* where the rows or entries lie; NULL: in the root */
	const char *columns; /* of a list, as import has them; or NULL */
	bool list, dry_run, json;
	bool folders; /* options were given that are for folders alone */
};

/* An exit status. */
PFS_MUST_CHECK int pfs_refresh_from(const struct pfs_from_file *file);

#endif
