/* SPDX-License-Identifier: MIT */
/* base/lazy.h - memory that is filled by blocks, each when somebody first touches it or one beside
 * it.
 *
 * Until then a block has no pages: whoever reads or writes it waits (userfaultfd(2)) until one of
 * the threads that stand by has filled the block beside and put it there, whole.  Code that uses
 * the memory need not know; only the kernel does not wait: a system call gets EFAULT, and what is
 * handed to one, or to a device's driver, is touched before (pfs_lazy_touch).  Where the system
 * does not let us, all is filled at once.  Stretches of 2 MiB that have been filled become large pages when nothing has
 * been asked for a while, if the kernel does that (Linux 6.1).
 *
 * Threads: any number touch it at once.  Creating, starting and closing: nobody touches it
 * meanwhile. */
#ifndef PFS_BASE_LAZY_H
#define PFS_BASE_LAZY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

struct pfs_lazy; /* several parts, and who fills them */
struct pfs_lazy_part;

/* Makes `count` blocks from block `first` on at `to`, which is zero so far, `size` bytes in all.  It cannot fail, may
 * do what any thread may, and looks at such memory, of another part that never waits for this one, only after
 * pfs_lazy_provide: nobody else would fill it. */
typedef void pfs_lazy_fill(void *context, void *to, uint64_t first, uint64_t count, size_t size);

/* -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_create(struct pfs_lazy **out);

/* The `size` bytes at `memory`, which are whole private anonymous pages but for the last one's end, are to be a part, in
 * blocks of block_size bytes (whole pages); what is there is forgotten, and the last page's end is zero.  Before the
 * start.  It is the lazy memory's; NULL: size is 0.  -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_add(struct pfs_lazy *lazy, struct pfs_lazy_part **out, void *memory, size_t size,
				size_t block_size, pfs_lazy_fill *fill, void *context);

/* Starts filling on demand. Where the kernel does not allow that, all parts are filled at once.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_lazy_start(struct pfs_lazy *lazy);

/* Ends the filling; the memory has to be unmapped next.  NULL is allowed. */
void pfs_lazy_close(struct pfs_lazy *lazy);

/* Waits until whoever fills a block has done with it, also where who touched it went on already:
 * what blocks are filled from may be changed and freed then, if nobody touches another. lazy may be
 * NULL. */
void pfs_lazy_settle(struct pfs_lazy *lazy);

/* As fork(2).  The child, in which no other thread is, has it filled (pfs_lazy_fill_all) before it touches any. */
pid_t pfs_lazy_fork(struct pfs_lazy *lazy);

/* Fills every block that has not been filled, on all processors.  In a child of pfs_lazy_fork alone. */
void pfs_lazy_fill_all(struct pfs_lazy *lazy);

/* Fills the blocks of these bytes of the part that have not been filled, or waits for whoever is filling one. */
void pfs_lazy_provide(struct pfs_lazy_part *part, size_t at, size_t size);

/* Returns true if the block has been filled, and may have changed since.  Just after a block was touched this may still be false. */
bool pfs_lazy_is_filled(const struct pfs_lazy_part *part, uint64_t number);

/* Returns true if nobody has touched the block or one beside it, and so nobody has changed it. */
bool pfs_lazy_is_absent(const struct pfs_lazy_part *part, uint64_t number);

/* Returns how many blocks have been filled. */
uint64_t pfs_lazy_filled(const struct pfs_lazy *lazy);

/* Returns true if blocks are filled when they are touched; false if this system has all filled at the start. */
bool pfs_lazy_is_possible(void);

/* Fills whatever of any memory, lazy or not, has not been filled. */
void pfs_lazy_touch(const void *memory, size_t size);

#endif
