/* SPDX-License-Identifier: MIT */
#include "fs/mount/respond.h"

#include "fs/image/imagefile.h"
#include "fs/mount/internal.h"

/* Returns true, and has replied, if what the answer was made of may be lost. */
static bool refuses(fuse_req_t req)
{
	if (!pfs_imagefile_failure(pfs_tree_of(req)))
		return false;
	(void)fuse_reply_err(req, EIO);
	return true;
}

int pfs_respond_error(fuse_req_t req, int error)
{
	return refuses(req) ? -EIO : fuse_reply_err(req, -error);
}

int pfs_respond_entry(fuse_req_t req, const struct fuse_entry_param *entry)
{
	return refuses(req) ? -EIO : fuse_reply_entry(req, entry);
}

int pfs_respond_create(fuse_req_t req, const struct fuse_entry_param *entry,
		       const struct fuse_file_info *fi)
{
	return refuses(req) ? -EIO : fuse_reply_create(req, entry, fi);
}

int pfs_respond_attr(fuse_req_t req, const struct stat *attr, double timeout)
{
	return refuses(req) ? -EIO : fuse_reply_attr(req, attr, timeout);
}

int pfs_respond_open(fuse_req_t req, const struct fuse_file_info *fi)
{
	return refuses(req) ? -EIO : fuse_reply_open(req, fi);
}

int pfs_respond_link(fuse_req_t req, const char *target)
{
	return refuses(req) ? -EIO : fuse_reply_readlink(req, target);
}

int pfs_respond_bytes(fuse_req_t req, const void *bytes, size_t size)
{
	return refuses(req) ? -EIO : fuse_reply_buf(req, bytes, size);
}

int pfs_respond_views(fuse_req_t req, const struct iovec *views, int count)
{
	return refuses(req) ? -EIO : fuse_reply_iov(req, views, count);
}

int pfs_respond_written(fuse_req_t req, size_t size)
{
	return refuses(req) ? -EIO : fuse_reply_write(req, size);
}

int pfs_respond_place(fuse_req_t req, off_t offset)
{
	return refuses(req) ? -EIO : fuse_reply_lseek(req, offset);
}

int pfs_respond_statfs(fuse_req_t req, const struct statvfs *stat)
{
	return refuses(req) ? -EIO : fuse_reply_statfs(req, stat);
}

int pfs_respond_size(fuse_req_t req, size_t size)
{
	return refuses(req) ? -EIO : fuse_reply_xattr(req, size);
}
