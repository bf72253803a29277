/* SPDX-License-Identifier: MIT */
#include "tools/bench/s5_peers.h"

#include <dlfcn.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "base/log.h"
#include "tools/bench/peer.h"

struct pfs_s5_peer {
	enum pfs_s5_peer_kind kind;
	/* for abseil: btree_map.cc */
	void *library, *map;
	void *(*create)(void);
	void (*destroy)(void *map);
	void (*append)(void *map, const uint64_t *keys, const uint32_t *values, size_t n);
	void (*find)(void *map, uint32_t *values, const uint64_t *keys, size_t n);
	void (*visit)(void *map, uint64_t *keys, uint32_t *values);
	size_t (*insert)(void *map, const uint64_t *keys, const uint32_t *values, size_t n);
	size_t (*erase)(void *map, const uint64_t *keys, size_t n);
	/* for SQLite */
	sqlite3 *handle;
	sqlite3_stmt *add, *get, *all, *drop;
};

const char *pfs_s5_peer_name(enum pfs_s5_peer_kind kind)
{
	return kind == PFS_S5_ABSEIL ? "abseil's btree_map" : "SQLite's B-tree";
}

static int open_abseil(struct pfs_s5_peer *peer)
{
	const struct pfs_peer_function functions[] = {
		{"pfs_btree_map_create", (void **)&peer->create},
		{"pfs_btree_map_destroy", (void **)&peer->destroy},
		{"pfs_btree_map_append", (void **)&peer->append},
		{"pfs_btree_map_find", (void **)&peer->find},
		{"pfs_btree_map_visit", (void **)&peer->visit},
		{"pfs_btree_map_insert", (void **)&peer->insert},
		{"pfs_btree_map_erase", (void **)&peer->erase},
	};

	peer->library = pfs_peer_library("libbtreemap.so");
	if (!pfs_peer_functions(peer->library, functions, PFS_COUNT(functions)))
		return -ENOENT;
	peer->map = peer->create();
	return peer->map ? 0 : -ENOMEM;
}

static int failed(struct pfs_s5_peer *peer)
{
	pfs_error("SQLite: %s", sqlite3_errmsg(peer->handle));
	return -EIO;
}

static int run(struct pfs_s5_peer *peer, const char *sql)
{
	return sqlite3_exec(peer->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : failed(peer);
}

static int open_sqlite(struct pfs_s5_peer *peer)
{
	const struct {
		const char *sql;
		sqlite3_stmt **at;
	} statements[] = {
		{"INSERT INTO map VALUES (?1, ?2)", &peer->add},
		{"SELECT value FROM map WHERE key = ?1", &peer->get},
		{"SELECT key, value FROM map ORDER BY key", &peer->all},
		{"DELETE FROM map WHERE key = ?1", &peer->drop},
	};

	if (sqlite3_open_v2(":memory:", &peer->handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
			    NULL) != SQLITE_OK)
		return failed(peer);
	PFS_TRY(run(peer, "CREATE TABLE map(key INTEGER PRIMARY KEY, value INTEGER)"));
	for (size_t i = 0; i < PFS_COUNT(statements); i++)
		if (sqlite3_prepare_v3(peer->handle, statements[i].sql, -1,
				       SQLITE_PREPARE_PERSISTENT, statements[i].at,
				       NULL) != SQLITE_OK)
			return failed(peer);
	return 0;
}

int pfs_s5_peer_open(struct pfs_s5_peer **out, enum pfs_s5_peer_kind kind)
{
	struct pfs_s5_peer *peer = calloc(1, sizeof(*peer));
	int error;

	*out = NULL;
	if (!peer)
		return -ENOMEM;
	peer->kind = kind;
	error = kind == PFS_S5_ABSEIL ? open_abseil(peer) : open_sqlite(peer);
	if (error)
		pfs_s5_peer_close(peer);
	else
		*out = peer;
	return error;
}

void pfs_s5_peer_close(struct pfs_s5_peer *peer)
{
	if (!peer)
		return;
	if (peer->map)
		peer->destroy(peer->map);
	if (peer->library)
		(void)dlclose(peer->library);
	(void)sqlite3_finalize(peer->add);
	(void)sqlite3_finalize(peer->get);
	(void)sqlite3_finalize(peer->all);
	(void)sqlite3_finalize(peer->drop);
	(void)sqlite3_close(peer->handle);
	free(peer);
}

/* Runs the statement for each key; values are the second parameter, unless NULL. */
static int run_each(struct pfs_s5_peer *peer, sqlite3_stmt *statement, const uint64_t *keys,
		    const uint32_t *values, size_t n)
{
	PFS_TRY(run(peer, "BEGIN"));
	for (size_t i = 0; i < n; i++) {
		(void)sqlite3_bind_int64(statement, 1, (sqlite3_int64)keys[i]);
		if (values)
			(void)sqlite3_bind_int64(statement, 2, values[i]);
		if (sqlite3_step(statement) != SQLITE_DONE)
			return failed(peer);
		(void)sqlite3_reset(statement);
	}
	return run(peer, "COMMIT");
}

int pfs_s5_peer_fill(struct pfs_s5_peer *peer, const uint64_t *keys, const uint32_t *values,
		     size_t n)
{
	if (peer->kind == PFS_S5_SQLITE)
		return run_each(peer, peer->add, keys, values, n);
	peer->append(peer->map, keys, values, n);
	return 0;
}

int pfs_s5_peer_find(struct pfs_s5_peer *peer, uint32_t *values, const uint64_t *keys, size_t n)
{
	if (peer->kind == PFS_S5_ABSEIL) {
		peer->find(peer->map, values, keys, n);
		return 0;
	}
	for (size_t i = 0; i < n; i++) {
		int result;

		(void)sqlite3_bind_int64(peer->get, 1, (sqlite3_int64)keys[i]);
		result = sqlite3_step(peer->get);
		values[i] = result == SQLITE_ROW ? (uint32_t)sqlite3_column_int64(peer->get, 0)
						 : UINT32_MAX;
		(void)sqlite3_reset(peer->get);
		if (result != SQLITE_ROW && result != SQLITE_DONE)
			return failed(peer);
	}
	return 0;
}

int pfs_s5_peer_visit(struct pfs_s5_peer *peer, uint64_t *keys, uint32_t *values)
{
	int result;

	if (peer->kind == PFS_S5_ABSEIL) {
		peer->visit(peer->map, keys, values);
		return 0;
	}
	while ((result = sqlite3_step(peer->all)) == SQLITE_ROW) {
		*keys++ = (uint64_t)sqlite3_column_int64(peer->all, 0);
		*values++ = (uint32_t)sqlite3_column_int64(peer->all, 1);
	}
	(void)sqlite3_reset(peer->all);
	return result == SQLITE_DONE ? 0 : failed(peer);
}

int pfs_s5_peer_insert(struct pfs_s5_peer *peer, const uint64_t *keys, const uint32_t *values,
		       size_t n)
{
	if (peer->kind == PFS_S5_SQLITE)
		return run_each(peer, peer->add, keys, values, n);
	return peer->insert(peer->map, keys, values, n) == n ? 0 : -EIO;
}

int pfs_s5_peer_remove(struct pfs_s5_peer *peer, const uint64_t *keys, size_t n)
{
	if (peer->kind == PFS_S5_SQLITE)
		return run_each(peer, peer->drop, keys, NULL, n);
	return peer->erase(peer->map, keys, n) == n ? 0 : -EIO;
}
