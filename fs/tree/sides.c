/* SPDX-License-Identifier: MIT */
#include "fs/tree/sides.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "fs/journal/journal.h"
#include "fs/journal/part.h"
#include "fs/tree/tree_impl.h"

struct pfs_sides {
	pthread_mutex_t change;	  /* held by whoever changes tables */
	pthread_rwlock_t reading; /* for writing while a change becomes visible */
	_Atomic uint64_t version;
};

static int commit_shown(struct pfs_tree *tree)
{
	struct pfs_sides *sides = tree->sides;
	int error;

	(void)pthread_rwlock_wrlock(&sides->reading);
	error = pfs_store_commit(tree->store, NULL);
	if (!error)
		atomic_fetch_add(&sides->version, 1);
	(void)pthread_rwlock_unlock(&sides->reading);
	return error;
}

static const struct pfs_part part = {.name = "side tables", .commit = commit_shown};

int pfs_sides_create(struct pfs_tree *tree)
{
	struct pfs_sides *sides = calloc(1, sizeof(*sides));

	if (!sides)
		return -ENOMEM;
	(void)pthread_mutex_init(&sides->change, NULL);
	(void)pthread_rwlock_init(&sides->reading, NULL);
	atomic_store(&sides->version, 1);
	tree->sides = sides;
	pfs_take_part(tree, &part);
	return 0;
}

void pfs_sides_destroy(struct pfs_tree *tree)
{
	if (!tree->sides)
		return;
	(void)pthread_rwlock_destroy(&tree->sides->reading);
	(void)pthread_mutex_destroy(&tree->sides->change);
	free(tree->sides);
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

int pfs_sides_read(struct pfs_tree *tree, int (*read)(void *arg, struct pfs_store *store),
		   void *arg)
{
	int error;

	(void)pthread_rwlock_rdlock(&tree->sides->reading);
	error = read(arg, tree->store);
	(void)pthread_rwlock_unlock(&tree->sides->reading);
	return error;
}

int pfs_sides_commit(struct pfs_tree *tree, uint64_t bytes,
		     int (*write)(void *arg, struct pfs_store *store), void *arg)
{
	struct pfs_errand errand = {.part = &part, .write = write, .arg = arg};

	PFS_TRY(pfs_journal_reserve(tree, 1, bytes, false));
	return pfs_journal_send(tree, &errand);
}
