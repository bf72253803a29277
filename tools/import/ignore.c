/* SPDX-License-Identifier: MIT */
#include "tools/import/ignore.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"

#define BYTE_ORDER_MARK "\xEF\xBB\xBF" /* which a file may begin with, as for git */
#define SIGNATURE	"Signature: 8a477f597d28d172789f06886806bc55"

struct pfs_ignore_rule {
	char *pattern;
	bool negated;
	bool directory; /* of directories alone */
	bool anchored;	/* a path from where the rules are, else a name */
};

/* ---- patterns ---- */

static const struct {
	const char *name;
	int (*has)(int c);
} classes[] = {
	{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
	{"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
	{"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

/* Returns whether the class of that name has the byte; -1: there is no such class. */
static int match_class(const char *name, size_t len, char c)
{
	for (size_t i = 0; i < PFS_COUNT(classes); i++)
		if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0)
			return isascii((unsigned char)c) && classes[i].has((unsigned char)c);
	return -1;
}

/* Returns the end of the class "[:...:]" that the set goes on with, its last bracket; NULL: it does
 * not. */
static const char *end_of_class(const char *set)
{
	const char *end = set[0] == '[' && set[1] == ':' ? strchr(set + 2, ']') : NULL;

	return end && end > set + 2 && end[-1] == ':' ? end : NULL;
}

/* Returns the byte at the pattern, and moves to it if it is escaped; 0: the pattern ends. */
static char escaped(const char **pattern)
{
	return **pattern == '\\' ? *++*pattern : **pattern;
}

/* Matches one of [...], whose bytes begin behind the bracket; *end: behind its end. A set that has
 * none, or has a class that there is not, matches nothing. */
static bool match_set(const char *set, const char **end, char c)
{
	bool negated = *set == '!' || *set == '^', found = false, first = true;

	for (set += negated; first || *set != ']'; set++) {
		const char *class_end = end_of_class(set);
		unsigned char low, high;

		first = false;
		if (class_end) {
			int has = match_class(set + 2, (size_t)(class_end - set) - 3, c);

			if (has < 0)
				return false;
			found |= has;
			set = class_end;
			continue;
		}
		low = high = (unsigned char)escaped(&set);
		if (low && set[1] == '-' && set[2] && set[2] != ']') {
			set += 2;
			high = (unsigned char)escaped(&set);
		}
		if (!low || !high)
			return false;
		found |= (unsigned char)c == low || /* also where the range is empty */
			 ((unsigned char)c >= low && (unsigned char)c <= high);
	}
	*end = set + 1;
	return c != '/' && found != negated;
}

/* One step of the pattern that is no star: false if the byte does not fit. */
static bool match_one(const char **pattern, char c)
{
	const char *at = *pattern, *end;

	if (*at == '[') {
		if (!match_set(at + 1, &end, c))
			return false;
		*pattern = end;
		return true;
	}
	if (*at == '\\' && at[1])
		at++;
	else if (*at == '?' && c != '/') {
		*pattern = at + 1;
		return true;
	}
	*pattern = at + 1;
	return *at == c && c;
}

/* Double stars, or more, count where they stand for whole folders. Returns how many they are; 0:
 * they do not. */
static size_t stand_for_folders(const char *pattern, const char *begin)
{
	size_t n = strspn(pattern, "*");

	return n > 1 && (!pattern[n] || pattern[n] == '/') &&
			       (pattern == begin || pattern[-1] == '/')
		       ? n
		       : 0;
}

/* What does not fit is tried again with one byte more for the last star, then with one folder more
 * for the last double star: those before them need not be tried, as they took the least that
 * fits. */
static bool match(const char *pattern, const char *text)
{
	const char *begin = pattern, *star = NULL, *from = NULL, *deep = NULL, *folder = NULL;

	for (;;) {
		size_t stars = stand_for_folders(pattern, begin);

		if (stars) {
			if (!pattern[stars])
				return *text;
			pattern += stars + 1;
			deep = pattern;
			folder = text;
			star = NULL;
		} else if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (!*pattern && !*text) {
			return true;
		} else if (*pattern && *text && match_one(&pattern, *text)) {
			text++;
		} else if (star && *from && *from != '/') {
			pattern = star;
			text = ++from;
		} else {
			if (!deep)
				return false;
			folder += strcspn(folder, "/");
			if (!*folder++)
				return false;
			text = folder;
			pattern = deep;
			star = NULL;
		}
	}
}

/* ---- rules ---- */

int pfs_ignore_add(struct pfs_ignore *ignore, const char *line, size_t len)
{
	struct pfs_ignore_rule rule = {.pattern = NULL};

	if (len && line[len - 1] == '\r')
		len--;
	while (len && line[len - 1] == ' ' && (len < 2 || line[len - 2] != '\\'))
		len--;
	if (!len || *line == '#')
		return 0;
	rule.negated = *line == '!';
	line += rule.negated;
	len -= rule.negated;
	rule.directory = len && line[len - 1] == '/';
	len -= rule.directory;
	rule.anchored = memchr(line, '/', len);
	if (len && *line == '/') {
		line++;
		len--;
	}
	if (!len)
		return 0;
	PFS_TRY(pfs_grow(&ignore->rules, &ignore->capacity, ignore->n + 1, sizeof(rule)));
	rule.pattern = strndup(line, len);
	if (!rule.pattern)
		return -ENOMEM;
	ignore->rules[ignore->n++] = rule;
	return 0;
}

int pfs_ignore_add_lines(struct pfs_ignore *ignore, const char *text, size_t size)
{
	while (size) {
		const char *end = memchr(text, '\n', size);
		size_t len = end ? (size_t)(end - text) : size;

		PFS_TRY(pfs_ignore_add(ignore, text, len));
		text += len + (end != NULL);
		size -= len + (end != NULL);
	}
	return 0;
}

size_t pfs_ignore_mark_len(const char *text, size_t size)
{
	const size_t mark = sizeof(BYTE_ORDER_MARK) - 1;

	return size >= mark && memcmp(text, BYTE_ORDER_MARK, mark) == 0 ? mark : 0;
}

/* Adds all lines of what a file has. */
static int add_content(struct pfs_ignore *ignore, const char *text, size_t size)
{
	size_t from = pfs_ignore_mark_len(text, size);

	return pfs_ignore_add_lines(ignore, text + from, size - from);
}

int pfs_ignore_read(struct pfs_ignore *ignore, int dir, const char *name, bool strict)
{
	int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | (strict ? O_NOFOLLOW | O_NONBLOCK : 0);
	int fd PFS_CLOSE = openat(dir, name, flags);
	char *text PFS_FREE = NULL;
	size_t size = 0, capacity = 0;
	struct stat attr;

	if (fd < 0 || fstat(fd, &attr) < 0)
		return -errno;
	if (strict && !S_ISREG(attr.st_mode))
		return -ELOOP;
	for (;;) {
		ssize_t got;

		PFS_TRY(pfs_grow(&text, &capacity, size + 4096, 1));
		got = read(fd, text + size, capacity - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return add_content(ignore, text, size);
		size += (size_t)got;
		if (size > PFS_IGNORE_FILE_MAX)
			return -EFBIG;
	}
}

/* The path of an entry from where the rules are, allocated; NULL: no memory. */
static char *path_below(const struct pfs_ignore *ignore, const char *path, size_t len,
			const char *name)
{
	size_t from = ignore->base_len + (ignore->base_len > 0);
	char *below;

	if (len <= from)
		return strdup(name);
	return asprintf(&below, "%.*s/%s", (int)(len - from), path + from, name) < 0 ? NULL : below;
}

/* 1: left out; 0: not; -1: the rules do not say. */
static int ask(const struct pfs_ignore *ignore, const char *below, const char *name, bool directory)
{
	for (size_t i = ignore->n; i-- > 0;) {
		const struct pfs_ignore_rule *rule = &ignore->rules[i];

		if ((directory || !rule->directory) &&
		    match(rule->pattern, rule->anchored ? below : name))
			return !rule->negated;
	}
	return -1;
}

bool pfs_ignores(const struct pfs_ignore *ignore, const char *path, size_t len, const char *name,
		 bool directory)
{
	for (; ignore; ignore = ignore->above) {
		char *below PFS_FREE = ignore->n ? path_below(ignore, path, len, name) : NULL;
		int answer = below ? ask(ignore, below, name, directory) : -1;

		if (answer >= 0)
			return answer;
	}
	return false;
}

/* ---- as text ---- */

#define CACHES	  " caches"
#define GITIGNORE " gitignore"

int pfs_leaving_out_write(const struct pfs_leaving_out *leaving_out, char **text, size_t *size)
{
	FILE *out;
	bool failed;

	*text = NULL;
	out = open_memstream(text, size);
	if (!out)
		return -ENOMEM;
	(void)fprintf(out, "%s%s\n", leaving_out->caches ? CACHES : "",
		      leaving_out->gitignore ? GITIGNORE : "");
	for (size_t i = 0; i < leaving_out->rules.n; i++) {
		const struct pfs_ignore_rule *rule = &leaving_out->rules.rules[i];

		(void)fprintf(out, "%s%s%s%s\n", rule->negated ? "!" : "",
			      rule->anchored ? "/" : "", rule->pattern, rule->directory ? "/" : "");
	}
	failed = ferror(out);
	failed |= fclose(out) != 0;
	if (!failed)
		return 0;
	free(*text);
	*text = NULL;
	return -ENOMEM;
}

int pfs_leaving_out_read(struct pfs_leaving_out *leaving_out, const char *text, size_t size)
{
	const char *end = memchr(text, '\n', size);
	size_t len = end ? (size_t)(end - text) : size;

	leaving_out->caches |= memmem(text, len, CACHES, sizeof(CACHES) - 1) != NULL;
	leaving_out->gitignore |= memmem(text, len, GITIGNORE, sizeof(GITIGNORE) - 1) != NULL;
	leaving_out->given = true;
	return end ? pfs_ignore_add_lines(&leaving_out->rules, end + 1, size - len - 1) : 0;
}

void pfs_ignore_finish(struct pfs_ignore *ignore)
{
	while (ignore->n)
		free(ignore->rules[--ignore->n].pattern);
	free(ignore->rules);
	ignore->rules = NULL;
	ignore->capacity = 0;
}

/* ---- caches ---- */

int pfs_find_cache_tag(bool *is, int dir)
{
	int fd PFS_CLOSE = openat(dir, PFS_CACHE_TAG,
				  O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[sizeof(SIGNATURE) - 1];
	struct stat attr;

	*is = fd >= 0 && !fstat(fd, &attr) && S_ISREG(attr.st_mode) &&
	      read(fd, text, sizeof(text)) == sizeof(text) &&
	      memcmp(text, SIGNATURE, sizeof(text)) == 0;
	return fd < 0 ? -errno : 0;
}
