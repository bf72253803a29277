/* SPDX-License-Identifier: MIT */
/* Finds out whether a statement's patterns can be left to SQLite (meta/sql/sqlquery.h,
 * plain_patterns). */
#include "fs/query/internal.h"

#include <string.h>
#include <strings.h>

#include "fs/query/tokens.h"

/* 'text%': SQLite goes by an index then, and takes no longer than the text is. */
static bool is_plain(const char *sql, const struct pfs_token *string, char many, const char *others)
{
	const char *at = sql + string->at + 1;
	size_t len = string->len - 2;

	if (string->kind != PFS_TOKEN_STRING || string->len < 4 || at[len - 1] != many)
		return false;
	for (size_t i = 0; i < len - 1; i++)
		if (at[i] == many || strchr(others, at[i])) /* NUL is none of a statement's */
			return false;
	return true;
}

/* However it is meant. */
static unsigned count(const char *sql, size_t len, const char *word)
{
	size_t n = strlen(word);
	unsigned found = 0;

	for (size_t at = 0; at + n <= len; at++)
		found += strncasecmp(sql + at, word, n) == 0;
	return found;
}

bool pfs_patterns_are_plain(const char *sql, size_t len)
{
	struct pfs_token token = {.kind = PFS_TOKEN_OTHER};
	unsigned known = 0;

	if (!pfs_token_may_be(sql, len, "like") && !pfs_token_may_be(sql, len, "glob"))
		return false;
	if (pfs_token_may_be(sql, len, "escape"))
		return false;
	for (;;) {
		bool like, glob;

		token = pfs_token_next(sql, len, token.at + token.len);
		if (token.kind == PFS_TOKEN_END)
			break;
		like = pfs_token_is(sql, &token, "LIKE");
		glob = pfs_token_is(sql, &token, "GLOB");
		if (!like && !glob)
			continue;
		token = pfs_token_next(sql, len, token.at + token.len);
		if (!is_plain(sql, &token, like ? '%' : '*', like ? "_" : "?["))
			return false;
		known++;
	}
	/* none is a quoted name of a function, say */
	return known == count(sql, len, "like") + count(sql, len, "glob");
}
