/* SPDX-License-Identifier: MIT */
/* fs/content/original_impl.h - what original.c (roots and files) and original_path.c (folders)
 * share.  Nobody else includes it. */
#ifndef PFS_FS_CONTENT_ORIGINAL_IMPL_H
#define PFS_FS_CONTENT_ORIGINAL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "fs/content/original.h"

#define PFS_FOLDERS_KEPT 256 /* checked folders that are remembered and kept open */

struct pfs_origin_root {
	struct pfs_source_root stored; /* without the path */
	_Atomic int fd;		       /* O_PATH; -1: it has been gone or replaced all the time */
	_Atomic dev_t dev;	       /* the device's present number; set before fd */
	_Atomic bool away;	       /* pfs_originals_is_away */
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
	bool settled;	 /* each change of it, or of a folder above it, shows in their ctimes */
	/* The store has a record of it and of all folders above it. Else all that is below it must
	 * belong to this process's user. */
	bool recorded;
	unsigned n_lost; /* it and folders above it whose rights have changed since the import */
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
	/* By the hash of root and path; protected by mutex. */
	struct pfs_folder
		*kept[PFS_FOLDERS_KEPT];
};

/* Returns the root of that number; NULL if there is none. */
const struct pfs_origin_root *pfs_origin_find(const struct pfs_originals *originals, uint32_t id);

/* Returns the number that the device would have if the root's device had kept its number since the
 * import: the root's present number becomes its former one, and that one becomes the present
 * one. */
dev_t pfs_lasting_dev(const struct pfs_origin_root *root, dev_t dev);

struct pfs_file_identity {
	uint64_t dev, ino; /* dev: a lasting one */
	const struct pfs_birthmark *mark;
};

/* Returns true if a and b are one file: both lie on the root's device, or neither does, and they
 * have the same handle or, where one has none, the same inode number and time of birth. A record of
 * version 1 has neither handle nor birth: off the root's device, a and b must then have the same
 * device, too. */
bool pfs_same_file(const struct pfs_origin_root *root, const struct pfs_file_identity *a,
		   const struct pfs_file_identity *b);

/* Returns the mode less the rights that the file's ACL takes away; fd may be O_PATH. */
mode_t pfs_granted_mode(int fd, mode_t mode);

/* Returns the bits of the file's mode that folders on the way have taken away since the import. */
mode_t pfs_lost_on(const struct pfs_folder *folder, const struct stat *file);

/* Returns the error that pfs_way_open returns if a step fails with `error`. */
int pfs_way_error(int error);

#endif
