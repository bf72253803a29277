/* SPDX-License-Identifier: MIT */
/* Operations on files and their content. */
#include "fs/mount/internal.h"

#include <fcntl.h>
#include <unistd.h>

#include "fs/mount/respond.h"
#include "fs/mount/notify.h"
#include "fs/mount/operations.h"

/* Returns true if a write leaves suid and sgid alone: root's does, and so does the kernel's when it
 * sends pages that were mapped or gathered, since it has already cleared the bits. */
static bool is_privileged(fuse_req_t req, const struct fuse_file_info *fi)
{
	return fuse_req_ctx(req)->uid == 0 || fi->writepage;
}

#ifndef FMODE_EXEC
#define FMODE_EXEC 0x20 /* the kernel's own flag for files that are opened to be executed */
#endif

/* Returns the access that the kernel has granted to an open with these flags. */
static unsigned wanted(int flags)
{
	unsigned read = flags & FMODE_EXEC ? X_OK : R_OK;
	unsigned want = (flags & O_ACCMODE) == O_RDONLY	  ? read
			: (flags & O_ACCMODE) == O_WRONLY ? W_OK
							  : R_OK | W_OK;

	return flags & O_TRUNC ? want | W_OK : want;
}

void pfs_on_node_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	struct pfs_tree *tree = mount->tree;
	bool privileged = is_privileged(req, fi), volatile_attr = false;
	int error = pfs_confirm_access(req, node, wanted(fi->flags));

	if (!error)
		error = pfs_tree_open_file(tree, &volatile_attr, pfs_ino_of(node), fi->flags,
					   privileged, true);
	if (error == -EAGAIN) {
		pfs_dispatch_yield();
		error = pfs_tree_open_file(tree, &volatile_attr, pfs_ino_of(node), fi->flags,
					   privileged, false);
	}
	if (fi->flags & O_TRUNC)
		error = pfs_settle(req, error);
	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	/* The kernel's cached pages are right unless the original may have changed. */
	fi->keep_cache = !volatile_attr;
	/* flush() tells a writer at close(2) that a commit failed; a reader need not ask. */
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
	fi->fh = volatile_attr;
	if (volatile_attr)
		atomic_fetch_add(pfs_volatile_opens(mount, pfs_ino_of(node)), 1);
	/* If the asking process was killed, no release follows. */
	if (pfs_respond_open(req, fi) != 0 && volatile_attr)
		atomic_fetch_sub(pfs_volatile_opens(mount, pfs_ino_of(node)), 1);
}

void pfs_on_node_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		      struct fuse_file_info *fi)
{
	unsigned flags = fi->flags & O_NOATIME ? PFS_READ_NOATIME : 0;
	struct pfs_tree *tree = pfs_tree_of(req);
	char *data = pfs_dispatch_scratch(size);
	ssize_t n = -ENOMEM;

	if (data)
		n = pfs_tree_read(tree, data, size, pfs_ino_of(node), offset,
				  flags | PFS_READ_NOWAIT);
	if (n == -EAGAIN) {
		pfs_dispatch_yield();
		n = pfs_tree_read(tree, data, size, pfs_ino_of(node), offset, flags);
	}
	if (n < 0)
		pfs_respond_error(req, (int)n);
	else
		(void)pfs_respond_bytes(req, data, (size_t)n);
}

static void reply_written(fuse_req_t req, ssize_t n)
{
	if (n < 0)
		pfs_respond_error(req, (int)n);
	else
		(void)pfs_respond_written(req, (size_t)n);
}

void pfs_on_node_write(fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset,
		       struct fuse_file_info *fi)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	struct pfs_tree *tree = mount->tree;
	bool privileged = is_privileged(req, fi);
	ssize_t n;

	/* The end that the kernel knows may be that of an original before it grew. Then the kernel
	 * has also cached these bytes in the wrong place. */
	if (fi->fh && fi->flags & O_APPEND && !fi->writepage) {
		offset = PFS_AT_END;
		pfs_notifier_push(mount->notifier, pfs_ino_of(node), NULL);
	}
	n = pfs_tree_write(tree, pfs_ino_of(node), data, size, offset, privileged, true);
	if (n == -EAGAIN) {
		pfs_dispatch_yield();
		n = pfs_tree_write(tree, pfs_ino_of(node), data, size, offset, privileged, false);
	}
	reply_written(req, n);
}

/* Reports a commit that failed, but waits for none: that is what fsync does. */
void pfs_on_node_flush(fuse_req_t req, fuse_ino_t node PFS_UNUSED,
		       struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_respond_error(req, pfs_tree_failure(pfs_tree_of(req)));
}

void pfs_on_node_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	if (fi->fh)
		atomic_fetch_sub(pfs_volatile_opens(pfs_mount_of(req), pfs_ino_of(node)), 1);
	pfs_respond_error(req, 0);
}

void pfs_on_node_fsync(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int data_only PFS_UNUSED,
		       struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_dispatch_yield();
	pfs_respond_error(req, pfs_tree_sync(pfs_tree_of(req)));
}

void pfs_on_node_fallocate(fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length,
			   struct fuse_file_info *fi)
{
	int error;

	pfs_dispatch_yield();
	error = pfs_tree_fallocate(pfs_tree_of(req), pfs_ino_of(node), mode, offset, length,
				   is_privileged(req, fi));
	pfs_respond_error(req, pfs_settle(req, error));
}

void pfs_on_node_lseek(fuse_req_t req, fuse_ino_t node, off_t offset, int whence,
		       struct fuse_file_info *fi PFS_UNUSED)
{
	int64_t found;

	if (pfs_mount_of(req)->options.writeback) {
		/* The kernel asks before it has sent the writes that it gathered, so what is a hole
		 * here may be data there. Without an answer it takes everything for data. */
		pfs_respond_error(req, -ENOSYS);
		return;
	}
	pfs_dispatch_yield();
	found = pfs_tree_seek(pfs_tree_of(req), pfs_ino_of(node), offset, whence);
	if (found < 0)
		pfs_respond_error(req, (int)found);
	else
		(void)pfs_respond_place(req, found);
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are libfuse's */
void pfs_on_node_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset,
				 struct fuse_file_info *from_fi PFS_UNUSED, fuse_ino_t to,
				 off_t to_offset, struct fuse_file_info *to_fi PFS_UNUSED,
				 size_t size, int flags)
{
	ssize_t n = -EINVAL;

	pfs_dispatch_yield();
	if (flags == 0)
		n = pfs_tree_copy_range(pfs_tree_of(req), pfs_ino_of(from), from_offset,
					pfs_ino_of(to), to_offset, size,
					fuse_req_ctx(req)->uid == 0);
	if (n > 0) {
		int error = pfs_settle(req, 0);

		n = error ? error : n;
	}
	reply_written(req, n);
}
