/* SPDX-License-Identifier: MIT */
/* fs/mount/query/growing.h - answers that are read while they are made.
 *
 * A statement begins in the request that asks for its answer. That request ends once there is as
 * much as an answer has memory of its own, or all. The statement runs ahead until there is no more
 * memory for the answer, and then rests until a reader comes near to the end of what there is; what
 * is made from then on goes to the answer's file. A statement that has rested for long is run to
 * its end, and its snapshot ends; so is that of an answer that nobody can read any more.
 *
 * A read of what is not there yet waits as a request, without a thread; it can be interrupted and
 * repeated. The statement goes on in a turn of its own (turns.h).
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

#define PFS_GROWING_MAX 512u /* answers at a time (shares.h); others are complete before they are read */

/* Gives growing answers what they need of their mount. */
struct pfs_growing_host {
	void *arg;
	struct pfs_turns *turns;
	/* As pfs_turns_take, for the answer. When its turn comes, pfs_growing_go_on is called. */
	int (*take_turn)(void *arg, const struct pfs_turn *turn, struct pfs_growing *growing);
	/* Called when an answer cannot be made to its end; text says why; NULL: there is no memory
	 * for that. */
	void (*failed)(void *arg, uid_t uid, uint64_t about, const char *text);
	_Atomic int *running; /* statements */
	unsigned rest_ms;     /* milliseconds after which a statement that rests is run to its end */
};

/* Makes the table of a mount's growing answers; host must outlive it. -ENOMEM. */
PFS_MUST_CHECK int pfs_growings_open(struct pfs_growings **out, const struct pfs_growing_host *host);
/* Ends those statements that are run to their end; none will be from now on. NULL is allowed. */
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
	const struct pfs_query_scope *scope; /* its `gone` is not asked any more once the statement has begun */
	size_t memory;	/* of the answer's own */
	uint64_t about; /* what `failed` is told */
	bool wants_all; /* it is complete before it is read */
	void *arg;
	void (*running)(void *arg, struct pfs_query *query); /* what may be interrupted meanwhile; NULL: nothing */
};

/* Begins what is asked, into an empty answer. *out is NULL if the answer is complete, as each is if
 * growings is NULL. Else it is held for its reader until pfs_growing_leave, and the caller has its
 * turn, which he ends by pfs_growing_go_on once he has replied. Errors as of pfs_query_start and
 * pfs_query_next. */
PFS_MUST_CHECK int pfs_growing_begin(struct pfs_growing **out, struct pfs_growings *growings,
				     struct pfs_answer *answer, const struct pfs_asked *asked,
				     const struct pfs_growing_asker *asker,
				     struct pfs_query_error *error);
/* Makes more of the answer, until it rests or ends. For who has its turn. */
void pfs_growing_go_on(struct pfs_growing *growing);

struct pfs_growing *pfs_growing_ref(struct pfs_growing *growing);
void pfs_growing_unref(struct pfs_growing *growing); /* NULL is allowed */
/* Says that nobody reads any more: the statement ends. NULL is allowed. */
void pfs_growing_leave(struct pfs_growing *growing);

/* Replies with bytes of the answer, fewer only at its end, now or when they are there; EIO: they
 * cannot be made. */
void pfs_growing_read(struct pfs_growing *growing, fuse_req_t req, size_t size, uint64_t offset);
/* Replies with attr, to whose st_size the answer's is added, once that is known. */
void pfs_growing_measure(struct pfs_growing *growing, fuse_req_t req, const struct stat *attr);

#endif
