/* SPDX-License-Identifier: MIT */
/* primefs ls - ls(1) over a store or a mounted one; with -R the whole subtree in one question. */
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "tools/ask.h"
#include "tools/below.h"
#include "tools/cmd.h"
#include "tools/long.h"
#include "tools/stdout.h"

#define HALF_A_YEAR (31556952 / 2) /* seconds in which the time of day is printed, not the year */

enum { LONG, RECURSIVE, ALMOST, ONE, DIRECTORY, HUMAN, INODE, NUMERIC, REVERSE, BY_SIZE, BY_TIME };
static const struct pfs_cmd_option options[] = {
	[LONG] = {NULL, 'l', NULL, "mode, links, owner, group, size, time, name"},
	[RECURSIVE] = {"recursive", 'R', NULL, "directories with all that is in them"},
	[ALMOST] = {"almost-all", 'A', NULL, "what begins with a dot, too, but for . and .."},
	[ONE] = {NULL, '1', NULL, "one a line, which is the default"},
	[DIRECTORY] = {"directory", 'd', NULL, "directories themselves, not what is in them"},
	[HUMAN] = {"human-readable", 'h', NULL, "with -l: sizes such as 1.5K and 12M"},
	[INODE] = {"inode", 'i', NULL, "inode numbers, which are primes"},
	[NUMERIC] = {"numeric-uid-gid", 'n', NULL, "as -l, owners as numbers"},
	[REVERSE] = {"reverse", 'r', NULL, "in the reverse order"},
	[BY_SIZE] = {NULL, 'S', NULL, "the largest first"},
	[BY_TIME] = {NULL, 't', NULL, "the newest first"},
	{0},
};
static const struct pfs_cmd command = {
	"ls",
	"[STORE] [PATH...]",
	"Lists directories, as ls(1) does, one name a line.",
	options,
	"PATH is a path of a mounted store or, after a STORE, an absolute path in it.",
};

struct settings {
	bool given[BY_TIME + 1];
	bool terminal;	 /* which standard output is */
	bool bytes_only; /* all that the order depends on */
};

struct entry {
	char type;
	uint32_t node; /* among those below the place; or the place's number */
	const char *name, *target;
	size_t len, target_len;
	uint64_t ino;
	/* what follows only if it is asked for */
	uint64_t nlink, rdev;
	int64_t size, blocks, mtime;
	uid_t uid;
	gid_t gid;
	mode_t mode;
};

struct list {
	struct entry *entries;
	size_t n, capacity;
};

/* ---- rows ---- */

static bool needs_names_only(const struct settings *s)
{
	return !s->given[LONG] && !s->given[BY_SIZE] && !s->given[BY_TIME];
}

static const char *columns_of(const struct settings *s)
{
	if (!needs_names_only(s))
		return "type, name, ino, target, nlink, rdev, size, blocks, mtime, uid, gid, mode";
	return s->given[INODE] ? "type, name, ino" : "type, name";
}

static void take_entry(struct entry *e, const struct settings *s, struct pfs_row *row)
{
	size_t size;

	e->type = *pfs_row_text(row, &size);
	e->name = pfs_row_text(row, &e->len);
	e->ino = pfs_row_number(row);
	e->target = "";
	e->target_len = 0;
	if (needs_names_only(s))
		return;
	e->target = pfs_row_text(row, &e->target_len);
	e->nlink = pfs_row_number(row);
	e->rdev = pfs_row_number(row);
	e->size = pfs_row_signed(row);
	e->blocks = pfs_row_signed(row);
	e->mtime = pfs_row_signed(row);
	e->uid = (uid_t)pfs_row_number(row);
	e->gid = (gid_t)pfs_row_number(row);
	e->mode = (mode_t)pfs_row_number(row);
}

/* ---- order ---- */

/* Whether the locale has no other order of names than that of their bytes. */
static bool collates_bytes(void)
{
#ifdef __GLIBC__
	return (uint32_t)(uintptr_t)nl_langinfo(_NL_COLLATE_NRULES) == 0;
#else
	const char *locale = setlocale(LC_COLLATE, NULL);

	return locale && (strcmp(locale, "C") == 0 || strcmp(locale, "POSIX") == 0);
#endif
}

static int compare(const void *a, const void *b, void *settings)
{
	const struct entry *x = a, *y = b;
	const struct settings *s = settings;
	int order = 0;

	if (s->given[BY_TIME])
		order = (x->mtime < y->mtime) - (x->mtime > y->mtime);
	else if (s->given[BY_SIZE])
		order = (x->size < y->size) - (x->size > y->size);
	order = order ? order : strcoll(x->name, y->name);
	order = order ? order : strcmp(x->name, y->name);
	return s->given[REVERSE] ? -order : order;
}

/* They often come sorted. */
static void sort(const struct list *list, struct settings *s)
{
	size_t i = 1;

	while (i < list->n && compare(&list->entries[i - 1], &list->entries[i], s) <= 0)
		i++;
	if (i < list->n)
		qsort_r(list->entries, list->n, sizeof(*list->entries), compare, s);
}

/* ---- printing ---- */

struct widths {
	size_t ino, nlink, user, group, size, major, minor;
};

static void widen(size_t *width, size_t n)
{
	*width = PFS_MAX(*width, n);
}

static size_t digits(uint64_t n)
{
	size_t count = 1;

	while (n /= 10)
		count++;
	return count;
}

/* Valid as long as text is. */
static const char *size_text(char text[PFS_DIGITS], size_t *len, const struct settings *s,
			     int64_t size)
{
	if (!s->given[HUMAN])
		return pfs_decimal(text, len, (uint64_t)size);
	pfs_print_human(text, (uint64_t)size);
	*len = strlen(text);
	return text;
}

/* A name, or a number where there is none or none is wanted; *named: it is a name. */
static const char *owner_text(char text[PFS_DIGITS], size_t *len, bool *named,
			      const struct settings *s, uint32_t id,
			      const char *(*name_of)(uint32_t id, size_t *len))
{
	const char *name = s->given[NUMERIC] ? NULL : name_of(id, len);

	*named = name;
	return name ? name : pfs_decimal(text, len, id);
}

static bool is_device(const struct entry *e)
{
	return e->type == 'b' || e->type == 'c';
}

static void measure_long(struct widths *w, const struct settings *s, const struct entry *e)
{
	char text[PFS_DIGITS];
	bool named;
	size_t len;

	widen(&w->nlink, digits(e->nlink));
	(void)owner_text(text, &len, &named, s, e->uid, pfs_user_name);
	widen(&w->user, len);
	(void)owner_text(text, &len, &named, s, e->gid, pfs_group_name);
	widen(&w->group, len);
	if (is_device(e)) {
		widen(&w->major, digits(major(e->rdev)));
		widen(&w->minor, digits(minor(e->rdev)));
		len = w->major + 2 + w->minor;
	} else {
		(void)size_text(text, &len, s, e->size);
	}
	widen(&w->size, len);
}

static struct widths measure(const struct settings *s, const struct list *list)
{
	struct widths w = {0};

	for (size_t i = 0; i < list->n && s->given[INODE]; i++)
		widen(&w.ino, digits(list->entries[i].ino));
	for (size_t i = 0; i < list->n && s->given[LONG]; i++)
		measure_long(&w, s, &list->entries[i]);
	return w;
}

static void put_owner(struct pfs_stdout *out, const struct settings *s, size_t width, uint32_t id,
		      const char *(*name_of)(uint32_t id, size_t *len))
{
	char text[PFS_DIGITS];
	bool named;
	size_t len;
	const char *owner = owner_text(text, &len, &named, s, id, name_of);

	if (named)
		pfs_stdout_left(out, owner, len, width);
	else
		pfs_stdout_right(out, owner, len, width);
	pfs_stdout_char(out, ' ');
}

static bool is_recent(time_t now, time_t seconds)
{
	return seconds <= now && seconds > now - HALF_A_YEAR;
}

static void put_long(struct pfs_stdout *out, const struct settings *s, const struct widths *w,
		     const struct entry *e)
{
	static struct pfs_dates dates = {.is_recent = is_recent};
	char mode[PFS_MODE_SIZE], text[PFS_DIGITS];
	const char *field;
	size_t len;

	pfs_print_mode(mode, e->type, e->mode);
	pfs_stdout_put(out, mode, PFS_MODE_SIZE - 1);
	pfs_stdout_char(out, ' ');
	(void)pfs_stdout_number(out, e->nlink, w->nlink);
	pfs_stdout_char(out, ' ');
	put_owner(out, s, w->user, e->uid, pfs_user_name);
	put_owner(out, s, w->group, e->gid, pfs_group_name);
	if (is_device(e)) {
		(void)pfs_stdout_number(out, major(e->rdev), w->size - 2 - w->minor);
		pfs_stdout_put(out, ", ", 2);
		(void)pfs_stdout_number(out, minor(e->rdev), w->minor);
	} else {
		field = size_text(text, &len, s, e->size);
		pfs_stdout_right(out, field, len, w->size);
	}
	pfs_stdout_char(out, ' ');
	field = pfs_date(&dates, &len, e->mtime);
	pfs_stdout_put(out, field, len);
	pfs_stdout_char(out, ' ');
}

static void put_entries(struct pfs_stdout *out, const struct settings *s, const struct list *list)
{
	const struct widths w = measure(s, list);

	for (size_t i = 0; i < list->n; i++) {
		const struct entry *e = &list->entries[i];

		if (s->given[INODE]) {
			(void)pfs_stdout_number(out, e->ino, w.ino);
			pfs_stdout_char(out, ' ');
		}
		if (s->given[LONG])
			put_long(out, s, &w, e);
		pfs_stdout_name(out, e->name, e->len, s->terminal);
		if (s->given[LONG] && e->type == 'l') {
			pfs_stdout_put(out, " -> ", 4);
			pfs_stdout_name(out, e->target, e->target_len, s->terminal);
		}
		pfs_stdout_char(out, '\n');
	}
}

static void put_total(struct pfs_stdout *out, const struct settings *s, const struct list *list)
{
	char text[PFS_HUMAN_SIZE];
	uint64_t blocks = 0;

	for (size_t i = 0; i < list->n; i++)
		blocks += (uint64_t)list->entries[i].blocks;
	pfs_stdout_text(out, "total ");
	if (s->given[HUMAN]) {
		pfs_print_human(text, blocks * 512);
		pfs_stdout_text(out, text);
	} else {
		(void)pfs_stdout_number(out, (blocks + 1) / 2, 0);
	}
	pfs_stdout_char(out, '\n');
}

/* ---- directories ---- */

struct directory {
	uint32_t node;
	size_t above_len; /* of the path of the one that it lies in */
	const char *name;
	size_t len;
};

struct descent {
	struct pfs_below below;
	struct settings *settings;
	struct pfs_stdout *out;
	struct list list; /* of the directory at hand */
	struct directory *pending;
	size_t n, capacity;
	char *path; /* of the directory at hand */
	size_t path_len, path_capacity;
	bool blank; /* a line is to be left before a heading */
};

/* The children that are shown, in order. */
static int list_children(struct descent *d, uint32_t node)
{
	const struct settings *s = d->settings;
	struct list *list = &d->list;

	list->n = 0;
	for (uint32_t at = d->below.n ? d->below.nodes[node].first : 0; at; at = d->below.nodes[at].next) {
		struct pfs_row row = pfs_below_row(&d->below, at);
		struct entry *e;

		PFS_TRY(pfs_grow(&list->entries, &list->capacity, list->n + 1, sizeof(*e)));
		e = &list->entries[list->n];
		take_entry(e, s, &row);
		e->node = at;
		list->n += *e->name != '.' || s->given[ALMOST];
	}
	if (!s->bytes_only || d->below.beheaded)
		sort(list, d->settings);
	return 0;
}

static int add_pending(struct descent *d)
{
	PFS_TRY(pfs_grow(&d->pending, &d->capacity, d->n + d->list.n, sizeof(*d->pending)));
	for (size_t i = d->list.n; i-- > 0;) {
		const struct entry *e = &d->list.entries[i];

		if (e->type == 'd')
			d->pending[d->n++] = (struct directory){e->node, d->path_len, e->name, e->len};
	}
	return 0;
}

static int enter(struct descent *d, const struct directory *directory)
{
	size_t at = directory->above_len;

	PFS_TRY(pfs_grow(&d->path, &d->path_capacity, at + directory->len + 1, 1));
	if (at && d->path[at - 1] != '/')
		d->path[at++] = '/';
	(void)memcpy(d->path + at, directory->name, directory->len);
	d->path_len = at + directory->len;
	return 0;
}

static int put_directory(struct descent *d, const struct directory *directory, bool heading)
{
	PFS_TRY(enter(d, directory));
	PFS_TRY(list_children(d, directory->node));
	if (heading) {
		if (d->blank)
			pfs_stdout_char(d->out, '\n');
		d->blank = true;
		pfs_stdout_name(d->out, d->path, d->path_len, d->settings->terminal);
		pfs_stdout_put(d->out, ":\n", 2);
	}
	if (d->settings->given[LONG])
		put_total(d->out, d->settings, &d->list);
	put_entries(d->out, d->settings, &d->list);
	return d->settings->given[RECURSIVE] ? add_pending(d) : 0;
}

static int ask(struct pfs_below *below, const struct settings *s)
{
	char *path PFS_FREE = pfs_sql_quote(below->place->path), *where PFS_FREE = NULL;

	if (!path || asprintf(&where, "%s(ino, %s)%s", below->beheaded ? "child_of" : "under", path,
			      below->beheaded && !s->given[ALMOST] ? " AND name NOT GLOB '.*'" : "") < 0)
		return pfs_cmd_fail("ls", "no memory");
	return pfs_below_ask(below, columns_of(s), where);
}

static int list_directory(struct pfs_stdout *out, struct settings *s, const struct pfs_place *place,
			  bool heading, bool *blank)
{
	struct descent d = {.below = {.place = place, .beheaded = !s->given[RECURSIVE]},
			    .settings = s,
			    .out = out,
			    .blank = *blank};
	struct directory top = {.name = *place->shown ? place->shown : "/"};
	int status = ask(&d.below, s), error = 0;

	top.len = strlen(top.name);
	if (!status)
		error = put_directory(&d, &top, heading || s->given[RECURSIVE]);
	while (d.n && !error) {
		top = d.pending[--d.n];
		error = put_directory(&d, &top, true);
	}
	*blank = d.blank;
	pfs_below_close(&d.below);
	free(d.list.entries);
	free(d.pending);
	free(d.path);
	return error ? pfs_cmd_fail("ls", "no memory") : status;
}

/* ---- places ---- */

struct places {
	const struct settings *settings;
	struct list list;
	const char *shown; /* of the one that is asked about */
	bool no_memory;
};

/* The names of places are those by which they were given. */
static bool take_place(void *arg, struct pfs_row *row)
{
	struct places *places = arg;
	struct entry *e = &places->list.entries[places->list.n];
	char *names;

	take_entry(e, places->settings, row);
	e->node = (uint32_t)places->list.n;
	e->len = strlen(places->shown);
	names = malloc(e->len + e->target_len + 2);
	places->no_memory = !names;
	if (!names)
		return false;
	(void)memcpy(names, places->shown, e->len + 1);
	(void)memcpy(names + e->len + 1, e->target, e->target_len + 1);
	e->name = names;
	e->target = names + e->len + 1;
	places->list.n++;
	return false;
}

static int find_place(struct places *places, const struct pfs_place *place)
{
	char *path PFS_FREE = pfs_sql_quote(place->path), *sql PFS_FREE = NULL;
	size_t n = places->list.n;

	if (!path || asprintf(&sql, "SELECT %s FROM nodes WHERE path = %s",
			      columns_of(places->settings), path) < 0)
		return pfs_cmd_fail("ls", "no memory");
	places->shown = *place->shown ? place->shown : "/";
	PFS_TRY(pfs_place_ask(place, sql, take_place, places));
	if (places->no_memory)
		return pfs_cmd_fail("ls", "no memory");
	return places->list.n > n ? PFS_EXIT_OK
				  : pfs_cmd_fail("ls", "%s: no such file or directory", place->path);
}

/* Files first, then directories. */
static int list_places(struct pfs_stdout *out, struct settings *s, const struct pfs_place *places, size_t n)
{
	struct places found = {.settings = s, .list.entries = calloc(n, sizeof(struct entry))};
	struct list files = {.entries = calloc(n, sizeof(struct entry))};
	int status = found.list.entries && files.entries ? PFS_EXIT_OK
							 : pfs_cmd_fail("ls", "no memory");
	bool blank;

	for (size_t i = 0; i < n && !status; i++)
		status = find_place(&found, &places[i]);
	if (!status)
		sort(&found.list, s);
	for (size_t i = 0; i < n && !status; i++)
		if (found.list.entries[i].type != 'd' || s->given[DIRECTORY])
			files.entries[files.n++] = found.list.entries[i];
	put_entries(out, s, &files);
	blank = files.n;
	for (size_t i = 0; i < n && !status; i++) {
		const struct entry *e = &found.list.entries[i];

		if (e->type == 'd' && !s->given[DIRECTORY])
			status = list_directory(out, s, &places[e->node], n > 1, &blank);
	}
	for (size_t i = 0; i < found.list.n; i++)
		free((char *)found.list.entries[i].name);
	free(found.list.entries);
	free(files.entries);
	return status;
}

int pfs_cmd_ls(int argc, char **argv)
{
	static struct pfs_stdout out;
	struct settings s = {.terminal = isatty(STDOUT_FILENO)};
	struct pfs_place *places = NULL;
	struct pfs_cmd_args args;
	int option, status;
	size_t n = 0;

	pfs_cmd_begin(&args, &command, argc, argv);
	while ((option = pfs_cmd_next(&args)) >= 0)
		s.given[option] = true;
	if (pfs_cmd_end(&args, 0, -1))
		return args.status;
	s.given[LONG] |= s.given[NUMERIC];
	(void)setlocale(LC_ALL, "");
	s.bytes_only = collates_bytes() && !s.given[BY_SIZE] && !s.given[BY_TIME] && !s.given[REVERSE];
	status = pfs_places_open(&places, &n, "ls", args.operands, (size_t)args.n_operands);
	if (!status)
		status = list_places(&out, &s, places, n);
	pfs_places_close(places, n);
	return pfs_stdout_end(&out, "ls", status);
}
