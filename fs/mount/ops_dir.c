/* SPDX-License-Identifier: MIT */
/* Operations on directories. */
#include "fs/mount/internal.h"

#include "fs/mount/respond.h"
#include "fs/mount/operations.h"

/* A reply that is being filled. */
struct listing {
	fuse_req_t req;
	const struct pfs_mount *mount;
	char *data;
	size_t used, size;
	uint64_t *referenced; /* inode numbers that the reply hands to the kernel */
	size_t n_referenced;
};

/* The smallest entry of such a reply: struct fuse_direntplus and a byte of name, padded. */
#define MIN_PLUS_BYTES 160

static int add_plain(void *arg, const struct pfs_dirent *dirent)
{
	struct listing *listing = arg;
	struct stat attr = {.st_ino = dirent->ino, .st_mode = dirent->mode};
	size_t left = listing->size - listing->used;
	size_t n = fuse_add_direntry(listing->req, listing->data + listing->used, left,
				     dirent->name, &attr, dirent->next_offset);

	if (n > left)
		return 1;
	listing->used += n;
	return 0;
}

static bool is_dot(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int add_plus(void *arg, const struct pfs_dirent *dirent)
{
	struct listing *listing = arg;
	struct fuse_entry_param param = {0}; /* node number 0: an entry without attributes */
	size_t left = listing->size - listing->used;
	bool counts = dirent->entry && !is_dot(dirent->name);
	size_t n;

	if (counts)
		pfs_fill_entry(listing->mount, &param, dirent->entry);
	param.attr.st_ino = dirent->ino;
	param.attr.st_mode |= dirent->mode & S_IFMT;
	n = fuse_add_direntry_plus(listing->req, listing->data + listing->used, left, dirent->name,
				   &param, dirent->next_offset);
	if (n > left)
		return 1;
	listing->used += n;
	if (counts)
		listing->referenced[listing->n_referenced++] = dirent->ino;
	return 0;
}

static void forget_listed(const struct listing *listing)
{
	size_t i;

	for (i = 0; i < listing->n_referenced; i++)
		pfs_tree_forget(listing->mount->tree, listing->referenced[i], 1);
}

/* Replies with what add() puts into the listing. */
static void list(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset, bool want_attr,
		 int (*add)(void *arg, const struct pfs_dirent *dirent))
{
	size_t data_size = (size + 7) / 8 * 8;
	size_t places = want_attr ? size / MIN_PLUS_BYTES + 1 : 0;
	char *data = pfs_dispatch_scratch(data_size + places * sizeof(uint64_t));
	struct listing listing = {
		.req = req,
		.mount = pfs_mount_of(req),
		.data = data,
		.size = size,
		.referenced = (uint64_t *)(data + data_size),
	};
	int error;

	if (!data) {
		pfs_respond_error(req, -ENOMEM);
		return;
	}
	error = pfs_tree_readdir(listing.mount->tree, pfs_ino_of(node), offset, want_attr, add,
				 &listing);
	if (error < 0) {
		forget_listed(&listing);
		pfs_respond_error(req, error);
	} else if (pfs_respond_bytes(req, data, listing.used) != 0) {
		forget_listed(&listing); /* the asking process was killed, as in reply_entry of ops_name.c */
	}
}

void pfs_on_node_readdir(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
			 struct fuse_file_info *fi PFS_UNUSED)
{
	list(req, node, size, offset, false, add_plain);
}

void pfs_on_node_readdirplus(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
			     struct fuse_file_info *fi PFS_UNUSED)
{
	struct pfs_mount *mount = pfs_mount_of(req);
	bool want_attr =
		mount->options.readdirplus == PFS_READDIRPLUS_ALWAYS ||
		pfs_advice_list(&mount->advice, fuse_req_ctx(req)->pid, pfs_ino_of(node), offset);

	list(req, node, size, offset, want_attr, add_plus);
}

/* Lets the kernel keep listings until something in the directory changes. */
void pfs_on_node_opendir(fuse_req_t req, fuse_ino_t node PFS_UNUSED, struct fuse_file_info *fi)
{
	fi->cache_readdir = 1;
	fi->keep_cache = 1;
	(void)pfs_respond_open(req, fi);
}

void pfs_on_node_releasedir(fuse_req_t req, fuse_ino_t node PFS_UNUSED,
			    struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_respond_error(req, 0);
}

void pfs_on_node_fsyncdir(fuse_req_t req, fuse_ino_t node PFS_UNUSED, int data_only PFS_UNUSED,
			  struct fuse_file_info *fi PFS_UNUSED)
{
	pfs_dispatch_yield();
	pfs_respond_error(req, pfs_tree_sync(pfs_tree_of(req)));
}
