/* SPDX-License-Identifier: MIT */
/* Whether there is room for what a hold will do.  A disk that filled up in the middle would leave a directory
 * with half of its entries: each change by itself finds out only when it is made. */
#include <string.h>

#include "tools/refresh/refresh_impl.h"

/* What the next group gets, at most. */
struct need {
	size_t rows;
	uint64_t bytes;
};

#define DIRECTORY_ROWS 4u /* the one that a change is in, and what is reserved for one more change than there are */

static void add_found(struct need *need, const struct pfs_finding *found)
{
	const struct pfs_crawl_entry *entry = found->entry;
	size_t at = entry->attrs;

	need->rows++;
	need->bytes += sizeof(struct pfs_source_record) + found->place->dir->path_len + strlen(found->name) +
		       entry->target_len;
	for (uint32_t i = 0; i < entry->n_attrs; i++) {
		struct pfs_crawl_attr attr;

		pfs_crawl_attr(found->batch, &attr, &at);
		need->bytes += attr.name_len + attr.value_len;
	}
}

/* What goes is touched, and what is reserved to remove it is as much again. */
static void add_gone(struct need *need, const struct pfs_gone *gone)
{
	for (; gone; gone = gone->next)
		if (!gone->present && !gone->claimed)
			need->rows += 2 * (gone->n_below + 1);
}

static int reserve(struct pfs_refresh *refresh, const struct need *need)
{
	return pfs_follow_reserve(refresh->tree, need->rows, need->bytes);
}

int pfs_refresh_reserve_moves(struct pfs_refresh *refresh)
{
	struct need need = {.rows = DIRECTORY_ROWS};

	for (const struct pfs_finding *found = refresh->found; found; found = found->following) {
		bool is_new = found->kind == PFS_FOUND_NEW && S_ISDIR(found->entry->attr.st_mode);

		if (!is_new && found->kind != PFS_FOUND_MOVED)
			continue;
		add_found(&need, found);
		need.rows += 3; /* both directories that it is moved between, and a node in its way */
	}
	return reserve(refresh, &need);
}

int pfs_refresh_reserve_place(struct pfs_refresh *refresh, const struct pfs_refresh_place *place)
{
	struct need need = {.rows = DIRECTORY_ROWS};

	for (const struct pfs_finding *found = place->found; found; found = found->next)
		add_found(&need, found);
	if (place->own)
		add_found(&need, place->own);
	add_gone(&need, place->gone);
	return reserve(refresh, &need);
}
