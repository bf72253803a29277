/* SPDX-License-Identifier: MIT */
/* fs/image/single.h - single questions about names and ways up. With --engine=cuda a kernel that
 * stays on the device answers them (gpu/resident.h); without it nothing is answered here, and the
 * caller asks the image.
 *
 * The device's index of names and its column of parents follow the image as a watcher: changes are
 * gathered under the write lock and sent as a batch before the next question. The device finds the
 * names of a hash; their bytes are compared here.
 *
 * A function that returns false leaves the question to its caller: there is no device, it has
 * failed, or the image is one that stands still.
 *
 * Locks: any lock on the tree, unless it says otherwise. */
#ifndef PFS_FS_IMAGE_SINGLE_H
#define PFS_FS_IMAGE_SINGLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/btree.h"
#include "base/err.h"
#include "fs/tree/tree.h"
#include "gpu/resident.h"

enum pfs_single_kind {
	PFS_SINGLE_LOOKUP,
	PFS_SINGLE_LIST, /* some of a directory's entries */
	PFS_SINGLE_ANCESTOR,
	PFS_SINGLE_MOVE,
	PFS_SINGLE_CHILD,
	PFS_SINGLE_COMMON,
	PFS_SINGLE_CODE,
	PFS_SINGLE_PATH, /* of many at once (pfs_tree_resolve_many); no device is asked */
	PFS_SINGLE_KINDS,
};

PFS_MUST_CHECK int pfs_single_create(struct pfs_tree *tree);
void pfs_single_destroy(struct pfs_tree *tree);
/* Lets a device answer from now on, if the tree's engine is CUDA. No lock is held. */
void pfs_single_start(struct pfs_tree *tree);

/* Gets up to `capacity` entries, PFS_MAILBOX_ENTRIES at most, from (key, slot) on whose keys are
 * `last` at most; *n is how many. kind: LOOKUP or LIST. */
bool pfs_single_entries(const struct pfs_tree *tree, struct pfs_btree_entry *out, unsigned *n,
			enum pfs_single_kind kind, const struct pfs_btree_entry *from, uint64_t last,
			unsigned capacity);
/* Sets *under if `slot` is `top` or lies under it. kind: ANCESTOR or MOVE. */
bool pfs_single_is_under(const struct pfs_tree *tree, bool *under, enum pfs_single_kind kind,
			 uint32_t slot, uint32_t top);
bool pfs_single_is_child(const struct pfs_tree *tree, bool *child, uint32_t slot, uint32_t parent);
bool pfs_single_common(const struct pfs_tree *tree, uint32_t *common, uint32_t a, uint32_t b);

/* Counts a question that the host answered or, for CODE, the device. ns 0: its time was not
 * measured. */
void pfs_single_count(const struct pfs_tree *tree, enum pfs_single_kind kind, bool on_device, uint64_t ns);
/* Counts n questions that the host answered together in that time. */
void pfs_single_count_many(const struct pfs_tree *tree, enum pfs_single_kind kind, uint64_t n,
			   uint64_t ns);
/* As pfs_single_count for the host, around the question; the time of one in PFS_SINGLE_TIMED is
 * measured. */
#define PFS_SINGLE_TIMED 64u
uint64_t pfs_single_host_begin(const struct pfs_tree *tree, enum pfs_single_kind kind);
void pfs_single_host_end(const struct pfs_tree *tree, enum pfs_single_kind kind, uint64_t began);

struct pfs_single_count {
	uint64_t n, timed; /* questions, and those of them whose time was measured, */
	uint64_t ns;	   /* which took so long together */
};

struct pfs_single_stats {
	bool by_device; /* questions go there */
	struct pfs_single_count host[PFS_SINGLE_KINDS], device[PFS_SINGLE_KINDS];
	struct pfs_resident_info info; /* zero without a device */
};
/* Gets the counts. No lock is held. */
void pfs_single_stats(struct pfs_tree *tree, struct pfs_single_stats *out);
const char *pfs_single_name(enum pfs_single_kind kind);

#endif
