/* SPDX-License-Identifier: MIT */
/* Attributes: getattr, setattr, readlink, statfs, access times. */
#include "fs/tree/dir.h"

#include <string.h>

#include "fs/content/content.h"
#include "fs/content/link.h"
#include "fs/image/image.h"
#include "fs/image/rare_values.h"
#include "fs/journal/atime.h"
#include "fs/journal/journal.h"
#include "fs/tree/tree_impl.h"

#define BLOCK_SIZE 4096u

/* ---- reading ---- */

static int stat_locked(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino)
{
	uint32_t slot = pfs_image_slot(tree, ino);

	if (slot == PFS_NO_SLOT)
		return -ESTALE;
	pfs_image_stat(tree, out, slot);
	return 0;
}

int pfs_tree_getattr(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino)
{
	int error;

	pfs_hold_read(tree, __func__);
	error = stat_locked(tree, out, ino);
	pfs_hold_end(tree);
	if (error || !out->volatile_attr)
		return error;
	PFS_TRY(pfs_links_refresh(tree, ino));
	pfs_hold_read(tree, __func__);
	error = stat_locked(tree, out, ino);
	pfs_hold_end(tree);
	return error;
}

int pfs_tree_readlink(struct pfs_tree *tree, char *target, uint64_t ino)
{
	bool atime_due = false;
	uint32_t slot;
	int error = 0;

	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot == PFS_NO_SLOT) {
		error = -ESTALE;
	} else if (!S_ISLNK(tree->image.mode[slot])) {
		error = -EINVAL;
	} else {
		const struct pfs_rare_values *values = pfs_rare_find(tree->image.rare, slot);

		memcpy(target, values->target, values->target_len);
		target[values->target_len] = 0;
		atime_due = pfs_atime_is_due(tree, slot);
	}
	pfs_hold_end(tree);
	if (atime_due)
		pfs_update_atime(tree, ino);
	return error;
}

int pfs_tree_statfs(struct pfs_tree *tree, struct statvfs *out)
{
	uint64_t free_bytes, total_bytes, nodes;

	PFS_TRY(pfs_journal_space(tree, &free_bytes, &total_bytes));
	pfs_hold_read(tree, __func__);
	nodes = tree->image.nodes;
	pfs_hold_end(tree);
	*out = (struct statvfs){
		.f_bsize = BLOCK_SIZE,
		.f_frsize = BLOCK_SIZE,
		.f_blocks = total_bytes / BLOCK_SIZE,
		.f_bfree = free_bytes / BLOCK_SIZE,
		.f_bavail = free_bytes / BLOCK_SIZE,
		.f_files = PFS_SLOT_MAX,
		.f_ffree = PFS_SLOT_MAX - nodes,
		.f_favail = PFS_SLOT_MAX - nodes,
		.f_namemax = PFS_NAME_MAX,
	};
	return 0;
}

/* ---- access times ---- */

/* ---- setting ---- */

struct setting {
	const struct stat *attr;
	unsigned set;
	bool privileged;
	struct pfs_time now;
};

/* As chown and truncate do it: suid goes, sgid too where it makes a program run as the group. */
static mode_t without_privileges(mode_t mode)
{
	if (S_ISDIR(mode))
		return mode;
	if (mode & S_IXGRP)
		mode &= ~(mode_t)S_ISGID;
	return mode & ~(mode_t)S_ISUID;
}

/* The only step that can fail; afterwards the times can be set. */
static int set_times(struct pfs_tree *tree, uint32_t slot, const struct setting *setting)
{
	struct pfs_image *image = &tree->image;
	struct pfs_times times = {
		.atime = pfs_time_of(setting->attr->st_atim),
		.mtime = pfs_time_of(setting->attr->st_mtim),
		.ctime = pfs_time_of(setting->attr->st_ctim),
	};
	struct pfs_rare_values *values;
	unsigned columns = PFS_COLUMN_CTIME;

	/* truncate(2) to the size that it has already */
	if (setting->set == PFS_SET_SIZE && setting->attr->st_size == image->size[slot])
		return 0;
	if (setting->set & (PFS_SET_ATIME | PFS_SET_MTIME | PFS_SET_CTIME) &&
	    !(pfs_time_fits(times.atime) && pfs_time_fits(times.mtime) &&
	      pfs_time_fits(times.ctime))) {
		PFS_TRY(pfs_rare_get(image->rare, &values, slot));
		image->state[slot] |= PFS_SLOT_RARE;
	}
	if (setting->set & PFS_SET_SIZE && !(setting->set & PFS_SET_MTIME))
		times.mtime = setting->now;
	if (setting->set & PFS_SET_ATIME_NOW)
		times.atime = setting->now;
	if (setting->set & PFS_SET_MTIME_NOW)
		times.mtime = setting->now;
	if (!(setting->set & PFS_SET_CTIME))
		times.ctime = pfs_stamp_ctime(tree, slot, setting->now);
	if (setting->set & (PFS_SET_ATIME | PFS_SET_ATIME_NOW))
		columns |= PFS_COLUMN_ATIME;
	if (setting->set & (PFS_SET_MTIME | PFS_SET_MTIME_NOW | PFS_SET_SIZE))
		columns |= PFS_COLUMN_MTIME;
	return pfs_image_set_times(tree, slot, columns, &times);
}

static void set_owner_and_mode(struct pfs_tree *tree, uint32_t slot, const struct setting *setting)
{
	const struct pfs_image *image = &tree->image;
	unsigned set = setting->set;
	mode_t mode = image->mode[slot];

	if (set & (PFS_SET_UID | PFS_SET_GID))
		pfs_image_set_owner(tree, slot,
				    set & PFS_SET_UID ? setting->attr->st_uid : image->uid[slot],
				    set & PFS_SET_GID ? setting->attr->st_gid : image->gid[slot]);
	/* set is 0 for chown(-1, -1), and for a write by a caller that the kernel found to be
	 * unprivileged. */
	if (set & (PFS_SET_UID | PFS_SET_GID) || !(set & ~(unsigned)PFS_SET_CTIME) ||
	    (set & PFS_SET_SIZE && !setting->privileged))
		mode = without_privileges(mode);
	if (set & PFS_SET_MODE)
		mode = (mode & S_IFMT) | (setting->attr->st_mode & 07777);
	if (mode != image->mode[slot])
		pfs_image_set_mode(tree, slot, mode);
}

static int set_slot(struct pfs_tree *tree, uint32_t slot, const struct setting *setting)
{
	PFS_TRY(set_times(tree, slot, setting));
	if (setting->set & PFS_SET_SIZE)
		pfs_content_set_size(tree, slot, setting->attr->st_size);
	set_owner_and_mode(tree, slot, setting);
	pfs_journal_touch(tree, slot);
	return 0;
}

void pfs_set_attributes(struct pfs_tree *tree, uint32_t slot, const struct stat *attr,
			unsigned set, struct pfs_time now)
{
	const struct setting setting = {.attr = attr, .set = set, .privileged = true, .now = now};

	if (set_slot(tree, slot, &setting)) /* cannot be: the times fit */
		PFS_VERIFY_CHECK(false);
}

static int set_locked(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino,
		      const struct setting *setting)
{
	uint32_t slot = pfs_image_slot(tree, ino);

	if (slot == PFS_NO_SLOT)
		return -ESTALE;
	PFS_TRY(set_slot(tree, slot, setting));
	pfs_image_stat(tree, out, slot);
	return 0;
}

int pfs_check_size(struct pfs_tree *tree, uint64_t ino, int64_t size)
{
	mode_t mode = 0;
	uint32_t slot;

	if (size < 0)
		return -EINVAL;
	if (size > PFS_FILE_SIZE_MAX)
		return -EFBIG;
	pfs_hold_read(tree, __func__);
	slot = pfs_image_slot(tree, ino);
	if (slot != PFS_NO_SLOT)
		mode = tree->image.mode[slot];
	pfs_hold_end(tree);
	if (slot == PFS_NO_SLOT)
		return -ESTALE;
	if (S_ISDIR(mode))
		return -EISDIR;
	return S_ISREG(mode) ? 0 : -EINVAL;
}

int pfs_tree_setattr(struct pfs_tree *tree, struct pfs_entry *out, uint64_t ino,
		     const struct stat *attr, unsigned set, const struct pfs_caller *caller)
{
	struct setting setting = {.attr = attr, .set = set, .privileged = caller->uid == 0};
	int error;

	if (set & PFS_SET_SIZE) {
		PFS_TRY(pfs_check_size(tree, ino, attr->st_size));
		PFS_TRY(pfs_content_prepare_size(tree, ino, attr->st_size));
	} else {
		PFS_TRY(pfs_journal_reserve(tree, 1, 0, false));
	}
	pfs_hold_write(tree, __func__);
	setting.now = pfs_now();
	error = set_locked(tree, out, ino, &setting);
	pfs_hold_end(tree);
	if (set & PFS_SET_SIZE)
		pfs_content_end_size(tree);
	return error;
}
