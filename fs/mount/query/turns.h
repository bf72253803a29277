/* SPDX-License-Identifier: MIT */
/* fs/mount/query/turns.h - requests that run statements take turns: so many at a time, shared
 * fairly between users. A request that has to wait does so as a copy, without a thread; whoever
 * ends a turn goes on with the next.
 *
 * A slot that becomes free goes to the user who has the fewest turns and has waited longest for
 * one; users who do not see all leave half of the slots to those who do.
 *
 * Nothing of FUSE is here: a request is bytes with a number. Threads: any number. */
#ifndef PFS_FS_MOUNT_QUERY_TURNS_H
#define PFS_FS_MOUNT_QUERY_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define PFS_WAITING_OTHERS 1024u /* requests that a user who does not see all may have waiting */

struct pfs_turns;

struct pfs_turn {
	uint64_t number; /* of the request */
	uid_t uid;
	bool sees_all;
	bool is_answer; /* there is no request: an answer goes on (growing.h) */
};

PFS_MUST_CHECK int pfs_turns_open(struct pfs_turns **out, unsigned slots); /* 1 or more.  -ENOMEM. */
void pfs_turns_close(struct pfs_turns *turns); /* those who wait are dropped; NULL is allowed */

/* Asks for a turn. Returns 1 if it is its turn, which ends with pfs_turns_end; 0 if a copy of it
 * waits. -EINTR: it was withdrawn before; -EAGAIN: too many of the user's wait; -ENOMEM. */
PFS_MUST_CHECK int pfs_turns_take(struct pfs_turns *turns, const struct pfs_turn *turn,
				  const void *request, size_t len);
/* Ends a turn. Returns the request whose turn it is now, of *len bytes, which the caller frees,
 * with *turn; NULL: nobody is to have the slot now. */
void *pfs_turns_end(struct pfs_turns *turns, struct pfs_turn *turn, size_t *len);
/* Withdraws a request. Returns false if it did not wait; if it comes later, having been overtaken,
 * it gets no turn. */
bool pfs_turns_withdraw(struct pfs_turns *turns, uint64_t number);

unsigned pfs_turns_waiting(struct pfs_turns *turns);

#endif
