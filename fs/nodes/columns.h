/* SPDX-License-Identifier: MIT */
/* fs/nodes/columns.h - the image as a table of the relational operators (gpu/table.h): a row is a
 * slot.
 *
 * What the image has is lent where it lies.  What it has not (extensions, depths, attributes)
 * becomes a column when it is first wanted, a piece at a time while the tree
 * changes, and is kept: slots that change from then on are noted in a log, and read again by
 * whoever wants the column next.  Beyond the last million of changes, blocks of it are read again in which something
 * has changed that the column is made of, or all if these are more than a quarter.
 *
 * Threads: tree->lock; a mutex of its own, taken last; another one for who makes a column, taken
 * before tree->lock. */
#ifndef PFS_FS_NODES_COLUMNS_H
#define PFS_FS_NODES_COLUMNS_H

#include "fs/nodes/scan.h"
#include "gpu/table.h"
#include "meta/store.h"

PFS_MUST_CHECK int pfs_columns_create(struct pfs_tree *tree);
void pfs_columns_destroy(struct pfs_tree *tree);

struct pfs_reserve;

/* A field of nodes, or an attribute of that name, as it is declared. */
struct pfs_column_wish {
	enum pfs_field field;
	const char *attr; /* NULL: the field */
	size_t attr_len;
	enum pfs_attr_type type;
};

/* Makes those of the columns, and what tells which rows there are, that are not there.  Nothing is
 * locked.  poll is asked between two pieces; not 0 ends it.  -EAGAIN: one was given up meanwhile; -ENOMEM, what the
 * store says. */
PFS_MUST_CHECK int pfs_columns_prepare(struct pfs_tree *tree, const struct pfs_column_wish *wishes,
				       size_t n, int (*poll)(void *arg), void *arg);

/* Both between pfs_scan_lock and pfs_scan_unlock, and what they give is good until then; in another
 * hold at the same epoch they give the same.  -EAGAIN: it has to be prepared (again); -EOPNOTSUPP:
 * the column has values that the operators do not take (of other types than it is declared as), or
 * follows from where nodes are (register.h); -ENOMEM. The table has no columns yet. */
void pfs_columns_table(struct pfs_tree *tree, struct pfs_table *out);
PFS_MUST_CHECK int pfs_columns_get(struct pfs_tree *tree, struct pfs_table_column *out,
				   const struct pfs_column_wish *wish);

#endif
