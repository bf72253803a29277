/* SPDX-License-Identifier: MIT */
/* meta/check.c - finds what is wrong with a store, as far as that can be told without knowing the
 * tree. */
#include "meta/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "meta/declaration.h"
#include "meta/internal.h"

#define FINDING_MAX	  400 /* bytes of SQLite's own findings */
/* after so many "and more" follows: a damaged store can have millions */
#define FINDINGS_PER_RULE 100

struct check {
	struct pfs_db *db;
	void (*fn)(void *arg, const char *finding);
	void *arg;
	unsigned reported; /* findings of the present rule */
};

/* Returns false if the rule has reported enough. */
static PFS_PRINTF(2, 3) bool report(struct check *check, const char *format, ...)
{
	char line[512];
	va_list args;

	if (check->reported > FINDINGS_PER_RULE)
		return false;
	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (check->reported++ == FINDINGS_PER_RULE)
		(void)snprintf(line, sizeof(line), "and more of the kind");
	check->fn(check->arg, line);
	return true;
}

/* Damage that stops a rule is one more finding; any other error means that the check failed. */
static int damage_is_finding(struct check *check, const char *rule, int error)
{
	if (error != -EUCLEAN)
		return error;
	(void)report(check, "%s: cannot be read to the end: the file is damaged", rule);
	return 0;
}

/* Runs a query of the rule and calls fn for each row until it returns false. */
static int each_row(struct check *check, const char *rule, const char *text,
		    bool (*fn)(struct check *check, const char *rule, sqlite3_stmt *row))
{
	sqlite3_stmt *row = NULL;
	int got = pfs_db_errno(check->db,
			       sqlite3_prepare_v2(check->db->handle, text, -1, &row, NULL));

	check->reported = 0;
	while (!got && (got = pfs_db_step(check->db, row)) == 1)
		got = fn(check, rule, row) ? 0 : 2;
	(void)sqlite3_finalize(row);
	return got < 0 ? damage_is_finding(check, rule, got) : 0;
}

/* ---- SQLite's own ---- */

/* A row of SQLite's may have several lines below a heading. */
static bool report_integrity(struct check *check, const char *rule, sqlite3_stmt *row)
{
	const char *at = (const char *)sqlite3_column_text(row, 0);
	bool more = true;

	if (!at || strcmp(at, "ok") == 0)
		return true;
	while (*at && more) {
		size_t len = strcspn(at, "\n");

		if (len && strncmp(at, "***", 3) != 0)
			more = report(check, "%s: %.*s", rule, (int)PFS_MIN(len, FINDING_MAX), at);
		at += len + (at[len] == '\n');
	}
	return more;
}

/* ---- nodes ---- */

struct node_sums {
	uint64_t nodes[2];
	uint32_t *slots;
	size_t count, capacity;
};

static int check_node(struct check *check, struct node_sums *sums, const struct pfs_meta *meta,
		      const struct pfs_node_record *node)
{
	int kind = pfs_prime_kind_of(node->prime);

	sums->nodes[kind]++;
	if (node->prime != PFS_ROOT_PRIME && node->prime >= meta->next[kind])
		(void)report(check, "node %" PRIu64 ": its prime was never handed out",
			     node->prime);
	if (node->slot >= meta->end_slot)
		(void)report(check, "node %" PRIu64 ": slot %" PRIu32 " is beyond the last one",
			     node->prime, node->slot);
	if (pfs_grow(&sums->slots, &sums->capacity, sums->count + 1, sizeof(*sums->slots)))
		return -ENOMEM;
	sums->slots[sums->count++] = node->slot;
	return 0;
}

static void check_slots(struct check *check, struct node_sums *sums)
{
	size_t i;

	check->reported = 0;
	if (sums->count)
		qsort(sums->slots, sums->count, sizeof(*sums->slots), pfs_compare_u32);
	for (i = 1; i < sums->count; i++) {
		if (sums->slots[i] == sums->slots[i - 1] &&
		    !report(check, "slot %" PRIu32 " belongs to more than one node",
			    sums->slots[i]))
			break;
	}
}

static int scan_nodes(struct check *check, struct node_sums *sums, const struct pfs_meta *meta)
{
	sqlite3_stmt *row PFS_RESET = check->db->sql[PFS_SQL_NODE_SCAN];
	int got;

	pfs_bind_int(row, 1, INT64_MIN);
	pfs_bind_int(row, 2, INT64_MAX);
	check->reported = 0;
	while ((got = pfs_db_step(check->db, row)) == 1) {
		struct pfs_node_record node = {.prime = 0};
		const char *why;
		int error = 0;

		if (pfs_node_from_row(&node, &why, row))
			(void)report(check, "node %lld: %s", sqlite3_column_int64(row, 0), why);
		else
			error = check_node(check, sums, meta, &node);
		if (error)
			return error;
	}
	return got ? damage_is_finding(check, "nodes", got) : 0;
}

static int check_nodes(struct check *check)
{
	struct node_sums sums = {.slots = NULL};
	struct pfs_meta meta;
	uint64_t seed;
	int error = pfs_meta_read(&meta, &seed, check->db);

	if (error == -EMEDIUMTYPE) {
		check->fn(check->arg, "the meta row is missing or damaged");
		return 0;
	}
	if (!error && meta.end_slot > pfs_slots_believed(check->db)) {
		meta.end_slot = pfs_slots_believed(check->db);
		(void)report(check,
			     "the meta row has more slots than so small a file can have nodes; "
			     "mounted for writing, it is corrected");
	}
	if (!error)
		error = scan_nodes(check, &sums, &meta);
	if (!error) {
		check_slots(check, &sums);
		if (sums.nodes[0] != meta.nodes[0] || sums.nodes[1] != meta.nodes[1])
			(void)report(check,
				     "the meta row counts %" PRIu64 " + %" PRIu64
				     " nodes, there are %" PRIu64 " + %" PRIu64,
				     meta.nodes[0], meta.nodes[1], sums.nodes[0], sums.nodes[1]);
	}
	free(sums.slots);
	return error;
}

/* ---- what belongs to nodes ---- */

static bool report_number(struct check *check, const char *rule, sqlite3_stmt *row)
{
	return report(check, "%s: %lld", rule, sqlite3_column_int64(row, 0));
}

static bool report_unsound_root(struct check *check, const char *rule, sqlite3_stmt *row)
{
	return pfs_root_row_sound(row) || report_number(check, rule, row);
}

static bool report_unsound_dir(struct check *check, const char *rule, sqlite3_stmt *row)
{
	return pfs_dir_row_sound(row) || report_number(check, rule, row);
}

/* The node's prime is behind the columns of SOURCE_GET. */
static bool report_unsound_source(struct check *check, const char *rule, sqlite3_stmt *row)
{
	return pfs_source_row_sound(row) ||
	       report(check, "%s: %lld", rule, sqlite3_column_int64(row, 12));
}

static bool report_unsound_register(struct check *check, const char *rule, sqlite3_stmt *row)
{
	return pfs_register_row_sound(row) || report_number(check, rule, row);
}

/* Checks whether rows of originals and registers can be read, which SQLite's types do not tell. */
static int check_sources(struct check *check)
{
	int error = each_row(check, "a source root that is none, number",
			     "SELECT " PFS_ROOT_COLUMNS " FROM source_root", report_unsound_root);

	if (!error)
		error = each_row(check, "a folder with originals that is none, of root",
				 "SELECT " PFS_DIR_COLUMNS " FROM source_dir", report_unsound_dir);
	if (!error)
		error = each_row(check, "a register that is none, number",
				 "SELECT " PFS_REGISTER_COLUMNS " FROM register",
				 report_unsound_register);
	if (error)
		return error;
	return each_row(check, "an original that is none, of node",
			"SELECT " PFS_SOURCE_COLUMNS " FROM source", report_unsound_source);
}

static const struct {
	const char *rule, *text;
} relations[] = {
	{"content without a node, of prime",
	 "SELECT prime FROM (SELECT DISTINCT prime FROM chunk) AS c WHERE "
	 "NOT EXISTS (SELECT 1 FROM node WHERE node.prime = c.prime) AND "
	 "NOT EXISTS (SELECT 1 FROM orphan WHERE orphan.prime = c.prime)"},
	{"a chunk that is none, of node",
	 "SELECT prime FROM chunk WHERE n NOT BETWEEN 0 AND 140737488355327 "
	 "OR length(data) > 65536 OR typeof(data) <> 'blob'"},
	{"content beyond the end of its file, node",
	 "SELECT DISTINCT node.prime FROM chunk CROSS JOIN node ON node.prime = chunk.prime "
	 "WHERE node.flags & 1 = 0 AND chunk.n * 65536 + length(chunk.data) > node.size "
	 "AND substr(chunk.data, max(0, node.size - chunk.n * 65536) + 1) "
	 "<> zeroblob(chunk.n * 65536 + length(chunk.data) - max(node.size, chunk.n * 65536))"},
	{"an orphan that still is a node, prime", "SELECT prime FROM orphan WHERE EXISTS (SELECT 1 "
						  "FROM node WHERE node.prime = orphan.prime)"},
	{"attributes without a node, of prime",
	 "SELECT prime FROM (SELECT DISTINCT prime FROM attr) AS a WHERE "
	 "NOT EXISTS (SELECT 1 FROM node WHERE node.prime = a.prime)"},
	{"attributes that the node does not know of, node",
	 "SELECT node.prime FROM (SELECT DISTINCT prime FROM attr) AS a CROSS JOIN node "
	 "ON node.prime = a.prime WHERE node.flags & 4 = 0"},
	{"an attribute without a name, of node",
	 "SELECT prime FROM attr WHERE name NOT IN (SELECT id FROM attr_name)"},
	{"an attribute that is none, of node",
	 "SELECT prime FROM attr WHERE typeof(value) NOT IN ('integer', 'real', 'blob') "
	 "OR length(value) > 65536"},
	{"an attribute name that is none, number", "SELECT id FROM attr_name WHERE typeof(name) <> "
						   "'blob' OR length(name) NOT BETWEEN 1 AND 255"},
	{"a source without a node, of prime",
	 "SELECT prime FROM source WHERE "
	 "NOT EXISTS (SELECT 1 FROM node WHERE node.prime = source.prime)"},
	{"a source without its root, of node",
	 "SELECT prime FROM source WHERE root NOT IN (SELECT id FROM source_root)"},
	{"folders without their source root, number",
	 "SELECT DISTINCT root FROM source_dir WHERE root NOT IN (SELECT id FROM source_root)"},
	{"a hard link without a node, of prime",
	 "SELECT prime FROM hard_link WHERE "
	 "NOT EXISTS (SELECT 1 FROM node WHERE node.prime = hard_link.prime)"},
	{"a path index that is none, number",
	 "SELECT id FROM path_index WHERE typeof(name) <> 'blob' OR typeof(definition) <> 'blob' "
	 "OR length(name) NOT BETWEEN 1 AND 255 OR instr(name, x'00')"},
	{"a path index with the name of another, or of a side table, number",
	 "SELECT max(id) FROM path_index GROUP BY lower(CAST(name AS TEXT)) HAVING count(*) > 1 "
	 "UNION SELECT id FROM path_index WHERE lower(CAST(name AS TEXT)) IN "
	 "(SELECT lower(CAST(name AS TEXT)) FROM side_table)"},
	{"an original recorded for a node that does not read through to it, node",
	 "SELECT prime FROM source WHERE "
	 "EXISTS (SELECT 1 FROM node WHERE node.prime = source.prime AND node.flags & 1 = 0 "
	 "AND node.mode & 61440 = 32768)"},
	{"a side table without a place for its rows, number",
	 "SELECT id FROM side_table WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema "
	 "WHERE type = 'table' AND name = 'side_' || side_table.id)"},
	{"rows of no side table, number",
	 "SELECT CAST(substr(s.name, 6) AS INTEGER) FROM sqlite_schema AS s WHERE s.type = 'table' "
	 "AND s.name GLOB 'side_[0-9]*' AND NOT EXISTS (SELECT 1 FROM side_table AS t "
	 "WHERE s.name = 'side_' || t.id)"},
	{"a side table's name or columns are none, number",
	 "SELECT id FROM side_table WHERE typeof(name) <> 'blob' OR typeof(columns) <> 'blob' "
	 "OR length(name) NOT BETWEEN 1 AND 255"},
	{"two side tables of one name, number",
	 "SELECT max(id) FROM side_table GROUP BY lower(CAST(name AS TEXT)) HAVING count(*) > 1"},
	{"changes remembered of a group that is none, or forgotten, number",
	 "SELECT seq FROM change WHERE typeof(primes) <> 'blob' OR seq > (SELECT seq FROM meta) "
	 "OR seq <= (SELECT feed_start FROM meta)"},
	{"a node reads through to an original that is not recorded, node",
	 "SELECT prime FROM node WHERE flags & 1 AND "
	 "NOT EXISTS (SELECT 1 FROM source WHERE source.prime = node.prime)"},
};

/* The rules for a store that keeps history. */
static const struct {
	const char *rule, *text;
} of_history[] = {
	{"former rows of a group that history does not list, number",
	 "SELECT DISTINCT seq FROM history_node WHERE seq NOT IN (SELECT seq FROM history_group) UNION "
	 "SELECT DISTINCT seq FROM history_attr WHERE seq NOT IN (SELECT seq FROM history_group)"},
	{"history of a group that is none, number",
	 "SELECT seq FROM history_group WHERE seq > (SELECT seq FROM meta)"},
	{"a group of history before the one before it, number",
	 "SELECT seq FROM (SELECT seq, time < lag(time) OVER (ORDER BY seq) AS early FROM history_group) "
	 "WHERE early"},
	{"history has no beginning; rows of it",
	 "SELECT count(*) FROM history WHERE id = 1 AND since_seq BETWEEN 0 AND (SELECT seq FROM meta) AND "
	 "(keep_time > 0 OR keep_size > 0) HAVING count(*) <> 1"},
};

static bool report_unsound_former(struct check *check, const char *rule, sqlite3_stmt *row)
{
	struct pfs_node_record node = {.prime = 0};
	const char *why;

	return !pfs_node_from_row(&node, &why, row) ||
	       report(check, "%s %lld: %s", rule, sqlite3_column_int64(row, 0), why);
}

static int check_history(struct check *check)
{
	int got = pfs_history_is_there(check->db), error = PFS_MIN(got, 0);

	if (got <= 0)
		return got;
	for (size_t i = 0; i < PFS_COUNT(of_history) && !error; i++)
		error = each_row(check, of_history[i].rule, of_history[i].text, report_number);
	return error ? error
		     : each_row(check, "a former row of node",
				"SELECT " PFS_NODE_COLUMNS " FROM history_node WHERE mode NOT NULL",
				report_unsound_former);
}

static bool report_unsound_table(struct check *check, const char *rule, sqlite3_stmt *row)
{
	char why[PFS_DECLARATION_WHY], name[PFS_TABLE_NAME_LIMIT + 1];
	const void *bytes = sqlite3_column_blob(row, 1), *columns = sqlite3_column_blob(row, 2);
	size_t len = (size_t)sqlite3_column_bytes(row, 1);

	if (!bytes || len > PFS_TABLE_NAME_LIMIT) /* another rule reports it */
		return true;
	memcpy(name, bytes, len);
	name[len] = 0;
	if (sqlite3_stricmp(name, "nodes") == 0 || sqlite3_strnicmp(name, "sqlite_", 7) == 0 ||
	    strlen(name) != len)
		return report(check, "%s %s: none can have that name", rule, name);
	if (pfs_declaration_parse(NULL, why, name, columns ? columns : "",
				  (size_t)sqlite3_column_bytes(row, 2)) !=
	    -EUCLEAN)
		return true;
	return report(check, "%s %s: its declaration %s", rule, name, why);
}

static int check_all(struct check *check)
{
	int error = each_row(check, "SQLite", "PRAGMA integrity_check", report_integrity);
	size_t i;

	if (!error)
		error = check_nodes(check);
	if (!error)
		error = check_sources(check);
	if (!error)
		error = each_row(check, "side table", "SELECT id, name, columns FROM side_table",
				 report_unsound_table);
	for (i = 0; i < PFS_COUNT(relations) && !error; i++)
		error = each_row(check, relations[i].rule, relations[i].text, report_number);
	return error ? error : check_history(check);
}

int pfs_store_check(struct pfs_store *store, void (*fn)(void *arg, const char *finding), void *arg)
{
	struct pfs_reader reader PFS_READER = {.store = store};
	struct check check = {.fn = fn, .arg = arg};
	int error;

	if (store->in_group)
		return -EINVAL;
	error = pfs_reader_get(store, &reader.db);
	if (error)
		return error;
	check.db = reader.db;
	error = pfs_db_begin_reading(reader.db);
	if (error)
		return error;
	error = check_all(&check);
	(void)pfs_db_end_reading(reader.db);
	return error;
}
