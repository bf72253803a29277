/* SPDX-License-Identifier: MIT */
/* tools/client/pathpipe.h - answers lists of paths from a descriptor to a descriptor: one thread reads batches
 * of lines, one has their paths resolved, one prints and writes, each while the others are at other batches, and
 * all threads of a pool find the lines and print them. A few batches are in memory, however long the list is.
 *
 * What a pipe has given so far is answered before more is waited for. */
#ifndef PFS_TOOLS_CLIENT_PATHPIPE_H
#define PFS_TOOLS_CLIENT_PATHPIPE_H

#include "fs/tree/resolve_lines.h"

/* What threads do: each has a stage. */
enum pfs_pathpipe_stage { PFS_PATHPIPE_READ, PFS_PATHPIPE_RESOLVE, PFS_PATHPIPE_WRITE, PFS_PATHPIPE_STAGES };

struct pfs_pathpipe {
	int in, out;
	char delimiter; /* of the paths, and of the lines that are written */
	/* Bytes that are answered together, at most path_max; more, if a path is longer. 0: as many for each processor as
	 * stay in its cache. */
	size_t batch;
	size_t path_max; /* bytes that a path may have */
	void *arg;
	/* Sets inos[i] to the inode number of paths[i], or to 0. The byte behind each path may be written. Each
	 * call is by the same thread. Another result than 0 ends all. */
	int (*resolve)(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* Takes lines, each the number, or - for 0, a tab, the path and the delimiter; the threads may help. NULL: they
	 * are written to `out`. Another result than 0 ends all. */
	int (*put)(void *arg, const struct pfs_resolve_text *text, const struct pfs_resolve_threads *threads);
	/* NULL: answers are printed as lines. Else it shows them in another way. Another result than 0 ends all. */
	int (*show)(void *arg, const uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* Set by pfs_pathpipe_run. */
	bool missing;			      /* an inode number was 0 */
	int errors[PFS_PATHPIPE_STAGES];      /* why each stage ended early: -errno, or what a function above returned */
	uint64_t busy_ns[PFS_PATHPIPE_STAGES]; /* in which the stage did not wait for another; added to */
};

/* Answers all paths to the end of `in`; the last one may lack its delimiter. What was read before a failed read, and
 * what was resolved before a failure to resolve, is written. Returns 0 if each stage came to its end, else
 * -ECANCELED: pipe->errors has at least one error. -ENAMETOOLONG there of reading: a path is longer than path_max.
 * -ENOMEM, -EAGAIN: nothing has begun, for want of memory or a thread. */
PFS_MUST_CHECK int pfs_pathpipe_run(struct pfs_pathpipe *pipe);

#endif
