/* SPDX-License-Identifier: MIT */
/* fs/nodes/visible.h - who sees what: the nodes that a walk with somebody's uid and groups could
 * reach.
 *
 * Every directory above such a node lets them read and search it, by Linux's rules of owner, group
 * and others; the node itself needs to allow nothing. uid 0 sees all.
 *
 * What one viewer sees is kept, and put right when a directory comes, goes, moves, or changes mode
 * or owner.
 *
 * Locks: all but make, ref and unref is called between pfs_scan_lock and pfs_scan_unlock. What was
 * got under an earlier lock may not be what is seen now. */
#ifndef PFS_FS_NODES_VISIBLE_H
#define PFS_FS_NODES_VISIBLE_H

#include "fs/nodes/scan.h"

struct pfs_visible; /* counted by reference, and never changed */

struct pfs_viewer {
	uid_t uid;
	gid_t gid;
	const gid_t *groups; /* supplementary */
	size_t n_groups;
};

/* Finds, in many short holds, what pfs_visible_get gets in one. To be called before the tree is
 * held. -ENOMEM. */
PFS_MUST_CHECK int pfs_visible_make(struct pfs_tree *tree, const struct pfs_viewer *viewer);
/* Gets what the viewer sees; NULL: everything. -ENOMEM; -EAGAIN: it has not been made, or more
 * directories change than can be followed; never of a frozen tree. */
PFS_MUST_CHECK int pfs_visible_get(struct pfs_visible **out, struct pfs_tree *tree,
				   const struct pfs_viewer *viewer);
struct pfs_visible *pfs_visible_ref(struct pfs_visible *visible); /* NULL is allowed, for both */
void pfs_visible_unref(struct pfs_visible *visible);

/* From here on NULL stands for everything, too. */

/* Returns true if the node of a slot in use is seen. */
bool pfs_visible_has(const struct pfs_visible *visible, const struct pfs_tree *tree, uint32_t slot);

/* Writes words first.. of bits by slot: there is a node, and it is seen. */
void pfs_visible_words(const struct pfs_visible *visible, const struct pfs_tree *tree,
		       uint64_t *words, size_t first, size_t n);

/* Returns true if the viewer may read the node, which he sees: its content and its attributes. */
bool pfs_visible_may_read(const struct pfs_visible *visible, const struct pfs_tree *tree,
			  uint32_t slot);

/* As pfs_visible_may_read, but never of a linked node, whose rights are those that its original had
 * when somebody looked at it last: for what tells of content. */
bool pfs_visible_may_surely_read(const struct pfs_visible *visible, const struct pfs_tree *tree,
				 uint32_t slot);

/* Returns true if the slot has a node that is seen and that has, or had, attributes that may be
 * read. */
bool pfs_visible_bears(const struct pfs_visible *visible, const struct pfs_tree *tree,
		       uint32_t slot);

/* Returns the predicate that holds for what is seen; valid as long as `visible` is. */
struct pfs_predicate pfs_visible_predicate(const struct pfs_visible *visible);

/* Makes the totals that pfs_visible_integers (pfs_scan_integers if `visible` is NULL) would make on
 * its first call, but with looks. Does nothing for other fields. -ENOMEM, and what looks return. */
PFS_MUST_CHECK int pfs_visible_prepare(struct pfs_visible *visible, struct pfs_tree *tree,
				       enum pfs_field field, const struct pfs_scan_watch *watch);

/* As pfs_scan_integers, but totals and a file's names count visible nodes only: by one pass over
 * the image, once an epoch.  Predicates on them do not know of viewers: they are to be tested on
 * these values. */
PFS_MUST_CHECK int pfs_visible_integers(struct pfs_visible *visible, struct pfs_tree *tree,
					int64_t *out, enum pfs_field field, const uint32_t *slots,
					size_t n);

#endif
