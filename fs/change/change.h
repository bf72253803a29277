/* SPDX-License-Identifier: MIT */
/* fs/change/change.h - many nodes changed at one moment: all as asked, or none.
 *
 * A set of changes is of one kind. It says what holds afterwards: names may be exchanged, and a
 * path may be given to a node whose directory comes there by the same set. All of it happens in one
 * hold of tree->lock and one group of the store. The tree's listener is told what the kernel may
 * have to forget.
 *
 * A set may have been chosen on a tree that was frozen (fs/tree/frozen.h), and be made while the
 * live one goes on: then it is looked, in the hold in which it is made, whether each node still has
 * what it was chosen by.
 *
 * Threads: a set is one thread's. Locks: none is held by the caller. */
#ifndef PFS_FS_CHANGE_CHANGE_H
#define PFS_FS_CHANGE_CHANGE_H

#include "fs/tree/tree.h"
#include "meta/store.h"

enum pfs_change_kind {
	PFS_CHANGE_UPDATE,
	PFS_CHANGE_REMOVE, /* a directory only with all that is in it */
	PFS_CHANGE_CREATE,
};

enum pfs_change_field {
	PFS_CHANGE_PARENT = 1,
	PFS_CHANGE_NAME = 2,
	PFS_CHANGE_PATH = 4, /* instead of both */
	PFS_CHANGE_MODE = 8, /* permissions, and the type or none */
	PFS_CHANGE_UID = 16,
	PFS_CHANGE_GID = 32,
	PFS_CHANGE_SIZE = 64, /* of one node of the set at most; not when creating */
	PFS_CHANGE_ATIME = 128,
	PFS_CHANGE_MTIME = 256,
	PFS_CHANGE_TARGET = 512, /* of a symlink, when creating */
};

struct pfs_bytes { /* a piece of the set's text, where a NUL follows it */
	size_t at, len;
};

struct pfs_change {
	uint64_t ino; /* not when creating */
	unsigned set; /* enum pfs_change_field */
	uint32_t mode; /* creating: its type decides */
	uint32_t uid, gid;
	int64_t size, atime, mtime; /* bytes, nanoseconds */
	uint64_t parent;
	struct pfs_bytes name, path, target;
	size_t first_attr, n_attrs; /* in the set's */
};

struct pfs_attr_change {
	struct pfs_bytes name; /* without "user." */
	struct pfs_bytes value;
	bool removed;
};

struct pfs_change_set {
	enum pfs_change_kind kind;
	struct pfs_change *list;
	size_t n, capacity;
	struct pfs_attr_change *attrs;
	size_t n_attrs, attrs_capacity;
	char *text;
	size_t text_len, text_capacity;
};

/* Adds bytes to the text.  -ENOMEM. */
PFS_MUST_CHECK int pfs_change_set_text(struct pfs_change_set *changes, struct pfs_bytes *out,
				    const void *bytes, size_t len);
/* Asks that a node come to another place. -ENOMEM. */
PFS_MUST_CHECK int pfs_change_set_move(struct pfs_change_set *changes, uint64_t ino,
				       uint64_t parent, const char *name);
/* Makes a name that no other node has, not longer than names may be, for a node that is in
 * another's way. */
void pfs_change_name_aside(char out[PFS_NAME_MAX + 1], const char *name, uint64_t ino);
uint64_t pfs_change_set_memory(const struct pfs_change_set *changes);
void pfs_change_set_clear(struct pfs_change_set *changes); /* empty again */
void pfs_change_set_finish(struct pfs_change_set *changes);

/* When the nodes of a set were chosen, and by what. */
struct pfs_change_basis {
	uint64_t epoch;
	struct pfs_tree *frozen; /* the tree as it was then, while the caller keeps it; NULL: any
				    change of a node counts */
	unsigned columns; /* bits of fs/image/watch.h that were read of that; its attributes count
			     as well */
	/* With a frozen tree: nobody chooses again. A node that has changed keeps what others made
	 * of the columns, and of attributes that were read, as if they had come later, and the rest
	 * of the row is made; but what is to be deleted is -EBUSY. */
	bool is_last;
};

/* Makes the changes. On failure nothing has changed, and `why` says which node is the reason and
 * why, or is empty if there is none to name. caller owns what is created. Rows of nodes that are
 * gone since they were chosen on a frozen tree are dropped from the set. -EAGAIN: a node that is to
 * change has changed since; choose again, and empty the set before. Else what the operations of
 * tree.h on single nodes return. */
PFS_MUST_CHECK int pfs_tree_change(struct pfs_tree *tree, struct pfs_change_set *changes,
				   const struct pfs_change_basis *basis,
				   const struct pfs_caller *caller, char *why, size_t why_size);

#endif
