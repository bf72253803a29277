/* SPDX-License-Identifier: MIT */
/* A directory's listing is complete when everything below it has come, but is printed before that.
 * So each listing is collected in the buffer of its level, and moved behind those that were
 * completed before it. At the end all are printed in the order in which they were begun. */
#include "tools/gnu/ls_names.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/cmd.h"

struct text {
	char *bytes;
	size_t n, capacity;
};

/* A directory whose children have not all come. */
struct level {
	struct text listing;
	size_t number;	 /* the number of its listing */
	size_t path_len; /* length of its path, with which the paths below it begin */
};

struct place_of { /* where a listing is, among those that are complete */
	size_t at, n;
};

struct names {
	const struct pfs_place *place;
	bool hidden;
	struct level *levels;
	size_t depth, capacity; /* how many levels are in use; how many there are */
	uint64_t top;		/* its depth in the store */
	bool begun;		/* the row of the top has come */
	size_t left_out;	/* what is deeper is left out; 0: nothing is */
	struct text path;	/* the path of the directory on the lowest level */
	struct text complete;
	struct place_of *places;
	size_t n, place_capacity;
	int error;
};

static int add(struct text *text, const char *bytes, size_t n, const char *end, size_t n_end)
{
	if (pfs_grow(&text->bytes, &text->capacity, text->n + n + n_end, 1) || !text->bytes)
		return -ENOMEM;
	memcpy(mempcpy(text->bytes + text->n, bytes, n), end, n_end);
	text->n += n + n_end;
	return 0;
}

static int begin(struct names *names, const char *name, size_t len)
{
	struct text *path = &names->path;
	struct level *level;

	path->n = names->depth ? names->levels[names->depth - 1].path_len : 0;
	if (path->n && path->bytes[path->n - 1] != '/')
		PFS_TRY(add(path, "/", 1, "", 0));
	PFS_TRY(add(path, name, len, "", 0));
	if (names->depth == names->capacity) {
		PFS_TRY(pfs_grow(&names->levels, &names->capacity, names->depth + 1,
				 sizeof(*names->levels)));
		memset(names->levels + names->depth, 0,
		       (names->capacity - names->depth) * sizeof(*names->levels));
	}
	PFS_TRY(pfs_grow(&names->places, &names->place_capacity, names->n + 1,
			 sizeof(*names->places)));
	level = &names->levels[names->depth++];
	names->places[names->n] = (struct place_of){0, 0};
	level->number = names->n++;
	level->path_len = path->n;
	level->listing.n = 0;
	return add(&level->listing, path->bytes, path->n, ":\n", 2);
}

static int end(struct names *names)
{
	const struct level *level = &names->levels[--names->depth];
	struct text *complete = &names->complete;

	names->places[level->number] = (struct place_of){complete->n, level->listing.n};
	return add(complete, level->listing.bytes, level->listing.n, "", 0);
}

static int take_name(struct names *names, size_t depth, char type, const char *name, size_t len)
{
	if (names->left_out && depth > names->left_out)
		return 0;
	names->left_out = 0;
	if (*name == '.' && !names->hidden) {
		names->left_out = type == 'd' ? depth : 0;
		return 0;
	}
	while (names->depth > depth)
		PFS_TRY(end(names));
	PFS_TRY(add(&names->levels[names->depth - 1].listing, name, len, "\n", 1));
	return type == 'd' ? begin(names, name, len) : 0;
}

static bool take(void *arg, struct pfs_row *row)
{
	struct names *names = arg;
	uint64_t depth = pfs_row_number(row);
	char type = pfs_row_letter(row);
	size_t len;
	const char *name = pfs_row_text(row, &len);

	if (!names->begun)
		names->top = depth;
	else
		names->error = take_name(names, (size_t)(depth - names->top), type, name, len);
	names->begun = true;
	return !names->error;
}

static int ask(struct names *names)
{
	char *path PFS_FREE = pfs_sql_quote(names->place->path), *sql PFS_FREE = NULL;

	if (!path ||
	    asprintf(&sql,
		     "SELECT depth, type, name FROM nodes WHERE under(ino, %s) ORDER BY preorder",
		     path) < 0)
		return pfs_cmd_fail("ls", "no memory");
	PFS_TRY(pfs_place_ask(names->place, sql, take, names));
	while (names->depth && !names->error)
		names->error = end(names);
	return names->error ? pfs_cmd_fail("ls", "no memory") : PFS_EXIT_OK;
}

static void print(struct pfs_stdout *out, const struct names *names, bool *blank)
{
	const char *complete = names->complete.bytes;

	for (size_t i = 0; i < names->n && complete; i++) {
		if (*blank)
			pfs_stdout_char(out, '\n');
		*blank = true;
		pfs_stdout_put(out, complete + names->places[i].at, names->places[i].n);
	}
}

int pfs_ls_names(struct pfs_stdout *out, const struct pfs_place *place, bool hidden, bool *blank)
{
	struct names names = {.place = place, .hidden = hidden};
	const char *shown = *place->shown ? place->shown : "/";
	int status =
		begin(&names, shown, strlen(shown)) ? pfs_cmd_fail("ls", "no memory") : ask(&names);

	if (!status)
		print(out, &names, blank);
	for (size_t i = 0; i < names.capacity; i++)
		free(names.levels[i].listing.bytes);
	free(names.levels);
	free(names.path.bytes);
	free(names.complete.bytes);
	free(names.places);
	return status;
}
