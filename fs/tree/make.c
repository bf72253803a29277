/* SPDX-License-Identifier: MIT */
/* Names that come and go: mkdir, mknod, symlink, unlink, rmdir. */
#include "fs/tree/dir.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/content/hardlink.h"
#include "fs/image/children.h"
#include "fs/image/image.h"
#include "fs/image/names.h"
#include "fs/image/primes.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

/* ---- making ---- */

struct making {
	uint64_t parent;
	const char *name;
	size_t name_len;
	uint32_t hash; /* of the name */
	mode_t mode;
	uint64_t rdev;
	char *target; /* NULL, or a copy that becomes the node's */
	size_t target_len;
	const struct pfs_caller *caller;
};

static bool is_device(mode_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode);
}

/* A symlink's target and a device's number.  -ENOMEM. */
static int set_target(struct pfs_tree *tree, uint32_t slot, struct making *making)
{
	if (!making->target && !is_device(making->mode))
		return 0;
	PFS_TRY(pfs_image_set_target(tree, slot, making->target, making->target_len, making->rdev));
	making->target = NULL;
	return 0;
}

static void set_columns(struct pfs_tree *tree, uint32_t slot, uint32_t parent,
			const struct making *making, struct pfs_time now)
{
	const struct pfs_image *image = &tree->image;
	mode_t mode = making->mode;
	gid_t gid = making->caller->gid;

	if (image->mode[parent] & S_ISGID) {
		gid = image->gid[parent];
		if (S_ISDIR(mode))
			mode |= S_ISGID;
	}
	pfs_image_make(tree, slot, mode, making->caller->uid, gid, now);
}

/* Whatever can fail comes before the first change that could be seen. */
static int make_locked(struct pfs_tree *tree, struct pfs_entry *out, struct making *making)
{
	struct pfs_image *image = &tree->image;
	enum pfs_prime_kind kind =
		S_ISDIR(making->mode) ? PFS_PRIME_DIRECTORY : PFS_PRIME_OTHER;
	struct pfs_time now = pfs_now();
	uint32_t parent, slot, name;
	uint64_t prime;
	int error;

	PFS_TRY(pfs_dir_slot_alive(tree, &parent, making->parent));
	if (pfs_image_child_of_hash(tree, parent, making->name, making->name_len, making->hash) !=
	    PFS_NO_SLOT)
		return -EEXIST;
	PFS_TRY(pfs_image_reserve(tree, 1));
	PFS_TRY(pfs_names_add(image->names, &name, making->name, making->name_len));
	error = pfs_primes_next(tree, &prime, kind);
	if (error) {
		pfs_names_remove(image->names, name);
		return error;
	}
	slot = pfs_image_take(tree, prime);
	error = set_target(tree, slot, making);
	if (error) {
		pfs_image_free(tree, slot);
		pfs_names_remove(image->names, name);
		return error;
	}
	set_columns(tree, slot, parent, making, now);
	pfs_image_attach(tree, slot, parent, name, making->hash);
	pfs_journal_touch(tree, slot);
	pfs_stamp(tree, parent, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME, now);
	pfs_reference(tree, slot);
	pfs_image_stat(tree, out, slot);
	return 0;
}

static int make(struct pfs_tree *tree, struct pfs_entry *out, struct making *making)
{
	int error = pfs_name_check(&making->name_len, making->name);

	if (!error && pfs_name_is_reserved(making->name))
		error = -EEXIST;
	if (!error)
		making->hash = pfs_image_hash(tree, making->name, making->name_len);
	while (!error) {
		error = pfs_journal_reserve(tree, 2, making->target_len, false);
		if (error)
			break;
		pfs_hold_write(tree, __func__);
		error = make_locked(tree, out, making);
		pfs_hold_end(tree);
		if (error != -EAGAIN)
			break;
		error = pfs_journal_fetch_primes(tree);
	}
	return error;
}

int pfs_tree_make(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent, const char *name,
		  mode_t mode, dev_t rdev, const struct pfs_caller *caller)
{
	struct making making = {.parent = parent, .name = name, .mode = mode, .caller = caller};

	if (!(mode & S_IFMT))
		making.mode |= S_IFREG;
	if (is_device(mode))
		making.rdev = rdev;
	else if (!S_ISREG(making.mode) && !S_ISDIR(mode) && !S_ISFIFO(mode) && !S_ISSOCK(mode))
		return -EINVAL;
	return make(tree, out, &making);
}

int pfs_tree_symlink(struct pfs_tree *tree, struct pfs_entry *out, uint64_t parent,
		     const char *name, const char *target, const struct pfs_caller *caller)
{
	struct making making = {
		.parent = parent, .name = name, .mode = S_IFLNK | 0777, .caller = caller};
	int error;

	making.target_len = strnlen(target, PFS_TARGET_MAX + 1);
	if (making.target_len > PFS_TARGET_MAX)
		return -ENAMETOOLONG;
	if (!making.target_len)
		return -ENOENT;
	making.target = strdup(target);
	if (!making.target)
		return -ENOMEM;
	error = make(tree, out, &making);
	free(making.target);
	return error;
}

/* ---- removing ---- */

bool pfs_unlink_slot(struct pfs_tree *tree, uint32_t slot, uint32_t hash, struct pfs_time now)
{
	uint32_t parent = tree->image.parent[slot];

	pfs_stamp(tree, parent, PFS_COLUMN_MTIME | PFS_COLUMN_CTIME,
		  now); /* first, as rename does */
	pfs_image_detach(tree, slot, hash, &now);
	pfs_hard_link_leave(tree, slot);
	pfs_journal_unlinked(tree, slot);
	return !atomic_load(&tree->image.references[slot]);
}

struct removing {
	uint64_t parent;
	const char *name;
	size_t name_len;
	uint32_t hash; /* of the name */
	bool directory;
	uint64_t kept; /* the node whose record may go */
	uint64_t former; /* what history keeps of it, in bytes */
	uint64_t ino;  /* the node that went, or that has to be kept first */
	bool is_unused; /* nobody refers to it */
};

/* -EAGAIN: call pfs_parts_keep for ino first. */
static int remove_locked(struct pfs_tree *tree, struct removing *removing)
{
	const struct pfs_image *image = &tree->image;
	uint32_t parent, slot;

	PFS_TRY(pfs_dir_slot(tree, &parent, removing->parent));
	slot = pfs_image_child_of_hash(tree, parent, removing->name, removing->name_len,
				       removing->hash);
	if (slot == PFS_NO_SLOT)
		return -ENOENT;
	if (removing->directory && !S_ISDIR(image->mode[slot]))
		return -ENOTDIR;
	if (!removing->directory && S_ISDIR(image->mode[slot]))
		return -EISDIR;
	if (removing->directory && !pfs_image_is_empty(tree, slot))
		return -ENOTEMPTY;
	removing->ino = image->prime[slot];
	if (pfs_parts_must_keep(tree, slot) && removing->kept != removing->ino)
		return -EAGAIN;
	removing->is_unused = pfs_unlink_slot(tree, slot, removing->hash, pfs_now());
	pfs_journal_replaced(tree, removing->former);
	return 0;
}

static int remove_name(struct pfs_tree *tree, struct removing *removing)
{
	int error = pfs_name_check(&removing->name_len, removing->name);

	if (!error)
		removing->hash = pfs_image_hash(tree, removing->name, removing->name_len);
	while (!error) {
		error = pfs_journal_reserve_removal(tree, 2, removing->former);
		if (error)
			break;
		pfs_hold_write(tree, __func__);
		error = remove_locked(tree, removing);
		pfs_hold_end(tree);
		if (error != -EAGAIN)
			break;
		error = pfs_parts_keep(tree, removing->ino, &removing->former);
		removing->kept = removing->ino;
	}
	if (!error && removing->is_unused)
		pfs_drop_unused(tree, removing->ino);
	return error;
}

int pfs_tree_unlink(struct pfs_tree *tree, uint64_t parent, const char *name)
{
	struct removing removing = {.parent = parent, .name = name};

	return remove_name(tree, &removing);
}

int pfs_tree_rmdir(struct pfs_tree *tree, uint64_t parent, const char *name)
{
	struct removing removing = {.parent = parent, .name = name, .directory = true};

	return remove_name(tree, &removing);
}
