/* SPDX-License-Identifier: MIT */
/* FUSE's operations on virtual nodes, except those on open files (virtual_files.c). */
#include "fs/mount/query/virtual.h"

#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/number.h"
#include "fs/mount/operations.h"
#include "fs/mount/respond.h"

/* times of directories and links are the present; this is how old they may be */
#define TIMES_SECONDS 1.0

/* ---- attributes ---- */

static void set_size(struct stat *attr, uint64_t size)
{
	attr->st_size = (off_t)size;
	attr->st_blocks = (attr->st_size + 511) / 512;
}

/* Fills in all but a file's size, which only an open file has. */
static void fill_attr(const struct pfs_call *call, struct stat *attr,
		      const struct pfs_virtual *virtual)
{
	mode_t mode = virtual->kind->mode;
	struct timespec now;

	if (call->mount->options.query_others) {
		mode |= (mode & 0500) >> 3 | (mode & 0500) >> 6;
		if (virtual->kind->others_write)
			mode |= 0022;
	}
	(void)clock_gettime(CLOCK_REALTIME, &now);
	*attr = (struct stat){
		.st_ino = virtual->st_ino,
		.st_mode = mode,
		.st_nlink = S_ISDIR(mode) ? 2 : 1,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_blksize = 65536,
		.st_atim = now,
		.st_mtim = now,
		.st_ctim = now,
	};
	if (S_ISLNK(mode))
		set_size(attr, strlen(virtual->data));
}

/* Returns how long the kernel may keep attributes. A file's size is asked for each time; of other
 * nodes only the times change. */
static double timeout_of(const struct pfs_call *call, const struct stat *attr)
{
	return S_ISREG(attr->st_mode) ? 0 : PFS_MIN(call->mount->options.timeout, TIMES_SECONDS);
}

/* The kernel passes a handle if somebody asks for the end of a file (lseek), but not for fstat. */
void pfs_on_query_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_handle *handle = NULL;
	struct pfs_call call;
	struct stat attr;
	double timeout;
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	fill_attr(&call, &attr, call.virtual);
	timeout = timeout_of(&call, &attr);
	if (S_ISREG(attr.st_mode) && fi)
		handle = pfs_handle_of(fi);
	else if (S_ISREG(attr.st_mode))
		set_size(&attr, pfs_handles_size(&call, NULL));
	pfs_call_end(&call);
	if (!handle || !pfs_handle_measure(handle, req, &attr))
		(void)pfs_respond_attr(req, &attr, timeout);
}

/* Files that are written take a truncation, and any time. */
/* Times are taken and not kept; so is the mode of a table, that mv and `cp -p` may bring one. */
static int check_setattr(const struct pfs_virtual *virtual, int to_set)
{
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_ATIME_NOW |
			  FUSE_SET_ATTR_MTIME_NOW | FUSE_SET_ATTR_CTIME;

	if (virtual->kind->store)
		to_set &= ~FUSE_SET_ATTR_MODE;
	if (to_set & (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		return -EPERM;
	if (to_set & FUSE_SET_ATTR_SIZE && !virtual->kind->write && !virtual->kind->store)
		return -EACCES;
	return to_set & ~(times | FUSE_SET_ATTR_SIZE) ? -EPERM : 0;
}

void pfs_on_query_setattr(fuse_req_t req, fuse_ino_t node, struct stat *attr PFS_UNUSED, int to_set,
			  struct fuse_file_info *fi)
{
	struct pfs_call call;
	struct stat now;
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		error = check_setattr(call.virtual, to_set);
		fill_attr(&call, &now, call.virtual);
		if (S_ISREG(now.st_mode))
			set_size(&now, pfs_handles_size(&call, fi ? pfs_handle_of(fi) : NULL));
		pfs_call_end(&call);
	}
	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_attr(req, &now, 0);
}

/* ---- names ---- */

/* Looks up a name in the call's directory; name NULL: `.query` in the directory of the tree. */
static int find(struct pfs_call *call, struct fuse_entry_param *param, const char *name)
{
	struct pfs_virtual_found found = {&pfs_query_kind, NULL};
	struct pfs_virtual *dir = call->virtual, *virtual;

	*param = (struct fuse_entry_param){.ino = 0};
	if (name) {
		if (!dir->kind->lookup)
			return -ENOTDIR;
		PFS_TRY(dir->kind->lookup(call, dir, name, &found));
	}
	PFS_TRY(pfs_virtual_find(call->mount->virtuals, &virtual, dir, call->scope.ino,
				 name ? name : PFS_QUERY_NAME, call->scope.uid, &found));
	param->ino = virtual->node;
	fill_attr(call, &param->attr, virtual);
	param->attr_timeout = timeout_of(call, &param->attr);
	pfs_virtual_drop(call->mount->virtuals, virtual);
	return 0;
}

static void reply_found(fuse_req_t req, int error, const struct fuse_entry_param *param)
{
	struct pfs_virtuals *virtuals = pfs_mount_of(req)->virtuals;

	if (error)
		pfs_respond_error(req, error);
	else if (pfs_respond_entry(req, param) != 0)
		pfs_virtual_forget(virtuals, param->ino, 1);
}

void pfs_on_query_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	bool is_root = !pfs_is_virtual(parent); /* then the name is `.query` */
	struct fuse_entry_param param;
	struct pfs_call call;
	int error;

	error = pfs_call_begin(&call, req, is_root ? 0 : parent, pfs_ino_of(parent));
	if (!error) {
		error = find(&call, &param, is_root ? NULL : name);
		pfs_call_end(&call);
	}
	reply_found(req, error, &param);
}

void pfs_on_query_forget(fuse_req_t req, fuse_ino_t node, uint64_t n)
{
	pfs_virtual_forget(pfs_mount_of(req)->virtuals, node, n);
	fuse_reply_none(req);
}

void pfs_on_query_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	size_t i;

	for (i = 0; i < count; i++) {
		if (pfs_is_virtual(forgets[i].ino))
			pfs_virtual_forget(mount->virtuals, forgets[i].ino, forgets[i].nlookup);
		else
			pfs_tree_forget(mount->tree, pfs_ino_of(forgets[i].ino),
					forgets[i].nlookup);
	}
	fuse_reply_none(req);
}

int pfs_virtual_make(struct pfs_call *call, struct fuse_entry_param *param, const char *name,
		     mode_t type)
{
	if (!call->virtual->kind->make)
		return -EPERM;
	if (call->mount->options.flags & MS_RDONLY)
		return -EROFS;
	PFS_TRY(call->virtual->kind->make(call, call->virtual, name, type));
	call->making = true;
	return find(call, param, name);
}

static void make(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t type)
{
	struct fuse_entry_param param;
	struct pfs_call call;
	int error = pfs_call_begin(&call, req, parent, 0);

	if (!error) {
		error = pfs_virtual_make(&call, &param, name, type);
		pfs_call_end(&call);
	}
	reply_found(req, error, &param);
}

void pfs_on_query_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
			dev_t rdev PFS_UNUSED)
{
	make(req, parent, name, mode & S_IFMT ? mode & S_IFMT : S_IFREG);
}

void pfs_on_query_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode PFS_UNUSED)
{
	make(req, parent, name, S_IFDIR);
}

void pfs_on_query_symlink(fuse_req_t req, const char *target PFS_UNUSED,
			  fuse_ino_t parent PFS_UNUSED, const char *name PFS_UNUSED)
{
	pfs_respond_error(req, -EPERM);
}

/* Programs that meet EXDEV copy instead. */
void pfs_on_query_link(fuse_req_t req, fuse_ino_t node PFS_UNUSED, fuse_ino_t parent PFS_UNUSED,
		       const char *name PFS_UNUSED)
{
	pfs_respond_error(req, -EXDEV);
}

/* Files are copied then, too; but the copy of a saved query would end half-way. */
static int rename_error(fuse_req_t req, fuse_ino_t parent)
{
	struct pfs_call call;
	bool saved;

	PFS_TRY(pfs_call_begin(&call, req, parent, 0));
	saved = call.virtual->kind == &pfs_query_kind;
	pfs_call_end(&call);
	return saved ? -EPERM : -EXDEV;
}

void pfs_on_query_rename(fuse_req_t req, fuse_ino_t parent, const char *name PFS_UNUSED,
			 fuse_ino_t new_parent, const char *new_name PFS_UNUSED,
			 unsigned flags PFS_UNUSED)
{
	if (pfs_is_virtual(parent) || pfs_is_virtual(new_parent))
		pfs_respond_error(req,
				rename_error(req, pfs_is_virtual(parent) ? parent : new_parent));
	else
		pfs_respond_error(req, -EPERM); /* nobody may remove `.query` */
}

static void remove_(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t type)
{
	struct pfs_call call;
	int error = pfs_call_begin(&call, req, parent, 0);

	if (!error) {
		if (!call.virtual->kind->remove)
			error = -EPERM;
		else if (call.mount->options.flags & MS_RDONLY)
			error = -EROFS;
		else
			error = call.virtual->kind->remove(&call, call.virtual, name, type);
		pfs_call_end(&call);
	}
	pfs_respond_error(req, error);
}

void pfs_on_query_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (pfs_is_virtual(parent))
		remove_(req, parent, name, S_IFREG);
	else
		pfs_respond_error(req, -EPERM);
}

void pfs_on_query_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (pfs_is_virtual(parent))
		remove_(req, parent, name, S_IFDIR);
	else
		pfs_respond_error(req, -EPERM);
}

void pfs_on_query_readlink(fuse_req_t req, fuse_ino_t node)
{
	struct pfs_virtual *virtual;
	struct pfs_call call;
	char target[PATH_MAX];
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		virtual = call.virtual;
		if (!S_ISLNK(virtual->kind->mode))
			error = -EINVAL;
		else
			(void)snprintf(target, sizeof(target), "%s", (const char *)virtual->data);
		pfs_call_end(&call);
	}
	if (error)
		pfs_respond_error(req, error);
	else
		(void)pfs_respond_link(req, target);
}

/* ---- directories ---- */

static int list_names(struct pfs_call *call, struct pfs_handle *handle, int flags PFS_UNUSED)
{
	const struct pfs_virtual_kind *kind = call->virtual->kind;

	return kind->list ? kind->list(call, call->virtual, &handle->names) : 0;
}

static int open_dir(struct pfs_call *call, struct pfs_handle **out)
{
	*out = NULL;
	if (!S_ISDIR(call->virtual->kind->mode))
		return -ENOTDIR;
	return pfs_handle_open(out, call, 0, list_names);
}

void pfs_on_query_opendir(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *fi)
{
	struct pfs_virtuals *virtuals = pfs_mount_of(req)->virtuals;
	struct pfs_handle *handle;
	struct pfs_call call;
	int error;

	error = pfs_call_begin(&call, req, node, 0);
	if (!error) {
		error = open_dir(&call, &handle);
		pfs_call_end(&call);
	}
	if (error) {
		pfs_respond_error(req, error);
		return;
	}
	fi->fh = (uintptr_t)handle;
	if (pfs_respond_open(req, fi) != 0)
		pfs_handle_close(virtuals, handle);
}

/* Returns the name of entry number `at`: ".", "..", then the listing's names. */
static const char *entry_at(const struct pfs_handle *handle, size_t at, struct stat *attr)
{
	const struct pfs_virtual *dir = handle->virtual;
	const char *name;

	attr->st_mode = S_IFDIR;
	if (at == 0) {
		attr->st_ino = dir->st_ino;
		return ".";
	}
	if (at == 1) {
		attr->st_ino = dir->parent ? dir->parent->st_ino : dir->ino;
		return "..";
	}
	name = handle->names.bytes + handle->names.names[at - 2].at;
	attr->st_mode = handle->names.names[at - 2].type;
	attr->st_ino = pfs_virtual_st_ino(dir, dir->ino, name);
	return name;
}

static void list(fuse_req_t req, size_t size, off_t offset, const struct pfs_handle *handle,
		 bool plus)
{
	char *data = pfs_dispatch_scratch(size);
	size_t used = 0, at;

	if (!data) {
		pfs_respond_error(req, -ENOMEM);
		return;
	}
	for (at = (size_t)offset; at < handle->names.n + 2; at++) {
		struct fuse_entry_param param = {.ino = 0};
		const char *name = entry_at(handle, at, &param.attr);
		size_t n;

		if (plus)
			n = fuse_add_direntry_plus(req, data + used, size - used, name, &param,
						   (off_t)at + 1);
		else
			n = fuse_add_direntry(req, data + used, size - used, name, &param.attr,
					      (off_t)at + 1);
		if (n > size - used)
			break;
		used += n;
	}
	(void)pfs_respond_bytes(req, data, used);
}

void pfs_on_query_readdir(fuse_req_t req, fuse_ino_t node PFS_UNUSED, size_t size, off_t offset,
			  struct fuse_file_info *fi)
{
	list(req, size, offset, pfs_handle_of(fi), false);
}

void pfs_on_query_readdirplus(fuse_req_t req, fuse_ino_t node PFS_UNUSED, size_t size, off_t offset,
			      struct fuse_file_info *fi)
{
	list(req, size, offset, pfs_handle_of(fi), true);
}

void pfs_on_query_releasedir(fuse_req_t req, fuse_ino_t node PFS_UNUSED, struct fuse_file_info *fi)
{
	pfs_handle_close(pfs_mount_of(req)->virtuals, pfs_handle_of(fi));
	pfs_respond_error(req, 0);
}

void pfs_on_query_fsyncdir(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int data_only PFS_UNUSED,
			   struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_respond_error(req, 0);
}

/* ---- extended attributes: virtual nodes have none ---- */

struct total {
	bool found;
	int64_t value;
};

static int take_total(void *arg, const struct pfs_query *query)
{
	struct total *total = arg;

	if (query)
		*total = (struct total){true, pfs_query_integer(query, 0)};
	return 0;
}

/* Gets the total of a node of the tree as the caller sees it. text has PFS_NUMBER_SIZE bytes. */
static int find_total(struct pfs_call *call, char *text, uint64_t ino, const char *column)
{
	struct total total = {false, 0};
	char sql[128];
	int len = snprintf(sql, sizeof(sql), "SELECT %s FROM nodes WHERE ino = %llu", column,
			   (unsigned long long)ino);

	PFS_TRY(pfs_call_rows(call, sql, (size_t)len, take_total, &total));
	if (!total.found)
		return -EACCES;
	return (int)pfs_print_integer(text, total.value);
}

static void reply_total(fuse_req_t req, fuse_ino_t node, const char *column, size_t size)
{
	char text[PFS_NUMBER_SIZE];
	struct pfs_call call;
	int n = pfs_call_begin(&call, req, 0, pfs_ino_of(FUSE_ROOT_ID));

	if (!n) {
		n = find_total(&call, text, pfs_ino_of(node), column);
		pfs_call_end(&call);
	}
	if (n >= 0 && size && (size_t)n > size)
		n = -ERANGE;
	if (n < 0)
		pfs_respond_error(req, n);
	else if (size)
		(void)pfs_respond_bytes(req, text, (size_t)n);
	else
		(void)pfs_respond_size(req, (size_t)n);
}

const char *pfs_limited_total(fuse_req_t req, const char *name)
{
	static const char prefix[] = "user.primefs.";
	static const char *const totals[] = {"subtree_count", "subtree_size", "subtree_blocks",
					     "subtree_mtime"};
	uid_t uid = fuse_req_ctx(req)->uid;

	if (!pfs_mount_of(req)->options.query_others || uid == 0 || uid == geteuid() ||
	    strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return NULL;
	for (size_t i = 0; i < PFS_COUNT(totals); i++)
		if (strcmp(name + sizeof(prefix) - 1, totals[i]) == 0)
			return totals[i];
	return NULL;
}

/* Also serves totals of nodes of the tree, for callers who do not see all. */
void pfs_on_query_getxattr(fuse_req_t req, fuse_ino_t node, const char *name, size_t size)
{
	if (pfs_is_virtual(node))
		pfs_respond_error(req, strncmp(name, "user.", 5) == 0 ? -ENODATA : -EOPNOTSUPP);
	else
		reply_total(req, node, pfs_limited_total(req, name), size);
}

void pfs_on_query_listxattr(fuse_req_t req, fuse_ino_t node PFS_UNUSED, size_t size)
{
	if (size)
		(void)pfs_respond_bytes(req, NULL, 0);
	else
		(void)pfs_respond_size(req, 0);
}

void pfs_on_query_setxattr(fuse_req_t req, fuse_ino_t node PFS_UNUSED, const char *name PFS_UNUSED,
			   const char *value PFS_UNUSED, size_t size PFS_UNUSED,
			   int flags PFS_UNUSED)
{
	pfs_respond_error(req, -EOPNOTSUPP);
}

void pfs_on_query_removexattr(fuse_req_t req, fuse_ino_t node PFS_UNUSED,
			      const char *name PFS_UNUSED)
{
	pfs_respond_error(req, -EOPNOTSUPP);
}

/* ---- the filesystem: the tree's ---- */

void pfs_on_query_statfs(fuse_req_t req, fuse_ino_t node)
{
	pfs_on_node_statfs(req, node);
}
