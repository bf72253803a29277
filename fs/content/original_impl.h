/* SPDX-License-Identifier: MIT */
/* fs/content/original_impl.h - what original.c (roots and files) and original_path.c (folders)
 * share.  Nobody else includes it. */
#ifndef PFS_FS_CONTENT_ORIGINAL_IMPL_H
#define PFS_FS_CONTENT_ORIGINAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/content/original.h"

#define PFS_FOLDERS_KEPT 256 /* checked ones that are remembered, and open */

struct pfs_origin_root {
	struct pfs_source_root stored; /* without the path */
	int fd;			       /* O_PATH; -1: gone or replaced */
	dev_t dev;		       /* today's */
};

struct pfs_rights {
	uint32_t mode, uid, gid;
};

/* A folder that has been checked, with those above it.  As long as none of their ctimes changes,
 * its path leads to it and all that was found holds. */
struct pfs_folder {
	_Atomic unsigned references;
	struct pfs_folder *parent; /* a reference; NULL: the root */
	int fd;			   /* O_PATH */
	struct timespec ctime;
	bool settled;	 /* it, and all above: what happens to them shows in their ctimes */
	bool recorded;	 /* it, and all above; else what is below must be this process's user's */
	unsigned n_lost; /* of these whose rights are not what they were */
	struct pfs_lost {
		struct pfs_rights then, now;
	} lost[4];
	uint32_t root;
	size_t path_len;
	char path[];
};

struct pfs_originals {
	struct pfs_store *store;
	struct pfs_origin_root *roots;
	size_t n_roots, capacity;
	_Atomic unsigned n_open; /* folders */
	pthread_mutex_t mutex;
	struct pfs_folder
		*kept[PFS_FOLDERS_KEPT]; /* protected by mutex; by the hash of root and path */
};

/* Returns the root of that number; NULL if there is none. */
const struct pfs_origin_root *pfs_origin_find(const struct pfs_originals *originals, uint32_t id);

/* Returns the number that a device would have if the root's had stayed as it was: the two change
 * places. */
dev_t pfs_lasting_dev(const struct pfs_origin_root *root, dev_t dev);

struct pfs_file_identity {
	uint64_t dev, ino; /* dev: a lasting one */
	const struct pfs_birthmark *mark;
};

/* Returns true if both are one file. Both are on the root's device, or both on others; there a
 * handle decides, else the number and the birth. A store of version 1 has no more than numbers. */
bool pfs_same_file(const struct pfs_origin_root *root, const struct pfs_file_identity *a,
		   const struct pfs_file_identity *b);

/* Returns what an ACL leaves of the mode; fd may be O_PATH. */
mode_t pfs_granted_mode(int fd, mode_t mode);

/* Returns what the folders on the way have taken from the file's mode since the import. */
mode_t pfs_lost_on(const struct pfs_folder *folder, const struct stat *file);

/* Returns the errno for a step that failed, as pfs_way_open returns it. */
int pfs_way_error(int error);

#endif
