/* SPDX-License-Identifier: MIT */
/* tools/client/holder.h - which processes have a mounted filesystem in use, from what /proc shows this
 * user. */
#ifndef PFS_TOOLS_CLIENT_HOLDER_H
#define PFS_TOOLS_CLIENT_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the device number of what is mounted there, without asking its daemon; 0 if that
 * fails. */
uint64_t pfs_holder_device(const char *mountpoint);

/* Returns true, and in `out` a phrase such as "process 12 (cat) has a file open in it", if somebody
 * has it in use. here: it is still mounted in this namespace, so that others' mounts need not be
 * looked for. Asks no daemon anything. */
bool pfs_holder_find(char *out, size_t size, uint64_t device, bool here);

#endif
