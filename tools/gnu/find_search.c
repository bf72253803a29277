/* SPDX-License-Identifier: MIT */
#include "tools/gnu/find_search.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"

/* ---- columns ---- */

static const struct {
	unsigned need;
	const char *column;
} columns[] = {
	{PFS_FIND_INO, "ino"},
	{PFS_FIND_MODE, "mode"},
	{PFS_FIND_NLINK, "links"},
	{PFS_FIND_UID, "uid"},
	{PFS_FIND_GID, "gid"},
	{PFS_FIND_SIZE, "size"},
	{PFS_FIND_BLOCKS, "blocks"},
	{PFS_FIND_MTIME, "mtime"},
	{PFS_FIND_ATIME, "atime"},
	{PFS_FIND_CTIME, "ctime"},
	{PFS_FIND_TARGET, "target"},
	{PFS_FIND_RDEV, "rdev"},
	{PFS_FIND_LINK, "ifnull(link, 0)"},
	{PFS_FIND_EMPTY, "subtree_count"},
};

static void take_field(struct pfs_found *found, unsigned need, struct pfs_row *row)
{
	size_t size;

	switch (need) {
	case PFS_FIND_INO:
		found->ino = pfs_row_number(row);
		break;
	case PFS_FIND_MODE:
		found->mode = (mode_t)pfs_row_number(row);
		break;
	case PFS_FIND_NLINK:
		found->nlink = pfs_row_number(row);
		break;
	case PFS_FIND_UID:
		found->uid = (uid_t)pfs_row_number(row);
		break;
	case PFS_FIND_GID:
		found->gid = (gid_t)pfs_row_number(row);
		break;
	case PFS_FIND_SIZE:
		found->size = pfs_row_signed(row);
		break;
	case PFS_FIND_BLOCKS:
		found->blocks = pfs_row_signed(row);
		break;
	case PFS_FIND_MTIME:
		found->mtime = pfs_row_time(row);
		break;
	case PFS_FIND_ATIME:
		found->atime = pfs_row_time(row);
		break;
	case PFS_FIND_CTIME:
		found->ctime = pfs_row_time(row);
		break;
	case PFS_FIND_TARGET:
		found->target = pfs_row_text(row, &size);
		break;
	case PFS_FIND_RDEV:
		found->rdev = pfs_row_number(row);
		break;
	case PFS_FIND_LINK:
		found->link = pfs_row_number(row);
		break;
	default:
		found->empty = pfs_row_number(row) == 1;
		break;
	}
}

/* ---- paths: what stands for the place, and the rest ---- */

static bool set_path(struct pfs_search *search, size_t above, const char *rest, size_t size)
{
	if (pfs_grow(&search->path, &search->capacity, above + size + 2, 1))
		return false;
	(void)memcpy(search->path + above, rest, size);
	search->path_len = above + size;
	search->path[search->path_len] = 0;
	return true;
}

/* Shows an absolute path in the store. */
bool pfs_search_show(struct pfs_search *search, const char *path, size_t size)
{
	const char *shown = search->place->shown, *rest = path;
	size_t len = strlen(shown), above = strlen(search->place->path);

	rest += above > 1 ? above : 0;
	if (len && shown[len - 1] == '/' && *rest == '/')
		rest++;
	if (len && !strcmp(rest, "/")) /* the root of a mounted store */
		rest++;
	return set_path(search, 0, shown, len) &&
	       set_path(search, len, rest, (size_t)(path + size - rest));
}

static const char *last_component(const char *path, size_t len)
{
	const char *end = path + len, *at = end;

	while (at > path + 1 && at[-1] == '/')
		at--;
	while (at > path && at[-1] != '/')
		at--;
	return *at ? at : path;
}

void pfs_search_columns(const struct pfs_search *search, char list[PFS_FIND_COLUMNS])
{
	size_t n = 0;

	*list = 0;
	for (size_t i = 0; i < PFS_COUNT(columns); i++)
		if (columns[i].need & search->run.find->needs)
			n += (size_t)snprintf(list + n, PFS_FIND_COLUMNS - n, ", %s",
					      columns[i].column);
}

void pfs_search_fill(const struct pfs_search *search, struct pfs_found *found, char type,
		     struct pfs_row *row)
{
	*found = (struct pfs_found){.target = "", .type = type};
	for (size_t i = 0; i < PFS_COUNT(columns); i++)
		if (columns[i].need & search->run.find->needs)
			take_field(found, columns[i].need, row);
}

bool pfs_search_enter(struct pfs_search *search, size_t above, const char *name, size_t size)
{
	if (pfs_grow(&search->path, &search->capacity, above + 1, 1))
		return false;
	if (above == 0 || search->path[above - 1] != '/')
		search->path[above++] = '/';
	return set_path(search, above, name, size);
}

bool pfs_search_decide(struct pfs_search *search, struct pfs_found *found)
{
	const struct pfs_find *find = search->run.find;

	if (found->depth < find->min_depth || found->depth > find->max_depth)
		return false;
	found->path = search->path;
	found->path_len = search->path_len;
	found->name = last_component(found->path, found->path_len);
	(void)pfs_find_decide(&search->run, found);
	return search->run.pruned;
}

void pfs_search_limit(const struct pfs_search *search, char limit[PFS_FIND_LIMIT])
{
	const struct pfs_find *find = search->run.find;

	*limit = 0;
	if (find->max_depth != UINT32_MAX)
		(void)snprintf(limit, PFS_FIND_LIMIT, " AND depth <= %" PRIu64,
			       search->start_depth + (uint64_t)find->max_depth);
}
