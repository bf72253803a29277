/* SPDX-License-Identifier: MIT */
/* A large store is opened in a moment from the first time on, and one that was stays so. */
#include "tools/import/import.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/image/imagefile.h"
#include "tools/client/ready.h"

#define NODE_BYTES 48 /* a store takes more than that for a node */

/* Whoever makes it looks at how many nodes there are; here it is only told whether that can be
 * enough. */
void pfs_import_leave_image(const struct pfs_import *import)
{
	const char *path = import->options.store;
	char name[PATH_MAX];
	const char *taken;
	struct stat store;

	(void)snprintf(name, sizeof(name), "%s" PFS_IMAGE_FILE_SUFFIX, path);
	if (import->options.passing || stat(path, &store) != 0 ||
	    store.st_size < (off_t)PFS_IMAGE_FILE_NODES * NODE_BYTES ||
	    (import->options.at && access(name, F_OK) != 0))
		return;
	taken = pfs_imagefile_taken(path);
	if (taken)
		pfs_cmd_say("import", "%s: %s", path, taken);
	else
		pfs_imagefile_make_behind(path, pfs_ready_beside);
}
