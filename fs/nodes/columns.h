/* SPDX-License-Identifier: MIT */
/* fs/nodes/columns.h - the image as a table of the relational operators (gpu/table.h): a row is a
 * slot.
 *
 * Columns that the image has are lent where they lie. What it has not (extensions, depths,
 * attributes) becomes a column when it is first wanted, a piece at a time while the tree changes,
 * and is kept. It follows the image's feed (fs/image/feed.h): slots that changed are read again by
 * whoever wants the column next, or blocks where it fell behind.
 *
 * Locks: tree->lock; a mutex of its own, taken last; and another one, taken before tree->lock, for
 * who makes a column. */
#ifndef PFS_FS_NODES_COLUMNS_H
#define PFS_FS_NODES_COLUMNS_H

#include "fs/nodes/scan.h"
#include "gpu/table.h"
#include "meta/store.h"

PFS_MUST_CHECK int pfs_columns_create(struct pfs_tree *tree);
void pfs_columns_destroy(struct pfs_tree *tree);

struct pfs_reserve;

/* A column that is wanted: a field of nodes, or the attribute of that name with the type that it is
 * declared as. */
struct pfs_column_wish {
	enum pfs_field field;
	const char *attr; /* NULL: the field */
	size_t attr_len;
	enum pfs_attr_type type;
};

/* Makes those of the columns, and of what tells which rows there are, that are not there. Nothing
 * is locked. poll is called between two pieces; a result that is not 0 ends this. -EAGAIN: a column
 * was given up meanwhile; -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_columns_prepare(struct pfs_tree *tree, const struct pfs_column_wish *wishes,
				       size_t n, int (*poll)(void *arg), void *arg);

/* Get the table, without columns at first, and a column of it. Both are called between
 * pfs_scan_lock and pfs_scan_unlock, and what they give is good until then; in another hold at the
 * same epoch they give the same. -EAGAIN: the column has to be prepared (again); -EOPNOTSUPP: it
 * has values that the operators do not take (of other types than it is declared as), or it follows
 * from where nodes are (register.h); -ENOMEM. */
void pfs_columns_table(struct pfs_tree *tree, struct pfs_table *out);
PFS_MUST_CHECK int pfs_columns_get(struct pfs_tree *tree, struct pfs_table_column *out,
				   const struct pfs_column_wish *wish);

#endif
