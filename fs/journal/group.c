/* SPDX-License-Identifier: MIT */
/* One commit: cut from the image in one moment, written to the store afterwards.
 *
 * A node that lost its last name is removed from the store with the next group.  If it may have
 * content that somebody still uses, or that is too much for one group, an orphan is noted in the
 * same transaction; orphans nobody uses any more are reaped a part at a time.  So is history, apart. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/primes.h"
#include "fs/image/rare_values.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"
#include "meta/history.h"

#define SMALL_CONTENT  (INT64_C(4) << 20) /* bytes that are removed together with the record */
#define REAP_CHUNKS    256u		  /* that one group removes of orphans */
#define REAP_ORPHANS   64u
#define FORGET_RETRY_MS 60000
#define PFS_CHUNKS_END UINT64_MAX

/* ---- cutting ---- */

/* The dirty slots, one after the other. */
struct dirty_walk {
	const struct pfs_tree *tree;
	uint32_t position, end;
	bool listed; /* else all slots are looked at */
};

static struct dirty_walk walk_dirty(const struct pfs_tree *tree)
{
	uint32_t n = atomic_load(&tree->journal->n_dirty);

	if (n <= PFS_DIRTY_LIST)
		return (struct dirty_walk){tree, 0, n, true};
	return (struct dirty_walk){tree, 0, tree->image.end, false};
}

static bool next_dirty(struct dirty_walk *walk, uint32_t *slot)
{
	while (walk->position < walk->end) {
		uint32_t i = walk->position++;

		*slot = walk->listed ? walk->tree->journal->dirty[i] : i;
		if (walk->tree->image.state[*slot] & PFS_SLOT_DIRTY)
			return true;
	}
	return false;
}

static bool has_room(const struct pfs_group *group, size_t rows, size_t bytes)
{
	return rows <= group->row_capacity && bytes <= group->byte_capacity &&
	       group->reap.count + rows <= group->reap.capacity;
}

static int make_room(struct pfs_group *group, size_t rows, size_t bytes)
{
	struct pfs_reap *reap = &group->reap;

	PFS_TRY(pfs_grow(&group->rows, &group->row_capacity, rows, sizeof(*group->rows)));
	PFS_TRY(pfs_grow(&group->bytes, &group->byte_capacity, bytes, 1));
	return pfs_grow(&reap->primes, &reap->capacity, reap->count + rows, sizeof(*reap->primes));
}

/* How much a cut could need now; with tree->lock. */
static void measure(const struct pfs_tree *tree, size_t *rows, size_t *bytes)
{
	struct dirty_walk walk = walk_dirty(tree);
	uint32_t slot;

	*rows = *bytes = 0;
	while (next_dirty(&walk, &slot)) {
		++*rows;
		*bytes += PFS_NAME_MAX;
		if (tree->image.state[slot] & PFS_SLOT_RARE)
			*bytes += pfs_rare_find(tree->image.rare, slot)->target_len;
	}
}

static const void *keep_bytes(struct pfs_group *group, const void *bytes, size_t len)
{
	char *at = group->bytes + group->n_bytes;

	if (len)
		memcpy(at, bytes, len);
	group->n_bytes += len;
	return at;
}

static void cut_record(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_group_row *row = &group->rows[group->n_rows++];
	struct pfs_node_record *record = &row->record;

	pfs_image_record(tree, record, slot);
	record->name = keep_bytes(group, record->name, record->name_len);
	if (record->target)
		record->target = keep_bytes(group, record->target, record->target_len);
	row->action = PFS_ROW_PUT;
	tree->image.state[slot] |= PFS_SLOT_STORED;
}

/* What the store has to do about a node without a name. */
static unsigned cut_unlinked(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_image *image = &tree->image;
	uint8_t *state = &image->state[slot];
	unsigned action = *state & PFS_SLOT_STORED ? PFS_ROW_REMOVE : 0;
	bool dropped = *state & PFS_SLOT_DROPPED;

	*state &= (uint8_t)~PFS_SLOT_STORED;
	if (!S_ISREG(image->mode[slot]))
		return action;
	if (!(*state & PFS_SLOT_ORPHAN)) {
		if (dropped && image->size[slot] <= SMALL_CONTENT)
			return action ? action | PFS_ROW_REMOVE_CHUNKS : 0;
		action |= PFS_ROW_ORPHAN;
		*state |= PFS_SLOT_ORPHAN;
	}
	if (dropped)
		group->reap.primes[group->reap.count++] = image->prime[slot];
	return action;
}

static void cut_slot(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_image *image = &tree->image;
	struct pfs_group_row *row = &group->rows[group->n_rows];

	image->state[slot] &= (uint8_t)~PFS_SLOT_DIRTY;
	if (!image->prime[slot] || image->state[slot] & PFS_SLOT_KEPT)
		return;
	if (!(image->state[slot] & PFS_SLOT_UNLINKED)) {
		cut_record(tree, group, slot);
		return;
	}
	*row = (struct pfs_group_row){.record.prime = image->prime[slot]};
	row->action = cut_unlinked(tree, group, slot);
	group->n_rows += row->action != 0;
	if (image->state[slot] & PFS_SLOT_DROPPED)
		pfs_image_free(tree, slot);
}

static void cut_locked(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_journal *journal = tree->journal;
	struct dirty_walk walk = walk_dirty(tree);
	uint32_t slot;

	PFS_VERIFY_CHECK(pfs_watch_check_group(tree));
	pfs_parts_cut(tree);
	group->n_rows = group->n_bytes = 0;
	group->content = atomic_load(&journal->content);
	group->former = atomic_load(&journal->former);
	while (next_dirty(&walk, &slot))
		cut_slot(tree, group, slot);
	atomic_store(&journal->n_writing, (uint32_t)group->n_rows);
	atomic_store(&journal->n_dirty, 0);
	(void)pthread_mutex_lock(&journal->lock);
	journal->cut++;
	(void)pthread_mutex_unlock(&journal->lock);
}

int pfs_group_cut(struct pfs_tree *tree, struct pfs_group *group)
{
	bool enough = false;
	int rc = 0;

	while (!rc && !enough) {
		size_t rows, bytes;

		pfs_parts_lock(tree);
		pfs_hold_write(tree, __func__);
		measure(tree, &rows, &bytes);
		enough = has_room(group, rows, bytes);
		if (enough)
			cut_locked(tree, group);
		pfs_hold_end(tree);
		pfs_parts_unlock(tree);
		if (!enough)
			rc = make_room(group, rows, bytes);
	}
	return rc;
}

/* ---- writing ---- */

static int write_removal(struct pfs_store *store, const struct pfs_group_row *row)
{
	uint64_t prime = row->record.prime;

	if (row->action & PFS_ROW_ORPHAN)
		PFS_TRY(pfs_store_add_orphan(store, prime));
	if (row->action & PFS_ROW_REMOVE_CHUNKS)
		PFS_TRY(pfs_store_remove_chunks(store, prime, 0, PFS_CHUNKS_END));
	if (row->action & PFS_ROW_REMOVE)
		PFS_TRY(pfs_store_remove_node(store, prime));
	return 0;
}

/* Removals first: what is put may have taken their slots and names. */
static int write_rows(struct pfs_store *store, const struct pfs_group *group)
{
	for (size_t i = 0; i < group->n_rows; i++)
		if (group->rows[i].action != PFS_ROW_PUT)
			PFS_TRY(write_removal(store, &group->rows[i]));
	for (size_t i = 0; i < group->n_rows; i++)
		if (group->rows[i].action == PFS_ROW_PUT)
			PFS_TRY(pfs_store_put_node(store, &group->rows[i].record));
	return 0;
}

/* A bounded part of the content that nobody uses, last noted first. */
static int reap_some(struct pfs_store *store, struct pfs_group *group)
{
	const struct pfs_reap *reap = &group->reap;

	group->n_reaped = 0;
	while (group->n_reaped < PFS_MIN(reap->count, REAP_ORPHANS)) {
		uint64_t prime = reap->primes[reap->count - 1 - group->n_reaped];
		bool left;

		PFS_TRY(pfs_store_reap_orphan(store, &left, prime, REAP_CHUNKS));
		if (left)
			break;
		group->n_reaped++;
	}
	return 0;
}

static int write_all(struct pfs_tree *tree, struct pfs_group *group, bool fetch)
{
	PFS_TRY(write_rows(tree->store, group));
	PFS_TRY(pfs_parts_write(tree));
	PFS_TRY(reap_some(tree->store, group));
	if (fetch)
		PFS_TRY(pfs_primes_fetch(tree));
	return pfs_store_commit(tree->store, NULL);
}

bool pfs_group_forgets(const struct pfs_tree *tree, const struct pfs_group *group)
{
	return pfs_history_is_due(tree->store) && pfs_now_ms() >= group->forget_from_ms;
}

/* History that is too old goes with a group of its own: if it cannot, nobody's changes are held up, and it is tried again later. */
void pfs_group_forget(struct pfs_tree *tree, struct pfs_group *group)
{
	int error;

	if (!pfs_group_forgets(tree, group))
		return;
	error = pfs_store_begin(tree->store);
	if (!error) {
		error = pfs_history_prune(tree->store);
		if (!error)
			error = pfs_store_commit(tree->store, NULL);
		if (error)
			pfs_store_rollback(tree->store);
	}
	if (!error)
		return;
	group->forget_from_ms = pfs_now_ms() + FORGET_RETRY_MS;
	pfs_warning("%s: history that is too old cannot be forgotten (%s); it is tried again", pfs_store_path(tree->store),
		    strerror(-error));
}

int pfs_group_write(struct pfs_tree *tree, struct pfs_group *group, bool fetch)
{
	int rc;

	if (!group->n_rows && !group->content && !group->reap.count && !fetch)
		return 0;
	PFS_TRY(pfs_imagefile_failure(tree)); /* what was cut may be wrong */
	rc = pfs_store_begin(tree->store);
	if (!rc) {
		rc = write_all(tree, group, fetch);
		if (rc)
			pfs_store_rollback(tree->store);
	}
	if (fetch)
		pfs_primes_fetched(tree, rc == 0);
	return rc;
}

void pfs_group_done(struct pfs_tree *tree, struct pfs_group *group)
{
	pfs_parts_done(tree);
	(void)atomic_fetch_sub(&tree->journal->former, group->former);
	group->former = 0;
	group->reap.count -= group->n_reaped;
	group->n_reaped = group->n_rows = group->n_bytes = 0;
}

/* ---- life ---- */

int pfs_group_find_orphans(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_reap *reap = &group->reap;
	uint64_t prime, from = 0;
	int rc;

	while (!(rc = pfs_store_next_orphan(tree->store, &prime, from))) {
		PFS_TRY(pfs_grow(&reap->primes, &reap->capacity, reap->count + 1,
				 sizeof(*reap->primes)));
		reap->primes[reap->count++] = prime;
		from = prime + 1;
	}
	return rc == -ENOENT ? 0 : rc;
}

void pfs_group_release(struct pfs_group *group)
{
	free(group->rows);
	free(group->bytes);
	free(group->reap.primes);
	*group = (struct pfs_group){0};
}
