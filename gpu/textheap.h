/* SPDX-License-Identifier: MIT */
/* gpu/textheap.h - heaps (gpu/table.h) of texts that a statement or an operator made itself: how
 * they are laid out. */
#ifndef PFS_GPU_TEXTHEAP_H
#define PFS_GPU_TEXTHEAP_H

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

/* Returns where the bytes of the text of that place are to be written, which pfs_heap_end then
 * gives their number. */
static inline uint8_t *pfs_heap_begin(uint8_t *bytes, uint32_t place)
{
	return bytes + ((uint64_t)place << PFS_TEXT_SHIFT) + sizeof(uint32_t);
}

static inline void pfs_heap_end(uint8_t *text, size_t len)
{
	for (unsigned byte = 0; byte < sizeof(uint32_t); byte++)
		text[byte - sizeof(uint32_t)] = (uint8_t)(len >> byte * 8);
}

/* Puts a text at byte *at, which then is the one behind it; returns its place. */
static inline uint32_t pfs_heap_put(uint8_t *bytes, uint64_t *at, const void *text, size_t len)
{
	uint32_t place = (uint32_t)(*at >> PFS_TEXT_SHIFT);
	uint8_t *to = pfs_heap_begin(bytes, place);

	pfs_heap_end(to, len);
	if (len)
		memcpy(to, text, len);
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
