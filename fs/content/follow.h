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
#include <pthread.h>

#include "fs/content/original.h"
#include "fs/tree/tree.h"

/* Returns 0 if originals may be compared. -EPERM: the store is not trusted, or originals are not
 * followed (pfs_tree_links_refused). */
PFS_MUST_CHECK int pfs_follow_allowed(const struct pfs_tree *tree);

/* Gets root number i, as pfs_originals_root has it. Returns false if there is none. */
bool pfs_follow_root(const struct pfs_tree *tree, struct pfs_original_root *out, size_t i);

/* Gets the root of that number as the store has it; its path is copied into `path`. -ENOENT: there
 * is none. */
PFS_MUST_CHECK int pfs_follow_root_record(struct pfs_tree *tree, struct pfs_source_root *out,
					  char path[PATH_MAX], uint32_t id);

/* A directory's children, in no order. All zero at first; may be filled again. */
struct pfs_follower {
	uint64_t ino;
	size_t name, name_len; /* in names, where a NUL follows */
	struct stat attr;      /* type, mode, owner, links, size, mtime and ctime */
	uint8_t flags;	       /* enum pfs_node_flag */
};
struct pfs_followers {
	struct pfs_follower *list;
	size_t n, capacity;
	char *names;
	size_t names_len, names_capacity;
};
/* Fills in the children of the directory, or its directories alone. -ESTALE: there is no such
 * directory; -ENOMEM. */
PFS_MUST_CHECK int pfs_follow_list(struct pfs_tree *tree, struct pfs_followers *out, uint64_t ino,
				   bool directories_alone);
void pfs_followers_finish(struct pfs_followers *followers);

/* Gets one node, without its name. -ESTALE: there is no such node. */
PFS_MUST_CHECK int pfs_follow_node(struct pfs_tree *tree, struct pfs_follower *out, uint64_t ino);

/* Finds the child of that name. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_follow_child(struct pfs_tree *tree, uint64_t *ino, uint64_t parent,
				    const char *name);

/* Returns the directory that a node with a name lies in; 0 if there is none. */
uint64_t pfs_follow_parent(struct pfs_tree *tree, uint64_t ino);

/* Gets what the store says of the node's original; its path is copied into `path`. -ENOENT:
 * nothing. */
PFS_MUST_CHECK int pfs_follow_record(struct pfs_tree *tree, struct pfs_source_record *out,
				     char path[PATH_MAX], uint64_t ino);

/* Calls fn for nodes that have a record, for one of each root at least, until it returns non-zero,
 * which is returned. */
PFS_MUST_CHECK int pfs_follow_find(struct pfs_tree *tree,
				   int (*fn)(void *arg, uint64_t ino,
					     const struct pfs_source_record *record),
				   void *arg);

/* Calls fn for the directory of each regular file that has the size and times of one of the n:
 * names of one file had them together. Scans the image; a directory may be told more than once. */
void pfs_follow_alike(struct pfs_tree *tree, const struct stat *of, size_t n,
		      void (*fn)(void *arg, uint64_t directory), void *arg);

/* Gets what was left out when the folder that the node stands for was imported: the text that
 * import wrote (PFS_LEFT_OUT), with a NUL behind it, which the caller frees. -ENODATA: nothing
 * was. */
#define PFS_LEFT_OUT "primefs.left_out" /* the attribute that keeps it; nobody else sets or sees it */
PFS_MUST_CHECK int pfs_follow_left_out(struct pfs_tree *tree, char **out, size_t *size, uint64_t ino);

/* Says what a node takes over. */
struct pfs_taking {
	const struct pfs_source_record *record; /* NULL: what the store says stays */
	const struct stat *attr;
	unsigned set; /* enum pfs_set: of attr; a size goes with st_blocks */
	bool another; /* a file in place of the one that it was: no name of that any more */
	uint8_t flags_set, flags_cleared;
};
/* Makes the node take that over, and tells the kernel. -ESTALE, and what reserving returns. */
PFS_MUST_CHECK int pfs_follow_take(struct pfs_tree *tree, uint64_t ino, const struct pfs_taking *taking);

/* Tells the kernel that the name has come or gone. */
void pfs_follow_tell(struct pfs_tree *tree, uint64_t parent, const char *name);

/* Makes sure that the changes of a hold fit: rows of nodes, and bytes of records, attributes and targets. Not within a
 * hold, which it would end: it may wait for a commit. -ENOSPC and others as of pfs_journal_reserve. */
PFS_MUST_CHECK int pfs_follow_reserve(struct pfs_tree *tree, size_t nodes, uint64_t bytes);

/* Makes changes between the two calls one group (pfs_journal_hold). */
void pfs_follow_hold(struct pfs_tree *tree);
void pfs_follow_let_go(struct pfs_tree *tree);

/* Fetches primes for directories, or for other nodes, that are to be made; without it the first
 * node made would end the group. -EROFS. */
PFS_MUST_CHECK int pfs_follow_fetch(struct pfs_tree *tree, bool directories, bool others);

/* Writes records of folders, and of roots that have none of their rights yet, as a group of its own. */
struct pfs_follow_folders {
	const struct pfs_source_dir *dirs;
	size_t n_dirs;
	const struct pfs_source_root *root; /* NULL, or one to be written anew */
};
PFS_MUST_CHECK int pfs_follow_put_folders(struct pfs_tree *tree, const struct pfs_follow_folders *folders);

/* Returns when the kernel knows what it was told, everything is committed, and originals are opened
 * anew.  Not to be called by a thread that serves the kernel. */
PFS_MUST_CHECK int pfs_follow_end(struct pfs_tree *tree);

/* Says how the tree's sources are followed, for people. */
#define PFS_FOLLOW_HOW 160
struct pfs_follow_state {
	char how[PFS_FOLLOW_HOW]; /* "": not at all */
};
void pfs_follow_set_how(struct pfs_tree *tree, const char *how);
void pfs_follow_get_state(const struct pfs_tree *tree, struct pfs_follow_state *out);

/* Returns the epoch that pfs_tree_change is given. */
uint64_t pfs_follow_epoch(struct pfs_tree *tree);

/* Holds what link.c keeps of a tree for follow.c. */
struct pfs_follow_known {
	pthread_mutex_t lock;
	struct pfs_follow_state state; /* protected by lock */
};
struct pfs_follow_known *pfs_links_follow_known(const struct pfs_tree *tree);

#endif
