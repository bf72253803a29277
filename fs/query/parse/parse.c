/* SPDX-License-Identifier: MIT */
#include "fs/query/parse/parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fs/query/parse/ast_impl.h"
#include "fs/query/parse/grammar.h"

#define TREE_BYTES_MAX ((size_t)5 << 20)

/* Lemon's. */
void *pfs_grammarAlloc(void *(*allocate)(size_t));
void pfs_grammarFree(void *parser, void (*free_memory)(void *));
void pfs_grammar(void *parser, int kind, struct pfs_lexeme token, struct pfs_parser *p);

struct pfs_parsed {
	struct pfs_arena arena;
	const struct pfs_statement *statement;
	const char *text;
};

/* What WINDOW, OVER and FILTER are depends on the words around them, as it does in SQLite. */
static int kind_here(const struct pfs_lexeme *tokens, size_t i)
{
	int before = i ? tokens[i - 1].kind : 0, after = tokens[i + 1].kind;

	switch (tokens[i].kind) {
	case SQL_FILTER:
		return before == SQL_RP && after == SQL_LP ? SQL_FILTER : SQL_ID;
	case SQL_OVER:
		return before == SQL_RP && (after == SQL_LP || after == SQL_ID) ? SQL_OVER : SQL_ID;
	case SQL_WINDOW:
		return after == SQL_ID && tokens[i + 2].kind == SQL_AS ? SQL_WINDOW : SQL_ID;
	default:
		return tokens[i].kind;
	}
}

/* Two tokens more than *n are there, all ends. */
static int split(struct pfs_parser *p, struct pfs_lexeme **tokens, size_t *n)
{
	size_t capacity = 256, from = 0;
	struct pfs_lexeme *list = calloc(capacity + 2, sizeof(*list)), token;

	*tokens = NULL;
	if (!list)
		return -ENOMEM;
	for (*n = 0; (token = pfs_lex(p->sql, from)).kind > 0; from += token.span.len) {
		from = token.span.at;
		if (*n == PFS_PARSE_TOKENS_MAX) {
			pfs_ast_refuse(p, token.span.at, "it has too many words");
			break;
		}
		if (*n == capacity) {
			struct pfs_lexeme *more = realloc(list, (2 * capacity + 2) * sizeof(*list));

			if (!more) {
				free(list);
				return -ENOMEM;
			}
			list = more;
			capacity *= 2;
		}
		list[(*n)++] = token;
	}
	*tokens = list;
	if (token.kind < 0)
		pfs_ast_refuse(p, token.span.at, "its signs are not of this dialect");
	list[*n] = list[*n + 1] = (struct pfs_lexeme){.kind = 0, .span = {token.span.at, 0}};
	return p->error;
}

static int parse(struct pfs_parser *p)
{
	struct pfs_lexeme *tokens PFS_FREE = NULL;
	void *parser;
	size_t n;

	PFS_TRY(split(p, &tokens, &n));
	p->begin = tokens[0].span.at;
	parser = pfs_grammarAlloc(malloc);
	if (!parser)
		return -ENOMEM;
	for (size_t i = 0; i <= n && !p->error; i++) {
		pfs_grammar(parser, kind_here(tokens, i), tokens[i], p);
		p->end = tokens[i].span.at + tokens[i].span.len;
	}
	pfs_grammarFree(parser, free);
	if (!p->error && !p->statement)
		pfs_ast_refuse(p, 0, "its words are not of this dialect");
	return p->error;
}

int pfs_parse(struct pfs_parsed **out, const char *sql, size_t len, struct pfs_not_taken * not )
{
	struct pfs_parsed *parsed = calloc(1, sizeof(*parsed));
	struct pfs_parser p = {.arena.limit = TREE_BYTES_MAX};
	int error = 0;

	*out = NULL;
	if (!parsed)
		return -ENOMEM;
	if (len > PFS_PARSE_TEXT_MAX || memchr(sql, 0, len))
		pfs_ast_refuse(&p, 0, "it is too long, or has a zero byte");
	else
		p.sql = pfs_arena_text(&p.arena, sql, len);
	if (!p.error)
		error = p.sql ? parse(&p) : -ENOMEM;
	else
		error = p.error;
	if (error) {
		if (error == -ENOTSUP && not )
			*not = p.not ;
		pfs_arena_finish(&p.arena);
		free(parsed);
		return error;
	}
	parsed->arena = p.arena;
	parsed->statement = p.statement;
	parsed->text = p.sql;
	*out = parsed;
	return 0;
}

size_t pfs_parsed_memory(const struct pfs_parsed *parsed)
{
	return parsed ? sizeof(*parsed) + parsed->arena.total : 0;
}

void pfs_parsed_free(struct pfs_parsed *parsed)
{
	if (!parsed)
		return;
	pfs_arena_finish(&parsed->arena);
	free(parsed);
}

const struct pfs_statement *pfs_parsed_statement(const struct pfs_parsed *parsed)
{
	return parsed->statement;
}

const char *pfs_parsed_text(const struct pfs_parsed *parsed)
{
	return parsed->text;
}
