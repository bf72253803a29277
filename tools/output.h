/* SPDX-License-Identifier: MIT */
/* tools/output.h - a file that a command writes.
 *
 * It is written without a name, and takes that of the file when it is complete: until then, and if
 * the command fails, what was there stays. So it is if nothing was there, or what another file can
 * stand for: a regular file of this user and group, of one name, without attributes or an ACL, that
 * is not mounted there and that nobody writes to, such as this process if it is standard output.
 * Anything else is written in place; so is what a symlink that leads nowhere makes, and all where
 * the folder may not be written or files have to have names. What a command leaves that is killed
 * while its file takes the name, .primefs-output-HEX, goes with this user's next output there. */
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
