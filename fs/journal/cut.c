/* SPDX-License-Identifier: MIT */
/* What a commit has: the rows and the parts' records as they were at one moment.
 *
 * At that moment no row is copied. The slots that are dirty have one of two marks; from then on,
 * slots that become dirty get the other. Rows are copied afterwards, a few in each hold of
 * tree->lock, and those that are about to change meanwhile before they do, which a watcher of the
 * image hears of. So whoever waits for the lock waits for a few rows, also where a statement has
 * changed millions of nodes.
 *
 * A free slot may have a mark, too. It loses it as soon as it is used again. */
#include "fs/journal/journal_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "fs/image/image.h"
#include "fs/image/rare_values.h"
#include "fs/tree/tree_impl.h"

/* the most in one hold of tree->lock: */
#define COPIED 1024u   /* rows, and records of parts */
#define LOOKED 262144u /* slots that are looked at */

/* ---- room ---- */

struct room {
	size_t rows, bytes;
	uint32_t slots;
};

/* Returns how much a cut could need now. It assumes the longest names and targets: memory that
 * nobody writes to costs nothing. tree->lock is held. */
static struct room measure(const struct pfs_tree *tree)
{
	size_t rows = atomic_load(&tree->journal->n_dirty);
	size_t targets = (size_t)pfs_rare_target_bytes(tree->image.rare);

	return (struct room){.rows = rows,
			     .bytes = rows * PFS_NAME_MAX + PFS_MIN(rows * PFS_TARGET_MAX, targets),
			     .slots = tree->image.end};
}

static bool has_room(const struct pfs_tree *tree, const struct pfs_group *group,
		     const struct room *room)
{
	return room->rows <= group->row_capacity && room->bytes <= group->byte_capacity &&
	       group->reap.count + room->rows <= group->reap.capacity &&
	       room->slots <= tree->journal->cut_off.slots;
}

/* Makes a bit for each slot, all clear. Only the committer makes room; other threads set bits
 * during a cut. */
static int make_bits(struct pfs_cut *cut, uint32_t slots)
{
	uint32_t words = pfs_div_round_up(slots, 64) + COPIED;

	free(cut->unlinked);
	cut->slots = 0;
	cut->unlinked = calloc(words, sizeof(*cut->unlinked));
	if (!cut->unlinked)
		return -ENOMEM;
	cut->slots = words * 64;
	return 0;
}

static int make_room(struct pfs_tree *tree, struct pfs_group *group, const struct room *room)
{
	struct pfs_reap *reap = &group->reap;

	PFS_TRY(pfs_grow(&group->rows, &group->row_capacity, room->rows, sizeof(*group->rows)));
	PFS_TRY(pfs_grow(&group->bytes, &group->byte_capacity, room->bytes, 1));
	PFS_TRY(pfs_grow(&reap->primes, &reap->capacity, reap->count + room->rows,
			 sizeof(*reap->primes)));
	return make_bits(&tree->journal->cut_off, room->slots);
}

/* ---- a row ---- */

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

/* Returns what the store has to do about a node without a name. */
static unsigned unlinked_action(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_image *image = &tree->image;
	uint8_t *state = &image->state[slot];
	unsigned action = *state & PFS_SLOT_STORED ? PFS_ROW_REMOVE : 0;
	bool dropped = *state & PFS_SLOT_DROPPED;

	*state &= (uint8_t)~PFS_SLOT_STORED;
	if (!S_ISREG(image->mode[slot]))
		return action;
	if (!(*state & PFS_SLOT_ORPHAN)) {
		if (dropped && image->size[slot] <= PFS_SMALL_CONTENT)
			return action ? action | PFS_ROW_REMOVE_CHUNKS : 0;
		action |= PFS_ROW_ORPHAN;
		*state |= PFS_SLOT_ORPHAN;
	}
	if (dropped)
		group->reap.primes[group->reap.count++] = image->prime[slot];
	return action;
}

static void cut_unlinked(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_group_row *row = &group->rows[group->n_rows];

	*row = (struct pfs_group_row){.record.prime = tree->image.prime[slot]};
	row->action = unlinked_action(tree, group, slot);
	group->n_rows += row->action != 0;
	if (tree->image.state[slot] & PFS_SLOT_DROPPED)
		pfs_image_free(tree, slot);
}

/* Copies a slot's row into the group. A slot that is free, or was when the cut began, has no row.
 */
static void cut_slot(struct pfs_tree *tree, struct pfs_group *group, uint32_t slot)
{
	struct pfs_image *image = &tree->image;

	image->state[slot] &= (uint8_t)~tree->journal->cut_off.mark;
	if (!image->prime[slot] || image->state[slot] & PFS_SLOT_KEPT)
		return;
	if (pfs_image_is_live(image, slot))
		cut_record(tree, group, slot);
	else if (image->state[slot] & PFS_SLOT_UNLINKED)
		cut_unlinked(tree, group, slot);
}

/* ---- what changes meanwhile ---- */

void pfs_cut_before(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_journal *journal = tree->journal;

	if (journal->cut_off.goes_on && tree->image.state[slot] & journal->cut_off.mark)
		cut_slot(tree, &journal->group, slot);
}

static void changing(struct pfs_tree *tree, uint32_t slot, unsigned columns PFS_UNUSED)
{
	pfs_cut_before(tree, slot);
}

const struct pfs_watcher pfs_cut_watcher = {
	.name = "the group that is being cut",
	.columns = PFS_COLUMNS_ALL & ~PFS_COLUMN_LINKS,
	.changing = changing,
};

void pfs_cut_unlinking(struct pfs_tree *tree, uint32_t slot)
{
	const struct pfs_cut *cut = &tree->journal->cut_off;

	pfs_cut_before(tree, slot);
	if (cut->goes_on && slot < cut->slots)
		cut->unlinked[slot / 64] |= UINT64_C(1) << slot % 64;
}

bool pfs_cut_has_name(const struct pfs_tree *tree, uint64_t prime)
{
	const struct pfs_cut *cut = &tree->journal->cut_off;
	uint32_t slot = pfs_image_slot(tree, prime);

	if (slot == PFS_NO_SLOT)
		return false;
	return !(tree->image.state[slot] & PFS_SLOT_UNLINKED) ||
	       (slot < cut->slots && cut->unlinked[slot / 64] >> slot % 64 & 1);
}

/* ---- the moment, and what follows ---- */

/* Begins the cut. tree->lock is held. */
static void begin(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_journal *journal = tree->journal;
	struct pfs_cut *cut = &journal->cut_off;
	uint32_t *dirty = cut->dirty, n = atomic_load(&journal->n_dirty);

	PFS_VERIFY_CHECK(pfs_watch_check_group(tree));
	group->n_rows = group->n_bytes = 0;
	group->content = atomic_load(&journal->content);
	group->former = atomic_load(&journal->former);
	cut->dirty = journal->dirty;
	journal->dirty = dirty;
	cut->mark = journal->mark;
	journal->mark ^= PFS_SLOT_DIRTY;
	cut->is_listed = n <= PFS_DIRTY_LIST;
	cut->position = 0;
	cut->end = cut->is_listed ? n : tree->image.end;
	cut->goes_on = true;
	atomic_store(&journal->n_writing, n);
	atomic_store(&journal->n_dirty, 0);
	(void)pthread_mutex_lock(&journal->lock);
	journal->cut++;
	(void)pthread_cond_broadcast(&journal->ended); /* wakes those who wait for rows */
	(void)pthread_mutex_unlock(&journal->lock);
}

/* Returns 1 if the cut has begun; 0 if there is not enough room, and *wanted is how much there
 * should be. */
static int try_to_begin(struct pfs_tree *tree, struct pfs_group *group, struct room *wanted)
{
	bool enough;

	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	*wanted = measure(tree);
	enough = has_room(tree, group, wanted);
	if (enough)
		begin(tree, group);
	pfs_hold_end(tree);
	if (enough)
		pfs_parts_cut(tree); /* of the same moment, since their lock has been held */
	pfs_parts_unlock(tree);
	return enough;
}

int pfs_cut_begin(struct pfs_tree *tree, struct pfs_group *group)
{
	const uint32_t before = tree->journal->cut_off.slots; /* including the spare ones */
	struct room wanted = {.slots = before ? before - COPIED * 64 : 1};
	PFS_LOCKED(&tree->journal->whole);

	do
		PFS_TRY(make_room(tree, group, &wanted));
	while (!try_to_begin(tree, group, &wanted));
	return 0;
}

/* Returns true if there are more. tree->lock is held. */
static bool cut_rows(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_cut *cut = &tree->journal->cut_off;
	uint32_t copied = 0, end = PFS_MIN(cut->end, cut->position + LOOKED);

	while (cut->position < end && copied < COPIED) {
		uint32_t i = cut->position++, slot = cut->is_listed ? cut->dirty[i] : i;

		if (!(tree->image.state[slot] & cut->mark))
			continue;
		cut_slot(tree, group, slot);
		copied++;
	}
	return cut->position < cut->end;
}

bool pfs_cut_some(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_cut *cut = &tree->journal->cut_off;
	bool more;

	pfs_parts_lock(tree);
	pfs_hold_write(tree, __func__);
	more = cut_rows(tree, group) || pfs_parts_cut_some(tree, COPIED);
	cut->goes_on = more;
	pfs_hold_end(tree);
	pfs_parts_unlock(tree);
	if (!more)
		atomic_store(&tree->journal->n_writing, (uint32_t)group->n_rows);
	return more;
}

int pfs_group_cut(struct pfs_tree *tree, struct pfs_group *group)
{
	PFS_TRY(pfs_cut_begin(tree, group));
	while (pfs_cut_some(tree, group))
		;
	return 0;
}
