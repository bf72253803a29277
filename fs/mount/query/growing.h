/* SPDX-License-Identifier: MIT */
/* fs/mount/query/growing.h - answers that are read while they are made.
 *
 * A statement begins in the request that asks for its answer. That request ends once the answer
 * fills its own memory, or is complete. The statement runs ahead until there is no more memory for
 * the answer. Then it rests until a reader comes near to the end of the bytes that there are; bytes
 * that are made from then on go to the answer's file. A statement that has rested for long is run
 * to its end, so that its snapshot ends. If no reader is left, the statement ends at once.
 *
 * A read of bytes that are not there yet waits as a request, without a thread; it can be
 * interrupted and repeated. The statement goes on in a turn of its own (turns.h).
 *
 * Threads: any number. */
#ifndef PFS_FS_MOUNT_QUERY_GROWING_H
#define PFS_FS_MOUNT_QUERY_GROWING_H

#include <fuse_lowlevel.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "fs/query/output/making.h"

struct pfs_growing;
struct pfs_growings; /* those of a mount */
struct pfs_turn;
struct pfs_turns;

#define PFS_GROWING_MAX 512u /* growing answers at a time; further ones are complete before reads */

/* What growing answers need of their mount. */
struct pfs_growing_host {
	void *arg;
	struct pfs_turns *turns;
	/* Asks for a turn for the answer, as pfs_turns_take does for a request. When the turn
	 * comes, pfs_growing_go_on is called. */
	int (*take_turn)(void *arg, const struct pfs_turn *turn, struct pfs_growing *growing);
	/* Called when an answer cannot be made to its end. text says why; NULL: there is no memory
	 * to say it. */
	void (*failed)(void *arg, uid_t uid, uint64_t about, const char *text);
	_Atomic int *running; /* the mount's count of statements that run */
	unsigned rest_ms; /* milliseconds after which a statement that rests is run to its end */
};

/* Makes the table of a mount's growing answers; host must outlive it. -ENOMEM. */
PFS_MUST_CHECK int pfs_growings_open(struct pfs_growings **out,
				     const struct pfs_growing_host *host);
/* Waits for the statements that are being run to their end because they rested for long; no further
 * ones will be. NULL is allowed. */
void pfs_growings_stop(struct pfs_growings *growings);
void pfs_growings_close(struct pfs_growings *growings); /* there are none; NULL is allowed */

struct pfs_growing_counts {
	/* Answers that grow, those of them that rest, and reads that wait. */
	unsigned answers, resting, readers;
};
void pfs_growings_count(struct pfs_growings *growings, struct pfs_growing_counts *out);

/* On whose behalf an answer is made. */
struct pfs_growing_asker {
	struct pfs_queries *queries;
	const struct pfs_query_scope *scope; /* its `gone` is not called after pfs_growing_begin */
	size_t memory;	/* bytes of memory that the answer has of its own */
	uint64_t about; /* passed to `failed` */
	bool wants_all; /* the answer is to be complete before it is read */
	void *arg;
	/* Tells the query that an interrupt of the request is to stop; NULL: none. */
	void (*running)(void *arg, struct pfs_query *query);
};

/* Begins to make an answer, which is empty. If *out is NULL, the answer is complete; it always is
 * if growings is NULL. Else *out is held for the reader until pfs_growing_leave. The caller then
 * has the answer's turn: after its reply it calls pfs_growing_go_on, which ends the turn. Errors as
 * of pfs_query_start and pfs_query_next. */
PFS_MUST_CHECK int pfs_growing_begin(struct pfs_growing **out, struct pfs_growings *growings,
				     struct pfs_answer *answer, const struct pfs_asked *asked,
				     const struct pfs_growing_asker *asker,
				     struct pfs_query_error *error);
/* Makes more of the answer, until the statement rests or ends. The caller has the answer's turn. */
void pfs_growing_go_on(struct pfs_growing *growing);

struct pfs_growing *pfs_growing_ref(struct pfs_growing *growing);
void pfs_growing_unref(struct pfs_growing *growing); /* NULL is allowed */
/* Says that no reader is left: the statement ends. NULL is allowed. */
void pfs_growing_leave(struct pfs_growing *growing);

/* Replies with bytes of the answer, fewer than `size` only at its end; now, or when they have been
 * made. EIO: they cannot be made. */
void pfs_growing_read(struct pfs_growing *growing, fuse_req_t req, size_t size, uint64_t offset);
/* Replies with attr once the answer's size is known, which is added to attr's st_size. */
void pfs_growing_measure(struct pfs_growing *growing, fuse_req_t req, const struct stat *attr);

#endif
