/* SPDX-License-Identifier: MIT */
/* base/reserve.h - arrays that grow without moving: their address space is reserved at once, and
 * memory is committed when it is needed. Threads: the caller locks. */
#ifndef PFS_BASE_RESERVE_H
#define PFS_BASE_RESERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_reserve {
	void *base; /* NULL: nothing reserved */
	size_t committed, limit; /* bytes */
};

/* Returns true if the process may have only so much address space (ulimit -v). */
bool pfs_space_is_limited(void);

/* Reserves address space for `limit` bytes, or for less if the process has a limit (ulimit -v).
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_reserve_open(struct pfs_reserve *reserve, size_t limit);
/* Reserves address space for `size` bytes and makes them usable; they are 0. Pages that are not
 * touched take no memory. On an error nothing is reserved. -ENOMEM. */
PFS_MUST_CHECK int pfs_reserve_whole(struct pfs_reserve *reserve, size_t size);
void pfs_reserve_close(struct pfs_reserve *reserve);

/* Makes the first `size` bytes usable; bytes that were not usable before are 0. Commits memory in
 * steps of 1 MiB or of an eighth of what is committed. -ENOMEM, also if size is beyond the limit.
 */
PFS_MUST_CHECK int pfs_reserve_grow(struct pfs_reserve *reserve, size_t size);

/* Asks for huge pages, for memory that will be filled whole. It has no effect on less than 8 MiB,
 * or if the system has no huge pages. */
void pfs_expect_filled(void *memory, size_t size);

/* Returns a quarter of the machine's memory, in bytes: a bound for memory that leaves room for
 * other uses. */
uint64_t pfs_quarter_of_memory(void);

/* Makes all committed bytes 0. The system gets their memory back until they are written again. */
void pfs_reserve_clear(struct pfs_reserve *reserve);

#endif
