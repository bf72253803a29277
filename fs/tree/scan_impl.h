/* SPDX-License-Identifier: MIT */
/* fs/tree/scan_impl.h - what the parts of scan.h share.  tree->lock is held for reading throughout. */
#ifndef PFS_FS_TREE_SCAN_IMPL_H
#define PFS_FS_TREE_SCAN_IMPL_H

#include "fs/tree/internal.h"
#include "fs/tree/scan.h"

/* A predicate made ready: what its text, or the node that it names, comes to. */
struct pfs_scan_test {
	enum pfs_field field;
	enum pfs_test test;
	bool negated;
	int64_t low, high;
	const char *text, *high_text; /* GLOB, LIKE: NUL-terminated, `owned` */
	size_t text_len, high_len;
	uint32_t slot; /* of the node that a relation names */
	char *owned;
};

/* Whether the slot has a node with a name. */
static inline bool pfs_scan_is_live(const struct pfs_image *image, uint32_t slot)
{
	return image->mode[slot] && !(image->state[slot] & PFS_SLOT_UNLINKED);
}

/* ---- scan_values.c ---- */

static inline bool pfs_field_is_bytes(enum pfs_field field)
{
	return field >= PFS_FIELD_NAME;
}

int64_t pfs_scan_integer(const struct pfs_tree *tree, enum pfs_field field, uint32_t slot);

/* Where a path is put together; free the bytes. */
struct pfs_scan_text {
	char *bytes;
	size_t capacity;
};

/* *bytes = the field's bytes, followed by NUL; NULL: none.  Valid until the next call.  -ENOMEM. */
PFS_MUST_CHECK int pfs_scan_text(const struct pfs_tree *tree, struct pfs_scan_text *room,
				 const char **bytes, size_t *len, enum pfs_field field,
				 uint32_t slot);

#endif
