/* SPDX-License-Identifier: MIT */
/* fs/image/kept.h - a queue of names or slots that are gone from the image, and that are freed when
 * the snapshots that were open then have ended.
 *
 * Locks: tree->lock for writing, but for pfs_kept_count. */
#ifndef PFS_FS_IMAGE_KEPT_H
#define PFS_FS_IMAGE_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_kept_item {
	uint32_t what; /* a place in the heap of names, or a slot */
	uint64_t number; /* of the newest snapshot that was open when it went */
};

struct pfs_kept {
	struct pfs_kept_item *items; /* from first on, in the order in which they went */
	size_t first, n, capacity;
	_Atomic size_t count; /* n - first */
};

/* Adds an item, which is taken out after those before it. -ENOMEM. */
PFS_MUST_CHECK int pfs_kept_add(struct pfs_kept *kept, uint32_t what, uint64_t number);
/* Takes the first item out if no snapshot keeps it: its number is below `first`, the number of the
 * oldest snapshot that is open (0: none is). Returns false if there is none to take. */
bool pfs_kept_take(struct pfs_kept *kept, uint32_t *what, uint64_t first);
size_t pfs_kept_count(const struct pfs_kept *kept); /* any lock, or none */
void pfs_kept_finish(struct pfs_kept *kept);

#endif
