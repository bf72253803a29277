/* SPDX-License-Identifier: MIT */
#include "fs/image/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

static void set_count(struct pfs_kept *kept)
{
	atomic_store_explicit(&kept->count, kept->n - kept->first, memory_order_relaxed);
}

int pfs_kept_add(struct pfs_kept *kept, uint32_t what, uint64_t number)
{
	/* Snapshots may follow each other without a moment at which none is open, so that the queue
	 * is never empty: what was taken out of it makes room. */
	if (kept->n == kept->capacity && kept->first > kept->n / 2) {
		kept->n -= kept->first;
		memmove(kept->items, kept->items + kept->first, kept->n * sizeof(*kept->items));
		kept->first = 0;
	}
	PFS_TRY(pfs_grow(&kept->items, &kept->capacity, kept->n + 1, sizeof(*kept->items)));
	kept->items[kept->n++] = (struct pfs_kept_item){what, number};
	set_count(kept);
	return 0;
}

bool pfs_kept_take(struct pfs_kept *kept, uint32_t *what, uint64_t first)
{
	if (kept->first == kept->n || (first && first <= kept->items[kept->first].number))
		return false;
	*what = kept->items[kept->first++].what;
	if (kept->first == kept->n)
		kept->first = kept->n = 0;
	set_count(kept);
	return true;
}

size_t pfs_kept_count(const struct pfs_kept *kept)
{
	return atomic_load_explicit(&kept->count, memory_order_relaxed);
}

void pfs_kept_finish(struct pfs_kept *kept)
{
	free(kept->items);
	*kept = (struct pfs_kept){0};
}
