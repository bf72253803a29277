/* SPDX-License-Identifier: MIT */
/* fs/mount/control/control_wire.h - what goes over the control socket, in this machine's byte
 * order.
 *
 * Client: a struct pfs_wire_request, then its words, each ended by a NUL.
 * Daemon: frames of PFS_WIRE_BYTES, then one PFS_WIRE_END: an int32_t, the exit status, and the
 * sentence without its NUL.  What comes without an end is no answer. */
#ifndef PFS_FS_MOUNT_CONTROL_CONTROL_WIRE_H
#define PFS_FS_MOUNT_CONTROL_CONTROL_WIRE_H

#include <limits.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/err.h"

#define PFS_WIRE_MAGIC 0x31734650u /* "PFs1"; another number is another language */

struct pfs_wire_request {
	uint32_t magic;
	uint32_t size; /* of all words, NULs included */
	uint32_t n_words;
};

enum pfs_wire_kind { PFS_WIRE_BYTES = 1, PFS_WIRE_END = 2 };

struct pfs_wire_frame {
	uint32_t kind;
	uint32_t size; /* of what follows */
};

#define PFS_WIRE_NAME_SIZE (NAME_MAX + 1)

/* Finds where the socket of a store (an absolute path) is: a descriptor of the folder, which the
 * caller closes, and the name in it. -ENAMETOOLONG. */
PFS_MUST_CHECK int pfs_wire_place(int *folder, char name[PFS_WIRE_NAME_SIZE], const char *store);

/* Makes a socket's address that refers to the open descriptor fd or, if name (at most 64 bytes) is
 * not NULL, to that name in the folder fd. It is short, as addresses of sockets have to be, even if
 * the store's path is long. */
void pfs_wire_address(struct sockaddr_un *address, int fd, const char *name);

/* Connects to the socket of that name in the folder. -ENOENT: there is no socket, or no process
 * listens; -EACCES: it is not this user's, root's or `owner`'s, and is not connected to, since its
 * listener could make this process wait. */
PFS_MUST_CHECK int pfs_wire_connect(int *fd, int folder, const char *name, uid_t owner);

/* Makes an address without a file, for a daemon whose name beside the store is taken. Returns the
 * address's length in bytes, which is part of it. */
socklen_t pfs_wire_nameless(struct sockaddr_un *address, const char *name);

#endif
