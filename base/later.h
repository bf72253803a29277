/* SPDX-License-Identifier: MIT */
/* base/later.h - when freed memory goes back to the system.
 *
 * Memory that is freed a moment later: to give much of it back to the system takes milliseconds,
 * for which a thread must not keep a lock that others wait for.
 *
 * Threads: each puts off what it frees itself. Who counts memory counts it as freed at once, so
 * that for that moment up to PFS_LATER_MAX bytes more are in use than are counted. */
#ifndef PFS_BASE_LATER_H
#define PFS_BASE_LATER_H

#include <stddef.h>

#define PFS_LATER_MIN ((size_t)128 << 10) /* bytes of one allocation; what is smaller is freed at once */
#define PFS_LATER_MAX ((size_t)256 << 20) /* bytes that one thread puts off; what is more is freed at once */

/* From begin to end pfs_free_later puts off what it frees, and end frees that. */
void pfs_later_begin(void);
void pfs_later_end(void);

/* As free(3), now or, if it is put off, later. The memory is not to be used any more. */
void pfs_free_later(void *memory);

static inline void pfs_cleanup_free_later(void *pointer_to_pointer)
{
	pfs_free_later(*(void **)pointer_to_pointer);
}

/* Makes the system get allocations of PFS_LARGE_MIN bytes or more back as soon as they are freed,
 * in the whole process. By itself glibc takes ever larger ones, up to 32 MiB, from heaps of which
 * it has many and which keep what is freed. */
#define PFS_LARGE_MIN ((size_t)4 << 20)
void pfs_large_is_given_back(void);

#define PFS_FREE_LATER __attribute__((cleanup(pfs_cleanup_free_later))) /* as PFS_FREE of base/cleanup.h */

#endif
