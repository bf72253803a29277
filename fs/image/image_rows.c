/* SPDX-License-Identifier: MIT */
/* A slot's values as rows: of stat(2), and of the store. */
#include "fs/image/image.h"

#include "fs/image/imagefile.h"
#include "fs/image/names.h"
#include "fs/image/rare_values.h"
#include "fs/tree/tree_impl.h"

#define GET(id) pfs_imagefile_get(image, PFS_COLUMN_NUMBER_##id, slot)

void pfs_image_stat(const struct pfs_tree *tree, struct pfs_entry *out, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	struct stat *st = &out->attr;
	unsigned flags;

	*st = (struct stat){
		.st_ino = GET(PRIME),
		.st_mode = (mode_t)GET(MODE),
		.st_nlink = image->state[slot] & PFS_SLOT_UNLINKED ? 0 : GET(LINKS),
		.st_uid = (uid_t)GET(UID),
		.st_gid = (gid_t)GET(GID),
		.st_size = (off_t)GET(SIZE),
		.st_blocks = (blkcnt_t)GET(BLOCKS),
		.st_blksize = 4096,
		.st_atim = pfs_timespec_of(pfs_image_time(tree, image->atime, slot)),
		.st_mtim = pfs_timespec_of(pfs_image_time(tree, image->mtime, slot)),
		.st_ctim = pfs_timespec_of(pfs_image_time(tree, image->ctime, slot)),
	};
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		const struct pfs_rare_values *values = pfs_rare_find(image->rare, slot);

		st->st_rdev = values ? values->rdev : 0;
	}
	flags = (unsigned)GET(FLAGS);
	out->volatile_attr = flags & PFS_NODE_LINKED;
	out->row = flags & (PFS_NODE_ROW | PFS_NODE_WRITTEN);
}

void pfs_image_numbers(const struct pfs_image *image, struct pfs_node_record *out, uint32_t slot)
{
#define NUMBER(id, name, type, since) out->name = image->name[slot];
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
}

void pfs_image_load_numbers(struct pfs_image *image, uint32_t slot,
			    const struct pfs_node_record *node)
{
	/* pages where all are zeros are not written, and so take no memory */
#define NUMBER(id, name, type, since)                                                              \
	if (image->name[slot] != node->name)                                                       \
		image->name[slot] = node->name;
	PFS_NODE_NUMBERS(NUMBER)
#undef NUMBER
}

void pfs_image_record(const struct pfs_tree *tree, struct pfs_node_record *out, uint32_t slot)
{
	const struct pfs_image *image = &tree->image;
	uint32_t parent = image->parent[slot];

	*out = (struct pfs_node_record){
		.prime = image->prime[slot],
		.parent = parent == PFS_NO_SLOT ? 0 : image->prime[parent],
		.slot = slot,
		.mode = image->mode[slot],
		.flags = image->flags[slot],
		.atime = pfs_image_time(tree, image->atime, slot),
		.mtime = pfs_image_time(tree, image->mtime, slot),
		.ctime = pfs_image_time(tree, image->ctime, slot),
	};
	pfs_image_numbers(image, out, slot);
	out->name = pfs_names_get(image->names, image->name[slot], &out->name_len);
	if (image->state[slot] & PFS_SLOT_RARE) {
		const struct pfs_rare_values *values = pfs_rare_find(image->rare, slot);

		out->rdev = values->rdev;
		out->target = values->target;
		out->target_len = values->target_len;
	}
}
