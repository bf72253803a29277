/* SPDX-License-Identifier: MIT */
/* tools/output.h - a file that a command writes.
 *
 * It is written without a name, and takes that of the file when it is complete: until then, and
 * if the command fails, what was there stays. It is written in place if it is no regular file, has
 * several names, another owner or a symlink that leads nowhere, if somebody writes to it, such as
 * this process if it is standard output, or where files have to have names. */
#ifndef PFS_TOOLS_OUTPUT_H
#define PFS_TOOLS_OUTPUT_H

#include <limits.h>
#include <stdio.h>

#include "base/err.h"

struct pfs_output {
	FILE *file; /* to be written to */
	const char *verb, *name;
	char replaced[PATH_MAX]; /* whose name it takes; "": it has been opened in place */
};

/* Opens the file; name NULL: standard output. A store is refused, and what may be beside one.
 * Returns an exit status; if it is not PFS_EXIT_OK, the reason has been printed. */
PFS_MUST_CHECK int pfs_output_open(struct pfs_output *out, const char *verb, const char *name);

/* Closes the file, which takes its name unless status is PFS_EXIT_FAILURE or PFS_EXIT_USAGE. error:
 * the errno of a write that failed, or 0. Returns `status`; or PFS_EXIT_FAILURE, with a line, if
 * what was written did not get out. */
PFS_MUST_CHECK int pfs_output_close(struct pfs_output *out, int status, int error);

#endif
