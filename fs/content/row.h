/* SPDX-License-Identifier: MIT */
/* fs/content/row.h - a row of a register as a text: lines "column: value" in the table's order,
 * without its path; further lines of a value begin with a blank.
 *
 * The content of a row's file is this text, made when it is read, until the file is written to. Its
 * size is kept in the image with everything else that follows from sizes. So whatever changes the
 * node's attributes, its name or place, or the id of its parent says so here afterwards, and holds
 * the journal from before the change.
 *
 * Locks: the caller holds none, unless it says otherwise. */
#ifndef PFS_FS_CONTENT_ROW_H
#define PFS_FS_CONTENT_ROW_H

#include "fs/content/content_impl.h"

PFS_MUST_CHECK int pfs_rows_create(struct pfs_tree *tree);
void pfs_rows_destroy(struct pfs_tree *tree);

/* Makes the row's text, which the caller frees. -ENODATA: the node is in no register; -ESTALE,
 * -ENOMEM, what the store returns. */
PFS_MUST_CHECK int pfs_row_text(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino);

/* Makes the value, which the caller frees, of a column that follows from the node's place; the name
 * is without "user.". -ENODATA: it is no such column. */
PFS_MUST_CHECK int pfs_row_computed(struct pfs_tree *tree, char **text, size_t *len, uint64_t ino,
				    const char *name, size_t name_len);
bool pfs_row_is_computed(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* Makes what is changed between the two calls one group with the sizes that follow from it, as
 * pfs_journal_hold does; nothing happens in a tree without registers. */
void pfs_rows_hold(struct pfs_tree *tree);
void pfs_rows_let_go(struct pfs_tree *tree);

/* Says that the node's row is another one now: its size and times follow, and the kernel is told.
 * below: the id may have changed, which its children's rows show. To be called between
 * pfs_rows_hold and let_go. What cannot be done (no memory, no space for all children) is left for
 * the next time that the file is opened. */
void pfs_row_changed(struct pfs_tree *tree, uint64_t ino, bool below);
/* Return true if the attribute is in the node's row; if it is the row's id. */
bool pfs_row_shows(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);
bool pfs_row_is_id(struct pfs_tree *tree, uint64_t ino, const char *name, size_t name_len);

/* Corrects the size if it is wrong. */
void pfs_row_refresh(struct pfs_tree *tree, uint64_t ino);

/* As pfs_copyup and pfs_copyup_commit: the row's text becomes content that is written to. */
PFS_MUST_CHECK int pfs_row_copyup(struct pfs_edit *edit, int64_t upto);
void pfs_row_commit(struct pfs_edit *edit, uint32_t slot, int64_t size);

#endif
