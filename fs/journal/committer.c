/* SPDX-License-Identifier: MIT */
/* The thread that writes groups. It commits when somebody waits for it, when much is pending, and
 * otherwise commit_ms after the first change. A group that could not be written is kept, and tried
 * again every second. */
#include "fs/journal/journal_impl.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fs/image/hold.h"
#include "fs/image/imagefile.h"
#include "fs/image/primes.h"
#include "fs/image/snapshot.h"
#include "fs/tree/tree_impl.h"

#define COMMIT_MS 1000u
#define RETRY_MS  1000u
/* When the image file is written anew: if nothing changes for IDLE_MS, and one of MANY nodes has
 * changed, so that opening takes no longer than bringing these up to date; if changes never pause,
 * every BESIDE_MS at most, before they are too many to be brought up to date (imagefile_follow.c).
 */
#define IDLE_MS	   60000u
#define MANY	   64u
#define BESIDE_MS  600000u
#define MANY_BESIDE 16u

static bool is_dirty(const struct pfs_journal *journal)
{
	return atomic_load(&journal->n_dirty) || atomic_load(&journal->content);
}

/* Returns true if a group is to be cut now. journal->lock is held. */
static bool is_due(const struct pfs_tree *tree)
{
	const struct pfs_journal *journal = tree->journal;

	return journal->stop || journal->wanted > journal->cut || journal->primes_wanted ||
	       journal->errand || journal->group.reap.count || pfs_journal_is_pressed(tree) ||
	       pfs_group_forgets(tree, &journal->group);
}

/* Returns true if at least one of `many` nodes has changed since the image file was written. */
static bool is_outdated(struct pfs_tree *tree, unsigned many)
{
	uint32_t nodes;

	if (!tree->options.make_image_file || !tree->journal->unsaved)
		return false;
	pfs_hold_read(tree, __func__);
	nodes = tree->image.nodes;
	pfs_hold_end(tree);
	return nodes >= PFS_IMAGE_FILE_NODES && tree->journal->unsaved > nodes / many;
}

static void make_image_file(struct pfs_tree *tree)
{
	tree->journal->unsaved = 0;
	tree->journal->image_made_ns = pfs_now_ns();
	tree->options.make_image_file(pfs_store_path(tree->store));
}

static void make_beside(struct pfs_tree *tree)
{
	uint64_t pause_ms =
		tree->options.image_beside_ms ? tree->options.image_beside_ms : BESIDE_MS;

	if (pfs_now_ns() >= tree->journal->image_made_ns + pause_ms * PFS_NS_PER_MS &&
	    is_outdated(tree, MANY_BESIDE))
		make_image_file(tree);
}

/* Sleeps while nothing changes; if that lasts IDLE_MS, writes an outdated image file anew. */
static void rest(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	const struct timespec deadline = pfs_clock_in_ms(
		CLOCK_MONOTONIC,
		tree->options.image_idle_ms ? tree->options.image_idle_ms : IDLE_MS);
	bool outdated = is_outdated(tree, MANY);
	PFS_LOCKED(&journal->lock);

	while (!is_due(tree) && !is_dirty(journal)) {
		if (!outdated) {
			(void)pthread_cond_wait(&journal->wake, &journal->lock);
		} else if (pthread_cond_timedwait(&journal->wake, &journal->lock, &deadline) ==
			   ETIMEDOUT) {
			outdated = false;
			(void)pthread_mutex_unlock(&journal->lock);
			make_image_file(tree);
			(void)pthread_mutex_lock(&journal->lock);
		}
	}
}

/* Sleeps until a group is to be cut. Returns false if the thread is to stop and nothing is left to
 * write. */
static bool wait_until_due(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	unsigned commit_ms = tree->options.commit_ms ? tree->options.commit_ms : COMMIT_MS;
	struct timespec deadline;

	rest(tree);
	PFS_LOCKED(&journal->lock);
	deadline = pfs_clock_in_ms(CLOCK_MONOTONIC, commit_ms);
	while (!is_due(tree))
		if (pthread_cond_timedwait(&journal->wake, &journal->lock, &deadline) == ETIMEDOUT)
			break;
	return !journal->stop || is_dirty(journal);
}

static void wait_to_retry(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	const struct timespec deadline = pfs_clock_in_ms(
		CLOCK_MONOTONIC, tree->options.retry_ms ? tree->options.retry_ms : RETRY_MS);
	PFS_LOCKED(&journal->lock);

	while (!journal->stop)
		if (pthread_cond_timedwait(&journal->wake, &journal->lock, &deadline) == ETIMEDOUT)
			break;
}

/* Tells the thread that waits for an errand that it cannot be written now. journal->lock is held.
 */
static void refuse_errand(struct pfs_journal *journal)
{
	struct pfs_errand *errand = journal->errand;

	if (!errand)
		return;
	journal->errand = NULL;
	errand->error = -EROFS;
	pfs_errand_end(journal, errand);
}

static int write_apart(struct pfs_tree *tree, const struct pfs_errand *errand)
{
	int error = pfs_store_begin(tree->store);

	if (!error)
		error = errand->write(errand->arg, tree->store);
	if (error) {
		pfs_store_rollback(tree->store);
		return error;
	}
	return errand->part->commit ? errand->part->commit(tree)
				    : pfs_store_commit(tree->store, NULL);
}

static void write_errand(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	struct pfs_errand *errand;

	(void)pthread_mutex_lock(&journal->lock);
	errand = journal->errand;
	journal->errand = NULL;
	(void)pthread_mutex_unlock(&journal->lock);
	if (!errand)
		return;
	errand->error = write_apart(tree, errand);
	(void)pthread_mutex_lock(&journal->lock);
	pfs_errand_end(journal, errand);
	(void)pthread_mutex_unlock(&journal->lock);
}

/* Tells whoever waits how the attempt went; logs changes of fortune. */
static void publish(struct pfs_tree *tree, int error)
{
	struct pfs_journal *journal = tree->journal;
	const char *path = pfs_store_path(tree->store);
	PFS_LOCKED(&journal->lock);

	if (error && error != atomic_load(&journal->failure))
		pfs_error("%s: changes cannot be written (%s); it is read-only until they can",
			  path, strerror(-error));
	if (!error && atomic_load(&journal->failure))
		pfs_info("%s: changes are written again", path);
	atomic_store(&journal->failure, error);
	if (!error)
		journal->committed = journal->cut;
	else
		refuse_errand(journal);
	journal->attempts++;
	(void)pthread_cond_broadcast(&journal->ended);
}

/* Frees the log's room on a full disk, before the threads that wait for room get an error. The log
 * holds everything, so if this fails it can be done later. */
static void free_log(struct pfs_tree *tree)
{
	pfs_space_refresh(tree, true);
	if (pfs_space_is_held_by_log(tree) && pfs_store_checkpoint(tree->store, true))
		pfs_debug("%s: the log stays", pfs_store_path(tree->store));
}

/* Writes the group that was cut, again and again until that succeeds; while stopping, only once
 * more. */
static int write_group(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	bool fetch = pfs_primes_low(tree), last;
	int error;

	(void)pthread_mutex_lock(&journal->lock);
	fetch = journal->primes_wanted || (fetch && journal->group.n_rows);
	journal->primes_wanted = false;
	(void)pthread_mutex_unlock(&journal->lock);
	for (;;) {
		(void)pthread_mutex_lock(&journal->lock);
		last = journal->stop;
		(void)pthread_mutex_unlock(&journal->lock);
		error = pfs_group_write(tree, &journal->group, fetch);
		if (!error)
			pfs_group_done(tree, &journal->group);
		atomic_store(&journal->n_writing, (uint32_t)journal->group.n_rows);
		atomic_store(&journal->reaping, journal->group.reap.count != 0);
		if (!error)
			free_log(tree);
		pfs_space_refresh(tree, true);
		publish(tree, error);
		if (!error || last)
			return error;
		wait_to_retry(tree);
	}
}

/* Cuts and writes one group. */
static int commit(struct pfs_tree *tree)
{
	struct pfs_journal *journal = tree->journal;
	int error = pfs_group_cut(tree, &journal->group);

	if (error) {
		publish(tree, error);
		wait_to_retry(tree);
		return error;
	}
	pfs_snapshots_drain(tree);
	journal->unsaved += journal->group.n_rows;
	tree->image.n_behind += journal->group.n_rows;
	error = write_group(tree);
	if (!error)
		pfs_group_forget(tree, &journal->group);
	if (!error && pfs_store_checkpoint(tree->store, false))
		pfs_debug("%s: checkpoint put off", pfs_store_path(tree->store));
	return error;
}

void *pfs_committer(void *arg)
{
	struct pfs_tree *tree = arg;
	struct pfs_journal *journal = tree->journal;
	int error = 0;

	journal->unsaved = tree->image.from_file ? tree->image.n_behind : UINT32_MAX;
	journal->image_made_ns = pfs_now_ns();
	while (wait_until_due(tree)) {
		bool stop;

		write_errand(tree);
		error = commit(tree);
		if (!error)
			make_beside(tree);
		(void)pthread_mutex_lock(&journal->lock);
		stop = journal->stop;
		(void)pthread_mutex_unlock(&journal->lock);
		if (error && stop)
			break;
	}
	(void)pthread_mutex_lock(&journal->lock);
	atomic_store(&journal->running, false);
	refuse_errand(journal);
	(void)pthread_cond_broadcast(&journal->ended);
	(void)pthread_mutex_unlock(&journal->lock);
	return NULL;
}
