/* SPDX-License-Identifier: MIT */
#include "fs/query/pathindex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "fs/nodes/index_paths.h"
#include "fs/query/sides.h"
#include "fs/query/tables.h"
#include "fs/query/tokens.h"
#include "fs/tree/sides.h"
#include "meta/store.h"

#define ROW_BYTES 1024u /* of the store, about */

/* ---- reading the statement ---- */

enum kind {
	OTHER,
	MAKES_PATHS, /* an index of nodes */
	MAKES_INDEX, /* of another table */
	MAKES_TABLE,
	DROPS_INDEX,
};

struct statement {
	enum kind kind;
	bool is_careful; /* IF EXISTS, IF NOT EXISTS */
	bool is_explained;
	char name[PFS_PATH_INDEX_NAME_LIMIT + 1];
	size_t name_len; /* 0: none that one can have */
	size_t name_at, wrong_at;
	size_t written_at, written_end; /* the name as it is written, with its database */
	bool is_wrong;
	size_t rest_at; /* what stands here should be nothing more than semicolons */
};

struct reader {
	const char *sql;
	size_t len;
	struct pfs_token token;
};

static void next(struct reader *reader)
{
	reader->token =
		pfs_token_next(reader->sql, reader->len, reader->token.at + reader->token.len);
}

static bool is(const struct reader *reader, const char *word)
{
	return pfs_token_is(reader->sql, &reader->token, word);
}

static bool take(struct reader *reader, const char *word)
{
	bool taken = is(reader, word);

	if (taken)
		next(reader);
	return taken;
}

/* A name without its quotes: its length, 0 if it is none or too long. */
static size_t unquote(char *out, size_t room, const char *sql, const struct pfs_token *token)
{
	const char *at = sql + token->at, *end = at + token->len;
	char quote = *at == '[' ? ']' : *at;
	size_t n = 0;

	if ((token->kind != PFS_TOKEN_WORD && token->kind != PFS_TOKEN_STRING) || !token->len)
		return 0;
	if (!pfs_token_is_letter(*at)) {
		at++;
		end--;
	} else {
		quote = 0;
	}
	while (at < end && n < room) {
		at += *at == quote && at + 1 < end && quote != ']';
		out[n++] = *at++;
	}
	return at < end ? 0 : n;
}

/* A name, with its database or without. */
static void take_name(struct reader *reader, struct statement *statement)
{
	for (;;) {
		statement->written_end = reader->token.at + reader->token.len;
		statement->name_at = reader->token.at;
		statement->name_len = unquote(statement->name, sizeof(statement->name) - 1,
					      reader->sql, &reader->token);
		statement->name[statement->name_len] = 0;
		next(reader);
		if (reader->token.kind != PFS_TOKEN_DOT)
			break;
		next(reader);
	}
}

static bool is_named(struct reader *reader, const char *name)
{
	char word[16];
	size_t n = unquote(word, sizeof(word), reader->sql, &reader->token);

	return n == strlen(name) && strncasecmp(word, name, n) == 0;
}

/* (path), and nothing that would be another order than that of its bytes. */
static void take_columns(struct reader *reader, struct statement *statement)
{
	statement->is_wrong = true;
	statement->wrong_at = reader->token.at;
	if (reader->token.kind != PFS_TOKEN_OPEN)
		return;
	next(reader);
	statement->wrong_at = reader->token.at;
	if (!is_named(reader, "path"))
		return;
	next(reader);
	statement->wrong_at = reader->token.at;
	if (take(reader, "COLLATE") && !take(reader, "BINARY"))
		return;
	(void)take(reader, "ASC");
	statement->wrong_at = reader->token.at;
	if (reader->token.kind != PFS_TOKEN_CLOSE)
		return;
	statement->rest_at = reader->token.at + reader->token.len;
	next(reader);
	statement->wrong_at = reader->token.at;
	statement->is_wrong = is(reader, "WHERE");
}

static void read_create(struct reader *reader, struct statement *statement)
{
	bool is_unique = take(reader, "UNIQUE");
	bool is_index = take(reader, "INDEX");

	if (!is_index) {
		if (is_unique || !take(reader, "TABLE"))
			return;
	}
	statement->written_at = reader->token.at;
	if (take(reader, "IF"))
		statement->is_careful = take(reader, "NOT") && take(reader, "EXISTS");
	if (statement->is_careful)
		statement->written_at = reader->token.at;
	take_name(reader, statement);
	statement->kind = MAKES_TABLE;
	if (!is_index)
		return;
	statement->kind = MAKES_INDEX;
	if (!take(reader, "ON") || !is_named(reader, "nodes"))
		return;
	next(reader);
	statement->kind = MAKES_PATHS;
	take_columns(reader, statement);
}

static void read_statement(struct statement *statement, const char *sql, size_t len)
{
	/* SQLite reads up to a NUL */
	struct reader reader = {sql, strnlen(sql, len), {.kind = PFS_TOKEN_OTHER}};

	*statement = (struct statement){.kind = OTHER};
	if (!pfs_token_may_be(sql, len, "create") && !pfs_token_may_be(sql, len, "drop"))
		return;
	next(&reader);
	statement->is_explained = take(&reader, "EXPLAIN");
	if (statement->is_explained && take(&reader, "QUERY"))
		(void)take(&reader, "PLAN");
	if (take(&reader, "CREATE")) {
		read_create(&reader, statement);
	} else if (take(&reader, "DROP") && take(&reader, "INDEX")) {
		statement->written_at = reader.token.at;
		if (take(&reader, "IF"))
			statement->is_careful = take(&reader, "EXISTS");
		if (statement->is_careful)
			statement->written_at = reader.token.at;
		take_name(&reader, statement);
		statement->rest_at = statement->written_end;
		statement->kind = DROPS_INDEX;
	}
}

/* ---- names ---- */

struct search {
	struct pfs_tree *tree;
	const char *name; /* that is looked for */
	const char *what; /* has it; NULL: nothing */
	bool is_path_index, is_index; /* of paths; of a table, or a newer program's, too */
	char as[PFS_PATH_INDEX_NAME_LIMIT + 1]; /* the store has it */
	size_t as_len, n; /* how many others */
};

static bool is_same(const char *name, const char *other, size_t len)
{
	return strlen(name) == len && strncasecmp(name, other, len) == 0;
}

static int look_at_index(void *arg, const char *name, size_t len, bool is_newer)
{
	struct search *search = arg;

	if (!is_same(search->name, name, len)) {
		search->n += !is_newer;
		return 0;
	}
	search->what = "an index";
	search->is_index = true;
	if (is_newer)
		return 0;
	search->is_path_index = true;
	memcpy(search->as, name, len);
	search->as_len = len;
	return 0;
}

/* A table's declaration has its indexes behind it, as statements. */
static bool has_index(const struct search *search, const char *sql, size_t len)
{
	struct reader reader = {sql, len, {.kind = PFS_TOKEN_OTHER}};

	for (next(&reader); reader.token.kind != PFS_TOKEN_END; next(&reader)) {
		struct statement statement = {.kind = OTHER};
		struct reader ahead = reader;

		if (!take(&ahead, "CREATE"))
			continue;
		read_create(&ahead, &statement);
		if (statement.kind == MAKES_INDEX &&
		    is_same(search->name, statement.name, statement.name_len))
			return true;
	}
	return false;
}

static int look_at_table(void *arg, const struct pfs_table_record *table)
{
	struct search *search = arg;

	if (is_same(search->name, table->name, table->name_len)) {
		search->what = "a table";
	} else if (has_index(search, table->columns, table->columns_len)) {
		search->what = "an index";
		search->is_index = true;
	}
	return 0;
}

static int look_at_indexes(void *arg, struct pfs_store *store)
{
	return pfs_store_scan_path_indexes(store, look_at_index, arg);
}

static int look_at_all(void *arg, struct pfs_store *store)
{
	PFS_TRY(pfs_store_scan_tables(store, look_at_table, arg));
	return look_at_indexes(arg, store);
}

struct listing {
	int (*fn)(void *arg, const char *name, size_t len);
	void *arg;
};

static int list_name(void *arg, const char *name, size_t len, bool is_newer)
{
	const struct listing *listing = arg;

	return is_newer ? 0 : listing->fn(listing->arg, name, len);
}

static int list(void *arg, struct pfs_store *store)
{
	return pfs_store_scan_path_indexes(store, list_name, arg);
}

int pfs_path_index_names(struct pfs_tree *tree, int (*fn)(void *arg, const char *name, size_t len),
			 void *arg)
{
	struct listing listing = {fn, arg};

	return pfs_sides_read(tree, list, &listing);
}

int pfs_path_index_leaves(struct pfs_tree *tree, const char *table)
{
	struct search search = {.name = table};

	PFS_TRY(pfs_sides_read(tree, look_at_all, &search));
	return search.is_index ? -EEXIST : 0;
}

/* ---- running it ---- */

#define SAID 64 /* bytes of a name in a sentence */

static int wrong(struct pfs_sql_problem *problem, size_t at, const char *name, const char *what)
{
	problem->offset = (long)at;
	(void)snprintf(problem->text, sizeof(problem->text), "%.*s: %s", SAID, name, what);
	return -EINVAL;
}

static int is_there(const struct statement *statement, const char *what,
		    struct pfs_sql_problem *problem)
{
	problem->offset = (long)statement->name_at;
	(void)snprintf(problem->text, sizeof(problem->text),
		       "there is already %s named %.*s; choose another name", what, SAID,
		       statement->name);
	return -EINVAL;
}

/* Lets SQLite read a part of the statement between two other texts, and say what is wrong there. */
static int check_part(struct pfs_query *query, const char *before, size_t at, size_t end,
		      const char *after, struct pfs_sql_problem *problem)
{
	struct pfs_sql *sql = query->connection->sql;
	char *text PFS_FREE = NULL;
	int len = asprintf(&text, "%s%.*s%s", before, (int)(end - at), query->sql + at, after);
	int error;

	if (len < 0) {
		text = NULL;
		return -ENOMEM;
	}
	error = pfs_sql_prepare(sql, text, (size_t)len, problem);
	pfs_sql_finish(sql);
	if (error && problem->offset >= (long)strlen(before))
		problem->offset += (long)at - (long)strlen(before);
	return error;
}

/* A table's name and its database are written as an index's are. What only tables cannot be called
 * is none of SQLite's keywords, and reads as `a`. */
static int check_written(struct pfs_query *query, const struct statement *statement,
			 struct pfs_sql_problem *problem)
{
	bool is_tables = !pfs_table_check_name(statement->name);

	PFS_TRY(check_part(query,
			   statement->is_explained ? "EXPLAIN CREATE TABLE IF NOT EXISTS "
						   : "CREATE TABLE IF NOT EXISTS ",
			   statement->written_at,
			   is_tables ? statement->written_end : statement->name_at,
			   is_tables ? "(a)" : "a(a)", problem));
	return check_part(query, "DROP INDEX IF EXISTS main.a ", statement->rest_at,
			  strnlen(query->sql, query->len), "", problem);
}

static int put(void *arg, struct pfs_store *store)
{
	const struct search *search = arg;

	PFS_TRY(pfs_sides_touch(search->tree, 0));
	return pfs_store_put_path_index(store, search->name, strlen(search->name));
}

static int drop(void *arg, struct pfs_store *store)
{
	const struct search *search = arg;

	PFS_TRY(pfs_sides_touch(search->tree, 0));
	return pfs_store_drop_path_index(store, search->as, search->as_len);
}

static int make(struct pfs_query *query, const struct statement *statement,
		struct pfs_sql_problem *problem)
{
	struct pfs_tree *tree = query->queries->tree;
	struct search search = {.tree = tree, .name = statement->name};
	bool is_done;

	if (statement->is_wrong && statement->wrong_at == strnlen(query->sql, query->len)) {
		(void)snprintf(problem->text, sizeof(problem->text), "incomplete input");
		return -EINVAL;
	}
	if (statement->is_wrong)
		return wrong(problem, statement->wrong_at, statement->name,
			     "of nodes only (path) can be indexed, alone, whole and ascending, "
			     "which is read downwards, too; other columns get their indexes by "
			     "themselves");
	if (!statement->name_len || strncasecmp(statement->name, "sqlite_", 7) == 0 ||
	    strcasecmp(statement->name, "nodes") == 0)
		return wrong(problem, statement->name_at,
			     statement->name_len ? statement->name
						 : "a name of no byte, or over 255",
			     "no index can have that name; choose another");
	PFS_TRY(pfs_sides_read(tree, look_at_all, &search));
	is_done = search.is_path_index && statement->is_careful;
	if (search.what && !is_done)
		return is_there(statement, search.what, problem);
	PFS_TRY(check_written(query, statement, problem));
	if (is_done)
		return 0;
	PFS_TRY(pfs_sides_tell_space(query, pfs_sides_commit(tree, ROW_BYTES, put, &search)));
	pfs_path_index_want(tree, true, true);
	return 0;
}

/* *is_one: the name is a path index's, or nobody's. */
static int unmake(struct pfs_query *query, bool *is_one, const struct statement *statement,
		  bool may_change, struct pfs_sql_problem *problem)
{
	struct pfs_tree *tree = query->queries->tree;
	struct search search = {.tree = tree, .name = statement->name};

	PFS_TRY(pfs_sides_read(tree, look_at_indexes, &search));
	*is_one = search.is_index;
	if (!*is_one)
		return 0;
	if (!may_change)
		return -EACCES;
	PFS_TRY(check_written(query, statement, problem));
	if (!search.is_path_index)
		return wrong(problem, statement->name_at, statement->name,
			     "a newer primefs has made that index; drop it with that one");
	PFS_TRY(pfs_sides_tell_space(query, pfs_sides_commit(tree, ROW_BYTES, drop, &search)));
	if (search.n == 0)
		pfs_path_index_want(tree, false, false);
	return 0;
}

int pfs_path_index_statement(struct pfs_query *query, bool *is_one, bool may_change,
			     struct pfs_sql_problem *problem)
{
	struct pfs_tree *tree = query->queries->tree;
	struct statement statement;
	int error;

	read_statement(&statement, query->sql, query->len);
	*is_one = statement.kind == MAKES_PATHS;
	if (!*is_one && statement.kind != DROPS_INDEX)
		return 0;
	error = *is_one && !may_change ? -EACCES : 0;
	if (!error) {
		pfs_sides_hold(tree);
		error = *is_one ? make(query, &statement, problem)
				: unmake(query, is_one, &statement, may_change, problem);
		pfs_sides_release(tree);
	}
	if (error == -EACCES && !may_change)
		(void)snprintf(problem->text, sizeof(problem->text),
			       "this kind of statement cannot be used here; write a SELECT");
	return error;
}

int pfs_path_index_leaves_name(struct pfs_tree *tree, bool *is_done, const char *sql, size_t len,
			       struct pfs_sql_problem *problem)
{
	struct statement statement;
	struct search search = {.name = statement.name};

	*is_done = false;
	read_statement(&statement, sql, len);
	if (statement.kind != MAKES_INDEX && statement.kind != MAKES_TABLE)
		return 0;
	PFS_TRY(pfs_sides_read(tree, look_at_indexes, &search));
	*is_done = search.is_index && statement.is_careful && statement.kind == MAKES_INDEX;
	return search.is_index && !*is_done ? is_there(&statement, search.what, problem) : 0;
}
