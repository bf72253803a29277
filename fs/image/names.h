/* SPDX-License-Identifier: MIT */
/* fs/image/names.h - the heap of names: bytes that a 32-bit place stands for, and that never move.
 *
 * Locks: tree->lock, for writing where names come and go, but for pfs_names_add_in. */
#ifndef PFS_FS_IMAGE_NAMES_H
#define PFS_FS_IMAGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "gpu/engine.h"

struct pfs_names;

#define PFS_NO_NAME   0u
#define PFS_NAME_UNIT 8u /* bytes that a place counts */
#define PFS_NAME_SLACK 320u /* so many bytes may be read from a name's start on, whatever is in them */

PFS_MUST_CHECK int pfs_names_create(struct pfs_names **out);
void pfs_names_destroy(struct pfs_names *names);
/* Copies a name, of PFS_NAME_MAX bytes at most, with a NUL behind it, into the heap; *place is
 * where it is. -ENOMEM. */
PFS_MUST_CHECK int pfs_names_add(struct pfs_names *names, uint32_t *place, const void *name,
				 size_t len);
/* As pfs_names_add, for several threads at once (loading), each with a region of its own, {0} at
 * first. Only what a region lacks is taken from the heap, under a lock of the heap's own. */
struct pfs_name_region {
	uint64_t next, end;
};
PFS_MUST_CHECK int pfs_names_add_in(struct pfs_names *names, struct pfs_name_region *region,
				    uint32_t *place, const void *name, size_t len);
/* Makes an empty heap one of `size` bytes, which the caller fills at *bytes: a unit of zeros, then
 * for each name its length, its bytes, and NULs up to a whole unit, one at least. A name's place is
 * the number of units before it. -ENOMEM. */
PFS_MUST_CHECK int pfs_names_adopt(struct pfs_names *names, void **bytes, uint64_t size);
void pfs_names_remove(struct pfs_names *names, uint32_t place);
/* From now on pfs_names_remove keeps the bytes of names whose places are below end, until
 * pfs_names_drain. number: the newest open snapshot's; 0: removed names are freed at once. Any
 * thread. */
void pfs_names_hold(struct pfs_names *names, uint64_t number, uint64_t end);
uint64_t
pfs_names_end(const struct pfs_names *names); /* behind the last place that was ever used */
/* Frees some of the names that were removed while the number was below `first`; first 0: some of
 * all removed names. Returns false if there are no more. */
bool pfs_names_drain(struct pfs_names *names, uint64_t first);
size_t
pfs_names_held(const struct pfs_names *names); /* how many names wait for that; any lock, or none */
/* Fills in the view of the heap for the engine's listings, but for place and n_slots. */
void pfs_names_view(const struct pfs_names *names, struct pfs_names_view *view);
/* Returns when blocks of the heap last changed, for devices that have a copy. */
const struct pfs_stamps *pfs_names_stamps(const struct pfs_names *names);
/* Returns a name, which stays where it is until it is removed, and its length. */
const char *pfs_names_get(const struct pfs_names *names, uint32_t place, size_t *len);
/* Compares two names as pfs_compare_bytes does. */
int pfs_names_compare(const struct pfs_names *names, uint32_t a, uint32_t b);
void pfs_names_prefetch(const struct pfs_names *names, uint32_t place);
uint64_t pfs_names_bytes(const struct pfs_names *names); /* of memory in use */

#endif
