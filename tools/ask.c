/* SPDX-License-Identifier: MIT */
#include "tools/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/answer.h"
#include "tools/cmd.h"

#define PATH_XATTR "user.primefs.path"
#define PIECE_SIZE ((size_t)256 << 10)
#define COLUMNS	   32 /* at most that are asked for */

/* ---- places ---- */

/* The path in its store of a mounted path, allocated; NULL: errno says why there is none. */
static char *path_in_store(const char *operand)
{
	ssize_t size = lgetxattr(operand, PATH_XATTR, NULL, 0);
	char *path = size > 0 ? malloc((size_t)size + 1) : NULL;

	if (path)
		size = lgetxattr(operand, PATH_XATTR, path, (size_t)size);
	if (size <= 0) {
		free(path);
		return NULL;
	}
	if (path)
		path[size] = 0;
	return path;
}

/* The directory itself, or the one that the name lies in. */
static char *folder_of(const char *operand)
{
	const char *slash = strrchr(operand, '/');
	struct stat attr;

	if (lstat(operand, &attr) == 0 && S_ISDIR(attr.st_mode))
		return strdup(operand);
	return slash ? strndup(operand, (size_t)(slash - operand) + 1) : strdup(".");
}

static int open_mounted(struct pfs_place *place, const char *operand)
{
	struct stat attr;

	place->shown = operand;
	if (lstat(operand, &attr) != 0)
		return pfs_cmd_fail(place->verb, "%s: %s", operand, strerror(errno));
	place->device = attr.st_dev;
	place->path = path_in_store(operand);
	if (!place->path && S_ISLNK(attr.st_mode)) { /* what is no file has no such attribute */
		char *real PFS_FREE = folder_of(operand);
		char *above PFS_FREE = real ? path_in_store(real) : NULL;
		const char *name = strrchr(operand, '/');

		if (above && asprintf(&place->path, "%s/%s", above[1] ? above : "",
				      name ? name + 1 : operand) < 0)
			place->path = NULL;
	}
	if (!place->path)
		return pfs_cmd_fail(place->verb,
				    "%s: lies in no mounted store; name a store, or mount it",
				    operand);
	place->folder = folder_of(operand);
	return place->folder ? PFS_EXIT_OK : pfs_cmd_fail(place->verb, "no memory");
}

static int open_in_store(struct pfs_place *place, struct pfs_answerer *store, const char *path)
{
	if (*path != '/')
		return pfs_cmd_usage(place->verb, "%s: a path in a store begins with /", path);
	place->shown = path[1] ? path : "";
	place->store = store;
	place->path = strdup(path);
	if (!place->path)
		return pfs_cmd_fail(place->verb, "no memory");
	for (char *end = strchr(place->path, 0); end > place->path + 1 && end[-1] == '/';)
		*--end = 0;
	return PFS_EXIT_OK;
}

static bool is_store(const char *operand)
{
	struct stat attr;

	return stat(operand, &attr) == 0 && S_ISREG(attr.st_mode) &&
	       getxattr(operand, PATH_XATTR, NULL, 0) < 0;
}

int pfs_places_open(struct pfs_place **places, size_t *n, const char *verb, char **operands,
		    size_t n_operands)
{
	struct pfs_answerer *store = NULL;
	static char here[] = ".", root[] = "/";
	static char *no_operands[] = {here}, *no_paths[] = {root};
	int status = PFS_EXIT_OK;

	*n = 0;
	*places = calloc(PFS_MAX(n_operands, 1), sizeof(**places));
	if (!*places)
		return pfs_cmd_fail(verb, "no memory");
	if (n_operands && is_store(operands[0])) {
		status = pfs_answerer_open(&store, verb, operands[0]);
		operands = n_operands > 1 ? operands + 1 : no_paths;
		n_operands = PFS_MAX(n_operands - 1, 1);
	} else if (!n_operands) {
		operands = no_operands;
		n_operands = 1;
	}
	while (*n < n_operands && !status) {
		struct pfs_place *place = &(*places)[*n];

		place->verb = verb;
		status = store ? open_in_store(place, store, operands[*n])
			       : open_mounted(place, operands[*n]);
		++*n;
	}
	return status;
}

void pfs_places_close(struct pfs_place *places, size_t n)
{
	if (n)
		pfs_answerer_close(places[0].store);
	for (size_t i = 0; i < n; i++) {
		free(places[i].folder);
		free(places[i].path);
	}
	free(places);
}

/* ---- rows: lines of tab-separated fields, of which the first has the names ---- */

struct reader {
	bool (*row)(void *arg, const struct pfs_row *row);
	void *arg;
	char *line; /* what a piece ended in the middle of */
	size_t len, capacity;
	bool past_names, stopped;
};

/* Undoes \t \n \r \\ in place. */
static size_t unescape(char *text, size_t size)
{
	const char *from = memchr(text, '\\', size), *end = text + size;
	char *to;

	if (!from)
		return size;
	to = text + (from - text);
	for (; from < end; from++) {
		if (*from == '\\' && from + 1 < end) {
			from++;
			*to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : *from == 'r' ? '\r' : *from;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
	return (size_t)(to - text);
}

static void take_line(struct reader *reader, char *line, size_t size)
{
	char *field[COLUMNS], *end = line + size;
	size_t sizes[COLUMNS], n = 0;

	if (!reader->past_names) {
		reader->past_names = true;
		return;
	}
	for (char *at = line; at <= end && n < COLUMNS; n++) {
		char *tab = memchr(at, '\t', (size_t)(end - at));

		tab = tab ? tab : end;
		*tab = 0;
		field[n] = at;
		sizes[n] = unescape(at, (size_t)(tab - at));
		at = tab + 1;
	}
	reader->stopped = !reader->row(reader->arg, &(struct pfs_row){field, sizes, n});
}

/* A sink's write. */
static int take(void *arg, const void *bytes, size_t size)
{
	struct reader *reader = arg;
	char *at, *end, *newline;

	if (pfs_grow(&reader->line, &reader->capacity, reader->len + size + 1, 1) || !reader->line)
		return -ENOMEM;
	(void)memcpy(reader->line + reader->len, bytes, size);
	at = reader->line;
	end = at + reader->len + size;
	while (!reader->stopped && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		take_line(reader, at, (size_t)(newline - at));
		at = newline + 1;
	}
	reader->len = (size_t)(end - at);
	(void)memmove(reader->line, at, reader->len);
	return reader->stopped ? -ECANCELED : 0;
}

/* ---- asking ---- */

/* The daemon's own words about what the statement lacked. */
static int explain(const char *verb, const char *shown, int folder, int error)
{
	int fd PFS_CLOSE = openat(folder, ".query/error", O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	if (size <= 0)
		return pfs_cmd_fail(verb, "%s: %s", shown, strerror(error));
	text[size] = 0;
	text[strcspn(text, "\n")] = 0;
	return pfs_cmd_fail(verb, "%s: %s", shown, text);
}

int pfs_ask_run(const char *verb, const char *shown, const char *folder, const char *sql,
		const struct pfs_sink *sink)
{
	int dir PFS_CLOSE = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd PFS_CLOSE = dir < 0 ? -1 : openat(dir, ".query/run", O_RDWR | O_CLOEXEC);
	char *piece PFS_FREE = malloc(PIECE_SIZE);
	ssize_t got;

	if (!piece)
		return pfs_cmd_fail(verb, "no memory");
	if (fd < 0)
		return pfs_cmd_fail(verb, "%s/.query/run: %s", folder, strerror(errno));
	if (write(fd, sql, strlen(sql)) < 0)
		return explain(verb, shown, dir, errno);
	while ((got = read(fd, piece, PIECE_SIZE)) > 0) {
		int error = sink->write(sink->arg, piece, (size_t)got);

		if (error)
			return error == -ECANCELED
				       ? PFS_EXIT_OK
				       : pfs_cmd_fail(verb, "the answer: %s", strerror(-error));
	}
	return got < 0 ? explain(verb, shown, dir, errno) : PFS_EXIT_OK;
}

int pfs_place_ask(const struct pfs_place *place, const char *sql,
		  bool (*row)(void *arg, const struct pfs_row *row), void *arg)
{
	struct reader reader = {.row = row, .arg = arg};
	const struct pfs_sink sink = {&reader, take};
	const char *const words[] = {"query", "tsv", "--", sql};
	int status = place->store ? pfs_answerer_ask(place->store, &sink, words, PFS_COUNT(words))
				  : pfs_ask_run(place->verb, place->shown, place->folder, sql, &sink);

	free(reader.line);
	return reader.stopped ? PFS_EXIT_OK : status;
}

char *pfs_sql_quote(const char *text)
{
	char *out = malloc(2 * strlen(text) + 3), *to = out;

	if (!out)
		return NULL;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			*to++ = '\'';
		*to++ = *text;
	}
	*to++ = '\'';
	*to = 0;
	return out;
}
