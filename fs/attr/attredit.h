/* SPDX-License-Identifier: MIT */
/* fs/attr/attredit.h - changes of many nodes' attributes that are made together, and with other
 * changes, in one hold of the locks (fs/change/change.c).
 *
 * For each node: begin, set as often as needed, then with both locks check and apply, then finish.
 * begin and set can fail; apply cannot. */
#ifndef PFS_FS_ATTR_ATTREDIT_H
#define PFS_FS_ATTR_ATTREDIT_H

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_attr_edit {
	struct pfs_tree *tree;
	uint64_t ino; /* 0 until a new node has one */
	struct pfs_value *before, *after;
	struct pfs_record *record;
	bool in_use, flagged;
	bool is_held;	  /* the set stays in memory (fs/journal/records.h) */
	bool is_outdated; /* the last check was -EAGAIN */
};

/* Begins with what the node has now; ino 0: a node that is to be made, which has nothing. No locks
 * are held. Call finish in any case. -ESTALE; -EPERM: the node can have no attributes; -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_edit_begin(struct pfs_tree *tree, struct pfs_attr_edit *edit,
				       uint64_t ino);
/* Sets an attribute; value NULL removes it. No locks are held. -ENOTSUP: the attribute follows from
 * the node's place; -EPERM, -E2BIG, -ENOSPC, -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_edit_set(struct pfs_tree *tree, struct pfs_attr_edit *edit,
				     const char *name, size_t name_len, const char *value,
				     size_t size);

/* With both locks: returns 0 if apply will work. -EAGAIN: the node has other attributes by now;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_attr_edit_check(struct pfs_tree *tree, struct pfs_attr_edit *edit);
void pfs_attr_edit_apply(struct pfs_tree *tree, struct pfs_attr_edit *edit, uint32_t slot,
			 struct pfs_time now);
/* No locks are held. What was begun, or is zero, can be begun anew. */
void pfs_attr_edit_finish(struct pfs_attr_edit *edit);

#endif
