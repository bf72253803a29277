/* SPDX-License-Identifier: MIT */
#include "meta/declaration.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define DEPTH_MAX 50 /* how deep parentheses may nest */

enum kind { END, WORD, QUOTED, STRING, NUMBER, OPEN, CLOSE, COMMA, SEMICOLON, SIGN, BAD };

struct token {
	enum kind kind;
	const char *at;
	size_t len;
};

struct parser {
	const char *at, *end;
	struct token token; /* the next token to be taken */
	struct token last;  /* the token that was taken last */
	FILE *out;	    /* gets what was taken; NULL: it is not needed */
	char *why;
};

/* ---- words ---- */

static bool is_letter(char c)
{
	return (unsigned char)c >= 0x80 || c == '_' || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_blanks(const char *at, const char *end)
{
	while (at < end) {
		const char *close = NULL;

		if (*at == ' ' || (*at >= '\t' && *at <= '\r'))
			close = at + 1;
		else if (end - at > 1 && at[0] == '-' && at[1] == '-')
			close = memchr(at, '\n', (size_t)(end - at));
		else if (end - at > 1 && at[0] == '/' && at[1] == '*')
			close = memmem(at + 2, (size_t)(end - at - 2), "*/", 2);
		else
			break;
		if (!close)
			return end;
		at = *at == '/' ? close + 2 : close;
	}
	return at;
}

/* Returns the place behind the quote that ends the text, in which a doubled quote is a quote; NULL:
 * there is none. */
static const char *past_quote(const char *at, const char *end, char quote)
{
	for (at++; at < end; at++) {
		if (*at != quote)
			continue;
		if (quote == ']' || at + 1 == end || at[1] != quote)
			return at + 1;
		at++;
	}
	return NULL;
}

static enum kind kind_of(char c)
{
	switch (c) {
	case '(':
		return OPEN;
	case ')':
		return CLOSE;
	case ',':
		return COMMA;
	case ';':
		return SEMICOLON;
	default:
		return c && strchr("+-*/%<>=!&|~.", c) ? SIGN : BAD;
	}
}

static struct token scan(const char *at, const char *end)
{
	struct token token = {.kind = END, .at = at};
	const char *past = at + 1;

	if (at == end)
		return token;
	if (*at == '\'' || ((*at == 'x' || *at == 'X') && end - at > 1 && at[1] == '\'')) {
		token.kind = STRING;
		past = past_quote(at + (*at != '\''), end, '\'');
	} else if (*at == '"' || *at == '`' || *at == '[') {
		token.kind = QUOTED;
		past = past_quote(at, end, (char)(*at == '[' ? ']' : *at));
	} else if (is_digit(*at) || (*at == '.' && end - at > 1 && is_digit(at[1]))) {
		token.kind = NUMBER;
		while (past < end && (is_letter(*past) || is_digit(*past) || *past == '.' ||
				      ((*past == '+' || *past == '-') && strchr("eE", past[-1]))))
			past++;
	} else if (is_letter(*at)) {
		token.kind = WORD;
		while (past < end && (is_letter(*past) || is_digit(*past) || *past == '$'))
			past++;
	} else {
		token.kind = kind_of(*at);
	}
	if (!past) {
		token.kind = BAD;
		past = end;
	}
	token.len = (size_t)(past - at);
	return token;
}

static void look(struct parser *p)
{
	p->token = scan(skip_blanks(p->at, p->end), p->end);
	p->at = p->token.at + p->token.len;
}

/* Goes on without keeping the token. */
static void skip(struct parser *p)
{
	p->last = p->token;
	look(p);
}

/* Signs that make one, as <> does, stay together. */
static void take(struct parser *p)
{
	bool is_joined = p->last.kind == SIGN && p->token.kind == SIGN &&
			 p->last.at + p->last.len == p->token.at;

	bool is_first = p->last.kind == END || p->last.kind == SEMICOLON;

	if (p->out && !is_joined && !is_first)
		(void)fputc(' ', p->out);
	if (p->out)
		(void)fwrite(p->token.at, 1, p->token.len, p->out);
	skip(p);
}

static bool is_word(const struct token *token, const char *word)
{
	return token->kind == WORD && strlen(word) == token->len &&
	       strncasecmp(token->at, word, token->len) == 0;
}

static bool is_one_of(const struct token *token, const char *const *words)
{
	for (; *words; words++)
		if (is_word(token, *words))
			return true;
	return false;
}

static bool is_name(const struct token *token)
{
	return token->kind == WORD || token->kind == QUOTED || token->kind == STRING;
}

/* Returns true if the token is the name, quoted or not. */
static bool says(const struct token *token, const char *name)
{
	const char *at = token->at, *end = at + token->len;
	char quote = 0;

	if (token->kind != WORD) {
		quote = end[-1];
		at++;
		end--;
	}
	for (; at < end; at++, name++) {
		if (strncasecmp(at, name, 1) != 0)
			return false;
		at += *at == quote;
	}
	return !*name;
}

static PFS_PRINTF(2, 3) int fail(struct parser *p, const char *format, ...)
{
	va_list values;

	va_start(values, format);
	(void)vsnprintf(p->why, PFS_DECLARATION_WHY, format, values);
	va_end(values);
	return -EUCLEAN;
}

static int fail_here(struct parser *p)
{
	if (p->token.kind == END)
		return fail(p, "ends too soon");
	return fail(p, "cannot be understood at '%.*s'",
		    (int)(p->token.len < 40 ? p->token.len : 40), p->token.at);
}

static int expect(struct parser *p, const char *word)
{
	if (!is_word(&p->token, word))
		return fail_here(p);
	take(p);
	return 0;
}

static int expect_kind(struct parser *p, enum kind kind)
{
	if (p->token.kind != kind)
		return fail_here(p);
	take(p);
	return 0;
}

/* ---- expressions ---- */

/* Words that may stand before a parenthesis, and are no functions. */
static const char *const before_parenthesis[] = {
	"AND",	   "AS",   "BETWEEN", "CASE", "CHECK", "COLLATE", "DEFAULT", "ELSE",  "ESCAPE",
	"GLOB",	   "IN",   "IS",      "KEY",  "LIKE",  "NOT",	  "ON",	     "OR",    "THEN",
	"UNIQUE",  "WHEN", "WHERE",   "CAST", "FROM",  "DISTINCT", NULL};

static const char *const functions[] = {
	"abs",	    "acos",	 "asin",      "atan",	      "atan2",	    "ceil",	 "ceiling",
	"char",	    "coalesce",	 "concat",    "concat_ws",    "cos",	    "date",	 "datetime",
	"degrees",  "exp",	 "floor",     "format",	      "glob",	    "hex",	 "ifnull",
	"iif",	    "instr",	 "json",      "json_array",   "json_array_length", "json_extract",
	"json_object", "json_quote", "json_type", "json_valid", "julianday",  "length",	 "like",
	"likelihood", "likely",	 "ln",	      "log",	      "log10",	    "log2",	 "lower",
	"ltrim",    "max",	 "min",	      "mod",	      "nullif",	    "octet_length",
	"pi",	    "pow",	 "power",     "printf",	      "quote",	    "radians",	 "random",
	"randomblob", "replace", "round",     "rtrim",	      "sign",	    "sin",	 "sqrt",
	"strftime", "substr",	 "substring", "tan",	      "time",	    "trim",	 "trunc",
	"typeof",   "unhex",	 "unicode",   "unixepoch",    "unlikely",   "upper",	 "zeroblob",
	NULL};

static bool is_function(const struct token *token)
{
	for (size_t i = 0; functions[i]; i++)
		if (says(token, functions[i]))
			return true;
	return false;
}

/* Checks that what stands before a parenthesis is an allowed function, or one of the words that are
 * none. */
static int check_call(struct parser *p, const struct token *before, bool is_table)
{
	if ((before->kind != WORD && before->kind != QUOTED) || is_table ||
	    is_one_of(before, before_parenthesis) || is_function(before))
		return 0;
	return fail(p, "calls %.*s(), which it may not", (int)(before->len < 60 ? before->len : 60),
		    before->at);
}

static int check_token(struct parser *p)
{
	static const char *const refused[] = {"SELECT", "VALUES", "RAISE", NULL};

	return p->token.kind == BAD || p->token.kind == END || is_one_of(&p->token, refused)
		       ? fail_here(p)
		       : 0;
}

static bool ends_expression(enum kind kind, unsigned depth)
{
	return kind == END || kind == SEMICOLON || (!depth && (kind == COMMA || kind == CLOSE));
}

/* Takes all up to the end, or to a comma, closing parenthesis or semicolon outside of parentheses.
 */
static int take_expressions(struct parser *p)
{
	struct token before_last = p->last;
	unsigned depth = 0;

	for (; !ends_expression(p->token.kind, depth); take(p)) {
		PFS_TRY(check_token(p));
		if (p->token.kind == OPEN)
			PFS_TRY(check_call(p, &p->last, is_word(&before_last, "REFERENCES")));
		depth += p->token.kind == OPEN;
		depth -= p->token.kind == CLOSE;
		if (depth > DEPTH_MAX)
			return fail(p, "has too many parentheses in each other");
		before_last = p->last;
	}
	return depth ? fail_here(p) : 0;
}

/* Items between commas, in parentheses. */
static int take_list(struct parser *p, int (*take_item)(struct parser *p))
{
	if (p->token.kind != OPEN)
		return fail_here(p);
	do {
		take(p);
		PFS_TRY(take_item(p));
	} while (p->token.kind == COMMA);
	return expect_kind(p, CLOSE);
}

/* ---- columns ---- */

static int take_type(struct parser *p)
{
	static const char *const after[] = {"CONSTRAINT", "PRIMARY", "NOT",	   "NULL",
					    "UNIQUE",	  "CHECK",   "DEFAULT",	   "COLLATE",
					    "REFERENCES", "AS",	     "GENERATED", NULL};

	if (!is_name(&p->token) || is_one_of(&p->token, after))
		return 0;
	while (is_name(&p->token) && !is_one_of(&p->token, after))
		take(p);
	if (p->token.kind != OPEN)
		return 0;
	do {
		take(p);
		if (p->token.kind == SIGN)
			take(p);
		PFS_TRY(expect_kind(p, NUMBER));
	} while (p->token.kind == COMMA);
	return expect_kind(p, CLOSE);
}

static int take_column(struct parser *p)
{
	static const char *const constraints[] = {"CONSTRAINT", "PRIMARY", "UNIQUE",
						  "CHECK",	"FOREIGN", NULL};

	if (!is_one_of(&p->token, constraints)) {
		if (!is_name(&p->token))
			return fail_here(p);
		take(p);
		PFS_TRY(take_type(p));
	}
	return take_expressions(p);
}

/* ---- statements ---- */

static void put_name(const struct parser *p, const char *name)
{
	if (!p->out)
		return;
	(void)fputs(" \"", p->out);
	for (; *name; name++) {
		if (*name == '"')
			(void)fputc('"', p->out);
		(void)fputc(*name, p->out);
	}
	(void)fputc('"', p->out);
}

static int take_table_name(struct parser *p, const char *name)
{
	if (!is_name(&p->token))
		return fail_here(p);
	if (!says(&p->token, name))
		return fail(p, "is another table's");
	put_name(p, name);
	skip(p);
	return 0;
}

static int end_statement(struct parser *p)
{
	if (p->token.kind != END && p->token.kind != SEMICOLON)
		return fail_here(p);
	if (p->token.kind == SEMICOLON)
		skip(p);
	if (p->out)
		(void)fputs(";\n", p->out);
	return 0;
}

static int take_table(struct parser *p, const char *name)
{
	PFS_TRY(expect(p, "CREATE"));
	PFS_TRY(expect(p, "TABLE"));
	PFS_TRY(take_table_name(p, name));
	PFS_TRY(take_list(p, take_column));
	if (is_word(&p->token, "STRICT"))
		take(p);
	return end_statement(p);
}

static int take_index(struct parser *p, const char *name)
{
	PFS_TRY(expect(p, "CREATE"));
	if (is_word(&p->token, "UNIQUE"))
		take(p);
	PFS_TRY(expect(p, "INDEX"));
	if (!is_name(&p->token))
		return fail_here(p);
	take(p);
	PFS_TRY(expect(p, "ON"));
	PFS_TRY(take_table_name(p, name));
	PFS_TRY(take_list(p, take_expressions));
	if (is_word(&p->token, "WHERE")) {
		take(p);
		PFS_TRY(take_expressions(p));
	}
	return end_statement(p);
}

int pfs_declaration_parse(char **sql, char why[PFS_DECLARATION_WHY], const char *name,
			  const void *text, size_t len)
{
	struct parser p = {.at = text, .end = (const char *)text + len, .why = why};
	size_t size;
	int error;

	*why = 0;
	if (memchr(text, 0, len))
		return fail(&p, "has a NUL byte");
	p.out = sql ? open_memstream(sql, &size) : NULL;
	if (sql && !p.out)
		return -ENOMEM;
	look(&p);
	error = take_table(&p, name);
	while (!error && p.token.kind != END)
		error = take_index(&p, name);
	if (p.out && fclose(p.out))
		error = -ENOMEM;
	if (error && sql) {
		free(*sql);
		*sql = NULL;
	}
	return error;
}

bool pfs_declaration_counts(const char *text, size_t len)
{
	struct parser p = {.at = text, .end = text + len};

	look(&p);
	while (p.token.kind != END && p.token.kind != BAD && !is_word(&p.token, "AUTOINCREMENT"))
		skip(&p);
	return is_word(&p.token, "AUTOINCREMENT");
}

bool pfs_declaration_constrains(const char *text, size_t len)
{
	static const char *const reserved[] = {"CHECK", "AUTOINCREMENT", NULL};
	struct parser p = {.at = text, .end = text + len};
	int depth = 0;

	for (look(&p); p.token.kind != END && p.token.kind != BAD; skip(&p)) {
		depth += (p.token.kind == OPEN) - (p.token.kind == CLOSE);
		if (is_one_of(&p.token, reserved) ||
		    (is_word(&p.token, "CONFLICT") && is_word(&p.last, "ON")) ||
		    (is_word(&p.token, "STRICT") && !depth &&
		     (p.last.kind == CLOSE || p.last.kind == COMMA)))
			return true;
	}
	return p.token.kind == BAD;
}
