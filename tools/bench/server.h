/* SPDX-License-Identifier: MIT */
/* tools/bench/server.h - what bench mount measures: a store, and its yardstick, at one mountpoint.
 */
#ifndef PFS_TOOLS_BENCH_SERVER_H
#define PFS_TOOLS_BENCH_SERVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/err.h"

struct pfs_bench_server {
	const char *verb;	    /* for messages: every failure is said */
	const char *nullfs;	    /* another program as yardstick, or NULL */
	unsigned threads;	    /* that wait for requests */
	uint64_t bytes;		    /* size of the yardstick's large file */
	char folder[PATH_MAX - 64]; /* of this server's own */
	char store[PATH_MAX], mountpoint[PATH_MAX];
	bool without_image; /* no image file is written beside the store, or read */
	const char *other; /* somebody's store, to be mounted in place of its own; NULL: none */
	/* private */
	pid_t yardstick; /* 0: not running */
	bool mounted;
};

/* Makes a folder of the server's own in `folder`. */
PFS_MUST_CHECK int pfs_bench_server_open(struct pfs_bench_server *server, const char *folder);

/* Unmounts and removes everything. */
void pfs_bench_server_close(struct pfs_bench_server *server);

/* Makes the store anew, of the paths that print() writes; *seconds (may be NULL) is how long the
 * import took. */
PFS_MUST_CHECK int pfs_bench_server_fill(struct pfs_bench_server *server, double *seconds,
					 int (*print)(FILE *out, const void *arg), const void *arg);

/* Mounts the store; timeout is how many seconds the kernel may keep answers. */
PFS_MUST_CHECK int pfs_bench_server_mount(struct pfs_bench_server *server, const char *timeout,
					  const char *engine);
PFS_MUST_CHECK int pfs_bench_server_unmount(struct pfs_bench_server *server);

/* Mounts the yardstick: 1,000 directories of 1,000 files. */
PFS_MUST_CHECK int pfs_bench_server_mount_yardstick(struct pfs_bench_server *server,
						    const char *timeout);
PFS_MUST_CHECK int pfs_bench_server_unmount_yardstick(struct pfs_bench_server *server);

#endif
