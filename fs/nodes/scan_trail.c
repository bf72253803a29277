/* SPDX-License-Identifier: MIT */
/* The way from the root to a node, kept while a scan goes from one node to its neighbour
 * (scan_impl.h). */
#include "fs/nodes/scan_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/names.h"

#define NOWHERE SIZE_MAX
/* Room for so many at once: growing takes longer than many a trail. */
#define LEVELS 64u
#define BYTES  512u

/* NOWHERE, too, when another slot on the trail has the same last bits. */
static size_t level_of(const struct pfs_trail *trail, uint32_t slot)
{
	size_t level = trail->level[slot % PFS_COUNT(trail->level)];

	return level < trail->n && trail->slot[level] == slot ? level : NOWHERE;
}

static int make_room(struct pfs_trail *trail)
{
	size_t n = PFS_MAX(trail->n + 1, LEVELS);

	PFS_TRY(pfs_grow(&trail->slot, &trail->slots_capacity, n, sizeof(*trail->slot)));
	return pfs_grow(&trail->end, &trail->ends_capacity, n, sizeof(*trail->end));
}

static int push(struct pfs_trail *trail, const struct pfs_image *image, uint32_t slot,
		bool keep_bytes)
{
	size_t end = trail->n ? trail->end[trail->n - 1] : 0;

	PFS_TRY(make_room(trail));
	if (trail->n) {
		size_t len;
		const char *name = pfs_names_get(image->names, image->name[slot], &len);

		if (keep_bytes) {
			PFS_TRY(pfs_grow(&trail->bytes, &trail->bytes_capacity,
					 PFS_MAX(end + len + 1, BYTES), 1));
			trail->bytes[end] = '/';
			memcpy(trail->bytes + end + 1, name, len);
		}
		end += len + 1;
	}
	trail->level[slot % PFS_COUNT(trail->level)] = (uint32_t)trail->n;
	trail->slot[trail->n] = slot;
	trail->end[trail->n++] = end;
	return 0;
}

int pfs_trail_meet(struct pfs_trail *trail, const struct pfs_image *image, uint32_t slot,
		   size_t *level)
{
	trail->n_missing = 0;
	while ((*level = level_of(trail, slot)) == NOWHERE && slot != image->root) {
		PFS_TRY(pfs_grow(&trail->missing, &trail->missing_capacity,
				 PFS_MAX(trail->n_missing + 1, LEVELS), sizeof(*trail->missing)));
		trail->missing[trail->n_missing++] = slot;
		slot = image->parent[slot];
	}
	if (*level == NOWHERE)
		*level = 0; /* the root */
	if (trail->n == 0)
		return push(trail, image, slot, false);
	while (trail->n_missing && *level + 1 < trail->n && /* overlooked */
	       trail->slot[*level + 1] == trail->missing[trail->n_missing - 1]) {
		trail->n_missing--;
		++*level;
	}
	return 0;
}

int pfs_trail_turn(struct pfs_trail *trail, const struct pfs_image *image, size_t level,
		   bool keep_bytes)
{
	trail->n = level + 1;
	while (trail->n_missing > 0)
		PFS_TRY(push(trail, image, trail->missing[--trail->n_missing], keep_bytes));
	return 0;
}

int pfs_trail_to(struct pfs_trail *trail, const struct pfs_image *image, uint32_t slot,
		 bool keep_bytes)
{
	size_t level;

	if (trail->n && trail->slot[trail->n - 1] == slot)
		return 0;
	PFS_TRY(pfs_trail_meet(trail, image, slot, &level));
	return pfs_trail_turn(trail, image, level, keep_bytes);
}

void pfs_trail_finish(struct pfs_trail *trail)
{
	free(trail->slot);
	free(trail->end);
	free(trail->bytes);
	free(trail->missing);
}
