/* SPDX-License-Identifier: MIT */
#include "tools/gnu/quote.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>
#include <wctype.h>

/* Characters that mean something to a shell, wherever they are. `?` also replaces what cannot be
 * printed. */
static const char special[] = " !\"$&'()*;<=>?[\\^`|";
/* Characters that keep a name with an apostrophe from being put in double quotes. */
static const char not_in_double[] = "!\"#$&()*;<=>?[\\^`{|}~";

/* A character of a name, or bytes that are none. */
struct piece {
	size_t n;
	bool prints;
	int width; /* ls(1) also counts what cannot be printed */
};

static struct piece first_piece(const char *name, size_t len)
{
	mbstate_t state = {0};
	wchar_t c = 0;
	size_t n = mbrtowc(&c, name, len, &state);

	if (n == (size_t)-2) /* the beginning of a character */
		return (struct piece){.n = len, .width = MB_CUR_MAX > 1};
	if (n == 0 || n > len)
		return (struct piece){.n = 1, .width = MB_CUR_MAX > 1};
	return (struct piece){
		.n = n,
		.prints = iswprint((wint_t)c),
		.width = wcwidth(c) >= 0 ? wcwidth(c) : !iswcntrl((wint_t)c),
	};
}

static bool is_in(const char *set, char c)
{
	return c && strchr(set, c);
}

bool pfs_needs_quotes(const char *name, size_t len, bool colon)
{
	if (!len || *name == '#' || *name == '~' || (len == 1 && is_in("{}", *name)))
		return true;
	for (size_t i = 0; i < len;) {
		struct piece piece = first_piece(name + i, len - i);

		if (!piece.prints || is_in(special, name[i]) || (colon && name[i] == ':'))
			return true;
		i += piece.n;
	}
	return false;
}

/* Returns true if the name has an apostrophe, and nothing that may not be in double quotes. */
static bool wants_double_quotes(const char *name, size_t len)
{
	if (!memchr(name, '\'', len))
		return false;
	for (size_t i = 0; i < len;) {
		struct piece piece = first_piece(name + i, len - i);

		if (!piece.prints || is_in(not_in_double, name[i]))
			return false;
		i += piece.n;
	}
	return true;
}

static char *escape(char *out, unsigned char c)
{
	static const char from[] = "\a\b\f\n\r\t\v", to[] = "abfnrtv";
	const char *at = c ? strchr(from, c) : NULL;

	*out++ = '\\';
	if (at) {
		*out++ = to[at - from];
		return out;
	}
	*out++ = (char)('0' + (c >> 6));
	*out++ = (char)('0' + (c >> 3 & 7));
	*out++ = (char)('0' + (c & 7));
	return out;
}

/* Puts the name in quotes; what cannot be printed becomes $'...' in between. */
static char *quote(char *out, const char *name, size_t len)
{
	bool escaping = false;

	for (size_t i = 0; i < len;) {
		struct piece piece = first_piece(name + i, len - i);

		if (!piece.prints && !escaping)
			out = mempcpy(out, "'$'", 3);
		else if (piece.prints && escaping && name[i] != '\'')
			out = mempcpy(out, "''", 2);
		escaping = !piece.prints;
		for (size_t j = 0; escaping && j < piece.n; j++)
			out = escape(out, (unsigned char)name[i + j]);
		if (name[i] == '\'')
			out = mempcpy(out, "'\\'", 3);
		if (piece.prints)
			out = mempcpy(out, name + i, piece.n);
		i += piece.n;
	}
	return out;
}

size_t pfs_quote_name(char *out, const char *name, size_t len, bool colon)
{
	char *to = out, mark = '\'';

	if (!pfs_needs_quotes(name, len, colon)) {
		memcpy(out, name, len);
		return len;
	}
	if (wants_double_quotes(name, len))
		mark = '"';
	*to++ = mark;
	to = mark == '"' ? mempcpy(to, name, len) : quote(to, name, len);
	*to++ = mark;
	return (size_t)(to - out);
}

size_t pfs_name_width(const char *name, size_t len)
{
	size_t width = 0;

	for (size_t i = 0; i < len;) {
		struct piece piece = first_piece(name + i, len - i);

		width += (size_t)piece.width;
		i += piece.n;
	}
	return width;
}
