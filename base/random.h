/* SPDX-License-Identifier: MIT */
/* base/random.h - names that nobody can know before they are used, and so cannot put anything in their way. */
#ifndef PFS_BASE_RANDOM_H
#define PFS_BASE_RANDOM_H

#include <stddef.h>

#include "base/err.h"

#define PFS_RANDOM_SIZE 17 /* 16 hexadecimal digits and a NUL */

/* Fails only where the system has no random numbers. */
PFS_MUST_CHECK int pfs_random_digits(char out[PFS_RANDOM_SIZE]);

/* The same for bytes, 256 of them at most. */
PFS_MUST_CHECK int pfs_random_bytes(void *out, size_t size);

#endif
