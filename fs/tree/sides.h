/* SPDX-License-Identifier: MIT */
/* fs/tree/sides.h - side tables: tables that the store keeps beside `nodes`.
 *
 * One thread changes them at a time. Readers see changed rows at once, and the next commit makes
 * them durable, as everything in the tree; until then, and a while longer, they stand in a list
 * that is read beside the store. Other changes (of tables and their names) are an errand: a group
 * of their own, which the committer writes between two groups of the image, because the store has
 * one writing thread. */
#ifndef PFS_FS_TREE_SIDES_H
#define PFS_FS_TREE_SIDES_H

#include "fs/tree/tree.h"
#include "meta/siderows.h"
#include "meta/store.h"

/* Returns the version of all side tables, a number that rises with each change. Any lock or none.
 */
uint64_t pfs_sides_version(const struct pfs_tree *tree);

/* Take and release the right to change side tables. A thread holds it from its first look at the
 * tables until its change is applied or committed. */
void pfs_sides_hold(struct pfs_tree *tree);
void pfs_sides_release(struct pfs_tree *tree);

/* What is said of the store where a change gets -ENOSPC. */
#define PFS_STORE_IS_FULL "its filesystem has no room for these changes"

/* Makes the committer begin a group, write all rows that changed before, call `write`, and commit.
 * All of this is durable on return. The caller holds pfs_sides_hold. bytes: about how many bytes
 * `write` writes. If `write` returns non-zero, the group is undone, and that is returned. -EROFS;
 * -ENOSPC; the store's errors. */
PFS_MUST_CHECK int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
				    int (*write)(void *arg, struct pfs_store *store), void *arg);
/* Inside of `write`: notes that it makes the table, removes it, or changes it by more than rows
 * that were applied (pfs_sides_apply). A `write` that notes no table may have changed all;
 * one that changes none notes number 0, which no table has. -ENOMEM. */
PFS_MUST_CHECK int pfs_sides_touch(struct pfs_tree *tree, uint32_t table);

/* Returns true if the disk certainly has room for a later commit of the rows, even if each changes
 * a page of its own. Otherwise use pfs_sides_commit, which fails at once if there is no room. */
bool pfs_sides_fit(struct pfs_tree *tree, const struct pfs_side_rows *rows);

/* Makes changed rows visible to readers, and leaves them to the next commit. The caller holds
 * pfs_sides_hold. The call waits for room on the disk, and for a commit if these rows and others
 * that wait are too many bytes together; rows of any size are taken if no others wait. On success
 * the tree owns what was in `rows`, and `rows` is empty. -EROFS, -ENOSPC, -ENOMEM. */
PFS_MUST_CHECK int pfs_sides_apply(struct pfs_tree *tree, struct pfs_side_rows *rows);

/* Calls `read` and returns what it returns. No change becomes visible meanwhile. */
PFS_MUST_CHECK int pfs_sides_read(struct pfs_tree *tree,
				  int (*read)(void *arg, struct pfs_store *store), void *arg);

/* Returns the version of the last change that changed tables or names, and not only rows. Any lock
 * or none. */
uint64_t pfs_sides_schema(const struct pfs_tree *tree);
/* Returns true if no more than rows of the table has changed since that version. */
bool pfs_sides_is_as_declared(struct pfs_tree *tree, uint32_t table, uint64_t version);
/* Returns true if it is known how the table has changed since that version. Like all that follows,
 * the caller of both does not hold the content lock. */
bool pfs_sides_is_known(struct pfs_tree *tree, uint32_t table, uint64_t version);

/* Gives all rows of the table at that version. Calls `row` for each row in the store, in order of
 * their numbers, then `changed` for each row whose change waits for a commit, in the order of the
 * changes, with cells NULL if the row was removed. Changes and commits go on meanwhile. -EAGAIN:
 * the table has changed since, or more than rows has; -ENOENT: there is no such table; -ENOMEM; and
 * what `row` and `changed` return. */
PFS_MUST_CHECK int
pfs_sides_rows(struct pfs_tree *tree, uint32_t table, uint64_t version,
	       int (*row)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
	       int (*changed)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n),
	       void *arg);

/* Returns true if it is known that the table has the same rows at both versions. The caller does
 * not hold the content lock. */
bool pfs_sides_are_same(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t other);

/* Returns how many rows of the table have changed since that version, or `most` if they are more or
 * not known. The caller does not hold the content lock. */
uint64_t pfs_sides_distance(struct pfs_tree *tree, uint32_t table, uint64_t version, uint64_t most);

/* Calls fn for each change of the table after the version `after`, up to the version `up_to`, in
 * order, until it returns non-zero, which is returned. Changes and commits go on meanwhile.
 * -ENOENT: more than rows has changed, or the changes are no longer in the list; -ENOMEM. */
PFS_MUST_CHECK int pfs_sides_between(struct pfs_tree *tree, uint32_t table, uint64_t after,
				     uint64_t up_to,
				     int (*fn)(void *arg, const struct pfs_side_rows *rows),
				     void *arg);

/* ---- for the tree ---- */

PFS_MUST_CHECK int pfs_sides_create(struct pfs_tree *tree);
void pfs_sides_destroy(struct pfs_tree *tree);

#endif
