/* SPDX-License-Identifier: MIT */
/* fs/content/follow.h - what a refresh (tools/refresh) needs of nodes that were imported from a
 * folder: the children of a directory as the image has them, records of their originals, and how a
 * node takes over what its original has become.
 *
 * Not handled here: finding out what has changed; changes of names (tree.h and change.h).
 *
 * Locks: none held by the caller.  Threads: any number. */
#ifndef PFS_FS_CONTENT_FOLLOW_H
#define PFS_FS_CONTENT_FOLLOW_H

#include <limits.h>
#include <pthread.h>

#include "fs/tree/tree.h"
#include "meta/store.h"

struct pfs_original_root;

/* Returns 0 if originals may be compared. -EPERM: the store is not trusted, or originals are not
 * followed (pfs_tree_links_refused). */
PFS_MUST_CHECK int pfs_follow_allowed(const struct pfs_tree *tree);

/* Gets root number i, as pfs_originals_root has it. Returns false if there is none. */
bool pfs_follow_root(const struct pfs_tree *tree, struct pfs_original_root *out, size_t i);

/* Looks whether the root is there, as pfs_originals_find_root does, and sets *root to what it is
 * then; root->id is given. -ENOENT: the store has none of that number. */
PFS_MUST_CHECK int pfs_follow_find_root(struct pfs_tree *tree, struct pfs_original_root *root);

/* Says that all that came with the root has been compared with it (pfs_originals_is_away). */
void pfs_follow_set_followed(struct pfs_tree *tree, uint32_t id);

/* Gets the root of that number as the store has it; its path is copied into `path`. -ENOENT: there
 * is none. */
PFS_MUST_CHECK int pfs_follow_root_record(struct pfs_tree *tree, struct pfs_source_root *out,
					  char path[PATH_MAX], uint32_t id);

/* What is in a directory. */
struct pfs_follower {
	uint64_t ino;
	size_t name, name_len; /* in names, where a NUL follows */
	struct stat attr;      /* type, mode, owner, links, size, mtime and ctime */
	uint8_t flags;	       /* enum pfs_node_flag */
};
/* What tells whether a subdirectory is as it was. */
struct pfs_subdirectory {
	uint64_t ino;
	uint32_t slot;		 /* which the node has as long as it is there */
	uint32_t name;		 /* in names, where a NUL follows */
	int64_t mtime, ctime;	 /* nanoseconds, or PFS_TIME_PAST, or PFS_TIME_FUTURE (image.h) */
	bool settled;		 /* PFS_NODE_SETTLED */
	bool mounted;		 /* PFS_NODE_MOUNT */
	bool has_subdirectories;
};
/* Children in no order. It is all zero at first, and may be filled again by the function that has
 * filled it. */
struct pfs_followers {
	union {
		struct pfs_follower *list;
		struct pfs_subdirectory *directories; /* of pfs_follow_subdirectories */
	};
	size_t n, capacity;
	char *names;
	size_t names_len, names_capacity;
};
/* Fills in the children of the directory, or only those that are directories. -ESTALE: there is no
 * such directory; -ENOMEM. */
PFS_MUST_CHECK int pfs_follow_list(struct pfs_tree *tree, struct pfs_followers *out, uint64_t ino,
				   bool directories_alone);
/* Fills in the directories in the directory `ino`. slot: where it was found; PFS_NO_SLOT: not
 * known. -ESTALE: there is no such directory; -ENOMEM. */
PFS_MUST_CHECK int pfs_follow_subdirectories(struct pfs_tree *tree, struct pfs_followers *out,
					     uint64_t ino, uint32_t slot);
void pfs_followers_finish(struct pfs_followers *followers);

/* Gets one node, without its name. -ESTALE: there is no such node. */
PFS_MUST_CHECK int pfs_follow_node(struct pfs_tree *tree, struct pfs_follower *out, uint64_t ino);

/* Finds the child of that name. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_follow_child(struct pfs_tree *tree, uint64_t *ino, uint64_t parent,
				    const char *name);

/* Returns the directory that a node with a name lies in; 0 if there is none. */
uint64_t pfs_follow_parent(struct pfs_tree *tree, uint64_t ino);

/* Gets the store's record of the node's original; its path is copied into `path`. -ENOENT: there is
 * none. */
PFS_MUST_CHECK int pfs_follow_record(struct pfs_tree *tree, struct pfs_source_record *out,
				     char path[PATH_MAX], uint64_t ino);

/* Calls fn for some of the nodes that have a record, at least one for each root, until fn returns
 * non-zero, which is returned. */
PFS_MUST_CHECK int pfs_follow_find(struct pfs_tree *tree,
				   int (*fn)(void *arg, uint64_t ino,
					     const struct pfs_source_record *record),
				   void *arg);

/* Calls fn with the number and the path of each record of the root that the store has, until fn
 * returns non-zero, which is returned. fn uses no record. What has changed since the last commit is
 * not seen. */
PFS_MUST_CHECK int
pfs_follow_paths(struct pfs_tree *tree, uint32_t root,
		 int (*fn)(void *arg, uint64_t ino, const char *path, size_t path_len), void *arg);

/* Gets the record of a folder that has been on the way to originals: it is older than that of the
 * node, if it has moved. -ENOENT: there is none. */
PFS_MUST_CHECK int pfs_follow_folder(struct pfs_tree *tree, struct pfs_source_dir *out,
				     uint32_t root, const char *path);

/* Calls fn for the directory of each regular file that has the size and times of one of the n
 * `of`: it may be another name of that file, since all names of a file have the same. Scans the
 * image; fn may be called more than once for a directory. */
void pfs_follow_alike(struct pfs_tree *tree, const struct stat *of, size_t n,
		      void (*fn)(void *arg, uint64_t directory), void *arg);

/* Gets the text in which import noted what it left out of the folder that the node stands for
 * (PFS_LEFT_OUT), with a NUL behind it; the caller frees it. -ENODATA: nothing was left out. */
#define PFS_LEFT_OUT "primefs.left_out" /* its attribute, which only this program sets and sees */
PFS_MUST_CHECK int pfs_follow_left_out(struct pfs_tree *tree, char **out, size_t *size,
				       uint64_t ino);

/* What a node takes over. */
struct pfs_taking {
	const struct pfs_source_record *record; /* the new record; NULL: the old one stays */
	const struct stat *attr;
	unsigned set; /* enum pfs_set: the members of attr to take; a size goes with st_blocks */
	bool another; /* the original is another file: the node leaves its group (hardlink.h) */
	uint8_t flags_set, flags_cleared;
};
/* Makes the node take that over, and tells the kernel. -ESTALE, and what reserving returns. */
PFS_MUST_CHECK int pfs_follow_take(struct pfs_tree *tree, uint64_t ino,
				   const struct pfs_taking *taking);

/* Tells the kernel that the name has come or gone. */
void pfs_follow_tell(struct pfs_tree *tree, uint64_t parent, const char *name);

/* Adds how many bytes of attributes history keeps of the node when it goes. -ENOMEM, -EIO. */
PFS_MUST_CHECK int pfs_follow_former(struct pfs_tree *tree, uint64_t *bytes, uint64_t ino);

/* Makes changes between the two calls one group (pfs_journal_hold). */
void pfs_follow_hold(struct pfs_tree *tree);
/* As pfs_follow_hold, once it is sure that changes of so much fit (pfs_journal_hold_for). */
struct pfs_journal_need;
PFS_MUST_CHECK int pfs_follow_hold_for(struct pfs_tree *tree, uint64_t *lacking,
				       const struct pfs_journal_need *need);
void pfs_follow_let_go(struct pfs_tree *tree);

/* Fetches primes for directories, or for other nodes, that are to be made in a hold; without it the
 * first node that is made would wait for them, and end the hold's group. -EROFS. */
PFS_MUST_CHECK int pfs_follow_fetch(struct pfs_tree *tree, bool directories, bool others);

/* Writes records of folders, and of a root whose record lacks its rights, as an errand. */
struct pfs_follow_folders {
	const struct pfs_source_dir *dirs;
	size_t n_dirs;
	const struct pfs_source_root *root; /* NULL, or one to be written anew */
};
PFS_MUST_CHECK int pfs_follow_put_folders(struct pfs_tree *tree,
					  const struct pfs_follow_folders *folders);

/* Waits until the kernel has all notices and everything is committed, and closes the folders on
 * ways to originals, so that they are checked anew. Not to be called by a thread that serves
 * requests. */
PFS_MUST_CHECK int pfs_follow_end(struct pfs_tree *tree);

/* Says how the tree's sources are followed, for people. */
#define PFS_FOLLOW_HOW 320
#define PFS_FOLLOW_UNREAD 4096
struct pfs_follow_state {
	char how[PFS_FOLLOW_HOW]; /* "": not at all */
	char unread[PFS_FOLLOW_UNREAD]; /* lines about what cannot be read, and is not followed */
};
void pfs_follow_set_how(struct pfs_tree *tree, const char *how);
void pfs_follow_set_unread(struct pfs_tree *tree, const char *lines);
void pfs_follow_get_state(const struct pfs_tree *tree, struct pfs_follow_state *out);

/* Returns the epoch that pfs_tree_change is given. */
uint64_t pfs_follow_epoch(struct pfs_tree *tree);

/* What link.c keeps for follow.c. */
struct pfs_follow_known {
	pthread_mutex_t lock;
	struct pfs_follow_state state; /* protected by lock */
};
struct pfs_follow_known *pfs_links_follow_known(const struct pfs_tree *tree);

#endif
