/* SPDX-License-Identifier: MIT */
/* fs/content/row.h - a row of a register as a text: lines "column: value", in the table's order, without
 * its path; a value's further lines begin with a blank.
 *
 * The content of a row's file is this text, made when it is read, until the file is written to.
 * Its size is kept in the image with everything else that follows from sizes: whatever changes the
 * node's attributes, its name or place, or the id of its parent says so here afterwards, and holds the
 * journal from before the change. */
#ifndef PFS_FS_CONTENT_ROW_H
#define PFS_FS_CONTENT_ROW_H

#include "fs/content/content_impl.h"

PFS_MUST_CHECK int pfs_rows_create(struct pfs_tree *tree);
void pfs_rows_destroy(struct pfs_tree *tree);

/* The row, allocated.  -ENODATA: the node is in no register.  -ESTALE, -ENOMEM, what the store says.
 * No lock. */
PFS_MUST_CHECK int pfs_row_text(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino);

/* The value of a column that follows from the node's place, allocated; "user." left out of the name.
 * -ENODATA: it is no such column.  No lock. */
PFS_MUST_CHECK int pfs_row_computed(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino,
				    const char *name, size_t name_len);
bool pfs_row_is_computed(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* What is changed between the two goes into one group with the sizes that follow from it, as
 * pfs_journal_hold; nothing in a tree without registers. */
void pfs_rows_hold(struct pfs_tree *tree);
void pfs_rows_let_go(struct pfs_tree *tree);

/* The row of the node is another one now: its size and times follow, and the kernel is told.  below:
 * the id may have changed, which its children's rows show.  Between pfs_rows_hold and let_go, no
 * lock; what cannot be done (no memory, no space for all children) is left for the next time that the
 * file is opened. */
void pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below);
/* The attribute is in the node's row; it is the id. */
bool pfs_row_shows(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);
bool pfs_row_is_id(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* Makes the size right if it is not.  No lock. */
void pfs_row_refresh(struct pfs_tree *tree, uint64_t ino);

/* As pfs_copyup and pfs_copyup_commit: the row becomes content that is written to. */
PFS_MUST_CHECK int pfs_row_copyup(struct pfs_edit *edit, int64_t upto);
void pfs_row_commit(struct pfs_edit *edit, uint32_t slot, int64_t size);

#endif
