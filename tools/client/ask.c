/* SPDX-License-Identifier: MIT */
#include "tools/client/ask.h"

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
#include "tools/client/answer.h"
#include "tools/cmd.h"

#define PATH_XATTR "user.primefs.path"
#define PIECE_SIZE ((size_t)256 << 10)

struct pfs_run_file {
	const struct pfs_place *of; /* NULL: no file is open */
	int dir, fd;
};

static void close_run(struct pfs_run_file *run)
{
	if (!run->of)
		return;
	(void)close(run->fd);
	(void)close(run->dir);
	run->of = NULL;
}

/* ---- places ---- */

/* Returns the path that a mounted path has in its store; the caller frees it. NULL: errno says why
 * there is none. */
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

/* Returns the path if it is a directory's, else that of the directory with the name. */
static char *folder_of(const char *operand)
{
	const char *slash = strrchr(operand, '/');
	struct stat attr;

	if (lstat(operand, &attr) == 0 && S_ISDIR(attr.st_mode))
		return strdup(operand);
	return slash ? strndup(operand, (size_t)(slash - operand) + 1) : strdup(".");
}

/* Only files and directories have such attributes. For anything else, this asks the directory that
 * contains it. */
static char *path_by_folder(const char *operand)
{
	char *folder PFS_FREE = folder_of(operand), *path = NULL;
	char *above PFS_FREE = folder ? path_in_store(folder) : NULL;
	const char *slash = strrchr(operand, '/');

	if (above &&
	    asprintf(&path, "%s/%s", above[1] ? above : "", slash ? slash + 1 : operand) < 0)
		return NULL;
	return path;
}

static bool find_in_store(struct pfs_place *place, const char *operand)
{
	struct stat attr;

	if (lstat(operand, &attr) != 0)
		return false;
	place->device = attr.st_dev;
	place->path = S_ISREG(attr.st_mode) || S_ISDIR(attr.st_mode) ? path_in_store(operand)
								     : path_by_folder(operand);
	place->folder = place->path ? folder_of(operand) : NULL;
	return place->folder;
}

/* Returns true if the path is in the `.query` of a mounted directory. */
static bool is_virtual(const char *real)
{
	static const char query[] = "/.query";
	const char *at = strstr(real, query);
	char *above PFS_FREE = at ? strndup(real, (size_t)(at - real)) : NULL;
	char *path PFS_FREE = above ? path_in_store(above) : NULL;

	return path && strchr("/", at[sizeof(query) - 1]);
}

static int open_mounted(struct pfs_place *place, const char *operand, bool follows)
{
	char *real PFS_FREE = NULL;
	struct stat attr, target;

	place->shown = operand;
	if (lstat(operand, &attr) != 0)
		return pfs_cmd_fail(place->verb, "%s: %s", operand, strerror(errno));
	follows = follows && S_ISLNK(attr.st_mode) && stat(operand, &target) == 0 &&
		  S_ISDIR(target.st_mode);
	if (!follows && find_in_store(place, operand))
		return PFS_EXIT_OK;
	real = realpath(operand, NULL); /* a symlink may lead into a mounted store */
	if (real && find_in_store(place, real))
		return PFS_EXIT_OK;
	if (place->path) {
		free(PFS_TAKE(place->path));
		return pfs_cmd_fail(place->verb, "no memory");
	}
	if (real && is_virtual(real))
		return pfs_cmd_fail(
			place->verb,
			"%s: .query is no part of the tree; read it with ls(1) and cat(1)",
			operand);
	return pfs_cmd_fail(place->verb, "%s: lies in no mounted store; name a store, or mount it",
			    operand);
}

static int open_in_store(struct pfs_place *place, const char *path)
{
	if (*path != '/')
		return pfs_cmd_usage(place->verb, "%s: a path in a store begins with /", path);
	place->shown = path[1] ? path : "";
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
		    size_t n_operands, bool follows)
{
	struct pfs_answerer *store = NULL;
	struct pfs_run_file *run = calloc(1, sizeof(*run));
	static char here[] = ".", root[] = "/";
	static char *no_operands[] = {here}, *no_paths[] = {root};
	int status = PFS_EXIT_OK;

	*n = 0;
	*places = calloc(PFS_MAX(n_operands, 1), sizeof(**places));
	if (!run || !*places) {
		free(run);
		return pfs_cmd_fail(verb, "no memory");
	}
	(*places)->run = run;
	if (n_operands && is_store(operands[0])) {
		status = pfs_answerer_open(&store, verb, operands[0]);
		operands = n_operands > 1 ? operands + 1 : no_paths;
		n_operands = PFS_MAX(n_operands - 1, 1);
	} else if (!n_operands) {
		operands = no_operands;
		n_operands = 1;
	}
	for (size_t i = 0; i < n_operands && (!status || *n); i++) {
		struct pfs_place *place = &(*places)[i];
		int opened;

		place->verb = verb;
		place->store = store;
		place->run = run;
		opened = store ? open_in_store(place, operands[i])
			       : open_mounted(place, operands[i], follows);
		status = opened ? opened : status;
		++*n;
	}
	return status;
}

void pfs_places_close(struct pfs_place *places, size_t n)
{
	if (n)
		pfs_answerer_close(places[0].store);
	if (places) {
		close_run(places[0].run);
		free(places[0].run);
	}
	for (size_t i = 0; i < n; i++) {
		free(places[i].folder);
		free(places[i].path);
	}
	free(places);
}

/* ---- rows: lines, of which the first has the names ---- */

struct reader {
	bool (*row)(void *arg, struct pfs_row *row);
	void *arg;
	struct pfs_place_text *text;
	size_t at;  /* the place in the text of what has not been taken */
	bool keeps; /* what has been taken is kept */
	bool past_names, stopped;
};

char *pfs_row_unescape(char *text, char **end)
{
	char *from = text, *to = text;

	for (; *from != '\t' && *from != '\n'; from++) {
		if (*from == '\\' && from[1] != '\n') {
			from++;
			*to++ = *from == 't'   ? '\t'
				: *from == 'n' ? '\n'
				: *from == 'r' ? '\r'
					       : *from;
		} else {
			*to++ = *from;
		}
	}
	*end = from;
	return memmove(text + (from - to), text, (size_t)(to - text));
}

/* Makes room for another piece at the end of the text. */
static bool make_room(struct reader *reader, size_t size)
{
	struct pfs_place_text *text = reader->text;

	if (!reader->keeps && reader->at) {
		text->size -= reader->at;
		(void)memmove(text->text, text->text + reader->at, text->size);
		reader->at = 0;
	}
	return pfs_grow(&text->text, &text->capacity, text->size + size + PFS_ROW_SLACK, 1) == 0;
}

/* Takes all lines that the new piece completes. */
static void take_lines(struct reader *reader, size_t size)
{
	struct pfs_place_text *text = reader->text;
	char *piece = text->text + text->size, *end = memrchr(piece, '\n', size), *at;
	struct pfs_row row;

	text->size += size;
	(void)memset(piece + size, 0, PFS_ROW_SLACK);
	if (!end)
		return;
	at = text->text + reader->at;
	if (!reader->past_names) {
		reader->past_names = true;
		at = (char *)rawmemchr(at, '\n') + 1;
	}
	while (at <= end && !reader->stopped) {
		row = (struct pfs_row){.at = at};
		reader->stopped = !reader->row(reader->arg, &row);
		at = row.ended ? row.at : rawmemchr(row.at, '\n');
		at++;
	}
	reader->at = (size_t)(at - text->text);
}

/* The function `write` of a sink. */
static int take(void *arg, const void *bytes, size_t size)
{
	struct reader *reader = arg;

	if (!make_room(reader, size))
		return -ENOMEM;
	(void)memcpy(reader->text->text + reader->text->size, bytes, size);
	take_lines(reader, size);
	return reader->stopped ? -ECANCELED : 0;
}

/* ---- asking ---- */

/* Prints what the daemon itself says about the statement. */
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

/* Opens both or, on failure, neither. */
static int open_run(int *fd, int *dir, const char *verb, const char *folder)
{
	int status;

	*dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*fd = *dir < 0 ? -1 : openat(*dir, ".query/run", O_RDWR | O_CLOEXEC);
	if (*fd >= 0)
		return PFS_EXIT_OK;
	status = pfs_cmd_fail(verb, "%s/.query/run: %s", folder, strerror(errno));
	if (*dir >= 0)
		(void)close(*dir);
	return status;
}

/* After this the answer can be read. */
static int write_run(int fd, int dir, const char *verb, const char *shown, const char *sql)
{
	return write(fd, sql, strlen(sql)) < 0 ? explain(verb, shown, dir, errno) : PFS_EXIT_OK;
}

int pfs_ask_run(const char *verb, const char *shown, const char *folder, const char *sql,
		const struct pfs_sink *sink)
{
	int dir PFS_CLOSE = -1, fd PFS_CLOSE = -1;
	char *piece PFS_FREE = malloc(PIECE_SIZE);
	ssize_t got;

	if (!piece)
		return pfs_cmd_fail(verb, "no memory");
	PFS_TRY(open_run(&fd, &dir, verb, folder));
	PFS_TRY(write_run(fd, dir, verb, shown, sql));
	while ((got = read(fd, piece, PIECE_SIZE)) > 0) {
		int error = sink->write(sink->arg, piece, (size_t)got);

		if (error)
			return error == -ECANCELED
				       ? PFS_EXIT_OK
				       : pfs_cmd_fail(verb, "the answer: %s", strerror(-error));
	}
	return got < 0 ? explain(verb, shown, dir, errno) : PFS_EXIT_OK;
}

/* Does what a sink does, but reads pieces to where they are parsed. */
static int read_answer(struct reader *reader, const struct pfs_run_file *run, const char *sql)
{
	const struct pfs_place *place = run->of;
	ssize_t got;

	PFS_TRY(write_run(run->fd, run->dir, place->verb, place->shown, sql));
	do {
		if (!make_room(reader, PIECE_SIZE))
			return pfs_cmd_fail(place->verb, "the answer: %s", strerror(ENOMEM));
		got = read(run->fd, reader->text->text + reader->text->size, PIECE_SIZE);
		if (got > 0)
			take_lines(reader, (size_t)got);
	} while (got > 0 && !reader->stopped);
	return got < 0 ? explain(place->verb, place->shown, run->dir, errno) : PFS_EXIT_OK;
}

/* Takes the file while it is in use, since the caller may ask something else while it parses a row.
 */
static int read_run(struct reader *reader, const struct pfs_place *place, const char *sql)
{
	struct pfs_run_file run = *place->run;
	int status;

	place->run->of = NULL;
	if (run.of != place) {
		close_run(&run);
		PFS_TRY(open_run(&run.fd, &run.dir, place->verb, place->folder));
		run.of = place;
	}
	status = read_answer(reader, &run, sql);
	close_run(place->run);
	*place->run = run;
	return status;
}

static int ask(struct reader *reader, const struct pfs_place *place, const char *sql)
{
	const struct pfs_sink sink = {reader, take};
	const char *const words[] = {"query", "tsv", "--", sql};
	int status = place->store ? pfs_answerer_ask(place->store, &sink, words, PFS_COUNT(words))
				  : read_run(reader, place, sql);

	return reader->stopped ? PFS_EXIT_OK : status;
}

int pfs_place_ask(const struct pfs_place *place, const char *sql,
		  bool (*row)(void *arg, struct pfs_row *row), void *arg)
{
	struct pfs_place_text text = {0};
	struct reader reader = {.row = row, .arg = arg, .text = &text};
	int status = ask(&reader, place, sql);

	free(text.text);
	return status;
}

int pfs_place_keep(const struct pfs_place *place, struct pfs_place_text *kept, const char *sql,
		   bool (*row)(void *arg, struct pfs_row *row), void *arg)
{
	struct reader reader = {
		.row = row, .arg = arg, .text = kept, .at = kept->size, .keeps = true};

	return ask(&reader, place, sql);
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
