/* SPDX-License-Identifier: MIT */
/* fs/content/compared.h - when parts of the tree were last known to be as what they came from is.
 *
 * A comparison that came to its end leaves a stamp at the directory where it began: an attribute of
 * that directory (PFS_COMPARED), which only this program sets and sees. It is valid for all nodes
 * below or, if only files were compared, for what is in the directory that they are in. There are
 * few stamps, so that they are also kept in memory, and a node finds the newest of those above it,
 * up to the directory where what came from the same source begins: what is above that says nothing
 * of it. While a watch of the folders has nothing left to look at, each node with a stamp above it
 * is known to be as its original is now, unless its folder is not there.
 *
 * Threads: any number. Locks: each function says what its caller holds. */
#ifndef PFS_FS_CONTENT_COMPARED_H
#define PFS_FS_CONTENT_COMPARED_H

#include <stddef.h>

#include "fs/tree/tree.h"

#define PFS_COMPARED	       "primefs.compared" /* the attribute, without "user." */
#define PFS_COPIED	       "primefs.copied"	  /* another one: pfs_compared_is_copied */
#define PFS_COMPARED_TEXT_SIZE 64
#define PFS_COMPARED_MAX       1024u /* stamps; further directories have only what those above them say */

/* Seconds since 1970; 0: never. */
struct pfs_compared_times {
	int64_t full_s;	 /* when a comparison of everything began */
	int64_t quick_s; /* when a comparison of directories alone began */
	int64_t flat_s;	 /* when a comparison of what is in the directory itself, not of what is
			    below that, began */
};
struct pfs_compared_stamp {
	uint64_t ino;
	struct pfs_compared_times times;
	bool kept;     /* the store has this stamp, too */
	uint32_t root; /* of the folder that the directory came with, which a watch may follow; 0:
			  it came with a table or the like */
	bool begins;   /* what is above it came with something else */
};

/* Writes the attribute's text. Returns its length in bytes. */
int pfs_compared_print(char out[PFS_COMPARED_TEXT_SIZE], const struct pfs_compared_times *times);

/* Make and free the tree's stamps, for tree.c; they are loaded later. -ENOMEM. */
PFS_MUST_CHECK int pfs_compared_create(struct pfs_tree *tree);
void pfs_compared_destroy(struct pfs_tree *tree);

/* Reads the store's stamps, unless they have been read; until then no node has a stamp. No lock is
 * held. -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_compared_load(struct pfs_tree *tree);

/* Notes that a comparison of the directory and all below it has come to its end. times: when it
 * began (0: it was not of that kind). keep: the store gets the stamp, too. Stamps below that are
 * not newer are dropped, unless they tell something from a copy above it. No lock is held. Returns
 * what changing an attribute returns; -ESTALE: the directory is gone. */
PFS_MUST_CHECK int pfs_compared_note(struct pfs_tree *tree, uint64_t ino,
				     const struct pfs_compared_times *times, bool keep);

/* live: a watch has seen all changes of the folders so far; false: it no longer has. Any lock. */
void pfs_compared_set_live(struct pfs_tree *tree, bool live);
/* Writes the stamps that the store lacks or has with other times. Locks and errors are those of
 * pfs_compared_note. */
PFS_MUST_CHECK int pfs_compared_keep(struct pfs_tree *tree);

/* Returns when the node alone was last compared, in nanoseconds since 1970; for a directory quick
 * comparisons count, too. INT64_MIN: never. Any lock on the tree is held. */
int64_t pfs_compared_ns(const struct pfs_tree *tree, uint32_t slot);

/* pfs_compared_node gets when a node and, flat_s apart, all below it were last compared; -ESTALE:
 * it is gone. pfs_compared_list gets all stamps, in a list that the caller frees; -ENOMEM. No lock
 * is held. */
PFS_MUST_CHECK int pfs_compared_node(struct pfs_tree *tree, struct pfs_compared_times *out,
				     uint64_t ino);
PFS_MUST_CHECK int pfs_compared_list(struct pfs_tree *tree, struct pfs_compared_stamp **out,
				     size_t *n);

/* Gets when the newest comparison of the directory that has come to its end began, in seconds since
 * 1970; 0: none has. The directory was looked at then or later. A watch that follows the folder
 * does not count, since it may not have come to it yet. No lock is held. -ESTALE: the directory is
 * gone; what pfs_compared_load returns. */
PFS_MUST_CHECK int pfs_compared_begun(struct pfs_tree *tree, int64_t *time_s, uint64_t ino);

/* Returns 1 if something in the directory, or the directory itself, came with a folder that was
 * copied or imported without content, else 0. A directory that got something from such a folder has
 * the attribute PFS_COPIED. What else the directory came with is said by the nearest attribute
 * there or above. No lock is held. -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_compared_is_copied(struct pfs_tree *tree, uint64_t directory);

#endif
