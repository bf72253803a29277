/* SPDX-License-Identifier: MIT */
/* The client's side of the control socket. */
#include "fs/mount/control/control_wire.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/mount/control/control.h"
#include "fs/mount/kernel.h"
#include "meta/store.h"

#define PIECE_SIZE ((size_t)256 << 10)
#define LOOK_MS	   100 /* between looks whether the answer is still wanted */

int pfs_wire_place(int *folder, char name[PFS_WIRE_NAME_SIZE], const char *store)
{
	const char *slash = strrchr(store, '/');
	char *path PFS_FREE = slash ? strndup(store, (size_t)(slash - store) + 1) : NULL;
	int n;

	if (!path)
		return slash ? -ENOMEM : -EINVAL;
	n = snprintf(name, PFS_WIRE_NAME_SIZE, "%s" PFS_CONTROL_SUFFIX, slash + 1);
	if (n < 0 || n >= PFS_WIRE_NAME_SIZE)
		return -ENAMETOOLONG;
	*folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return *folder < 0 ? -errno : 0;
}

void pfs_wire_address(struct sockaddr_un *address, int fd, const char *name)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	(void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d%s%s", fd,
		       *name ? "/" : "", name);
}

socklen_t pfs_wire_nameless(struct sockaddr_un *address, const char *name)
{
	size_t len = PFS_MIN(strlen(name), sizeof(address->sun_path) - 1);

	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	memcpy(address->sun_path + 1, name, len); /* the NUL before it says that there is no file */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static int connect_to(int *out, const struct sockaddr_un *address, socklen_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)address, size) != 0) {
		error = errno == ECONNREFUSED || errno == ENOTSOCK ? -ENOENT : -errno;
		(void)close(fd);
		return error;
	}
	*out = fd;
	return 0;
}

static bool is_trusted(uid_t uid, uid_t owner)
{
	return uid == geteuid() || uid == 0 || uid == owner;
}

int pfs_wire_connect(int *out, int folder, const char *name, uid_t owner)
{
	int file PFS_CLOSE = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct sockaddr_un address;
	struct stat attr;

	if (file < 0 || fstat(file, &attr) != 0)
		return -errno;
	if (!is_trusted(attr.st_uid, owner))
		return -EACCES;
	pfs_wire_address(&address, file, "");
	return connect_to(out, &address, sizeof(address));
}

/* Checks that it is the caller, root or the store's owner who listens: others may be able to write
 * the folder. */
static int check_daemon(int fd, uid_t owner)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
		return -errno;
	return is_trusted(peer.uid, owner) ? 0 : -EACCES;
}

/* Connects by the socket beside the store. */
static int connect_beside(int *fd, const char *path, uid_t owner)
{
	int folder PFS_CLOSE = -1;
	char name[PFS_WIRE_NAME_SIZE];
	int error = pfs_wire_place(&folder, name, path);

	if (error)
		return error == -ENAMETOOLONG ? -ENOENT : error;
	return pfs_wire_connect(fd, folder, name, owner);
}

/* Connects by what the mountpoint says, where the daemon could not put that socket; else returns
 * `error`. */
static int connect_by_mount(int *fd, const char *path, int error)
{
	struct pfs_kernel_mount found;
	struct pfs_kernel_daemon daemon;
	struct sockaddr_un address;

	if (pfs_kernel_find(&found, NULL, path) != 0 ||
	    pfs_kernel_daemon(&daemon, found.mountpoint) != 0 || !*daemon.control)
		return error;
	return connect_to(fd, &address, pfs_wire_nameless(&address, daemon.control));
}

/* ---- asking ---- */

static int send_all(int fd, const void *bytes, size_t size)
{
	const char *left = bytes;

	while (size > 0) {
		ssize_t n = send(fd, left, size, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		left += n;
		size -= (size_t)n;
	}
	return 0;
}

struct request {
	char *text; /* the words, each ended by a NUL */
	size_t size, capacity;
};

static int add(struct request *request, const char *bytes, size_t size)
{
	if (!size)
		return 0;
	if (size > PFS_CONTROL_REQUEST_MAX - request->size)
		return -E2BIG;
	PFS_TRY(pfs_grow(&request->text, &request->capacity, request->size + size, 1));
	memcpy(request->text + request->size, bytes, size);
	request->size += size;
	return 0;
}

/* Words that follow one another in memory, as a list of paths does, are copied together. */
static int add_words(struct request *request, const char *const *words, size_t n)
{
	const char *begin = n ? words[0] : "";
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		if (words[i] != begin + len) {
			PFS_TRY(add(request, begin, len));
			begin = words[i];
			len = 0;
		}
		len += strlen(begin + len) + 1;
	}
	return add(request, begin, len);
}

static int send_request(int fd, const char *const *words, size_t n)
{
	struct pfs_wire_request head = {.magic = PFS_WIRE_MAGIC, .n_words = (uint32_t)n};
	struct request request = {.text = NULL};
	int error = n > PFS_CONTROL_WORDS_MAX ? -E2BIG : add_words(&request, words, n);

	head.size = (uint32_t)request.size;
	error = error ? error : send_all(fd, &head, sizeof(head));
	error = error ? error : send_all(fd, request.text, request.size);
	free(request.text);
	/* it did not want to hear it all: its answer says why */
	return error == -EPIPE || error == -ECONNRESET ? 0 : error;
}

/* ---- the answer ---- */

/* *n bytes, at most size.  -EPIPE: the connection ended; -ECANCELED: the reply wants no more. */
static int take(int fd, size_t *n, struct pfs_reply *reply, void *bytes, size_t size)
{
	struct pollfd event = {.fd = fd, .events = POLLIN};
	ssize_t got;

	do {
		if (pfs_reply_gone(reply))
			return -ECANCELED;
		errno = EAGAIN;
		got = poll(&event, 1, LOOK_MS) > 0 ? recv(fd, bytes, size, MSG_DONTWAIT) : -1;
	} while (got < 0 && (errno == EINTR || errno == EAGAIN));
	if (got <= 0)
		return got == 0 || errno == ECONNRESET ? -EPIPE : -errno;
	*n = (size_t)got;
	return 0;
}

static int receive(int fd, struct pfs_reply *reply, void *bytes, size_t size)
{
	char *to = bytes;
	size_t n = 0;

	for (; size > 0; to += n, size -= n)
		PFS_TRY(take(fd, &n, reply, to, size));
	return 0;
}

static int receive_bytes(int fd, struct pfs_reply *reply, char *buffer, size_t size)
{
	size_t n = 0;

	for (; size > 0; size -= n) {
		PFS_TRY(take(fd, &n, reply, buffer, PFS_MIN(size, PIECE_SIZE)));
		PFS_TRY(pfs_reply_write(reply, buffer, n));
	}
	return 0;
}

static int receive_end(int fd, int *status, struct pfs_reply *reply, size_t size)
{
	int32_t number;

	if (size < sizeof(number) || size - sizeof(number) >= sizeof(reply->message))
		return -EPROTO;
	size -= sizeof(number);
	PFS_TRY(receive(fd, reply, &number, sizeof(number)));
	PFS_TRY(receive(fd, reply, reply->message, size));
	reply->message[size] = '\0';
	*status = number;
	return 0;
}

static int receive_answer(int fd, int *status, struct pfs_reply *reply)
{
	char *buffer PFS_FREE = malloc(PIECE_SIZE);
	struct pfs_wire_frame frame;

	if (!buffer)
		return -ENOMEM;
	for (;;) {
		PFS_TRY(receive(fd, reply, &frame, sizeof(frame)));
		if (frame.kind == PFS_WIRE_END)
			return receive_end(fd, status, reply, frame.size);
		if (frame.kind != PFS_WIRE_BYTES)
			return -EPROTO;
		PFS_TRY(receive_bytes(fd, reply, buffer, frame.size));
	}
}

int pfs_control_ask(int *status, struct pfs_reply *reply, const char *store,
		    const char *const *words, size_t n)
{
	char *path PFS_FREE = realpath(store, NULL);
	int fd PFS_CLOSE = -1;
	struct stat attr;
	int error;

	if (!path || stat(path, &attr) != 0)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	error = connect_beside(&fd, path, attr.st_uid);
	if (error == -ENOENT || error == -EACCES)
		error = connect_by_mount(&fd, path, error);
	if (!error)
		error = check_daemon(fd, attr.st_uid);
	if (error == -EACCES && pfs_store_holder(path) == 0)
		return -ENOENT; /* a stranger's, and no daemon's */
	if (error)
		return error;
	PFS_TRY(send_request(fd, words, n));
	return receive_answer(fd, status, reply);
}
