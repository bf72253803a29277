/* SPDX-License-Identifier: MIT */
#include "fs/query/tokens.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

bool pfs_token_is_letter(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static size_t skip_blank(const char *sql, size_t len, size_t at)
{
	for (;;) {
		const char *end;

		while (at < len && isspace((unsigned char)sql[at]))
			at++;
		if (len - at >= 3 && memcmp(sql + at, "\xef\xbb\xbf", 3) == 0)
			at += 3; /* a byte order mark is a blank to SQLite, too */
		else if (at + 1 < len && sql[at] == '-' && sql[at + 1] == '-') {
			end = memchr(sql + at, '\n', len - at);
			at = end ? (size_t)(end - sql) : len;
		} else if (at + 1 < len && sql[at] == '/' && sql[at + 1] == '*') {
			end = memmem(sql + at + 2, len - at - 2, "*/", 2);
			at = end ? (size_t)(end - sql) + 2 : len;
		} else {
			return at;
		}
	}
}

/* The end of what is quoted from `at` on, doubled quotes being part of it. */
static size_t quoted_end(const char *sql, size_t len, size_t at)
{
	char quote = sql[at] == '[' ? ']' : sql[at];

	for (at++; at < len; at++) {
		if (sql[at] != quote)
			continue;
		if (quote == ']' || at + 1 == len || sql[at + 1] != quote)
			return at + 1;
		at++;
	}
	return len;
}

static enum pfs_token_kind kind_of(char c)
{
	switch (c) {
	case '\'':
		return PFS_TOKEN_STRING;
	case '"':
	case '`':
	case '[':
		return PFS_TOKEN_WORD;
	case '(':
		return PFS_TOKEN_OPEN;
	case ')':
		return PFS_TOKEN_CLOSE;
	case ',':
		return PFS_TOKEN_COMMA;
	case '.':
		return PFS_TOKEN_DOT;
	case '=':
	case '<':
	case '>':
	case '!':
		return PFS_TOKEN_OPERATOR;
	default:
		return pfs_token_is_letter(c) ? PFS_TOKEN_WORD : PFS_TOKEN_OTHER;
	}
}

struct pfs_token pfs_token_next(const char *sql, size_t len, size_t from)
{
	struct pfs_token token = {.at = skip_blank(sql, len, from)};
	size_t end = token.at;

	if (end == len)
		return token;
	token.kind = kind_of(sql[end]);
	if (token.kind == PFS_TOKEN_STRING ||
	    (token.kind == PFS_TOKEN_WORD && !pfs_token_is_letter(sql[end])))
		end = quoted_end(sql, len, end);
	else if (token.kind == PFS_TOKEN_WORD)
		while (end < len && pfs_token_is_letter(sql[end]))
			end++;
	else if (token.kind == PFS_TOKEN_OPERATOR)
		while (end < len && strchr("=<>!", sql[end]))
			end++;
	else
		end++;
	token.len = end - token.at;
	/* x'00' is a blob */
	if (token.kind == PFS_TOKEN_WORD && token.len == 1 && strchr("xX", sql[token.at]) &&
	    end < len && sql[end] == '\'') {
		token.len = quoted_end(sql, len, end) - token.at;
		token.kind = PFS_TOKEN_OTHER;
	}
	return token;
}

bool pfs_token_is(const char *sql, const struct pfs_token *token, const char *word)
{
	return token->kind == PFS_TOKEN_WORD && token->len == strlen(word) &&
	       strncasecmp(sql + token->at, word, token->len) == 0;
}

bool pfs_token_may_be(const char *sql, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if ((sql[i] | 0x20) == *word && strncasecmp(sql + i, word, n) == 0)
			return true;
	return false;
}
