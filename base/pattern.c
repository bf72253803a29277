/* SPDX-License-Identifier: MIT */
/* SQLite's patternCompare (func.c) without its recursion: when a second star is reached, the match
 * of what is before it is final, so only the last star is tried again at later places. */
#include "base/pattern.h"

#include <string.h>

#define LOOK_STEPS 65536 /* between two looks */

struct dialect {
	uint32_t many, one, set, escape; /* 0: there is no such character */
	bool fold;
};

static const struct dialect glob = {.many = '*', .one = '?', .set = '['};
static const struct dialect like = {.many = '%', .one = '_', .fold = true};

/* Returns the bits that a leading byte from 0xc0 on contributes to its character. */
static uint32_t leading_bits(uint8_t byte)
{
	if (byte < 0xe0)
		return byte & 0x1f;
	if (byte < 0xf0)
		return byte & 0x0f;
	if (byte < 0xf8)
		return byte & 0x07;
	return byte < 0xfc ? byte & 0x03 : byte < 0xfe ? byte & 0x01 : 0;
}

/* Bytes that are left; 0 stands for the end. */
struct rest {
	const uint8_t *at, *end;
};

static uint32_t peek(const struct rest *text)
{
	return text->at < text->end ? *text->at : 0;
}

/* Reads the next character as SQLite does: a byte below 0xc0 is a character, and a sequence may
 * have any length. */
static uint32_t next_of_text(struct rest *text)
{
	uint32_t c = peek(text);

	text->at += c != 0;
	if (c < 0xc0)
		return c;
	c = leading_bits((uint8_t)c);
	while ((peek(text) & 0xc0) == 0x80)
		c = c << 6 | (*text->at++ & 0x3f);
	if (c < 0x80 || (c & 0xfffff800) == 0xd800 || (c & 0xfffffffe) == 0xfffe)
		c = 0xfffd;
	return c;
}

static uint32_t next_character(const uint8_t **text)
{
	uint32_t c = *(*text)++;

	if (c < 0xc0)
		return c;
	c = leading_bits((uint8_t)c);
	while ((**text & 0xc0) == 0x80)
		c = c << 6 | (*(*text)++ & 0x3f);
	if (c < 0x80 || (c & 0xfffff800) == 0xd800 || (c & 0xfffffffe) == 0xfffe)
		c = 0xfffd;
	return c;
}

static uint32_t fold(uint32_t c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool same(const struct dialect *dialect, uint32_t a, uint32_t b)
{
	return a == b || (dialect->fold && fold(a) == fold(b));
}

/* Returns true if the set contains c. *pattern is behind the '[' before and behind the ']'
 * afterwards. */
static bool set_has(const uint8_t **pattern, uint32_t c)
{
	uint32_t before = 0, next = next_character(pattern);
	bool inverted = next == '^', seen = false;

	if (inverted)
		next = next_character(pattern);
	if (next == ']') { /* as the first character it belongs to the set */
		seen = c == ']';
		next = next_character(pattern);
	}
	while (next && next != ']') {
		if (next == '-' && **pattern != ']' && **pattern != 0 && before > 0) {
			next = next_character(pattern);
			seen |= c >= before && c <= next;
			before = 0;
		} else {
			seen |= c == next;
			before = next;
		}
		next = next_character(pattern);
	}
	return next && seen != inverted;
}

/* A star that has been passed. What follows it in the pattern begins with `head`, and is searched
 * for from `text` on. */
struct star {
	const uint8_t *pattern; /* behind head or, if head opens a set, at it */
	struct rest text;
	uint32_t head;
};

/* Passes a star, behind which *pattern is. Returns false if there is no match; with head 0 the star
 * takes all the rest. */
static bool pass_star(const struct dialect *dialect, struct star *star, const uint8_t *pattern,
		      struct rest text)
{
	uint32_t c;

	star->pattern = pattern;
	while ((c = next_character(&pattern)) && (c == dialect->many || c == dialect->one)) {
		if (c == dialect->one && next_of_text(&text) == 0)
			return false;
		star->pattern = pattern;
	}
	if (c && c == dialect->escape) {
		c = next_character(&pattern);
		if (!c)
			return false;
	}
	star->head = c;
	star->text = text;
	if (c != dialect->set)
		star->pattern = pattern;
	return true;
}

static bool is_letter(uint32_t c)
{
	return fold(c) >= 'a' && fold(c) <= 'z';
}

/* Goes to the next such byte, an ASCII character, which is part of no other character; so
 * characters without case need not be compared one by one. A NUL before it ends the text. */
static void skip_to(struct rest *text, uint8_t byte)
{
	const uint8_t *found = memchr(text->at, byte, (size_t)(text->end - text->at));
	const uint8_t *end = found ? found : text->end;

	if (!memchr(text->at, 0, (size_t)(end - text->at)))
		text->at = end;
}

/* Goes to the next place at which what follows the star may begin. Returns false if there is none.
 */
static bool try_star(const struct dialect *dialect, struct star *star, const uint8_t **pattern,
		     struct rest *text)
{
	uint32_t c;

	*pattern = star->pattern;
	if (star->head == dialect->set) { /* any character may belong to the set */
		*text = star->text;
		return next_of_text(&star->text) != 0;
	}
	if (star->head < 0x80 && (!dialect->fold || !is_letter(star->head)))
		skip_to(&star->text, (uint8_t)star->head);
	do {
		c = next_of_text(&star->text);
	} while (c && !same(dialect, c, star->head));
	*text = star->text;
	return c != 0;
}

/* Takes the text's next character, and returns true if it matches c, which is no star and was taken
 * from the pattern. */
static bool fits_one(const struct dialect *dialect, uint32_t c, const uint8_t **pattern,
		     struct rest *text)
{
	bool is_escaped = c == dialect->escape;
	uint32_t t = next_of_text(text);

	if (is_escaped)
		c = next_character(pattern);
	else if (c == dialect->set)
		return t && set_has(pattern, t);
	return c && t && (same(dialect, c, t) || (c == dialect->one && !is_escaped));
}

/* Returns 1 if the text matches, 0 if not, and -EINTR if `look` says so. look may be NULL. */
static int match(const struct dialect *dialect, const uint8_t *pattern, struct rest text,
		 const struct pfs_pattern_look *look)
{
	struct star star = {0};

	for (uint32_t steps = 1;; steps++) {
		uint32_t c = next_character(&pattern);
		bool fits = false;

		if (look && steps % LOOK_STEPS == 0 && look->fn(look->arg))
			return -EINTR;
		if (c && c == dialect->many) {
			if (!pass_star(dialect, &star, pattern, text))
				return 0;
			if (!star.head)
				return 1;
		} else if (c) {
			fits = fits_one(dialect, c, &pattern, &text);
		} else if (!peek(&text)) {
			return 1;
		}
		if (!fits && (!star.head || !try_star(dialect, &star, &pattern, &text)))
			return 0;
	}
}

static int match_kind(enum pfs_pattern_kind kind, const char *pattern, uint32_t escape,
		      struct rest rest, const struct pfs_pattern_look *look)
{
	struct dialect dialect = kind == PFS_PATTERN_GLOB ? glob : like;

	/* a star that is the escape character is no star */
	if (kind == PFS_PATTERN_LIKE && escape) {
		dialect.escape = escape;
		dialect.many = dialect.many == escape ? 0 : dialect.many;
		dialect.one = dialect.one == escape ? 0 : dialect.one;
	}
	return match(&dialect, (const uint8_t *)pattern, rest, look);
}

static struct rest rest_of(const void *text, size_t len)
{
	return (struct rest){.at = text, .end = (const uint8_t *)text + len};
}

bool pfs_pattern_matches(enum pfs_pattern_kind kind, const char *pattern, uint32_t escape,
			 const void *text, size_t len)
{
	return match_kind(kind, pattern, escape, rest_of(text, len), NULL);
}

int pfs_pattern_matches_until(bool *matches, const struct pfs_pattern_look *look,
			      enum pfs_pattern_kind kind, const char *pattern, uint32_t escape,
			      const void *text, size_t len)
{
	int got = match_kind(kind, pattern, escape, rest_of(text, len), look);

	*matches = got == 1;
	return got < 0 ? got : 0;
}

bool pfs_pattern_is_character(uint32_t *c, const char *text)
{
	const uint8_t *at = (const uint8_t *)text;

	*c = next_character(&at);
	return *c && !*at;
}
