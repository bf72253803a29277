/* SPDX-License-Identifier: MIT */
/* meta/sql/sqlcatalogue.c - finds the side tables that a connection knows by name, and those that a
 * statement names. */
#include "meta/sql/sqlside.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/siphash.h"
#include "meta/sql/sqlquery_impl.h"

#define NAME_MAX_BYTES PFS_TABLE_NAME_LIMIT

/* ---- names, in a hash without regard to capitals, as SQLite has them ---- */

static uint64_t hash_of(const struct pfs_sql *sql, const char *name, size_t len)
{
	char folded[NAME_MAX_BYTES];

	for (size_t i = 0; i < len; i++)
		folded[i] =
			(char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + 'a' - 'A' : name[i]);
	return pfs_siphash(folded, len, sql->hash_seed, ~sql->hash_seed);
}

/* Returns the cell of the name, or the one where it belongs. */
static uint32_t *place_of(const struct pfs_sql *sql, const char *name, size_t len)
{
	size_t mask = sql->by_name_size - 1, at = hash_of(sql, name, len) & mask;

	while (sql->sides_by_name[at]) {
		const char *other = sql->sides[sql->sides_by_name[at] - 1].name;

		if (strlen(other) == len && sqlite3_strnicmp(other, name, (int)len) == 0)
			break;
		at = (at + 1) & mask;
	}
	return &sql->sides_by_name[at];
}

/* Returns the table's number plus 1; 0: there is no table of that name. */
static uint32_t number_of(const struct pfs_sql *sql, const char *name, size_t len)
{
	return sql->sides_by_name && len <= NAME_MAX_BYTES ? *place_of(sql, name, len) : 0;
}

static struct pfs_sql_side *find(const struct pfs_sql *sql, const char *name, size_t len)
{
	uint32_t number = number_of(sql, name, len);

	return number ? &sql->sides[number - 1] : NULL;
}

static void put_names(struct pfs_sql *sql)
{
	for (size_t i = 0; i < sql->n_sides; i++) {
		const char *name = sql->sides[i].name;

		*place_of(sql, name, strlen(name)) = (uint32_t)i + 1;
	}
}

static int make_room(struct pfs_sql *sql)
{
	size_t size = PFS_MAX(sql->by_name_size * 2, 64);
	uint32_t *grown;

	if (sql->sides_by_name && 2 * (sql->n_sides + 1) <= sql->by_name_size)
		return 0;
	if (!sql->hash_seed)
		sqlite3_randomness(sizeof(sql->hash_seed), &sql->hash_seed);
	grown = calloc(size, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	free(sql->sides_by_name);
	sql->sides_by_name = grown;
	sql->by_name_size = size;
	put_names(sql);
	return 0;
}

struct pfs_sql_side *pfs_sql_side_find(const struct pfs_sql *sql, const char *name)
{
	return name ? find(sql, name, strlen(name)) : NULL;
}

struct pfs_sql_side *pfs_sql_side_by_id(const struct pfs_sql *sql, uint32_t id)
{
	for (size_t i = 0; i < sql->n_sides; i++) {
		if (sql->sides[i].id == id)
			return &sql->sides[i];
	}
	return NULL;
}

bool pfs_sql_side_has(const struct pfs_sql *sql, uint32_t id, const void *name, size_t name_len)
{
	const struct pfs_sql_side *side = find(sql, name, name_len);

	return side && side->id == id;
}

int pfs_sql_side_add(struct pfs_sql *sql, uint32_t id, const void *name, size_t name_len,
		     bool has_indexes)
{
	struct pfs_sql_side side = {.id = id, .has_indexes = has_indexes};

	if (name_len > NAME_MAX_BYTES || memchr(name, 0, name_len) ||
	    number_of(sql, name, name_len))
		return -EUCLEAN;
	PFS_TRY(pfs_grow(&sql->sides, &sql->sides_capacity, sql->n_sides + 1, sizeof(side)));
	PFS_TRY(make_room(sql));
	side.name = strndup(name, name_len);
	if (!side.name)
		return -ENOMEM;
	if (pfs_sql_is_reserved(sql, side.name) || sqlite3_strnicmp(side.name, "sqlite_", 7) == 0) {
		free(side.name);
		return -EUCLEAN;
	}
	*place_of(sql, side.name, name_len) = (uint32_t)sql->n_sides + 1;
	sql->sides[sql->n_sides++] = side;
	return 0;
}

const struct pfs_sql_side *pfs_sql_sides(const struct pfs_sql *sql, size_t *n)
{
	*n = sql->n_sides;
	return sql->sides;
}

void pfs_sql_sides_leave(struct pfs_sql *sql, size_t n)
{
	sql->tables_made++;
	sql->n_sides = n;
	if (sql->sides_by_name)
		memset(sql->sides_by_name, 0, sql->by_name_size * sizeof(*sql->sides_by_name));
	put_names(sql);
}

/* ---- names in statements ---- */

static bool is_in_name(char c)
{
	return (unsigned char)c >= 0x80 || c == '_' || c == '$' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns the place behind the comment at `at`; NULL: there is none. */
static const char *past_comment(const char *at, const char *end)
{
	const char *close;

	if (end - at < 2 || !((at[0] == '-' && at[1] == '-') || (at[0] == '/' && at[1] == '*')))
		return NULL;
	close = *at == '-' ? memchr(at, '\n', (size_t)(end - at))
			   : memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
	if (!close)
		return end;
	return *at == '-' ? close : close + 2;
}

/* Gets the text in quotes, and returns the place behind it. *len is SIZE_MAX if the text is too
 * long for a name. */
static const char *take_quoted(char *name, size_t *len, const char *at, const char *end)
{
	char quote = (char)(*at == '[' ? ']' : *at);
	size_t n = 0;

	for (at++; at < end; at++) {
		if (*at == quote) {
			if (quote == ']' || at + 1 == end || at[1] != quote)
				break;
			at++;
		}
		if (n < NAME_MAX_BYTES)
			name[n] = *at;
		n++;
	}
	*len = n <= NAME_MAX_BYTES ? n : SIZE_MAX;
	return at < end ? at + 1 : end;
}

static bool is_one_of(const char *name, size_t len, const char *const *words)
{
	for (; *words; words++)
		if (strlen(*words) == len && sqlite3_strnicmp(*words, name, (int)len) == 0)
			return true;
	return false;
}

/* Indexes have names, too, which are told from each other in all tables. */
static void name_others(struct pfs_sql *sql, const char *name, size_t len)
{
	static const char *const indexes[] = {"INDEX", "INDEXED", "REINDEX", "CREATE", NULL};
	static const char *const all[] = {"sqlite_schema", "sqlite_master", "table_list",
					  "pragma_table_list", NULL};
	bool are_all = is_one_of(name, len, all);

	if (!are_all && !is_one_of(name, len, indexes))
		return;
	for (size_t i = 0; sql->sides && i < sql->n_sides; i++)
		sql->sides[i].named |= are_all || sql->sides[i].has_indexes;
}

void pfs_sql_sides_named(struct pfs_sql *sql, const char *text, size_t len)
{
	const char *at = text, *end = text + len, *past;
	char quoted[NAME_MAX_BYTES];

	for (size_t i = 0; sql->sides && i < sql->n_sides; i++)
		sql->sides[i].named = sql->sides[i].wanted = false;
	while (sql->n_sides && at < end) {
		struct pfs_sql_side *side;
		const char *name = at;
		size_t n = 0;

		past = past_comment(at, end);
		if (past) {
			at = past;
			continue;
		}
		if (strchr("'\"`[", *at) && *at) {
			at = take_quoted(quoted, &n, at, end);
			name = quoted;
		} else {
			while (at < end && is_in_name(*at))
				at++;
			n = (size_t)(at - name);
			at += !n;
		}
		side = n && n <= NAME_MAX_BYTES ? find(sql, name, n) : NULL;
		if (side)
			side->named = side->wanted = true;
		else if (n && n <= NAME_MAX_BYTES)
			name_others(sql, name, n);
	}
}

void pfs_sql_side_seen(struct pfs_sql *sql, const char *name)
{
	struct pfs_sql_side *side = pfs_sql_side_find(sql, name);

	if (side)
		side->wanted = true;
}

void pfs_sql_side_dropped(struct pfs_sql *sql, const char *name)
{
	struct pfs_sql_side *side = pfs_sql_side_find(sql, name);

	if (side)
		side->wanted = false;
}
