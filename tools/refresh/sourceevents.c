/* SPDX-License-Identifier: MIT */
#include "tools/refresh/sourceevents.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/siphash.h"

/* of Linux 5.17; older headers do not have it, older kernels refuse it */
#ifndef FAN_RENAME
#define FAN_RENAME 0x10000000
#endif

#define FANOTIFY_MASK                                                                              \
	(FAN_CREATE | FAN_DELETE | FAN_MODIFY | FAN_ATTRIB | FAN_CLOSE_WRITE | FAN_ONDIR)
#define INOTIFY_MASK                                                                               \
	(IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_MODIFY | IN_ATTRIB |             \
	 IN_CLOSE_WRITE | IN_ONLYDIR | IN_EXCL_UNLINK)
#define WATCHES_FILE   "/proc/sys/fs/inotify/max_user_watches"
#define WATCHES_UNSAID 8192
#define BUFFER_SIZE    65536
#define READS_AT_ONCE  64 /* before whoever reads may see that it is to stop */

typedef void told_fn(void *arg, enum pfs_sourceevent event, uint64_t number);

struct pfs_sourceevents {
	enum pfs_sourceevents_kind kind;
	int fd;
	char buffer[BUFFER_SIZE] __attribute__((aligned(8)));
};

/* ---- fanotify ---- */

/* A directory's handle, which no other has as long as it lives, as a number. */
static uint64_t number_of(const void *fsid, int type, const void *handle, size_t size)
{
	uint8_t bytes[sizeof(__kernel_fsid_t) + sizeof(type) + MAX_HANDLE_SZ];
	uint64_t number;

	memcpy(bytes, fsid, sizeof(__kernel_fsid_t));
	memcpy(bytes + sizeof(__kernel_fsid_t), &type, sizeof(type));
	size = PFS_MIN(size, (size_t)MAX_HANDLE_SZ);
	memcpy(bytes + sizeof(__kernel_fsid_t) + sizeof(type), handle, size);
	number = pfs_siphash(bytes, sizeof(__kernel_fsid_t) + sizeof(type) + size, 0, 0);
	return number + (number == 0);
}

static int find_number(uint64_t *number, int fd)
{
	union {
		struct file_handle handle;
		uint8_t room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} found = {.handle = {.handle_bytes = MAX_HANDLE_SZ}};
	struct statfs of;
	int mount;

	if (name_to_handle_at(fd, "", &found.handle, &mount, AT_EMPTY_PATH) < 0 ||
	    fstatfs(fd, &of) < 0)
		return -errno;
	*number = number_of(&of.f_fsid, found.handle.handle_type,
			    found.room + sizeof(struct file_handle), found.handle.handle_bytes);
	return 0;
}

static int mark(int fd, int root, uint64_t moves)
{
	return fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FANOTIFY_MASK | moves, root,
			     ".") < 0
		       ? -errno
		       : 0;
}

/* One event of a move, where there is one: both directories are compared together. */
static int mark_root(int fd, int root)
{
	uint64_t number;
	int error = mark(fd, root, FAN_RENAME);

	if (error == -EINVAL)
		error = mark(fd, root, FAN_MOVED_FROM | FAN_MOVED_TO);
	if (!error)
		error = find_number(&number, root);
	return error == -ENODEV || error == -EXDEV || error == -EINVAL || error == -ENOSYS
		       ? -EOPNOTSUPP
		       : error;
}

/* *fd is the caller's to close, on failure too. */
static int open_fanotify(int *fd, const int *roots, size_t n_roots)
{
	*fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_DFID_NAME | FAN_CLOEXEC | FAN_NONBLOCK,
			    O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP : -errno;
	for (size_t i = 0; i < n_roots; i++)
		PFS_TRY(mark_root(*fd, roots[i]));
	return 0;
}

static bool is_directory_record(unsigned type)
{
	return type == FAN_EVENT_INFO_TYPE_DFID_NAME || type == FAN_EVENT_INFO_TYPE_DFID ||
	       type == 10 /* FAN_EVENT_INFO_TYPE_OLD_DFID_NAME */ ||
	       type == 12 /* FAN_EVENT_INFO_TYPE_NEW_DFID_NAME */;
}

/* bytes: all of the event, aligned as a byte is.  Its records begin behind its head; each says its
 * length. */
static void tell_fanotify(const struct fanotify_event_metadata *event, const char *bytes,
			  told_fn *fn, void *arg)
{
	size_t at = event->metadata_len, end = event->event_len;
	struct fanotify_event_info_fid record;
	struct file_handle handle;

	if (event->mask & FAN_Q_OVERFLOW) {
		fn(arg, PFS_SOURCEEVENT_LOST, 0);
		return;
	}
	if (event->pid == getpid())
		return;
	while (at + sizeof(record) + sizeof(handle) <= end) {
		memcpy(&record, bytes + at, sizeof(record));
		memcpy(&handle, bytes + at + sizeof(record), sizeof(handle));
		if (record.hdr.len < sizeof(record) + sizeof(handle) ||
		    handle.handle_bytes > record.hdr.len - sizeof(record) - sizeof(handle) ||
		    record.hdr.len > end - at)
			return;
		if (is_directory_record(record.hdr.info_type))
			fn(arg, PFS_SOURCEEVENT_STALE,
			   number_of(&record.fsid, handle.handle_type,
				     bytes + at + sizeof(record) + sizeof(handle),
				     handle.handle_bytes));
		at += record.hdr.len;
	}
}

/* -EPROTO: a kernel that speaks otherwise. */
static int tell_all_fanotify(const char *buffer, size_t size, told_fn *fn, void *arg)
{
	struct fanotify_event_metadata event;

	for (size_t at = 0; at + sizeof(event) <= size; at += event.event_len) {
		memcpy(&event, buffer + at, sizeof(event));
		if (event.vers != FANOTIFY_METADATA_VERSION || event.event_len < sizeof(event) ||
		    event.event_len > size - at)
			return -EPROTO;
		tell_fanotify(&event, buffer + at, fn, arg);
		if (event.fd >= 0)
			(void)close(event.fd);
	}
	return 0;
}

/* ---- inotify ---- */

static int add_watch(struct pfs_sourceevents *events, uint64_t *number, int fd)
{
	char path[64];
	int watch;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* One that is there already has the same number, and the same mask again. */
	watch = inotify_add_watch(events->fd, path, INOTIFY_MASK);
	if (watch < 0)
		return -errno;
	*number = (uint64_t)watch;
	return 0;
}

/* What is unmounted takes its watches along, one by one. */
static void tell_inotify(const struct inotify_event *event, told_fn *fn, void *arg)
{
	if (event->mask & (IN_Q_OVERFLOW | IN_UNMOUNT))
		fn(arg, PFS_SOURCEEVENT_LOST, 0);
	else if (event->mask & IN_IGNORED)
		fn(arg, PFS_SOURCEEVENT_GONE, (uint64_t)event->wd);
	else
		fn(arg, PFS_SOURCEEVENT_STALE, (uint64_t)event->wd);
}

static void tell_all_inotify(const struct pfs_sourceevents *events, size_t size, told_fn *fn,
			     void *arg)
{
	for (size_t at = 0; at + sizeof(struct inotify_event) <= size;) {
		const struct inotify_event *event = (const void *)(events->buffer + at);

		tell_inotify(event, fn, arg);
		at += sizeof(*event) + event->len;
	}
}

/* ---- either ---- */

size_t pfs_sourceevents_limit(enum pfs_sourceevents_kind kind)
{
	char text[32] = "";
	uint64_t n;

	if (kind == PFS_SOURCEEVENTS_FANOTIFY)
		return SIZE_MAX;
	{
		FILE *file PFS_FCLOSE = fopen(WATCHES_FILE, "re");

		if (!file || !fgets(text, sizeof(text), file))
			return WATCHES_UNSAID;
	}
	text[strcspn(text, "\n")] = 0;
	return pfs_parse_u64(&n, text) ? WATCHES_UNSAID : (size_t)(n - n / 4);
}

int pfs_sourceevents_open(struct pfs_sourceevents **out, enum pfs_sourceevents_kind kind,
			  const int *roots, size_t n_roots)
{
	struct pfs_sourceevents *events = calloc(1, sizeof(*events));
	int error = 0;

	*out = NULL;
	if (!events)
		return -ENOMEM;
	events->kind = kind;
	events->fd = -1;
	if (kind == PFS_SOURCEEVENTS_FANOTIFY)
		error = open_fanotify(&events->fd, roots, n_roots);
	else
		events->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!error && events->fd < 0)
		error = -errno;
	if (error) {
		pfs_sourceevents_close(events);
		return error;
	}
	*out = events;
	return 0;
}

void pfs_sourceevents_close(struct pfs_sourceevents *events)
{
	if (!events)
		return;
	if (events->fd >= 0)
		(void)close(events->fd);
	free(events);
}

int pfs_sourceevents_add(struct pfs_sourceevents *events, uint64_t *number, int fd)
{
	return events->kind == PFS_SOURCEEVENTS_FANOTIFY ? find_number(number, fd)
							 : add_watch(events, number, fd);
}

void pfs_sourceevents_remove(struct pfs_sourceevents *events, uint64_t number)
{
	if (events->kind == PFS_SOURCEEVENTS_INOTIFY)
		(void)inotify_rm_watch(events->fd, (int)number);
}

int pfs_sourceevents_fd(const struct pfs_sourceevents *events)
{
	return events->fd;
}

int pfs_sourceevents_read(struct pfs_sourceevents *events, told_fn *fn, void *arg)
{
	for (int i = 0; i < READS_AT_ONCE; i++) {
		ssize_t size = read(events->fd, events->buffer, sizeof(events->buffer));

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (size == 0)
			return 0;
		if (events->kind == PFS_SOURCEEVENTS_INOTIFY)
			tell_all_inotify(events, (size_t)size, fn, arg);
		else
			PFS_TRY(tell_all_fanotify(events->buffer, (size_t)size, fn, arg));
	}
	return 0;
}
