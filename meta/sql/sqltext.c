/* SPDX-License-Identifier: MIT */
/* Replacements of SQLite's functions on text that take a time like the product of their arguments'
 * lengths. These take a time like the sum, or look at the clock. They return the same, byte for
 * byte, also for text that is not UTF-8 and for values that are no text. */
#include "meta/sql/sqlquery_impl.h"

#include <string.h>

#include "base/pattern.h"

#define LOOK_STEPS 65536 /* steps of a few nanoseconds each between two looks at the clock */

bool pfs_sql_is_over(struct pfs_sql *sql)
{
	return sql->user && sql->tick(sql->user);
}

static int look(void *arg)
{
	return pfs_sql_is_over(arg);
}

static void interrupt(sqlite3_context *context)
{
	sqlite3_result_error_code(context, SQLITE_INTERRUPT);
}

struct text {
	const char *bytes;
	size_t size;
};

/* Gets the value as the text that SQLite makes of it. Returns false if it is NULL, and then so is
 * the result, or if there is no memory. */
static bool take_text(sqlite3_context *context, struct text *out, sqlite3_value *value)
{
	out->bytes = (const char *)sqlite3_value_text(value);
	out->size = (size_t)sqlite3_value_bytes(value);
	if (!out->bytes && sqlite3_value_type(value) != SQLITE_NULL)
		sqlite3_result_error_nomem(context);
	return out->bytes;
}

void pfs_sql_return_str(sqlite3_context *context, sqlite3_str *str)
{
	int result = sqlite3_str_errcode(str), size = sqlite3_str_length(str);
	char *text = sqlite3_str_finish(str);

	if (result == SQLITE_TOOBIG)
		sqlite3_result_error_toobig(context);
	else if (result)
		sqlite3_result_error_nomem(context);
	else
		/* an empty text is NULL, as in printf */
		sqlite3_result_text(context, text, size, sqlite3_free);
	if (result)
		sqlite3_free(text);
}

/* ---- like(pattern, text[, escape]), glob(pattern, text) ---- */

static bool is_too_long(sqlite3_context *context, sqlite3_value *pattern)
{
	sqlite3 *handle = sqlite3_context_db_handle(context);

	if (sqlite3_value_bytes(pattern) <=
	    sqlite3_limit(handle, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1))
		return false;
	sqlite3_result_error(context, "LIKE or GLOB pattern too complex", -1);
	return true;
}

/* Gets the escape character. Returns false if there is none; then the result has been set. */
static bool take_escape(sqlite3_context *context, uint32_t *escape, sqlite3_value *value)
{
	struct text text;

	if (!take_text(context, &text, value))
		return false;
	if (pfs_pattern_is_character(escape, text.bytes))
		return true;
	sqlite3_result_error(context, "ESCAPE expression must be a single character", -1);
	return false;
}

static void match(sqlite3_context *context, int argc, sqlite3_value **argv,
		  enum pfs_pattern_kind kind)
{
	struct pfs_sql *sql = sqlite3_user_data(context);
	const struct pfs_pattern_look sometimes = {look, sql};
	uint32_t escape = 0;
	struct text pattern, text;
	bool matches;

	/* SQLite may have been built so that LIKE and GLOB match no blobs. */
	if (sql->matches_no_blobs && (sqlite3_value_type(argv[0]) == SQLITE_BLOB ||
				      sqlite3_value_type(argv[1]) == SQLITE_BLOB)) {
		sqlite3_result_int(context, 0);
		return;
	}
	if (is_too_long(context, argv[0]) ||
	    (argc == 3 && !take_escape(context, &escape, argv[2])) ||
	    !take_text(context, &pattern, argv[0]) || !take_text(context, &text, argv[1]))
		return;
	if (pfs_pattern_matches_until(&matches, &sometimes, kind, pattern.bytes, escape, text.bytes,
				      text.size))
		interrupt(context);
	else
		sqlite3_result_int(context, matches);
}

static void like(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	match(context, argc, argv, PFS_PATTERN_LIKE);
}

static void glob(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	match(context, argc, argv, PFS_PATTERN_GLOB);
}

/* ---- instr(text, part) ---- */

static bool is_inside(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80; /* it continues a character */
}

/* Returns the place of the part, counted in characters or bytes. A part begins only where a
 * character begins. */
static sqlite3_int64 place_of(const struct text *text, const struct text *part, bool characters)
{
	const char *found;
	sqlite3_int64 place = 1;

	if (part->size <= text->size && memcmp(text->bytes, part->bytes, part->size) == 0)
		return 1;
	if (characters && is_inside(part->bytes[0]))
		return 0;
	found = memmem(text->bytes, text->size, part->bytes, part->size);
	if (!found || !characters)
		return found ? found - text->bytes + 1 : 0;
	for (const char *at = text->bytes + 1; at <= found; at++)
		place += !is_inside(*at);
	return place;
}

static void instr(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	bool is_blob[2];
	struct text texts[2];

	if (sqlite3_value_type(argv[0]) == SQLITE_NULL ||
	    sqlite3_value_type(argv[1]) == SQLITE_NULL)
		return;
	for (int i = 0; i < 2; i++)
		is_blob[i] = sqlite3_value_type(argv[i]) == SQLITE_BLOB;
	for (int i = 0; i < 2; i++) {
		/* A number counts as its text; if one argument is a blob and the other a text,
		 * bytes are compared. */
		texts[i].bytes = is_blob[i] ? sqlite3_value_blob(argv[i])
					    : (const char *)sqlite3_value_text(argv[i]);
		texts[i].size = (size_t)sqlite3_value_bytes(argv[i]);
		if (!texts[i].bytes && texts[i].size) {
			sqlite3_result_error_nomem(context);
			return;
		}
	}
	if (!texts[1].size)
		sqlite3_result_int(context, 1);
	else if (!texts[0].size)
		sqlite3_result_int(context, 0);
	else
		sqlite3_result_int64(context,
				     place_of(&texts[0], &texts[1], !(is_blob[0] && is_blob[1])));
}

/* ---- replace(text, part, by) ---- */

/* Returns false if the statement is over. */
static bool put_replaced(struct pfs_sql *sql, sqlite3_str *out, struct text text,
			 const struct text *part, const struct text *by)
{
	const char *found;
	unsigned steps = 0;

	while (text.size && (found = memmem(text.bytes, text.size, part->bytes, part->size))) {
		size_t before = (size_t)(found - text.bytes);

		sqlite3_str_append(out, text.bytes, (int)before);
		sqlite3_str_append(out, by->bytes, (int)by->size);
		text.bytes = found + part->size;
		text.size -= before + part->size;
		if (sqlite3_str_errcode(out))
			return true;
		if (++steps % LOOK_STEPS == 0 && pfs_sql_is_over(sql))
			return false;
	}
	sqlite3_str_append(out, text.bytes, (int)text.size);
	return true;
}

static void replace(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	struct text text, part, by;
	sqlite3_str *out;

	if (!take_text(context, &text, argv[0]) || !take_text(context, &part, argv[1]))
		return;
	if (!part.bytes[0]) {
		sqlite3_result_value(context, argv[0]);
		return;
	}
	if (!take_text(context, &by, argv[2]))
		return;
	if (text.size == 0) {
		sqlite3_result_text(context, "", 0, SQLITE_STATIC);
		return;
	}
	out = sqlite3_str_new(sqlite3_context_db_handle(context));
	if (put_replaced(sqlite3_user_data(context), out, text, &part, &by)) {
		pfs_sql_return_str(context, out);
		return;
	}
	sqlite3_free(sqlite3_str_finish(out));
	interrupt(context);
}

/* ---- trim(text, characters), ltrim, rtrim ---- */

struct trimming {
	struct pfs_sql *sql;
	struct text set;
	bool has_byte[0x80]; /* characters of one byte, none of which ends another character */
	bool has_others;
	unsigned steps;
	bool is_over;
};

static size_t character_size(const char *at)
{
	size_t size = 1;

	while ((unsigned char)*at >= 0xc0 && is_inside(at[size]))
		size++;
	return size;
}

static bool is_trimming_over(struct trimming *trimming)
{
	if (++trimming->steps % LOOK_STEPS == 0 && pfs_sql_is_over(trimming->sql))
		trimming->is_over = true;
	return trimming->is_over;
}

/* Ends at a NUL, as SQLite has it. */
static void take_set(struct trimming *trimming)
{
	for (const char *at = trimming->set.bytes; *at && !is_trimming_over(trimming);
	     at += character_size(at)) {
		if ((unsigned char)*at < 0x80)
			trimming->has_byte[(unsigned char)*at] = true;
		else
			trimming->has_others = true;
	}
}

/* Returns how many bytes at the beginning, or end, of the text are a character of the set; 0: none
 * are. */
static size_t other_size(struct trimming *trimming, const struct text *text, bool at_end)
{
	size_t size;

	for (const char *at = trimming->set.bytes; *at; at += size) {
		if (is_trimming_over(trimming))
			return 0;
		size = character_size(at);
		if (size <= text->size &&
		    memcmp(text->bytes + (at_end ? text->size - size : 0), at, size) == 0)
			return size;
	}
	return 0;
}

static size_t trimmed_size(struct trimming *trimming, const struct text *text, bool at_end)
{
	unsigned char c;

	if (!text->size || is_trimming_over(trimming))
		return 0;
	c = (unsigned char)text->bytes[at_end ? text->size - 1 : 0];
	if (c < 0x80)
		return trimming->has_byte[c];
	return trimming->has_others ? other_size(trimming, text, at_end) : 0;
}

static void trim_ends(sqlite3_context *context, sqlite3_value **argv, bool left, bool right)
{
	struct trimming trimming = {.sql = sqlite3_user_data(context)};
	struct text text;
	size_t size;

	if (sqlite3_value_type(argv[0]) == SQLITE_NULL || !take_text(context, &text, argv[0]) ||
	    !take_text(context, &trimming.set, argv[1]))
		return;
	take_set(&trimming);
	while (left && (size = trimmed_size(&trimming, &text, false))) {
		text.bytes += size;
		text.size -= size;
	}
	while (right && (size = trimmed_size(&trimming, &text, true)))
		text.size -= size;
	if (trimming.is_over)
		interrupt(context);
	else
		sqlite3_result_text64(context, text.bytes, text.size, SQLITE_TRANSIENT,
				      SQLITE_UTF8);
}

static void trim(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	trim_ends(context, argv, true, true);
}

static void ltrim(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	trim_ends(context, argv, true, false);
}

static void rtrim(sqlite3_context *context, int argc PFS_UNUSED, sqlite3_value **argv)
{
	trim_ends(context, argv, false, true);
}

/* ---- */

int pfs_sql_add_text_functions(struct pfs_sql *sql, bool plain_patterns)
{
	static const struct {
		const char *name;
		void (*call)(sqlite3_context *context, int argc, sqlite3_value **argv);
		int n_arguments;
		bool is_pattern;
	} functions[] = {
		{"instr", instr, 2, false},	{"replace", replace, 3, false},
		{"trim", trim, 2, false},	{"ltrim", ltrim, 2, false},
		{"rtrim", rtrim, 2, false},	{"like", like, 2, true},
		{"like", like, 3, true},	{"glob", glob, 2, true},
		{"printf", pfs_sql_format, -1, false}, {"format", pfs_sql_format, -1, false},
	};
	int result = SQLITE_OK;

	sql->matches_no_blobs = sqlite3_compileoption_used("LIKE_DOESNT_MATCH_BLOBS");
	for (size_t i = 0; i < PFS_COUNT(functions) && !result; i++) {
		if (functions[i].is_pattern && plain_patterns)
			continue;
		result = sqlite3_create_function_v2(
			sql->handle, functions[i].name, functions[i].n_arguments,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, sql,
			functions[i].call, NULL, NULL, NULL);
	}
	return result ? result : pfs_sql_add_json_functions(sql);
}
