/* SPDX-License-Identifier: MIT */
/* tools/client/pathpipe.h - reads a list of paths from one descriptor and writes the answers to
 * another. Several threads do it: each takes the next batch of lines, finds its paths, has them
 * resolved, prints the answers, and writes these when those of all batches before are written. Each
 * has one batch in memory, however long the list is, which stays in the cache of its processor. A
 * path that is longer than a batch is had by one thread at a time.
 *
 * Threads read in turn. But if `in` is a regular file, a thread whose turn it is only looks where
 * its batch ends, and reads it at the same time as others read theirs. If `in` is a pipe, all whole
 * lines that it has are answered before more is waited for.
 *
 * Not handled here: writing to `out` by several threads at once. It would be no faster, since file
 * systems let one thread at a time write to a file. */
#ifndef PFS_TOOLS_CLIENT_PATHPIPE_H
#define PFS_TOOLS_CLIENT_PATHPIPE_H

#include "fs/tree/resolve_lines.h"

/* What is done with a batch. */
enum pfs_pathpipe_stage {
	PFS_PATHPIPE_READ, /* and find its lines */
	PFS_PATHPIPE_RESOLVE,
	PFS_PATHPIPE_WRITE, /* and print them */
	PFS_PATHPIPE_STAGES
};

struct pfs_pathpipe {
	int in, out;	/* not the same file, which would be changed while it is read */
	char delimiter; /* ends each path and each line that is written */
	/* How many threads may call `resolve` at once, which then have few batches, and larger
	 * ones. 0: all. */
	unsigned at_once;
	/* How many threads there are. 0: some more than processors; with `at_once`, a few. */
	unsigned threads;
	/* The bytes of a batch, at most path_max; a longer path has a larger batch. 0: as many as
	 * are good. */
	size_t batch;
	size_t path_max; /* the most bytes that a path may have */
	void *arg;
	/* Sets inos[i] to the inode number of paths[i], or to 0. It may write the byte behind each
	 * path. Another result than 0 ends the list before these paths. */
	int (*resolve)(void *arg, uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* Takes lines: each has the number, or - for 0, a tab, the path and the delimiter. The
	 * lines before have `offset` bytes, but need not have been taken yet: several threads call
	 * this at once. NULL: lines are written to `out`. Another result than 0 ends the list. */
	int (*put)(void *arg, const struct pfs_resolve_text *text, uint64_t offset);
	/* Shows answers in another way, one thread at a time and in order. NULL: they are printed
	 * as lines. Another result than 0 ends the list. */
	int (*show)(void *arg, const uint64_t *inos, const struct pfs_path_text *paths, size_t n);
	/* pfs_pathpipe_run sets these: */
	bool missing;	    /* an inode number was 0 */
	uint64_t put_bytes; /* of all lines that `put` was given */
	/* Why the list was not answered to its end: -errno, or what a function above returned, at
	 * the stage that failed; 0 elsewhere. Of several failures it is that of the first batch. */
	int errors[PFS_PATHPIPE_STAGES];
	/* The time that threads spent with each stage, without waiting for each other, is added to
	 * this. */
	uint64_t busy_ns[PFS_PATHPIPE_STAGES];
};

/* Answers all paths to the end of `in`; the last one may lack its delimiter. If reading or
 * resolving fails, what comes before is still answered. Returns 0 if all were answered. Else
 * -ECANCELED: pipe->errors has an error (-ENAMETOOLONG of reading: a path is longer than
 * path_max); -ENOMEM: nothing has begun. */
PFS_MUST_CHECK int pfs_pathpipe_run(struct pfs_pathpipe *pipe);

#endif
