/* SPDX-License-Identifier: MIT */
/* tools/import/import_paths.h - paths from a text into a build, cheaply when neighbours are
 * alike. */
#ifndef PFS_TOOLS_IMPORT_IMPORT_PATHS_H
#define PFS_TOOLS_IMPORT_IMPORT_PATHS_H

#include "base/err.h"
#include "fs/build/build.h"

/* Holds the directories above the last path's last component. */
struct pfs_path_trail {
	char *path; /* the last path */
	size_t len, capacity;
	struct {
		uint32_t node;
		size_t end; /* of the component in path, its slash included */
	} * above;
	size_t n_above, above_capacity;
};

struct pfs_path_node {
	uint32_t node; /* PFS_BUILD_ROOT for "/" and "." */
	enum pfs_build_seen seen;
};

/* Adds the node and whatever it lies in.  A leading / or ./ does not matter, repeated slashes
 * and /./ fold, a slash at the end makes a directory.  -ELOOP for "..", else what pfs_build_add
 * says; a sentence is pfs_import_name_error's. */
PFS_MUST_CHECK int pfs_path_add(struct pfs_path_trail *trail, struct pfs_path_node *out,
				struct pfs_build *build, const char *path, size_t len);

/* The node of a path, added or stored; -ENOENT. */
PFS_MUST_CHECK int pfs_path_find(const struct pfs_build *build, uint32_t *node, const char *path,
				 size_t len);
void pfs_path_free(struct pfs_path_trail *trail);

#endif
