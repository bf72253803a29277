/* SPDX-License-Identifier: MIT */
/* fs/mount/powers.h - which stores may hold files with powers: files that run as their owner (suid,
 * sgid, capabilities) and device nodes. A user who can write such a store, or put another in its
 * place, can become root. */
#ifndef PFS_FS_MOUNT_POWERS_H
#define PFS_FS_MOUNT_POWERS_H

#include <stddef.h>

#include "base/err.h"

/* Returns 0 if the store (an absolute, resolved path) and each directory above it belong to root
 * and no other user can write them; then no other user can change that, either. Else returns -EPERM
 * or the error of stat(2), and `why` is a line for people. */
PFS_MUST_CHECK int pfs_powers_check(char *why, size_t size, const char *store);

#endif
