/* SPDX-License-Identifier: MIT */
/* tests/vfs/memory.h - memory that runs out: requests of primefs's own code (malloc, calloc,
 * realloc, mmap; not those made inside libraries) that one thread makes.  The test is linked with
 * --wrap of the four, and with memory.o (mk/vfs.mk). */
#ifndef PFS_TESTS_VFS_MEMORY_H
#define PFS_TESTS_VFS_MEMORY_H

#include <stdbool.h>

#define MEMORY_FOR_EVER (-1)

/* Of this thread's next requests so many are granted, then `count` refused, then all granted. */
void memory_refuse(int granted, int count);

/* All are granted again.  True: one has been refused. */
bool memory_grant(void);

#endif
