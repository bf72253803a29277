/* SPDX-License-Identifier: MIT */
/* fs/mount/query/turns.h - requests that run statements take turns: a limited number runs at a
 * time, shared fairly between users. A request that has to wait does so as a copy, without a
 * thread; the thread that ends a turn goes on with the next request. Statements of commands take
 * turns, too: each is a call, whose thread waits, and leaves the next request to another thread.
 *
 * A turn that becomes free goes to the user who has the fewest turns; of several such users, to the
 * one who has waited longest. Users who do not see all nodes leave half of the turns to users who
 * do.
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

/* Has another thread process a request that has its turn, and end that turn. The request is as
 * pfs_turns_end returns it. */
typedef void pfs_turns_go_on(void *arg, const struct pfs_turn *turn, void *request, size_t len);

/* slots: how many turns there are at a time, 1 or more. go_on is called at the end of calls.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_turns_open(struct pfs_turns **out, unsigned slots, pfs_turns_go_on *go_on,
				  void *arg);
/* Returns the turns, which one more user closes; NULL is allowed. */
struct pfs_turns *pfs_turns_ref(struct pfs_turns *turns);
void pfs_turns_close(
	struct pfs_turns *turns); /* the last one drops waiting requests; NULL is allowed */

/* Asks for a turn. Returns 1 if the request has its turn, which ends with pfs_turns_end; 0 if a
 * copy of the request waits. -EINTR: it was withdrawn before; -EAGAIN: too many requests of the
 * user wait; -ENOMEM. */
PFS_MUST_CHECK int pfs_turns_take(struct pfs_turns *turns, const struct pfs_turn *turn,
				  const void *request, size_t len);
/* Ends the turn *turn. Returns the request that has its turn now, of *len bytes, which the caller
 * frees, and sets *turn to its turn; NULL: no request gets a turn now. */
void *pfs_turns_end(struct pfs_turns *turns, struct pfs_turn *turn, size_t *len);
/* Withdraws a request. Returns false if it did not wait. If it asks for a turn only later, because
 * this call overtook it, it gets none. */
bool pfs_turns_withdraw(struct pfs_turns *turns, uint64_t number);

/* ---- calls ---- */

struct pfs_turn_call {
	uid_t uid;
	bool sees_all;
	void (*run)(void *arg);
	/* Returns true if nobody wants the call any more. Asked while it waits, with the turns'
	 * lock. */
	bool (*gone)(void *arg);
	void *arg;
};

/* Calls call->run in a turn, for which the thread waits. -EINTR: nobody wants it any more, or the
 * turns are stopped; -EAGAIN and -ENOMEM as of pfs_turns_take. */
PFS_MUST_CHECK int pfs_turns_call(struct pfs_turns *turns, const struct pfs_turn_call *call);
/* Has calls that wait, and those to come, return -EINTR, and waits for the others to end; go_on is
 * not called any more then. Requests take turns as before. NULL is allowed. */
void pfs_turns_stop(struct pfs_turns *turns);

/* ---- */

unsigned pfs_turns_waiting(struct pfs_turns *turns); /* returns how many requests and calls wait */

#endif
