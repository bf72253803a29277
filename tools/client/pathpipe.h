/* SPDX-License-Identifier: MIT */
/* tools/client/pathpipe.h - reads a list of paths from one descriptor and writes the answers to
 * another. One thread reads batches of lines, one resolves their paths, and one prints and writes;
 * each works on another batch at the same time. The threads of a pool find and print lines. Only a
 * few batches are in memory, however long the list is.
 *
 * If `in` is a pipe, all whole lines that it has are answered before it waits for more. */
#ifndef PFS_TOOLS_CLIENT_PATHPIPE_H
#define PFS_TOOLS_CLIENT_PATHPIPE_H

#include "fs/tree/resolve_lines.h"

/* The stages, each with a thread of its own. */
enum pfs_pathpipe_stage {
	PFS_PATHPIPE_READ,
	PFS_PATHPIPE_RESOLVE,
	PFS_PATHPIPE_WRITE,
	PFS_PATHPIPE_STAGES
};

struct pfs_pathpipe {
	int in, out;
	char delimiter; /* ends each path and each line that is written */
	/* The bytes of a batch, at most path_max; a longer path has a larger batch. 0: as many for
	 * each processor as stay in its cache. */
	size_t batch;
	size_t path_max; /* the most bytes that a path may have */
	void *arg;
	/* Sets inos[i] to the inode number of paths[i], or to 0. It may write the byte behind each
	 * path. The same thread makes all calls. Another result than 0 ends all stages. */
	int (*resolve)(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* Takes lines: each has the number, or - for 0, a tab, the path and the delimiter. May use
	 * the threads. NULL: lines are written to `out`. Another result than 0 ends all stages. */
	int (*put)(void *arg, const struct pfs_resolve_text *text,
		   const struct pfs_resolve_threads *threads);
	/* Shows answers in another way. NULL: they are printed as lines. Another result than 0 ends
	 * all stages. */
	int (*show)(void *arg, const uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* pfs_pathpipe_run sets these: */
	bool missing;			      /* an inode number was 0 */
	/* why each stage ended early: -errno, or what a function above returned; else 0 */
	int errors[PFS_PATHPIPE_STAGES];
	/* The time in which each stage did not wait for another is added to this. */
	uint64_t busy_ns[PFS_PATHPIPE_STAGES];
};

/* Answers all paths to the end of `in`; the last one may lack its delimiter. If reading or
 * resolving fails, the batches before are still written. Returns 0 if each stage came to its end.
 * Else -ECANCELED: pipe->errors has at least one error (-ENAMETOOLONG of reading: a path is longer
 * than path_max); -ENOMEM, -EAGAIN: nothing has begun, since memory or a thread is missing. */
PFS_MUST_CHECK int pfs_pathpipe_run(struct pfs_pathpipe *pipe);

#endif
