/* SPDX-License-Identifier: MIT */
/* fs/mount/respond.h - replies to the kernel: every answer to a request goes through these.
 *
 * Operations read the image without asking whether its file is sound; a block that is lost reads as
 * harmless nonsense. The failure is noted before the nonsense can be read (pfs_imagefile_failure).
 * So each function looks for a failure once the answer has been made, and then replies EIO instead:
 * no answer that was made of lost blocks reaches the kernel.
 *
 * Each function replies exactly once. It returns 0, or a negative errno if the kernel did not take
 * the answer: the kernel then has no reference to the entry, and will not release the open file.
 * Parameters are those of libfuse's functions. */
#ifndef PFS_FS_MOUNT_RESPOND_H
#define PFS_FS_MOUNT_RESPOND_H

#include <fuse_lowlevel.h>
#include <stddef.h>

/* error: 0 or negative. */
int pfs_respond_error(fuse_req_t req, int error);
int pfs_respond_entry(fuse_req_t req, const struct fuse_entry_param *entry);
int pfs_respond_create(fuse_req_t req, const struct fuse_entry_param *entry,
		       const struct fuse_file_info *fi);
/* timeout in seconds */
int pfs_respond_attr(fuse_req_t req, const struct stat *attr, double timeout);
int pfs_respond_open(fuse_req_t req, const struct fuse_file_info *fi);
int pfs_respond_link(fuse_req_t req, const char *target);
int pfs_respond_bytes(fuse_req_t req, const void *bytes, size_t size);
int pfs_respond_views(fuse_req_t req, const struct iovec *views, int count);
int pfs_respond_written(fuse_req_t req, size_t size);
int pfs_respond_place(fuse_req_t req, off_t offset);
int pfs_respond_statfs(fuse_req_t req, const struct statvfs *stat);
/* Replies with the size of an extended attribute, or of the list of them. */
int pfs_respond_size(fuse_req_t req, size_t size);

#endif
