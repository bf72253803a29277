/* SPDX-License-Identifier: MIT */
/* fs/mount/control/control_socket.h - the socket on which the daemon listens: a file beside the
 * store or, where there can be none, a name without a file. Threads: one. */
#ifndef PFS_FS_MOUNT_CONTROL_CONTROL_SOCKET_H
#define PFS_FS_MOUNT_CONTROL_CONTROL_SOCKET_H

#include <stdbool.h>
#include <sys/stat.h>

#include "fs/mount/control/control.h"
#include "fs/mount/control/control_wire.h"
#include "fs/mount/kernel.h"

struct pfs_control_socket {
	int listener; /* -1: none */
	int folder;   /* -1: not open */
	char name[PFS_WIRE_NAME_SIZE];	      /* of the socket in the folder */
	char nameless[PFS_CONTROL_NAME_SIZE]; /* what one without a file is called; "" */
	struct stat file; /* the socket's: it may be another's by the time it is removed */
};

/* Makes the socket of the store, which listens. The caller has set both descriptors to -1, and
 * closes the socket even after an error. alone: as in struct pfs_control_options. Errors are those
 * of pfs_control_open. */
PFS_MUST_CHECK int pfs_control_socket_open(struct pfs_control_socket *at, const char *store,
					   bool alone);
/* Removes the socket's file, if it is still this socket's. */
void pfs_control_socket_remove(const struct pfs_control_socket *at);
void pfs_control_socket_close(struct pfs_control_socket *at);

#endif
