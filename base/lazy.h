/* SPDX-License-Identifier: MIT */
/* base/lazy.h - memory in blocks, each of which is filled when a thread first touches it or a block
 * beside it.
 *
 * A block that is not filled has no pages. A thread that reads or writes it waits (userfaultfd(2))
 * until a thread of this module has filled a block elsewhere and moved it there, whole. Code that
 * uses the memory need not know of this, with one exception: a system call that gets the address of
 * such memory fails with EFAULT, so memory is touched (pfs_lazy_touch) before it is given to a
 * system call or to a device's driver. If the system does not allow this, all memory is filled at
 * the start. Ranges of 2 MiB that have been filled, and not with zeros for the greater part, become
 * large pages after a while without any filling, if the kernel can do that (Linux 6.1).
 *
 * Threads: any number touch the memory at once; none while it is created, started or closed. */
#ifndef PFS_BASE_LAZY_H
#define PFS_BASE_LAZY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct pfs_lazy; /* several parts, and the threads that fill them */
struct pfs_lazy_part;

/* Writes `count` blocks, from block number `first` on, to `to`: `size` bytes, which are 0 before.
 * It cannot fail. If it reads lazy memory, that belongs to a part whose filling does not read this
 * part, and it calls pfs_lazy_provide first: it runs on the thread that would have to fill it. */
typedef void pfs_lazy_fill(void *context, void *to, uint64_t first, uint64_t count, size_t size);

/* Makes lazy memory without parts. -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_create(struct pfs_lazy **out);

/* Makes a part of the `size` bytes at `memory`, in blocks of block_size bytes. The memory is
 * private anonymous pages, and block_size a multiple of a page. What the pages hold is lost, and
 * the last page is 0 behind `size`. Call this before pfs_lazy_start. *out belongs to `lazy`; it is
 * NULL if size is 0. -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_add(struct pfs_lazy *lazy, struct pfs_lazy_part **out, void *memory,
				size_t size, size_t block_size, pfs_lazy_fill *fill, void *context);

/* Starts filling on demand; if the kernel does not allow that, fills all parts. -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_start(struct pfs_lazy *lazy);

/* Ends the filling. The caller then unmaps the memory. NULL is allowed. */
void pfs_lazy_close(struct pfs_lazy *lazy);

/* Waits until no block is being put in its place. If no thread touches another block from now on,
 * or asks pfs_lazy_get, what the blocks are filled from may be changed and freed. NULL is
 * allowed. */
void pfs_lazy_settle(struct pfs_lazy *lazy);

/* As fork(2). The child has no thread that fills blocks, so it calls pfs_lazy_fill_all before it
 * touches the memory. */
pid_t pfs_lazy_fork(struct pfs_lazy *lazy);

/* Fills every block that is not filled, on all processors. Only for a child of pfs_lazy_fork. */
void pfs_lazy_fill_all(struct pfs_lazy *lazy);

/* Makes sure that the blocks with these bytes of the part are filled; `at` is an offset. Waits for
 * blocks that another thread is filling. */
void pfs_lazy_provide(struct pfs_lazy_part *part, size_t at, size_t size);

/* Copies `size` bytes from offset `at` on, which lie in one block, to `to`. The first time that
 * somebody asks so about a block that nobody has touched, the block is not filled: who asks for one
 * value may never come back. Nobody writes to the block meanwhile. */
void pfs_lazy_get(struct pfs_lazy_part *part, void *to, size_t at, size_t size);

/* Returns true if the block has been filled, and so may have changed since. It may return false for
 * a moment after the block was touched. */
bool pfs_lazy_is_filled(const struct pfs_lazy_part *part, uint64_t number);

/* Returns true if nobody has begun to fill the block, so that it has not changed. */
bool pfs_lazy_is_absent(const struct pfs_lazy_part *part, uint64_t number);

/* Returns how many blocks have been filled. */
uint64_t pfs_lazy_filled(const struct pfs_lazy *lazy);

/* Returns true if this system allows filling on demand; false if pfs_lazy_start fills all. */
bool pfs_lazy_is_possible(void);

/* Fills what is lazy of these bytes of any memory, on the thread that calls. It is as if they were
 * touched, without a fault for each stretch of them: who is about to read many calls it first. */
void pfs_lazy_touch(const void *memory, size_t size);

#endif
