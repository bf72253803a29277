/* SPDX-License-Identifier: MIT */
/* Says in SQL what an expression of find(1) looks for.
 *
 * Each part has two conditions, which may be true of too many nodes, but never of too few: `holds`
 * is true if the part may be true, and `acts` if deciding the part may do something. A node matters
 * only if the latter is true. */
#include "tools/gnu/find_expr.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* A condition. If it is exact it can be negated. */
struct condition {
	char *text; /* NULL: there is no memory */
	bool exact;
};

static struct condition say(bool exact, const char *format, ...) PFS_PRINTF(2, 3);

static struct condition say(bool exact, const char *format, ...)
{
	struct condition out = {.exact = exact};
	va_list list;

	va_start(list, format);
	if (vasprintf(&out.text, format, list) < 0)
		out.text = NULL;
	va_end(list);
	return out;
}

static bool is(const struct condition *c, const char *text)
{
	return c->text && strcmp(c->text, text) == 0;
}

/* Joins two conditions, which it frees: `neutral` leaves the other as it is, `decisive` is all. */
static struct condition combine(struct condition a, struct condition b, const char *operator,
				const char * neutral, const char *decisive)
{
	struct condition out = {.exact = a.exact && b.exact};

	if (!a.text || !b.text)
		;
	else if (is(&a, neutral) || is(&b, decisive))
		out.text = PFS_TAKE(b.text);
	else if (is(&b, neutral) || is(&a, decisive))
		out.text = PFS_TAKE(a.text);
	else
		out = say(out.exact, "(%s %s %s)", a.text, operator, b.text);
	free(a.text);
	free(b.text);
	return out;
}

static struct condition both(struct condition a, struct condition b)
{
	return combine(a, b, "AND", "1", "0");
}

static struct condition either(struct condition a, struct condition b)
{
	return combine(a, b, "OR", "0", "1");
}

/* ---- tests ---- */

static const char *column(unsigned field)
{
	switch (field) {
	case PFS_FIND_INO:
		return "ino";
	case PFS_FIND_NLINK:
		return "links";
	case PFS_FIND_UID:
		return "uid";
	case PFS_FIND_GID:
		return "gid";
	case PFS_FIND_SIZE:
		return "size";
	case PFS_FIND_MTIME:
		return "mtime";
	case PFS_FIND_ATIME:
		return "atime";
	default:
		return "ctime";
	}
}

static struct condition number_condition(const struct pfs_find_node *node)
{
	const char *name = column(node->field);
	int64_t unit = node->number.unit, high;

	if (__builtin_mul_overflow(node->number.n, unit, &high))
		return say(false, "1");
	if (node->number.sign > 0)
		return say(true, "%s > %" PRId64, name, high);
	if (node->number.sign < 0)
		return say(true, "%s <= %" PRId64, name, high - unit);
	if (unit == 1)
		return say(true, "%s = %" PRId64, name, high);
	return say(true, "%s BETWEEN %" PRId64 " AND %" PRId64, name, high - unit + 1, high);
}

/* Returns the last byte of the class that begins at a `[`. Returns NULL if there is none, or if its
 * end is not clear, as in classes with names, escapes or characters of several bytes. It never
 * returns too early a byte: what follows is taken for literal. */
static const char *end_of_class(const char *c)
{
	c += 1 + strspn(c + 1, "!^");
	for (c += *c == ']'; *c && *c != ']'; c++)
		if (*c == '[' || *c == '\\' || (unsigned char)*c > 127)
			return NULL;
	return *c ? c : NULL;
}

/* Makes a pattern of GLOB that matches whatever this pattern of fnmatch(3) matches: what is not
 * literal becomes `*`, and so does what is not ASCII if the pattern is not all text, as GLOB
 * compares characters. *exact: both match the same. */
static char *glob_of(const char *pattern, bool *exact)
{
	char *out = malloc(2 * strlen(pattern) + 4), *to = out;
	const bool is_text = mbstowcs(NULL, pattern, 0) != (size_t)-1 && MB_CUR_MAX > 1;

	*exact = true;
	if (!out)
		return NULL;
	*to++ = '\'';
	for (const char *c = pattern; *c; c++) {
		if (*c == '*') {
			*to++ = '*';
		} else if (strchr("?[]\\", *c) || (!is_text && (unsigned char)*c > 127)) {
			const char *end = *c == '[' ? end_of_class(c) : c;

			*exact = false;
			*to++ = '*';
			if (!end || strchr("]\\", *c)) /* what follows is decided later */
				break;
			c = end;
		} else {
			if (*c == '\'')
				*to++ = '\'';
			*to++ = *c;
		}
	}
	*to++ = '\'';
	*to = 0;
	return out;
}

/* Does the same for LIKE, which knows only the letters of ASCII. Some of these are the small
 * letters of capitals that are not ASCII: K of the kelvin sign, i of a dotted I. */
static char *like_of(const char *pattern)
{
	char *out = malloc(2 * strlen(pattern) + 4), *to = out;

	if (!out)
		return NULL;
	*to++ = '\'';
	for (const char *c = pattern; *c; c++) {
		if (strchr("[\\", *c)) {
			const char *end = *c == '[' ? end_of_class(c) : NULL;

			*to++ = '%';
			if (!end)
				break;
			c = end;
			continue;
		}
		if (*c == '\'')
			*to++ = '\'';
		*to++ = (char)(strchr("*?%kKiI", *c) || (unsigned char)*c > 127 ? '%' : *c);
	}
	*to++ = '\'';
	*to = 0;
	return out;
}

static struct condition pattern_condition(const struct pfs_find_node *node, const char *name)
{
	char *pattern PFS_FREE = NULL;
	bool exact = false;

	pattern = node->fold_case ? like_of(node->text) : glob_of(node->text, &exact);
	if (!pattern)
		return (struct condition){0};
	return say(exact, "%s %s %s", name, node->fold_case ? "LIKE" : "GLOB", pattern);
}

static struct condition type_condition(const char *letters)
{
	char list[64];
	size_t n = 0;

	for (; *letters && n + 5 < sizeof(list); letters++)
		if (*letters != ',')
			n += (size_t)snprintf(list + n, sizeof(list) - n, "%s'%c'", n ? "," : "",
					      *letters);
	return *letters ? say(false, "1") : say(true, "type IN (%s)", list);
}

#define TIME_TEXT 48

/* Nanoseconds beside a time; few of them would be taken for seconds. */
static const char *time_text(char text[TIME_TEXT], int64_t time)
{
	const int64_t few = INT64_C(100000000000000);

	(void)snprintf(text, TIME_TEXT, time > -few && time < few ? "time_of(%lld, 0)" : "%lld",
		       (long long)time);
	return text;
}

static struct condition time_condition(const struct pfs_find_node *node)
{
	const char *name = column(node->field);
	char from[TIME_TEXT], to[TIME_TEXT];
	int64_t unit = node->number.unit, ago = node->time - node->number.n * unit;
	/* Ages in days are counted in whole days, those in minutes are not. */
	int64_t whole = unit > 60 * INT64_C(1000000000) ? unit : 0;

	if (node->number.sign > 0)
		return say(true, "%s < %s", name, time_text(to, ago - whole));
	if (node->number.sign < 0)
		return say(true, "%s > %s", name, time_text(from, ago));
	return say(true, "(%s >= %s AND %s < %s)", name, time_text(from, ago - whole), name,
		   time_text(to, ago - whole + unit));
}

static struct condition perm_condition(const struct pfs_find_node *node)
{
	if (!node->perm_kind)
		return say(true, "mode & 4095 = %u", node->mode);
	if (node->perm_kind == '-' || !node->mode)
		return say(true, "mode & %u = %u", node->mode, node->mode);
	return say(true, "mode & %u <> 0", node->mode);
}

static struct condition holds(const struct pfs_find_node *node);

static struct condition not_holds(const struct pfs_find_node *node)
{
	struct condition part = holds(node), out;

	if (!part.text)
		return part;
	out = part.exact ? say(true, "NOT (%s)", part.text) : say(false, "1");
	free(part.text);
	return out;
}

static struct condition holds(const struct pfs_find_node *node)
{
	char time[TIME_TEXT];

	switch (node->kind) {
	case PFS_FIND_AND:
		return both(holds(node->left), holds(node->right));
	case PFS_FIND_OR:
		return either(holds(node->left), holds(node->right));
	case PFS_FIND_COMMA:
		return holds(node->right);
	case PFS_FIND_NOT:
		return not_holds(node->left);
	case PFS_FIND_FALSE:
		return say(true, "0");
	case PFS_FIND_TRUE:
	case PFS_FIND_PRUNE:
		return say(true, "1");
	case PFS_FIND_NAME:
		return pattern_condition(node, "name");
	case PFS_FIND_TYPE:
		return type_condition(node->text);
	case PFS_FIND_NUMBER:
		return number_condition(node);
	case PFS_FIND_TIME:
		return time_condition(node);
	case PFS_FIND_NEWER:
		return say(true, "%s > %s", column(node->field), time_text(time, node->time));
	case PFS_FIND_PERM:
		return perm_condition(node);
	case PFS_FIND_SAME:
		return node->link ? say(true, "(ino = %llu OR link IS %llu)",
					(unsigned long long)node->ino,
					(unsigned long long)node->link)
				  : say(true, "ino = %llu", (unsigned long long)node->ino);
	case PFS_FIND_IS_EMPTY:
		return say(true, "(type = 'f' AND size = 0 OR type = 'd' AND subtree_count = 1)");
	default: /* paths are compared as they are printed; all the rest is decided later */
		return say(false, "1");
	}
}

static struct condition acts(const struct pfs_find_node *node)
{
	switch (node->kind) {
	case PFS_FIND_AND:
		return either(acts(node->left), both(holds(node->left), acts(node->right)));
	case PFS_FIND_OR: /* the right side is reached if the left one does not hold */
		return either(acts(node->left), both(not_holds(node->left), acts(node->right)));
	case PFS_FIND_COMMA:
		return either(acts(node->left), acts(node->right));
	case PFS_FIND_NOT:
		return acts(node->left);
	default:
		return say(true, node->kind >= PFS_FIND_PRINT ? "1" : "0");
	}
}

char *pfs_find_condition(const struct pfs_find *find)
{
	return acts(find->root).text;
}
