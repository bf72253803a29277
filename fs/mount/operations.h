/* SPDX-License-Identifier: MIT */
/* fs/mount/operations.h - every FUSE operation, once: how to tell that a request is about `.query`,
 * and the functions of `.query` and of the tree that answer it.
 *
 * X(operation, condition under which it is about `.query`, its parameters, their names). Requests
 * about `.query` are answered by pfs_on_query_<operation> (fs/mount/query), requests about nodes of
 * the tree by pfs_on_node_<operation> (ops_*.c). If a function is missing on either side, the
 * program does not link; if its parameters differ from libfuse's, it does not compile. Each
 * function replies exactly once. */
#ifndef PFS_FS_MOUNT_OPERATIONS_H
#define PFS_FS_MOUNT_OPERATIONS_H

#include <fuse_lowlevel.h>

/* clang-format off */
#define PFS_OPERATIONS(X) \
	X(lookup, is_query_entry(parent, name), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name)) \
	X(forget, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node, uint64_t n), (req, node, n)) \
	X(forget_multi, is_any_virtual(n, forgets), \
	  (fuse_req_t req, size_t n, struct fuse_forget_data *forgets), (req, n, forgets)) \
	X(getattr, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(setattr, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct stat *attr, int set, struct fuse_file_info *fi), \
	  (req, node, attr, set, fi)) \
	X(readlink, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node), (req, node)) \
	X(mknod, pfs_is_virtual(parent), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev), \
	  (req, parent, name, mode, rdev)) \
	X(mkdir, pfs_is_virtual(parent), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode), (req, parent, name, mode)) \
	X(symlink, pfs_is_virtual(parent), \
	  (fuse_req_t req, const char *target, fuse_ino_t parent, const char *name), \
	  (req, target, parent, name)) \
	X(create, pfs_is_virtual(parent), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi), \
	  (req, parent, name, mode, fi)) \
	X(link, pfs_is_virtual(node) || pfs_is_virtual(parent), \
	  (fuse_req_t req, fuse_ino_t node, fuse_ino_t parent, const char *name), (req, node, parent, name)) \
	X(rename, is_query_entry(parent, name) || pfs_is_virtual(to), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to, const char *to_name, \
	   unsigned flags), (req, parent, name, to, to_name, flags)) \
	X(unlink, is_query_entry(parent, name), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name)) \
	X(rmdir, is_query_entry(parent, name), \
	  (fuse_req_t req, fuse_ino_t parent, const char *name), (req, parent, name)) \
	X(open, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(read, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi), \
	  (req, node, size, offset, fi)) \
	X(write, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, const char *data, size_t size, off_t offset, \
	   struct fuse_file_info *fi), (req, node, data, size, offset, fi)) \
	X(flush, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(release, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(fsync, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi), \
	  (req, node, data_only, fi)) \
	X(fallocate, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, int mode, off_t offset, off_t length, \
	   struct fuse_file_info *fi), (req, node, mode, offset, length, fi)) \
	X(lseek, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, off_t offset, int whence, struct fuse_file_info *fi), \
	  (req, node, offset, whence, fi)) \
	X(copy_file_range, pfs_is_virtual(from) || pfs_is_virtual(to), \
	  (fuse_req_t req, fuse_ino_t from, off_t from_offset, struct fuse_file_info *from_fi, \
	   fuse_ino_t to, off_t to_offset, struct fuse_file_info *to_fi, size_t size, int flags), \
	  (req, from, from_offset, from_fi, to, to_offset, to_fi, size, flags)) \
	X(opendir, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(readdir, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi), \
	  (req, node, size, offset, fi)) \
	X(readdirplus, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, struct fuse_file_info *fi), \
	  (req, node, size, offset, fi)) \
	X(releasedir, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi), (req, node, fi)) \
	X(fsyncdir, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, int data_only, struct fuse_file_info *fi), \
	  (req, node, data_only, fi)) \
	X(statfs, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node), (req, node)) \
	X(getxattr, pfs_is_virtual(node) || pfs_limited_total(req, name), \
	  (fuse_req_t req, fuse_ino_t node, const char *name, size_t size), (req, node, name, size)) \
	X(listxattr, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node, size_t size), (req, node, size)) \
	X(setxattr, pfs_is_virtual(node), \
	  (fuse_req_t req, fuse_ino_t node, const char *name, const char *value, size_t size, int flags), \
	  (req, node, name, value, size, flags)) \
	X(removexattr, pfs_is_virtual(node), (fuse_req_t req, fuse_ino_t node, const char *name), (req, node, name))
/* clang-format on */

#define X(operation, is_query, parameters, names)                                                  \
	void pfs_on_node_##operation parameters;                                                   \
	void pfs_on_query_##operation parameters;
PFS_OPERATIONS(X)
#undef X

/* The functions for libfuse; init is missing, and set by the session. */
extern const struct fuse_lowlevel_ops pfs_operations;

#endif
