/* SPDX-License-Identifier: MIT */
#include "fs/image/watch.h"

#include <sys/stat.h>

#include "base/log.h"
#include "fs/image/feed.h"
#include "fs/image/image.h"
#include "fs/tree/tree_impl.h"

#define SMALL 10000u /* nodes */
#define RARELY 100u  /* groups */

/* What decides who may go where. */
#define ACCESS (PFS_COLUMNS_PLACE | PFS_COLUMN_MODE | PFS_COLUMN_UID | PFS_COLUMN_GID)

void pfs_watch(struct pfs_tree *tree, const struct pfs_watcher *watcher)
{
	struct pfs_image *image = &tree->image;

	PFS_VERIFY_CHECK(image->n_watchers < PFS_WATCHERS_MAX);
	image->watchers[image->n_watchers++] = watcher;
}

void pfs_watch_changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	const struct pfs_image *image = &tree->image;

	for (unsigned i = 0; i < image->n_watchers; i++) {
		const struct pfs_watcher *watcher = image->watchers[i];

		if (watcher->columns & columns && watcher->changing)
			watcher->changing(tree, slot, columns);
	}
}

void pfs_watch_changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_image *image = &tree->image;

	if (!(columns & PFS_COLUMN_PRIME)) /* what became free was seen by nobody before */
		pfs_feed_note(image, slot, columns);
	if (columns & ACCESS && S_ISDIR(image->mode[slot]))
		image->recent_access[image->access++ % PFS_RECENT] = slot;
	for (unsigned i = 0; i < image->n_watchers; i++) {
		const struct pfs_watcher *watcher = image->watchers[i];

		if (watcher->columns & columns && watcher->changed)
			watcher->changed(tree, slot, columns);
	}
}

const char *pfs_watch_check(struct pfs_tree *tree)
{
	const struct pfs_image *image = &tree->image;

	for (unsigned i = 0; i < image->n_watchers; i++)
		if (image->watchers[i]->check && !image->watchers[i]->check(tree))
			return image->watchers[i]->name;
	return NULL;
}

bool pfs_watch_check_group(struct pfs_tree *tree)
{
	const char *wrong = NULL;

	if (tree->image.nodes < SMALL || ++tree->image.n_groups % RARELY == 0)
		wrong = pfs_watch_check(tree);
	if (wrong)
		pfs_error("%s do not follow the image", wrong);
	return !wrong;
}
