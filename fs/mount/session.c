/* SPDX-License-Identifier: MIT */
/* The session: libfuse's side of the connection to the kernel. It agrees with the kernel on
 * features, receives requests, and sends replies and notices. */
#include "fs/mount/query/virtual.h" /* and internal.h, whose session this is */

#include <linux/fuse.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fs/image/imagefile.h"
#include "fs/mount/notify.h"
#include "fs/mount/operations.h"
#include "fs/mount/query/growing.h"
#include "fs/mount/query/turns.h"

static void want(struct fuse_conn_info *conn, unsigned flag, bool wanted)
{
	if (wanted)
		conn->want |= flag & conn->capable;
	else
		conn->want &= ~flag;
}

/* ---- what differs between versions of libfuse ---- */

/* With KILLPRIV_V2 the kernel remembers that a file has no suid, sgid or capabilities to lose;
 * without it, the kernel asks for an attribute before each write. In both cases the tree decides
 * when the bits are lost. libfuse can ask for KILLPRIV_V2 from 3.17 on, and has no custom I/O from
 * 3.18 on. So from 3.17 on libfuse gets the descriptor and replies itself; with an older libfuse,
 * KILLPRIV_V2 is added to its answer to INIT. PFS_FUSE_BY_FD chooses the newer way with an older
 * library (tests). */
#if defined(PFS_FUSE_BY_FD) || FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)

static void want_killpriv_v2(struct fuse_conn_info *conn)
{
	want(conn, FUSE_CAP_HANDLE_KILLPRIV_V2, true);
}

static void note_offer(const struct pfs_mount *mount PFS_UNUSED,
		       const struct fuse_in_header *head PFS_UNUSED, size_t len PFS_UNUSED)
{
}

static int attach(const struct pfs_mount *mount)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "/dev/fd/%d", mount->fd);
	return fuse_session_mount(mount->session, name) == 0 ? 0 : -EBADF;
}

#else

static void want_killpriv_v2(const struct fuse_conn_info *conn PFS_UNUSED)
{
}

static void note_offer(struct pfs_mount *mount, const struct fuse_in_header *head, size_t len)
{
	const struct fuse_init_in *init_in = (const struct fuse_init_in *)(head + 1);

	if (len >= sizeof(*head) + sizeof(*init_in) && head->opcode == FUSE_INIT)
		mount->offered = init_in->flags;
}

static void add_killpriv_v2(struct pfs_mount *mount, const struct iovec *iov, int count)
{
	struct fuse_init_out *out;

	if (count == 2 &&
	    iov[1].iov_len >= offsetof(struct fuse_init_out, flags) + sizeof(out->flags)) {
		out = iov[1].iov_base;
		out->flags |= FUSE_HANDLE_KILLPRIV_V2;
	}
	mount->offered = 0;
}

static ssize_t reply(int fd, struct iovec *iov, int count, void *arg)
{
	struct pfs_mount *mount = arg;

	if (mount->offered & FUSE_HANDLE_KILLPRIV_V2)
		add_killpriv_v2(mount, iov, count);
	return writev(fd, iov, count);
}

static ssize_t never_read(int fd PFS_UNUSED, void *buffer PFS_UNUSED, size_t size PFS_UNUSED,
			  void *arg PFS_UNUSED)
{
	errno = EIO; /* pfs_session_receive reads instead */
	return -1;
}

static int attach(const struct pfs_mount *mount)
{
	const struct fuse_custom_io io = {.writev = reply, .read = never_read};

	return fuse_session_custom_io(mount->session, &io, mount->fd);
}

#endif

/* ---- agreeing with the kernel ---- */

static void init(void *arg, struct fuse_conn_info *conn)
{
	const struct pfs_mount_options *options = &((struct pfs_mount *)arg)->options;

	want(conn, FUSE_CAP_ASYNC_READ, true);
	want(conn, FUSE_CAP_ATOMIC_O_TRUNC, true);
	want(conn, FUSE_CAP_EXPORT_SUPPORT, true);
	want(conn, FUSE_CAP_PARALLEL_DIROPS, true);
	/* The kernel drops cached pages before an asynchronous direct write, and not after it. A
	 * page that somebody reads in between would stay old for ever. */
	want(conn, FUSE_CAP_ASYNC_DIO, false);
	want(conn, FUSE_CAP_HANDLE_KILLPRIV, true);
	want_killpriv_v2(conn);
	want(conn, FUSE_CAP_CACHE_SYMLINKS, options->timeout > 0);
	want(conn, FUSE_CAP_READDIRPLUS, options->readdirplus != PFS_READDIRPLUS_NEVER);
	want(conn, FUSE_CAP_READDIRPLUS_AUTO, false); /* see advice.h */
	want(conn, FUSE_CAP_WRITEBACK_CACHE, options->writeback);
	/* Nearly always this kernel has changed an mtime itself; notices tell it of other changes.
	 * If a size changes that it did not set, it drops its pages at once: the last one would
	 * read as zeros from the old end on. */
	want(conn, FUSE_CAP_AUTO_INVAL_DATA, false);
	want(conn, FUSE_CAP_EXPLICIT_INVAL_DATA, false);
	/* Copying is faster than splicing pages of this size. */
	want(conn, FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, false);
	conn->max_write = PFS_IO_BYTES;
	conn->max_readahead = PFS_IO_BYTES;
	conn->max_background = 64;
	conn->congestion_threshold = 48;
	conn->time_gran = 1;
}

/* ---- between kernel and session ---- */

ssize_t pfs_session_receive(void *arg, void *buffer, size_t size)
{
	struct pfs_mount *mount = arg;
	ssize_t n;

	if (fuse_session_exited(mount->session)) /* kernel and library could not agree */
		return -ENODEV;
	n = read(mount->fd, buffer, size);
	if (n >= 0)
		return n;
	/* ENOENT: the asking process was killed before the request could be read. */
	if (errno == EINTR || errno == EAGAIN || errno == ENOENT)
		return 0;
	if (errno != ENODEV && errno != ECONNABORTED) /* unmounted */
		pfs_error("/dev/fuse: %s", strerror(errno));
	atomic_store(&mount->gone, true);
	return -errno;
}

static void process(struct pfs_mount *mount, void *buffer, size_t len)
{
	const struct fuse_in_header *head = buffer;
	const struct fuse_buf request = {.size = len, .fd = -1, .mem = buffer};
	struct pfs_operation_count *count;
	uint64_t start = pfs_now_ns();

	note_offer(mount, head, len);
	count = &mount->counts[head->opcode % PFS_OPCODES];
	fuse_session_process_buf(mount->session, &request);
	(void)atomic_fetch_add_explicit(&count->n, 1, memory_order_relaxed);
	(void)atomic_fetch_add_explicit(&count->ns, pfs_now_ns() - start, memory_order_relaxed);
}

/* ---- requests that run statements ---- */

/* Replies to a request that libfuse has not seen. */
static void reply_unseen(const struct pfs_mount *mount, uint64_t unique, int error)
{
	const struct fuse_out_header out = {sizeof(out), error, unique};

	if (write(mount->fd, &out, sizeof(out)) < 0 && errno != ENOENT &&
	    !atomic_load(&mount->gone))
		pfs_warning("cannot reply: %s", strerror(errno));
}

/* Returns true if this is an interrupt of a request that waits for a turn, which is then answered.
 */
static bool interrupt_waiting(const struct pfs_mount *mount, const void *buffer, size_t len)
{
	const struct fuse_in_header *head = buffer;
	const struct fuse_interrupt_in *in = (const struct fuse_interrupt_in *)(head + 1);

	if (head->opcode != FUSE_INTERRUPT || len < sizeof(*head) + sizeof(*in) ||
	    !pfs_turns_withdraw(mount->turns, in->unique))
		return false;
	reply_unseen(mount, in->unique, -EINTR);
	return true;
}

static bool takes_turn(const struct pfs_mount *mount, const struct fuse_in_header *head)
{
	bool sees_all = pfs_sees_all(head->uid);
	enum pfs_virtual_use use;

	switch (head->opcode) {
	case FUSE_OPEN:
		use = PFS_VIRTUAL_OPENED;
		break;
	case FUSE_WRITE:
		use = PFS_VIRTUAL_WRITTEN;
		break;
	case FUSE_LOOKUP:
	case FUSE_OPENDIR:
		use = PFS_VIRTUAL_SEARCHED;
		break;
	default:
		return false;
	}
	return pfs_is_virtual(head->nodeid) && (sees_all || mount->options.query_others) &&
	       pfs_virtual_runs(mount->virtuals, head->nodeid, use, sees_all);
}

static void process_turn(struct pfs_mount *mount, const struct pfs_turn *turn, void *request,
			 size_t len)
{
	if (turn->is_answer)
		pfs_growing_go_on(*(struct pfs_growing **)request);
	else
		process(mount, request, len);
}

/* Processes the requests whose turn comes when this one ends. */
static void end_turn(struct pfs_mount *mount, const struct pfs_turn *first)
{
	struct pfs_turn turn = *first;
	size_t len;
	void *next;

	while ((next = pfs_turns_end(mount->turns, &turn, &len)) != NULL) {
		pfs_dispatch_yield();
		process_turn(mount, &turn, next, len);
		free(next);
	}
}

/* Asks for a turn for the request. If it gets one, processes it and those whose turn comes then,
 * and returns 1; else returns what pfs_turns_take returned. */
static int take_turn(struct pfs_mount *mount, const struct pfs_turn *turn, void *request,
		     size_t len)
{
	int error = pfs_turns_take(mount->turns, turn, request, len);

	if (error <= 0)
		return error;
	process_turn(mount, turn, request, len);
	end_turn(mount, turn);
	return error;
}

/* A request that gets its turn because a command's statement ended its own. */
struct handed {
	struct pfs_mount *mount;
	struct pfs_turn turn;
	void *request;
	size_t len;
};

static void process_handed(const struct handed *handed)
{
	process_turn(handed->mount, &handed->turn, handed->request, handed->len);
	free(handed->request);
	end_turn(handed->mount, &handed->turn);
}

static void take_handed(void *arg)
{
	process_handed(arg);
	free(arg);
}

/* A thread of the dispatcher goes on, so that the command does not wait; if there can be none, this
 * thread does. */
void pfs_session_go_on(void *arg, const struct pfs_turn *turn, void *request, size_t len)
{
	struct pfs_mount *mount = arg;
	const struct handed handed = {mount, *turn, request, len};
	struct handed *copy = malloc(sizeof(*copy));

	if (copy)
		*copy = handed;
	if (copy && !pfs_dispatch_run(mount->dispatch, take_handed, copy))
		return;
	free(copy);
	process_handed(&handed);
}

int pfs_session_take_turn(void *arg, const struct pfs_turn *turn, struct pfs_growing *growing)
{
	return take_turn(arg, turn, &growing, sizeof(struct pfs_growing *));
}

static void process_in_turn(struct pfs_mount *mount, void *buffer, size_t len)
{
	const struct fuse_in_header *head = buffer;
	const struct pfs_turn turn = {head->unique, head->uid, pfs_sees_all(head->uid), false};
	int error = take_turn(mount, &turn, buffer, len);

	if (error == -EAGAIN)
		pfs_reasons_keep(mount->reasons, head->uid,
				 "too many of your statements wait to be run; try again later");
	if (error < 0)
		reply_unseen(mount, head->unique, error);
}

/* Refuses a request if the image has proved damaged, unless the kernel lets go of something by it.
 * Requests that are being processed meanwhile are refused when they are answered (respond.h). */
static bool refuse_damaged(const struct pfs_mount *mount, const void *buffer)
{
	const struct fuse_in_header *head = buffer;

	switch (head->opcode) {
	case FUSE_INIT:
	case FUSE_DESTROY:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return false;
	default:
		if (!pfs_imagefile_failure(mount->tree))
			return false;
		reply_unseen(mount, head->unique, -EIO);
		return true;
	}
}

void pfs_session_process(void *arg, void *buffer, size_t len)
{
	struct pfs_mount *mount = arg;

	if (refuse_damaged(mount, buffer))
		return;
	if (mount->turns && interrupt_waiting(mount, buffer, len))
		return;
	if (mount->turns && takes_turn(mount, buffer))
		process_in_turn(mount, buffer, len);
	else
		process(mount, buffer, len);
}

/* Returns true if a notice about the inode must wait: its rights changed lately, and the notice
 * could make the kernel ignore a reply with the new ones. Looks at the original once more, so that
 * a change that nobody has seen yet counts, too. An inode whose attributes the kernel keeps does
 * not wait: until the notice comes, the kernel grants its old rights and does not ask. */
static bool must_wait(struct pfs_mount *mount, uint64_t ino)
{
	struct pfs_entry entry;
	int error = pfs_tree_getattr(mount->tree, &entry, ino);

	return !error && entry.volatile_attr &&
	       pfs_access_changed_within(&mount->access, ino, PFS_NOTICE_RIGHTS_MS);
}

void pfs_session_notify(void *arg, uint64_t ino, const char *name)
{
	struct pfs_mount *mount = arg;
	fuse_ino_t node = pfs_node_of(ino);
	int error;

	if (!name && must_wait(mount, ino)) {
		pfs_notifier_push(mount->notifier, ino, NULL);
		return;
	}
	if (name)
		error = fuse_lowlevel_notify_inval_entry(mount->session, node, name, strlen(name));
	else
		error = fuse_lowlevel_notify_inval_inode(mount->session, node, 0, 0);
	/* ENOENT: the kernel does not know the inode. */
	if (error && error != -ENOENT && !atomic_load(&mount->gone))
		pfs_warning("cannot tell the kernel of a change: %s", strerror(-error));
}

/* Passes libfuse's own messages on to our log. */
static PFS_PRINTF(2, 0) void log_library(enum fuse_log_level level, const char *format,
					 va_list values)
{
	char text[1024];
	int n = vsnprintf(text, sizeof(text), format, values);

	while (n > 0 && n < (int)sizeof(text) && text[n - 1] == '\n')
		text[--n] = '\0';
	pfs_log(level >= FUSE_LOG_DEBUG	    ? PFS_LOG_DEBUG
		: level >= FUSE_LOG_NOTICE  ? PFS_LOG_INFO
		: level == FUSE_LOG_WARNING ? PFS_LOG_WARNING
					    : PFS_LOG_ERROR,
		"%s", text);
}

int pfs_session_open(struct pfs_mount *mount)
{
	char program[] = "primefs", debug[] = "-d";
	char *argv[] = {program, mount->options.debug ? debug : NULL, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(mount->options.debug ? 2 : 1, argv);
	struct fuse_lowlevel_ops ops = pfs_operations;

	ops.init = init;
	fuse_set_log_func(log_library);
	mount->session = fuse_session_new(&args, &ops, sizeof(ops), mount);
	fuse_opt_free_args(&args);
	if (!mount->session)
		return -ENOMEM;
	PFS_TRY(attach(mount));
	mount->owns_fd = false;
	return 0;
}

void pfs_session_close(struct pfs_mount *mount)
{
	if (mount->owns_fd)
		(void)close(mount->fd);
	if (mount->session)
		fuse_session_destroy(mount->session);
}
