/* SPDX-License-Identifier: MIT */
/* fs/image/rare_values.h - values that few nodes have: device numbers, symlink targets, times that
 * nanoseconds in 64 bits cannot say.
 *
 * Locks: tree->lock, for writing where something changes. */
#ifndef PFS_FS_IMAGE_RARE_VALUES_H
#define PFS_FS_IMAGE_RARE_VALUES_H

#include <stdint.h>

#include "base/err.h"
#include "meta/store.h"

struct pfs_rare;

enum { PFS_RARE_ATIME, PFS_RARE_MTIME, PFS_RARE_CTIME, PFS_RARE_TIMES };

struct pfs_rare_values {
	uint32_t slot;
	uint32_t target_len;
	char *target; /* symlinks; NUL-terminated, owned; set by pfs_rare_set_target alone */
	uint64_t rdev;
	struct pfs_time times[PFS_RARE_TIMES];
};

PFS_MUST_CHECK int pfs_rare_create(struct pfs_rare **out);
void pfs_rare_destroy(struct pfs_rare *rare);
/* Gets the slot's values, and makes them (zero) if there are none. Valid until the next get or
 * drop. -ENOMEM. */
PFS_MUST_CHECK int pfs_rare_get(struct pfs_rare *rare, struct pfs_rare_values **out, uint32_t slot);
/* Returns the slot's values; NULL if there are none. */
const struct pfs_rare_values *pfs_rare_find(const struct pfs_rare *rare, uint32_t slot);
/* Gives the node, which has none, its target; takes over `target` (NULL is allowed). */
void pfs_rare_set_target(struct pfs_rare *rare, struct pfs_rare_values *values, char *target,
			 uint32_t len);
/* Returns the bytes of all targets. */
uint64_t pfs_rare_target_bytes(const struct pfs_rare *rare);
void pfs_rare_drop(struct pfs_rare *rare, uint32_t slot);

#endif
