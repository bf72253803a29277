/* SPDX-License-Identifier: MIT */
#include "fs/content/filesystem.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "base/checked.h"
#include "fs/attr/attrset.h"
#include "fs/attr/xattr.h"

/* What FS_IOC_GETFSUUID gives, since Linux 6.9. */
struct uuid {
	uint8_t len, bytes[16];
};
#define GET_UUID _IOR(0x15, 0, struct uuid)

/* These make f_fsid of what their disks have: ext4 of the UUID, btrfs of that and the subvolume.
 * Others make it of the device's number. */
static bool has_own_fsid(const struct statfs *fs)
{
	return fs->f_type == EXT4_SUPER_MAGIC || fs->f_type == BTRFS_SUPER_MAGIC;
}

static uint64_t fsid_of(const struct statfs *fs)
{
	uint32_t halves[2];

	(void)memcpy(halves, &fs->f_fsid, sizeof(halves));
	return (uint64_t)halves[1] << 32 | halves[0];
}

/* Both halves of the UUID in one, as ext4 makes its f_fsid. */
static uint64_t fold(const struct uuid *uuid)
{
	uint64_t folded = 0;

	for (unsigned i = 0; i < PFS_MIN(uuid->len, sizeof(uuid->bytes)); i++)
		folded ^= (uint64_t)uuid->bytes[i] << 8 * (i % 8);
	return folded;
}

/* What is on no disk gets a UUID each time that it is mounted, except for overlays, whose upper
 * layer keeps it. */
uint64_t pfs_filesystem_of(int fd)
{
	struct uuid uuid = {.len = 0};
	struct statfs fs;
	struct stat attr;

	if (fstatfs(fd, &fs) || fstat(fd, &attr))
		return 0;
	if (has_own_fsid(&fs))
		return fsid_of(&fs);
	if ((!major(attr.st_dev) && fs.f_type != OVERLAYFS_SUPER_MAGIC) ||
	    ioctl(fd, GET_UUID, &uuid))
		return 0;
	return fold(&uuid);
}

void pfs_filesystem_print(char out[PFS_FILESYSTEM_TEXT_SIZE], uint64_t filesystem)
{
	(void)snprintf(out, PFS_FILESYSTEM_TEXT_SIZE, "%016" PRIx64, filesystem);
}

int pfs_filesystem_get(struct pfs_tree *tree, uint64_t *filesystem, uint64_t ino)
{
	struct pfs_value *set PFS_UNREF = NULL;
	char text[PFS_FILESYSTEM_TEXT_SIZE] = "";
	struct pfs_attr attr;

	*filesystem = 0;
	PFS_TRY(pfs_attr_set_of(tree, &set, ino));
	if (!pfs_attrset_find(set, &attr, PFS_FILESYSTEM, sizeof(PFS_FILESYSTEM) - 1))
		return 0;
	(void)memcpy(text, attr.text, PFS_MIN(attr.text_len, sizeof(text) - 1));
	*filesystem = strtoull(text, NULL, 16);
	return 0;
}

int pfs_filesystem_set(struct pfs_tree *tree, uint64_t ino, uint64_t filesystem)
{
	char text[PFS_FILESYSTEM_TEXT_SIZE];
	const struct pfs_attr attr = {
		.name = PFS_FILESYSTEM,
		.name_len = sizeof(PFS_FILESYSTEM) - 1,
		.text = filesystem ? text : NULL,
		.text_len = filesystem ? sizeof(text) - 1 : 0,
		.type = PFS_ATTR_TEXT,
	};
	uint64_t before;

	PFS_TRY(pfs_filesystem_get(tree, &before, ino));
	if (before == filesystem)
		return 0;
	pfs_filesystem_print(text, filesystem);
	return pfs_attr_change_ours(tree, ino, &attr);
}
