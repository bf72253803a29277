/* SPDX-License-Identifier: MIT */
/* What the source has where the store has moved a node: its original, if the source has moved that
 * likewise, or another entry, which comes in once the node goes. A directory that is walked tells.
 * Others are looked at here: those of nodes that a quick refresh or one of paths does not meet. */
#include "tools/refresh/refresh_impl.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "tools/refresh/refresh_compare.h"

int pfs_refresh_look_in(struct pfs_refresh *refresh, struct pfs_crawl_batch **batch,
			bool *passes, const char *folder, const char *name)
{
	struct pfs_refresh_place *place;
	struct stat now;
	int error, fd;

	*batch = NULL;
	PFS_TRY(pfs_refresh_visit(refresh, &place, &fd, folder));
	error = fstatat(fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
	if (!error) {
		*passes = pfs_crawl_look_passes(refresh->look, name, S_ISDIR(now.st_mode));
		error = pfs_crawl_look_at(refresh->look, batch, name);
	}
	pfs_refresh_leave(refresh, place);
	return error;
}

/* Gets the paths that the source's directory of the node has now and has in its record. *is is
 * false if it is not known to be there. */
static int find_folder(struct pfs_refresh *refresh, bool *is, char path[PATH_MAX],
		       char recorded[PATH_MAX], uint64_t ino)
{
	const struct pfs_source_move *move;
	struct pfs_crawl_batch *batch = NULL;
	struct pfs_source_record record;
	size_t n_moves = 0, len = 0;
	int error;

	*is = ino == refresh->root_ino;
	*path = *recorded = 0;
	error = *is ? 0 : pfs_follow_record(refresh->tree, &record, recorded, ino);
	if (*is || error || record.root != refresh->root.id)
		return error == -ENOENT ? 0 : error;
	move = pfs_refresh_move_of(refresh, recorded, &n_moves, &len);
	if ((size_t)snprintf(path, PATH_MAX, "%s%s", move ? move->to : "", recorded + len) >=
	    PATH_MAX)
		return 0;
	error = pfs_refresh_look_at_directory(refresh, &batch, path);
	if (batch) {
		const struct pfs_crawl_entry *entry = &batch->entries[0];

		*is = (pfs_refresh_same(refresh, batch, &record) && !entry->mounted) ||
		      pfs_refresh_read_as(refresh, entry->attr.st_dev, entry->attr.st_ino) == ino;
	}
	pfs_crawl_look_free(batch);
	return pfs_crawl_is_own(error) ? error : 0;
}

/* Notes the entry, which is new if the node goes, unless the store has what it is elsewhere. Takes
 * the batch over, also on failure. */
static int note_behind(struct pfs_refresh *refresh, struct pfs_displaced *displaced,
		       struct pfs_crawl_batch *batch, const char *folder, const char *name,
		       uint64_t parent)
{
	const struct stat *now = &batch->entries[0].attr;
	struct pfs_refresh_place *place;
	struct pfs_finding *found;
	struct pfs_follower above;
	int error = pfs_follow_node(refresh->tree, &above, parent);

	if (!error)
		error = pfs_refresh_where(refresh, &place, folder, parent);
	if (error) {
		pfs_crawl_look_free(batch);
		return error == -ESTALE ? 0 : error;
	}
	place->before = above.attr;
	PFS_TRY(pfs_refresh_found(refresh, &found, place, batch, name));
	found->kind = PFS_FOUND_NEW;
	found->over = displaced->by_prime.prime;
	found->set = PFS_TAKE_ALL;
	found->was = pfs_refresh_read_as(refresh, now->st_dev, now->st_ino);
	return pfs_refresh_displaced(refresh, found->over, displaced->path, found);
}

int pfs_refresh_look_behind(struct pfs_refresh *refresh, struct pfs_displaced *displaced)
{
	uint64_t ino = displaced->by_prime.prime, parent = pfs_follow_parent(refresh->tree, ino);
	char folder[PATH_MAX], recorded[PATH_MAX], *path PFS_FREE = NULL;
	struct pfs_crawl_batch *batch;
	const char *name;
	bool is, passes;
	int error;

	if (displaced->here || !parent)
		return 0;
	PFS_TRY(find_folder(refresh, &is, folder, recorded, parent));
	error = is ? pfs_tree_path(refresh->tree, &path, ino) : -ENOENT;
	if (!error) {
		name = pfs_source_name(strrchr(path, '/') + 1);
		error = pfs_refresh_look_in(refresh, &batch, &passes, folder, name);
	}
	if (error || !batch)
		return pfs_crawl_is_own(error) ? error : 0;
	if (passes) {
		pfs_crawl_look_free(batch);
		return 0;
	}
	PFS_TRY(note_behind(refresh, displaced, batch, folder, name, parent));
	return pfs_refresh_seek_renamed(refresh, recorded);
}
