/* SPDX-License-Identifier: MIT */
/* fs/content/fdcache.h - a cache of open files, found by their node's prime.
 * Threads: any number of callers. A descriptor is never closed while a caller uses it. */
#ifndef PFS_FS_CONTENT_FDCACHE_H
#define PFS_FS_CONTENT_FDCACHE_H

#include <stdint.h>

#include "base/err.h"

struct pfs_fdcache;
struct pfs_fd;

/* Makes a cache that keeps at most `limit` descriptors open that no caller uses. *out is NULL on
 * failure. -ENOMEM. */
PFS_MUST_CHECK int pfs_fdcache_create(struct pfs_fdcache **out, unsigned limit);
void pfs_fdcache_destroy(struct pfs_fdcache *cache); /* no descriptor is in use; NULL is allowed */

/* Returns the file of that prime, to be given back with pfs_fdcache_put; NULL if the cache has
 * none. */
struct pfs_fd *pfs_fdcache_get(struct pfs_fdcache *cache, uint64_t prime);

/* Takes over the descriptor `number` for that prime, in place of the one that it had. The caller
 * uses *out, and gives it back. -ENOMEM: number is closed. */
PFS_MUST_CHECK int pfs_fdcache_add(struct pfs_fdcache *cache, struct pfs_fd **out, uint64_t prime,
				   int number);
void pfs_fdcache_put(struct pfs_fdcache *cache, struct pfs_fd *fd); /* NULL is allowed */

/* Removes the file of that prime: later calls of pfs_fdcache_get do not find it. */
void pfs_fdcache_drop(struct pfs_fdcache *cache, uint64_t prime);

/* Closes all descriptors that no caller uses, for a process that has too many files open. */
void pfs_fdcache_shrink(struct pfs_fdcache *cache);

int pfs_fd_number(const struct pfs_fd *fd);

#endif
