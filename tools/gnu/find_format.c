/* SPDX-License-Identifier: MIT */
#include "tools/gnu/find_format.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/gnu/long_fields.h"

#define NS_PER_S  INT64_C(1000000000)
#define FIELD_MAX 4096 /* the largest width */

/* Bytes as they are, then one directive. */
struct segment {
	char *bytes;
	size_t n;
	char what;    /* GNU's letter; 0: no directive */
	char of_time; /* the part of a time: strftime's letter, @ or + */
	bool zeros, alternate, has_precision, ends; /* flags; \c comes after the bytes */
	int width, precision; /* as in printf; a negative width aligns to the left */
};

struct pfs_find_format {
	struct segment *segments;
	size_t n, capacity;
};

static const struct {
	char what;
	unsigned needs;
} directives[] = {
	{'p', 0}, {'P', 0}, {'f', 0}, {'h', 0}, {'H', 0}, {'d', 0}, {'y', 0}, {'F', 0},
	{'s', PFS_FIND_SIZE}, {'k', PFS_FIND_BLOCKS}, {'b', PFS_FIND_BLOCKS},
	{'S', PFS_FIND_SIZE | PFS_FIND_BLOCKS}, {'m', PFS_FIND_MODE}, {'M', PFS_FIND_MODE},
	{'n', PFS_FIND_NLINK}, {'i', PFS_FIND_INO}, {'l', PFS_FIND_TARGET}, {'u', PFS_FIND_UID},
	{'U', PFS_FIND_UID}, {'g', PFS_FIND_GID}, {'G', PFS_FIND_GID}, {'t', PFS_FIND_MTIME},
	{'a', PFS_FIND_ATIME}, {'c', PFS_FIND_CTIME}, {'T', PFS_FIND_MTIME},
	{'A', PFS_FIND_ATIME}, {'C', PFS_FIND_CTIME},
};

/* ---- parsing ---- */

struct parser {
	struct pfs_find_format *format;
	struct segment now;
	size_t capacity; /* capacity of now.bytes */
	unsigned needs;
	const char *at;
	const char *why; /* what is wrong; NULL: nothing */
};

static int put(struct parser *p, char c)
{
	PFS_TRY(pfs_grow(&p->now.bytes, &p->capacity, p->now.n + 1, 1));
	p->now.bytes[p->now.n++] = c;
	return 0;
}

static int end_segment(struct parser *p)
{
	struct pfs_find_format *format = p->format;

	PFS_TRY(pfs_grow(&format->segments, &format->capacity, format->n + 1, sizeof(p->now)));
	format->segments[format->n++] = p->now;
	p->now = (struct segment){.n = 0};
	p->capacity = 0;
	return 0;
}

/* Parses what follows a backslash. */
static int parse_escape(struct parser *p)
{
	static const char from[] = "abfnrtv\\", to[] = "\a\b\f\n\r\t\v\\";
	const char *known = *p->at ? strchr(from, *p->at) : NULL;
	int value = 0;

	if (known) {
		p->at++;
		return put(p, to[known - from]);
	}
	if (*p->at == 'c') {
		p->at += strlen(p->at);
		p->now.ends = true;
		return 0;
	}
	if (*p->at < '0' || *p->at > '7')
		return put(p, '\\');
	for (int i = 0; i < 3 && *p->at >= '0' && *p->at <= '7'; i++)
		value = value * 8 + (*p->at++ - '0');
	return put(p, (char)value);
}

static bool is_known(struct parser *p, char what)
{
	for (size_t i = 0; what && i < PFS_COUNT(directives); i++) {
		if (directives[i].what == what) {
			p->needs |= directives[i].needs;
			return true;
		}
	}
	return false;
}

/* Parses flags, up to the letter. */
static bool parse_flags(struct parser *p)
{
	struct segment *s = &p->now;
	bool left = false;
	uint64_t n = 0;

	for (; *p->at && strchr("-+ #0", *p->at); p->at++) {
		left |= *p->at == '-';
		s->zeros |= *p->at == '0';
		s->alternate |= *p->at == '#';
	}
	for (; isdigit((unsigned char)*p->at) && n <= FIELD_MAX; p->at++)
		n = n * 10 + (uint64_t)(*p->at - '0');
	s->width = left ? -(int)n : (int)n;
	s->has_precision = *p->at == '.';
	if (s->has_precision)
		for (p->at++; isdigit((unsigned char)*p->at) && s->precision <= FIELD_MAX; p->at++)
			s->precision = s->precision * 10 + (*p->at - '0');
	return n <= FIELD_MAX && s->precision <= FIELD_MAX;
}

/* Parses what follows a percent sign. */
static int parse_directive(struct parser *p)
{
	struct segment *s = &p->now;

	if (*p->at == '%')
		return put(p, *p->at++);
	if (!parse_flags(p) || !is_known(p, *p->at)) {
		p->why = "no such directive; %%, %p, %f, %s and the like are known";
		return -EINVAL;
	}
	s->what = *p->at++;
	if (strchr("ACT", s->what)) {
		s->of_time = *p->at;
		if (!s->of_time || !strchr("@+aAbBcdDFgGhHIjklmMnpPrRsSTuUVwWxXyYZ", s->of_time)) {
			p->why = "a time wants to know what of it: %T@, %T+, %TY";
			return -EINVAL;
		}
		p->at++;
	}
	return end_segment(p);
}

int pfs_find_format_parse(struct pfs_find_format **out, unsigned *needs, const char *text,
			  char *why, size_t why_size)
{
	struct parser p = {.format = calloc(1, sizeof(*p.format)), .at = text};
	int error = p.format ? 0 : -ENOMEM;

	while (!error && *p.at) {
		char c = *p.at++;

		error = c == '\\' ? parse_escape(&p) : c == '%' ? parse_directive(&p) : put(&p, c);
	}
	if (!error)
		error = end_segment(&p);
	free(p.now.bytes);
	*out = p.format;
	*needs = p.needs;
	if (error) {
		pfs_find_format_finish(*out);
		*out = NULL;
		(void)snprintf(why, why_size, "'%s': %s", text, p.why ? p.why : "no memory");
	}
	return error;
}

void pfs_find_format_finish(struct pfs_find_format *format)
{
	for (size_t i = 0; format && i < format->n; i++)
		free(format->segments[i].bytes);
	free(format ? format->segments : NULL);
	free(format);
}

/* ---- printing ---- */

static void print_text(struct pfs_stdout *out, const struct segment *s, const char *text)
{
	if (s->width || s->has_precision)
		pfs_stdout_printf(out, "%*.*s", s->width, s->has_precision ? s->precision : -1,
				  text);
	else
		pfs_stdout_text(out, text);
}

static void print_number(struct pfs_stdout *out, const struct segment *s, uint64_t number)
{
	char text[PFS_DIGITS];
	size_t len;

	print_text(out, s, pfs_decimal(text, &len, number));
}

/* find(1) pads depth and mode as numbers, and everything else as text. */
static void print_padded(struct pfs_stdout *out, const struct segment *s, const char *digits)
{
	for (size_t n = strlen(digits); s->zeros && s->width > 0 && n < (size_t)s->width; n++)
		pfs_stdout_char(out, '0');
	pfs_stdout_printf(out, "%*s", s->zeros && s->width > 0 ? 0 : s->width, digits);
}

static void print_octal(struct pfs_stdout *out, const struct segment *s, mode_t mode)
{
	char text[PFS_DIGITS];

	(void)snprintf(text, sizeof(text), s->alternate ? "%#o" : "%o", mode & 07777);
	print_padded(out, s, text);
}

static void print_depth(struct pfs_stdout *out, const struct segment *s, unsigned depth)
{
	char text[PFS_DIGITS];
	size_t len;

	print_padded(out, s, pfs_decimal(text, &len, depth));
}

/* Blocks for bytes; 1 for nothing at all, as find(1) has it. */
static void print_sparseness(struct pfs_stdout *out, const struct segment *s,
			     const struct pfs_found *found)
{
	double share = found->size ? (double)found->blocks * 512 / (double)found->size : 1;

	pfs_stdout_printf(out, "%*.*g", s->width, s->has_precision ? s->precision : -1, share);
}

/* Prints a name, which any user may have chosen, or n bytes of it. */
static void print_name(struct pfs_stdout *out, const struct segment *s, const char *name, size_t n,
		       bool terminal)
{
	char *text PFS_FREE = s->width || s->has_precision ? malloc(n + 1) : NULL;

	if (!text) {
		pfs_stdout_name(out, name, n, terminal);
		return;
	}
	text[pfs_printable(text, name, n, terminal)] = 0;
	print_text(out, s, text);
}

/* Prints the last component, or what is before it. */
static void print_component(struct pfs_stdout *out, const struct segment *s,
			    const struct pfs_found *found, bool terminal)
{
	size_t above = (size_t)(found->name - found->path), n = found->path_len - above;

	if (s->what == 'f')
		print_name(out, s, found->name, n, terminal);
	else if (above)
		print_name(out, s, found->path, above - 1, terminal);
	else if (memchr(found->path, '/', n)) /* slashes at the end of a starting point */
		print_name(out, s, found->path, strcspn(found->path, "/"), terminal);
	else
		print_name(out, s, ".", 1, terminal);
}

/* Prints the path without the starting point and the slash behind it. */
static void print_below(struct pfs_stdout *out, const struct segment *s,
			const struct pfs_found *found, const char *start, bool terminal)
{
	size_t n = !found->depth ? found->path_len : strcmp(start, "/") == 0 ? 0 : strlen(start);

	n += found->path[n] == '/';
	print_name(out, s, found->path + n, found->path_len - n, terminal);
}

/* Formats a time by one of strftime's letters. */
static void print_calendar(char *out, size_t size, const struct tm *local, char letter)
{
	const char format[] = {'%', letter, 0};

	*out = 0;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	(void)strftime(out, size, format, local);
#pragma GCC diagnostic pop
}

/* As in find(1), the fraction of a second follows the seconds, with a zero behind it. */
static void print_time(struct pfs_stdout *out, const struct segment *s, int64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	long rest = (long)(ns - (int64_t)seconds * NS_PER_S);
	char text[256] = "", all[sizeof(text) + 16];
	size_t split;
	struct tm local;

	if (s->of_time == '@')
		(void)snprintf(text, sizeof(text), "%" PRId64, (int64_t)seconds);
	else if (localtime_r(&seconds, &local) && s->of_time == '+')
		(void)strftime(text, sizeof(text), "%F+%T", &local);
	else if (localtime_r(&seconds, &local))
		print_calendar(text, sizeof(text), &local, s->of_time);
	split = strlen(text);
	if (!strchr("@+STX", s->of_time)) {
		print_text(out, s, text);
		return;
	}
	while (split && !isdigit((unsigned char)text[split - 1]))
		split--;
	(void)snprintf(all, sizeof(all), "%.*s.%09ld0%s", (int)split, text, rest, text + split);
	print_text(out, s, all);
}

/* Prints "Sat Nov 21 13:04:12.1234567890 2026". */
static void print_ctime(struct pfs_stdout *out, const struct segment *s, int64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S - (ns % NS_PER_S < 0));
	long rest = (long)(ns - (int64_t)seconds * NS_PER_S);
	char day[64] = "", year[16] = "", all[128];
	struct tm local;

	if (localtime_r(&seconds, &local)) {
		(void)strftime(day, sizeof(day), "%a %b %e %H:%M:%S", &local);
		(void)strftime(year, sizeof(year), "%Y", &local);
	}
	(void)snprintf(all, sizeof(all), "%s.%09ld0 %s", day, rest, year);
	print_text(out, s, all);
}

static void print_owner(struct pfs_stdout *out, const struct segment *s, const char *name,
			uint32_t id)
{
	if (name && islower((unsigned char)s->what))
		print_text(out, s, name);
	else
		print_number(out, s, id);
}

static void print_mode(struct pfs_stdout *out, const struct segment *s,
		       const struct pfs_found *found)
{
	char mode[PFS_MODE_SIZE];

	pfs_print_mode(mode, found->type, found->mode);
	print_text(out, s, mode);
}

static void print_attribute(struct pfs_stdout *out, const struct segment *s,
			    const struct pfs_found *found)
{
	size_t len;

	switch (s->what) {
	case 's':
		print_number(out, s, (uint64_t)found->size);
		break;
	case 'b':
		print_number(out, s, (uint64_t)found->blocks);
		break;
	case 'k':
		print_number(out, s, (uint64_t)(found->blocks + 1) / 2);
		break;
	case 'S':
		print_sparseness(out, s, found);
		break;
	case 'n':
		print_number(out, s, found->nlink);
		break;
	case 'i':
		print_number(out, s, found->ino);
		break;
	case 'm':
		print_octal(out, s, found->mode);
		break;
	case 'M':
		print_mode(out, s, found);
		break;
	case 'u':
	case 'U':
		print_owner(out, s, pfs_user_name(found->uid, &len), found->uid);
		break;
	case 'g':
	case 'G':
		print_owner(out, s, pfs_group_name(found->gid, &len), found->gid);
		break;
	case 'd':
		print_depth(out, s, found->depth);
		break;
	case 'y':
		print_text(out, s, (char[]){found->type, 0});
		break;
	default:
		print_text(out, s, "fuse.primefs");
		break;
	}
}

static int64_t time_of(const struct pfs_found *found, char what)
{
	return strchr("aA", what) ? found->atime : strchr("cC", what) ? found->ctime : found->mtime;
}

static void print_directive(struct pfs_stdout *out, const struct segment *s,
			    const struct pfs_found *found, const char *start, bool terminal)
{
	switch (s->what) {
	case 'p':
		print_name(out, s, found->path, found->path_len, terminal);
		break;
	case 'P':
		print_below(out, s, found, start, terminal);
		break;
	case 'H':
		print_name(out, s, start, strlen(start), terminal);
		break;
	case 'l':
		print_name(out, s, found->target, strlen(found->target), terminal);
		break;
	case 'f':
	case 'h':
		print_component(out, s, found, terminal);
		break;
	case 'a':
	case 'c':
	case 't':
		print_ctime(out, s, time_of(found, s->what));
		break;
	case 'A':
	case 'C':
	case 'T':
		print_time(out, s, time_of(found, s->what));
		break;
	default:
		print_attribute(out, s, found);
		break;
	}
}

void pfs_find_format_put(struct pfs_stdout *out, const struct pfs_find_format *format,
			 const struct pfs_found *found, const char *start, bool terminal)
{
	for (size_t i = 0; i < format->n; i++) {
		const struct segment *s = &format->segments[i];

		if (s->n)
			pfs_stdout_put(out, s->bytes, s->n);
		if (s->what)
			print_directive(out, s, found, start, terminal);
		if (s->ends)
			pfs_stdout_flush(out);
	}
}
