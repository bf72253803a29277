/* SPDX-License-Identifier: MIT */
/* fs/query/relational/textheap.h - heaps (gpu/table.h) of texts that a statement made itself: how
 * they are laid out. */
#ifndef PFS_FS_QUERY_RELATIONAL_TEXTHEAP_H
#define PFS_FS_QUERY_RELATIONAL_TEXTHEAP_H

#include <string.h>

#include "base/checked.h"
#include "gpu/table.h"

#define PFS_TEXT_SHIFT 2 /* of places */

/* Returns how many bytes of a heap a text of len bytes takes. */
static inline uint64_t pfs_heap_room(size_t len)
{
	uint64_t unit = UINT64_C(1) << PFS_TEXT_SHIFT;

	return pfs_div_round_up(sizeof(uint32_t) + len, unit) * unit;
}

/* Puts a text at byte *at, which then is the one behind it; returns its place. */
static inline uint32_t pfs_heap_put(uint8_t *bytes, uint64_t *at, const void *text, size_t len)
{
	uint32_t place = (uint32_t)(*at >> PFS_TEXT_SHIFT);

	for (unsigned byte = 0; byte < sizeof(uint32_t); byte++)
		bytes[*at + byte] = (uint8_t)(len >> byte * 8);
	if (len)
		memcpy(bytes + *at + sizeof(uint32_t), text, len);
	*at += pfs_heap_room(len);
	return place;
}

/* Returns the heap of these bytes, which stay their owner's. */
static inline struct pfs_heap pfs_heap_of(const uint8_t *bytes, uint64_t size)
{
	return (struct pfs_heap){.bytes = bytes,
				 .size = size,
				 .place_shift = PFS_TEXT_SHIFT,
				 .length_size = sizeof(uint32_t)};
}

#endif
