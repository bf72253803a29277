/* SPDX-License-Identifier: MIT */
/* fs/attr/attredit.h - changes of nodes' attributes that are made together, with others, in one hold
 * of the locks (change.c). */
#ifndef PFS_FS_ATTR_ATTREDIT_H
#define PFS_FS_ATTR_ATTREDIT_H

#include "fs/attr/attrset.h"
#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr_edit {
	uint64_t ino; /* 0 until a new node has one */
	struct pfs_value *before, *after;
	struct pfs_record *record;
	bool in_use, flagged;
};

/* What the node has now; ino 0: nothing, it is to be made.  No locks.  -ESTALE, -EPERM (it can have
 * none), -ENOMEM.  finish in any case. */
PFS_MUST_CHECK int pfs_attr_edit_begin(struct pfs_tree *tree, struct pfs_attr_edit *edit,
				       uint64_t ino);
/* value NULL: removes it.  No locks.  -ENOTSUP (it follows from the node's place), -EPERM, -E2BIG, -ENOSPC, -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_edit_set(struct pfs_tree *tree, struct pfs_attr_edit *edit,
				     const char *name, size_t name_len, const char *value,
				     size_t size);

/* With both locks: 0 when apply will do it; -EAGAIN: the node has others by now; -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_edit_check(struct pfs_tree *tree, struct pfs_attr_edit *edit);
void pfs_attr_edit_apply(struct pfs_tree *tree, struct pfs_attr_edit *edit, uint32_t slot,
			 struct pfs_time now);
void pfs_attr_edit_finish(struct pfs_attr_edit *edit);

#endif
