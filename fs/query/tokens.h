/* SPDX-License-Identifier: MIT */
/* fs/query/tokens.h - SQL's words and signs, as far as rewriting a statement needs them. */
#ifndef PFS_FS_QUERY_TOKENS_H
#define PFS_FS_QUERY_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

enum pfs_token_kind {
	PFS_TOKEN_END,
	PFS_TOKEN_WORD, /* quoted or not */
	PFS_TOKEN_STRING,
	PFS_TOKEN_OPERATOR, /* of comparison */
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

/* Returns the first token from `from` on, past blanks and comments. */
struct pfs_token pfs_token_next(const char *sql, size_t len, size_t from);

/* Returns true if the token is that word, not quoted, in any case of letters. */
bool pfs_token_is(const char *sql, const struct pfs_token *token, const char *word);

/* Returns true if the word (of small letters) is somewhere in the text, in any case, be it as a
 * part of another one or in a comment: that is known sooner than the tokens. */
bool pfs_token_may_be(const char *sql, size_t len, const char *word);

/* Returns true if words are made of such characters. */
bool pfs_token_is_letter(char c);

#endif
