/* SPDX-License-Identifier: MIT */
/* base/lazy.h - memory that is filled by blocks, each when somebody first touches it.
 *
 * Until then a block cannot be accessed: whoever reads or writes it gets SIGSEGV, which a handler answers by
 * filling the block beside and putting it in its place at once, so that nobody sees half of it.  Code that
 * uses the memory need not know; only the kernel does not wait: a system call gets EFAULT, and what is handed to
 * one is touched before (pfs_lazy_touch).
 *
 * Threads: any number touch it at once, also such as the signal is not blocked in alone.  Opening and closing: nobody
 * touches it meanwhile.  After a fork the child's memory is as lazy. */
#ifndef PFS_BASE_LAZY_H
#define PFS_BASE_LAZY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pfs_lazy;

/* Makes `count` blocks from block `first` on at `to`, which is zero so far, `size` bytes in all; runs in a signal
 * handler, where a thread touches one of the blocks for the first time, and may touch other such memory whose blocks
 * are not waiting for these.  It cannot fail. */
typedef void pfs_lazy_fill(void *context, void *to, uint64_t first, uint64_t count, size_t size);

/* From now on the `size` bytes at `memory`, which are whole private anonymous pages but for the last one's end, are
 * such memory, in blocks of block_size bytes (whole pages); the last page's end is zero.  One block is filled at a
 * time, but more where those before have been, and where many have: each that stands alone is a mapping, of which a
 * process may have so many only.  -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_open(struct pfs_lazy **out, void *memory, size_t size, size_t block_size,
				 pfs_lazy_fill *fill, void *context);
/* The memory has to be unmapped next.  NULL: nothing. */
void pfs_lazy_close(struct pfs_lazy *lazy);

/* Whether the block has been filled: it may have changed since. */
bool pfs_lazy_is_filled(const struct pfs_lazy *lazy, uint64_t number);

/* How many of the blocks have been filled. */
uint64_t pfs_lazy_filled(const struct pfs_lazy *lazy);

/* Has it filled what is not, of any memory. */
void pfs_lazy_touch(const void *memory, size_t size);

#endif
