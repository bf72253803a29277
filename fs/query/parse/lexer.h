/* SPDX-License-Identifier: MIT */
/* fs/query/parse/lexer.h - the words and signs of a statement. lexer.re is the code; the kinds are
 * grammar.y's terminals, which Lemon writes to grammar.h. Threads: any number of callers. */
#ifndef PFS_FS_QUERY_PARSE_LEXER_H
#define PFS_FS_QUERY_PARSE_LEXER_H

#include "fs/query/parse/ast.h"

struct pfs_lexeme {
	int kind; /* 0: the end; -1: none of the language's */
	struct pfs_text_range span;
};

/* Returns the first lexeme from byte `from` on, past blanks and comments. A 0 ends the text. */
struct pfs_lexeme pfs_lex(const char *text, size_t from);

#endif
