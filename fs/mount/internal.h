/* SPDX-License-Identifier: MIT */
/* fs/mount/internal.h - what the files of fs/mount share: the struct of a mount, decoding,
 * replying, the session. Nobody outside includes it. */
#ifndef PFS_FS_MOUNT_INTERNAL_H
#define PFS_FS_MOUNT_INTERNAL_H

#include <fuse_lowlevel.h>
#include <limits.h>
#include <stdatomic.h>

#include "fs/mount/access.h"
#include "fs/mount/advice.h"
#include "fs/mount/dispatch.h"
#include "fs/mount/kernel.h"
#include "fs/mount/options.h"
#include "fs/tree/tree.h"

#define PFS_IO_BYTES (1024 * 1024) /* the largest write and read-ahead */

#define PFS_MORE_THREADS 128 /* threads that may wait for the disk or a statement at a time */

#define PFS_OPEN_BUCKETS 4096
#define PFS_OPCODES	 64

/* Counts how often an operation was asked for, and how long it took in all, in nanoseconds. */
struct pfs_operation_count {
	_Atomic uint64_t n, ns;
};

struct pfs_mount {
	struct pfs_mount_options options;
	struct pfs_tree *tree;
	struct fuse_session *session;
	struct pfs_dispatch *dispatch;
	struct pfs_notifier *notifier;
	struct pfs_advice advice;
	struct pfs_access access;
	char *mountpoint;
	char control[PFS_CONTROL_NAME_SIZE]; /* see has_control */
	_Atomic bool has_control; /* `control` is set: commands connect by it; set once */
	uint64_t dev;		  /* of the mounted filesystem; 0: unknown */
	int fd;			  /* /dev/fuse, or -1 */
	bool owns_fd;		  /* the mount closes fd itself, as no session does */
	_Atomic uint32_t offered; /* the flags of the INIT request, while it is being answered */
	_Atomic bool gone;	  /* unmounted, or the connection is cut */
	/* Counts the opened files whose content may change behind the kernel's back. */
	_Atomic uint32_t volatile_opens[PFS_OPEN_BUCKETS];
	/* `.query`: see virtual.h */
	struct pfs_queries *queries; /* owned by the caller of pfs_mount_open */
	struct pfs_virtuals *virtuals;
	struct pfs_reasons *reasons;
	struct pfs_known_columns *columns;
	struct pfs_growings *growings; /* NULL: all answers are complete before they are read */
	struct pfs_streamed *streamed; /* reads of streams (query/streamed.h) */
	struct pfs_turns *turns; /* NULL: requests are processed one after the other */
	_Atomic int running;	     /* statements that run now */
	_Atomic uint64_t run, failed; /* statements since the mount; those of them that failed */
	struct pfs_operation_count counts[PFS_OPCODES]; /* by opcode */
};

/* Returns the count of volatile opens of an inode. Several inodes may share a count. */
static inline _Atomic uint32_t *pfs_volatile_opens(struct pfs_mount *mount, uint64_t ino)
{
	return &mount->volatile_opens[(ino >> 1) % PFS_OPEN_BUCKETS];
}

/* ---- decoding ---- */

static inline struct pfs_mount *pfs_mount_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct pfs_tree *pfs_tree_of(fuse_req_t req)
{
	return pfs_mount_of(req)->tree;
}

/* Translate between inode numbers and the kernel's node numbers: a node number is the prime, but
 * for the root's, which is 1. Numbers from 2^63 up are no primes: they belong to nodes that no
 * store holds. */
static inline uint64_t pfs_ino_of(fuse_ino_t node)
{
	return node == FUSE_ROOT_ID ? 2 : node == 2 ? 0 : node;
}

static inline fuse_ino_t pfs_node_of(uint64_t ino)
{
	return ino == 2 ? FUSE_ROOT_ID : ino;
}

static inline struct pfs_caller pfs_caller_of(fuse_req_t req)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);

	return (struct pfs_caller){ctx->uid, ctx->gid, ctx->umask};
}

/* ---- policy ---- */

/* Returns how many seconds the kernel may keep attributes. It may always keep names for
 * options.timeout: what changes a name tells the kernel. */
static inline double pfs_attr_timeout(const struct pfs_mount *mount, bool volatile_attr)
{
	return volatile_attr ? 0 : mount->options.timeout;
}

/* To be called before a file is opened or truncated whose rights may have changed without the
 * kernel's knowledge. Returns 0, or -ESTALE so that the kernel decides on access again (access.h).
 * want: R_OK, W_OK, X_OK. */
PFS_MUST_CHECK int pfs_confirm_access(fuse_req_t req, fuse_ino_t node, unsigned want);

/* To be called after a change of anything but names. Returns `error` unless that is 0. With the
 * mount option sync it waits until the change is committed; it returns 0, or the error for which
 * the change cannot be committed. Not for write(): there the kernel sends an fsync of its own. */
PFS_MUST_CHECK int pfs_settle(fuse_req_t req, int error);

/* ---- replying: exactly once a request; see respond.h ---- */

void pfs_fill_entry(const struct pfs_mount *mount, struct fuse_entry_param *out,
		    const struct pfs_entry *entry);

/* ---- the session: libfuse's side of the connection ---- */

/* Opens libfuse's session for mount->fd, which is closed with it. */
PFS_MUST_CHECK int pfs_session_open(struct pfs_mount *mount);
void pfs_session_close(struct pfs_mount *mount);

/* The functions receive and process of struct pfs_dispatch_options; arg is the mount. */
ssize_t pfs_session_receive(void *arg, void *buffer, size_t size);
void pfs_session_process(void *arg, void *buffer, size_t len);

/* The function take_turn of struct pfs_growing_host; arg is the mount. */
struct pfs_turn;
struct pfs_growing;
int pfs_session_take_turn(void *arg, const struct pfs_turn *turn, struct pfs_growing *growing);
/* The function go_on of pfs_turns_open; arg is the mount. */
void pfs_session_go_on(void *arg, const struct pfs_turn *turn, void *request, size_t len);

/* The function send of pfs_notifier_start; arg is the mount. */
void pfs_session_notify(void *arg, uint64_t ino, const char *name);

#endif
