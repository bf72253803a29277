/* SPDX-License-Identifier: MIT */
/* fs/tree/sides.h - what the store keeps beside the hierarchy: side tables.
 *
 * They are changed one change at a time. Rows that change are seen at once and are durable with the next commit, as
 * everything in the tree; until then, and a while longer, they are in a list that is read beside the store.
 * Whatever else changes (tables, names) is a group of its own, which the committer writes between two of the image's
 * (the store has one writing thread). */
#ifndef PFS_FS_TREE_SIDES_H
#define PFS_FS_TREE_SIDES_H

#include "fs/tree/siderows.h"
#include "fs/tree/tree.h"
#include "meta/account.h"
#include "meta/store.h"

#define PFS_SIDE_ROWS_MAX ((size_t)64 << 20) /* bytes of rows that pfs_sides_apply takes */

/* Returns a number that is another one after every change of any side table. Any lock or none. */
uint64_t pfs_sides_version(const struct pfs_tree *tree);

/* Held by whoever changes tables, from looking at them to the end of commit. */
void pfs_sides_hold(struct pfs_tree *tree);
void pfs_sides_release(struct pfs_tree *tree);

/* Makes the committer begin a group, call write in it, and commit; durable on return, with all rows that changed before.
 * pfs_sides_hold is held. bytes: about how much write will write. If write returns non-zero, the group is undone, and
 * that is returned; -EROFS, -ENOSPC, and what the store returns. */
PFS_MUST_CHECK int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
				    int (*write)(void *arg, struct pfs_store *store), void *arg);

/* Returns true if it is sure that the rows can be committed later: each may change a page of its
 * own. Else they are for pfs_sides_commit, which fails if they cannot. */
bool pfs_sides_fit(struct pfs_tree *tree, const struct pfs_side_rows *rows);

/* Shows changed rows to whoever reads from now on, and leaves them to the next commit. pfs_sides_hold is held; the call
 * waits for nothing but room. It takes what is in rows, which are at most PFS_SIDE_ROWS_MAX bytes, if there is no error.
 * -EROFS, -ENOSPC, -ENOMEM. */
PFS_MUST_CHECK int pfs_sides_apply(struct pfs_tree *tree, struct pfs_side_rows *rows);

/* Calls read and returns what it returns; no change is shown meanwhile. */
PFS_MUST_CHECK int pfs_sides_read(struct pfs_tree *tree,
				  int (*read)(void *arg, struct pfs_store *store), void *arg);

/* Returns the version that the last change made which was one of more than rows: of what was there before nothing is known
 * any more.  Any lock or none. */
uint64_t pfs_sides_schema(const struct pfs_tree *tree);

/* Gives all rows of the table at that version: row for each that the store has, in order of their
 * numbers, then changed for each that waits for a commit, in the order of the changes; cells NULL:
 * it is gone.  Changes and commits go on meanwhile. What waits is copied on the account (NULL: on
 * none).  -EAGAIN: the version is another by now; -ENOENT: there is no such table; -ENOMEM; and
 * what row and changed return. */
PFS_MUST_CHECK int
pfs_sides_rows(struct pfs_tree *tree, uint32_t table, uint64_t version,
	       int (*row)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
	       int (*changed)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
	       void *arg, struct pfs_account *account);

/* Returns true if the table has the same rows at both versions, as far as that is known. Any lock or none. */
bool pfs_sides_are_same(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t other);

/* Returns how many rows whoever has the table as of that version has to take over, or `most` if it is more or not known. */
uint64_t pfs_sides_distance(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t most);

/* Calls fn for what changed of the table after one version and up to another, in order; it takes as long as that is much.
 * In pfs_sides_read.  -ENOENT: not only rows have changed, or it is too long ago. */
PFS_MUST_CHECK int pfs_sides_between(struct pfs_tree *tree, uint32_t table, uint64_t after, uint64_t up_to,
				     int (*fn)(void *arg, const struct pfs_side_rows *rows), void *arg);

/* ---- for the tree ---- */

PFS_MUST_CHECK int pfs_sides_create(struct pfs_tree *tree);
void pfs_sides_destroy(struct pfs_tree *tree);

#endif
