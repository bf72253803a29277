/* SPDX-License-Identifier: MIT */
/* fs/query/tokens.h - SQL's words and signs, as far as rewriting a statement needs them. */
#ifndef PFS_FS_QUERY_TOKENS_H
#define PFS_FS_QUERY_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum pfs_token_kind {
	PFS_TOKEN_END,
	PFS_TOKEN_WORD, /* a word or name, quoted or not */
	PFS_TOKEN_STRING,
	PFS_TOKEN_OPERATOR, /* an operator of comparison */
	PFS_TOKEN_OPEN,
	PFS_TOKEN_CLOSE,
	PFS_TOKEN_COMMA,
	PFS_TOKEN_DOT,
	PFS_TOKEN_OTHER,
};

struct pfs_token {
	enum pfs_token_kind kind;
	size_t at, len;
};

/* Returns the first token from `from` on, past blanks, comments and byte order marks. */
struct pfs_token pfs_token_next(const char *sql, size_t len, size_t from);

/* Returns true if the token is that word, not quoted, in any case of letters. */
bool pfs_token_is(const char *sql, const struct pfs_token *token, const char *word);

/* Returns true if the word (given in small letters) is anywhere in the text, in any case of
 * letters, also as a part of another word or in a comment. This is faster than looking at the
 * tokens. */
bool pfs_token_may_be(const char *sql, size_t len, const char *word);

/* Returns true for a character that words consist of. */
bool pfs_token_is_letter(char c);

#endif
