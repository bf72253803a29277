/* SPDX-License-Identifier: MIT */
/* fs/content/original.h - where the originals of linked files are, and whether they still are what
 * the store says of them.
 *
 * The daemon may be root, and the folders may belong to any user. So a way to an original is opened
 * folder by folder, and never through a symlink. Each folder must be the one that import saw, by
 * its handle, or belong to the same user and give no more rights than then. Rights to pass that a
 * folder has lost since then are taken from the original, too. Folders that the store has no record
 * of (it was made by version 1) must belong to this process's user, with all that is below them.
 *
 * Threads: any number. */
#ifndef PFS_FS_CONTENT_ORIGINAL_H
#define PFS_FS_CONTENT_ORIGINAL_H

#include <stdbool.h>
#include <sys/stat.h>

#include "meta/store.h"

struct pfs_originals;

/* Opens the store's roots; logs one that is gone, or is another folder now. */
PFS_MUST_CHECK int pfs_originals_create(struct pfs_originals **out, struct pfs_store *store);
void pfs_originals_destroy(struct pfs_originals *originals); /* NULL is allowed */

/* Returns how many roots the store has. */
size_t pfs_originals_roots(const struct pfs_originals *originals);

/* Gets root number i < pfs_originals_roots: its number in the store, its device at the import and
 * now, and a descriptor of its folder (O_PATH; -1: the folder is gone, or another one). */
struct pfs_original_root {
	uint32_t id;
	dev_t stored_dev, dev;
	int fd;
	bool has_rights; /* else the store was made by version 1 */
	bool away;	 /* pfs_originals_is_away */
};
void pfs_originals_root(const struct pfs_originals *originals, struct pfs_original_root *out,
			size_t i);

/* Looks whether the root of that number is at the path, which is its own; if it was gone when the
 * store was opened, or is mounted anew, its files can be read from then on. -ESTALE: it is gone, or
 * another folder is there; -EACCES and others: it cannot be reached. */
PFS_MUST_CHECK int pfs_originals_find_root(struct pfs_originals *originals, uint32_t id,
					   const char *path);

/* Returns true if the root was not there when somebody looked, and pfs_originals_set_followed has
 * not been called since: once all that came with it is known to be as it is there again. */
void pfs_originals_set_followed(struct pfs_originals *originals, uint32_t id);
bool pfs_originals_is_away(const struct pfs_originals *originals, uint32_t id);

/* An original as it is now. */
struct pfs_original {
	struct stat st; /* st_mode: less the rights that an ACL or a folder on the way takes away;
			   st_dev: as if the root's device had kept its number since the import */
	struct pfs_birthmark mark;
};

/* The way to an original: a folder, and the original's name in it. folder NULL: it is not open. */
struct pfs_way {
	struct pfs_folder *folder;
	int fd; /* the folder's */
	const char *name;
};

/* Opens the way to the record's original; the caller closes it. -ESTALE: a folder on it is gone, or
 * is not the one that import saw; -EMFILE, -ENFILE, -EACCES, -ENOMEM. */
PFS_MUST_CHECK int pfs_way_open(struct pfs_originals *originals, struct pfs_way *way,
				const struct pfs_source_record *record);
void pfs_way_close(struct pfs_originals *originals, struct pfs_way *way);

/* Closes the descriptors of folders that are kept open. */
void pfs_originals_shrink(struct pfs_originals *originals);

/* Gets the original at the end of the way. -ESTALE: there is none, or it is no regular file. */
PFS_MUST_CHECK int pfs_original_look(struct pfs_originals *originals, const struct pfs_way *way,
				     struct pfs_original *out,
				     const struct pfs_source_record *record);

/* As pfs_original_look, for an original that is open as fd. */
PFS_MUST_CHECK int pfs_original_see(struct pfs_originals *originals, const struct pfs_way *way,
				    struct pfs_original *out,
				    const struct pfs_source_record *record, int fd);

/* Returns true if the original is the file of the record, even if its content or attributes have
 * changed. */
bool pfs_original_is(const struct pfs_originals *originals, const struct pfs_original *original,
		     const struct pfs_source_record *record);

/* Returns the number of the original's filesystem for the record that replaces `record`. A number
 * other than the root's means nothing but that in the store (tools/refresh/refresh_mount.c), and
 * stays; without marks it is all that tells files of one inode number from each other. */
uint64_t pfs_original_number(const struct pfs_originals *originals,
			     const struct pfs_original *original,
			     const struct pfs_source_record *record);

#endif
