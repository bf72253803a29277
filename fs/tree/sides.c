/* SPDX-License-Identifier: MIT */
/* The list of changes begins with those that are committed and kept for who has seen the ones before them, then come
 * those of the group that is being written, then those that no group has. */
#include "fs/tree/sides.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

#define KEPT_MAX ((size_t)4 << 20) /* bytes of changes that are committed */

struct change {
	struct change *next;
	uint64_t version; /* that it made */
	struct pfs_side_rows rows;
};

struct pfs_sides {
	pthread_mutex_t change;	  /* held by whoever changes tables */
	pthread_rwlock_t reading; /* for writing while a change becomes visible; before the content lock */
	_Atomic uint64_t version;
	/* The list.  It grows under both locks; only the committer takes out of it, under `reading`. */
	struct change *first, *last;
	struct change *pending;	 /* the first that is not committed; NULL: none */
	uint64_t since;		 /* the list has all that came after this version; protected by `reading` */
	size_t kept;		 /* bytes of those before `pending`; the committer's */
	uint64_t group;		 /* the version up to which the group goes; 0: none; the committer's */
};

static size_t cost(const struct change *change)
{
	return sizeof(*change) + change->rows.capacity;
}

static void free_change(struct change *change)
{
	pfs_side_rows_finish(&change->rows);
	free(change);
}

/* ---- what the committer does ---- */

struct writing {
	struct pfs_store *store;
	uint32_t table;
};

static int write_row(void *arg, int64_t row, const struct pfs_cell *cells, size_t n)
{
	const struct writing *writing = arg;

	if (!cells)
		return pfs_store_remove_row(writing->store, writing->table, row);
	return pfs_store_put_row(writing->store, writing->table, row, cells, n);
}

/* Nobody takes them out meanwhile, and what stands behind the last one is not looked at. */
static int write_up_to(const struct pfs_sides *sides, struct pfs_store *store, uint64_t version)
{
	const struct change *change = sides->pending;

	while (change) {
		struct writing writing = {store, change->rows.table};

		PFS_TRY(pfs_side_rows_each(&change->rows, write_row, &writing));
		if (change->version == version)
			break;
		change = change->next;
	}
	return 0;
}

/* The group begins with what was pending before: if nothing was, `pending` is the first of them. */
static void cut(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;

	sides->group = sides->pending ? sides->last->version : 0;
}

static int write_group(struct pfs_tree *tree)
{
	const struct pfs_sides *sides = tree->sides;

	return sides->group ? write_up_to(sides, tree->store, sides->group) : 0;
}

/* Those up to the version are committed; `reading` is held for writing. */
static void settle(struct pfs_tree *tree, uint64_t version)
{
	struct pfs_sides *sides = tree->sides;

	pfs_parts_lock(tree);
	for (; sides->pending && sides->pending->version <= version; sides->pending = sides->pending->next) {
		*pfs_parts_unreported(tree) -= (int64_t)cost(sides->pending);
		sides->kept += cost(sides->pending);
	}
	pfs_parts_unlock(tree);
}

static void forget_first(struct pfs_sides *sides)
{
	struct change *change = sides->first;

	sides->first = change->next;
	if (!sides->first)
		sides->last = NULL;
	sides->since = change->version;
	sides->kept -= cost(change);
	free_change(change);
}

static void done(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;

	if (!sides->group)
		return;
	(void)pthread_rwlock_wrlock(&sides->reading);
	settle(tree, sides->group);
	pfs_parts_lock(tree); /* for cutting and adding; both look at the last */
	while (sides->kept > KEPT_MAX)
		forget_first(sides);
	pfs_parts_unlock(tree);
	(void)pthread_rwlock_unlock(&sides->reading);
	sides->group = 0;
}

/* Of an errand, which has written all rows that were pending: no change comes in between. */
static int commit_shown(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;
	int error;

	(void)pthread_rwlock_wrlock(&sides->reading);
	error = pfs_store_commit(tree->store, NULL);
	if (!error) {
		settle(tree, UINT64_MAX);
		pfs_parts_lock(tree);
		while (sides->first)
			forget_first(sides);
		pfs_parts_unlock(tree);
		sides->since = atomic_fetch_add(&sides->version, 1) + 1;
	}
	(void)pthread_rwlock_unlock(&sides->reading);
	return error;
}

static const struct pfs_part part = {
	.name = "side tables", .cut = cut, .write = write_group, .done = done, .commit = commit_shown};

/* ---- life ---- */

int pfs_sides_create(struct pfs_tree *tree)
{
	struct pfs_sides *sides = calloc(1, sizeof(*sides));

	if (!sides)
		return -ENOMEM;
	(void)pthread_mutex_init(&sides->change, NULL);
	(void)pthread_rwlock_init(&sides->reading, NULL);
	atomic_store(&sides->version, 1);
	sides->since = 1;
	tree->sides = sides;
	pfs_take_part(tree, &part);
	return 0;
}

void pfs_sides_destroy(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;

	if (!sides)
		return;
	while (sides->first) {
		struct change *change = sides->first;

		sides->first = change->next;
		free_change(change);
	}
	(void)pthread_rwlock_destroy(&sides->reading);
	(void)pthread_mutex_destroy(&sides->change);
	free(sides);
	tree->sides = NULL;
}

uint64_t pfs_sides_version(const struct pfs_tree *tree)
{
	return atomic_load(&tree->sides->version);
}

void pfs_sides_hold(struct pfs_tree *tree)
{
	(void)pthread_mutex_lock(&tree->sides->change);
}

void pfs_sides_release(struct pfs_tree *tree)
{
	(void)pthread_mutex_unlock(&tree->sides->change);
}

/* ---- reading ---- */

int pfs_sides_read(struct pfs_tree *tree, int (*read)(void *arg, struct pfs_store *store),
		   void *arg)
{
	int error;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	error = read(arg, tree->store);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return error;
}

int pfs_sides_pending(struct pfs_tree *tree, uint32_t table,
		      int (*fn)(void *arg, int64_t row, const struct pfs_cell *cells, size_t n), void *arg)
{
	for (const struct change *change = tree->sides->pending; change; change = change->next)
		if (change->rows.table == table)
			PFS_TRY(pfs_side_rows_each(&change->rows, fn, arg));
	return 0;
}

int pfs_sides_between(struct pfs_tree *tree, uint64_t after, uint64_t up_to,
		    int (*fn)(void *arg, const struct pfs_side_rows *rows), void *arg)
{
	const struct pfs_sides *sides = tree->sides;

	if (after < sides->since)
		return -ENOENT;
	for (const struct change *change = sides->first; change && change->version <= up_to; change = change->next)
		if (change->version > after)
			PFS_TRY(fn(arg, &change->rows));
	return 0;
}

/* ---- changing ---- */

struct apart {
	struct pfs_sides *sides;
	int (*write)(void *arg, struct pfs_store *store);
	void *arg;
};

static int write_apart(void *arg, struct pfs_store *store)
{
	const struct apart *apart = arg;

	PFS_VERIFY_CHECK(!apart->sides->group);
	PFS_TRY(write_up_to(apart->sides, store, UINT64_MAX));
	return apart->write(apart->arg, store);
}

int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
		     int (*write)(void *arg, struct pfs_store *store), void *arg)
{
	struct apart apart = {tree->sides, write, arg};
	struct pfs_errand errand = {.part = &part, .write = write_apart, .arg = &apart};

	PFS_TRY(pfs_journal_reserve(tree, 1, bytes, false));
	return pfs_journal_send(tree, &errand);
}

int pfs_sides_apply(struct pfs_tree *tree, struct pfs_side_rows *rows)
{
	struct pfs_sides *sides = tree->sides;
	struct change *change;

	PFS_TRY(pfs_journal_reserve(tree, 1, rows->size, false));
	change = malloc(sizeof(*change));
	if (!change)
		return -ENOMEM;
	(void)pthread_rwlock_wrlock(&sides->reading);
	*change = (struct change){.version = atomic_load(&sides->version) + 1, .rows = *rows};
	*rows = (struct pfs_side_rows){.table = rows->table};
	pfs_parts_lock(tree);
	*(sides->last ? &sides->last->next : &sides->first) = change;
	sides->last = change;
	if (!sides->pending)
		sides->pending = change;
	*pfs_parts_unreported(tree) += (int64_t)cost(change);
	atomic_store(&sides->version, change->version);
	pfs_parts_unlock(tree);
	(void)pthread_rwlock_unlock(&sides->reading);
	return 0;
}

int pfs_sides_settle(struct pfs_tree *tree)
{
	bool is_pending;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	is_pending = tree->sides->pending;
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return is_pending ? pfs_tree_sync(tree) : 0;
}
