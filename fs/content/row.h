/* SPDX-License-Identifier: MIT */
/* fs/content/row.h - a row of a register as a text: lines "column: value" in the table's order,
 * without the row's path; further lines of a value begin with a blank.
 *
 * The content of a row's file is this text, which is made when the file is read, until the file is
 * written to. The text's size is kept in the image, as any file's. So an operation that changes the
 * node's attributes, name or place, or the id of its parent, calls pfs_rows_hold before the change
 * and pfs_row_changed after it.
 *
 * Locks: the caller holds none, unless it says otherwise. */
#ifndef PFS_FS_CONTENT_ROW_H
#define PFS_FS_CONTENT_ROW_H

#include "fs/content/content_impl.h"

/* Make and free the texts of rows that the tree keeps, for tree.c. -ENOMEM. */
PFS_MUST_CHECK int pfs_rows_create(struct pfs_tree *tree);
void pfs_rows_destroy(struct pfs_tree *tree);

/* Makes the row's text, which the caller frees. -ENODATA: the node is in no register; -ESTALE,
 * -ENOMEM, what the store returns. */
PFS_MUST_CHECK int pfs_row_text(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino);

/* Makes the value of a computed column (register.h) of the node; the caller frees it. The name is
 * without "user.". -ENODATA: it is no such column. */
PFS_MUST_CHECK int pfs_row_computed(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino,
				    const char *name, size_t name_len);
bool pfs_row_is_computed(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* Make changes between the two calls one group, with the sizes that follow from them, as
 * pfs_journal_hold does; they do nothing in a tree without registers. */
void pfs_rows_hold(struct pfs_tree *tree);
void pfs_rows_let_go(struct pfs_tree *tree);

/* Corrects the size and times of the file after its row has changed, and tells the kernel. below:
 * the row's id may have changed, so that its children's rows are corrected, too. To be called
 * between pfs_rows_hold and pfs_rows_let_go. A file that cannot be corrected now (no memory, or no
 * space for all children) is corrected when it is next opened. */
void pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below);
/* pfs_row_shows returns true if the attribute is in the node's row, pfs_row_is_id if it is the
 * row's id. */
bool pfs_row_shows(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);
bool pfs_row_is_id(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* Corrects the size of the row's file if it is wrong. */
void pfs_row_refresh(struct pfs_tree *tree, uint64_t ino);

/* As pfs_copyup and pfs_copyup_commit, for a row's file: its text becomes content of the file. */
PFS_MUST_CHECK int pfs_row_copyup(struct pfs_edit *edit, int64_t upto);
void pfs_row_commit(struct pfs_edit *edit, uint32_t slot, int64_t size);

#endif
