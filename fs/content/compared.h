/* SPDX-License-Identifier: MIT */
/* fs/content/compared.h - when parts of the tree were last known to be as what they came from.
 *
 * A comparison that came to its end leaves a stamp at the directory where it began, which is valid for all
 * below, or, if it was of files, at the directory that they are in, valid for what is in it: an attribute of that
 * directory (PFS_COMPARED), which only this program sets and sees. There are few stamps, so that they are also kept in memory, where each node finds the newest of those above it. While a watch
 * of the folders has nothing left to look at, everything with a stamp is as its folder now.
 *
 * Threads: any number. Locks: each function says what its caller holds. */
#ifndef PFS_FS_CONTENT_COMPARED_H
#define PFS_FS_CONTENT_COMPARED_H

#include <stddef.h>

#include "fs/tree/tree.h"

#define PFS_COMPARED	       "primefs.compared" /* the attribute, without "user." */
#define PFS_COMPARED_TEXT_SIZE 64

/* Seconds since 1970; 0: never. */
struct pfs_compared_times {
	int64_t full_s;	 /* when a comparison of everything began */
	int64_t quick_s; /* when one of directories alone did */
	int64_t flat_s;	 /* when one of what is in the directory itself did, and not of what is below that */
};
struct pfs_compared_stamp {
	uint64_t ino;
	struct pfs_compared_times times;
	bool kept;     /* the store has it, too */
	bool followed; /* the directory came with a folder, which a watch may follow; false: with a table or the like */
};

/* Writes what the attribute says. Returns its length in bytes. */
int pfs_compared_print(char out[PFS_COMPARED_TEXT_SIZE], const struct pfs_compared_times *times);

PFS_MUST_CHECK int pfs_compared_create(struct pfs_tree *tree);
void pfs_compared_destroy(struct pfs_tree *tree);

/* Reads the stamps that the store has, unless that is done; until then no node has any. No lock is
 * held. -ENOMEM, and what the store returns. */
PFS_MUST_CHECK int pfs_compared_load(struct pfs_tree *tree);

/* A comparison of the directory and all below it that began at those times (0: no such comparison) has come
 * to its end. keep: the store is told, too. Stamps below that say no more are dropped. No lock is
 * held. What changing an attribute returns; -ESTALE: the directory is gone. */
PFS_MUST_CHECK int pfs_compared_note(struct pfs_tree *tree, uint64_t ino, const struct pfs_compared_times *times,
				     bool keep);

/* Says that a watch has, or no longer has, seen all that has changed in the folders. Any lock. */
void pfs_compared_set_live(struct pfs_tree *tree, bool live);
/* Writes the stamps that the store has otherwise. As note. */
PFS_MUST_CHECK int pfs_compared_keep(struct pfs_tree *tree);

/* Gets what is known of the node and, flat_s apart, of all below it. Any lock on the tree is held. */
struct pfs_compared_times pfs_compared_at(const struct pfs_tree *tree, uint32_t slot);
/* Returns nanoseconds since 1970 for the node alone, of a directory by quick comparisons, too; INT64_MIN: never. As
 * above. */
int64_t pfs_compared_ns(const struct pfs_tree *tree, uint32_t slot);

/* Gets what is known of one node, and a list of all stamps, which the caller frees. No lock is held.
 * -ESTALE; -ENOMEM. */
PFS_MUST_CHECK int pfs_compared_node(struct pfs_tree *tree, struct pfs_compared_times *out, uint64_t ino);
PFS_MUST_CHECK int pfs_compared_list(struct pfs_tree *tree, struct pfs_compared_stamp **out, size_t *n);

#endif
