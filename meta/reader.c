/* SPDX-License-Identifier: MIT */
/* Connections for reading, kept while they are not in use. */
#include "meta/account.h"
#include "meta/store.h"
#include "base/cleanup.h"
#include "meta/internal.h"

#define IDLE_READERS 8

int pfs_reader_get(struct pfs_store *store, struct pfs_db **out)
{
	struct pfs_account *asker;
	struct pfs_db *db;
	int error = 0;

	if (store->flags & PFS_STORE_BULK) {
		*out = store->writer;
		return pfs_group_settle(store);
	}
	if (store->group) {
		(void)pthread_mutex_lock(&store->group_mutex);
		*out = store->group;
		return 0;
	}
	asker = pfs_account_enter(NULL);
	(void)pthread_mutex_lock(&store->mutex);
	db = store->idle;
	if (db) {
		store->idle = db->next;
		store->n_idle--;
	}
	(void)pthread_mutex_unlock(&store->mutex);
	if (!db)
		error = pfs_db_open(&db, store->path, store->read_mode, store->vfs);
	if (error)
		(void)pfs_account_enter(asker);
	else
		db->asker = asker;
	*out = db;
	return error;
}

void pfs_reader_put(struct pfs_store *store, struct pfs_db *db)
{
	struct pfs_account *asker = db->asker;

	if (db == store->writer)
		return;
	if (db == store->group) {
		(void)pthread_mutex_unlock(&store->group_mutex);
		return;
	}
	(void)pthread_mutex_lock(&store->mutex);
	if (store->n_idle < IDLE_READERS) {
		db->next = store->idle;
		store->idle = db;
		store->n_idle++;
		db = NULL;
	}
	(void)pthread_mutex_unlock(&store->mutex);
	(void)pfs_db_close(db);
	(void)pfs_account_enter(asker);
}
