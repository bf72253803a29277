/* SPDX-License-Identifier: MIT */
/* meta/group.c - the writing connection: groups, the log, and the numbers that are kept from group
 * to group. */
#include "meta/internal.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/random.h"

#define ROW_BYTES 16 /* the least bytes of a node's record */
#define SLOTS_MIN ((uint64_t)1 << 22) /* so many slots may have been in use and never written */

/* ---- the meta row ---- */

/* Reads a token. Returns false if there is a value that is none. */
static bool read_token(uint8_t *out, bool *has, sqlite3_stmt *row, int column)
{
	const void *token;
	size_t len;

	*has = sqlite3_column_type(row, column) != SQLITE_NULL;
	if (!*has)
		return true;
	if (!pfs_column_blob(&token, &len, row, column, PFS_TOKEN_SIZE) || len != PFS_TOKEN_SIZE)
		return false;
	(void)memcpy(out, token, PFS_TOKEN_SIZE);
	return true;
}

static bool meta_from_row(struct pfs_meta *out, uint64_t *seed, sqlite3_stmt *row)
{
	int64_t seq, directory, other, directories, others, end_slot, feed_start;

	if (!pfs_column_u64(seed, row, 0) || !pfs_column_int(&seq, row, 1, 0, INT64_MAX) ||
	    !pfs_column_int(&directory, row, 2, 3, (int64_t)PFS_FIRST_OTHER) ||
	    !pfs_column_int(&other, row, 3, (int64_t)PFS_FIRST_OTHER + 1, INT64_MAX) ||
	    !pfs_column_int(&directories, row, 4, 0, UINT32_MAX) ||
	    !pfs_column_int(&others, row, 5, 0, UINT32_MAX) ||
	    !pfs_column_int(&end_slot, row, 6, 0, (int64_t)UINT32_MAX + 1) ||
	    !pfs_column_int(&feed_start, row, 7, 0, seq))
		return false;
	*out = (struct pfs_meta){.seq = (uint64_t)seq,
				 .next = {(uint64_t)directory, (uint64_t)other},
				 .nodes = {(uint64_t)directories, (uint64_t)others},
				 .end_slot = (uint64_t)end_slot,
				 .feed_start = (uint64_t)feed_start};
	return read_token(out->token, &out->has_token, row, 8) &&
	       read_token(out->feed_token, &out->has_feed_token, row, 9);
}

int pfs_meta_read(struct pfs_meta *out, uint64_t *seed, struct pfs_db *db)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_META_GET];
	int got = pfs_db_step(db, row);

	if (got < 0)
		return got;
	return got && meta_from_row(out, seed, row) ? 0 : -EMEDIUMTYPE;
}

/* A record has more than ROW_BYTES, and the file does not shrink when nodes are removed. */
uint64_t pfs_slots_believed(struct pfs_db *db)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_PAGES];
	int64_t pages = pfs_db_step(db, row) == 1 ? sqlite3_column_int64(row, 0) : 0;

	return PFS_MAX((uint64_t)PFS_MAX(pages, 0) * (PFS_DB_PAGE_SIZE / ROW_BYTES), SLOTS_MIN);
}

int pfs_meta_load(struct pfs_store *store, struct pfs_db *db)
{
	int error = pfs_meta_read(&store->committed, &store->seed, db);

	store->version = db->version;
	if (!error)
		store->committed.end_slot =
			PFS_MIN(store->committed.end_slot, pfs_slots_believed(db));
	store->meta = store->committed;
	store->end_slot = store->meta.end_slot;
	return error;
}

static void bind_token(sqlite3_stmt *statement, int parameter, const uint8_t *token, bool has)
{
	if (has)
		pfs_bind_blob(statement, parameter, token, PFS_TOKEN_SIZE);
	else
		(void)sqlite3_bind_null(statement, parameter);
}

static void meta_bind(sqlite3_stmt *statement, const struct pfs_meta *meta)
{
	pfs_bind_u64(statement, 1, meta->seq);
	pfs_bind_u64(statement, 2, meta->next[PFS_PRIME_DIRECTORY]);
	pfs_bind_u64(statement, 3, meta->next[PFS_PRIME_OTHER]);
	pfs_bind_u64(statement, 4, meta->nodes[PFS_PRIME_DIRECTORY]);
	pfs_bind_u64(statement, 5, meta->nodes[PFS_PRIME_OTHER]);
	pfs_bind_u64(statement, 6, meta->end_slot);
	pfs_bind_u64(statement, 7, meta->feed_start);
	bind_token(statement, 8, meta->token, meta->has_token);
	bind_token(statement, 9, meta->feed_token, meta->has_feed_token);
}

/* ---- the connection ---- */

static int note_log_length(void *arg, sqlite3 *handle PFS_UNUSED, const char *name PFS_UNUSED,
			   int pages)
{
	struct pfs_store *store = arg;

	store->log_bytes = (uint64_t)pages * PFS_DB_PAGE_SIZE;
	return SQLITE_OK;
}

int pfs_writer_open(struct pfs_store *store, enum pfs_db_mode mode)
{
	int error = pfs_db_open(&store->writer, store->path, mode, store->vfs);

	if (!error)
		(void)sqlite3_wal_hook(store->writer->handle, note_log_length, store);
	return error;
}

/* Moves everything into the main file, and leaves an empty log, which disappears with the last
 * connection. */
int pfs_writer_finish(struct pfs_store *store)
{
	int result = sqlite3_wal_checkpoint_v2(store->writer->handle, NULL,
					       SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);

	if ((result & 0xff) == SQLITE_BUSY || (result & 0xff) == SQLITE_LOCKED) {
		pfs_warning("%s: another program reads it: its log (-wal) stays", store->path);
		return 0;
	}
	return pfs_db_errno(store->writer, result);
}

/* Returns the number, or `before` if it cannot be read now. */
static uint64_t count(uint64_t before, struct pfs_db *db, enum pfs_store_statement sql)
{
	sqlite3_stmt *row PFS_RESET = db->sql[sql];

	return pfs_db_step(db, row) == 1 ? (uint64_t)sqlite3_column_int64(row, 0) : before;
}

void pfs_count_pages(struct pfs_store *store)
{
	uint64_t pages = count(store->pages, store->writer, PFS_SQL_PAGES);
	uint64_t free_pages = count(store->free_pages, store->writer, PFS_SQL_FREE_PAGES);

	__atomic_store_n(&store->pages, pages, __ATOMIC_RELAXED);
	__atomic_store_n(&store->free_pages, free_pages, __ATOMIC_RELAXED);
}

/* ---- groups ---- */

int pfs_group_ready(const struct pfs_store *store)
{
	if (store->flags & PFS_STORE_READ_ONLY)
		return -EROFS;
	if (!store->in_group)
		return -EINVAL;
	return store->group_error;
}

int pfs_group_run(struct pfs_store *store, enum pfs_store_statement sql)
{
	int error = pfs_db_run(store->writer, sql);

	if (error)
		store->group_error = error;
	return error;
}

int pfs_group_run_for(struct pfs_store *store, enum pfs_store_statement sql, uint64_t prime)
{
	pfs_bind_u64(store->writer->sql[sql], 1, prime);
	return pfs_group_run(store, sql);
}

int pfs_store_begin(struct pfs_store *store)
{
	int error = 0;

	if (store->flags & PFS_STORE_READ_ONLY)
		return -EROFS;
	if (store->in_group)
		return -EINVAL;
	if (store->spoilt)
		return -EIO;
	if (!store->writer)
		error = pfs_writer_open(store, PFS_DB_WRITE);
	if (!error)
		error = pfs_db_run(store->writer, PFS_SQL_BEGIN);
	if (error)
		return error;
	store->in_group = true;
	store->group_error = 0;
	error = pfs_history_begin(store);
	if (error)
		pfs_store_rollback(store);
	return error;
}

/* Sets the row back to what is stored, but for the numbers that were handed out: these stay so even
 * if the group that would have recorded them is lost, and the next group records them. */
static void meta_roll_back(struct pfs_store *store)
{
	PFS_LOCKED(&store->mutex);
	struct pfs_meta meta = store->committed;

	(void)memcpy(meta.next, store->meta.next, sizeof(meta.next));
	store->meta = meta;
}

void pfs_store_rollback(struct pfs_store *store)
{
	if (!store->in_group)
		return;
	store->in_group = false;
	pfs_change_end(store);
	pfs_history_end(store, false);
	if (store->flags & PFS_STORE_BULK) {
		store->spoilt = true;
		store->put_rest = NULL;
		return;
	}
	/* After some failures SQLite has rolled back by itself. */
	if (!sqlite3_get_autocommit(store->writer->handle) &&
	    pfs_db_run(store->writer, PFS_SQL_ROLLBACK)) {
		(void)pfs_db_close(store->writer);
		store->writer = NULL; /* pfs_store_begin opens it again */
	}
	(void)memset(store->names, 0, sizeof(*store->names));
	meta_roll_back(store);
}

/* Runs the last statements of a group. */
static int write_meta_and_commit(struct pfs_store *store, struct pfs_meta *meta)
{
	int error;

	meta->seq++;
	error = pfs_random_bytes(meta->token, PFS_TOKEN_SIZE);
	if (error)
		return error;
	meta->has_token = true;
	error = pfs_change_write(store, meta);
	if (!error)
		error = pfs_history_write(store, meta->seq);
	if (error)
		return error;
	meta_bind(store->writer->sql[PFS_SQL_META_SET], meta);
	error = pfs_group_run(store, PFS_SQL_META_SET);
	return error ? error : pfs_group_run(store, PFS_SQL_COMMIT);
}

/* The log keeps the name that the store was opened by, and nobody looks for it beside another
 * name. */
static void tell_rename(struct pfs_store *store)
{
	int has_moved = 0;

	if (!store->log_bytes || store->has_moved ||
	    sqlite3_file_control(store->writer->handle, NULL, SQLITE_FCNTL_HAS_MOVED, &has_moved) !=
		    SQLITE_OK)
		return;
	store->has_moved = has_moved;
	if (has_moved)
		pfs_warning(
			"%s: was renamed or removed while it is open; after a crash rename %s-wal likewise before it is "
			"opened: it has what was committed last",
			store->path, store->path);
}

int pfs_store_commit(struct pfs_store *store, uint64_t *seq)
{
	struct pfs_meta meta = store->meta;
	int error = pfs_group_ready(store);

	if (error && !store->in_group)
		return error;
	if (!error)
		error = pfs_group_settle(store);
	if (!error)
		error = write_meta_and_commit(store, &meta);
	if (error) {
		pfs_store_rollback(store);
		return error;
	}
	store->in_group = false;
	tell_rename(store);
	store->writer->logged = 0;
	pfs_change_end(store);
	pfs_history_end(store, true);
	pfs_count_pages(store);
	(void)pthread_mutex_lock(&store->mutex);
	store->meta = store->committed = meta;
	(void)pthread_mutex_unlock(&store->mutex);
	if (seq)
		*seq = meta.seq;
	return 0;
}

int pfs_store_checkpoint(struct pfs_store *store, bool free_log)
{
	int how = free_log ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;
	int in_log = 0, done = 0, result;

	if (store->in_group)
		return -EINVAL;
	if (!store->writer || (!free_log && store->log_bytes < store->log_limit))
		return 0;
	result = sqlite3_wal_checkpoint_v2(store->writer->handle, NULL, how, &in_log, &done);
	if ((result & 0xff) == SQLITE_BUSY)
		return 0; /* another program is moving it */
	if (!result && in_log == done)
		store->log_bytes = 0; /* the next group begins the log anew */
	return pfs_db_errno(store->writer, result);
}

uint64_t pfs_store_seq(struct pfs_store *store)
{
	PFS_LOCKED(&store->mutex);

	return store->committed.seq;
}

int pfs_store_state(struct pfs_store *store, struct pfs_store_state *out)
{
	PFS_LOCKED(&store->mutex);

	if (!store->committed.has_token)
		return -ENODATA;
	out->seq = store->committed.seq;
	(void)memcpy(out->token, store->committed.token, PFS_TOKEN_SIZE);
	return 0;
}

/* ---- primes ---- */

int pfs_store_reserve(struct pfs_store *store, uint64_t *first, uint64_t *end,
		      enum pfs_prime_kind kind, uint64_t count)
{
	const uint64_t limit = kind == PFS_PRIME_DIRECTORY ? PFS_FIRST_OTHER : PFS_END_PRIME - 1;
	int error = pfs_group_ready(store);

	if (error)
		return error;
	if (!count)
		return -EINVAL;
	PFS_LOCKED(&store->mutex);
	if (store->meta.next[kind] >= limit)
		return -ENOSPC;
	*first = store->meta.next[kind];
	*end = *first + PFS_MIN(count, limit - *first);
	store->meta.next[kind] = *end;
	return 0;
}

int pfs_store_reserved(struct pfs_store *store, uint64_t *first, enum pfs_prime_kind kind)
{
	PFS_LOCKED(&store->mutex);

	*first = store->meta.next[kind];
	return 0;
}
