/* SPDX-License-Identifier: MIT */
/* gpu/host/dictionary.h - codes of a dictionary: which are equal under a collation, and their
 * order. */
#ifndef PFS_GPU_HOST_DICTIONARY_H
#define PFS_GPU_HOST_DICTIONARY_H

#include "gpu/host/operators.h"

/* Sets of[code] to the code's place in the collation's order; codes that are equal have the same.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_codes_rank(struct pfs_codes_map *out, const struct pfs_run *run,
				  const struct pfs_dictionary *dictionary,
				  enum pfs_collation collation);

/* Sets of[code] to the same code for all that are equal by the collation; `of` is NULL where each
 * is itself. */
PFS_MUST_CHECK int pfs_codes_fold(struct pfs_codes_map *out, const struct pfs_run *run,
				  const struct pfs_dictionary *dictionary,
				  enum pfs_collation collation);

/* Sets of[code of `from`] to the first code of `to` that is equal by the collation, or
 * PFS_NO_ROW. */
PFS_MUST_CHECK int pfs_codes_translate(struct pfs_codes_map *out, const struct pfs_run *run,
				       const struct pfs_dictionary *from,
				       const struct pfs_dictionary *to,
				       enum pfs_collation collation);

void pfs_codes_map_close(const struct pfs_run *run, struct pfs_codes_map *map);

#endif
