/* SPDX-License-Identifier: MIT */
/* tests/unit/watch_util.h - a watcher that keeps a copy of the image's columns by what it is told
 * alone: if a setter forgets to tell, the copy is wrong. */
#ifndef PFS_TESTS_WATCH_UTIL_H
#define PFS_TESTS_WATCH_UTIL_H

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "fs/image/image.h"
#include "fs/image/watch.h"
#include "fs/tree/tree_impl.h"

#define SHADOW_COLUMNS 13 /* bits of enum pfs_columns_bits, PFS_COLUMN_LIVE apart */

struct shadow_row {
	uint64_t value[SHADOW_COLUMNS];
	bool live;
};

static struct {
	struct shadow_row *rows;
	size_t n;
	unsigned untold; /* columns that had changed before anybody said so */
} shadow;

static void shadow_read(const struct pfs_image *image, struct shadow_row *row, uint32_t slot)
{
	*row = (struct shadow_row){
		.value = {image->prime[slot], image->parent[slot], image->name[slot],
			  image->mode[slot], image->flags[slot], image->uid[slot],
			  image->gid[slot], (uint64_t)image->size[slot],
			  (uint64_t)image->blocks[slot], (uint64_t)image->atime[slot],
			  (uint64_t)image->mtime[slot], (uint64_t)image->ctime[slot],
			  image->links[slot]},
		.live = pfs_image_is_live(image, slot),
	};
}

static void shadow_reach(uint32_t end)
{
	size_t n = shadow.n;

	if (end <= n)
		return;
	if (pfs_grow(&shadow.rows, &shadow.n, end, sizeof(*shadow.rows)))
		abort();
	memset(shadow.rows + n, 0, (shadow.n - n) * sizeof(*shadow.rows));
}

static void shadow_changing(struct pfs_tree *of, uint32_t slot, unsigned columns)
{
	struct shadow_row now;

	shadow_reach(slot + 1);
	shadow_read(&of->image, &now, slot);
	if (!shadow.rows[slot].live)
		return;
	for (unsigned i = 0; i < SHADOW_COLUMNS; i++)
		shadow.untold += (columns >> i & 1) && shadow.rows[slot].value[i] != now.value[i];
}

static void shadow_changed(struct pfs_tree *of, uint32_t slot, unsigned columns)
{
	struct shadow_row now;

	shadow_reach(slot + 1);
	shadow_read(&of->image, &now, slot);
	for (unsigned i = 0; i < SHADOW_COLUMNS; i++)
		if (columns & (1u << i | PFS_COLUMN_LIVE))
			shadow.rows[slot].value[i] = now.value[i];
	if (columns & PFS_COLUMN_LIVE)
		shadow.rows[slot].live = now.live;
}

static bool shadow_check(struct pfs_tree *of)
{
	const struct pfs_image *image = &of->image;

	shadow_reach(image->end);
	for (uint32_t slot = 0; slot < image->end; slot++) {
		struct shadow_row now;

		shadow_read(image, &now, slot);
		if (now.live != shadow.rows[slot].live)
			return false;
		if (now.live && memcmp(now.value, shadow.rows[slot].value, sizeof(now.value)) != 0)
			return false;
	}
	return !shadow.untold;
}

static const struct pfs_watcher shadow_watcher = {
	.name = "shadow",
	.columns = PFS_COLUMNS_ALL,
	.changing = shadow_changing,
	.changed = shadow_changed,
	.check = shadow_check,
};

/* From here on until the tree is closed; pfs_watch_check checks it, too. */
static inline void shadow_begin(struct pfs_tree *of)
{
	free(shadow.rows);
	memset(&shadow, 0, sizeof(shadow));
	pfs_hold_write(of, __func__);
	shadow_reach(of->image.end);
	for (uint32_t slot = 0; slot < of->image.end; slot++)
		shadow_read(&of->image, &shadow.rows[slot], slot);
	pfs_watch(of, &shadow_watcher);
	pfs_hold_end(of);
}

#endif
