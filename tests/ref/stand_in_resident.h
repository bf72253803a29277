/* SPDX-License-Identifier: MIT */
/* tests/ref/stand_in_resident.h - a thread in place of the kernel that answers single questions,
 * over a B+-tree in the host's memory.  It fails at the call that stand_in says
 * (tests/ref/stand_in.h). */
#ifndef PFS_TESTS_REF_STAND_IN_RESIDENT_H
#define PFS_TESTS_REF_STAND_IN_RESIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_resident_backend;

struct stand_in_resident {
	long silent_after; /* questions; from then on it answers none.  Below 0: it always
			    * answers */
	uint64_t patience_ns;
	bool in_slices;
	void (*loading)(void); /* called amid each load; NULL: nothing */
	size_t paths; /* that it has resolved */
	unsigned refused; /* lists that are given no memory, the last ones */
	unsigned asked;	  /* atomic; how often memory for a list was asked for */
	bool is_full;	  /* it has no memory for the paths of a list */
	size_t looked_most; /* slots for the table of paths, by one who asks; nobody asks meanwhile
			     */
};

extern struct stand_in_resident stand_in_resident; /* all that are opened from now on */

PFS_MUST_CHECK int stand_in_resident_open(struct pfs_resident_backend **out);

#endif
