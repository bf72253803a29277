/* SPDX-License-Identifier: MIT */
/* fs/content/follow.h - nodes that came with a folder, for whoever compares them with it (tools/refresh): what
 * the image has of a directory's children, what the store says of their originals, and how a node takes
 * over what its original has become.
 *
 * Not handled here: what has changed; names, which tree.h and change.h change.
 *
 * Locks: none held by the caller.  Threads: any number. */
#ifndef PFS_FS_CONTENT_FOLLOW_H
#define PFS_FS_CONTENT_FOLLOW_H

#include <limits.h>

#include "fs/content/original.h"
#include "fs/tree/tree.h"

/* -EPERM: the store is not trusted, or originals are not followed (pfs_tree_links_refused). */
PFS_MUST_CHECK int pfs_follow_allowed(const struct pfs_tree *tree);

/* Root number i, as pfs_originals_root has it; false: there is none. */
bool pfs_follow_root(const struct pfs_tree *tree, struct pfs_original_root *out, size_t i);

/* The root of that number as the store has it, its path copied into path.  -ENOENT. */
PFS_MUST_CHECK int pfs_follow_root_record(struct pfs_tree *tree, struct pfs_source_root *out,
					  char path[PATH_MAX], uint32_t id);

/* A directory's children, in no order.  Empty at first; may be filled again. */
struct pfs_follower {
	uint64_t ino;
	size_t name, name_len; /* in names, where a NUL follows */
	struct stat attr;      /* type, mode, owner, size, mtime and ctime */
	uint8_t flags;	       /* enum pfs_node_flag */
};
struct pfs_followers {
	struct pfs_follower *list;
	size_t n, capacity;
	char *names;
	size_t names_len, names_capacity;
};
/* -ESTALE: no such directory; -ENOMEM. */
PFS_MUST_CHECK int pfs_follow_list(struct pfs_tree *tree, struct pfs_followers *out, uint64_t ino);
void pfs_followers_finish(struct pfs_followers *followers);

/* One node, without its name.  -ESTALE. */
PFS_MUST_CHECK int pfs_follow_node(struct pfs_tree *tree, struct pfs_follower *out, uint64_t ino);

/* The child of that name; -ENOENT. */
PFS_MUST_CHECK int pfs_follow_child(struct pfs_tree *tree, uint64_t *ino, uint64_t parent,
				    const char *name);

/* The directory that a node with a name lies in; 0: none. */
uint64_t pfs_follow_parent(struct pfs_tree *tree, uint64_t ino);

/* What the store says of the node's original, its path copied into path.  -ENOENT: nothing. */
PFS_MUST_CHECK int pfs_follow_record(struct pfs_tree *tree, struct pfs_source_record *out,
				     char path[PATH_MAX], uint64_t ino);

/* Calls fn with nodes that have a record, one of each root at least, until it returns other than 0,
 * which is returned. */
PFS_MUST_CHECK int pfs_follow_find(struct pfs_tree *tree,
				   int (*fn)(void *arg, uint64_t ino,
					     const struct pfs_source_record *record),
				   void *arg);

/* Calls fn with the directory of each regular file that has the size and the times of one of the n: names of one file
 * had them together.  Takes a scan of the image; a directory may be told more than once. */
void pfs_follow_alike(struct pfs_tree *tree, const struct stat *of, size_t n,
		      void (*fn)(void *arg, uint64_t directory), void *arg);

/* What was left out when the folder was imported that the node stands for, as text that import wrote
 * (PFS_LEFT_OUT), allocated with a NUL behind it.  -ENODATA: nothing. */
#define PFS_LEFT_OUT "primefs.left_out" /* the attribute that keeps it; nobody else sets or sees it */
PFS_MUST_CHECK int pfs_follow_left_out(struct pfs_tree *tree, char **out, size_t *size, uint64_t ino);

/* What a node takes over. */
struct pfs_taking {
	const struct pfs_source_record *record; /* NULL: what the store says stays */
	const struct stat *attr;
	unsigned set; /* enum pfs_set: of attr; a size goes with st_blocks */
	bool another; /* a file in place of the one that it was: no name of that any more */
	uint8_t flags_set, flags_cleared;
};
/* The kernel is told.  -ESTALE, and what reserving says. */
PFS_MUST_CHECK int pfs_follow_take(struct pfs_tree *tree, uint64_t ino, const struct pfs_taking *taking);

/* The name has come or gone: the kernel is told. */
void pfs_follow_tell(struct pfs_tree *tree, uint64_t parent, const char *name);

/* Changes between the two are one group (pfs_journal_hold). */
void pfs_follow_hold(struct pfs_tree *tree);
void pfs_follow_let_go(struct pfs_tree *tree);

/* Has primes ready for directories, or for others, that are to be made: a group would end otherwise
 * when the first is.  -EROFS. */
PFS_MUST_CHECK int pfs_follow_fetch(struct pfs_tree *tree, bool directories, bool others);

/* Writes records of folders, and of roots that have none of their rights yet, as a group of its own. */
struct pfs_follow_folders {
	const struct pfs_source_dir *dirs;
	size_t n_dirs;
	const struct pfs_source_root *root; /* NULL, or one to be written anew */
};
PFS_MUST_CHECK int pfs_follow_put_folders(struct pfs_tree *tree, const struct pfs_follow_folders *folders);

/* Everything is committed, and originals are opened anew. */
PFS_MUST_CHECK int pfs_follow_end(struct pfs_tree *tree);

/* How the tree's sources are followed, for people. */
#define PFS_FOLLOW_HOW 160
struct pfs_follow_state {
	char how[PFS_FOLLOW_HOW]; /* "": not at all */
	int64_t compared_s; /* since 1970, when a comparison of everything began that came to its end; 0: none since the
			       store was opened */
	bool quick;	    /* but files were not looked at */
};
void pfs_follow_set_how(struct pfs_tree *tree, const char *how);
void pfs_follow_set_compared(struct pfs_tree *tree, int64_t compared_s, bool quick);
void pfs_follow_get_state(const struct pfs_tree *tree, struct pfs_follow_state *out);

/* The epoch that pfs_tree_change wants. */
uint64_t pfs_follow_epoch(struct pfs_tree *tree);

#endif
