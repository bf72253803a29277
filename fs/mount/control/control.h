/* SPDX-License-Identifier: MIT */
/* fs/mount/control/control.h - how commands ask the daemon of a mounted store: a Unix socket beside
 * the store.
 *
 * The socket is STORE.sock, mode 0600. Where a writing daemon cannot put it there, for example
 * because the name is taken, the socket has no file, and the mountpoint tells its name (kernel.h).
 * Only the user who runs the daemon and root are answered. A connection carries one request: words,
 * the first of them the verb. The answer is bytes, as they come; at its end an exit status and, if
 * something was wrong, a sentence.
 *
 * Each request is answered by a thread of its own. Bytes that its client does not read at once are
 * kept in memory. So a slow client delays no other, and when a client is gone, the verb ends at its
 * next write.
 *
 * The client's side is pfs_control_ask. */
#ifndef PFS_FS_MOUNT_CONTROL_CONTROL_H
#define PFS_FS_MOUNT_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "fs/mount/reply.h"

#define PFS_CONTROL_SUFFIX	".sock"
#define PFS_CONTROL_REQUEST_MAX ((size_t)8 << 20) /* bytes of all words */
#define PFS_CONTROL_WORDS_MAX	((size_t)1 << 20)
#define PFS_CONTROL_CLIENTS	16 /* clients answered at a time; further ones are refused with a sentence */
/* Clients connected at a time: those, and others whose statements wait for a turn or have one,
 * which turns bound, or whose answers wait to be read. They take a quarter of the daemon's
 * descriptors at the most. */
#define PFS_CONTROL_CONNECTED	1024

/* ---- the daemon's side ---- */

struct pfs_verb {
	const char *name;
	/* Answers words[0..n), of which the first is the name, and returns the exit status. Called
	 * by several threads at once, without locks. */
	int (*answer)(void *arg, struct pfs_reply *reply, const char *const *words, size_t n);
	bool runs; /* it runs a statement, and takes a turn */
};

struct pfs_turns;

struct pfs_control_options {
	const char *store;	      /* its absolute path */
	const struct pfs_verb *verbs; /* ended by one whose name is NULL; they stay the caller's */
	void *arg;
	struct pfs_turns
		*turns; /* that statements take, the caller's (query/turns.h); NULL: none */
	bool alone; /* the store is locked for writing: a socket that is there is a dead daemon's */
	uint64_t unread_limit; /* bytes kept for all clients together; 0: a quarter of the memory */
};

struct pfs_control;

/* Listens. Signals should be blocked: a thread is started. Without options->alone: -EADDRINUSE:
 * another reader of the store listens; -EACCES, -EROFS, -EPERM, -ENAMETOOLONG: there can be no
 * socket beside this store. Nothing is logged. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_control_open(struct pfs_control **out,
				    const struct pfs_control_options *options);

/* Returns the name of the control's socket if that has no file; "" if it lies beside the store. */
const char *pfs_control_name(const struct pfs_control *control);

/* Removes the socket, cuts clients off, waits for verbs to return, frees.  NULL is allowed. */
void pfs_control_close(struct pfs_control *control);

/* ---- the client's side ---- */

/* Asks the daemon of the store at path, which need not be absolute. The answer goes into reply,
 * whose write may wait and whose failure ends the call. *status is what the verb returned. -ENOENT:
 * no daemon listens, or none that this user, root or the store's owner runs; -EACCES: another
 * user's daemon has the store; -EPIPE: the daemon ended before it had answered; -EPROTO: it speaks
 * another version; -E2BIG: the request is too long. */
PFS_MUST_CHECK int pfs_control_ask(int *status, struct pfs_reply *reply, const char *store,
				   const char *const *words, size_t n);

#endif
