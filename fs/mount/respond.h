/* SPDX-License-Identifier: MIT */
/* fs/mount/respond.h - replies to the kernel: whatever answers a request goes through here, with any libfuse.
 *
 * The image is read without asking whether its file is sound, and what nobody can tell any more reads as harmless
 * nonsense (pfs_imagefile_failure).  The failure is known before the nonsense can be read.  So each function looks for it once the
 * answer has been made, and then replies EIO instead: no answer leaves that was made of lost blocks.
 *
 * Each replies exactly once, and returns 0, or a negative errno where the kernel did not take the answer: it has no
 * reference to an entry then and will release no descriptor.  Parameters are those of libfuse's functions. */
#ifndef PFS_FS_MOUNT_RESPOND_H
#define PFS_FS_MOUNT_RESPOND_H

#include <fuse_lowlevel.h>
#include <stddef.h>

/* error: 0 or negative. */
int pfs_respond_error(fuse_req_t req, int error);
int pfs_respond_entry(fuse_req_t req, const struct fuse_entry_param *entry);
int pfs_respond_create(fuse_req_t req, const struct fuse_entry_param *entry, const struct fuse_file_info *fi);
/* timeout in seconds */
int pfs_respond_attr(fuse_req_t req, const struct stat *attr, double timeout);
int pfs_respond_open(fuse_req_t req, const struct fuse_file_info *fi);
int pfs_respond_link(fuse_req_t req, const char *target);
int pfs_respond_bytes(fuse_req_t req, const void *bytes, size_t size);
int pfs_respond_views(fuse_req_t req, const struct iovec *views, int count);
int pfs_respond_written(fuse_req_t req, size_t size);
int pfs_respond_place(fuse_req_t req, off_t offset);
int pfs_respond_statfs(fuse_req_t req, const struct statvfs *stat);
/* The size of an extended attribute, or of the list of them. */
int pfs_respond_size(fuse_req_t req, size_t size);

#endif
