/* SPDX-License-Identifier: MIT */
/* fs/mount/control/control_wire.h - what goes over the control socket, in this machine's byte order.
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

/* Where the socket of a store (an absolute path) is: a descriptor of the folder, and the name in
 * it. -ENAMETOOLONG. */
PFS_MUST_CHECK int pfs_wire_place(int *folder, char name[PFS_WIRE_NAME_SIZE], const char *store);

/* Addresses of sockets are short, those of stores need not be: what an open descriptor refers to,
 * or, with a name, what is so called in that folder.  name: at most 64 bytes. */
void pfs_wire_address(struct sockaddr_un *address, int fd, const char *name);

/* Connects to the socket of that name in the folder.  -ENOENT: no socket, or nobody listens; -EACCES: it is
 * not this user's, root's or `owner`'s, and is left alone, since a connection may be made to wait. */
PFS_MUST_CHECK int pfs_wire_connect(int *fd, int folder, const char *name, uid_t owner);

/* A socket without a file, for a daemon whose name beside the store is taken: its name's length in bytes,
 * which is part of the address. */
socklen_t pfs_wire_nameless(struct sockaddr_un *address, const char *name);

#endif
