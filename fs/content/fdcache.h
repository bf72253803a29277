/* SPDX-License-Identifier: MIT */
/* fs/content/fdcache.h - a bounded number of open files, found by their node's prime.
 * Threads: any number of callers. A descriptor that is in use is closed only when it is given
 * back. */
#ifndef PFS_FS_CONTENT_FDCACHE_H
#define PFS_FS_CONTENT_FDCACHE_H

#include <stdint.h>

#include "base/err.h"

struct pfs_fdcache;
struct pfs_fd;

/* Makes a cache that keeps at most `limit` descriptors that nobody uses. *out is NULL on failure.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_fdcache_create(struct pfs_fdcache **out, unsigned limit);
void pfs_fdcache_destroy(struct pfs_fdcache *cache); /* NULL is allowed; none is in use */

/* Returns the file of that prime, to be given back with pfs_fdcache_put; NULL if the cache has
 * none. */
struct pfs_fd *pfs_fdcache_get(struct pfs_fdcache *cache, uint64_t prime);

/* Takes over the descriptor `number`, in place of what was there for that prime; the caller uses it
 * and gives it back. -ENOMEM: number is closed. */
PFS_MUST_CHECK int pfs_fdcache_add(struct pfs_fdcache *cache, struct pfs_fd **out, uint64_t prime,
				   int number);
void pfs_fdcache_put(struct pfs_fdcache *cache, struct pfs_fd *fd); /* NULL is allowed */

/* Makes sure that nobody gets the file of that prime any more. */
void pfs_fdcache_drop(struct pfs_fdcache *cache, uint64_t prime);

/* Closes what nobody uses, when the process has too many files open. */
void pfs_fdcache_shrink(struct pfs_fdcache *cache);

int pfs_fd_number(const struct pfs_fd *fd);

#endif
