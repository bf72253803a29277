/* SPDX-License-Identifier: MIT */
/* fs/image/slotmap.h - finds a slot by its node's prime: a hash that keeps slots only and looks
 * primes up in their column. It grows a little with every insert, never all at once.
 *
 * Locks: tree->lock, for writing where something changes. */
#ifndef PFS_FS_IMAGE_SLOTMAP_H
#define PFS_FS_IMAGE_SLOTMAP_H

#include <stdint.h>

#include "base/err.h"

struct pfs_slot_map;

PFS_MUST_CHECK int pfs_slot_map_create(struct pfs_slot_map **out);
void pfs_slot_map_destroy(struct pfs_slot_map *map);
/* Makes room for `count` slots in all; many more than there are only while the map is empty.
 * -ENOMEM. */
PFS_MUST_CHECK int pfs_slot_map_reserve(struct pfs_slot_map *map, uint64_t count);
void pfs_slot_map_insert(struct pfs_slot_map *map, const uint64_t *primes, uint32_t slot);
/* Inserts the slots from `from` to before `to` that have a prime. Any number of threads may, each
 * for slots of its own, if room for all was made while the map was empty. */
void pfs_slot_map_fill(struct pfs_slot_map *map, const uint64_t *primes, uint32_t from,
		       uint32_t to);
void pfs_slot_map_remove(struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime);
uint32_t pfs_slot_map_find(const struct pfs_slot_map *map, const uint64_t *primes, uint64_t prime);
/* Makes a find of that prime, a little later, faster. */
void pfs_slot_map_prefetch(const struct pfs_slot_map *map, uint64_t prime);

/* Returns the cells as they lie in memory, for the image file. Only for a map from which nothing
 * was removed, and that has not grown since it was reserved. */
const uint32_t *pfs_slot_map_cells(const struct pfs_slot_map *map, uint32_t *n_cells);
/* Makes an empty map one of such cells, which the caller fills at *cells; n_used of them, fewer
 * than all, are not 0. -ENOMEM. */
PFS_MUST_CHECK int pfs_slot_map_adopt(struct pfs_slot_map *map, uint32_t **cells, uint32_t n_cells,
				      uint32_t n_used);
uint64_t pfs_slot_map_memory(const struct pfs_slot_map *map);

#endif
