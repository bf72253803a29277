/* SPDX-License-Identifier: MIT */
/* The path index as frozen trees have it.
 *
 * Why it is right: when a frozen tree first takes the live index, this has followed all changes
 * from before the frozen tree. From then on the index gets and loses keys of changed nodes only,
 * while its `lock` is held. Which nodes have changed is read from the feed in the hold of the live
 * tree in which `lock` is taken. So, as long as `lock` is held, all other nodes have the keys that
 * they have in the frozen tree. */
#include "fs/nodes/index_paths_impl.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image_copy.h"
#include "gpu/table.h"
#include "meta/account.h"

#define FOLLOWED     256u /* changes taken over at once */
#define CHANGED_MIN  1024u
#define CHANGED_PART 16u   /* of the slots: if so many have changed besides, a scan costs less */
#define BATCH	     4096u /* keys put in at once */

int pfs_path_index_freeze(struct pfs_tree *frozen, struct pfs_tree *live)
{
	struct pfs_path_frozen *paths;

	if (!live->path_index || !atomic_load(&live->path_index->is_wanted))
		return 0;
	paths = calloc(1, sizeof(*paths));
	if (!paths)
		return -ENOMEM;
	(void)pthread_mutex_init(&paths->lock, NULL);
	paths->tree = frozen;
	paths->live = live;
	paths->follower = (struct pfs_feed_follower){PFS_COLUMNS_PLACE, live->image.epoch};
	frozen->path_frozen = paths;
	return 0;
}

/* Frees all but the live tree's index, which whoever has a place in it may still hold. */
static void free_own(struct pfs_path_frozen *frozen)
{
	pfs_path_prefix_close(frozen->own);
	frozen->own = NULL;
	free(frozen->changed);
	frozen->changed = NULL;
	free(frozen->next);
	frozen->next = NULL;
	pfs_account_discharge(frozen->account, frozen->charged);
	frozen->charged = 0;
}

void pfs_path_index_thaw(struct pfs_tree *frozen)
{
	struct pfs_path_frozen *paths = frozen->path_frozen;

	if (!paths)
		return;
	free_own(paths);
	pfs_path_entries_unref(paths->entries);
	pfs_account_close(paths->account);
	(void)pthread_mutex_destroy(&paths->lock);
	free(paths);
	frozen->path_frozen = NULL;
}

bool pfs_path_index_is_lost(const struct pfs_tree *frozen)
{
	return frozen->path_frozen && atomic_load(&frozen->path_frozen->is_lost);
}

/* ---- what has changed ---- */

/* After it fell behind the feed: which slots of the changed blocks have changed, nobody knows. */
static int list_blocks(struct pfs_path_frozen *frozen)
{
	const struct pfs_image *image = &frozen->live->image;
	struct pfs_feed_follower *follower = &frozen->follower;
	const uint32_t blocks = (uint32_t)pfs_div_round_up(frozen->tree->image.end, PFS_BLOCK_ROWS);

	frozen->n_next = 0;
	frozen->run = PFS_BLOCK_ROWS;
	for (uint32_t block = 0; block < blocks; block++)
		if (pfs_feed_has_changed(image, follower->columns, block, follower->cursor))
			frozen->next[frozen->n_next++] = block * PFS_BLOCK_ROWS;
	follower->cursor = image->epoch;
	return 1;
}

/* Lists what has changed next. Returns 0: that is all, and the index is locked; 1: there may be
 * more; -ENOENT: so much has changed that a question should not begin. */
static int read_changes(struct pfs_path_frozen *frozen, bool opens)
{
	int more;

	frozen->n_next = FOLLOWED;
	frozen->run = 1;
	pfs_hold_read(frozen->live, __func__);
	more = pfs_feed_next(&frozen->live->image, &frozen->follower, frozen->next,
			     &frozen->n_next);
	if (more == -EAGAIN)
		more = opens ? -ENOENT : list_blocks(frozen);
	if (!more)
		(void)pthread_mutex_lock(&frozen->entries->lock);
	pfs_hold_end(frozen->live);
	return more;
}

static int put_in(struct pfs_path_frozen *frozen, struct pfs_path_keys *keys)
{
	if (keys->n && !frozen->own)
		PFS_TRY(pfs_path_prefix_create(&frozen->own));
	PFS_TRY(keys->n ? pfs_path_keys_insert(frozen->own, keys) : 0);
	pfs_path_keys_cut(keys, 0);
	return 0;
}

static int take_over_run(struct pfs_path_frozen *frozen, struct pfs_path_keys *keys, uint32_t slot)
{
	for (uint32_t i = 0; i < frozen->run; i++, slot++) {
		if (pfs_path_frozen_has_changed(frozen, slot))
			continue;
		frozen->changed[slot / 64] |= UINT64_C(1) << slot % 64;
		frozen->n_changed++;
		PFS_TRY(pfs_path_keys_add(keys, &frozen->tree->image, slot));
	}
	return keys->n < BATCH ? 0 : put_in(frozen, keys);
}

static size_t next_size(const struct pfs_path_frozen *frozen)
{
	return PFS_MAX(FOLLOWED, frozen->tree->image.end / PFS_BLOCK_ROWS + 1) *
	       sizeof(*frozen->next);
}

static size_t changed_size(const struct pfs_path_frozen *frozen)
{
	return (frozen->tree->image.end / 64 + 1) * sizeof(*frozen->changed);
}

/* Counts the memory as that of all statements together, like the frozen tree's other memory.
 * -ENOMEM: they have more than they may. */
static int charge(struct pfs_path_frozen *frozen)
{
	const uint64_t before = frozen->charged;
	struct pfs_prefix_info own = {.n_keys = 0};

	if (frozen->own)
		pfs_prefix_describe(frozen->own, &own);
	frozen->charged =
		next_size(frozen) + changed_size(frozen) + own.tree_bytes + own.list_bytes;
	return pfs_account_charge(frozen->account, (int64_t)(frozen->charged - before));
}

/* Puts in the keys that listed nodes have in the frozen tree. */
static int take_over(struct pfs_path_frozen *frozen)
{
	struct pfs_path_keys keys = {.bytes = NULL};
	int error = 0;

	for (size_t i = 0; i < frozen->n_next && !error; i++)
		error = take_over_run(frozen, &keys, frozen->next[i]);
	error = error ? error : put_in(frozen, &keys);
	pfs_path_keys_finish(&keys);
	if (!error && (frozen->n_next || !frozen->charged))
		error = charge(frozen);
	return error;
}

/* ---- questions ---- */

/* Takes the live index, which then has followed all changes from before the frozen tree. */
static int take_index(struct pfs_path_frozen *frozen)
{
	int error;

	if (!frozen->next)
		frozen->next = malloc(next_size(frozen));
	if (!frozen->changed)
		frozen->changed = calloc(1, changed_size(frozen));
	if (!frozen->next || !frozen->changed)
		return -ENOMEM;
	if (!frozen->account)
		PFS_TRY(pfs_account_open(&frozen->account, 0, NULL, NULL));
	pfs_path_index_follow(frozen->live); /* so that little is left for the hold */
	pfs_hold_read(frozen->live, __func__);
	error = pfs_path_entries_take(frozen->live, &frozen->entries);
	pfs_hold_end(frozen->live);
	return error;
}

static bool is_worth(const struct pfs_path_frozen *frozen)
{
	return frozen->n_changed <= CHANGED_MIN + frozen->tree->image.end / CHANGED_PART;
}

/* As pfs_path_frozen_begin; frozen->lock is held, and stays so. */
static int begin(struct pfs_path_frozen *frozen, bool opens)
{
	int more = 1, error = frozen->error;

	if (!error && !frozen->entries)
		error = take_index(frozen);
	if (error)
		return error;
	while (more > 0 && !frozen->error && (!opens || is_worth(frozen))) {
		more = read_changes(frozen, opens);
		if (more >= 0)
			frozen->error = take_over(frozen);
	}
	error = frozen->error;
	if (!error && atomic_load(&frozen->entries->is_broken))
		error = -ENOMEM;
	else if (!error && more)
		error = -ENOENT;
	if (error && !more)
		(void)pthread_mutex_unlock(&frozen->entries->lock);
	if (frozen->error)
		free_own(frozen);
	return error;
}

#ifdef PFS_VERIFY
#define SMALL 2000u /* nodes: so many are compared in VERIFY builds */

/* Each node's keys are in the prefix tree where a walk takes them from. */
static bool is_right(const struct pfs_path_frozen *frozen)
{
	const struct pfs_image *image = &frozen->tree->image;
	struct pfs_path_keys keys = {.bytes = NULL};
	bool right = true;

	for (uint32_t slot = 0; slot < image->end && image->nodes <= SMALL && right; slot++) {
		struct pfs_prefix *prefix = pfs_path_frozen_has_changed(frozen, slot)
						    ? frozen->own
						    : frozen->entries->prefix;

		pfs_path_keys_cut(&keys, 0);
		if (pfs_path_keys_add(&keys, image, slot))
			break;
		right = !keys.n || (prefix && pfs_path_keys_are_in(prefix, &keys));
	}
	pfs_path_keys_finish(&keys);
	return right || pfs_image_copy_is_lost(frozen->tree);
}
#endif

int pfs_path_frozen_begin(struct pfs_path_frozen *frozen, bool opens)
{
	int error;

	(void)pthread_mutex_lock(&frozen->lock);
	error = begin(frozen, opens);
	if (error == -ENOMEM && opens)
		error = -ENOENT;
	else if (error == -ENOMEM)
		atomic_store(&frozen->is_lost, true);
	if (error)
		(void)pthread_mutex_unlock(&frozen->lock);
	else
		PFS_VERIFY_CHECK(!opens || is_right(frozen));
	return error;
}

void pfs_path_frozen_end(struct pfs_path_frozen *frozen)
{
	(void)pthread_mutex_unlock(&frozen->entries->lock);
	(void)pthread_mutex_unlock(&frozen->lock);
}

bool pfs_path_index_is_lent(struct pfs_tree *tree)
{
	if (!tree->path_frozen || pfs_path_frozen_begin(tree->path_frozen, true))
		return false;
	pfs_path_frozen_end(tree->path_frozen);
	return true;
}
