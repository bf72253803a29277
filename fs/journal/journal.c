/* SPDX-License-Identifier: MIT */
/* The journal as operations see it. It keeps no log of operations, only the set of slots whose rows
 * have changed; the committer copies those rows as they are when a group is cut. */
#include "fs/journal/journal.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/old_places.h"
#include "fs/image/snapshot.h"
#include "fs/image/watch.h"
#include "fs/journal/journal_impl.h"
#include "fs/tree/tree_impl.h"

#define PENDING_LIMIT (UINT64_C(256) << 20)
#define NSEC_MAX      999999999u

/* ---- the dirty set ---- */

/* Wakes the committer if it may be asleep; no lock of the journal is held. */
static void wake(struct pfs_journal *journal)
{
	PFS_LOCKED(&journal->lock);

	(void)pthread_cond_signal(&journal->wake);
}

void pfs_journal_touch(struct pfs_tree *tree, uint32_t slot)
{
	struct pfs_journal *journal = tree->journal;
	uint32_t n;

	if (tree->image.state[slot] & journal->mark)
		return;
	tree->image.state[slot] |= journal->mark;
	n = atomic_load_explicit(&journal->n_dirty, memory_order_relaxed);
	if (n < PFS_DIRTY_LIST)
		journal->dirty[n] = slot;
	if (n < UINT32_MAX)
		atomic_store_explicit(&journal->n_dirty, n + 1, memory_order_relaxed);
	if (n == 0 || n + 1 == PFS_DIRTY_COMMIT)
		wake(journal);
}

bool pfs_journal_is_touched(const struct pfs_tree *tree, uint32_t slot)
{
	return tree->image.state[slot] & tree->journal->mark;
}

static struct pfs_time next_nanosecond(struct pfs_time time)
{
	return time.nsec < NSEC_MAX ? (struct pfs_time){time.sec, time.nsec + 1}
				    : (struct pfs_time){time.sec + 1, 0};
}

/* Returns true if a refresh concludes from the node's times that its original is unchanged. */
static bool is_followed(const struct pfs_image *image, uint32_t slot)
{
	mode_t mode = image->mode[slot];

	return image->flags[slot] & (PFS_NODE_SETTLED | PFS_NODE_LINKED) ||
	       !(S_ISREG(mode) || S_ISDIR(mode));
}

/* The clocks of store and source stand still between two ticks, so that a change of the store and
 * one of the source may get the same time. No change of the source has a time that is a nanosecond
 * later than a tick. */
struct pfs_time pfs_stamp_ctime(const struct pfs_tree *tree, uint32_t slot, struct pfs_time now)
{
	return is_followed(&tree->image, slot) ? next_nanosecond(now) : now;
}

void pfs_stamp(struct pfs_tree *tree, uint32_t slot, unsigned times, struct pfs_time now)
{
	const unsigned listing = PFS_COLUMN_MTIME | PFS_COLUMN_CTIME;

	pfs_image_stamp(tree, slot, times, now);
	if ((times & listing) == listing && is_followed(&tree->image, slot))
		pfs_image_stamp(tree, slot, PFS_COLUMN_CTIME, next_nanosecond(now));
	pfs_journal_touch(tree, slot);
}

void pfs_journal_unlinked(struct pfs_tree *tree, uint32_t slot)
{
	pfs_cut_unlinking(tree, slot);
	tree->image.state[slot] |= PFS_SLOT_UNLINKED;
	pfs_journal_touch(tree, slot);
}

void pfs_journal_dropped(struct pfs_tree *tree, uint32_t slot)
{
	pfs_cut_before(tree, slot);
	/* A node that the store never had disappears at once, others at the next cut. */
	tree->image.state[slot] |= PFS_SLOT_DROPPED;
	if (tree->image.state[slot] & (PFS_SLOT_STORED | PFS_SLOT_ORPHAN))
		pfs_journal_touch(tree, slot);
	else
		pfs_image_free(tree, slot);
}

static uint64_t pending_limit(const struct pfs_tree *tree)
{
	return tree->options.pending_limit ? tree->options.pending_limit : PENDING_LIMIT;
}

bool pfs_journal_is_pressed(const struct pfs_tree *tree)
{
	const struct pfs_journal *journal = tree->journal;

	return atomic_load(&journal->n_dirty) >= PFS_DIRTY_COMMIT ||
	       (uint64_t)atomic_load(&journal->content) > pending_limit(tree) / 4;
}

uint64_t pfs_journal_former(const struct pfs_tree *tree, uint64_t bytes)
{
	return atomic_load(&tree->journal->space.keeps_history) ? bytes : 0;
}

void pfs_journal_replaced(struct pfs_tree *tree, uint64_t bytes)
{
	(void)atomic_fetch_add(&tree->journal->former, pfs_journal_former(tree, bytes));
}

void pfs_journal_pending(struct pfs_tree *tree, int64_t bytes)
{
	struct pfs_journal *journal = tree->journal;
	int64_t before = atomic_fetch_add(&journal->content, bytes);
	int64_t pressing = (int64_t)(pending_limit(tree) / 4);

	PFS_VERIFY_CHECK(before + bytes >= 0);
	if (before == 0 || (before <= pressing && before + bytes > pressing))
		wake(journal);
}

/* ---- before an operation ---- */

/* The journal whose cuts this thread holds back, and how often it has asked for that. */
static _Thread_local const struct pfs_journal *held;
static _Thread_local unsigned n_held;
/* While not more than this waits, this thread's changes are among those that it holds for. */
static _Thread_local struct {
	uint64_t rows;
	uint64_t bytes; /* of a change, beside what history has of those before it */
} promised;

void pfs_journal_hold(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;

	if (held != journal) {
		(void)pthread_mutex_lock(&journal->whole);
		held = journal;
		n_held = 0;
	}
	n_held++;
}

void pfs_journal_let_go(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;

	if (--n_held)
		return;
	held = NULL;
	if (promised.rows)
		atomic_store(&journal->promised, 0);
	promised.rows = 0;
	(void)pthread_mutex_unlock(&journal->whole);
}

/* Returns true if the next group has as many rows as may wait for the one that is being written. */
static bool is_next_full(const struct pfs_journal *journal)
{
	return atomic_load(&journal->n_dirty) >= PFS_DIRTY_WAIT;
}

static void await_commit(struct pfs_tree *tree, bool for_rows)
{
	struct pfs_journal *journal = tree->journal;
	uint64_t before;
	PFS_LOCKED(&journal->lock);

	before = journal->attempts;
	journal->wanted = journal->cut + 1;
	(void)pthread_cond_signal(&journal->wake);
	while (journal->attempts == before && atomic_load(&journal->running) &&
	       (!for_rows || is_next_full(journal)))
		(void)pthread_cond_wait(&journal->ended, &journal->lock);
}

/* Waits until the next commit has ended, or, for rows, until it has begun; the caller then looks
 * again. */
static void wait_for_commit(struct pfs_tree *tree, bool for_rows)
{
	struct pfs_journal *journal = tree->journal;
	bool holds = held == journal;

	if (holds)
		(void)pthread_mutex_unlock(&journal->whole);
	await_commit(tree, for_rows);
	if (holds)
		(void)pthread_mutex_lock(&journal->whole);
}

/* Returns true if a commit, or the removal of unused content, may make room. */
static bool room_may_come(const struct pfs_journal *journal, uint64_t pending)
{
	return pending || atomic_load(&journal->reaping);
}

/* Returns how many rows wait for the store, and how many bytes wait beside them or are promised to
 * another thread. */
static uint64_t waiting(const struct pfs_journal *journal, uint64_t *bytes)
{
	int64_t content = atomic_load(&journal->content);

	*bytes = (content > 0 ? (uint64_t)content : 0) + atomic_load(&journal->former) +
		 (held == journal ? 0 : atomic_load(&journal->promised));
	return (uint64_t)atomic_load(&journal->n_dirty) + atomic_load(&journal->n_writing);
}

static bool fits(struct pfs_tree *tree, const struct pfs_journal_need *need)
{
	pfs_space_refresh(tree, false);
	if (pfs_space_fits(tree, need))
		return true;
	pfs_space_refresh(tree, true);
	return pfs_space_fits(tree, need);
}

bool pfs_journal_has_room(struct pfs_tree *tree, uint64_t rows, uint64_t bytes)
{
	uint64_t written, n = waiting(tree->journal, &written);

	written += pfs_space_of_rows(tree, &rows, bytes);
	return fits(tree, &(struct pfs_journal_need){.rows = n + rows, .bytes = written});
}

/* Returns 0 if the change may go on. -EAGAIN: not before something is committed; -EBUSY: not before
 * a commit begins. */
static int admit(struct pfs_tree *tree, const struct pfs_journal_need *need)
{
	struct pfs_journal *journal = tree->journal;
	uint64_t nodes = need->rows + need->made + need->gone;
	uint64_t written, rows = waiting(journal, &written);
	int64_t content = atomic_load(&journal->content);
	uint64_t pending = content > 0 ? (uint64_t)content : 0;
	struct pfs_journal_need all = *need;

	PFS_TRY(pfs_imagefile_failure(tree));
	if (atomic_load(&tree->read_only) || !atomic_load(&journal->running) ||
	    atomic_load(&journal->failure))
		return -EROFS;
	if (is_next_full(journal))
		return -EBUSY;
	/* A change of many nodes waits for earlier large changes; all other changes do not. */
	if ((nodes > PFS_DIRTY_COMMIT && rows >= PFS_DIRTY_WAIT) ||
	    (pending && pending + need->bytes > pending_limit(tree)))
		return -EAGAIN;
	if (held == journal && rows + nodes <= promised.rows &&
	    atomic_load(&journal->former) + need->bytes <= promised.bytes)
		return 0;
	all.rows += rows;
	all.bytes += written;
	if (fits(tree, &all))
		return 0;
	return room_may_come(journal, rows + written) ? -EAGAIN : -ENOSPC;
}

/* After so many tries without room the disk counts as full. Changes by others must not make it look
 * as if it could become empty. */
#define PATIENCE 5

static int reserve(struct pfs_tree *tree, const struct pfs_journal_need *need, unsigned columns,
		   bool nowait)
{
	struct pfs_journal *journal = tree->journal;
	uint64_t nodes = need->rows + need->made + need->gone;
	unsigned tries = 0;

	for (;;) {
		int error = admit(tree, need);

		if (!error) {
			pfs_snapshots_reserve(tree, nodes, columns);
			pfs_place_history_reserve(tree, columns & PFS_COLUMNS_PLACE ? nodes : 0);
		}
		if (error != -EAGAIN && error != -EBUSY)
			return error;
		if (nowait)
			return -EAGAIN;
		if (error == -EAGAIN && tries >= PATIENCE && !pfs_space_fits(tree, need))
			return -ENOSPC;
		wait_for_commit(tree, error == -EBUSY);
		tries += error == -EAGAIN && !atomic_load(&journal->reaping);
	}
}

int pfs_journal_reserve(struct pfs_tree *tree, size_t nodes, uint64_t bytes, bool nowait)
{
	return reserve(tree, &(struct pfs_journal_need){.rows = nodes, .bytes = bytes},
		       PFS_COLUMNS_ALL, nowait);
}

int pfs_journal_reserve_removal(struct pfs_tree *tree, size_t nodes, uint64_t bytes)
{
	return pfs_journal_reserve_set(tree, nodes, bytes, PFS_COLUMNS_ALL, true);
}

int pfs_journal_reserve_set(struct pfs_tree *tree, size_t nodes, uint64_t bytes, unsigned columns,
			    bool removal)
{
	const struct pfs_journal_need need = {.rows = nodes, .bytes = bytes, .removal = removal};

	return reserve(tree, &need, columns, false);
}

/* A change may reserve twice the rows that it changes. */
static void promise(struct pfs_tree *tree, const struct pfs_journal_need *need)
{
	struct pfs_journal *journal = tree->journal;
	uint64_t bytes;

	promised.rows = waiting(journal, &bytes) + need->rows + 2 * (need->made + need->gone);
	promised.bytes = atomic_load(&journal->former) + need->bytes;
	atomic_store(&journal->promised, pfs_space_needed(tree, need) / 2);
}

int pfs_journal_hold_for(struct pfs_tree *tree, uint64_t *lacking,
			 const struct pfs_journal_need *need)
{
	int error = reserve(tree, need, PFS_COLUMNS_ALL, false);

	if (error == -ENOSPC)
		*lacking = pfs_space_needed(tree, need);
	if (error)
		return error;
	pfs_journal_hold(tree);
	promise(tree, need);
	return 0;
}

int pfs_journal_fetch_primes(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;

	(void)pthread_mutex_lock(&journal->lock);
	journal->primes_wanted = true;
	(void)pthread_mutex_unlock(&journal->lock);
	wait_for_commit(tree, false);
	return atomic_load(&journal->failure) || !atomic_load(&journal->running) ? -EROFS : 0;
}

/* ---- durability ---- */

int pfs_tree_failure(struct pfs_tree *tree)
{
	return atomic_load(&tree->journal->failure);
}

int pfs_tree_sync(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	uint64_t target;
	PFS_LOCKED(&journal->lock);

	target = journal->cut;
	if (atomic_load(&journal->n_dirty) || atomic_load(&journal->content))
		target++;
	if (journal->wanted < target) {
		journal->wanted = target;
		(void)pthread_cond_signal(&journal->wake);
	}
	while (journal->committed < target && !atomic_load(&journal->failure) &&
	       atomic_load(&journal->running))
		(void)pthread_cond_wait(&journal->ended, &journal->lock);
	if (atomic_load(&journal->failure))
		return atomic_load(&journal->failure);
	return journal->committed < target && !atomic_load(&tree->read_only) ? -EROFS : 0;
}

/* ---- what others have to write ---- */

void pfs_errand_end(struct pfs_journal *journal, struct pfs_errand *errand)
{
	errand->done = true;
	(void)pthread_cond_broadcast(&journal->ended);
}

int pfs_journal_send(struct pfs_tree *tree, struct pfs_errand *errand)
{
	struct pfs_journal *journal = tree->journal;
	PFS_LOCKED(&journal->lock);

	if (!atomic_load(&journal->running) || atomic_load(&journal->failure))
		return -EROFS;
	while (journal->errand && atomic_load(&journal->running))
		(void)pthread_cond_wait(&journal->ended, &journal->lock);
	if (!atomic_load(&journal->running))
		return -EROFS;
	journal->errand = errand;
	(void)pthread_cond_signal(&journal->wake);
	while (!errand->done)
		(void)pthread_cond_wait(&journal->ended, &journal->lock);
	return errand->error;
}

/* ---- life ---- */

int pfs_journal_create(struct pfs_tree *tree)
{
	struct pfs_journal *journal = calloc(1, sizeof(*journal));
	pthread_condattr_t attr;

	if (!journal)
		return -ENOMEM;
	journal->dirty = calloc(PFS_DIRTY_LIST, sizeof(*journal->dirty));
	journal->cut_off.dirty = calloc(PFS_DIRTY_LIST, sizeof(*journal->cut_off.dirty));
	if (!journal->dirty || !journal->cut_off.dirty) {
		free(journal->dirty);
		free(journal->cut_off.dirty);
		free(journal);
		return -ENOMEM;
	}
	journal->mark = PFS_SLOT_DIRTY_1;
	(void)pthread_mutex_init(&journal->lock, NULL);
	(void)pthread_mutex_init(&journal->whole, NULL);
	(void)pthread_mutex_init(&journal->parts.lock, NULL);
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&journal->wake, &attr);
	(void)pthread_cond_init(&journal->ended, &attr);
	(void)pthread_condattr_destroy(&attr);
	tree->journal = journal;
	pfs_watch(tree, &pfs_cut_watcher);
	return 0;
}

void pfs_journal_destroy(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;

	if (!journal)
		return;
	pfs_group_release(&journal->group);
	(void)pthread_cond_destroy(&journal->wake);
	(void)pthread_cond_destroy(&journal->ended);
	(void)pthread_mutex_destroy(&journal->lock);
	(void)pthread_mutex_destroy(&journal->whole);
	(void)pthread_mutex_destroy(&journal->parts.lock);
	free(journal->dirty);
	free(journal->cut_off.dirty);
	free(journal->cut_off.unlinked);
	free(journal);
	tree->journal = NULL;
}

int pfs_journal_start(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	static const struct pfs_thread_kind kind = {"pfs-committer", PFS_THREAD_NICE, 0};
	int error;

	PFS_TRY(pfs_group_find_orphans(tree, &journal->group));
	atomic_store(&journal->reaping, journal->group.reap.count != 0);
	pfs_space_refresh(tree, true);
	atomic_store(&journal->running, true);
	error = pfs_thread_start(&journal->thread, &kind, pfs_committer, tree);
	if (error)
		atomic_store(&journal->running, false);
	return error;
}

int pfs_journal_stop(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;

	if (!journal || !atomic_load(&journal->running))
		return 0;
	(void)pthread_mutex_lock(&journal->lock);
	journal->stop = true;
	(void)pthread_cond_signal(&journal->wake);
	(void)pthread_mutex_unlock(&journal->lock);
	(void)pthread_join(journal->thread, NULL);
	return atomic_load(&journal->failure);
}
