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
	struct pfs_watchers *watchers = &tree->image.watchers;

	PFS_VERIFY_CHECK(watchers->n < PFS_WATCHERS_MAX);
	watchers->all[watchers->n++] = watcher;
	if (watcher->changing)
		watchers->changing[watchers->n_changing++] =
			(struct pfs_watcher_call){watcher->changing, watcher->columns};
	if (watcher->changed)
		watchers->changed[watchers->n_changed++] =
			(struct pfs_watcher_call){watcher->changed, watcher->columns};
}

static void call(struct pfs_tree *tree, const struct pfs_watcher_call *one, unsigned n,
		 uint32_t slot, unsigned columns)
{
	for (; n; n--, one++)
		if (one->columns & columns)
			one->call(tree, slot, columns);
}

void pfs_watch_changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	const struct pfs_watchers *watchers = &tree->image.watchers;

	call(tree, watchers->changing, watchers->n_changing, slot, columns);
}

void pfs_watch_changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_image *image = &tree->image;

	if (!(columns & PFS_COLUMN_PRIME)) /* what became free was seen by nobody before */
		pfs_feed_note(image, slot, columns);
	if (columns & ACCESS && S_ISDIR(image->mode[slot]))
		image->recent_access[image->access++ % PFS_RECENT] = slot;
	call(tree, image->watchers.changed, image->watchers.n_changed, slot, columns);
}

const char *pfs_watch_check(struct pfs_tree *tree)
{
	const struct pfs_watchers *watchers = &tree->image.watchers;

	for (unsigned i = 0; i < watchers->n; i++)
		if (watchers->all[i]->check && !watchers->all[i]->check(tree))
			return watchers->all[i]->name;
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
