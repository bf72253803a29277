/* SPDX-License-Identifier: MIT */
/* Operations on names: lookup and forget, making, removing, renaming. */
#include "fs/mount/internal.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "fs/mount/respond.h"
#include "fs/mount/operations.h"

void pfs_fill_entry(const struct pfs_mount *mount, struct fuse_entry_param *out,
		    const struct pfs_entry *entry)
{
	*out = (struct fuse_entry_param){
		.ino = pfs_node_of(entry->attr.st_ino),
		.attr = entry->attr,
		.attr_timeout = pfs_attr_timeout(mount, entry->volatile_attr),
		.entry_timeout = mount->options.timeout,
	};
}

/* Replies with the entry and the reference that the caller took, or with the error. */
static void reply_entry(fuse_req_t req, int error, const struct pfs_entry *entry)
{
	const struct pfs_mount *mount = pfs_mount_of(req);
	struct fuse_entry_param param;

	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	pfs_fill_entry(mount, &param, entry);
	/* The asking process was killed: the kernel does not know the entry, so it will not forget
	 * it. */
	if (pfs_respond_entry(req, &param) != 0)
		pfs_tree_forget(mount->tree, entry->attr.st_ino, 1);
}

void pfs_on_node_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	struct pfs_entry entry;
	int error = pfs_tree_lookup(mount->tree, &entry, pfs_ino_of(parent), name);

	if (error == -ENOENT && mount->options.timeout > 0) {
		/* The kernel may also keep that there is no such entry. */
		struct fuse_entry_param none = {.entry_timeout = mount->options.timeout};

		(void)pfs_respond_entry(req, &none);
		return;
	}
	if (!error && !S_ISDIR(entry.attr.st_mode))
		pfs_advice_lookup(&mount->advice, fuse_req_ctx(req)->pid, pfs_ino_of(parent));
	reply_entry(req, error, &entry);
}

void pfs_on_node_forget(fuse_req_t req, fuse_ino_t node, uint64_t n)
{
	pfs_tree_forget(pfs_tree_of(req), pfs_ino_of(node), n);
	fuse_reply_none(req);
}

void pfs_on_node_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	size_t i;

	for (i = 0; i < count; i++)
		pfs_tree_forget(pfs_tree_of(req), pfs_ino_of(forgets[i].ino), forgets[i].nlookup);
	fuse_reply_none(req);
}

static int settle(fuse_req_t req, int error, unsigned long wanted_by)
{
	if (error || !(pfs_mount_of(req)->options.flags & wanted_by))
		return error;
	pfs_dispatch_yield();
	return pfs_tree_sync(pfs_tree_of(req));
}

/* As pfs_settle, after a change of names, for the options sync and dirsync. */
static int settle_names(fuse_req_t req, int error)
{
	return settle(req, error, MS_SYNCHRONOUS | MS_DIRSYNC);
}

int pfs_settle(fuse_req_t req, int error)
{
	return settle(req, error, MS_SYNCHRONOUS);
}

/* Waits for the commit of a new entry, if options say so. `error` is the error of making the entry.
 * If the commit fails, the entry loses the reference that it was made with. */
static int settle_entry(fuse_req_t req, int error, const struct pfs_entry *entry)
{
	int settled = settle_names(req, error);

	if (settled && !error)
		pfs_tree_forget(pfs_tree_of(req), entry->attr.st_ino, 1);
	return settled;
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	struct pfs_caller caller = pfs_caller_of(req);
	struct pfs_entry entry;
	int error = pfs_tree_make(pfs_tree_of(req), &entry, pfs_ino_of(parent), name, mode, rdev,
				  &caller);

	reply_entry(req, settle_entry(req, error, &entry), &entry);
}

void pfs_on_node_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	make(req, parent, name, mode, rdev);
}

void pfs_on_node_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	make(req, parent, name, S_IFDIR | (mode & ~(mode_t)S_IFMT), 0);
}

void pfs_on_node_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct pfs_caller caller = pfs_caller_of(req);
	struct pfs_entry entry;
	int error = pfs_tree_symlink(pfs_tree_of(req), &entry, pfs_ino_of(parent), name, target,
				     &caller);

	reply_entry(req, settle_entry(req, error, &entry), &entry);
}

void pfs_on_node_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			struct fuse_file_info *fi)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	struct pfs_caller caller = pfs_caller_of(req);
	struct fuse_entry_param param;
	struct pfs_entry entry;
	int error = pfs_tree_make(mount->tree, &entry, pfs_ino_of(parent), name,
				  S_IFREG | (mode & ~(mode_t)S_IFMT), 0, &caller);

	error = settle_entry(req, error, &entry);
	if (error) {
		/* The entry was made without the kernel's knowledge. After ESTALE the kernel looks
		 * it up again. */
		pfs_respond_error(req, error == -EEXIST && !(fi->flags & O_EXCL) ? -ESTALE : error);
		return;
	}
	pfs_fill_entry(mount, &param, &entry);
	fi->keep_cache = 1;
	if (pfs_respond_create(req, &param, fi) != 0)
		pfs_tree_forget(mount->tree, entry.attr.st_ino, 1);
}

/* A node has one name: there are no hard links. */
void pfs_on_node_link(fuse_req_t req, fuse_ino_t node PFS_UNUSED, fuse_ino_t parent PFS_UNUSED,
		      const char *name PFS_UNUSED)
{
	pfs_respond_error(req, -EPERM);
}

void pfs_on_node_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int error = pfs_tree_unlink(pfs_tree_of(req), pfs_ino_of(parent), name);

	pfs_respond_error(req, settle_names(req, error));
}

void pfs_on_node_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	int error = pfs_tree_rmdir(pfs_tree_of(req), pfs_ino_of(parent), name);

	pfs_respond_error(req, settle_names(req, error));
}

void pfs_on_node_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
			const char *new_name, unsigned flags)
{
	int error = pfs_tree_rename(pfs_tree_of(req), pfs_ino_of(parent), name,
				    pfs_ino_of(new_parent), new_name, flags);

	pfs_respond_error(req, settle_names(req, error));
}

void pfs_on_node_readlink(fuse_req_t req, fuse_ino_t node)
{
	char *target = pfs_dispatch_scratch(PATH_MAX);
	int error =
		target ? pfs_tree_readlink(pfs_tree_of(req), target, pfs_ino_of(node)) : -ENOMEM;

	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_link(req, target);
}
