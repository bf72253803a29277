/* SPDX-License-Identifier: MIT */
/* One commit: writes to the store what cut.c took from the image.
 *
 * A node that has lost its last name is removed from the store with the next group. Its content
 * may still be used, or be too much for one group; then an orphan is noted in the same transaction.
 * Orphans that nobody uses are removed piece by piece, and so is old history, in groups of its own.
 */
#include "fs/journal/journal_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/radix.h"
#include "fs/image/image.h"
#include "fs/image/imagefile.h"
#include "fs/image/primes.h"
#include "fs/tree/tree_impl.h"
#include "meta/history.h"

#define REAP_CHUNKS    256u		  /* chunks of orphans that one group removes */
#define REAP_ORPHANS   64u
#define FORGET_RETRY_MS 60000
#define PFS_CHUNKS_END UINT64_MAX

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

/* Sorts rows by their keys in the store, so that no page is changed twice. */
static int sort_rows(struct pfs_keyed *order, const struct pfs_group *group)
{
	for (size_t i = 0; i < group->n_rows; i++)
		order[i] = (struct pfs_keyed){group->rows[i].record.prime, (uint32_t)i};
	return pfs_radix_sort(order, group->n_rows);
}

/* Removals first: what is put may have taken their slots and names. */
static int write_sorted(struct pfs_store *store, const struct pfs_group *group,
			const struct pfs_keyed *order)
{
	for (size_t i = 0; i < group->n_rows; i++) {
		const struct pfs_group_row *row = &group->rows[order[i].value];

		if (row->action != PFS_ROW_PUT)
			PFS_TRY(write_removal(store, row));
	}
	for (size_t i = 0; i < group->n_rows; i++) {
		const struct pfs_group_row *row = &group->rows[order[i].value];

		if (row->action == PFS_ROW_PUT)
			PFS_TRY(pfs_store_put_node(store, &row->record));
	}
	return 0;
}

static int write_rows(struct pfs_store *store, const struct pfs_group *group)
{
	struct pfs_keyed *order;
	int error;

	if (!group->n_rows)
		return 0;
	order = calloc(group->n_rows, sizeof(*order));
	error = order ? sort_rows(order, group) : -ENOMEM;
	if (!error)
		error = write_sorted(store, group, order);
	free(order);
	return error;
}

/* Removes a bounded part of the content that nobody uses, beginning with the orphan noted
 * last. */
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

/* Removes history that is too old, in a group of its own: a failure holds up nobody's changes, and
 * is tried again later. */
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
	pfs_warning("%s: history that is too old cannot be forgotten (%s); it is tried again",
		    pfs_store_path(tree->store), strerror(-error));
}

int pfs_group_write(struct pfs_tree *tree, struct pfs_group *group, bool fetch)
{
	int error;

	if (!group->n_rows && !group->content && !group->reap.count && !fetch)
		return 0;
	PFS_TRY(pfs_imagefile_failure(tree)); /* what was cut may be wrong */
	error = pfs_store_begin(tree->store);
	if (!error) {
		error = write_all(tree, group, fetch);
		if (error)
			pfs_store_rollback(tree->store);
	}
	if (fetch)
		pfs_primes_fetched(tree, error == 0);
	return error;
}

static void release_rows(struct pfs_group *group)
{
	free(group->rows);
	free(group->bytes);
	group->rows = NULL;
	group->bytes = NULL;
	group->row_capacity = group->byte_capacity = 0;
}

void pfs_group_done(struct pfs_tree *tree, struct pfs_group *group)
{
	pfs_parts_done(tree);
	(void)atomic_fetch_sub(&tree->journal->former, group->former);
	group->former = 0;
	group->reap.count -= group->n_reaped;
	if (group->row_capacity > PFS_DIRTY_LIST)
		release_rows(group);
	group->n_reaped = group->n_rows = group->n_bytes = 0;
}

/* ---- life ---- */

int pfs_group_find_orphans(struct pfs_tree *tree, struct pfs_group *group)
{
	struct pfs_reap *reap = &group->reap;
	uint64_t prime, from = 0;
	int error;

	while (!(error = pfs_store_next_orphan(tree->store, &prime, from))) {
		PFS_TRY(pfs_grow(&reap->primes, &reap->capacity, reap->count + 1,
				 sizeof(*reap->primes)));
		reap->primes[reap->count++] = prime;
		from = prime + 1;
	}
	return error == -ENOENT ? 0 : error;
}

void pfs_group_release(struct pfs_group *group)
{
	release_rows(group);
	free(group->reap.primes);
	*group = (struct pfs_group){0};
}
