/* SPDX-License-Identifier: MIT */
/* fs/image/imagefile.h - the image as a file beside its store, STORE.img, so that opening the store
 * need not read its rows and make its indexes again (docs/FORMAT.md, "The image file").
 *
 * The store alone is the truth. If the image file is missing, unreadable, another user's, of
 * another state of the store, cut, changed or forged, that is no error: the image is loaded from
 * the rows. Opening reads little: each block of the file is read and verified when the memory that
 * it becomes is first touched, and never again. A block that is damaged by then is made from the
 * store's rows; the first such block takes as long as loading all rows, and the file is removed.
 *
 * Locks: no other thread sees the tree meanwhile, except where a function says otherwise. */
#ifndef PFS_FS_IMAGE_IMAGEFILE_H
#define PFS_FS_IMAGE_IMAGEFILE_H

#include "fs/tree/tree.h"

#define PFS_IMAGE_FILE_SUFFIX ".img"
#define PFS_IMAGE_PART_SUFFIX ".part" /* behind that, while the file is written */
#define PFS_IMAGE_FILE_NODES  65536u /* smaller trees have no image file: loading takes a moment */

/* Fills an empty image.  load_rows fills one from the rows of its store, should that be needed
 * later.  -ENOENT: there is no image file that may be used, and the image is as empty as before;
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_imagefile_load(struct pfs_tree *tree,
				      int (*load_rows)(struct pfs_tree *tree));

/* A test of names as they lie in the heap (fs/image/names.h), from `heap` on. */
#define PFS_IMAGE_HAS_SLACK 320u
struct pfs_image_test {
	const void *arg;
	/* Returns false if there is no such name in these bytes; may read PFS_IMAGE_HAS_SLACK bytes
	 * past them. */
	bool (*has)(const void *arg, const uint8_t *heap, size_t size);
	/* Clears the bits of names that are others: bit i's is at heap + 4 * place[i]; may read as
	 * much past them, and 4 bytes before. */
	void (*keep)(const void *arg, uint64_t *bits, const uint8_t *heap, const uint32_t *place,
		     size_t words);
};
/* Clears bits of nodes whose names fail the test, in parts of the file that nobody has touched yet
 * and of whose bits many are set. Other bits stay. `bits` are those of the slots from `slot` on,
 * which is a multiple of 64. tree->lock is held. */
struct pfs_image;
void pfs_imagefile_leave_out(const struct pfs_image *image, uint64_t *bits, uint32_t slot,
			     size_t words, const struct pfs_image_test *test);

/* Returns 0; or -EIO if a block of the image file was damaged and could not be made from the
 * store's rows, since the store is damaged, too, or the file was forged. Any answer may then be
 * wrong, and no change may be written. Any thread. */
PFS_MUST_CHECK int pfs_imagefile_failure(const struct pfs_tree *tree);

/* Waits until no thread makes a damaged block any more (pfs_lazy_settle). To be called before spans
 * and totals are freed, since making one uses them. */
void pfs_imagefile_settle(const struct pfs_tree *tree);

/* ---- bytes that modules above the image keep in the file ---- */

/* make returns the bytes that belong to the image that is being written; the caller frees them.
 * -ENOMEM. is_wanted returns true if the present file has other bytes; the file is then written
 * anew. */
struct pfs_image_extras {
	int (*make)(struct pfs_tree *tree, void **bytes, size_t *size);
	bool (*is_wanted)(struct pfs_tree *tree);
};
struct pfs_image_extra {
	const uint8_t *bytes;
	void *memory;
};
/* extra_size returns how many such bytes the file has. read_extra reads some of them, which the
 * caller frees; -ENOENT: there are none, or they are damaged; -ENOMEM. Their checksum is verified,
 * but not what they say. */
uint64_t pfs_imagefile_extra_size(const struct pfs_tree *tree);
PFS_MUST_CHECK int pfs_imagefile_read_extra(const struct pfs_tree *tree,
					    struct pfs_image_extra *out, uint64_t at,
					    uint64_t size);
void pfs_imagefile_free_extra(struct pfs_image_extra *extra);
#define PFS_EXTRA __attribute__((cleanup(pfs_imagefile_free_extra)))
/* Returns the slot's value in the column, one of enum pfs_column_number; those of signed types are
 * to be cast. The block of the column is not filled the first time (pfs_lazy_get). tree->lock is
 * held. */
uint64_t pfs_imagefile_get(const struct pfs_image *image, unsigned column, uint32_t slot);
/* Returns how many slots the file has, if it is of the group that was the store's last when the
 * image was loaded; else 0. */
uint32_t pfs_imagefile_current_end(const struct pfs_tree *tree);
/* Returns false in a process that writes the file and has let go of the store. */
bool pfs_imagefile_may_ask_store(const struct pfs_tree *tree);

/* Writes the image, which has to be that of the store's last committed group, into a file beside
 * the store, which replaces the present one; it takes as long as the disk does. The file has the
 * store's owner and its mode, without rights of others to write. -ENODATA: the store's groups have
 * no tokens (meta/store.h); -EBUSY: it is being written already; -ENOSPC: less than a tenth of
 * the filesystem would stay free; -EIO: pfs_imagefile_failure; -EPERM: the file cannot be given to
 * the store's owner, or its name belongs to something else; -ENOMEM; errors of the system about
 * files. */
PFS_MUST_CHECK int pfs_imagefile_write(struct pfs_tree *tree);

/* Returns the image file that a process writes for the store; -1: there is none, as far as this
 * user may know. It is written until that process has ended. */
int pfs_imagefile_open_written(const char *store);
bool pfs_imagefile_is_written(int fd);

/* Returns what people are told of the store if it can have no image file, since something else has
 * the name of it, or the one that it has while it is written; else NULL. */
const char *pfs_imagefile_taken(const char *store);

/* Removes the store's image file, if it has one: the store has become another. */
void pfs_imagefile_remove(const struct pfs_tree *tree);

/* Touches all of an image that was loaded from an image file, and counts the nodes in which it
 * differs from `rows`, the same store's image loaded from the rows. -ENOENT: it was not loaded from
 * a file; -EUCLEAN: the file was damaged, and has been removed. */
PFS_MUST_CHECK int pfs_imagefile_compare(struct pfs_tree *tree, struct pfs_tree *rows,
					 uint64_t *different);

/* As pfs_imagefile_write_behind, for a store that this process does not have open: the new process
 * opens it with `open` (NULL: it cannot be opened), beside a process that may write to it. The
 * caller has seen that the name is not taken. */
void pfs_imagefile_make_behind(const char *store, struct pfs_tree *(*open)(const char *store));

/* Starts a process that calls pfs_imagefile_write, holds no lock of the store, and ends by itself.
 * The journal has stopped, and this process is about to end. Does nothing if the image is small
 * (PFS_IMAGE_FILE_NODES), or if the image file has the store's last group already, except for a few
 * rows; logs a line, and does nothing, if the file's name is taken. */
void pfs_imagefile_write_behind(struct pfs_tree *tree);

#endif
