/* SPDX-License-Identifier: MIT */
/* tools/client/holder.h - which processes use a mounted filesystem, as far as /proc shows it to
 * this user. */
#ifndef PFS_TOOLS_CLIENT_HOLDER_H
#define PFS_TOOLS_CLIENT_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the device number of the filesystem that is mounted there, without asking its daemon; 0:
 * it cannot be found out. */
uint64_t pfs_holder_device(const char *mountpoint);

/* Returns true if a process uses the filesystem, and writes a phrase about it into `out`, such as
 * "process 12 (cat) has a file open in it". here: it is still mounted in this namespace, so that
 * mounts in other namespaces need not be looked for. Asks no daemon. */
bool pfs_holder_find(char *out, size_t size, uint64_t device, bool here);

#endif
