/* SPDX-License-Identifier: MIT */
/* fs/image/device_lookup.h - single questions about names and ways up. With --engine=cuda a kernel
 * that stays on the device answers them (gpu/resident.h); without it nothing is answered here, and
 * the caller asks the image.
 *
 * The device's index of names and its column of parents follow the image as a watcher: changes are
 * gathered under the write lock and sent as a batch before the next question. A thread of its own
 * fills the device, and sends changes that are many. The device finds the names of a hash; their
 * bytes are compared here.
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
	PFS_QUESTION_PATH, /* one of many paths (pfs_tree_resolve_many); no device is asked */
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
/* Sets *under if `slot` is `top` or lies under it. kind: ANCESTOR or MOVE. */
bool pfs_device_lookup_is_under(const struct pfs_tree *tree, bool *under,
				enum pfs_device_lookup_kind kind, uint32_t slot, uint32_t top);
bool pfs_device_lookup_is_child(const struct pfs_tree *tree, bool *child, uint32_t slot,
				uint32_t parent);
bool pfs_device_lookup_common(const struct pfs_tree *tree, uint32_t *common, uint32_t a,
			      uint32_t b);

/* Counts one question. on_device: the device answered it (callers in other files say so of CODE
 * alone). ns 0: its time was not measured. */
void pfs_device_lookup_count(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
			     bool on_device, uint64_t ns);
/* Counts n questions that the host answered together in that time. */
void pfs_device_lookup_count_many(const struct pfs_tree *tree, enum pfs_device_lookup_kind kind,
				  uint64_t n, uint64_t ns);
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
