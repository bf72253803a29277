/* SPDX-License-Identifier: MIT */
/* fs/mount/query/turns.h - requests that run statements take turns: so many at a time, fairly by user.  Who has
 * to wait does so as a copy of his request, without a thread; whoever ends his turn goes on with the next.
 *
 * A slot that is free goes to the user who has the fewest turns and has waited longest for one; those who do
 * not see all leave half of the slots to those who do.
 *
 * Nothing of FUSE here: a request is bytes with a number.  Threads: any number. */
#ifndef PFS_FS_MOUNT_QUERY_TURNS_H
#define PFS_FS_MOUNT_QUERY_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PFS_WAITING_OTHERS 1024u /* requests that one who does not see all may have waiting */

struct pfs_turns;

struct pfs_turn {
	uint64_t number; /* of the request */
	uid_t uid;
	bool sees_all;
	bool is_answer; /* the request is none: an answer that goes on (growing.h) */
};

PFS_MUST_CHECK int pfs_turns_open(struct pfs_turns **out, unsigned slots); /* 1 or more.  -ENOMEM. */
void pfs_turns_close(struct pfs_turns *turns); /* those who wait are dropped; NULL is allowed */

/* 1: it is its turn, which ends with pfs_turns_end; 0: a copy of it waits.  -EINTR: it was withdrawn before;
 * -EAGAIN: too many of the user's wait; -ENOMEM. */
PFS_MUST_CHECK int pfs_turns_take(struct pfs_turns *turns, const struct pfs_turn *turn,
				  const void *request, size_t len);
/* Ends a turn.  NULL: nobody is to have the slot now; else whose turn it is is in *turn, and his request, of
 * *len bytes, the caller's to free. */
void *pfs_turns_end(struct pfs_turns *turns, struct pfs_turn *turn, size_t *len);
/* It does not wait any more.  False: it did not, but if it should come, having been overtaken, it is not to. */
bool pfs_turns_withdraw(struct pfs_turns *turns, uint64_t number);

unsigned pfs_turns_waiting(struct pfs_turns *turns);

#endif
