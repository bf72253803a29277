/* SPDX-License-Identifier: MIT */
/* tests/ref/stand_in.h - a device for machines without one: the host back end, which fails when it
 * is told to, or has a wrong code.  Every operation counts as one call. */
#ifndef PFS_TESTS_REF_STAND_IN_H
#define PFS_TESTS_REF_STAND_IN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_backend;

struct stand_in {
	atomic_long
		calls_left; /* the call that makes it 0 fails, and all after it; LONG_MAX: none */
	int failure;	  /* -EIO or -ENOMEM */
	bool reads_fail;  /* else what is there can still be read */
	uint32_t spoiled; /* the directory number whose code a load gets wrong; 0: none */
	atomic_uint loads, applies; /* how often columns were loaded, and changed */
	_Atomic uint64_t
		names_sent; /* bytes of the heap of names that a device would have been sent */
};

extern struct stand_in stand_in; /* all of them */

PFS_MUST_CHECK int stand_in_open(struct pfs_backend **out);

/* Of a real device (gpu/engine_impl.h, which does not go together with meta/store.h). */
long pfs_cuda_fail_at(long n);

#endif
