/* SPDX-License-Identifier: MIT */
/* fs/image/device_lookup.h - single questions about names and ways up, and many paths. With
 * --engine=cuda a kernel that stays on the device answers single ones (gpu/resident.h), and another
 * one many paths; without it nothing is answered here, and the caller asks the image.
 *
 * The device's index of names and its column of parents follow the image as a watcher: changes are
 * gathered under the write lock and sent as a batch before the next question. A thread of its own
 * fills the device, and sends changes that are many. For a single question the device finds the
 * names of a hash, whose bytes are compared here; for paths it has the names, too.
 *
 * A function that returns false leaves the question to its caller: there is no device, it does not
 * have all names yet, it has failed, or the tree is frozen (image.copy).
 *
 * Locks: any lock on the tree, unless it says otherwise. */
#ifndef PFS_FS_IMAGE_DEVICE_LOOKUP_H
#define PFS_FS_IMAGE_DEVICE_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/btree.h"
#include "base/err.h"
#include "fs/tree/tree.h"
#include "gpu/resident.h"

enum pfs_device_lookup_kind {
	PFS_QUESTION_LOOKUP,
	PFS_QUESTION_LIST, /* some of a directory's entries */
	PFS_QUESTION_ANCESTOR,
	PFS_QUESTION_MOVE,
	PFS_QUESTION_CHILD,
	PFS_QUESTION_COMMON,
	PFS_QUESTION_CODE,
	PFS_QUESTION_PATH, /* one of many paths (pfs_tree_resolve_many) */
	PFS_QUESTION_TEXT, /* some thousand lines of a recursive listing (fs/nodes/paths.h) */
	PFS_QUESTION_KINDS,
};

PFS_MUST_CHECK int pfs_device_lookup_create(struct pfs_tree *tree);
void pfs_device_lookup_destroy(struct pfs_tree *tree);
/* Lets a device answer from now on, if the tree's engine is CUDA. No lock is held. */
void pfs_device_lookup_start(struct pfs_tree *tree);

/* Returns false if no device answers questions about this tree, and none will. */
bool pfs_device_lookup_is_there(const struct pfs_tree *tree);
/* Gets up to `capacity` entries, PFS_MAILBOX_ENTRIES at most, from (key, slot) on whose keys are
 * `last` at most; *n is how many. kind: LOOKUP or LIST. */
bool pfs_device_lookup_entries(const struct pfs_tree *tree, struct pfs_btree_entry *out,
			       unsigned *n, enum pfs_device_lookup_kind kind,
			       const struct pfs_btree_entry *from, uint64_t last,
			       unsigned capacity);
/* An absolute path, whose last name has that hash. */
struct pfs_device_path {
	const char *path;
	size_t len, directory_len; /* of all of it, and of what is before the last '/' */
	uint32_t hash;
};

/* Gets the path's entry, or up to `capacity` ones of that hash in the directory. Returns false also
 * if the device knows neither, or for a path that is too long. */
bool pfs_device_lookup_path(const struct pfs_tree *tree, struct pfs_btree_entry *out, unsigned *n,
			    const struct pfs_device_path *path, unsigned capacity);
/* Sets *under if `slot` is `top` or lies under it. kind: ANCESTOR or MOVE. */
bool pfs_device_lookup_is_under(const struct pfs_tree *tree, bool *under,
				enum pfs_device_lookup_kind kind, uint32_t slot, uint32_t top);
bool pfs_device_lookup_is_child(const struct pfs_tree *tree, bool *child, uint32_t slot,
				uint32_t parent);
bool pfs_device_lookup_common(const struct pfs_tree *tree, uint32_t *common, uint32_t a,
			      uint32_t b);

/* Tests: true if the device's answers to such questions are to be wrong. */
bool pfs_device_lookup_is_falsified(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind);

/* ---- many paths ---- */

/* Gets memory for paths that the device is to resolve, until they are returned. The tree need not
 * be held. Returns false if the device is not to be asked, or resolves paths for PFS_RESIDENT_LISTS
 * others. */
bool pfs_device_paths_take(const struct pfs_tree *tree, struct pfs_resident_paths **out);
void pfs_device_paths_return(const struct pfs_tree *tree, const struct pfs_resident_paths *paths);
/* Resolves them for somebody who sees every node; relative paths begin at the slot `top`, or
 * nowhere if it is PFS_NO_SLOT. Returns 0 if it has; -EAGAIN: the device has to learn more of the
 * tree, of which it was sent PFS_DEVICE_PATHS_SENT bytes; -EOPNOTSUPP: the caller resolves them. */
#define PFS_DEVICE_PATHS_SENT ((size_t)8 << 20)
PFS_MUST_CHECK int pfs_device_paths_resolve(const struct pfs_tree *tree,
					    struct pfs_resident_paths *paths, uint32_t top);

/* ---- figures ---- */

/* Counts one question. on_device: the device answered it (callers in other files say so of CODE
 * alone). ns 0: its time was not measured. */
void pfs_device_lookup_count(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
			     bool on_device, uint64_t ns);
/* Counts n questions that were answered together in that time. */
void pfs_device_lookup_count_many(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				  bool on_device, uint64_t n, uint64_t ns);
/* begin counts a question that the host is to answer, and end its time, which is measured for one
 * question in PFS_QUESTION_TIMED. */
#define PFS_QUESTION_TIMED 64u
uint64_t pfs_device_lookup_host_begin(const struct pfs_tree *tree,
				      enum pfs_device_lookup_kind kind);
void pfs_device_lookup_host_end(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				uint64_t began);

struct pfs_device_lookup_count {
	uint64_t n, timed; /* questions; those of them whose time was measured */
	uint64_t ns;	   /* time that the measured ones took together */
};

struct pfs_device_lookup_stats {
	bool by_device; /* questions go there */
	struct pfs_device_lookup_count host[PFS_QUESTION_KINDS], device[PFS_QUESTION_KINDS];
	struct pfs_resident_info info; /* zero without a device */
};
/* Gets the counts. No lock is held. */
void pfs_device_lookup_stats(struct pfs_tree *tree, struct pfs_device_lookup_stats *out);
const char *pfs_device_lookup_name(enum pfs_device_lookup_kind kind);

#endif
