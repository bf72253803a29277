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

/* What a watcher of places alone may want to hear of. */
#define PLACES (PFS_COLUMNS_PLACE | PFS_COLUMN_PRIME)

static void add(struct pfs_watcher_calls *calls, struct pfs_watcher_call one)
{
	unsigned at = calls->n;

	if (!one.call)
		return;
	if (one.columns & ~(unsigned)PLACES) {
		at = calls->n_others++;
		calls->list[calls->n] = calls->list[at];
	}
	calls->list[at] = one;
	calls->n++;
}

void pfs_watch(struct pfs_tree *tree, const struct pfs_watcher *watcher)
{
	struct pfs_watchers *watchers = &tree->image.watchers;

	PFS_VERIFY_CHECK(watchers->n < PFS_WATCHERS_MAX);
	watchers->all[watchers->n++] = watcher;
	add(&watchers->changing, (struct pfs_watcher_call){watcher->changing, watcher->columns});
	add(&watchers->changed, (struct pfs_watcher_call){watcher->changed, watcher->columns});
}

/* Each change comes here twice: a function of its own would save and restore registers once
 * more. */
static inline __attribute__((always_inline)) void
call(struct pfs_tree *tree, const struct pfs_watcher_calls *calls, uint32_t slot, unsigned columns)
{
	const struct pfs_watcher_call *one = calls->list,
				      *end = one + (columns & PLACES ? calls->n : calls->n_others);

	for (; one < end; one++)
		if (one->columns & columns)
			one->call(tree, slot, columns);
}

void pfs_watch_changing(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	call(tree, &tree->image.watchers.changing, slot, columns);
}

void pfs_watch_changed(struct pfs_tree *tree, uint32_t slot, unsigned columns)
{
	struct pfs_image *image = &tree->image;

	if (!(columns & PFS_COLUMN_PRIME)) /* what became free was seen by nobody before */
		pfs_feed_note(image, slot, columns);
	if (columns & ACCESS && S_ISDIR(image->mode[slot]))
		image->recent_access[image->access++ % PFS_RECENT] = slot;
	call(tree, &image->watchers.changed, slot, columns);
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
