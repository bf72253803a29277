/* SPDX-License-Identifier: MIT */
/* fs/query/parse/parse.h - the text of a statement to a tree (ast.h).
 *
 * The dialect is SQLite's. What a tree says of a statement is true of SQLite's reading of it, or
 * the statement is not taken. Nothing is an error here: SQLite prepares every statement, too, and
 * says what is wrong with it; and a statement that is wrong may well be taken.
 *
 * Not taken are EXPLAIN, PRAGMA and whatever else is none of ast.h's statements, RETURNING,
 * upserts, constraints of tables, constraints of columns but for NOT NULL, PRIMARY KEY and DEFAULT,
 * two statements in one, words that SQLite reserves, and what is larger than the limits below.
 * Windows (OVER, WINDOW) are taken as syntax and marked.
 *
 * Threads: any number of callers; what was parsed is never changed. */
#ifndef PFS_FS_QUERY_PARSE_PARSE_H
#define PFS_FS_QUERY_PARSE_PARSE_H

#include "base/err.h"
#include "fs/query/parse/ast.h"

/* Deeper trees, longer texts and more tokens are not taken: 64 KiB of text make 5 MiB at most. */
#define PFS_AST_DEPTH_MAX    256
#define PFS_PARSE_TEXT_MAX   ((size_t)64 << 10)
#define PFS_PARSE_TOKENS_MAX 16384

struct pfs_parsed; /* a statement's text and tree */

/* Why a statement was not taken, for the reader of a plan. */
struct pfs_not_taken {
	const char *why; /* a constant: "what is no statement of this dialect" */
	uint32_t at;	 /* where in the text */
};

/* Parses a statement, whose text is copied. -ENOTSUP: it is not taken, and *not says why (NULL: the
 * caller does not ask); -ENOMEM. *out is NULL on failure. */
PFS_MUST_CHECK int pfs_parse(struct pfs_parsed **out, const char *sql, size_t len,
			     struct pfs_not_taken * not );

/* Frees the text and the tree. NULL is allowed. */
void pfs_parsed_free(struct pfs_parsed *parsed);

/* Returns the statement, which lives as long as `parsed`; never NULL. */
const struct pfs_statement *pfs_parsed_statement(const struct pfs_parsed *parsed);

/* Returns the copy of the text that spans point into. */
const char *pfs_parsed_text(const struct pfs_parsed *parsed);

/* Returns how many bytes it takes; NULL is allowed. */
size_t pfs_parsed_memory(const struct pfs_parsed *parsed);

#endif
