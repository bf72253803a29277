/* SPDX-License-Identifier: MIT */
#include "fs/mount/control/control_socket.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/random.h"

static bool somebody_listens(const struct pfs_control_socket *at, const char *store)
{
	int fd PFS_CLOSE = -1;
	struct stat attr;

	return stat(store, &attr) == 0 &&
	       pfs_wire_connect(&fd, at->folder, at->name, attr.st_uid) == 0;
}

static int open_listener(struct pfs_control_socket *at)
{
	at->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (at->listener < 0)
		return -errno;
	return fchmod(at->listener, 0600) ? -errno : 0; /* what its file will have */
}

/* Made under a name that is sure to fit, then put in its place, listening already. */
static int make_socket(struct pfs_control_socket *at)
{
	struct sockaddr_un address;
	char digits[PFS_RANDOM_SIZE], name[64];
	int error = 0;

	PFS_TRY(pfs_random_digits(digits));
	PFS_TRY(open_listener(at));
	(void)snprintf(name, sizeof(name), ".primefs-%s" PFS_CONTROL_SUFFIX, digits);
	pfs_wire_address(&address, at->folder, name);
	if (bind(at->listener, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -errno;
	if (listen(at->listener, PFS_CONTROL_CONNECTED) != 0 ||
	    fstatat(at->folder, name, &at->file, AT_SYMLINK_NOFOLLOW) != 0 ||
	    renameat(at->folder, name, at->folder, at->name) != 0)
		error = -errno;
	if (error)
		(void)unlinkat(at->folder, name, 0);
	return error;
}

/* Whoever asks has the name from the mountpoint, and looks who listens. */
static int make_nameless(struct pfs_control_socket *at)
{
	struct sockaddr_un address;
	char digits[PFS_RANDOM_SIZE];
	socklen_t size;

	if (at->listener >= 0)
		(void)close(at->listener);
	at->file.st_ino = 0;
	PFS_TRY(pfs_random_digits(digits));
	PFS_TRY(open_listener(at));
	(void)snprintf(at->nameless, sizeof(at->nameless), "primefs-%s", digits);
	size = pfs_wire_nameless(&address, at->nameless);
	if (bind(at->listener, (struct sockaddr *)&address, size) != 0 ||
	    listen(at->listener, PFS_CONTROL_CONNECTED) != 0)
		return -errno;
	return 0;
}

void pfs_control_socket_remove(const struct pfs_control_socket *at)
{
	struct stat now;

	if (at->file.st_ino &&
	    fstatat(at->folder, at->name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == at->file.st_dev && now.st_ino == at->file.st_ino)
		(void)unlinkat(at->folder, at->name, 0);
}

int pfs_control_socket_open(struct pfs_control_socket *at, const char *store, bool alone)
{
	int error = pfs_wire_place(&at->folder, at->name, store);

	if (!error && !alone && somebody_listens(at, store))
		return -EADDRINUSE;
	if (!error)
		error = make_socket(at);
	return error && alone ? make_nameless(at) : error;
}

void pfs_control_socket_close(struct pfs_control_socket *at)
{
	if (at->listener >= 0)
		(void)close(at->listener);
	if (at->folder >= 0)
		(void)close(at->folder);
}
