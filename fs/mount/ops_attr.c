/* SPDX-License-Identifier: MIT */
/* Operations on attributes: stat, statfs and the extended ones. */
#include "fs/mount/internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "fs/mount/respond.h"
#include "fs/mount/operations.h"
#include "fs/mount/kernel.h"

static void reply_attr(fuse_req_t req, int error, const struct pfs_entry *entry)
{
	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_attr(req, &entry->attr,
				      pfs_attr_timeout(pfs_mount_of(req), entry->volatile_attr));
}

int pfs_confirm_access(fuse_req_t req, fuse_ino_t node, unsigned want)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct pfs_entry entry;

	if (!pfs_access_is_doubtful(&mount->access, pfs_ino_of(node)))
		return 0;
	PFS_TRY(pfs_tree_getattr(mount->tree, &entry, pfs_ino_of(node)));
	if (!entry.volatile_attr)
		return 0;
	return pfs_access_confirm(&mount->access, &entry.attr, want, ctx->pid, ctx->uid, ctx->gid);
}

void pfs_on_node_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi PFS_UNUSED)
{
	struct pfs_entry entry;
	int error = pfs_tree_getattr(pfs_tree_of(req), &entry, pfs_ino_of(node));

	reply_attr(req, error, &entry);
}

/* Translates FUSE_SET_ATTR_* into enum pfs_set. A flag for "now" comes together with the plain
 * flag, and replaces it. */
static unsigned decode_set(int to_set)
{
	static const struct {
		int theirs;
		unsigned ours;
	} bits[] = {
		{FUSE_SET_ATTR_MODE, PFS_SET_MODE},   {FUSE_SET_ATTR_UID, PFS_SET_UID},
		{FUSE_SET_ATTR_GID, PFS_SET_GID},     {FUSE_SET_ATTR_SIZE, PFS_SET_SIZE},
		{FUSE_SET_ATTR_CTIME, PFS_SET_CTIME},
	};
	unsigned set = 0;
	size_t i;

	for (i = 0; i < PFS_COUNT(bits); i++)
		if (to_set & bits[i].theirs)
			set |= bits[i].ours;
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		set |= PFS_SET_ATIME_NOW;
	else if (to_set & FUSE_SET_ATTR_ATIME)
		set |= PFS_SET_ATIME;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		set |= PFS_SET_MTIME_NOW;
	else if (to_set & FUSE_SET_ATTR_MTIME)
		set |= PFS_SET_MTIME;
	return set;
}

void pfs_on_node_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr, int to_set,
			 struct fuse_file_info *fi)
{
	struct pfs_caller caller = pfs_caller_of(req);
	unsigned set = decode_set(to_set);
	struct pfs_entry entry = {0};
	int error = 0;

	if (set & PFS_SET_SIZE) {
		pfs_dispatch_yield(); /* this may read or copy content */
		if (!fi)
			error = pfs_confirm_access(req, node, W_OK);
		else if (!(set & PFS_SET_MTIME))
			/* ftruncate sets the time even if the size stays the same */
			set |= PFS_SET_MTIME_NOW;
	}
	if (!error)
		error = pfs_tree_setattr(pfs_tree_of(req), &entry, pfs_ino_of(node), attr, set,
					 &caller);
	error = pfs_settle(req, error);
	reply_attr(req, error, &entry);
}

void pfs_on_node_statfs(fuse_req_t req, fuse_ino_t node PFS_UNUSED)
{
	struct statvfs stat;
	int error = pfs_tree_statfs(pfs_tree_of(req), &stat);

	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_statfs(req, &stat);
}

/* ---- extended attributes ---- */

static bool is_user_xattr(const char *name)
{
	return strncmp(name, "user.", 5) == 0;
}

/* Replies with n bytes of a value or, if n is negative, with an error. The caller has room for
 * `size` bytes; 0: he asks for the length. */
static void reply_xattr(fuse_req_t req, const char *value, ssize_t n, size_t size)
{
	if (n < 0)
		pfs_respond_error(req, (int)n);
	else if (size == 0)
		(void)pfs_respond_size(req, (size_t)n);
	else if ((size_t)n > size)
		pfs_respond_error(req, -ERANGE);
	else
		(void)pfs_respond_bytes(req, value, (size_t)n);
}

static void describe_daemon(fuse_req_t req, size_t size)
{
	const struct pfs_mount *mount = pfs_mount_of(req);
	bool has_control = atomic_load(&mount->has_control);
	char text[64];
	int n = snprintf(text, sizeof(text), "%d %s%s%s", (int)getpid(),
			 mount->options.flags & MS_RDONLY ? "ro" : "rw", has_control ? " " : "",
			 has_control ? mount->control : "");

	reply_xattr(req, text, n, size);
}

/* Totals also count what is in closed directories, so only root and the mounting user see them. */
static bool may_see(fuse_req_t req, const char *name)
{
	static const char totals[] = "user.primefs.subtree_";
	uid_t uid = fuse_req_ctx(req)->uid;

	return strncmp(name, totals, sizeof(totals) - 1) != 0 || uid == 0 || uid == getuid();
}

void pfs_on_node_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size)
{
	char *value = NULL;
	ssize_t n;

	/* Other namespaces are answered at once: each write(2) asks for security.capability. */
	if (!is_user_xattr(name)) {
		pfs_respond_error(req, -EOPNOTSUPP);
		return;
	}
	if (strcmp(name, PFS_DAEMON_XATTR) == 0) {
		describe_daemon(req, size);
		return;
	}
	if (!may_see(req, name)) {
		pfs_respond_error(req, -EACCES);
		return;
	}
	if (size > 0)
		value = pfs_dispatch_scratch(size);
	n = size > 0 && !value
		    ? -ENOMEM
		    : pfs_tree_getxattr(pfs_tree_of(req), value, size, pfs_ino_of(node), name);
	reply_xattr(req, value, n, size);
}

void pfs_on_node_listxattr(fuse_req_t req, fuse_ino_t node, size_t size)
{
	char *list = NULL;
	ssize_t n;

	if (size > 0)
		list = pfs_dispatch_scratch(size);
	n = size > 0 && !list ? -ENOMEM
			      : pfs_tree_listxattr(pfs_tree_of(req), list, size, pfs_ino_of(node));
	reply_xattr(req, list, n, size);
}

/* Returns the error for a name that nobody may change, or 0. */
static int check_xattr_name(const char *name)
{
	if (!is_user_xattr(name))
		return -EOPNOTSUPP;
	return strcmp(name, PFS_DAEMON_XATTR) == 0 ? -EPERM : 0;
}

void pfs_on_node_setxattr(fuse_req_t req, fuse_ino_t node, const char *name, const char *value,
			  size_t size, int flags)
{
	int error = check_xattr_name(name);

	if (!error)
		error = pfs_tree_setxattr(pfs_tree_of(req), pfs_ino_of(node), name, value, size,
					  flags);
	pfs_respond_error(req, pfs_settle(req, error));
}

void pfs_on_node_removexattr(fuse_req_t req, fuse_ino_t node, const char *name)
{
	int error = check_xattr_name(name);

	if (!error)
		error = pfs_tree_removexattr(pfs_tree_of(req), pfs_ino_of(node), name);
	pfs_respond_error(req, pfs_settle(req, error));
}
