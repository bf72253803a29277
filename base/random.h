/* SPDX-License-Identifier: MIT */
/* base/random.h - random bytes that nobody can guess, for names of files that nobody else can have
 * created before, and for hash tables. Threads: any number of callers. */
#ifndef PFS_BASE_RANDOM_H
#define PFS_BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define PFS_RANDOM_SIZE 17 /* 16 hexadecimal digits and a NUL */

/* Writes 16 hexadecimal digits and a NUL. Fails only if the system has no random numbers, with the
 * errno of getrandom(2). */
PFS_MUST_CHECK int pfs_random_digits(char out[PFS_RANDOM_SIZE]);

/* Writes `size` random bytes, 256 at most. Fails as pfs_random_digits does. */
PFS_MUST_CHECK int pfs_random_bytes(void *out, size_t size);

/* Returns the seed of this process's hash tables (base/hash.h), which is drawn at the first call.
 * If the system has no random numbers, it comes from the clock. */
uint64_t pfs_random_seed(void);
/* Has the next calls of pfs_random_seed return this seed, for tests. */
void pfs_random_use_seed(uint64_t seed);

#endif
