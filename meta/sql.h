/* SPDX-License-Identifier: MIT */
/* meta/sql.h - all SQL statements of the store: names and texts.
 * READ statements are prepared on every connection, WRITE statements on the writing connection, and
 * BULK statements on the writing connection of a BULK store (PFS_STORE_BULK). */
#ifndef PFS_META_SQL_H
#define PFS_META_SQL_H

#include "meta/format.h"

/* Lists of the columns of the table `node`. The prime comes first; parameter number n is for the
 * n-th column. */
#define PFS_NUMBER_NAME(id, name, type, since)	    ", " #name
#define PFS_NUMBER_PARAMETER(id, name, type, since) ", ?"
#define PFS_NUMBER_SET(id, name, type, since)	    ", " #name " = ?"
#define PFS_NODE_COLUMNS                                                                              \
	"prime, parent, slot, mode, flags, mtime, atime, ctime, name, rdev, target" PFS_NODE_NUMBERS( \
		PFS_NUMBER_NAME)

#define PFS_ROOT_COLUMNS "id, path, dev, ino, handle, birth, mode, uid, gid"
#define PFS_DIR_COLUMNS	 "root, path, dev, ino, handle, birth, mode, uid, gid"
#define PFS_REGISTER_COLUMNS                                                                       \
	"id, root, columns, path_column, id_column, parent_column, name_column, delimiter, "       \
	"slash, style"
#define PFS_SOURCE_COLUMNS                                                                         \
	"root, path, dev, ino, size, mtime, ctime, mode, uid, gid, handle, birth, prime"

/* Statements with several rows have the parameters of one row behind those of the row before. */
#define PFS_NODE_VALUES "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?" PFS_NODE_NUMBERS(PFS_NUMBER_PARAMETER) ")"
#define PFS_ROWS_2(X) X ", " X
#define PFS_ROWS_8(X) PFS_ROWS_2(X) ", " PFS_ROWS_2(X) ", " PFS_ROWS_2(X) ", " PFS_ROWS_2(X)
#define PFS_ROWS_32(X) PFS_ROWS_8(X) ", " PFS_ROWS_8(X) ", " PFS_ROWS_8(X) ", " PFS_ROWS_8(X)

/* X(name, READ, WRITE or BULK, text) */
#define PFS_SQL_STATEMENTS(X)                                                                      \
	X(BEGIN, WRITE, "BEGIN IMMEDIATE")                                                         \
	X(COMMIT, WRITE, "COMMIT")                                                                 \
	X(ROLLBACK, WRITE, "ROLLBACK")                                                             \
	X(PAGES, READ, "PRAGMA page_count")                                                        \
	X(FREE_PAGES, WRITE, "PRAGMA freelist_count")                                              \
	X(META_GET, READ,                                                                          \
	  "SELECT seed, seq, next_directory, next_other, directories, others, end_slot, "          \
	  "feed_start, token, feed_token FROM meta WHERE id = 1")                                  \
	X(META_SET, WRITE,                                                                         \
	  "UPDATE meta SET seq = ?1, next_directory = ?2, next_other = ?3, directories = ?4, "     \
	  "others = ?5, end_slot = ?6, feed_start = ?7, token = ?8, feed_token = ?9 WHERE id = 1") \
	X(CHANGE_PUT, WRITE, "INSERT INTO change (seq, primes, token) VALUES (?1, ?2, ?3)")        \
	X(CHANGE_TOKEN, READ, "SELECT token FROM change WHERE seq = ?1")                           \
	X(CHANGE_DELETE, WRITE, "DELETE FROM change WHERE seq <= ?1")                              \
	X(CHANGE_SIZE, READ, "SELECT total(length(primes) + 32) FROM change")                      \
	X(CHANGE_EXCESS, WRITE,                                                                    \
	  "SELECT max(seq) FROM (SELECT seq, sum(length(primes) + 32) OVER (ORDER BY seq DESC) "   \
	  "AS size FROM change) WHERE size > ?1")                                                  \
	X(CHANGE_SCAN, READ, "SELECT seq, primes FROM change WHERE seq > ?1 ORDER BY seq")         \
	X(NODE_INSERT, WRITE,                                                                      \
	  "INSERT INTO node (" PFS_NODE_COLUMNS                                                    \
	  ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11" PFS_NODE_NUMBERS(               \
		  PFS_NUMBER_PARAMETER) ") ON CONFLICT DO NOTHING")                                \
	X(NODES_INSERT, BULK,                                                                      \
	  "INSERT INTO node (" PFS_NODE_COLUMNS ") VALUES " PFS_ROWS_32(PFS_NODE_VALUES))          \
	X(NODE_UPDATE, WRITE,                                                                      \
	  "UPDATE node SET parent = ?2, slot = ?3, mode = ?4, flags = ?5, mtime = ?6, "            \
	  "atime = ?7, ctime = ?8, name = ?9, rdev = ?10, target = ?11" PFS_NODE_NUMBERS(          \
		  PFS_NUMBER_SET) " WHERE prime = ?1")                                             \
	X(NODE_DELETE, WRITE, "DELETE FROM node WHERE prime = ?1")                                 \
	X(NODE_SCAN, READ,                                                                         \
	  "SELECT " PFS_NODE_COLUMNS " FROM node WHERE prime >= ?1 AND prime < ?2 ORDER BY prime") \
	X(NODE_LAST, READ, "SELECT max(prime) FROM node WHERE prime < ?1")                         \
	X(CHUNK_PUT, WRITE,                                                                        \
	  "INSERT INTO chunk (prime, n, data) VALUES (?1, ?2, ?3) "                                \
	  "ON CONFLICT (prime, n) DO UPDATE SET data = excluded.data")                             \
	X(CHUNK_DELETE, WRITE, "DELETE FROM chunk WHERE prime = ?1 AND n >= ?2 AND n < ?3")        \
	X(CHUNK_GET, READ, "SELECT data FROM chunk WHERE prime = ?1 AND n = ?2")                   \
	X(CHUNK_NEXT, READ,                                                                        \
	  "SELECT n, length(data), typeof(data) = 'blob' FROM chunk WHERE prime = ?1 AND n >= ?2 " \
	  "AND n < ?3 "                                                                            \
	  "ORDER BY n LIMIT 1")                                                                    \
	X(CHUNK_REAP, WRITE,                                                                       \
	  "DELETE FROM chunk WHERE id IN (SELECT id FROM chunk WHERE prime = ?1 ORDER BY n LIMIT " \
	  "?2)")                                                                                   \
	X(ORPHAN_PUT, WRITE, "INSERT INTO orphan (prime) VALUES (?1) ON CONFLICT DO NOTHING")      \
	X(ORPHAN_DELETE, WRITE, "DELETE FROM orphan WHERE prime = ?1")                             \
	X(ORPHAN_NEXT, READ, "SELECT min(prime) FROM orphan WHERE prime >= ?1")                    \
	X(ORPHAN_COUNT, READ, "SELECT count(*) FROM orphan")                                       \
	X(NAME_GET, READ, "SELECT id FROM attr_name WHERE name = ?1")                              \
	X(NAME_PUT, WRITE, "INSERT INTO attr_name (name) VALUES (?1)")                             \
	X(COLUMN_PUT, WRITE,                                                                       \
	  "INSERT INTO attr_name (name, type) VALUES (?1, ?2) "                                    \
	  "ON CONFLICT (name) DO UPDATE SET type = excluded.type")                                 \
	X(COLUMN_SCAN, READ,                                                                       \
	  "SELECT name, type FROM attr_name WHERE type IS NOT NULL ORDER BY id")                   \
	X(NAME_SCAN, READ, "SELECT name FROM attr_name ORDER BY id")                               \
	X(VALUE_SCAN, READ,                                                                        \
	  "SELECT ?1, value, prime FROM attr "                                                     \
	  "WHERE name = (SELECT id FROM attr_name WHERE name = ?1)")                               \
	X(ATTR_PUT, WRITE,                                                                         \
	  "INSERT INTO attr (prime, name, value) VALUES (?1, ?2, ?3) "                             \
	  "ON CONFLICT (prime, name) DO UPDATE SET value = excluded.value")                        \
	X(ATTRS_PUT, BULK,                                                                         \
	  "INSERT INTO attr (prime, name, value) VALUES " PFS_ROWS_32(                             \
		  "(?, ?, ?)") " ON CONFLICT (prime, name) DO UPDATE SET value = excluded.value")  \
	X(ATTR_DELETE, WRITE, "DELETE FROM attr WHERE prime = ?1 AND name = ?2")                   \
	X(ATTR_DELETE_ALL, WRITE, "DELETE FROM attr WHERE prime = ?1")                             \
	X(ATTR_SCAN, READ,                                                                         \
	  "SELECT attr_name.name, attr.value FROM attr CROSS JOIN attr_name "                      \
	  "ON attr_name.id = attr.name WHERE attr.prime = ?1 ORDER BY attr_name.name")             \
	X(ROOT_PUT, WRITE,                                                                         \
	  "INSERT INTO source_root (id, path, dev, ino, handle, birth, mode, uid, gid) "           \
	  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "                                           \
	  "ON CONFLICT (id) DO UPDATE SET path = excluded.path, dev = excluded.dev, "              \
	  "ino = excluded.ino, handle = excluded.handle, birth = excluded.birth, "                 \
	  "mode = excluded.mode, uid = excluded.uid, gid = excluded.gid")                          \
	X(ROOT_SCAN, READ, "SELECT " PFS_ROOT_COLUMNS " FROM source_root ORDER BY id")             \
	X(DIR_PUT, WRITE,                                                                          \
	  "INSERT OR REPLACE INTO source_dir (root, path, dev, ino, handle, birth, mode, uid, "    \
	  "gid) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")                                      \
	X(DIR_GET, READ,                                                                           \
	  "SELECT " PFS_DIR_COLUMNS " FROM source_dir WHERE root = ?1 AND path = ?2")              \
	X(DIR_SCAN, READ, "SELECT " PFS_DIR_COLUMNS " FROM source_dir")                            \
	X(STAMP_PUT, WRITE, "UPDATE meta SET handle = ?1, birth = ?2 WHERE id = 1")                \
	X(STAMP_GET, READ, "SELECT handle, birth FROM meta WHERE id = 1")                          \
	X(REGISTER_PUT, WRITE,                                                                     \
	  "INSERT INTO register (root, columns, path_column, id_column, parent_column, "           \
	  "name_column, delimiter, slash, style) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")     \
	X(REGISTER_SCAN, READ, "SELECT " PFS_REGISTER_COLUMNS " FROM register ORDER BY id")        \
	X(HARD_LINK_PUT, WRITE, "INSERT OR REPLACE INTO hard_link (prime, link) VALUES (?1, ?2)")  \
	X(HARD_LINK_DELETE, WRITE, "DELETE FROM hard_link WHERE prime = ?1")                       \
	X(HARD_LINK_SCAN, READ, "SELECT prime, link FROM hard_link ORDER BY prime")                \
	X(SOURCE_COUNT, READ, /* S_IFMT, S_IFREG */                                                \
	  "SELECT count(*) FROM source WHERE root = ?1 AND mode & 61440 = 32768")                  \
	X(SOURCE_ANY, READ,                                                                        \
	  "SELECT 1 WHERE EXISTS (SELECT 1 FROM source_root) OR EXISTS (SELECT 1 FROM source)")    \
	X(SOURCE_PUT, WRITE,                                                                       \
	  "INSERT INTO source (prime, root, path, dev, ino, size, mtime, ctime, mode, uid, gid, "  \
	  "handle, birth) "                                                                        \
	  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13) "                       \
	  "ON CONFLICT (prime) DO UPDATE SET root = excluded.root, path = excluded.path, "         \
	  "dev = excluded.dev, ino = excluded.ino, size = excluded.size, mtime = excluded.mtime, " \
	  "ctime = excluded.ctime, mode = excluded.mode, uid = excluded.uid, "                     \
	  "gid = excluded.gid, handle = excluded.handle, birth = excluded.birth")                  \
	X(TABLE_PUT, WRITE,                                                                        \
	  "INSERT INTO side_table (id, name, columns) VALUES (?1, ?2, ?3) "                        \
	  "ON CONFLICT (id) DO UPDATE SET name = excluded.name, columns = excluded.columns")       \
	X(TABLE_DELETE, WRITE, "DELETE FROM side_table WHERE id = ?1")                             \
	X(TABLE_GET, READ, "SELECT id, name, columns FROM side_table WHERE id = ?1")               \
	X(TABLE_SCAN, READ, "SELECT id, name, columns FROM side_table ORDER BY name")              \
	X(PATH_INDEX_PUT, WRITE, "INSERT INTO path_index (name, definition) VALUES (?1, ?2)")      \
	X(PATH_INDEX_DELETE, WRITE, "DELETE FROM path_index WHERE name = ?1")                      \
	X(PATH_INDEX_SCAN, READ, "SELECT name, definition FROM path_index ORDER BY name")          \
	X(SOURCE_DELETE, WRITE, "DELETE FROM source WHERE prime = ?1")                             \
	X(SOURCE_SCAN, READ, "SELECT prime, path FROM source WHERE root = ?1")                     \
	X(SOURCE_GET, READ, "SELECT " PFS_SOURCE_COLUMNS " FROM source WHERE prime = ?1")

#define PFS_SQL_ENUM(name, kind, text) PFS_SQL_##name,
enum pfs_store_statement { PFS_SQL_STATEMENTS(PFS_SQL_ENUM) PFS_SQL_COUNT };
#undef PFS_SQL_ENUM

/* ---- history: on the writing connection of a store that keeps history ----
 * A change of more than a node's time of access leaves the former row. */

#define PFS_HISTORY_SEQ "(SELECT seq + 1 FROM meta WHERE id = 1)" /* the open group's number */
#define PFS_NUMBER_DIFFERS(id, name, type, since) " OR " #name " IS NOT ?"
#define PFS_HISTORY_LEAVE                                                                          \
	"INSERT OR IGNORE INTO history_node (seq, " PFS_NODE_COLUMNS ") SELECT " PFS_HISTORY_SEQ   \
	", " PFS_NODE_COLUMNS " FROM node WHERE prime = ?1"

/* X(name, text): *_CHANGE and *_GONE run before that statement of the store whose parameters they
 * have. NODE_NEW (prime) runs after an insert. GROUP_PUT (the group's number and time) runs last,
 * and returns about how many bytes the group's former rows have. */
#define PFS_HISTORY_STATEMENTS(X)                                                                  \
	X(NODE_CHANGE, PFS_HISTORY_LEAVE                                                           \
	  " AND (parent IS NOT ?2 OR slot IS NOT ?3 OR mode IS NOT ?4 OR flags IS NOT ?5 OR "      \
	  "mtime IS NOT ?6 OR ctime IS NOT ?8 OR name IS NOT ?9 OR rdev IS NOT ?10 OR "            \
	  "target IS NOT ?11" PFS_NODE_NUMBERS(PFS_NUMBER_DIFFERS) ")")                            \
	X(NODE_GONE, PFS_HISTORY_LEAVE)                                                            \
	X(ATTRS_GONE,                                                                              \
	  "INSERT OR IGNORE INTO history_attr (seq, prime, name, value) SELECT " PFS_HISTORY_SEQ   \
	  ", prime, name, value FROM attr WHERE prime = ?1")                                       \
	X(ATTR_GONE,                                                                               \
	  "INSERT OR IGNORE INTO history_attr (seq, prime, name, value) SELECT " PFS_HISTORY_SEQ   \
	  ", prime, name, value FROM attr WHERE prime = ?1 AND name = ?2")                         \
	X(ATTR_CHANGE,                                                                             \
	  "INSERT OR IGNORE INTO history_attr (seq, prime, name, value) SELECT " PFS_HISTORY_SEQ   \
	  ", ?1, ?2, (SELECT value FROM attr WHERE prime = ?1 AND name = ?2) "                     \
	  "WHERE NOT EXISTS (SELECT 1 FROM attr WHERE prime = ?1 AND name = ?2 AND "               \
	  "value IS ?3 AND typeof(value) = typeof(?3))")                                           \
	X(NODE_NEW,                                                                                \
	  "INSERT OR IGNORE INTO history_node (seq, prime) VALUES (" PFS_HISTORY_SEQ ", ?1)")      \
	X(GROUP_PUT,                                                                               \
	  "INSERT INTO history_group (seq, time, former, size) SELECT ?1, ?2, "                    \
	  "n.former + a.former, n.size + a.size FROM (SELECT count(*) AS former, "                 \
	  "coalesce(sum(CASE WHEN mode IS NULL THEN 16 ELSE 80 + length(name) + "                  \
	  "coalesce(length(target), 0) END), 0) AS size FROM history_node WHERE seq = ?1) AS n, "  \
	  "(SELECT count(*) AS former, coalesce(sum(24 + coalesce(length(value), 0)), 0) AS size " \
	  "FROM history_attr WHERE seq = ?1) AS a RETURNING size")

#define PFS_HISTORY_ENUM(name, text) PFS_HISTORY_##name,
enum pfs_history_statement { PFS_HISTORY_STATEMENTS(PFS_HISTORY_ENUM) PFS_HISTORY_COUNT };
#undef PFS_HISTORY_ENUM

#endif
