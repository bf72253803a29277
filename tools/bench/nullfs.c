/* SPDX-License-Identifier: MIT */
/* primefs-bench nullfs - mounts the yardstick of primefs-bench mount, to be tried by hand. */
#include "tools/bench/bench.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tools/bench/yardstick.h"

enum { DIRS, FILES, BYTES, THREADS, TIMEOUT };

static const struct pfs_cmd_option options[] = {
	[DIRS] = {"dirs", 0, "N", "directories in the root (1000)"},
	[FILES] = {"files", 0, "N", "files in each (1000)"},
	[BYTES] = {"bytes", 0, "N", "size of the file big (4294967296)"},
	[THREADS] = {"threads", 0, "N", "that serve requests (2)"},
	[TIMEOUT] = {"timeout", 0, "SECONDS", "how long the kernel may keep answers (86400)"},
	{0},
};

static const struct pfs_cmd command = {
	"nullfs",
	"MOUNTPOINT",
	"Serves a filesystem that answers from arithmetic and keeps nothing, until it is "
	"unmounted.",
	options,
	NULL,
};

int pfs_bench_nullfs(int argc, char **argv)
{
	uint64_t dirs = 1000, files = 1000, bytes = UINT64_C(4) << 30, threads = 2, timeout = 86400;
	struct pfs_yardstick yardstick;
	struct pfs_cmd_args args;
	char mountpoint[PATH_MAX];
	int option;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0) {
		if (option == DIRS)
			pfs_cmd_number(&args, &dirs, DIRS, 0, 1000000);
		else if (option == FILES)
			pfs_cmd_number(&args, &files, FILES, 0, 1000000);
		else if (option == BYTES)
			pfs_cmd_number(&args, &bytes, BYTES, 0, INT64_MAX);
		else if (option == THREADS)
			pfs_cmd_number(&args, &threads, THREADS, 1, 64);
		else
			pfs_cmd_number(&args, &timeout, TIMEOUT, 0, 1000000000);
	}
	if (pfs_cmd_end(&args, 1, 1))
		return args.status;
	if (!realpath(args.operands[0], mountpoint))
		return pfs_cmd_fail("nullfs", "%s: %s", args.operands[0], strerror(errno));
	yardstick = (struct pfs_yardstick){(uint32_t)dirs, (uint32_t)files, bytes,
					   (unsigned)threads, (double)timeout};
	if (pfs_yardstick_serve(&yardstick, mountpoint) != 0)
		return PFS_EXIT_FAILURE; /* libfuse has said why */
	return PFS_EXIT_OK;
}
