/* SPDX-License-Identifier: MIT */
/* Chunks of files, and content whose node is gone (meta/store.h). */
#include "meta/store.h"

#include <string.h>

#include "base/checked.h"
#include "meta/internal.h"

#define END_CHUNK (UINT64_C(1) << 47) /* the number of chunks of 2^63 bytes */

int pfs_store_put_chunk(struct pfs_store *store, uint64_t prime, uint64_t n, const void *data,
			size_t len)
{
	int error = pfs_group_ready(store);
	sqlite3_stmt *put;

	if (error)
		return error;
	if (prime >= PFS_END_PRIME || n >= END_CHUNK || len > PFS_CHUNK_SIZE)
		return -EINVAL;
	pfs_change_note(store, prime);
	put = store->writer->sql[PFS_SQL_CHUNK_PUT];
	pfs_bind_u64(put, 1, prime);
	pfs_bind_u64(put, 2, n);
	pfs_bind_blob(put, 3, data, len);
	return pfs_group_run(store, PFS_SQL_CHUNK_PUT);
}

static void bind_range(sqlite3_stmt *statement, uint64_t prime, uint64_t first, uint64_t end)
{
	pfs_bind_u64(statement, 1, prime);
	pfs_bind_u64(statement, 2, PFS_MIN(first, END_CHUNK));
	pfs_bind_u64(statement, 3, PFS_MIN(end, END_CHUNK));
}

int pfs_store_remove_chunks(struct pfs_store *store, uint64_t prime, uint64_t first, uint64_t end)
{
	int error = pfs_group_ready(store);

	if (error)
		return error;
	pfs_change_note(store, prime);
	bind_range(store->writer->sql[PFS_SQL_CHUNK_DELETE], prime, first, end);
	return pfs_group_run(store, PFS_SQL_CHUNK_DELETE);
}

static int get_chunk(struct pfs_db *db, void *data, size_t *len, uint64_t prime, uint64_t n)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_CHUNK_GET];
	const void *bytes;
	size_t count;
	int got;

	pfs_bind_u64(row, 1, prime);
	pfs_bind_u64(row, 2, PFS_MIN(n, END_CHUNK));
	got = pfs_db_step(db, row);
	if (got <= 0)
		return got ? got : -ENOENT;
	if (!pfs_column_blob(&bytes, &count, row, 0, PFS_CHUNK_SIZE))
		return pfs_db_damaged(db, "chunk of node", prime, "it is no chunk");
	(void)memcpy(data, bytes, count);
	*len = count;
	return 0;
}

int pfs_store_get_chunk(struct pfs_store *store, void *data, size_t *len, uint64_t prime,
			uint64_t n)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int error = pfs_reader_get(store, &reader.db);

	return error ? error : get_chunk(reader.db, data, len, prime, n);
}

static int next_chunk(struct pfs_db *db, uint64_t *n, size_t *len, uint64_t prime, uint64_t first,
		      uint64_t end)
{
	sqlite3_stmt *row PFS_RESET = db->sql[PFS_SQL_CHUNK_NEXT];
	int64_t place, length;
	int got;

	bind_range(row, prime, first, end);
	got = pfs_db_step(db, row);
	if (got <= 0)
		return got ? got : -ENOENT;
	if (!pfs_column_int(&place, row, 0, 0, (int64_t)END_CHUNK - 1) ||
	    !pfs_column_int(&length, row, 1, 0, PFS_CHUNK_SIZE) || sqlite3_column_int(row, 2) != 1)
		return pfs_db_damaged(db, "chunk of node", prime, "it is no chunk");
	*n = (uint64_t)place;
	*len = (size_t)length;
	return 0;
}

int pfs_store_next_chunk(struct pfs_store *store, uint64_t *n, size_t *len, uint64_t prime,
			 uint64_t first, uint64_t end)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int error = pfs_reader_get(store, &reader.db);

	return error ? error : next_chunk(reader.db, n, len, prime, first, end);
}

/* It copies one chunk at a time: INSERT INTO chunk SELECT FROM chunk would hold the whole content
 * in memory. */
int pfs_store_copy_chunks(struct pfs_store *store, uint64_t to, uint64_t from)
{
	int error = pfs_group_ready(store);
	uint8_t data[PFS_CHUNK_SIZE];
	uint64_t n = 0;
	size_t len = 0;

	if (error)
		return error;
	if (to >= PFS_END_PRIME || to == from)
		return -EINVAL;
	while (!(error = next_chunk(store->writer, &n, &len, from, n, END_CHUNK))) {
		error = get_chunk(store->writer, data, &len, from, n);
		if (!error)
			error = pfs_store_put_chunk(store, to, n, data, len);
		if (error)
			return error;
		n++;
	}
	return error == -ENOENT ? 0 : error;
}

/* ---- orphans ---- */

int pfs_store_add_orphan(struct pfs_store *store, uint64_t prime)
{
	int error = pfs_group_ready(store);

	return error ? error : pfs_group_run_for(store, PFS_SQL_ORPHAN_PUT, prime);
}

int pfs_store_reap_orphan(struct pfs_store *store, bool *left, uint64_t prime, uint64_t max_chunks)
{
	int error = pfs_group_ready(store);
	size_t len;
	uint64_t n;

	if (error)
		return error;
	pfs_bind_u64(store->writer->sql[PFS_SQL_CHUNK_REAP], 2, PFS_MIN(max_chunks, END_CHUNK));
	error = pfs_group_run_for(store, PFS_SQL_CHUNK_REAP, prime);
	if (error)
		return error;
	error = next_chunk(store->writer, &n, &len, prime, 0, END_CHUNK);
	if (!error) {
		*left = true;
		return 0;
	}
	if (error == -ENOENT)
		error = pfs_group_run_for(store, PFS_SQL_ORPHAN_DELETE, prime);
	else
		store->group_error = error; /* SQLite may have rolled back */
	if (!error)
		*left = false;
	return error;
}

int pfs_store_next_orphan(struct pfs_store *store, uint64_t *prime, uint64_t from)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	int64_t value;
	int got;

	PFS_TRY(pfs_reader_begin(&reader, PFS_SQL_ORPHAN_NEXT));
	pfs_bind_u64(reader.row, 1, PFS_MIN(from, PFS_END_PRIME - 1));
	got = pfs_reader_step(&reader);
	if (got < 0)
		return got;
	if (sqlite3_column_type(reader.row, 0) == SQLITE_NULL)
		return -ENOENT;
	if (!pfs_column_int(&value, reader.row, 0, 1, INT64_MAX))
		return pfs_db_damaged(reader.db, "orphan", 0, "the prime is out of range");
	*prime = (uint64_t)value;
	return 0;
}
