/* SPDX-License-Identifier: MIT */
/* tools/bench/s5_peers.h - other ordered maps of 64-bit keys to 32-bit values, for primefs-bench
 * s5: abseil's btree_map, if tools/setup bench has brought it, and SQLite's B-tree, an INTEGER
 * PRIMARY KEY in memory.  Each does one key after the other, in one thread. */
#ifndef PFS_TOOLS_BENCH_S5_PEERS_H
#define PFS_TOOLS_BENCH_S5_PEERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum pfs_s5_peer_kind { PFS_S5_ABSEIL, PFS_S5_SQLITE, PFS_S5_PEERS };

struct pfs_s5_peer;

/* Opens an empty map. -ENOENT: there is no such library. */
PFS_MUST_CHECK int pfs_s5_peer_open(struct pfs_s5_peer **out, enum pfs_s5_peer_kind kind);
void pfs_s5_peer_close(struct pfs_s5_peer *peer); /* NULL is allowed */
const char *pfs_s5_peer_name(enum pfs_s5_peer_kind kind);

/* All return -EIO: SQLite failed, which is logged. */

/* The keys ascend, and nothing is there. */
PFS_MUST_CHECK int pfs_s5_peer_fill(struct pfs_s5_peer *peer, const uint64_t *keys,
				    const uint32_t *values, size_t n);
/* values[i]: of keys[i]; UINT32_MAX: there is none. */
PFS_MUST_CHECK int pfs_s5_peer_find(struct pfs_s5_peer *peer, uint32_t *values,
				    const uint64_t *keys, size_t n);
/* Copies all there is, in order, into arrays that have the room. */
PFS_MUST_CHECK int pfs_s5_peer_visit(struct pfs_s5_peer *peer, uint64_t *keys, uint32_t *values);
/* The keys are new; they are there. */
PFS_MUST_CHECK int pfs_s5_peer_insert(struct pfs_s5_peer *peer, const uint64_t *keys,
				      const uint32_t *values, size_t n);
PFS_MUST_CHECK int pfs_s5_peer_remove(struct pfs_s5_peer *peer, const uint64_t *keys, size_t n);

#endif
