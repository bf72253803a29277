/* SPDX-License-Identifier: MIT */
/* fs/mount/powers.h - whose stores may give powers to what they hold: files that run as their owner
 * (suid, sgid, capabilities) and device nodes. Whoever can write such a store, or put another in
 * its place, is root. */
#ifndef PFS_FS_MOUNT_POWERS_H
#define PFS_FS_MOUNT_POWERS_H

#include <stddef.h>

#include "base/err.h"

/* Returns 0 if the store (an absolute, resolved path) and each directory that it lies in belong to
 * root and nobody else can write them: then nobody else can make that untrue, either. Else -EPERM
 * or what stat(2) returns, and `why` is a line for people. */
PFS_MUST_CHECK int pfs_powers_check(char *why, size_t size, const char *store);

#endif
